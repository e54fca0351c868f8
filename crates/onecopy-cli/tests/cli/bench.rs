//! `onecopy bench`

use crate::command::World;

const SHARDS: &str = "s3://data/train/train-{00000..00002}.tar";

#[test]
fn each_stage_gives_its_ledger() {
    let world = World::new();
    let shards = world.put_shards(60);
    let bytes: usize = shards.iter().map(|shard| shard.bytes.len()).sum();
    for (stage, samples, batches) in [
        ("buffer", 0, 0),
        ("sample", 60, 0),
        ("batch", 60, 8),
        ("device", 60, 8),
    ] {
        let args = [
            "bench", SHARDS, "--to", stage, "--batch", "8", "--size", "32", "--json",
        ];
        let ended = world.run(&args);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let ledger = ended.json();
        assert_eq!(ledger["stage"], stage);
        assert_eq!(ledger["payload_bytes"], bytes, "{stage}");
        assert_eq!(ledger["samples"], samples, "{stage}");
        assert_eq!(ledger["batches"], batches, "{stage}");
        assert_eq!(ledger["runs"].as_array().unwrap().len(), 1);
        assert!(ended.stderr.is_empty(), "{ended:?}");
    }
}

#[test]
fn the_map_is_shown_as_text() {
    let world = World::new();
    world.put_shards(6);
    let ended = world.run(&["bench", SHARDS, "--raw", "--batch", "2", "--repeat", "3"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for text in [
        "route stream to cpu",
        "recv",
        "copies per byte",
        "runs (GB/s)",
        "median",
    ] {
        assert!(ended.text().contains(text), "{ended:?}");
    }
}

#[test]
fn stops_after_as_many_samples_as_asked() {
    let world = World::new();
    world.put_shards(60);
    for stage in ["sample", "batch"] {
        let args = [
            "bench",
            SHARDS,
            "--to",
            stage,
            "--limit-samples",
            "10",
            "--batch",
            "5",
        ];
        let ledger = world.run(&[&args[..], &["--json"]].concat()).json();
        assert_eq!(ledger["samples"], 10, "{stage}");
    }
}

#[test]
fn stages_are_compared_and_one_is_the_bound() {
    let world = World::new();
    world.put_shards(60);
    for more in [&[][..], &["--limit-samples", "40"]] {
        let args = ["bench", SHARDS, "--stages", "--size", "32", "--batch", "8"];
        let args = [&args, more].concat();
        let json = world.run(&[&args[..], &["--json"]].concat()).json();
        let stages = json["stages"].as_array().unwrap();
        let names: Vec<_> = stages.iter().map(|stage| &stage["stage"]).collect();
        assert_eq!(names, ["buffer", "sample", "batch"]);
        for stage in stages {
            assert!(stage["gb_per_second"].as_f64().unwrap() > 0.0, "{stage}");
            assert!(stage["added_seconds_per_gb"].is_f64(), "{stage}");
        }
        assert!(
            json["bound"]["sentence"]
                .as_str()
                .unwrap()
                .contains("bounds the rate")
        );
        assert_eq!(json["ledgers"].as_array().unwrap().len(), 3);
        let text = world.run(&args);
        assert!(text.text().contains("bounds the rate"), "{text:?}");
    }
}

#[test]
fn samples_left_out_are_a_no() {
    let world = World::new();
    world.put_shards(60);
    world.put(
        "train/train-00001.tar",
        "<html>no such shard</html>".repeat(100),
    );
    let args = ["bench", SHARDS, "--to", "sample"];
    world.run(&args).failed(&["train-00001.tar"]);
    let ended = world.run(&[&args[..], &["--on-error", "skip", "--json"]].concat());
    let ledger = ended.json();
    assert_eq!(ledger["samples"], 40);
    let skipped = ledger["skipped"]["samples"].as_u64().unwrap();
    assert_eq!((skipped > 0, ended.code), (true, Some(1)), "{ended:?}");
}

#[test]
fn buffers_have_no_samples_to_count() {
    let world = World::new();
    let args = ["bench", SHARDS, "--to", "buffer", "--limit-samples", "3"];
    world.run(&args).failed(&["--limit-samples", "--to sample"]);
}
