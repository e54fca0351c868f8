//! `onecopy cat`

use std::io::Read;
use std::process::Stdio;

use crate::command::{Ended, World, bare};

/// Bytes that differ at every place, in no encoding.
fn noise(len: usize) -> Vec<u8> {
    (0..len as u64)
        .map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()[0])
        .collect()
}

#[test]
fn writes_objects_in_order_byte_for_byte() {
    let world = World::new();
    let (big, small) = (noise(5_000_011), noise(77));
    world.put("big", big.clone());
    world.put("none", "");
    world.put("small", small.clone());
    let urls = [
        "s3://data/small",
        "s3://data/none",
        "s3://data/big",
        "s3://data/small",
    ];
    let ended = world.run(&[&["cat", "--range", "1MiB", "--memory", "16MiB"], &urls[..]].concat());
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout == [&small[..], &big, &small].concat());
    assert!(ended.stderr.is_empty(), "{}", ended.stderr);
}

#[test]
fn reads_files_and_globs() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("b"), "world\n").unwrap();
    std::fs::write(folder.path().join("a"), "hello ").unwrap();
    let glob = format!("{}/*", folder.path().display());
    let ended = Ended::from(bare(&["cat", &glob]).output().unwrap());
    assert_eq!(ended.text(), "hello world\n");
}

#[test]
fn json_goes_to_stderr_because_stdout_has_the_bytes() {
    let world = World::new();
    world.put("a", "12345");
    let ended = world.run(&["cat", "--json", "s3://data/a"]);
    assert_eq!(ended.text(), "12345");
    let ledger: serde_json::Value = serde_json::from_str(&ended.stderr).unwrap();
    assert_eq!(
        (&ledger["schema"], &ledger["payload_bytes"]),
        (&1.into(), &5.into())
    );
}

#[test]
fn a_missing_object_is_told_by_its_url() {
    let world = World::new();
    world
        .run(&["cat", "s3://data/no/such.tar"])
        .failed(&["s3://data/no/such.tar"]);
}

#[test]
fn a_reader_that_goes_away_is_a_quiet_end() {
    let world = World::new();
    world.put("big", noise(8_000_000));
    let mut child = world
        .command(&["cat", "--range", "1MiB", "s3://data/big"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let ended = Ended::from(child.wait_with_output().unwrap());
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(141), ""));
    assert_eq!(first[..], noise(10));
}
