//! `onecopy sync`

use std::fs;

use onecopy_testkit::fault::FaultServer;

use crate::command::{Ended, World};

#[test]
fn deletes_as_told_and_says_so() {
    let world = World::new();
    world.put("p/a", "1");
    world.put("p/b", "1");
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    for name in ["gone", "keep.log"] {
        fs::write(folder.path().join(name), "1").unwrap();
    }
    let args = ["sync", "s3://data/p", out, "--delete", "--exclude", "*.log"];
    let dry = world.run(&[&args[..], &["--dry-run"]].concat());
    let mut lines: Vec<&str> = dry.text().lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            format!("(dry run) cp s3://data/p/a {out}/a"),
            format!("(dry run) cp s3://data/p/b {out}/b"),
            format!("(dry run) rm {out}/gone"),
        ]
    );
    assert!(folder.path().join("gone").exists() && !folder.path().join("a").exists());
    world
        .run(&[&args[..], &["--max-delete", "0"]].concat())
        .failed_after(&["1 item would be deleted", "--max-delete"]);
    assert!(folder.path().join("gone").exists());
    let ended = world.run(&args);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.text(), format!("rm {out}/gone\n"));
    assert!(ended.stderr.contains("deleted 1, unchanged 2"), "{ended:?}");
    assert!(folder.path().join("keep.log").exists());
}

#[test]
fn compares_as_asked() {
    let world = World::new();
    world.put("p/a", "12345");
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let copied = |flags: &[&str]| {
        let ended = world.run(&[&["sync", "--dry-run", "s3://data/p", out], flags].concat());
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.text().lines().count()
    };
    assert_eq!(copied(&[]), 1);
    // Written after the object: newer, and other bytes of the same length.
    fs::write(folder.path().join("a"), "54321").unwrap();
    let newer = std::time::SystemTime::now() + std::time::Duration::from_secs(100);
    let file = fs::File::options()
        .write(true)
        .open(folder.path().join("a"))
        .unwrap();
    file.set_modified(newer).unwrap();
    assert_eq!(copied(&[]), 0);
    assert_eq!(copied(&["--size-only"]), 0);
    assert_eq!(copied(&["--exact"]), 1);
    assert_eq!(copied(&["--checksum"]), 1);
    for flags in [&["--size-only", "--exact"][..], &["--max-delete", "1"]] {
        let ended = world.run(&[&["sync", "s3://data/p", out], flags].concat());
        assert_eq!(ended.code, Some(2), "{ended:?}");
    }
    world
        .run(&["sync", out, out])
        .failed(&["both are on this machine"]);
    world.run(&["sync", "s3://nope/", out]).failed(&["bucket"]);
}

#[test]
fn memory_does_not_grow_with_the_number_of_keys() {
    let server = FaultServer::start().unwrap();
    let world = World::new();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let peak = |count: u64| {
        let keys = (0..count).map(|n| (format!("p/{:03}/{n:09}", n / 1000), 1));
        server.put_listing("data", keys.collect());
        let output = world
            .command(&["sync", "--dry-run", "-q", "--json", "s3://data/p", out])
            .env("AWS_ENDPOINT_URL", server.endpoint())
            .output()
            .unwrap();
        let ended = Ended::from(output);
        let last = ended.text().lines().last().unwrap();
        let summary: serde_json::Value = serde_json::from_str(last).unwrap();
        assert_eq!(summary["copied"], count, "{last}");
        summary["ledger"]["peak_rss_bytes"].as_u64().unwrap()
    };
    let (few, many) = (peak(5_000), peak(100_000));
    // A listing held in memory takes some 230 bytes a key: 22 MB. Runs of any length differ by up to 4 MB.
    assert!(many < few + 10_000_000, "{few} and {many} bytes");
}

#[test]
fn lines_show_keys_as_they_are_typed() {
    let world = World::new();
    world.put("p/it's \"ü\"", "1");
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let ended = world.run(&["sync", "s3://data/p", out]);
    assert_eq!(
        ended.text(),
        format!("cp s3://data/p/it's \"ü\" {out}/it's \"ü\"\n")
    );
}

#[test]
fn what_speaks_against_deleting_is_told_in_one_line() {
    let world = World::new();
    world.put("p/old", "1");
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().to_str().unwrap();
    fs::write(folder.path().join("a"), "1").unwrap();
    std::os::unix::fs::symlink("unmounted", folder.path().join("odd")).unwrap();
    let ended = world.run(&["sync", from, "s3://data/p", "--delete"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(ended.text(), format!("cp {from}/a s3://data/p/a\n"));
    let told = ended.stderr.matches("nothing was deleted").count();
    assert_eq!(told, 1, "{ended:?}");
    assert!(ended.stderr.contains("copied 1"), "{ended:?}");
    let ended = world.run(&["sync", "s3://data/p", "s3://data/p/copy", "--delete"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("within the source"), "{ended:?}");
}

#[test]
fn only_deleting_needs_a_folder_for_temporary_files() {
    let world = World::new();
    world.put("p/a", "1");
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let code = |flags: &[&str]| {
        let args = [&["sync", "s3://data/p", out], flags].concat();
        let output = world
            .command(&args)
            .env("TMPDIR", folder.path().join("nonexistent"))
            .output();
        output.unwrap().status.code()
    };
    assert_eq!(code(&["--delete"]), Some(2));
    assert!(!folder.path().join("a").exists());
    assert_eq!(code(&[]), Some(0));
    assert!(folder.path().join("a").exists());
}

#[test]
fn what_was_copied_before_an_error_is_told() {
    let world = World::new();
    world.put("p/a", "1");
    let folder = tempfile::tempdir().unwrap();
    for n in 0..3 {
        std::fs::write(folder.path().join(format!("z{n}")), "x").unwrap();
    }
    let out = folder.path().to_str().unwrap();
    let args = ["sync", "s3://data/p/", out, "--delete", "--max-delete", "1"];
    let ended = world.run(&args);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("copied 1 (1 B) in "), "{ended:?}");
    world.put("p/b", "22");
    let ended = world.run(&[&args[..], &["--json"]].concat());
    assert_eq!(ended.code, Some(2), "{ended:?}");
    let lines: Vec<serde_json::Value> = ended
        .text()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let [.., summary, error] = &*lines else {
        panic!("{lines:?}");
    };
    assert_eq!(summary["copied"], 1, "{lines:?}");
    assert_eq!(error["error"]["kind"], "limit_reached");
}

#[test]
fn a_disk_that_is_full_fails_the_file_and_leaves_nothing_of_it() {
    let world = World::new();
    for (key, len) in [("p/a", 10), ("p/large", 3 << 20), ("p/z", 10)] {
        world.put(key, vec![7; len]);
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    // No file may become longer than 1 MiB: what the system says then is what it says of a full disk, or nearly.
    let limit = "trap '' XFSZ; ulimit -f 2048";
    let mut command = world.in_a_shell(limit, &["sync", "s3://data/p", out]);
    let ended = Ended::from(command.output().unwrap());
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("/large: "), "{ended:?}");
    assert!(ended.stderr.contains("help: raise the limit"), "{ended:?}");
    let mut left: Vec<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["a", "z"]);
}
