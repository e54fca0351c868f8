//! Names and grouping: each numbered list of names with the samples that have to come of it.

mod sample_support;

use onecopy::ErrorKind;
use onecopy::config::OnError;
use onecopy::sample::{Duplicates, KeyRule, SampleOptions};
use sample_support::*;

#[test]
fn names_in_order_become_samples() {
    let cases: &[(&str, &[&str], &str, &str)] = &[
        (
            "34",
            &["./._a.jpg", "./a.jpg", "./._a.txt", "./a.txt"],
            "./a:jpg,txt",
            "apple_double=2",
        ),
        (
            "35",
            &["dir/._a.jpg", "dir/a.jpg", "dir/._a.txt", "dir/a.txt"],
            "dir/a:jpg,txt",
            "apple_double=2",
        ),
        (
            "41",
            &["a.left.jpg", "a.right.jpg", "a.json"],
            "a:left.jpg,right.jpg,json",
            "",
        ),
        (
            "42",
            &["235342 Track 2.0 (Clean Version).mp3"],
            "235342 Track 2:0 (clean version).mp3",
            "odd_field_name=1",
        ),
        (
            "43",
            &["S_4001_VE1.wav.data", "S_4001_VE1.wav.label"],
            "S_4001_VE1:wav.data,wav.label",
            "",
        ),
        (
            "44",
            &["/some/path/22.0/1.1.png"],
            "/some/path/22.0/1:1.png",
            "",
        ),
        (
            "46",
            &["README", "dir.v1/a", ".hidden.jpg", "a.", "a..jpg"],
            "a:,.jpg",
            "hidden_file=1 no_extension=2 odd_field_name=2",
        ),
        (
            "51",
            &["__index__.json", "a.jpg"],
            "a:jpg",
            "metadata_member=1",
        ),
        (
            "43b upper case",
            &["a.JPG", "a.Cls", "b.ÄX"],
            "a:jpg,cls b:äx",
            "",
        ),
        (
            "only metadata",
            &["__index__.json"],
            "",
            "metadata_member=1",
        ),
        (
            "folders are part of the key",
            &["x/a.jpg", "y/a.jpg", "a.jpg"],
            "x/a:jpg y/a:jpg a:jpg",
            "",
        ),
    ];
    for (number, names, samples, counted) in cases {
        let outcome = read(&named(names));
        assert_eq!(outcome.error_text(), "", "case {number}");
        assert_eq!(outcome.told(), *samples, "case {number}");
        assert_eq!(outcome.counted(), *counted, "case {number}");
    }
}

#[test]
fn cases_42_and_43_by_the_last_dot() {
    let last = SampleOptions {
        key_rule: KeyRule::LastDot,
        ..SampleOptions::default()
    };
    let cases: &[(&[&str], &str)] = &[
        (
            &["235342 Track 2.0 (Clean Version).mp3"],
            "235342 Track 2.0 (Clean Version):mp3",
        ),
        (
            &["S_4001_VE1.wav.data", "S_4001_VE1.wav.label"],
            "S_4001_VE1.wav:data,label",
        ),
    ];
    for (names, samples) in cases {
        assert_eq!(read_with(&named(names), last.clone()).told(), *samples);
    }
}

#[test]
fn case_37_a_key_that_comes_back_is_an_error_or_a_counted_skip() {
    let bytes = named(&["0.a", "1.a", "0.b", "1.b", "2.a"]);
    let outcome = read(&bytes);
    assert_eq!(outcome.told(), "0:a 1:a");
    assert_eq!(outcome.error.as_ref().unwrap().kind(), ErrorKind::Corrupt);
    let text = outcome.error_text();
    for part in [
        "key \"0\" comes back",
        "s3://b/t.tar",
        "byte 2048",
        "--sort=name",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    let outcome = skip(&bytes);
    assert_eq!(outcome.told(), "0:a 1:a 2:a");
    assert_eq!(outcome.counted(), "skipped:key_again=2");
}

#[test]
fn case_38_a_field_that_comes_twice_is_an_error_first_or_last() {
    let bytes = Tar::new()
        .file("a.jpg", b"one")
        .file("a.json", b"{}")
        .file("a.jpg", b"two")
        .file("b.jpg", b"b")
        .end();
    let outcome = read(&bytes);
    assert_eq!(outcome.told(), "");
    let text = outcome.error_text();
    assert!(
        text.contains("field \"jpg\" twice") && text.contains("\"a\""),
        "{text}"
    );
    let outcome = skip(&bytes);
    assert_eq!(outcome.told(), "b:jpg");
    assert_eq!(outcome.counted(), "skipped:duplicate_field=1");
    for (duplicates, kept) in [(Duplicates::First, b"one"), (Duplicates::Last, b"two")] {
        let outcome = read_with(
            &bytes,
            SampleOptions {
                duplicates,
                ..SampleOptions::default()
            },
        );
        assert_eq!(outcome.told(), "a:jpg,json b:jpg");
        assert_eq!(&*outcome.samples[0].field("jpg").unwrap().bytes, kept);
        assert_eq!(outcome.counted(), "duplicate_field=1");
    }
}

#[test]
fn case_38_fields_that_differ_in_case_alone_are_the_same_field() {
    let outcome = read(&named(&["a.jpg", "a.JPG"]));
    assert!(outcome.error_text().contains("field \"jpg\" twice"));
}

#[test]
fn case_39_samples_never_merge_over_shards() {
    let (first, second) = (read(&named(&["x.jpg"])), read(&named(&["x.txt"])));
    assert_eq!(
        (first.told(), second.told()),
        ("x:jpg".into(), "x:txt".into())
    );
}

#[test]
fn case_49_an_empty_member_is_there() {
    let outcome = read(&Tar::new().file("e.txt", b"").file("e.jpg", b"x").end());
    assert_eq!(outcome.told(), "e:txt,jpg");
    assert_eq!(outcome.samples[0].field("txt").unwrap().bytes.len(), 0);
}

#[test]
fn case_50_a_missing_field_is_none() {
    let outcome = read(&named(&["a.jpg", "a.txt", "b.jpg"]));
    assert_eq!(outcome.told(), "a:jpg,txt b:jpg");
    assert!(outcome.samples[1].field("txt").is_none());
}

#[test]
fn names_that_are_no_text_are_kept_apart() {
    let tar = Tar::new()
        .raw(Header::new(b"\xff.jpg", 0), b"")
        .raw(Header::new(b"\xfe.jpg", 0), b"");
    assert_eq!(read(&tar.end()).told(), "\\xff:jpg \\xfe:jpg");
}

#[test]
fn a_warning_policy_skips_the_same_as_a_silent_one() {
    let bytes = named(&["0.a", "1.a", "0.b"]);
    let warned = read_with(&bytes, options(OnError::Warn));
    assert_eq!(warned.told(), skip(&bytes).told());
    assert_eq!(warned.counted(), "skipped:key_again=1");
}
