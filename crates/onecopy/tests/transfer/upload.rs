//! Files become objects.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use onecopy::ErrorKind;
use onecopy::sync::{Arc, AtomicBool, Ordering};
use onecopy::transfer::{CopySettings, Stop};

use crate::world::{World, bytes};

#[test]
fn every_length_is_stored_whole_in_parts_where_it_is_long_and_without_a_copy_in_user_space() {
    let world = World::new();
    let part = 5 << 20;
    let lens = [
        0,
        1,
        4097,
        part - 1,
        part,
        part + 1,
        2 * part,
        2 * part + 4097,
    ];
    for len in lens {
        world.write(&format!("in/{len:08}"), bytes(len));
    }
    let ended = world.recursive(&world.text("in"), "s3://bkt/up");
    assert_eq!(
        ended.counts(),
        [lens.len() as u64, 0, 0, 0],
        "{:?}",
        ended.failed
    );
    for len in lens {
        let key = format!("up/{len:08}");
        assert!(world.get(&key).unwrap() == bytes(len), "{len}");
        let etag = world.server.etag("bkt", &key).unwrap().unwrap();
        let parts = len.div_ceil(part);
        assert_eq!(
            etag.ends_with(&format!("-{parts}\"")),
            parts > 1,
            "{len} {etag}"
        );
    }
    assert_eq!(world.server.open_uploads(), 0);
    let all: usize = lens.iter().sum();
    assert_eq!(ended.hop("send"), all as u64);
    assert_eq!(ended.hop("read") + ended.hop("read_direct"), all as u64);
    let report = &ended.result.as_ref().unwrap().ledger;
    assert!(
        report.copies_per_byte.user < 0.001,
        "{:?}",
        report.copies_per_byte
    );
}

#[test]
fn every_name_is_a_key_byte_for_byte_or_refused() {
    let world = World::new();
    let names = [
        "a b+c%20~'[]&=;",
        "\u{fc}",
        "u\u{308}",
        "new\nline",
        "back\\slash",
        "*?{}",
        "\u{1}",
    ];
    for name in names {
        world.write(&format!("in/d/{name}"), name);
    }
    let odd = std::ffi::OsStr::from_bytes(b"in/\xff");
    std::fs::write(world.folder.path().join(odd), "x").unwrap();
    let long = "x".repeat(250);
    world.write(&format!("in/{long}/{long}/{long}/{long}/{long}"), "x");
    let ended = world.recursive(&world.text("in"), "s3://bkt/");
    assert_eq!(
        ended.counts(),
        [names.len() as u64, 0, 0, 2],
        "{:?}",
        ended.failed
    );
    for name in names {
        assert_eq!(
            world.get(&format!("d/{name}")).unwrap(),
            name.as_bytes(),
            "{name:?}"
        );
    }
    let why: Vec<&(ErrorKind, String)> = ended.failed.values().collect();
    assert!(
        why.iter().any(|(_, why)| why.contains("not UTF-8")),
        "{why:?}"
    );
    assert!(
        why.iter().any(|(_, why)| why.contains("1024 bytes")),
        "{why:?}"
    );
}

#[test]
fn links_are_followed_unless_told_otherwise() {
    let mut world = World::new();
    world.write("in/f", "f");
    world.write("away/g", "g");
    symlink(world.path("away"), world.path("in/link")).unwrap();
    symlink("nowhere", world.path("in/dead")).unwrap();
    let ended = world.recursive(&world.text("in"), "s3://bkt/1/");
    assert_eq!(
        ended.counts(),
        [2, 0, 0, 1],
        "a link to nothing is told: {:?}",
        ended.failed
    );
    assert_eq!(world.get("1/link/g").unwrap(), b"g");
    world.settings.is_following_links = false;
    let ended = world.recursive(&world.text("in"), "s3://bkt/2/");
    assert_eq!(ended.counts(), [1, 0, 0, 0]);
    assert_eq!(world.get("2/link/g"), None);
}

#[test]
fn attributes_are_told_and_a_missing_bucket_is_named() {
    let mut world = World::new();
    world.write("f", "x");
    let file = world.text("f");
    world
        .settings
        .attributes
        .set("Content-Type", "image/jpeg")
        .unwrap();
    world
        .settings
        .attributes
        .set("x-amz-meta-who", "me")
        .unwrap();
    let plain = CopySettings::default();
    assert_eq!(
        world.cp(&[&file], "s3://bkt/k", &plain).counts(),
        [1, 0, 0, 0]
    );
    // A copy within the store keeps what is told of the source.
    world.settings.attributes = onecopy::store::Attributes::default();
    assert_eq!(
        world.cp(&["s3://bkt/k"], "s3://bkt/l", &plain).counts(),
        [1, 0, 0, 0]
    );
    let (store, _) = onecopy::store::open_store("s3://bkt", &world.settings.store).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let writer = store.writer().unwrap();
    for key in [&b"k"[..], b"l"] {
        let told = runtime
            .block_on(writer.attributes(&writer.object(key)))
            .unwrap();
        assert_eq!(told.get("content-type"), Some("image/jpeg"));
        assert_eq!(told.get("x-amz-meta-who"), Some("me"));
    }
    // Without a word, the name tells the media type.
    world.write("g.JPG", "x");
    let photo = world.text("g.JPG");
    for (is_guessing_type, key, kind) in [
        (true, "m", Some("image/jpeg")),
        (false, "n", Some("binary/octet-stream")),
    ] {
        world.settings.is_guessing_type = is_guessing_type;
        let url = format!("s3://bkt/{key}");
        assert_eq!(world.cp(&[&photo], &url, &plain).counts(), [1, 0, 0, 0]);
        let told = runtime
            .block_on(writer.attributes(&writer.object(key.as_bytes())))
            .unwrap();
        assert_eq!(told.get("content-type"), kind);
    }
    let ended = world.cp(&[&file], "s3://nowhere/k", &plain);
    assert_eq!(ended.counts(), [0, 0, 0, 1]);
    assert!(
        ended.why(&file).contains("there is no bucket nowhere"),
        "{:?}",
        ended.failed
    );
    assert!(world.settings.attributes.set("x\r\ny", "z").is_err());
    assert!(world.settings.attributes.set("x", "z\r\nw: v").is_err());
}

#[test]
fn a_stop_leaves_no_open_upload() {
    let world = World::new();
    // Sparse, and far more than can be sent before the stop.
    let file = std::fs::File::create(world.path("big")).unwrap();
    file.set_len(4 << 30).unwrap();
    let flag = Arc::new(AtomicBool::new(false));
    let stop = Stop::at(Arc::clone(&flag));
    let ended = std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            let big = world.text("big");
            world.stopped_cp(&[&big], "s3://bkt/big", &CopySettings::default(), &stop)
        });
        while world.server.open_uploads() == 0 {
            std::thread::yield_now();
        }
        flag.store(true, Ordering::Relaxed);
        run.join().unwrap()
    });
    assert_eq!(ended.result.unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(world.server.open_uploads(), 0);
    assert_eq!(world.get("big"), None);
}
