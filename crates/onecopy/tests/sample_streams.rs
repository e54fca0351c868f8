//! Compressed shards, pieces of any size, and how early a sample comes out.
#![expect(clippy::unwrap_used, reason = "tests")]

mod sample_support;

use std::cell::Cell;
use std::io::Write as _;
use std::sync::Arc;

use onecopy::ErrorKind;
use onecopy::buffer::Slice;
use onecopy::ledger::Ledger;
use onecopy::sample::{SampleOptions, SampleReader};
use sample_support::*;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    // With a checksum, as the command line tool writes.
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn hop_bytes(ledger: &Ledger, hop: &str) -> u64 {
    let report = ledger.report();
    let found = report.hops.iter().find(|counted| counted.hop == hop);
    found.map_or(0, |counted| counted.bytes)
}

#[test]
fn case_15_compression_is_told_by_magic_whatever_the_name() {
    let f3 = f3();
    let halves = |pack: fn(&[u8]) -> Vec<u8>| [pack(&f3[..2000]), pack(&f3[2000..])].concat();
    let skippable = [
        &[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3][..],
        &zstd(&f3),
    ]
    .concat();
    let cases = [
        ("gzip", gzip(&f3)),
        ("gzip of two members", halves(gzip)),
        ("zstd", zstd(&f3)),
        ("zstd of two frames", halves(zstd)),
        ("zstd behind a skippable frame", skippable),
    ];
    for (name, packed) in cases {
        for lens in [&[usize::MAX][..], &[1], &[7, 100]] {
            let len = Some(packed.len() as u64);
            let outcome = read_pieces(strangers(&packed, lens), len, SampleOptions::default());
            assert_eq!(outcome.error_text(), "", "{name}");
            assert_eq!(outcome.told(), "a:txt b:txt c:txt", "{name}");
            let counted = hop_bytes(&outcome.ledger, "inflate");
            assert_eq!(counted, packed.len() as u64, "{name}");
            assert_eq!(hop_bytes(&outcome.ledger, "straddle"), 0, "{name}");
        }
    }
}

#[test]
fn damage_in_a_compressed_shard_is_an_error_wherever_it_is() {
    let f3 = f3();
    for packed in [gzip(&f3), zstd(&f3)] {
        for len in 0..packed.len() {
            let outcome = read(&packed[..len]);
            assert!(outcome.error.is_some(), "cut at {len} of {}", packed.len());
            let outcome = skip(&packed[..len]);
            assert!(outcome.counted().contains("skipped:"), "cut at {len}");
        }
        let mut damaged = packed.clone();
        let checksum_at = packed.len() - if packed[0] == 0x1f { 8 } else { 4 };
        damaged[checksum_at] ^= 1;
        let outcome = read(&damaged);
        assert_eq!(outcome.error.as_ref().unwrap().kind(), ErrorKind::Corrupt);
        assert!(outcome.error_text().contains("inflate ("));
        let surplus = [&packed[..], b"more"].concat();
        assert!(read(&surplus).error.is_some());
    }
}

#[test]
fn a_shard_shorter_than_promised_is_truncated_also_where_it_is_compressed() {
    let packed = gzip(&f3());
    let pieces = strangers(&packed, &[usize::MAX]);
    let promised = Some(packed.len() as u64 + 1);
    let outcome = read_pieces(pieces, promised, SampleOptions::default());
    assert_eq!(outcome.told(), "a:txt b:txt c:txt");
    assert_eq!(outcome.error.unwrap().kind(), ErrorKind::Truncated);
}

#[test]
fn other_compressions_are_named() {
    for (magic, name) in [(&b"BZh91AY"[..], "bzip2"), (b"\xfd7zXZ\0", "xz")] {
        let outcome = read(&[magic, &[9; 600]].concat());
        assert!(outcome.error_text().contains(name));
    }
}

#[test]
fn members_in_one_slice_or_in_neighbours_are_not_copied() {
    let f3 = f3();
    for len in [100, 512, 777, 1536, 4096] {
        let outcome = read_pieces(neighbours(&f3, len), None, SampleOptions::default());
        assert_eq!(outcome.told(), "a:txt b:txt c:txt");
        assert_eq!(hop_bytes(&outcome.ledger, "straddle"), 0, "pieces of {len}");
    }
}

#[test]
fn a_member_that_crosses_strangers_is_copied_once_and_counted() {
    let f3 = f3();
    let outcome = read_pieces(
        strangers(&f3, &[512 + 100, 200, usize::MAX]),
        None,
        SampleOptions::default(),
    );
    assert_eq!(outcome.told(), "a:txt b:txt c:txt");
    assert_eq!(&*outcome.samples[0].fields[0].bytes, &[b'x'; 600]);
    assert_eq!(hop_bytes(&outcome.ledger, "straddle"), 600);
}

#[test]
fn a_sample_comes_as_soon_as_the_next_header_is_there() {
    let f3 = f3();
    let pulled = Cell::new(0);
    let pieces = f3.chunks(512).map(|block| {
        pulled.set(pulled.get() + 1);
        Ok(Slice::from_vec(Vec::from(block)))
    });
    let mut reader = SampleReader::new(
        Arc::from("t"),
        Some(f3.len() as u64),
        pieces,
        SampleOptions::default(),
        &Ledger::unread(),
    );
    assert_eq!(pulled.get(), 0);
    // A header, two blocks of content, the next header.
    for (key, blocks) in [("a", 4), ("b", 7)] {
        assert_eq!(reader.next().unwrap().unwrap().key, key);
        assert_eq!(pulled.get(), blocks);
    }
}

#[test]
fn empty_slices_between_others_mean_nothing() {
    let mut pieces = vec![Ok(Slice::empty())];
    for piece in strangers(&f3(), &[300]) {
        pieces.push(piece);
        pieces.push(Ok(Slice::empty()));
    }
    let outcome = read_pieces(pieces, Some(10240), SampleOptions::default());
    assert_eq!(outcome.told(), "a:txt b:txt c:txt");
}
