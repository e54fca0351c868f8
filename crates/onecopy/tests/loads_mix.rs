//! Whole loads of several sources.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

mod loads_support;

use std::collections::BTreeMap;

use loads_support::*;
use onecopy::config::{LoadConfig, OnError};
use onecopy::loader::Position;
use onecopy::sample::order::{Part, Stop, Tail};
use onecopy::{ErrorKind, Loader, Mix};
use proptest::prelude::*;

fn how(weights: &[f64], stop: Stop) -> Mix {
    Mix {
        weights: Some(Vec::from(weights)),
        seed: 11,
        stop,
    }
}

fn source_of(label: i64) -> usize {
    usize::try_from(label / 1000).unwrap()
}

/// How often each label of a source came.
fn times(labels: &[i64], source: usize) -> Vec<u64> {
    let mut times: BTreeMap<i64, u64> = BTreeMap::new();
    for label in labels.iter().filter(|label| source_of(**label) == source) {
        *times.entry(*label).or_default() += 1;
    }
    times.into_values().collect()
}

/// Every label of a source came as often as any other, but for one time more or less.
fn check_even(labels: &[i64], source: usize, all: u64) -> Result<(), TestCaseError> {
    let times = times(labels, source);
    let sum: u64 = times.iter().sum();
    let allowed = sum / all..=sum.div_ceil(all);
    prop_assert!(
        times.iter().all(|times| allowed.contains(times)),
        "{:?}",
        times
    );
    Ok(())
}

fn taken(loader: Loader, count: usize) -> (Vec<Vec<i64>>, Position) {
    let mut load = loader.run().unwrap();
    let given = load.by_ref().take(count);
    let given = given.map(|batch| labels(&batch.unwrap())).collect();
    let spots = load.spots().unwrap();
    spots.receive();
    (given, Position::from(spots.now()))
}

fn stops() -> impl Strategy<Value = Stop> {
    prop_oneof![Just(Stop::FirstExhausted), Just(Stop::AllExhausted)]
}

fn finished(loader: Loader, size: usize) -> Loader {
    loader.decode(None).fields(["cls"]).batch(size, false)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn a_counted_mixture_is_the_same_on_any_number_of_ranks_and_from_any_step(
        counts in prop::collection::vec(prop::collection::vec(1..30_u64, 1..4), 1..4),
        weights in prop::collection::vec(0.3..3.0_f64, 4),
        stop in stops(),
        is_padding in any::<bool>(),
        steps in prop::option::of(1..20_u64),
        shuffle in prop::option::of(2..40_usize),
        (ranks, workers) in prop_oneof![Just((1_u64, 2_u64)), Just((2, 1)), Just((2, 2)), Just((3, 1))],
        per_rank in 1..4_u64,
        from in 0..40_usize,
    ) {
        let data = Sources::new(&counts);
        let batch = per_rank * 6;
        let tail = if is_padding { Tail::Pad } else { Tail::Drop };
        let loader = |part: Part, from: u64| {
            let how = how(&weights[..counts.len()], stop);
            let loader = onecopy::mix(data.loaders(true, shuffle), how).unwrap();
            let loader = loader.lanes(Some(12), Some(2)).epoch(2).part(part).tail(Some(tail));
            let loader = loader.steps_per_epoch(steps).position((from > 0).then_some(Position::Samples(from)));
            finished(loader, usize::try_from(batch / part.ranks).unwrap())
        };
        let Ok(plan) = loader(Part::WHOLE, 0).plan() else {
            // Less than a single batch.
            prop_assert!(!is_padding && steps.is_none());
            return Ok(());
        };
        let totals = plan.order.counted.unwrap();
        let whole = batches(loader(Part::WHOLE, 0));
        prop_assert_eq!(whole.len() as u64, totals.steps);
        let flat = whole.concat();
        for (source, of) in totals.sources.iter().enumerate() {
            prop_assert_eq!(of.dataset_samples, data.samples(source));
            prop_assert_eq!(times(&flat, source).iter().sum::<u64>(), of.samples);
            check_even(&flat, source, of.dataset_samples)?;
        }
        prop_assert_eq!(flat.len() as u64, totals.samples);
        prop_assert_eq!(totals.dataset_samples + totals.padded - totals.dropped, totals.samples);
        let odd: u64 = totals.odd.iter().flatten().map(|of| of.to - of.from).sum();
        prop_assert_eq!(odd, totals.padded + totals.dropped);
        // The same on several ranks and workers, from any step on.
        let from = from % (whole.len() + 1);
        let mut steps = vec![Vec::new(); whole.len() - from];
        for rank in 0..ranks {
            for worker in 0..workers {
                let part = Part { rank, ranks, worker, workers };
                let mut given = batches(loader(part, from as u64 * batch)).into_iter();
                for (at, step) in steps.iter_mut().enumerate() {
                    if (from + at) as u64 % workers == worker {
                        step.extend(given.next().unwrap());
                    }
                }
                prop_assert!(given.next().is_none());
            }
        }
        for (mut step, whole) in steps.into_iter().zip(&whole[from..]) {
            let mut whole = whole.clone();
            step.sort_unstable();
            whole.sort_unstable();
            prop_assert_eq!(step, whole);
        }
    }

    #[test]
    fn without_counts_a_mixture_ends_as_was_asked_and_goes_on_from_any_step(
        counts in prop::collection::vec(prop::collection::vec(0..20_u64, 2..5), 1..4),
        weights in prop::collection::vec(0.3..3.0_f64, 4),
        stop in stops(),
        steps in prop::option::of(1..30_u64),
        shuffle in prop::option::of(2..40_usize),
        size in 1..6_usize,
        lanes in 1..4_u64,
        stops in (0..60_usize, 0..60_usize),
    ) {
        let data = Sources::new(&counts);
        let loader = || {
            let how = how(&weights[..counts.len()], stop);
            let loader = onecopy::mix(data.loaders(false, shuffle), how).unwrap();
            finished(loader.lanes(Some(lanes), None).steps_per_epoch(steps).epoch(3), size)
        };
        let all: Vec<u64> = (0..counts.len()).map(|source| data.samples(source)).collect();
        if all.contains(&0) {
            // Of a source that gives nothing nothing can be drawn, if it comes to that.
            if let Some(error) = loader().run().unwrap().find_map(Result::err) {
                prop_assert_eq!(error.kind(), ErrorKind::NotFound);
                prop_assert!(error.to_string().contains("source"), "{}", error);
            } else {
                prop_assert!(steps.is_some());
            }
            return Ok(());
        }
        let whole = batches(loader());
        let flat = whole.concat();
        let given: Vec<u64> = (0..all.len()).map(|source| times(&flat, source).iter().sum()).collect();
        for (source, all) in all.iter().enumerate() {
            check_even(&flat, source, *all)?;
        }
        let mut pairs = given.iter().zip(&all);
        match (steps, stop) {
            (Some(steps), _) => prop_assert_eq!(flat.len(), usize::try_from(steps).unwrap() * size),
            (None, Stop::FirstExhausted) => prop_assert!(pairs.clone().all(|(given, all)| given <= all) && pairs.any(|(given, all)| given == all)),
            (None, Stop::AllExhausted) => prop_assert!(pairs.all(|(given, all)| given >= all)),
        }
        let first = stops.0 % (whole.len() + 1);
        let second = stops.1 % (whole.len() - first + 1);
        let going_on = |position: Position, made: usize| {
            let text = position.to_string();
            loader().position(Some(text.parse().unwrap())).steps_made(made as u64)
        };
        let (mut again, position) = taken(loader(), first);
        let (more, position) = taken(going_on(position, first), second);
        again.extend(more);
        again.extend(batches(going_on(position, first + second)));
        prop_assert_eq!(again, whole);
    }
}

#[test]
fn sources_are_mixed_as_weighed_and_the_ledger_counts_each() {
    let data = Sources::new(&[vec![200, 200], vec![300]]);
    for is_counted in [true, false] {
        let mixed = onecopy::mix(
            data.loaders(is_counted, Some(50)),
            how(&[3.0, 1.0], Stop::FirstExhausted),
        );
        let mut load = finished(mixed.unwrap(), 10).run().unwrap();
        let flat: Vec<i64> = load
            .by_ref()
            .flat_map(|batch| labels(&batch.unwrap()))
            .collect();
        let of = [0, 1].map(|source| times(&flat, source).len() as u64);
        assert_eq!(of[0], 400);
        assert!((100..170).contains(&of[1]), "{of:?}");
        let report = load.report();
        let counted: Vec<u64> = report.sources.iter().map(|source| source.samples).collect();
        assert_eq!(counted, of);
        assert!(report.sources[0].urls.contains("0-0.tar"));
        let bytes: u64 = report
            .sources
            .iter()
            .map(|source| source.payload_bytes)
            .sum();
        assert_eq!(bytes, report.payload_bytes);
        assert!(report.sources.iter().all(|source| source.payload_bytes > 0));
        assert!(report.to_string().contains("400 samples"), "{report}");
    }
}

#[test]
fn several_ranks_mix_without_an_index_where_steps_are_asked_for() {
    let data = Sources::new(&[vec![5, 6, 7], vec![4, 4]]);
    let loader = |rank, steps| {
        let how = how(&[1.0, 1.0], Stop::FirstExhausted);
        let part = Part {
            rank,
            ranks: 2,
            ..Part::WHOLE
        };
        let loader = onecopy::mix(data.loaders(false, Some(9)), how).unwrap();
        finished(loader.part(part).steps_per_epoch(steps), 4)
    };
    let error = loader(0, None).run().map(drop).unwrap_err();
    assert!(error.help().unwrap().contains("steps_per_epoch"), "{error}");
    let ranks = [0, 1].map(|rank| {
        let mut load = loader(rank, Some(10)).run().unwrap();
        let flat: Vec<i64> = load
            .by_ref()
            .flat_map(|batch| labels(&batch.unwrap()))
            .collect();
        assert_eq!(flat.len(), 40);
        assert!(load.report().sources.iter().all(|source| source.passes > 1));
        flat
    });
    assert!(ranks[0].iter().all(|label| !ranks[1].contains(label)));
    assert_ne!(
        ranks[0]
            .iter()
            .map(|label| source_of(*label))
            .collect::<Vec<_>>(),
        ranks[1]
            .iter()
            .map(|label| source_of(*label))
            .collect::<Vec<_>>()
    );
}

#[test]
fn a_mixture_of_nothing_good_ends_with_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let bad = |name: &str, count: usize| {
        let mut samples = numbered(0..count);
        for (_, label) in &mut samples {
            *label = "cat".to_owned();
        }
        let url = write(folder.path(), name, &shard(&samples, 50));
        let skipping = LoadConfig {
            on_error: OnError::Skip,
            ..config(16 * MIB)
        };
        onecopy::open([url], skipping)
    };
    for size in [1, 5, 100] {
        let loaders = [bad("a.tar", 30), bad("b.tar", 1)];
        let mixed = onecopy::mix(loaders, how(&[1.0, 20.0], Stop::FirstExhausted)).unwrap();
        let mut load = finished(mixed.steps_per_epoch(Some(3)), size)
            .run()
            .unwrap();
        assert_eq!(
            load.next().unwrap().unwrap_err().kind(),
            ErrorKind::NotFound
        );
    }
}

#[test]
fn what_cannot_be_mixed_is_refused_with_what_to_do() {
    let data = Sources::new(&[vec![3], vec![3]]);
    let loaders = || data.loaders(true, None);
    let one = || loaders().remove(0);
    let equal = || Mix::default();
    let weights = |weights: &[f64]| how(weights, Stop::FirstExhausted);
    let other = |config: LoadConfig| onecopy::open(["b.tar"], config);
    let mixed = || onecopy::mix(loaders(), equal()).unwrap();
    for (result, why) in [
        (onecopy::mix(Vec::new(), equal()), "there is none"),
        (
            onecopy::mix([one(), one().decode(None)], equal()),
            "loader 1",
        ),
        (
            onecopy::mix([one(), one().batch(3, false)], equal()),
            "loader 1",
        ),
        (onecopy::mix([mixed()], equal()), "a mixture itself"),
        (
            onecopy::mix([one(), other(config(32 * MIB))], equal()),
            "`memory`",
        ),
        (
            onecopy::mix(
                [
                    one(),
                    other(LoadConfig {
                        on_error: OnError::Skip,
                        ..config(16 * MIB)
                    }),
                ],
                equal(),
            ),
            "`on_error`",
        ),
        (
            onecopy::mix([one(), one().lanes(Some(3), None)], equal()),
            "`lanes`",
        ),
        (
            onecopy::mix([one(), one().steps_per_epoch(Some(3))], equal()),
            "`steps_per_epoch`",
        ),
        (
            onecopy::mix(loaders(), weights(&[1.0])),
            "1 weights are given for 2 loaders",
        ),
        (onecopy::mix(loaders(), weights(&[1.0, 0.0])), "0 is given"),
        (
            onecopy::mix(loaders(), weights(&[1.0, f64::NAN])),
            "NaN is given",
        ),
    ] {
        let error = result.map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert!(error.to_string().contains(why), "{error}");
        assert!(error.help().is_some(), "{error}");
    }
    for (loader, why) in [
        (mixed().shuffle(10, 1), "shuffled"),
        (mixed().position(Some(Position::Samples(1000))), "1000"),
    ] {
        let error = finished(loader, 2).run().map(drop).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    }
    assert!(mixed().run_buffers().is_err());
    assert_eq!(
        mixed().catalog().map(drop).unwrap_err().kind(),
        ErrorKind::Unsupported
    );
    // Of one source all is said; of no sample, nothing.
    assert_eq!(
        batches(finished(onecopy::mix([one()], equal()).unwrap(), 3)),
        [[0, 1, 2]]
    );
    let empty = Sources::new(&[vec![3], vec![0]]);
    let error = onecopy::mix(empty.loaders(true, None), equal()).unwrap();
    let error = finished(error, 3).run().map(drop).unwrap_err();
    assert!(error.to_string().contains("source 1"), "{error}");
}
