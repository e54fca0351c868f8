//! `onecopy demo`
#![expect(clippy::unwrap_used, reason = "test helpers")]

use crate::command::{Ended, bare};

fn demo(args: &[&str]) -> Ended {
    let args = [&["demo", "--samples", "24", "--memory", "64MiB"], args].concat();
    Ended::from(bare(&args).output().unwrap())
}

#[test]
fn every_sample_is_verified_and_no_byte_is_copied_in_user_space() {
    let ended = demo(&["--batch", "5"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let text = ended.text();
    assert!(
        text.ends_with("\nverified: 24 of 24 samples, byte for byte\n"),
        "{text}"
    );
    assert!(text.contains("of them in user space 0.0"), "{text}");
    assert!(ended.stderr.is_empty(), "{ended:?}");
}

#[test]
fn json_is_the_ledger_of_the_batches() {
    let ledger = demo(&["--json", "--batch", "5"]).json();
    assert_eq!(
        (&ledger["verified"], &ledger["samples"]),
        (&24.into(), &24.into())
    );
    assert_eq!(ledger["batches"], 5);
    assert_eq!(ledger["route"], "stream");
    assert!(ledger["copies_per_byte"]["user"].as_f64().unwrap() < 0.02);
    let hops = ledger["hops"].as_array().unwrap();
    assert!(hops.iter().any(|hop| hop["hop"] == "recv"), "{ledger}");
}

#[test]
fn settings_of_the_environment_do_not_reach_it() {
    let output = bare(&["demo", "--samples", "3"])
        .env("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
        .env("AWS_PROFILE", "missing")
        .env("AWS_ACCESS_KEY_ID", "wrong")
        .output()
        .unwrap();
    assert_eq!(Ended::from(output).code, Some(0));
}

#[test]
fn keeps_the_shards_where_asked() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("kept");
    let ended = demo(&["--keep", kept.to_str().unwrap()]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let shard = std::fs::metadata(kept.join("train-00000.tar")).unwrap();
    assert!(shard.len() > 2_000_000);
}
