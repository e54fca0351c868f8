//! Whole loads, divided among ranks and workers, broken off and gone on with.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

mod loads_support;

use loads_support::*;
use onecopy::loader::{Counted, Position};
use onecopy::sample::order::{Part, Tail};
use onecopy::{Error, ErrorKind, Loader};
use proptest::prelude::*;

/// Puts batches of the ranks together, step by step, and sorts each global batch.
fn global(ranks: Vec<Vec<Vec<i64>>>) -> Vec<Vec<i64>> {
    let steps = ranks[0].len();
    assert!(
        ranks.iter().all(|rank| rank.len() == steps),
        "unequal steps"
    );
    let step = |step: usize| {
        let mut batch: Vec<i64> = ranks.iter().flat_map(|rank| rank[step].clone()).collect();
        batch.sort_unstable();
        batch
    };
    (0..steps).map(step).collect()
}

/// An epoch as `ranks` ranks of `workers` workers read it, from `from` samples on.
fn epoch(
    data: &Data,
    change: impl Fn(Loader) -> Loader,
    (ranks, workers, groups): (u64, u64, u64),
    (global_batch, from): (u64, u64),
) -> Vec<Vec<i64>> {
    let rank = |rank: u64| {
        let mut workers: Vec<_> = (0..workers)
            .map(|worker| {
                let part = Part {
                    rank,
                    ranks,
                    worker,
                    workers,
                };
                let size = usize::try_from(global_batch / ranks).unwrap();
                let loader = data.loader().counted(Some(data.counted.clone()));
                let loader = loader.lanes(Some(12 * groups), Some(groups)).part(part);
                let position = (from > 0).then_some(Position::Samples(from));
                batches(change(loader).batch(size, false).position(position)).into_iter()
            })
            .collect();
        // Workers give their batches in turns, from the one whose turn the first step is.
        let first = usize::try_from(from / global_batch).unwrap();
        let mut turns = (0..workers.len()).cycle().skip(first % workers.len());
        let given = std::iter::from_fn(|| workers[turns.next().unwrap()].next()).collect();
        assert!(
            workers.into_iter().flatten().next().is_none(),
            "a worker has more than its turns"
        );
        given
    };
    global((0..ranks).map(rank).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn a_counted_epoch_is_the_same_on_any_number_of_ranks_and_from_any_step(
        counts in prop::collection::vec(prop_oneof![0..4_u64, 0..40_u64], 1..6),
        per_rank in 1..5_u64,
        (ranks, then) in (prop_oneof![Just(1_u64), Just(2), Just(3), Just(4)], prop_oneof![Just(1_u64), Just(2), Just(3)]),
        (workers, workers_then) in (1..4_u64, 1..4_u64),
        shuffle in prop::option::of(2..60_usize),
        is_padding in any::<bool>(),
        stop in 0..100_u64,
        seed in any::<u64>(),
    ) {
        let all: u64 = counts.iter().sum();
        let global_batch = per_rank * 12;
        let tail = if is_padding { Tail::Pad } else { Tail::Drop };
        prop_assume!(all > 0 && (is_padding || all >= global_batch));
        let data = Data::new(&counts);
        let change = |loader: Loader| {
            let loader = loader.tail(Some(tail)).epoch(3);
            match shuffle {
                Some(capacity) => loader.shuffle(capacity, seed),
                None => loader,
            }
        };
        let whole = epoch(&data, change, (1, 1, 2), (global_batch, 0));
        let mut labels: Vec<i64> = whole.concat();
        labels.sort_unstable();
        if is_padding {
            labels.dedup();
            prop_assert_eq!(labels.len() as u64, all);
        } else {
            prop_assert_eq!(labels.len() as u64, all / global_batch * global_batch);
            let len = labels.len();
            labels.dedup();
            prop_assert_eq!(labels.len(), len);
        }
        prop_assert_eq!(&epoch(&data, change, (ranks, workers, 2), (global_batch, 0)), &whole);
        let stop = stop % (whole.len() as u64 + 1);
        let rest = epoch(&data, change, (then, workers_then, 2), (global_batch, stop * global_batch));
        prop_assert_eq!(&rest[..], &whole[usize::try_from(stop).unwrap()..]);
    }

    #[test]
    fn without_counts_a_load_goes_on_behind_what_was_received(
        counts in prop::collection::vec(prop_oneof![0..4_u64, 0..40_u64], 1..7),
        size in 1..9_usize,
        shuffle in prop::option::of(2..60_usize),
        lanes in 1..5_u64,
        stop in 0..60_usize,
        seed in any::<u64>(),
        is_empty_shard_first in any::<bool>(),
    ) {
        let counts = if is_empty_shard_first { [&[1], &counts[..]].concat() } else { counts };
        let data = Data::new(&counts);
        let loader = || {
            let loader = data.loader().epoch(1).batch(size, false).lanes(Some(lanes), None);
            match shuffle {
                Some(capacity) => loader.shuffle(capacity, seed),
                None => loader,
            }
        };
        let whole = batches(loader());
        let mut labels: Vec<i64> = whole.concat();
        labels.sort_unstable();
        let all = i64::try_from(counts.iter().sum::<u64>()).unwrap();
        prop_assert_eq!(labels, (0..all).collect::<Vec<_>>());
        let stop = stop % (whole.len() + 1);
        let mut load = loader().run().unwrap();
        let mut given: Vec<Vec<i64>> = load.by_ref().take(stop).map(|batch| batch.unwrap()).map(|batch| loads_support::labels(&batch)).collect();
        let spots = load.spots().unwrap();
        spots.receive();
        let position = Position::from(spots.now());
        drop(load);
        // And again from there, twice over.
        let mut load = loader().position(Some(position)).run().unwrap();
        given.extend(load.by_ref().take(1).map(|batch| loads_support::labels(&batch.unwrap())));
        let spots = load.spots().unwrap();
        spots.receive();
        let position = Position::from(spots.now());
        given.extend(batches(loader().position(Some(position))));
        prop_assert_eq!(given, whole);
    }
}

fn refused(loader: Loader) -> Error {
    match loader.run() {
        Ok(load) => load
            .filter_map(Result::err)
            .next()
            .unwrap_or_else(|| panic!("nothing is wrong")),
        Err(error) => error,
    }
}

#[test]
fn what_cannot_be_is_refused_before_the_first_byte_with_what_to_do() {
    let data = Data::new(&[5, 1, 0, 7]);
    let ranks = |ranks| Part {
        ranks,
        ..Part::WHOLE
    };
    let counted = || data.loader().counted(Some(data.counted.clone()));
    let drop = Some(Tail::Drop);
    for (loader, help) in [
        (
            data.loader().part(ranks(2)).batch(2, false),
            "onecopy index",
        ),
        (
            data.loader().batch(2, false).tail(Some(Tail::Pad)),
            "onecopy index",
        ),
        (
            counted().part(ranks(3)).batch(2, false).tail(drop),
            "lanes=66",
        ),
        (counted().part(ranks(2)).batch(6, false), "`tail=pad`"),
        (counted().part(ranks(4)).batch(4, true), "`tail=pad`"),
    ] {
        let error = refused(loader);
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert!(
            error.help().unwrap_or("").contains(help),
            "{error}, {:?}",
            error.help()
        );
    }
}

#[test]
fn counts_that_are_not_true_are_an_error_and_never_lost_samples() {
    let data = Data::new(&[5, 6]);
    for (samples, how) in [
        ([5, 5], "more"),
        ([4, 6], "more"),
        ([5, 7], "fewer"),
        ([9, 6], "fewer"),
    ] {
        let counted = Counted {
            samples: Vec::from(samples),
            starts: Vec::new(),
        };
        let error = refused(data.loader().counted(Some(counted)).batch(3, false));
        assert_eq!(error.kind(), ErrorKind::Changed);
        assert!(error.to_string().contains(how), "{error}");
    }
    let mut counted = data.counted.clone();
    counted.starts[1] = Some([0, 1024, 2048, 3072, 4096, 5120, 1 << 20].into());
    let rank = Part {
        rank: 1,
        ranks: 2,
        ..Part::WHOLE
    };
    let loader = data
        .loader()
        .counted(Some(counted))
        .part(rank)
        .lanes(Some(2), None)
        .tail(Some(Tail::Pad));
    let error = refused(loader.batch(1, false));
    assert!(
        matches!(
            error.kind(),
            ErrorKind::Changed | ErrorKind::Corrupt | ErrorKind::Truncated | ErrorKind::NotFound
        ),
        "{error}"
    );
}

#[test]
fn no_byte_before_the_position_is_read_where_samples_are_counted() {
    let data = Data::new(&[400, 400, 400, 400]);
    let loader = || {
        data.loader()
            .counted(Some(data.counted.clone()))
            .batch(40, false)
    };
    let read = |loader: Loader| {
        let mut load = loader.run().unwrap();
        let samples: usize = load.by_ref().map(|batch| batch.unwrap().len).sum();
        (samples, load.report().payload_bytes)
    };
    let (samples, whole) = read(loader());
    assert_eq!(samples, 1600);
    let (samples, half) = read(loader().position(Some(Position::Samples(800))));
    assert_eq!(samples, 800);
    assert!(half * 2 <= whole, "{half} of {whole}");
    let (samples, last) = read(loader().position(Some(Position::Samples(1560))));
    assert_eq!(samples, 40);
    assert!(last < whole / 20, "{last} of {whole}");
    let (samples, none) = read(loader().position(Some(Position::Samples(1600))));
    assert_eq!((samples, none), (0, 0));
}

#[test]
fn a_window_of_few_large_samples_never_takes_all_slabs_of_its_lane() {
    let folder = tempfile::tempdir().unwrap();
    // Samples of 15 members each, from a little below to a little above the quarter of a lane's memory that one may take.
    for len in [85_000, 92_000, 97_000, 99_000, 101_000] {
        let mut tar = onecopy_testkit::tar::TarWriter::new();
        for number in 0..24 {
            tar.file(&format!("{number:05}.cls"), number.to_string().as_bytes());
            for member in 0..14 {
                tar.file(&format!("{number:05}.{member}.bin"), &vec![1; len]);
            }
        }
        let url = write(folder.path(), &format!("{len}.tar"), &tar.finish());
        let loader = onecopy::open([&url, &url], config(16 * MIB));
        let loader = loader.decode(None).fields(["cls"]).lanes(Some(2), None);
        let mut seen = batches(loader.shuffle(1000, 1).batch(4, false)).concat();
        seen.sort_unstable();
        let twice: Vec<i64> = (0..24).flat_map(|number| [number, number]).collect();
        assert_eq!(seen, twice, "{len}");
    }
}

#[test]
fn where_samples_are_counted_no_window_depends_on_memory() {
    let data = Data::new(&[300, 300]);
    let order = |memory: usize| {
        let loader = onecopy::open(data.urls.clone(), config(memory));
        let loader = loader.decode(None).fields(["cls"]).lanes(Some(4), None);
        let loader = loader.counted(Some(data.counted.clone())).shuffle(560, 7);
        let mut load = loader.batch(10, false).run().unwrap();
        let order: Vec<Vec<i64>> = load.by_ref().map(|batch| labels(&batch.unwrap())).collect();
        let notes = load.report().notes;
        (
            order,
            notes
                .iter()
                .any(|note| note.contains("copied out of the way")),
        )
    };
    let (much, is_copied) = order(64 * MIB);
    assert!(!is_copied);
    let (little, is_copied) = order(2 * MIB);
    assert!(is_copied);
    assert_eq!(much, little);
}
