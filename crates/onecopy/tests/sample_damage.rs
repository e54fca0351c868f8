//! Archive damage: each numbered input with what has to come of it. No sample may be lost in silence.
#![expect(clippy::disallowed_methods, reason = "test input, not payload")]

mod sample_support;

use onecopy::buffer::Slice;
use onecopy::config::OnError;
use onecopy::sample::SampleOptions;
use onecopy::{Error, ErrorKind};
use sample_support::*;

struct Case {
    number: &'static str,
    bytes: Vec<u8>,
    len_bytes: Option<u64>,
    samples: &'static str,
    error: Option<(ErrorKind, &'static [&'static str])>,
    /// With `on_error = "raise"`.
    counted: &'static str,
    /// With `on_error = "skip"`.
    skipped: &'static str,
    /// With `on_error = "skip"`: samples and shards.
    lost: (u64, u64),
}

fn case(
    number: &'static str,
    bytes: Vec<u8>,
    samples: &'static str,
    error: Option<(ErrorKind, &'static [&'static str])>,
    counted: &'static str,
    skipped: &'static str,
) -> Case {
    Case {
        number,
        len_bytes: Some(bytes.len() as u64),
        bytes,
        samples,
        error,
        counted,
        skipped,
        // Most damage loses the rest of the shard and no sample that is known.
        lost: (0, u64::from(skipped.starts_with("skipped:"))),
    }
}

/// Damage within a member: its sample is known to be lost.
fn in_member(case: Case) -> Case {
    Case {
        lost: (1, 1),
        skipped: "skipped:truncated=2",
        ..case
    }
}

fn flipped(mut bytes: Vec<u8>, at: usize) -> Vec<u8> {
    bytes[at] ^= 0xff;
    bytes
}

fn joined(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

fn cut_cases() -> Vec<Case> {
    use ErrorKind::{Corrupt, Truncated};
    let f3 = f3();
    let cut = |len: usize| f3[..len].to_vec();
    let promised = |number, len: usize, text: &'static [&'static str]| Case {
        len_bytes: Some(10240),
        ..case(
            number,
            cut(len),
            if len < 512 + 600 { "" } else { "a:txt" },
            Some((Truncated, text)),
            "",
            "skipped:truncated=1",
        )
    };
    vec![
        promised(
            "3",
            1536,
            &["1536..10240", "after 1536 of 10240 bytes", "is \"a.txt\""],
        ),
        promised("cut 0", 0, &["after 0 of 10240 bytes"]),
        promised("cut 511", 511, &["after 511 of 10240 bytes"]),
        in_member(promised("cut 512", 512, &["after 512 of 10240 bytes"])),
        promised("cut 1535", 1535, &["after 1535 of 10240 bytes"]),
        case(
            "4",
            cut(1636),
            "a:txt",
            Some((
                Truncated,
                &["byte 1536", "header is cut: 100 of 512", "\"a.txt\""],
            )),
            "",
            "skipped:truncated=1",
        ),
        in_member(case(
            "5",
            cut(2148),
            "a:txt",
            Some((
                Truncated,
                &["member \"b.txt\" is cut: 100 of 600", "is \"a.txt\""],
            )),
            "",
            "skipped:truncated=1",
        )),
        case(
            "cut in the padding",
            cut(1535),
            "a:txt",
            Some((Truncated, &["padding of a member is cut", "byte 1535"])),
            "",
            "skipped:truncated=1",
        ),
        case(
            "cut in the first header",
            cut(511),
            "",
            Some((Truncated, &["byte 0", "511 of 512", "no member before"])),
            "",
            "skipped:truncated=1",
        ),
        case(
            "7",
            cut(4608),
            "a:txt b:txt c:txt",
            Some((Truncated, &["byte 4608", "end-of-archive", "is \"c.txt\""])),
            "",
            "missing_eof=1",
        ),
        case(
            "8",
            cut(5120),
            "a:txt b:txt c:txt",
            None,
            "missing_eof=1",
            "missing_eof=1",
        ),
        case(
            "8 with half a block",
            cut(5000),
            "a:txt b:txt c:txt",
            None,
            "missing_eof=1",
            "missing_eof=1",
        ),
        case(
            "11",
            vec![0; 10240],
            "",
            None,
            "empty_shard=1",
            "empty_shard=1",
        ),
        case(
            "12",
            Vec::new(),
            "",
            Some((Corrupt, &["the object is empty", "s3://b/t.tar"])),
            "",
            "skipped:corrupt=1",
        ),
        Case {
            len_bytes: None,
            ..case(
                "12 of unknown length",
                Vec::new(),
                "",
                Some((Corrupt, &["the object is empty"])),
                "",
                "skipped:corrupt=1",
            )
        },
        Case {
            len_bytes: Some(4608),
            ..case(
                "more than promised",
                f3.clone(),
                "",
                Some((ErrorKind::Changed, &["more bytes came than its 4608"])),
                "",
                "skipped:changed=1",
            )
        },
    ]
}

fn content_cases() -> Vec<Case> {
    use ErrorKind::Corrupt;
    let f3 = f3();
    let page = b"<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>";
    let f1 = Tar::new().file("d.txt", b"d").end();
    let middle = joined(&[&f3[..1536], &[0; 512], &f3[1536..]]);
    vec![
        case(
            "1",
            flipped(f3.clone(), 1536),
            "a:txt",
            Some((
                Corrupt,
                &[
                    "s3://b/t.tar",
                    "byte 1536",
                    "bad header checksum",
                    "is \"a.txt\"",
                ],
            )),
            "",
            "skipped:bad_header_checksum=1",
        ),
        case(
            "2",
            flipped(f3.clone(), 0),
            "",
            Some((Corrupt, &["byte 0", "bad header checksum", "no member"])),
            "",
            "skipped:bad_header_checksum=1",
        ),
        case(
            "9",
            joined(&[&f3, &f1]),
            "a:txt b:txt c:txt",
            Some((
                Corrupt,
                &[
                    "data after the end-of-archive mark",
                    "byte 10240",
                    "archives joined by cat",
                ],
            )),
            "",
            "skipped:data_after_end=1",
        ),
        case(
            "10",
            middle,
            "a:txt",
            Some((Corrupt, &["zeros in the middle", "byte 1536"])),
            "",
            "skipped:zeros_in_the_middle=1",
        ),
        case(
            "13",
            page.to_vec(),
            "",
            Some((
                Corrupt,
                &["not a tar: looks like an answer of S3: AccessDenied"],
            )),
            "",
            "skipped:not_a_tar=1",
        ),
        case(
            "13 longer than a block",
            joined(&[b"\n <!DOCTYPE html>", &[b'p'; 2000]]),
            "",
            Some((Corrupt, &["not a tar: looks like XML or HTML"])),
            "",
            "skipped:not_a_tar=1",
        ),
        case(
            "14",
            joined(&[b"download: 's3://b/d.tar' -> '-' [1 of 1]\n", &f3]),
            "",
            Some((Corrupt, &["text before the tar: a line of 40 bytes"])),
            "",
            "skipped:not_a_tar=1",
        ),
        case(
            "a zip",
            joined(&[b"PK\x03\x04", &[7; 600]]),
            "",
            Some((Corrupt, &["looks like zip"])),
            "",
            "skipped:not_a_tar=1",
        ),
        case(
            "29 sparse",
            Tar::new()
                .file("a.txt", b"a")
                .raw(Header::new(b"b.txt", 0).flag(b'S'), b"")
                .end(),
            "a:txt",
            Some((ErrorKind::Unsupported, &["sparse", "byte 1024"])),
            "",
            "skipped:unsupported_member=1",
        ),
        case(
            "an extended header without its member",
            Tar::new()
                .file("a.txt", b"a")
                .long_name(b'L', "b.txt")
                .end(),
            "a:txt",
            Some((
                ErrorKind::Truncated,
                &["extended header announces is missing"],
            )),
            "",
            "skipped:truncated=1",
        ),
    ]
}

#[test]
fn every_damage_is_an_error_with_offset_and_last_good_member() {
    for case in cut_cases().into_iter().chain(content_cases()) {
        let pieces = vec![Ok(Slice::from_vec(case.bytes.clone()))];
        let outcome = read_pieces(pieces, case.len_bytes, SampleOptions::default());
        let number = case.number;
        assert_eq!(outcome.told(), case.samples, "case {number}");
        assert_eq!(outcome.counted(), case.counted, "case {number}");
        let text = outcome.error_text();
        match case.error {
            None => assert_eq!(text, "", "case {number}"),
            Some((kind, parts)) => {
                assert_eq!(
                    outcome.error.as_ref().map(Error::kind),
                    Some(kind),
                    "case {number}: {text}"
                );
                for part in parts {
                    assert!(text.contains(part), "case {number}: {part:?} in {text}");
                }
                assert!(text.contains("help: "), "case {number}: {text}");
            }
        }
    }
}

#[test]
fn every_damage_is_counted_where_it_is_to_be_skipped() {
    for policy in [OnError::Skip, OnError::Warn] {
        for case in cut_cases().into_iter().chain(content_cases()) {
            let pieces = vec![Ok(Slice::from_vec(case.bytes.clone()))];
            let outcome = read_pieces(pieces, case.len_bytes, options(policy.clone()));
            assert_eq!(outcome.error_text(), "", "case {}", case.number);
            assert_eq!(outcome.told(), case.samples, "case {}", case.number);
            assert_eq!(outcome.counted(), case.skipped, "case {}", case.number);
            assert_eq!(outcome.lost(), case.lost, "case {}", case.number);
        }
    }
}

#[test]
fn case_9_goes_on_behind_the_end_where_asked() {
    let both = joined(&[&f3(), &Tar::new().file("d.txt", b"d").end()]);
    let ignoring = SampleOptions {
        ignore_zeros: true,
        ..SampleOptions::default()
    };
    let outcome = read_with(&both, ignoring.clone());
    assert_eq!(outcome.told(), "a:txt b:txt c:txt d:txt");
    assert_eq!(
        (outcome.counted(), outcome.error_text()),
        Default::default()
    );
    let middle = joined(&[&f3()[..1536], &[0; 512], &f3()[1536..]]);
    assert_eq!(read_with(&middle, ignoring).told(), "a:txt b:txt c:txt");
}
