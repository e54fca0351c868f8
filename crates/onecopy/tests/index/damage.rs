//! Damage is told as the reader of samples tells it.

use onecopy::config::OnError;
use onecopy::sample::SampleOptions;
use onecopy::{ErrorKind, sample::index::DatasetIndex};
use onecopy_testkit::tar::{Header, TarWriter, field};

use crate::world::{World, samples_from, shard};

fn tar(build: impl FnOnce(&mut TarWriter)) -> TarWriter {
    let mut tar = TarWriter::new();
    tar.file("a.jpg", &vec![1; 200_000]);
    tar.file("b.jpg", &[2; 700]);
    build(&mut tar);
    tar
}

/// Shards that are wrong, each in its way.
fn damaged() -> Vec<(&'static str, Vec<u8>)> {
    let whole = tar(|_| {}).finish();
    let mut sum = whole.clone();
    let second = whole.len() - 1024 - 1024 - 512;
    sum[second + 10] ^= 1;
    let mut zeros = whole.clone();
    zeros[second..second + 512].fill(0);
    let mut sparse = Header::gnu("c.jpg", 0);
    sparse.set(field::KIND, b"S").seal();
    vec![
        ("checksum", sum),
        ("zeros", zeros),
        ("cut in a member", whole[..100_000].into()),
        ("cut in padding", whole[..second - 100].into()),
        ("cut in a header", whole[..second + 100].into()),
        ("no end mark", tar(|_| {}).cut()),
        ("data behind", [&whole[..], b"x"].concat()),
        (
            "key again",
            tar(|tar| {
                tar.file("a.cls", b"1");
            })
            .finish(),
        ),
        (
            "twice",
            tar(|tar| {
                tar.file("b.JPG", b"1");
            })
            .finish(),
        ),
        (
            "sparse",
            tar(|tar| {
                tar.member(&sparse, b"");
            })
            .finish(),
        ),
        (
            "size",
            tar(|tar| {
                tar.member(&Header::ustar("c.x", 1 << 50), b"");
            })
            .finish(),
        ),
        ("page", b"<html>no</html>".into()),
        ("empty", Vec::new()),
        ("gzip", b"\x1f\x8b\x08\0".into()),
    ]
}

#[test]
fn every_kind_of_damage_is_told_as_the_reader_tells_it() {
    let world = World::new();
    // The loader has a limit that an index has not.
    let options = SampleOptions {
        max_sample_bytes: u64::MAX,
        ..SampleOptions::default()
    };
    for (name, bytes) in damaged() {
        world.write(&format!("{name}.tar"), &bytes);
        world.put(&format!("{name}.tar"), bytes);
    }
    world.write("good.tar", &shard("", 3, 10));
    world.put("good.tar", shard("", 3, 10));
    let count = damaged().len() as u64;
    for (place, prefix) in [
        (world.path(""), world.path("")),
        ("s3://bkt/".to_owned(), "s3://bkt/".to_owned()),
    ] {
        let ended = world.index(&[&place]);
        assert_eq!(ended.counts(), [1, 3, 0, count], "{place}");
        for (name, bytes) in damaged() {
            let url = format!("{prefix}{name}.tar");
            let error = samples_from(&url, &bytes, 0, &options).unwrap_err();
            assert_eq!(
                ended.failed[&url],
                (error.kind(), error.to_string()),
                "{name}"
            );
        }
    }
    for name in ["index.json", "checksum.idx"] {
        assert!(
            world.read(name).is_none() && world.get(name).is_none(),
            "{name}"
        );
    }
    let kept = world.local("index.json.part");
    assert_eq!(kept.shards.len(), 1, "{kept:?}");
}

#[test]
fn what_is_left_of_a_shard_is_counted_where_damage_is_passed_over() {
    let mut world = World::new();
    world.settings.options.on_error = OnError::Skip;
    let mut left_out = 0;
    for (name, bytes) in damaged() {
        let path = world.write(&format!("{name}.tar"), &bytes);
        let options = SampleOptions {
            on_error: OnError::Skip,
            max_sample_bytes: u64::MAX,
            ..SampleOptions::default()
        };
        left_out += samples_from(&path, &bytes, 0, &options).unwrap().len() as u64;
    }
    let ended = world.index(&[&world.path("")]);
    let count = damaged().len() as u64;
    assert_eq!(ended.counts(), [count, left_out, 0, 0]);
    let index = world.local("index.json");
    let with_offsets: Vec<_> = index
        .shards
        .iter()
        .filter(|shard| shard.offsets.is_some())
        .collect();
    // Only of the one that lacks nothing but its end mark.
    assert_eq!(with_offsets.len(), 1, "{with_offsets:?}");
    assert_eq!(with_offsets[0].name, "no end mark.tar");
    assert!(!ended.result.unwrap().ledger.skipped.is_empty());
}

#[test]
fn a_store_that_does_not_answer_is_never_passed_over() {
    let mut world = World::new();
    world.settings.options.on_error = OnError::Skip;
    world.put("a.tar", shard("", 3, 10));
    let ended = world.index(&["s3://bkt/a.tar", "s3://bkt/missing.tar"]);
    assert_eq!(ended.counts(), [1, 3, 0, 1]);
    assert_eq!(ended.failed["s3://bkt/missing.tar"].0, ErrorKind::NotFound);
}

#[test]
fn an_index_is_left_as_it_was_where_shards_fail_later() {
    let world = World::new();
    world.put("t/a.tar", shard("a", 3, 10));
    world.put("t/b.tar", shard("b", 2, 10));
    assert_eq!(world.index(&["s3://bkt/t/"]).counts(), [2, 5, 0, 0]);
    let before = world.get("t/index.json").unwrap();
    world.put("t/b.tar", b"no tar".into());
    let ended = world.index(&["s3://bkt/t/"]);
    assert_eq!(ended.counts(), [1, 3, 1, 1]);
    assert!(world.get("t/index.json").unwrap() == before);
    let index = DatasetIndex::read_wids("i", &before).unwrap();
    let error = index.matched(&[world.object("t/a.tar"), world.object("t/b.tar")]);
    assert_eq!(error.unwrap_err().target(), "s3://bkt/t/b.tar");
    world.put("t/b.tar", shard("b", 4, 10));
    assert_eq!(world.index(&["s3://bkt/t/"]).counts(), [2, 7, 1, 0]);
    let index = world.remote("t/index.json");
    let objects = [world.object("t/b.tar"), world.object("t/a.tar")];
    let found = index.matched(&objects).unwrap();
    assert_eq!([found[0].samples, found[1].samples], [4, 3]);
    assert!(world.get("t/index.json.part").is_none());
}
