//! Targets are made like sources.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};

use onecopy::ErrorKind;
use onecopy::transfer::{Compare, Stop, SyncSettings, sync};
use onecopy_testkit::fault::FaultServer;

use crate::world::{World, bytes, settings, told};

fn plain() -> SyncSettings {
    SyncSettings::default()
}

fn deleting() -> SyncSettings {
    SyncSettings {
        is_deleting: true,
        ..SyncSettings::default()
    }
}

#[test]
fn down_up_and_across_end_in_the_same_tree_and_a_second_run_does_nothing() {
    let mut world = World::new();
    world.server.create_bucket("other").unwrap();
    // In byte order `a.b` comes between `a` and `a/`, and pages of a listing meet anywhere.
    let mut keys: Vec<String> = (0..1100).map(|n| format!("many/{n:04}")).collect();
    keys.extend(
        [
            "a-b", "a.b", "a/b", "a/b.c", "a/b0/x", "a0", "B", "\u{fc}/x", "!",
        ]
        .map(String::from),
    );
    for key in &keys {
        world.put(&format!("p/{key}"), key.as_bytes());
    }
    let out = world.text("out");
    let count = keys.len() as u64;
    for (from, to) in [
        ("s3://bkt/p", out.as_str()),
        (&out, "s3://bkt/back/"),
        ("s3://bkt/back", "s3://other"),
    ] {
        let first = world.sync(from, to, &deleting());
        assert_eq!(
            first.counts(),
            [count, 0, 0, 0],
            "{from} {to} {:?}",
            first.failed
        );
        let again = world.sync(from, to, &deleting());
        assert_eq!(
            again.counts(),
            [0, 0, count, 0],
            "{from} {to}: {:?}",
            again.done
        );
    }
    for key in &keys {
        assert_eq!(
            world.server.get("other", key).unwrap().unwrap(),
            key.as_bytes()
        );
    }
    world.settings.is_dry_run = true;
    world.put("p/new", "x");
    let dry = world.sync("s3://bkt/p", &out, &plain());
    assert_eq!(dry.done, [format!("cp s3://bkt/p/new {out}/new")]);
    assert!(!world.path("out/new").exists());
}

#[test]
fn what_differs_is_told_by_size_time_or_checksum() {
    let world = World::new();
    let now = SystemTime::now();
    let old = now - Duration::from_secs(100_000);
    let new = now + Duration::from_secs(100_000);
    for (name, there, time) in [
        ("equal", "12345", new),
        ("older", "12345", old),
        ("size", "123456", new),
        ("content", "54321", new),
    ] {
        world.put(&format!("p/{name}"), "12345");
        world.write(&format!("out/{name}"), there);
        let file = File::options()
            .write(true)
            .open(world.path(&format!("out/{name}")))
            .unwrap();
        file.set_modified(time).unwrap();
    }
    let mut world = world;
    world.settings.is_dry_run = true;
    let out = world.text("out");
    let copied = |source: &str, target: &str, compare| {
        let how = SyncSettings { compare, ..plain() };
        let ended = world.sync(source, target, &how);
        let names = ended.done.iter().filter_map(|line| line.rsplit('/').next());
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    let down = |compare| copied("s3://bkt/p", &out, compare);
    assert_eq!(down(Compare::SizeAndTime), ["older", "size"]);
    assert_eq!(down(Compare::Size), ["size"]);
    assert_eq!(down(Compare::Exact), ["content", "equal", "older", "size"]);
    assert_eq!(down(Compare::Checksum), ["content", "size"]);
    let up = |compare| copied(&out, "s3://bkt/p", compare);
    assert_eq!(up(Compare::SizeAndTime), ["content", "equal", "size"]);
    assert_eq!(up(Compare::Checksum), ["content", "size"]);
}

#[test]
fn deletes_what_is_not_at_the_source_and_never_what_is_left_out() {
    let mut world = World::new();
    world.put("p/keep", "1");
    world.write("out/keep", "1");
    world.write("out/gone", "1");
    world.write("out/d/gone", "1");
    world.write("out/left.log", "1");
    world.write("away/f", "1");
    symlink(world.path("away"), world.path("out/link")).unwrap();
    world.filter(&[(false, "*.log")]);
    let out = world.text("out");
    let without = world.sync("s3://bkt/p", &out, &plain());
    assert_eq!(without.counts()[1], 0);
    let ended = world.sync("s3://bkt/p", &out, &deleting());
    assert_eq!(ended.counts()[1], 2, "{:?}", ended.done);
    assert_eq!(
        world.files(),
        ["away/f", "out/keep", "out/left.log", "out/link"]
    );
    // In a bucket as well.
    for key in ["q/gone", "q/keep", "q/left.log", "q/d/gone\n"] {
        world.put(key, "1");
    }
    let ended = world.sync(&out, "s3://bkt/q", &deleting());
    assert_eq!(ended.counts()[1], 2, "{:?}", ended.done);
    assert!(world.get("q/keep").is_some() && world.get("q/left.log").is_some());
    assert!(world.get("q/gone").is_none() && world.get("q/d/gone\n").is_none());
    assert_eq!(
        world.get("p/keep").unwrap(),
        b"1",
        "the prefix beside it is untouched"
    );
}

#[test]
fn nothing_is_deleted_where_something_speaks_against_it() {
    let world = World::new();
    world.put("p/new", "1");
    world.put("empty", "");
    for name in ["a", "b", "c"] {
        world.write(&format!("out/{name}"), "1");
    }
    let out = world.text("out");
    let most = |max_delete| SyncSettings {
        max_delete: Some(max_delete),
        ..deleting()
    };
    let error = world.sync("s3://bkt/p", &out, &most(2)).result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitReached);
    assert!(
        error.to_string().contains("3 items would be deleted"),
        "{error}"
    );
    assert_eq!(world.files(), ["out/a", "out/b", "out/c", "out/new"]);
    // A source that is empty is more likely misspelt.
    let error = world
        .sync("s3://bkt/misspelt", &out, &deleting())
        .result
        .unwrap_err();
    assert!(error.to_string().contains("the source is empty"), "{error}");
    // A source that cannot be listed.
    for source in ["s3://nowhere/p".to_owned(), world.text("nonexistent")] {
        let target = if source.starts_with("s3") {
            out.as_str()
        } else {
            "s3://bkt/p"
        };
        assert!(
            world.sync(&source, target, &deleting()).result.is_err(),
            "{source}"
        );
    }
    assert_eq!(world.files().len(), 4);
    assert!(world.get("p/new").is_some());
    let ended = world.sync("s3://bkt/p", &out, &most(3));
    assert_eq!(ended.counts(), [0, 3, 1, 0]);
    assert_eq!(world.files(), ["out/new"]);
    let ended = world.sync("s3://bkt/misspelt", &out, &most(1));
    assert_eq!(ended.counts(), [0, 1, 0, 0]);
}

#[test]
fn a_listing_that_fails_half_way_deletes_nothing() {
    let server = FaultServer::start().unwrap();
    let world = World::new();
    let keys: Vec<(String, u64)> = (0..1500).map(|n| (format!("p/{n:05}"), 1)).collect();
    server.put_listing("bkt", keys);
    server.script_listing("bkt", "failpage=2").unwrap();
    world.write("out/00000", "x");
    world.write("out/zzz", "x");
    let mut settings = settings(&server.endpoint());
    settings.store.limits.tries = 1;
    let out = world.text("out");
    let ended = told(|observer| {
        sync(
            "s3://bkt/p",
            &out,
            &settings,
            &deleting(),
            observer,
            &Stop::default(),
        )
    });
    assert!(ended.result.is_err());
    assert!(world.path("out/zzz").exists());
}

#[test]
fn a_folder_that_cannot_be_read_is_told_and_keeps_all_from_deleting() {
    let world = World::new();
    world.write("in/a", "1");
    // Deeper than a path may be long: no right helps against that, not even root's.
    let script = "cd \"$1\" && for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18; do \
                  mkdir \"$2\" && cd -P \"$2\" || exit 1; done";
    let made = std::process::Command::new("sh")
        .args(["-c", script, "sh", &world.text("in"), &"x".repeat(250)])
        .status();
    assert!(made.unwrap().success());
    world.put("p/closed/b", "1");
    world.put("p/c", "1");
    let ended = world.sync(&world.text("in"), "s3://bkt/p", &deleting());
    // The folder, and deleting.
    assert_eq!(ended.counts(), [1, 0, 0, 2], "{:?}", ended.failed);
    assert!(world.get("p/c").is_some() && world.get("p/closed/b").is_some());
    assert_eq!(world.get("p/a").unwrap(), b"1");
}

#[test]
fn odd_keys_are_refused_and_the_rest_is_synced() {
    let world = World::new();
    for key in ["p/a", "p/a/b", "p/../x", "p/c//d", "p/fine", "p/d/"] {
        world.put(key, "1");
    }
    world.put("p/marker/", "");
    let out = world.text("out");
    for (run, copied) in [(1, [2, 0, 0, 4]), (2, [0, 0, 2, 4])] {
        let ended = world.sync("s3://bkt/p", &out, &deleting());
        assert_eq!(ended.counts(), copied, "run {run}: {:?}", ended.failed);
        assert_eq!(world.files(), ["out/a/b", "out/fine"]);
    }
}

#[test]
fn servers_that_list_in_another_order_or_on_and_on_are_told() {
    let server = FaultServer::start().unwrap();
    let world = World::new();
    let settings = settings(&server.endpoint());
    let out = world.text("out");
    let run = |keys: &[&str], script: &str| {
        let keys = keys.iter().map(|key| ((*key).to_owned(), 1)).collect();
        server.put_listing("bkt", keys);
        server.script_listing("bkt", script).unwrap();
        told(|observer| {
            sync(
                "s3://bkt",
                &out,
                &settings,
                &plain(),
                observer,
                &Stop::default(),
            )
        })
    };
    let error = run(&["b", "a"], "ok").result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let many: Vec<String> = (0..1200).map(|n| format!("{n:04}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for script in ["sametoken", "notoken"] {
        assert_eq!(
            run(&many, script).result.unwrap_err().kind(),
            ErrorKind::Corrupt,
            "{script}"
        );
    }
    let ended = run(&many, "duplicates");
    assert_eq!(
        ended.counts()[0] + ended.counts()[2],
        1200,
        "{:?}",
        ended.failed
    );
}

#[test]
fn large_files_go_both_ways() {
    let mut world = World::new();
    world.settings.range_bytes = 8 << 20;
    let whole = bytes((20 << 20) + 4099);
    world.write("in/big", &whole);
    let ended = world.sync(&world.text("in"), "s3://bkt/p", &plain());
    assert_eq!(ended.counts(), [1, 0, 0, 0], "{:?}", ended.failed);
    let ended = world.sync("s3://bkt/p", &world.text("out"), &plain());
    assert_eq!(ended.counts(), [1, 0, 0, 0], "{:?}", ended.failed);
    assert!(fs::read(world.path("out/big")).unwrap() == whole);
}
