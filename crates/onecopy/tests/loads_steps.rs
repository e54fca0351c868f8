//! Whole loads of so many steps, whatever there is to read.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

mod loads_support;

use std::collections::BTreeMap;

use loads_support::*;
use onecopy::config::{LoadConfig, OnError};
use onecopy::loader::{Position, Totals};
use onecopy::sample::order::Part;
use onecopy::{ErrorKind, Loader};
use proptest::prelude::*;

/// Takes `count` batches, and tells where the load stands behind them.
fn taken(loader: Loader, count: usize) -> (Vec<Vec<i64>>, Position) {
    let mut load = loader.run().unwrap();
    let given = load.by_ref().take(count);
    let given = given.map(|batch| labels(&batch.unwrap())).collect();
    let spots = load.spots().unwrap();
    spots.receive();
    (given, Position::from(spots.now()))
}

/// The steps of `part`, of `steps` that its rank makes.
fn steps_of(part: Part, steps: u64) -> u64 {
    steps.saturating_sub(part.worker).div_ceil(part.workers)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn every_rank_makes_its_steps_and_nothing_comes_twice_before_all_came_once(
        counts in prop::collection::vec(prop_oneof![0..3_u64, 0..30_u64], 4..9),
        (ranks, workers) in prop_oneof![Just((1_u64, 1_u64)), Just((2, 1)), Just((1, 2)), Just((2, 2)), Just((4, 1))],
        size in 1..9_usize,
        steps in 1..40_u64,
        shuffle in prop::option::of(2..60_usize),
        lanes in 1..5_u64,
        stops in (0..60_usize, 0..60_usize),
        seed in any::<u64>(),
    ) {
        let data = Data::new(&counts);
        let mut reached = BTreeMap::new();
        for process in 0..ranks * workers {
            let part = Part { rank: process / workers, ranks, worker: process % workers, workers };
            let loader = || {
                let loader = data.loader().epoch(2).part(part).batch(size, false);
                let loader = loader.lanes(Some(lanes), None).steps_per_epoch(Some(steps));
                match shuffle {
                    Some(capacity) => loader.shuffle(capacity, seed),
                    None => loader,
                }
            };
            // What there is for this process, once.
            let alone = |loader: Loader| batches(loader.steps_per_epoch(None)).concat();
            let mut own = if ranks == 1 {
                alone(loader())
            } else {
                alone(loader().part(Part { rank: 0, ranks: 1, worker: process, workers: ranks * workers }))
            };
            own.sort_unstable();
            let here = steps_of(part, steps);
            if own.is_empty() && here > 0 {
                let error = loader().run().unwrap().find_map(Result::err).unwrap();
                prop_assert_eq!(error.kind(), ErrorKind::NotFound);
                continue;
            }
            let whole = batches(loader());
            prop_assert_eq!(whole.len() as u64, here);
            prop_assert!(whole.iter().all(|batch| batch.len() == size));
            let flat = whole.concat();
            for (pass, chunk) in flat.chunks(own.len().max(1)).enumerate() {
                let mut chunk = chunk.to_owned();
                chunk.sort_unstable();
                let len = chunk.len();
                chunk.dedup();
                prop_assert_eq!(len, chunk.len(), "pass {}", pass);
                prop_assert!(chunk.iter().all(|label| own.binary_search(label).is_ok()));
            }
            for label in own {
                prop_assert!(reached.insert(label, process).is_none(), "two processes have it");
            }
            // Broken off twice.
            let first = stops.0 % (whole.len() + 1);
            let second = stops.1 % (whole.len() - first + 1);
            let (mut given, position) = taken(loader(), first);
            let going_on = |position, made: usize| loader().position(Some(position)).steps_made(made as u64);
            let (more, position) = taken(going_on(position, first), second);
            given.extend(more);
            given.extend(batches(going_on(position, first + second)));
            prop_assert_eq!(given, whole);
        }
        if steps >= workers && ranks * workers > 1 {
            let all = counts.iter().sum::<u64>();
            prop_assert_eq!(reached.len() as u64, all);
        }
    }

    #[test]
    fn with_counts_the_row_goes_round_and_the_plan_tells(
        counts in prop::collection::vec(0..20_u64, 1..5),
        steps in 1..30_u64,
        shuffle in prop::option::of(2..30_usize),
    ) {
        let all: u64 = counts.iter().sum();
        prop_assume!(all > 0);
        let data = Data::new(&counts);
        let loader = || {
            let loader = data.loader().counted(Some(data.counted.clone())).batch(4, false).steps_per_epoch(Some(steps));
            let loader = loader.lanes(Some(4), None);
            match shuffle {
                Some(capacity) => loader.shuffle(capacity, 1),
                None => loader,
            }
        };
        let totals = loader().plan().unwrap().order.counted.unwrap();
        let load = loader().run().unwrap();
        let told = |totals: &Totals| totals.odd.is_some();
        prop_assert_eq!((told(&totals), load.order().counted.as_ref().map(told)), (true, Some(false)));
        drop(load);
        let samples = steps * 4;
        prop_assert_eq!((totals.steps, totals.samples), (steps, samples));
        prop_assert_eq!((totals.padded, totals.dropped), (samples.saturating_sub(all), all.saturating_sub(samples)));
        let whole = batches(loader());
        prop_assert_eq!(whole.len() as u64, steps);
        let mut times: BTreeMap<i64, u64> = BTreeMap::new();
        for label in whole.concat() {
            *times.entry(label).or_default() += 1;
        }
        prop_assert_eq!(times.values().sum::<u64>(), samples);
        prop_assert!(times.values().all(|times| (samples / all..=samples.div_ceil(all)).contains(times)));
        let stop = steps / 2;
        let rest = batches(loader().position(Some(Position::Samples(stop * 4))));
        prop_assert_eq!(&rest[..], &whole[usize::try_from(stop).unwrap()..]);
    }
}

/// Shards of ten samples each; the labels that `is_bad` names are none.
fn ten_each(
    folder: &std::path::Path,
    shards: usize,
    is_bad: impl Fn(usize) -> bool,
) -> Vec<String> {
    let write_one = |at: usize| {
        let mut samples = numbered(at * 10..at * 10 + 10);
        for (number, (_, label)) in samples.iter_mut().enumerate() {
            if is_bad(at * 10 + number) {
                *label = "cat".to_owned();
            }
        }
        write(folder, &format!("{at}.tar"), &shard(&samples, 100))
    };
    (0..shards).map(write_one).collect()
}

fn skipping() -> LoadConfig {
    LoadConfig {
        on_error: OnError::Skip,
        ..config(4 * MIB)
    }
}

#[test]
fn what_is_left_out_is_made_up_for_and_the_ledger_tells_of_passes() {
    let folder = tempfile::tempdir().unwrap();
    let urls = ten_each(folder.path(), 4, |number| number % 3 == 0);
    for rank in 0..2 {
        let part = Part {
            rank,
            ranks: 2,
            ..Part::WHOLE
        };
        let loader = onecopy::open(urls.clone(), skipping())
            .decode(None)
            .part(part);
        let mut load = loader
            .batch(4, false)
            .steps_per_epoch(Some(9))
            .run()
            .unwrap();
        let given: Vec<usize> = load.by_ref().map(|batch| batch.unwrap().len).collect();
        assert_eq!(given, [4; 9]);
        // Some 13 of 20 samples are good, and 36 are wanted.
        let report = load.report();
        assert_eq!((report.samples, report.passes), (36, 3));
        assert!(report.to_string().contains("begun 3 times"), "{report}");
    }
    let loader = onecopy::open(urls, skipping()).decode(None);
    let mut load = loader
        .batch(4, false)
        .steps_per_epoch(Some(3))
        .run()
        .unwrap();
    assert_eq!(load.by_ref().count(), 3);
    assert_eq!(load.report().passes, 1);
}

#[test]
fn single_samples_are_steps_too() {
    let folder = tempfile::tempdir().unwrap();
    let urls = ten_each(folder.path(), 2, |_| false);
    let loader = || onecopy::open(urls.clone(), config(4 * MIB)).steps_per_epoch(Some(27));
    assert_eq!(loader().decode(None).run().unwrap().count(), 27);
    let mut load = loader().run_samples().unwrap();
    assert_eq!(load.by_ref().count(), 27);
    assert_eq!(load.report().passes, 2);
}

#[test]
fn data_without_a_good_sample_end_the_load_with_an_error_and_never_go_round_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let urls = ten_each(folder.path(), 3, |_| true);
    let empty = vec![write(folder.path(), "empty.tar", &[]); 3];
    let nothing = vec![write(folder.path(), "nothing.tar", &shard(&[], 1)); 3];
    let text = vec![write(folder.path(), "text.tar", &[b'a'; 2000]); 3];
    let gone = vec![folder.path().join("gone.tar").display().to_string(); 2];
    let all = |urls: &[String]| onecopy::open(urls.to_owned(), skipping()).decode(None);
    for (loader, what) in [
        (all(&urls), "labels that are none"),
        (all(&urls).fields(["npy"]), "no such field"),
        (all(&empty), "no bytes"),
        (all(&nothing), "no samples"),
        (all(&text), "no tar"),
        (all(&gone), "nothing there"),
    ] {
        for size in [1, 4, 100] {
            let loader = loader.clone().batch(size, false).lanes(Some(2), None);
            let mut load = loader.steps_per_epoch(Some(5)).run().unwrap();
            let error = load.next().unwrap().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound, "{what}: {error}");
            assert!(load.next().is_none());
        }
    }
}

#[test]
fn steps_that_cannot_be_are_refused_with_what_to_do() {
    let data = Data::new(&[5, 5]);
    let steps = |steps| data.loader().steps_per_epoch(Some(steps));
    let ranks = |ranks| Part {
        ranks,
        ..Part::WHOLE
    };
    let counted = || steps(1 << 40).counted(Some(data.counted.clone()));
    for (loader, help) in [
        (steps(3).part(ranks(3)), "onecopy index"),
        (steps(0), "steps_per_epoch=1"),
        (
            steps(0).counted(Some(data.counted.clone())),
            "one step at least",
        ),
        (counted().batch(4, false), "fewer steps"),
    ] {
        let error = loader.run().map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        let told = error.help().unwrap_or("");
        assert!(told.contains(help), "{error}: {told}");
    }
}
