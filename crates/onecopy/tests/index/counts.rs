//! What is counted is what the reader of samples finds.

use std::io::Write as _;

use onecopy::sample::{Duplicates, KeyRule, SampleOptions};
use onecopy_testkit::tar::{Header, TarWriter, field};
use proptest::prelude::*;

use crate::world::{World, hold, samples_from, shard};

/// Long enough that what lies between two headers is not read.
const LONG: usize = 200_000;

/// A tar with something between the samples, in every dialect.
fn odd_tar() -> Vec<u8> {
    let mut tar = TarWriter::new();
    tar.folder("train/");
    tar.file("__index__.json", b"{}");
    tar.file("train/a.jpg", &vec![1; LONG]);
    tar.file("train/a.cls", b"1");
    tar.folder("train/more/");
    tar.file("train/._b.jpg", b"xattr");
    tar.gnu_long_name_file(
        &format!("train/{}/b.jpg", "long".repeat(40)),
        &vec![2; LONG],
    );
    tar.file("README", b"no sample");
    let path = format!("train/{}/c.left.jpg", "pax".repeat(60));
    tar.pax_file(&[("path", &path)], "short", b"");
    let size = LONG.to_string();
    tar.pax_file(
        &[("size", &size), ("path", "d.jpg")],
        "d.jpg",
        &vec![3; LONG],
    );
    let mut header = Header::v7("e.jpg", 5);
    header.set_size_base256(5).seal();
    tar.member(&header, b"12345");
    let mut link = Header::ustar("f.jpg", 0);
    link.set(field::KIND, b"2").seal();
    tar.member(&link, b"");
    tar.file("g.jpg", &vec![4; 700]);
    tar.file(".hidden.jpg", b"x");
    tar.finish()
}

#[test]
fn every_dialect_and_what_lies_between_samples() {
    let world = World::new();
    let bytes = odd_tar();
    let path = world.write("odd.tar", &bytes);
    let ended = world.index(&[&path]);
    let options = SampleOptions::default();
    let samples = samples_from(&path, &bytes, 0, &options).unwrap().len() as u64;
    assert_eq!((ended.counts(), samples), ([1, 6, 0, 0], 6));
    hold(&world.read("odd.idx").unwrap(), &bytes, &options);
    let index = world.local("index.json");
    assert_eq!(index.key_rule, Some(KeyRule::FirstDot));
    let entry = &index.shards[0];
    assert_eq!((entry.name.as_str(), entry.samples), ("odd.tar", 6));
    assert_eq!(entry.len_bytes, Some(bytes.len() as u64));
    assert_eq!(entry.offsets.as_deref(), Some("odd.idx"));
    // The link, the long ones in part: what was read is less than what is there.
    let summary = ended.result.unwrap();
    assert!(summary.read_bytes < bytes.len() as u64 / 4, "{summary:?}");
    assert_eq!(summary.ledger.warnings["link_member"], 1);
    assert_eq!(summary.ledger.warnings["apple_double"], 1);
}

#[test]
fn offsets_are_those_that_wds2idx_writes() {
    let world = World::new();
    let path = world.write("a.tar", &shard("x/", 2, 600));
    assert_eq!(world.index(&[&path]).counts(), [1, 2, 0, 0]);
    let text = String::from_utf8(world.read("a.idx").unwrap()).unwrap();
    assert_eq!(
        text,
        "v1.2 2\nbin 512 600 x/0000.bin cls 2048 1 x/0000.cls\nbin 3072 600 x/0001.bin cls 4608 1 x/0001.cls\n"
    );
}

#[test]
fn a_shard_that_cannot_be_begun_in_the_middle_has_a_count_and_no_offsets() {
    let world = World::new();
    let plain = shard("", 20, 3000);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&plain).unwrap();
    world.write("a.tar.gz", &gzip.finish().unwrap());
    world.write("b.tar.zst", &zstd::encode_all(&plain[..], 1).unwrap());
    // The size of what follows stands at the front only.
    let mut tar = TarWriter::new();
    tar.pax_global(&[("size", "600")]);
    tar.member(&Header::ustar("c.jpg", 0), &[1; 600]);
    tar.member(&Header::ustar("d.jpg", 0), &[2; 600]);
    world.write("c.tar", &tar.finish());
    // One that says nothing of the members does no harm.
    let mut tar = TarWriter::new();
    tar.pax_global(&[("comment", "5f3c")]);
    tar.file("e.jpg", &[1; 600]);
    tar.file("f.jpg", &[1; 600]);
    let harmless = tar.finish();
    world.write("d.tar", &harmless);
    let ended = world.index(&[&world.path("")]);
    assert_eq!(ended.counts(), [4, 44, 0, 0]);
    let index = world.local("index.json");
    let offsets: Vec<_> = index
        .shards
        .iter()
        .map(|shard| shard.offsets.as_deref())
        .collect();
    assert_eq!(offsets, [None, None, None, Some("d.idx")]);
    assert_eq!(ended.result.unwrap().without_offsets, 3);
    hold(
        &world.read("d.idx").unwrap(),
        &harmless,
        &SampleOptions::default(),
    );
    assert!(world.read("c.idx").is_none());
}

#[test]
fn keys_and_duplicates_are_as_told() {
    let mut world = World::new();
    let mut tar = TarWriter::new();
    tar.file("Track 2.0.mp3", b"1");
    tar.file("Track 2.5.mp3", b"2");
    tar.file("Track 2.5.MP3", b"3");
    let bytes = tar.finish();
    let path = world.write("t.tar", &bytes);
    world.settings.options.key_rule = KeyRule::LastDot;
    let ended = world.index(&[&path]);
    assert_eq!(ended.counts(), [0, 0, 0, 1]);
    assert!(
        ended.failed[&path].1.contains("twice"),
        "{:?}",
        ended.failed
    );
    for duplicates in [Duplicates::First, Duplicates::Last] {
        world.settings.options.duplicates = duplicates;
        world.settings.is_forced = true;
        assert_eq!(world.index(&[&path]).counts(), [1, 2, 0, 0]);
        hold(
            &world.read("t.idx").unwrap(),
            &bytes,
            &world.settings.options,
        );
    }
    assert_eq!(world.local("index.json").key_rule, Some(KeyRule::LastDot));
}

/// A tar of members with the given names and lengths, each in the dialect that `dialect` names.
fn tar_of(members: &[(u8, usize)], dialect: usize) -> Vec<u8> {
    let mut tar = TarWriter::new();
    for (number, &(kind, len)) in members.iter().enumerate() {
        let content = vec![kind; len];
        let name = format!("d.x/{:04}.f{number}", number / 3);
        match kind % 7 {
            0 => tar.folder("d.x/"),
            1 => {
                tar.file(&format!("d.x/._{number}.jpg"), &content[..len.min(600)]);
            }
            2 => {
                tar.file("README", b"1");
            }
            3 => tar.pax_global(&[("comment", "1")]),
            _ => {}
        }
        match (dialect + number) % 5 {
            0 => {
                tar.file(&name, &content);
            }
            1 => {
                tar.gnu_long_name_file(&name, &content);
            }
            2 => {
                tar.pax_file(
                    &[("path", &name), ("size", &len.to_string())],
                    "x",
                    &content,
                );
            }
            3 => {
                tar.member(&Header::v7(&name, len as u64), &content);
            }
            _ => {
                let mut header = Header::gnu(&name, 0);
                header.set_size_base256(len as u64).seal();
                tar.member(&header, &content);
            }
        }
    }
    tar.finish()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    #[test]
    fn any_tar_has_as_many_samples_as_the_reader_finds(
        members in prop::collection::vec((any::<u8>(), prop_oneof![0..2000_usize, 100_000..300_000_usize]), 1..12),
        dialect in 0..5_usize,
        memory in prop_oneof![Just(4096_usize), Just(1 << 20)],
    ) {
        let mut world = World::new();
        world.settings.memory_bytes = Some(memory);
        let bytes = tar_of(&members, dialect);
        let path = world.write("t.tar", &bytes);
        let ended = world.index(&[&path]);
        let options = SampleOptions::default();
        let samples = samples_from(&path, &bytes, 0, &options).unwrap().len() as u64;
        prop_assert_eq!(ended.counts(), [1, samples, 0, 0]);
        hold(&world.read("t.idx").unwrap(), &bytes, &options);
    }
}
