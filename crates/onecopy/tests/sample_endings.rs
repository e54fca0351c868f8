//! How shards end that do not end well: what is raised, counted and logged, each once.
#![expect(clippy::disallowed_methods, reason = "test input, not payload")]

mod sample_support;

use onecopy::buffer::Slice;
use onecopy::config::OnError;
use onecopy::sample::SampleOptions;
use onecopy::{Error, ErrorKind};
use sample_support::*;

/// A whole object that was cut before it was stored: the length proves nothing. Cut at, samples, error, what the ledger
/// counts, lost samples and shards, and the lines of the log.
type Stored = (
    usize,
    &'static str,
    (ErrorKind, &'static str),
    &'static str,
    (u64, u64),
    &'static [&'static str],
);

const STORED: [Stored; 5] = [
    (
        0,
        "",
        (
            ErrorKind::Corrupt,
            "could not read s3://b/t.tar: the object is empty (0 bytes); no member before it is good",
        ),
        "skipped:corrupt=1",
        (0, 1),
        &["shard given up (corrupt): "],
    ),
    (
        511,
        "",
        (
            ErrorKind::Truncated,
            "could not read the tar from byte 0 of s3://b/t.tar: the header is cut: 511 of 512 bytes; no member before it is good",
        ),
        "skipped:truncated=1",
        (0, 1),
        &["shard given up (truncated): "],
    ),
    (
        512,
        "",
        (
            ErrorKind::Truncated,
            "could not read the tar from byte 512 of s3://b/t.tar: member \"a.txt\" is cut: 0 of 600 bytes; no member before it is good",
        ),
        "skipped:truncated=2",
        (1, 1),
        &[
            "sample left out (truncated): could not read the sample \"a\" at byte 0 of s3://b/t.tar: key \"a\" lacks its field \"txt\": member \"a.txt\" is cut: 0 of 600 bytes",
            "shard given up (truncated): ",
        ],
    ),
    (
        1535,
        "a:txt",
        (
            ErrorKind::Truncated,
            "could not read the tar from byte 1535 of s3://b/t.tar: the padding of a member is cut: 423 of 424 bytes; the last good member is \"a.txt\"",
        ),
        "skipped:truncated=1",
        (0, 1),
        &["shard given up (truncated): "],
    ),
    (
        1536,
        "a:txt",
        (
            ErrorKind::Truncated,
            "could not read the tar from byte 1536 of s3://b/t.tar: the shard ends at a member border without the end-of-archive mark, so it may have been cut there; the last good member is \"a.txt\"",
        ),
        "missing_eof=1",
        (0, 0),
        &["shard taken (missing_eof): "],
    ),
];

#[test]
fn an_object_that_was_stored_cut_is_told_or_counted_and_logged_once() {
    for (len, samples, (kind, text), counted, lost, lines) in STORED {
        let read = |policy| logged(|| read_with(&f3()[..len], options(policy)));
        let (raised, log) = read(OnError::Raise);
        assert_eq!(raised.told(), samples, "{len}");
        let error = raised.error.as_ref().unwrap();
        assert_eq!((error.kind(), &*error.to_string()), (kind, text), "{len}");
        assert!(error.help().is_some(), "{len}");
        assert_eq!((raised.counted(), log), Default::default(), "{len}");
        let (skipped, log) = read(OnError::Skip);
        assert_eq!((skipped.told(), log), (samples.into(), Vec::new()), "{len}");
        let (warned, log) = read(OnError::Warn);
        assert_eq!(warned.told(), samples, "{len}");
        for outcome in [skipped, warned] {
            assert_eq!(outcome.error_text(), "", "{len}");
            assert_eq!(
                (&*outcome.counted(), outcome.lost()),
                (counted, lost),
                "{len}"
            );
        }
        // The last line is the shard's, and says what the error says.
        let mut expected: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
        if let Some(last) = expected.last_mut() {
            last.push_str(text);
        }
        assert_eq!(log, expected, "{len}");
    }
}

#[test]
fn the_end_mark_is_asked_for_behind_the_last_of_joined_archives() {
    let both = [f3(), Tar::new().file("d.txt", b"d").0].concat();
    let ignoring = |on_error| SampleOptions {
        ignore_zeros: true,
        ..options(on_error)
    };
    let raised = read_with(&both, ignoring(OnError::Raise));
    assert_eq!(raised.told(), "a:txt b:txt c:txt d:txt");
    assert!(raised.error_text().contains("end-of-archive"));
    let skipped = read_with(&both, ignoring(OnError::Skip));
    assert_eq!(skipped.counted(), "missing_eof=1");
}

#[test]
fn names_in_a_log_stay_on_their_line() {
    let tar = Tar::new().file("a\u{1b}[2J\n.txt", &[1; 600]).0;
    let (outcome, log) = logged(|| read_with(&tar[..600], options(OnError::Warn)));
    assert_eq!(outcome.lost(), (1, 1));
    assert_eq!(log.len(), 2);
    for line in log {
        assert!(
            !line.contains(char::is_control) && line.contains("u{1b}"),
            "{line}"
        );
    }
}

#[test]
fn a_sample_that_is_refused_for_several_members_is_logged_once() {
    let tar = Tar::new()
        .file("a.1", &[1; 3000])
        .file("a.2", &[1; 3000])
        .file("a.3", &[1; 3000])
        .file("b.1", b"b")
        .end();
    let small = SampleOptions {
        max_sample_bytes: 3000,
        ..options(OnError::Warn)
    };
    let (outcome, log) = logged(|| read_with(&tar, small));
    assert_eq!((&*outcome.told(), outcome.lost()), ("b:1", (1, 0)));
    assert_eq!(log.len(), 1);
    let start = "sample left out (sample_too_large): could not read the sample \"a\" at byte 3584 of s3://b/t.tar: ";
    assert!(log[0].starts_with(start), "{log:?}");
}

#[test]
fn a_failing_store_is_told_as_it_is_and_skipped_where_asked() {
    let pieces_of = |len: usize, kind| {
        vec![
            Ok(Slice::from_vec(f3()[..len].to_vec())),
            Err(Error::new(kind, "read", "s3://b/t.tar", "no route")),
        ]
    };
    let pieces = |kind| pieces_of(2000, kind);
    let outcome = read_pieces(
        pieces(ErrorKind::Unreachable),
        None,
        options(OnError::Raise),
    );
    assert_eq!(outcome.told(), "a:txt");
    assert_eq!(outcome.error.unwrap().kind(), ErrorKind::Unreachable);
    let outcome = read_pieces(pieces(ErrorKind::Unreachable), None, options(OnError::Skip));
    assert_eq!(outcome.counted(), "skipped:unreachable=1");
    assert_eq!(outcome.lost(), (0, 1));
    let in_a_member = pieces_of(2100, ErrorKind::Denied);
    let outcome = read_pieces(in_a_member, None, options(OnError::Skip));
    assert_eq!(outcome.counted(), "skipped:denied=2");
    assert_eq!(outcome.lost(), (1, 1));
    let outcome = read_pieces(pieces(ErrorKind::Cancelled), None, options(OnError::Skip));
    assert_eq!(outcome.lost(), (0, 0));
    assert_eq!(outcome.error.unwrap().kind(), ErrorKind::Cancelled);
}

#[test]
fn a_sample_with_a_broken_member_is_not_given_out_in_part() {
    let tar = Tar::new()
        .file("a.jpg", b"a")
        .file("b.jpg", b"b")
        .file("b.txt", &[1; 600])
        .end();
    let outcome = skip(&tar[..1024 + 1024 + 512 + 100]);
    assert_eq!(outcome.told(), "a:jpg");
    assert_eq!(outcome.counted(), "skipped:truncated=2");
    assert_eq!(outcome.lost(), (1, 1));
}
