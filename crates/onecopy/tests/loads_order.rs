//! Whole loads: which samples come, in which order, and what is left out.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

mod loads_support;

use std::collections::BTreeSet;

use loads_support::*;
use onecopy::batch::Batch;
use onecopy::config::{LoadConfig, OnError};
use onecopy::sample::order::Part;

#[test]
fn no_memory_is_too_odd_and_no_shuffle_too_wide_to_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let urls: Vec<String> = (0..3)
        .map(|part| {
            let bytes = shard(&numbered(part * 130..part * 130 + 130), 100_000);
            write(folder.path(), &format!("{part}.tar"), &bytes)
        })
        .collect();
    for memory in [2_000_000, 10_000_000, 16_000_000, 16 * MIB, 20_000_000] {
        for range_bytes in [8 * MIB, 1 << 30, 100_001] {
            for capacity in [0, 1000] {
                let config = LoadConfig {
                    range_bytes: Some(range_bytes),
                    ..config(memory)
                };
                let loader = onecopy::open(urls.clone(), config).decode(None);
                let batches = all(loader.shuffle(capacity, 1).batch(7, false));
                let mut seen: Vec<i64> = batches.iter().flat_map(labels).collect();
                seen.sort_unstable();
                assert_eq!(
                    seen,
                    (0..390).collect::<Vec<i64>>(),
                    "{memory} {range_bytes}"
                );
            }
        }
    }
}

#[test]
fn samples_that_fail_are_counted_and_the_rest_comes_once_in_full_batches() {
    let folder = tempfile::tempdir().unwrap();
    let mut samples = numbered(0..1000);
    for (number, (_, label)) in samples.iter_mut().enumerate() {
        if number % 7 == 3 {
            *label = "cat".to_owned();
        }
    }
    let url = write(folder.path(), "a.tar", &shard(&samples, 100));
    let config = LoadConfig {
        on_error: OnError::Skip,
        ..config(4 * MIB)
    };
    let mut load = onecopy::open([url], config)
        .decode(None)
        .fields(["cls"])
        .batch(16, false)
        .run()
        .unwrap();
    let batches: Vec<Batch> = load.by_ref().map(|batch| batch.unwrap()).collect();
    let good: Vec<i64> = (0..1000).filter(|number| number % 7 != 3).collect();
    assert_eq!(batches.iter().flat_map(labels).collect::<Vec<_>>(), good);
    assert!(
        batches[..batches.len() - 1]
            .iter()
            .all(|batch| batch.len == 16)
    );
    let report = load.report();
    assert_eq!(
        (report.samples, report.skipped.samples),
        (good.len() as u64, 143)
    );
}

#[test]
fn the_first_failure_ends_the_load_after_the_batches_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut samples = numbered(0..100);
    samples[50].1 = "cat".to_owned();
    let url = write(folder.path(), "a.tar", &shard(&samples, 10));
    let mut load = onecopy::open([url], config(4 * MIB))
        .decode(None)
        .batch(20, false)
        .run()
        .unwrap();
    assert_eq!(
        load.by_ref().take(2).filter(|batch| batch.is_ok()).count(),
        2
    );
    let error = load.next().unwrap().unwrap_err();
    assert!(
        error.to_string().contains("00050") && error.to_string().contains("cls"),
        "{error}"
    );
    assert!(load.next().is_none());
}

#[test]
fn a_shuffle_gives_each_sample_once_in_an_order_of_seed_and_epoch() {
    let folder = tempfile::tempdir().unwrap();
    let urls: Vec<String> = (0..5)
        .map(|part| {
            let bytes = shard(&numbered(part * 100..part * 100 + 100), 10_000);
            write(folder.path(), &format!("{part}.tar"), &bytes)
        })
        .collect();
    let order = |seed, epoch| {
        let loader = onecopy::open(urls.clone(), config(4 * MIB)).decode(None);
        let batches = all(loader.shuffle(10_000, seed).epoch(epoch).batch(32, false));
        batches.iter().flat_map(labels).collect::<Vec<i64>>()
    };
    let first = order(1, 0);
    assert_eq!(first, order(1, 0));
    assert_ne!(first, order(1, 1));
    assert_ne!(first, order(2, 0));
    assert_eq!(first.iter().collect::<BTreeSet<_>>().len(), 500);
    assert_eq!(first.len(), 500);
}

#[test]
fn a_shuffle_that_memory_limits_still_shuffles_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let url = write(folder.path(), "a.tar", &shard(&numbered(0..4000), 10_000));
    let loader = onecopy::open([url], config(16 * MIB))
        .decode(None)
        .shuffle(100_000, 1);
    let mut load = loader.batch(100, false).run().unwrap();
    let order: Vec<i64> = load
        .by_ref()
        .flat_map(|batch| labels(&batch.unwrap()))
        .collect();
    let neighbours = order
        .windows(2)
        .filter(|pair| pair[1] == pair[0] + 1)
        .count();
    assert!(
        neighbours < order.len() / 20,
        "{neighbours} of {} stand as in the shard",
        order.len()
    );
    assert!(
        load.report()
            .notes
            .iter()
            .any(|note| note.contains("the shuffle chose from"))
    );
}

#[test]
fn parts_of_all_indexes_are_the_whole_each_shard_once() {
    let folder = tempfile::tempdir().unwrap();
    let urls: Vec<String> = (0..5)
        .map(|part| {
            write(
                folder.path(),
                &format!("{part}.tar"),
                &shard(&numbered(part..part + 1), 9),
            )
        })
        .collect();
    let mut seen: Vec<i64> = (0..8)
        .flat_map(|index| {
            let loader = onecopy::open(urls.clone(), config(4 * MIB)).decode(None);
            let part = Part {
                worker: index,
                workers: 8,
                ..Part::WHOLE
            };
            let batches = all(loader.shuffle(10, 3).part(part).batch(4, false));
            batches.iter().flat_map(labels).collect::<Vec<i64>>()
        })
        .collect();
    seen.sort_unstable();
    assert_eq!(seen, [0, 1, 2, 3, 4]);
}
