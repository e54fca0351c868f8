//! `onecopy bench`

use std::process::Command;

use crate::command::{Ended, World, bare};

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
        let objects = (stage == "buffer").then_some(3);
        assert_eq!(ledger["objects"].as_u64(), objects, "{stage}");
        assert_eq!(ledger["ranges"].as_u64(), objects, "{stage}");
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
fn the_network_is_one_line_and_more_with_v() {
    let world = World::new();
    world.put_shards(6);
    let args = ["bench", SHARDS, "--to", "buffer"];
    let short = world.run(&args);
    assert!(short.text().contains("\n  network  "), "{short:?}");
    assert!(!short.text().contains("\n  address  "), "{short:?}");
    let long = world.run(&[&args[..], &["-v"]].concat());
    assert_eq!(long.code, Some(0), "{long:?}");
    for line in ["network", "longest (ms)", "connections", "address"] {
        assert!(long.text().contains(&format!("\n  {line} ")), "{long:?}");
    }
    let network = &world.run(&[&args[..], &["--json"]].concat()).json()["network"];
    assert_eq!(network["range_seconds"]["count"], 3, "{network}");
    // The listing of the names comes before the shards, over the same connections.
    let opened = network["connections"]["opened"].as_u64().unwrap();
    assert!((1..=3).contains(&opened), "{network}");
    assert!(
        network["first_byte_seconds"]["p99"].as_f64().unwrap() > 0.0,
        "{network}"
    );
}

#[test]
fn few_files_mean_few_connections_and_a_note() {
    let world = World::new();
    world.put_shards(6);
    let inner = world.command(&["bench", SHARDS, "--to", "buffer", "--json"]);
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", "ulimit -n 100 && exec \"$0\" \"$@\""])
        .arg(inner.get_program())
        .args(inner.get_args())
        .env_clear();
    for (name, value) in inner.get_envs() {
        command.env(name, value.unwrap());
    }
    let ended = Ended::from(command.output().unwrap());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let ledger = ended.json();
    let notes = ledger["notes"].to_string();
    assert!(notes.contains("may open 100 files"), "{notes}");
    assert!(
        ledger["network"]["connections"]["allowed"]
            .as_u64()
            .unwrap()
            < 36
    );
}

#[test]
fn stops_after_as_many_samples_as_asked() {
    let world = World::new();
    world.put_shards(60);
    for stage in ["sample", "batch"] {
        for limit in [1, 10, 13, 60, 99] {
            let text = limit.to_string();
            let args = ["bench", SHARDS, "--to", stage, "--batch", "5", "--json"];
            let args = [&args[..], &["--limit-samples", &text]].concat();
            let ended = world.run(&args);
            assert_eq!(ended.code, Some(0), "{ended:?}");
            assert_eq!(ended.json()["samples"], limit.min(60), "{stage}");
        }
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
    let skipped = serde_json::json!({"samples": 0, "shards": 1, "by_cause": {"not_a_tar": 1}});
    assert_eq!(
        (&ledger["skipped"], ended.code),
        (&skipped, Some(1)),
        "{ended:?}"
    );
}

#[test]
fn a_lost_shard_is_counted_and_logged_once_whatever_the_stage() {
    let world = World::new();
    world.put_shards(60);
    let missing = "s3://data/train/train-0000{0,7,1}.tar";
    let skipped = serde_json::json!({"samples": 0, "shards": 1, "by_cause": {"not_found": 1}});
    for (stage, samples) in [("buffer", 0), ("sample", 40), ("batch", 40)] {
        let args = ["bench", missing, "--to", stage, "--size", "32", "--json"];
        let raised = world.run(&args);
        assert_eq!(raised.code, Some(2), "{stage} {raised:?}");
        for policy in ["skip", "warn"] {
            let ended = world.run(&[&args[..], &["--on-error", policy]].concat());
            let ledger = ended.json();
            assert_eq!(ended.code, Some(1), "{stage} {ended:?}");
            assert_eq!(ledger["skipped"], skipped, "{stage}");
            assert_eq!(ledger["samples"], samples, "{stage}");
            assert_eq!(ledger["warnings"], serde_json::json!({}), "{stage}");
            let lines = usize::from(policy == "warn");
            assert_eq!(ended.stderr.lines().count(), lines, "{stage} {ended:?}");
            let line = "shard given up (not_found): could not read s3://";
            assert_eq!(ended.stderr.matches(line).count(), lines, "{ended:?}");
            assert_eq!(
                ended.stderr.matches("train-00007.tar").count(),
                lines,
                "{ended:?}"
            );
        }
    }
    let args = [
        "bench",
        missing,
        "--stages",
        "--size",
        "32",
        "--on-error",
        "skip",
        "--json",
    ];
    let ended = world.run(&args);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    for ledger in ended.json()["ledgers"].as_array().unwrap() {
        assert_eq!(ledger["skipped"], skipped);
    }
    let text = world.run(&["bench", missing, "--to", "sample", "--on-error", "skip"]);
    assert!(
        text.text()
            .contains("  skipped           the rest of 1 shards (not_found 1)\n"),
        "{text:?}"
    );
}

#[test]
fn one_more_than_may_be_left_out_is_an_error_whatever_the_stage() {
    let world = World::new();
    world.put_shards(60);
    let missing = "s3://data/train/train-0000{0,7,8,1}.tar";
    for stage in ["buffer", "sample", "batch"] {
        let args = ["bench", missing, "--to", stage, "--size", "32", "--json"];
        let run = |max| {
            let allowed = ["--on-error", "skip", "--max-skipped", max];
            world.run(&[&args[..], &allowed].concat())
        };
        run("1").failed_after(&[
            "train-00008.tar",
            "; left out before it: the rest of 1 shards (not_found 1)",
            "help: --max-skipped 1 is spent: ",
            "--on-error warn",
        ]);
        let ended = run("2");
        assert_eq!(ended.code, Some(1), "{stage} {ended:?}");
        let skipped = serde_json::json!(
            {"samples": 0, "shards": 2, "by_cause": {"not_found": 2}, "max_skipped": 2}
        );
        assert_eq!(ended.json()["skipped"], skipped, "{stage}");
        let refused = world.run(&[&args[..], &["--max-skipped", "2"]].concat());
        refused.failed_after(&["2 samples and shards", "--on-error skip"]);
    }
}

#[test]
fn a_file_that_is_not_there_is_a_lost_shard_as_an_object_is() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("{}/{{a,b}}.tar", folder.path().display());
    std::fs::write(folder.path().join("a.tar"), [0; 1024]).unwrap();
    for stage in ["buffer", "sample", "batch"] {
        let args = ["bench", &url, "--to", stage, "--json"];
        Ended::from(bare(&args[..4]).output().unwrap()).failed(&["b.tar"]);
        let skipping = [&args[..], &["--on-error", "skip"]].concat();
        let ended = Ended::from(bare(&skipping).output().unwrap());
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert_eq!(
            ended.json()["skipped"]["by_cause"],
            serde_json::json!({"not_found": 1})
        );
    }
}

#[test]
fn a_shard_without_its_end_mark_is_an_error_or_a_warning() {
    let world = World::new();
    let shards = world.put_shards(60);
    // Shards are whole blocks, and end in two of zeros: the mark.
    let bytes = &shards[1].bytes;
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    let cut = bytes[..end.next_multiple_of(512)].to_owned();
    world.put("train/train-00001.tar", cut);
    let args = ["bench", SHARDS, "--to", "sample"];
    world
        .run(&args)
        .failed(&["train-00001.tar", "member border", "--on-error warn"]);
    let ended = world.run(&[&args[..], &["--on-error", "warn", "--json"]].concat());
    let ledger = ended.json();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ledger["samples"], 60);
    assert_eq!(ledger["skipped"]["by_cause"], serde_json::json!({}));
    assert_eq!(ledger["warnings"], serde_json::json!({"missing_eof": 1}));
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    assert!(
        ended.stderr.contains("shard taken (missing_eof): "),
        "{ended:?}"
    );
}

#[test]
fn shards_left_out_are_a_no_however_far_one_goes() {
    let world = World::new();
    world.put_shards(60);
    let shards = "s3://data/train/train-{00000..00003}.tar";
    for stage in ["buffer", "sample", "batch"] {
        let args = ["bench", shards, "--to", stage, "--size", "32"];
        world.run(&args).failed(&["train-00003.tar"]);
        let ended = world.run(&[&args[..], &["--on-error", "skip", "--json"]].concat());
        assert_eq!(ended.code, Some(1), "{stage} {ended:?}");
        assert_eq!(ended.json()["skipped"]["shards"], 1, "{stage} {ended:?}");
    }
}

#[test]
fn buffers_are_told_by_objects_and_ranges() {
    let world = World::new();
    world.put_shards(60);
    let ended = world.run(&["bench", SHARDS, "--to", "buffer"]);
    assert!(ended.text().contains("3 objects, "), "{ended:?}");
    assert!(!ended.text().contains("samples"), "{ended:?}");
    assert!(ended.text().contains("first bytes after"), "{ended:?}");
}

#[test]
fn buffers_have_no_samples_to_count() {
    let world = World::new();
    let args = ["bench", SHARDS, "--to", "buffer", "--limit-samples", "3"];
    world.run(&args).failed(&["--limit-samples", "--to sample"]);
}
