//! Whole loads: what comes first, what fits, and how it ends.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

mod loads_support;

use std::time::Duration;

use loads_support::*;
use onecopy::ErrorKind;
use onecopy::batch::Column;
use onecopy::config::LoadConfig;
use onecopy::pipeline::Next;
use onecopy_testkit::tar::TarWriter;

#[test]
fn the_first_batch_needs_no_more_than_the_first_two_ranges() {
    // 64 samples of 16 KiB are 1 MiB and a bit: two ranges of 1 MiB. The shard has 16.
    let bytes = shard(&numbered(0..1000), 15_000);
    let url = serve(bytes, 2 * MIB);
    let config = LoadConfig {
        range_bytes: Some(MIB),
        ..config(64 * MIB)
    };
    let mut load = onecopy::open([url], config)
        .decode(None)
        .batch(64, false)
        .run()
        .unwrap();
    let first = load.next().unwrap().unwrap();
    assert_eq!(labels(&first), (0..64).collect::<Vec<i64>>());
}

#[test]
fn a_batch_larger_than_all_memory_is_slow_and_not_impossible() {
    let folder = tempfile::tempdir().unwrap();
    let url = write(folder.path(), "a.tar", &shard(&numbered(0..300), 100_000));
    let batches = all(onecopy::open([url], config(4 * MIB))
        .decode(None)
        .batch(256, false));
    assert_eq!(
        batches.iter().map(|batch| batch.len).collect::<Vec<_>>(),
        [256, 44]
    );
}

#[test]
fn batches_that_are_all_kept_stall_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let url = write(folder.path(), "a.tar", &shard(&numbered(0..500), 50_000));
    let batches = all(onecopy::open([url], config(4 * MIB))
        .decode(None)
        .batch(8, false));
    let kept: Vec<i64> = batches.iter().flat_map(labels).collect();
    assert_eq!(kept, (0..500).collect::<Vec<i64>>());
}

#[test]
fn a_sample_that_no_memory_can_hold_is_refused_with_the_cure() {
    let folder = tempfile::tempdir().unwrap();
    let url = write(folder.path(), "a.tar", &shard(&numbered(0..2), 6 * MIB));
    let error = onecopy::open([url], config(4 * MIB))
        .batch(1, false)
        .run()
        .unwrap();
    let error = error
        .map(|batch| batch.err())
        .find_map(|error| error)
        .unwrap();
    assert_eq!(error.kind(), ErrorKind::LimitReached);
    assert!(error.help().unwrap().contains("memory"), "{error:?}");
}

#[test]
fn a_sample_of_many_members_that_no_memory_can_hold_is_refused_and_never_hangs() {
    let folder = tempfile::tempdir().unwrap();
    let mut tar = TarWriter::new();
    for part in 0..40 {
        tar.file(&format!("a.part{part}.bin"), &vec![1; MIB]);
    }
    let bytes = tar.finish();
    let url = write(folder.path(), "a.tar", &bytes);
    let mut load = onecopy::open([url], config(8 * MIB))
        .batch(1, false)
        .run()
        .unwrap();
    let error = load.next().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitReached, "{error:?}");
}

#[test]
fn a_sample_of_thousands_of_tiny_members_is_refused_before_it_fills_the_pool() {
    let folder = tempfile::tempdir().unwrap();
    let mut tar = TarWriter::new();
    for part in 0..20_000 {
        tar.file(&format!("a.part{part}.bin"), &[1]);
    }
    let url = write(folder.path(), "a.tar", &tar.finish());
    let mut load = onecopy::open([url], config(16 * MIB))
        .batch(1, false)
        .run()
        .unwrap();
    let error = load.next().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitReached, "{error:?}");
}

#[test]
fn samples_of_a_hundred_thousand_fields_are_batched_whatever_the_order_of_their_fields() {
    const FIELDS: usize = 100_000;
    let folder = tempfile::tempdir().unwrap();
    let mut tar = TarWriter::new();
    for part in 0..FIELDS {
        tar.file(&format!("a.part{part}"), part.to_string().as_bytes());
    }
    for part in (0..FIELDS).rev() {
        tar.file(&format!("b.part{part}"), part.to_string().as_bytes());
    }
    let url = write(folder.path(), "a.tar", &tar.finish());
    // A sample of 100 MB, counting its headers, is a quarter of the pool at most.
    let batches = all(onecopy::open([url], config(600 * MIB)).batch(2, false));
    assert_eq!(batches.len(), 1);
    assert_eq!((batches[0].len, batches[0].columns.len()), (2, FIELDS));
    for (name, column) in &batches[0].columns {
        let Column::Bytes(values) = column else {
            panic!("{name} is no bytes")
        };
        let number = name.strip_prefix("part").unwrap();
        assert!(values.iter().all(|value| &**value == number.as_bytes()));
    }
}

#[test]
fn small_objects_of_unknown_length_share_slabs() {
    let bytes = shard(&numbered(0..3), 1000);
    let urls: Vec<String> = (0..50).map(|_| serve(bytes.clone(), usize::MAX)).collect();
    let loader = onecopy::open(urls, config(16 * MIB)).decode(None);
    let batches = all(loader.shuffle(1000, 1).batch(10, false));
    assert_eq!(batches.iter().map(|batch| batch.len).sum::<usize>(), 150);
}

#[test]
fn no_signature_gets_into_the_ledger() {
    let url = serve(shard(&numbered(0..3), 10), usize::MAX);
    let signed = format!("{url}?X-Amz-Signature=secret");
    let mut load = onecopy::open([signed], config(16 * MIB))
        .batch(1, false)
        .run()
        .unwrap();
    assert_eq!(load.by_ref().filter(|batch| batch.is_ok()).count(), 3);
    let report = load.report();
    assert_eq!(report.urls, url);
    assert!(!report.to_json().contains("secret"));
}

#[tokio::test]
async fn a_thread_that_runs_tasks_is_told_to_use_another() {
    let error = onecopy::open(["/nowhere.tar"], config(16 * MIB))
        .run()
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

#[test]
fn a_load_that_ends_early_counts_copies_over_what_arrived() {
    let folder = tempfile::tempdir().unwrap();
    let url = write(folder.path(), "a.tar", &shard(&numbered(0..400), 100_000));
    let mut load = onecopy::open([url], config(64 * MIB))
        .decode(None)
        .batch(4, false)
        .run()
        .unwrap();
    assert!(load.next().unwrap().is_ok());
    let copies = load.report().copies_per_byte;
    assert!((copies.cpu - copies.user - 1.0).abs() < 0.01, "{copies:?}");
}

#[test]
fn a_limit_is_exact_and_an_end_like_any_other() {
    let folder = tempfile::tempdir().unwrap();
    let urls: Vec<String> = (0..3)
        .map(|at| {
            let samples = numbered(at * 10..(at + 1) * 10);
            write(folder.path(), &format!("{at}.tar"), &shard(&samples, 100))
        })
        .collect();
    let open = || onecopy::open(&urls, config(16 * MIB)).decode(None);
    for (limit, is_dropping_last, lens) in [
        (0, false, &[][..]),
        (1, false, &[1]),
        (8, false, &[8]),
        (13, false, &[8, 5]),
        (13, true, &[8]),
        (29, false, &[8, 8, 8, 5]),
        (30, false, &[8, 8, 8, 6]),
        (31, false, &[8, 8, 8, 6]),
    ] {
        let batches = all(open().batch(8, is_dropping_last).limit(limit));
        let found: Vec<usize> = batches.iter().map(|batch| batch.len).collect();
        assert_eq!(found, lens, "{limit}");
        let shuffled = all(open().shuffle(4, 1).batch(8, is_dropping_last).limit(limit));
        let found: Vec<usize> = shuffled.iter().map(|batch| batch.len).collect();
        assert_eq!(found, lens, "{limit}");
        let mut samples = open().limit(limit).run_samples().unwrap();
        let count = samples.by_ref().map(Result::unwrap).count() as u64;
        assert_eq!(count, limit.min(30));
        assert_eq!(samples.report().samples, count);
    }
}

#[test]
fn dropping_a_load_that_waits_for_a_silent_server_ends_it() {
    let url = serve(shard(&numbered(0..1000), 15_000), 0);
    let config = LoadConfig {
        range_bytes: Some(MIB),
        ..config(64 * MIB)
    };
    let mut load = onecopy::open([url], config)
        .decode(None)
        .batch(64, false)
        .run()
        .unwrap();
    let next = load.next_within(Duration::from_millis(1)).unwrap();
    assert!(matches!(next, Next::NotYet));
    drop(load);
}
