//! Whole loads: what comes first, what fits, what is left out, and how it ends.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use onecopy::batch::{Batch, Column};
use onecopy::config::{LoadConfig, OnError};
use onecopy::pipeline::Next;
use onecopy::sync::{Arc, spawn};
use onecopy::{ErrorKind, Loader};
use onecopy_testkit::tar::TarWriter;

const MIB: usize = 1 << 20;

/// A tar of `samples`, each with a label and `len` bytes.
fn shard(samples: &[(String, String)], len: usize) -> Vec<u8> {
    let mut tar = TarWriter::new();
    for (key, label) in samples {
        tar.file(&format!("{key}.cls"), label.as_bytes());
        tar.file(&format!("{key}.bin"), &vec![7; len]);
    }
    tar.finish()
}

fn numbered(range: std::ops::Range<usize>) -> Vec<(String, String)> {
    range
        .map(|number| (format!("{number:05}"), number.to_string()))
        .collect()
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> String {
    let path = folder.join(name);
    fs::write(&path, bytes).unwrap();
    path.display().to_string()
}

fn config(memory: usize) -> LoadConfig {
    LoadConfig {
        memory_bytes: Some(memory),
        decode_threads: Some(2),
        ..LoadConfig::default()
    }
}

fn labels(batch: &Batch) -> Vec<i64> {
    let Some(Column::Tensor(tensor)) = batch.column("cls") else {
        panic!("no labels")
    };
    let words = tensor.bytes.chunks_exact(8);
    words
        .map(|word| i64::from_ne_bytes(word.try_into().unwrap()))
        .collect()
}

fn all(loader: Loader) -> Vec<Batch> {
    loader.run().unwrap().map(|batch| batch.unwrap()).collect()
}

/// Serves `bytes` over HTTP by ranges; requests from byte `silent_from` on are never answered.
fn serve(bytes: Vec<u8>, silent_from: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/a.tar", listener.local_addr().unwrap());
    let bytes = Arc::new(bytes);
    spawn("test-server", move || {
        for stream in listener.incoming() {
            let (stream, bytes) = (stream.unwrap(), Arc::clone(&bytes));
            spawn("test-connection", move || {
                answer(&stream, &bytes, silent_from)
            })
            .unwrap();
        }
    })
    .unwrap();
    url
}

fn answer(mut stream: &TcpStream, bytes: &[u8], silent_from: usize) {
    let mut lines = BufReader::new(stream).lines();
    loop {
        let mut range = None;
        let mut is_head = false;
        loop {
            let Some(Ok(line)) = lines.next() else { return };
            is_head |= line.starts_with("HEAD ");
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("range: bytes=") {
                let (from, to) = value.split_once('-').unwrap();
                range = Some((
                    from.parse::<usize>().unwrap(),
                    to.parse::<usize>().unwrap() + 1,
                ));
            }
        }
        if is_head {
            // As for a URL that is signed for GET alone.
            let refusal = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
            if stream.write_all(refusal).is_err() {
                return;
            }
            continue;
        }
        let (from, to) = range.unwrap_or((0, bytes.len()));
        if from >= silent_from {
            continue;
        }
        let to = to.min(bytes.len());
        let status = if range.is_some() {
            "206 Partial Content"
        } else {
            "200 OK"
        };
        let part = match range {
            Some(_) => format!("Content-Range: bytes {from}-{}/{}\r\n", to - 1, bytes.len()),
            None => String::new(),
        };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Length: {}\r\nETag: \"1\"\r\n{part}\r\n",
            to - from
        );
        if stream
            .write_all(head.as_bytes())
            .and_then(|()| stream.write_all(&bytes[from..to]))
            .is_err()
        {
            return;
        }
    }
}

#[test]
fn the_first_batch_needs_no_more_than_the_first_two_ranges() {
    // 64 samples of 16 KiB are 1 MiB and a bit: two ranges of 1 MiB. The shard has 16.
    let bytes = shard(&numbered(0..1000), 15_000);
    let url = serve(bytes, 2 * MIB);
    let config = LoadConfig {
        range_bytes: MIB,
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
                    range_bytes,
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
            let batches = all(loader.shuffle(10, 3).part(index, 8).batch(4, false));
            batches.iter().flat_map(labels).collect::<Vec<i64>>()
        })
        .collect();
    seen.sort_unstable();
    assert_eq!(seen, [0, 1, 2, 3, 4]);
}

#[test]
fn dropping_a_load_that_waits_for_a_silent_server_ends_it() {
    let url = serve(shard(&numbered(0..1000), 15_000), 0);
    let config = LoadConfig {
        range_bytes: MIB,
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
