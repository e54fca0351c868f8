//! Samples of another form than the rest of their batch: an error, or left out, and never the good ones in their place.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

mod loads_support;

use std::collections::BTreeSet;

use loads_support::*;
use onecopy::batch::Batch;
use onecopy::config::{LoadConfig, OnError};
use onecopy::ledger::Report;
use onecopy::{ErrorKind, Loader};
use onecopy_testkit::tar::TarWriter;

/// An array of `descr` with one axis of `len` elements of four bytes.
fn npy(descr: &str, len: usize) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({len},), }}\n");
    let mut bytes = Vec::from(*b"\x93NUMPY\x01\x00");
    bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    bytes.extend(header.bytes());
    bytes.resize(bytes.len() + 4 * len, 0);
    bytes
}

/// One sample for each letter, labelled by its place: `a`, `b`, .. have arrays of 1, 2, .. times `len` floats, `A`, `B`, ..
/// whole numbers of the same shapes, and `+` is `a` with a field more.
fn shard_of(forms: &str, len: usize) -> Vec<u8> {
    let mut tar = TarWriter::new();
    for (place, form) in forms.bytes().enumerate() {
        let (descr, times) = match form {
            b'+' => ("<f4", 1),
            b'A'..=b'Z' => ("<i4", form - b'A' + 1),
            _ => ("<f4", form - b'a' + 1),
        };
        tar.file(&format!("{place:05}.cls"), place.to_string().as_bytes());
        tar.file(
            &format!("{place:05}.npy"),
            &npy(descr, usize::from(times) * len),
        );
        if form == b'+' {
            tar.file(&format!("{place:05}.txt"), b"more");
        }
    }
    tar.finish()
}

fn loader(folder: &tempfile::TempDir, bytes: &[u8], memory: usize, on_error: OnError) -> Loader {
    let url = write(folder.path(), "a.tar", bytes);
    let config = LoadConfig {
        on_error,
        ..config(memory)
    };
    onecopy::open([url], config).decode(None)
}

fn run(loader: Loader) -> (Vec<Vec<i64>>, Report) {
    let mut load = loader.run().unwrap();
    let batches: Vec<Batch> = load.by_ref().map(|batch| batch.unwrap()).collect();
    (batches.iter().map(labels).collect(), load.report())
}

#[test]
fn the_odd_sample_is_the_one_that_is_left_out() {
    let cases: &[(&str, &str, usize, &[&[i64]])] = &[
        ("first, by shape", "baaaaa", 3, &[&[1, 2, 3], &[4, 5]]),
        ("first, by fields", "+aaaaa", 3, &[&[1, 2, 3], &[4, 5]]),
        (
            "first, by fields it lacks",
            "a+++++",
            3,
            &[&[1, 2, 3], &[4, 5]],
        ),
        ("first, by dtype", "Aaaaaa", 3, &[&[1, 2, 3], &[4, 5]]),
        ("second", "abaaaa", 3, &[&[0, 2, 3], &[4, 5]]),
        ("two of two kinds first", "bAaaaa", 3, &[&[2, 3, 4], &[5]]),
        (
            "in the middle, by shape",
            "aabaaaa",
            3,
            &[&[0, 1, 3], &[4, 5, 6]],
        ),
        (
            "in the middle, by fields",
            "aa+aaaa",
            3,
            &[&[0, 1, 3], &[4, 5, 6]],
        ),
        (
            "in the middle, by dtype",
            "aaAaaaa",
            3,
            &[&[0, 1, 3], &[4, 5, 6]],
        ),
        (
            "first of a later block",
            "aaabaaa",
            3,
            &[&[0, 1, 2], &[4, 5, 6]],
        ),
        (
            "first of a later block, by fields",
            "aaa+aaa",
            3,
            &[&[0, 1, 2], &[4, 5, 6]],
        ),
        ("first of the last block", "aaaba", 3, &[&[0, 1, 2], &[4]]),
        ("alone in the last block", "aaab", 3, &[&[0, 1, 2]]),
        (
            "at the end of the last block",
            "aaaab",
            3,
            &[&[0, 1, 2], &[3]],
        ),
        ("alone at all", "b", 3, &[&[0]]),
        ("one of two", "ab", 3, &[&[0]]),
        (
            "more than are held, in a row",
            "bcdefghijkaaa",
            3,
            &[&[10, 11, 12]],
        ),
        ("every other one", "abababab", 2, &[&[0, 2], &[4, 6]]),
        (
            "none, by a change at a border",
            "aaabbb",
            3,
            &[&[0, 1, 2], &[3, 4, 5]],
        ),
        (
            "none, by new fields at a border",
            "aaa+++",
            3,
            &[&[0, 1, 2], &[3, 4, 5]],
        ),
        (
            "what is left of a block of the old shape",
            "aaaabbbbbb",
            3,
            &[&[0, 1, 2], &[3], &[6, 7, 8], &[9]],
        ),
        (
            "what is left of a block of the old fields",
            "aaaa++++++",
            3,
            &[&[0, 1, 2], &[3], &[6, 7, 8], &[9]],
        ),
        (
            "none, in batches of one",
            "abA+a",
            1,
            &[&[0], &[1], &[2], &[3], &[4]],
        ),
    ];
    for &(name, forms, size, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        for on_error in [OnError::Skip, OnError::Warn] {
            let loader = loader(&folder, &shard_of(forms, 1), 4 * MIB, on_error);
            let (batches, report) = run(loader.batch(size, false));
            assert_eq!(batches, expected, "{name}");
            let left_out = forms.len() - expected.iter().map(|batch| batch.len()).sum::<usize>();
            assert_eq!(report.skipped.samples, left_out as u64, "{name}");
        }
    }
}

#[test]
fn samples_that_wait_are_counted_as_copied_and_others_are_not() {
    let folder = tempfile::tempdir().unwrap();
    for (forms, on_error, waiting) in [
        ("aaaaaaa", OnError::Raise, 0),
        // The first sample of all waits for the second one.
        ("aaaaaaa", OnError::Skip, 1),
        ("baaaaaa", OnError::Skip, 2),
        ("aaabaaa", OnError::Skip, 2),
    ] {
        let loader = loader(&folder, &shard_of(forms, 1), 4 * MIB, on_error);
        let (_, report) = run(loader.batch(3, false));
        let held = report.hops.iter().find(|hop| hop.hop == "hold");
        // Two fields a sample.
        assert_eq!(held.map_or(0, |hop| hop.calls), 2 * waiting, "{forms}");
    }
}

#[test]
fn where_samples_must_be_equal_the_first_of_a_block_is_the_measure() {
    for (forms, odd, kind) in [
        ("baaa", "00001", ErrorKind::InvalidInput),
        ("Aaaa", "00001", ErrorKind::InvalidInput),
        ("+aaa", "00001", ErrorKind::NotFound),
        ("aaba", "00002", ErrorKind::InvalidInput),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let loader = loader(&folder, &shard_of(forms, 1), 4 * MIB, OnError::Raise);
        let mut load = loader.batch(3, false).run().unwrap();
        let error = load.next().unwrap().unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        let text = error.to_string();
        assert!(text.contains(odd) && text.contains("a.tar"), "{text}");
    }
}

#[test]
fn odd_samples_that_wait_starve_nothing_in_the_smallest_memory() {
    // A pool of 1.5 MB, of which a sample may take a quarter; these have 40 KB to a megabyte.
    let forms = format!(
        "{}{}",
        "bcdefghijklmnopqrstuvwxyz".repeat(2),
        "a".repeat(200)
    );
    let folder = tempfile::tempdir().unwrap();
    let bytes = shard_of(&forms, 10_000);
    for capacity in [0, 1000] {
        let loader = loader(&folder, &bytes, 2_000_000, OnError::Skip);
        let (batches, report) = run(loader.shuffle(capacity, 1).batch(7, false));
        let came: BTreeSet<i64> = batches.into_iter().flatten().collect();
        assert_eq!(
            came.len() as u64 + report.skipped.samples,
            250,
            "{capacity}"
        );
        assert!(came.len() >= 190, "{capacity}: {}", came.len());
    }
    // No two are alike: the first that still waits at the end is all that comes.
    let loader = loader(
        &folder,
        &shard_of("bcdefgh", 10_000),
        2_000_000,
        OnError::Skip,
    );
    let (batches, report) = run(loader.batch(7, false));
    assert_eq!((batches.len(), report.skipped.samples), (1, 6));
}

#[test]
fn what_is_left_out_follows_from_the_order_of_samples_alone() {
    let folder = tempfile::tempdir().unwrap();
    let forms: String = (0..400)
        .map(|place| match place {
            0 | 200 => 'b',
            100 => 'A',
            300 => '+',
            _ => 'a',
        })
        .collect();
    let bytes = shard_of(&forms, 1);
    let good: BTreeSet<i64> = (0..400).filter(|place| place % 100 != 0).collect();
    for seed in 0..8 {
        let once = || {
            let loader = loader(&folder, &bytes, 4 * MIB, OnError::Skip);
            run(loader.shuffle(50, seed).batch(16, false))
        };
        let (batches, report) = once();
        assert_eq!(batches, once().0);
        assert_eq!(report.skipped.samples, 4);
        assert_eq!(batches.into_iter().flatten().collect::<BTreeSet<_>>(), good);
    }
}
