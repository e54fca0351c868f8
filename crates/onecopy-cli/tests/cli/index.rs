//! `onecopy index`
#![expect(clippy::unwrap_used, reason = "test helpers")]

use std::path::Path;
use std::process::Stdio;

use onecopy_testkit::tar::TarWriter;

use crate::command::{Ended, World, bare};

fn shard(samples: usize) -> Vec<u8> {
    let mut tar = TarWriter::new();
    for number in 0..samples {
        tar.file(&format!("{number:04}.v1.jpg"), &[7; 900]);
        tar.file(&format!("{number:04}.v2.jpg"), &[7; 900]);
    }
    tar.finish()
}

#[test]
fn tells_what_it_found_and_what_it_read() {
    let world = World::new();
    let shards = world.put_shards(30);
    let ended = world.run(&["index", "s3://data/train/"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let text = ended.text();
    assert!(
        text.starts_with("s3://data/train/index.json: 30 samples in 3 shards ("),
        "{text}"
    );
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(ended.stderr.is_empty(), "{ended:?}");
    let json = world.run(&["index", "s3://data/train/", "--json"]).json();
    assert_eq!(
        (&json["shards"], &json["samples"], &json["reused"]),
        (&3.into(), &30.into(), &3.into())
    );
    assert_eq!(json["index"], "s3://data/train/index.json");
    assert_eq!(json["read_bytes"], 0);
    let bytes: u64 = shards.iter().map(|shard| shard.bytes.len() as u64).sum();
    assert_eq!(json["shard_bytes"], bytes);
    let anew = world
        .run(&["index", "s3://data/train/", "--json", "--force"])
        .json();
    assert_eq!((&anew["reused"], &anew["failed"]), (&0.into(), &0.into()));
    assert!(anew["requests"].as_u64().unwrap() >= 3, "{anew}");
}

#[test]
fn a_rule_for_keys_changes_the_count() {
    let world = World::new();
    world.put("a.tar", shard(5));
    for (rule, samples) in [("first-dot", 5), ("last-dot", 10)] {
        let json = world
            .run(&["index", "s3://data/a.tar", "--json", "--key-rule", rule])
            .json();
        assert_eq!(json["samples"], samples);
    }
}

#[test]
fn a_shard_that_fails_is_told_and_ends_it_with_1() {
    let world = World::new();
    world.put("t/a.tar", shard(5));
    world.put("t/b.tar", "no tar");
    let ended = world.run(&["index", "s3://data/t/"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(
        ended
            .text()
            .contains("was not written: 1 shards failed; 5 samples in 1 others"),
        "{ended:?}"
    );
    assert!(
        ended
            .stderr
            .starts_with("onecopy: could not read the tar from byte 0 of s3://data/t/b.tar: "),
        "{ended:?}"
    );
    assert!(ended.stderr.contains("\nhelp: "), "{ended:?}");
    let ended = world.run(&["index", "s3://data/t/", "--json"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let json = ended.json();
    assert_eq!(json["failures"][0]["shard"], "s3://data/t/b.tar");
    assert_eq!(json["failures"][0]["kind"], "corrupt");
    assert_eq!(json["reused"], 1);
    let ended = world.run(&["index", "s3://data/t/", "--on-error", "skip"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.text().contains("left out: "), "{ended:?}");
}

#[test]
fn what_cannot_run_ends_with_2_and_a_flag_that_helps() {
    let world = World::new();
    world
        .run(&["index", "s3://data/none/"])
        .failed(&["s3://data/none/"]);
    world.put("a.tar", shard(1));
    world.put("index.json", "{}");
    world
        .run(&["index", "s3://data/a.tar"])
        .failed(&["index.json", "--force", "--out"]);
}

/// Every file of an index that is there is whole.
fn check_whole(folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name.ends_with(".idx") {
            let text = std::fs::read_to_string(&path).unwrap();
            assert_eq!(text.lines().count(), 201, "{name}");
            assert!(text.ends_with('\n'), "{name}");
        } else if name.starts_with("index.json") {
            let text = std::fs::read_to_string(&path).unwrap();
            let json: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(json["wids_version"], 1, "{name}");
        }
    }
}

#[test]
fn a_process_that_is_killed_leaves_whole_files_and_the_next_one_finishes() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = shard(200);
    for number in 0..40 {
        std::fs::write(folder.path().join(format!("{number:02}.tar")), &bytes).unwrap();
    }
    let path = folder.path().to_str().unwrap().to_owned() + "/";
    let args = ["index", &path, "--connections", "1", "--quiet"];
    for round in 0..4 {
        let mut child = bare(&args)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Some files later each time, or at its end.
        let wanted = format!("{:02}.idx", round * 9);
        while child.try_wait().unwrap().is_none() && !folder.path().join(&wanted).exists() {
            std::thread::yield_now();
        }
        // Gone already, where it was that fast.
        let _gone = child.kill();
        child.wait().unwrap();
        check_whole(folder.path());
    }
    let ended = Ended::from(bare(&["index", &path, "--json"]).output().unwrap());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.json()["samples"], 40 * 200);
    check_whole(folder.path());
    assert!(!folder.path().join("index.json.part").exists());
    let drafts = std::fs::read_dir(folder.path()).unwrap();
    let drafts = drafts.filter(|entry| {
        entry
            .as_ref()
            .unwrap()
            .file_name()
            .to_string_lossy()
            .starts_with(".onecopy-")
    });
    assert_eq!(drafts.count(), 0);
}
