//! What speaks against deleting, and what is left alone.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use onecopy::ErrorKind;
use onecopy::sync::{Arc, Mutex};
use onecopy::transfer::{Action, Compare, Item, Observer, Stop, SyncSettings, sync};
use onecopy_testkit::fault::FaultServer;

use crate::world::{World, settings, told};

fn deleting() -> SyncSettings {
    SyncSettings {
        is_deleting: true,
        ..SyncSettings::default()
    }
}

/// Makes something at `odd` in the folder `in` that cannot be read, whoever asks.
fn make_odd(world: &World, kind: &str) {
    let odd = world.path("in/odd");
    match kind {
        "a link to what is not mounted" => symlink(world.path("unmounted"), odd).unwrap(),
        "a link through a file" => symlink(world.path("in/a/x"), odd).unwrap(),
        "a link to itself" => symlink("odd", odd).unwrap(),
        "a link to a folder above" => symlink("..", odd).unwrap(),
        _ => drop(UnixListener::bind(odd).unwrap()),
    }
}

#[test]
fn what_cannot_be_read_at_the_source_keeps_all_from_deleting_unless_it_is_left_out() {
    for (kind, may_be_folder) in [
        ("a link to what is not mounted", true),
        ("a link through a file", true),
        ("a link to itself", true),
        ("a link to a folder above", true),
        ("a socket", false),
    ] {
        let mut world = World::new();
        world.write("in/a", "1");
        make_odd(&world, kind);
        for key in ["p/odd", "p/odd/kept", "p/old"] {
            world.put(key, "1");
        }
        let from = world.text("in");
        let is_there = |key: &str| world.get(key).is_some();
        let ended = world.sync(&from, "s3://bkt/p", &deleting());
        // The thing itself, and deleting.
        assert_eq!(ended.counts(), [1, 0, 0, 2], "{kind} {:?}", ended.failed);
        let why = ended.why("s3://bkt/p");
        assert!(why.contains("in/odd"), "{kind}: {why}");
        assert!(is_there("p/odd") && is_there("p/odd/kept") && is_there("p/old"));
        if may_be_folder {
            world.filter(&[(false, "odd")]);
            let ended = world.sync(&from, "s3://bkt/p", &deleting());
            assert_eq!(ended.counts()[1], 0, "{kind} {:?}", ended.failed);
            assert!(!ended.why("s3://bkt/p").is_empty(), "{kind}");
        }
        world.filter(&[(false, "odd"), (false, "odd/*")]);
        let ended = world.sync(&from, "s3://bkt/p", &deleting());
        assert_eq!(ended.counts()[1..], [1, 1, 0], "{kind} {:?}", ended.failed);
        assert!(world.get("p/odd/kept").is_some() && world.get("p/old").is_none());
    }
}

#[test]
fn a_folder_that_cannot_be_read_is_no_error_where_all_below_it_is_left_out() {
    let mut world = World::new();
    world.write("in/a", "1");
    world.write("in/d/f", "1");
    // Deeper than a path may be long.
    let script = "cd \"$1\" && for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18; do \
                  mkdir \"$2\" && cd -P \"$2\" || exit 1; done";
    let made = std::process::Command::new("sh")
        .args(["-c", script, "sh", &world.text("in/d"), &"x".repeat(250)])
        .status();
    assert!(made.unwrap().success());
    world.put("p/old", "1");
    world.put("p/d/kept", "1");
    world.filter(&[(false, "d/*"), (true, "*.jpg")]);
    let ended = world.sync(&world.text("in"), "s3://bkt/p", &deleting());
    assert_eq!(
        ended.counts(),
        [1, 0, 0, 2],
        "a later rule may include some"
    );
    world.filter(&[(true, "*.jpg"), (false, "d/*")]);
    let ended = world.sync(&world.text("in"), "s3://bkt/p", &deleting());
    assert_eq!(ended.counts(), [0, 1, 1, 0], "{:?}", ended.failed);
    assert!(world.get("p/old").is_none() && world.get("p/d/kept").is_some());
    let ended = world.recursive(&world.text("in"), "s3://bkt/q");
    assert_eq!(ended.counts(), [1, 0, 0, 0], "{:?}", ended.failed);
}

#[test]
fn a_source_that_holds_nothing_that_is_meant_is_an_empty_one() {
    let mut world = World::new();
    world.server.create_bucket("other").unwrap();
    world.put("marked/", "");
    world.put("marked/d/", "");
    world.put("logs/a.log", "1");
    world.write("in/a.log", "1");
    world.write("out/kept", "1");
    world.server.put("other", "kept", "1").unwrap();
    world.filter(&[(false, "*.log")]);
    let (here, out) = (world.text("in"), world.text("out"));
    for (from, to) in [
        ("s3://bkt/marked", out.as_str()),
        ("s3://bkt/marked", "s3://other"),
        ("s3://bkt/logs", &out),
        ("s3://bkt/logs", "s3://other"),
        (&here, "s3://other"),
    ] {
        let error = world.sync(from, to, &deleting()).result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{from} {to}");
        let text = error.to_string();
        assert!(text.contains("the source is empty"), "{from} {to}: {text}");
    }
    assert!(world.path("out/kept").exists());
    assert!(world.server.get("other", "d/").unwrap().is_some());
    assert!(world.server.get("other", "kept").unwrap().is_some());
}

#[test]
fn nothing_is_deleted_where_a_copy_failed() {
    let world = World::new();
    // A folder in the place of a file.
    world.put("p/new", "1");
    world.put("p/other", "1");
    world.write("out/new/old", "1");
    world.write("out/old", "1");
    let ended = world.sync("s3://bkt/p", &world.text("out"), &deleting());
    assert_eq!(ended.counts(), [1, 0, 0, 2], "{:?}", ended.failed);
    let why = ended.why(&world.text("out"));
    assert!(why.contains("1 item failed"), "{why}");
    assert_eq!(world.files(), ["out/new/old", "out/old", "out/other"]);
    // A name that can be no key.
    world.write("in/a", "1");
    fs::write(world.path("in").join(OsStr::from_bytes(b"\xff")), "1").unwrap();
    world.put("q/old", "1");
    let ended = world.sync(&world.text("in"), "s3://bkt/q", &deleting());
    assert_eq!(ended.counts(), [1, 0, 0, 2], "{:?}", ended.failed);
    assert!(world.get("q/old").is_some());
}

#[test]
fn objects_that_stand_for_folders_stay_where_files_are_put() {
    let world = World::new();
    world.write("in/d/a", "1");
    for (key, bytes) in [
        ("p/", ""),
        ("p/d/", ""),
        ("p/gone/", ""),
        ("p/gone/a", ""),
        ("p/full/", "1"),
    ] {
        world.put(key, bytes);
    }
    let ended = world.sync(&world.text("in"), "s3://bkt/p", &deleting());
    assert_eq!(ended.counts(), [1, 2, 0, 0], "{:?}", ended.done);
    for key in ["p/", "p/d/", "p/gone/", "p/d/a"] {
        assert!(world.get(key).is_some(), "{key}");
    }
}

#[test]
fn a_target_that_overlaps_the_source_is_refused() {
    let world = World::new();
    world.server.create_bucket("other").unwrap();
    for key in ["p/a", "p/q/b", "pq/c"] {
        world.put(key, "1");
    }
    for (from, to, why) in [
        ("s3://bkt/p", "s3://bkt/p/", "the same place"),
        ("s3://bkt", "s3://bkt/", "the same place"),
        ("s3://bkt/p", "s3://bkt/p/copy", "the target lies within"),
        ("s3://bkt", "s3://bkt/copy", "the target lies within"),
        ("s3://bkt/p/q/", "s3://bkt/p", "the source lies within"),
        ("s3://bkt/p", "s3://bkt", "the source lies within"),
    ] {
        for ended in [world.sync(from, to, &deleting()), world.recursive(from, to)] {
            let error = ended.result.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{from} {to}");
            assert!(error.to_string().contains(why), "{from} {to}: {error}");
            assert!(ended.done.is_empty(), "{from} {to}: {:?}", ended.done);
        }
    }
    let below = world.cp(&["s3://bkt/p/**"], "s3://bkt/p/copy/", &Default::default());
    assert!(below.result.is_err() && below.done.is_empty());
    for (from, to) in [
        ("s3://bkt/p", "s3://bkt/pq/"),
        ("s3://bkt/p", "s3://bkt/new"),
        ("s3://bkt/p", "s3://other/p"),
    ] {
        let ended = world.sync(from, to, &SyncSettings::default());
        assert_eq!(ended.counts(), [2, 0, 0, 0], "{from} {to}");
    }
    for (from, to) in [
        ("s3://bkt/p/a", "s3://bkt/p/a/b"),
        ("s3://bkt/p/*", "s3://bkt/p/copy/"),
    ] {
        let ended = world.cp(&[from], to, &Default::default());
        assert_eq!(ended.counts()[3], 0, "{from} {to} {:?}", ended.failed);
    }
}

#[test]
fn what_cannot_be_compared_is_one_item_that_failed() {
    let server = FaultServer::start().unwrap();
    let world = World::new();
    // Listed, and gone by the time it is looked up.
    let keys = [("p/a", 1), ("p/b", 1), ("p/c", 2)];
    let keys = keys.map(|(key, len)| (key.to_owned(), len));
    server.put_listing("bkt", keys.into());
    server.script("p/a", "status=404x*").unwrap();
    for name in ["a", "b", "c", "old"] {
        world.write(&format!("out/{name}"), "x");
    }
    let settings = settings(&server.endpoint());
    let how = SyncSettings {
        compare: Compare::Checksum,
        ..deleting()
    };
    let (out, stop) = (world.text("out"), Stop::default());
    let ended = told(|observer| sync("s3://bkt/p", &out, &settings, &how, observer, &stop));
    // The one that is gone, and deleting.
    assert_eq!(ended.counts(), [2, 0, 0, 2], "{:?}", ended.failed);
    assert_eq!(ended.failed["s3://bkt/p/a"].0, ErrorKind::NotFound);
    assert!(world.path("out/old").exists());
}

/// Removes a file once the first item is told, and notes what is deleted.
struct Remover {
    file: std::path::PathBuf,
    deleted: Mutex<Vec<String>>,
}

impl Observer for Remover {
    fn item(&self, item: &Item<'_>) {
        assert!(item.error.is_none(), "{item:?}");
        // Only the first time it is there.
        let _gone = fs::remove_file(&self.file);
        if matches!(item.action, Action::Delete) {
            self.deleted.lock().push(item.source.to_owned());
        }
    }

    fn moved(&self, _bytes: u64) {}
}

#[test]
fn a_file_that_goes_while_its_folder_is_listed_keeps_its_copy() {
    let mut world = World::new();
    // A listing is at most 2000 entries ahead of what is told.
    for number in 0..2600 {
        world.write(&format!("in/{number:04}"), "1");
    }
    world.put("p/2599", "1");
    world.put("p/old", "1");
    world.settings.is_dry_run = true;
    let remover = Arc::new(Remover {
        file: world.path("in/2599"),
        deleted: Mutex::default(),
    });
    let observer: Arc<dyn Observer> = Arc::<Remover>::clone(&remover);
    let from = world.text("in");
    let (settings, stop) = (&world.settings, Stop::default());
    let summary = sync(&from, "s3://bkt/p", settings, &deleting(), &observer, &stop).unwrap();
    assert_eq!((summary.copied, summary.failed), (2599, 0));
    assert_eq!(*remover.deleted.lock(), ["s3://bkt/p/old"]);
}
