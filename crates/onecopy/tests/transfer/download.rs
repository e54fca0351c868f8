//! Objects become files.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, symlink};
use std::time::Duration;

use onecopy::ErrorKind;
use onecopy::sync::{Arc, AtomicBool};
use onecopy::transfer::{CopySettings, Stop, copy};
use onecopy_testkit::fault::{FaultServer, body_byte};

use crate::world::{World, bytes, settings, told};

#[test]
fn every_length_arrives_whole_with_its_time_and_without_a_copy_in_user_space() {
    let world = World::new();
    let range = 64 << 10;
    let lens = [
        0,
        1,
        4095,
        4096,
        range - 1,
        range,
        range + 1,
        3 * range + 5,
        (9 << 20) + 13,
    ];
    for len in lens {
        world.put(&format!("p/{len:08}"), bytes(len));
    }
    let ended = world.recursive("s3://bkt/p", &world.text("out"));
    assert_eq!(
        ended.counts(),
        [lens.len() as u64, 0, 0, 0],
        "{:?}",
        ended.failed
    );
    for len in lens {
        let path = world.path(&format!("out/{len:08}"));
        assert!(fs::read(&path).unwrap() == bytes(len), "{len}");
        let age = fs::metadata(&path)
            .unwrap()
            .modified()
            .unwrap()
            .elapsed()
            .unwrap();
        assert!(age < Duration::from_secs(600));
        assert_eq!(
            fs::metadata(&path).unwrap().mtime_nsec(),
            0,
            "the time of the object"
        );
    }
    assert_eq!(world.files().len(), lens.len(), "no drafts are left");
    let all: usize = lens.iter().sum();
    let report = &ended.result.as_ref().unwrap().ledger;
    assert_eq!(report.payload_bytes, all as u64);
    assert!(
        report.copies_per_byte.user < 0.01,
        "{:?}",
        report.copies_per_byte
    );
    assert_eq!(ended.hop("write") + ended.hop("write_direct"), all as u64);
}

#[test]
fn a_file_that_the_disk_has_no_room_for_fails_alone_and_leaves_nothing() {
    let server = FaultServer::start().unwrap();
    let world = World::new();
    let sources =
        ["ok/1000/a", "ok/10000GiB/huge", "ok/9MiB/z"].map(|key| format!("s3://bkt/{key}"));
    let ended = told(|observer| {
        copy(
            &sources,
            &world.text("out/"),
            &settings(&server.endpoint()),
            &CopySettings::default(),
            observer,
            &Stop::default(),
        )
    });
    assert_eq!(ended.counts(), [2, 0, 0, 1], "{:?}", ended.failed);
    assert!(
        ended.why(&sources[1]).contains("make room on the disk"),
        "{:?}",
        ended.failed
    );
    assert_eq!(world.files(), ["out/a", "out/z"]);
    let disk = ended.result.unwrap().ledger.disk;
    assert_eq!((disk.written_bytes, disk.read_bytes), (1000 + (9 << 20), 0));
}

#[test]
fn broken_bodies_are_resumed_and_what_changes_is_no_file() {
    let server = FaultServer::start().unwrap();
    let world = World::new();
    let mut settings = settings(&server.endpoint());
    settings.range_bytes = 64 << 10;
    settings.store.limits.stall_timeout = Duration::from_millis(400);
    let len = 300_000;
    for (script, kind) in [
        ("cut=1000x3", None),
        ("reset=40000x2", None),
        ("stall=100", None),
        ("status=503x2", None),
        ("chunked", None),
        ("etag=change", Some(ErrorKind::Changed)),
        ("status=403x*", Some(ErrorKind::Denied)),
        ("cut=0x*", Some(ErrorKind::Truncated)),
    ] {
        let key = format!("{script}/{len}/object");
        let target = world.text(&format!("{script}.out"));
        let url = format!("s3://bkt/{key}");
        let how = CopySettings {
            is_raw: true,
            ..CopySettings::default()
        };
        let ended = told(|observer| {
            copy(
                std::slice::from_ref(&url),
                &target,
                &settings,
                &how,
                observer,
                &Stop::default(),
            )
        });
        match kind {
            None => {
                assert_eq!(ended.counts(), [1, 0, 0, 0], "{script} {:?}", ended.failed);
                let found = fs::read(&target).unwrap();
                assert_eq!(found.len(), len, "{script}");
                let is_right = |(at, byte): (usize, &u8)| *byte == body_byte(&key, at as u64);
                assert!(found.iter().enumerate().all(is_right), "{script}");
            }
            Some(kind) => {
                assert_eq!(ended.counts(), [0, 0, 0, 1], "{script}");
                assert_eq!(ended.failed[&url].0, kind, "{script}");
                assert!(!fs::exists(&target).unwrap(), "{script}");
            }
        }
    }
    assert!(
        world.files().iter().all(|name| name.ends_with(".out")),
        "{:?}",
        world.files()
    );
}

#[test]
fn keys_that_can_be_no_file_are_refused_one_by_one_and_the_rest_goes_on() {
    let world = World::new();
    let long = "x".repeat(256);
    let refused = [
        "p/../escape",
        "p//absolute",
        "p/a//b",
        "p/.",
        "p/d/",
        "p/a",
        &format!("p/{long}"),
    ];
    for key in refused {
        world.put(key, "bytes");
    }
    // The marker of a folder is no failure.
    world.put("p/marker/", "");
    world.put("p/", "");
    for key in [
        "p/a/b",
        "p/a.b",
        "p/ok",
        "p/\u{fc} +%#?\n",
        "p/...",
        "p/-rf",
        "p/nfc-\u{fc}",
        "p/nfc-u\u{308}",
        "p/\u{1f980}",
        "p/ two  blanks ",
    ] {
        world.put(key, key);
    }
    let ended = world.recursive("s3://bkt/p/", &world.text("out"));
    assert_eq!(
        ended.counts(),
        [10, 0, 0, refused.len() as u64],
        "{ended:?}",
        ended = ended.failed
    );
    for (why, key) in [
        (". or ..", "../escape"),
        ("empty", "/absolute"),
        ("empty", "a//b"),
        ("slash", "d/"),
        ("no file can be a folder", "a"),
        ("255 bytes", &long),
    ] {
        let told = ended.why(&format!("s3://bkt/p/{key}"));
        assert!(told.contains(why), "{key}: {told}");
    }
    let files = [
        "out/ two  blanks ",
        "out/-rf",
        "out/...",
        "out/a.b",
        "out/a/b",
        "out/nfc-u\u{308}",
        "out/nfc-\u{fc}",
        "out/ok",
        "out/\u{fc} +%#?\n",
        "out/\u{1f980}",
    ];
    assert_eq!(world.files(), files);
    assert!(!world.path("escape").exists());
}

#[test]
fn links_and_folders_in_the_way_are_never_written_through() {
    let world = World::new();
    world.write("elsewhere/f", "precious");
    world.write("out/folder/x", "x");
    world.write("out/file", "x");
    symlink(world.path("elsewhere"), world.path("out/link")).unwrap();
    symlink(world.path("elsewhere/f"), world.path("out/name")).unwrap();
    for key in ["p/link/f", "p/name", "p/folder", "p/file/y", "p/fine"] {
        world.put(key, "new");
    }
    let ended = world.recursive("s3://bkt/p/", &world.text("out"));
    assert_eq!(ended.counts(), [1, 0, 0, 4], "{:?}", ended.failed);
    assert!(ended.why("s3://bkt/p/link/f").contains("symbolic link"));
    assert!(ended.why("s3://bkt/p/name").contains("symbolic link"));
    assert!(ended.why("s3://bkt/p/folder").contains("a folder"));
    assert!(ended.why("s3://bkt/p/file/y").contains("is a file"));
    assert_eq!(fs::read(world.path("elsewhere/f")).unwrap(), b"precious");
    // The target itself may be a link: it was named.
    symlink(world.path("elsewhere"), world.path("named")).unwrap();
    let ended = world.cp(
        &["s3://bkt/p/fine"],
        &world.text("named"),
        &CopySettings::default(),
    );
    assert_eq!(ended.counts(), [1, 0, 0, 0], "{:?}", ended.failed);
    assert_eq!(fs::read(world.path("elsewhere/fine")).unwrap(), b"new");
}

#[test]
fn what_killed_processes_left_is_swept_and_what_others_write_is_not() {
    let world = World::new();
    world.put("k", "bytes");
    world.write("out/.onecopy-1-0.part", "left");
    world.write("out/.onecopy-2-0.part", "being written");
    world.write("out/.onecopy-notes", "mine");
    let writer = File::open(world.path("out/.onecopy-2-0.part")).unwrap();
    writer.lock().unwrap();
    let ended = world.cp(
        &["s3://bkt/k"],
        &world.text("out/"),
        &CopySettings::default(),
    );
    assert_eq!(ended.counts(), [1, 0, 0, 0]);
    let left = ["out/.onecopy-2-0.part", "out/.onecopy-notes", "out/k"];
    assert_eq!(world.files(), left);
}

#[test]
fn a_stop_leaves_no_file_and_no_draft() {
    let server = FaultServer::start().unwrap();
    let world = World::new();
    let mut settings = settings(&server.endpoint());
    settings.range_bytes = 64 << 10;
    let flag = Arc::new(AtomicBool::new(false));
    let stop = Stop::at(Arc::clone(&flag));
    let urls = [
        "s3://bkt/ok/100/first".to_owned(),
        "s3://bkt/drip=1Bps/1000000/slow".to_owned(),
    ];
    let out = world.text("out/");
    let ended = std::thread::scope(|scope| {
        let how = CopySettings {
            is_raw: true,
            ..CopySettings::default()
        };
        let (settings, urls, stop, out) = (&settings, &urls, &stop, &out);
        let run =
            scope.spawn(move || told(|observer| copy(urls, out, settings, &how, observer, stop)));
        while server
            .requests()
            .iter()
            .filter(|record| record.key.contains("slow"))
            .count()
            < 2
        {
            std::thread::yield_now();
        }
        flag.store(true, onecopy::sync::Ordering::Relaxed);
        run.join().unwrap()
    });
    assert_eq!(ended.result.unwrap_err().kind(), ErrorKind::Cancelled);
    assert!(!world.path("out/slow").exists());
    assert!(
        world.files().iter().all(|name| !name.ends_with(".part")),
        "{:?}",
        world.files()
    );
}

#[test]
fn files_of_others_that_look_like_drafts_stay_and_are_copied() {
    let world = World::new();
    let names = [
        ".onecopy-notes.part",
        ".onecopy-7.part",
        "d/.onecopy-a-1.part",
    ];
    for name in names {
        world.write(&format!("in/{name}"), name);
        world.put(&format!("p/{name}"), name);
    }
    world.put("p/.onecopy-7-1.part", "a draft by its name");
    let up = world.recursive(&world.text("in"), "s3://bkt/up/");
    assert_eq!(up.counts(), [3, 0, 0, 0], "{:?}", up.failed);
    let down = world.recursive("s3://bkt/p/", &world.text("in"));
    assert_eq!(down.counts(), [3, 0, 0, 1], "{:?}", down.failed);
    let why = down.why("s3://bkt/p/.onecopy-7-1.part");
    assert!(why.contains("not whole yet"), "{why}");
    let again = world.recursive("s3://bkt/up/", &world.text("in/d"));
    assert_eq!(again.counts(), [3, 0, 0, 0], "{:?}", again.failed);
    for name in names {
        assert_eq!(
            std::fs::read(world.path(&format!("in/{name}"))).unwrap(),
            name.as_bytes()
        );
    }
}
