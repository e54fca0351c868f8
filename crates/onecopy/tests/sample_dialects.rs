//! Header dialects and what stands between sample files: each numbered input with what has to come of it.

mod sample_support;

use onecopy::ErrorKind;
use onecopy::sample::SampleOptions;
use sample_support::*;

#[test]
fn reads_every_dialect() {
    let long = format!("{}/{}.jpg", "d".repeat(150), "n".repeat(100));
    let prefix = "p".repeat(120);
    let name90 = format!("{}.jpg", "q".repeat(86));
    let key300 = "k".repeat(300);
    let cases: Vec<(&str, Vec<u8>, String)> = vec![
        (
            "19 GNU L",
            Tar::new()
                .long_name(b'L', &long)
                .file("cut.jpg", b"five!")
                .end(),
            long.clone(),
        ),
        (
            "19 GNU K and L",
            Tar::new()
                .long_name(b'K', "target")
                .long_name(b'L', &long)
                .file("cut.jpg", b"five!")
                .end(),
            long.clone(),
        ),
        (
            "21 PAX path",
            Tar::new()
                .pax(b'x', &[("path", "ü/ß.jpg")])
                .file("x.jpg", b"five!")
                .end(),
            "ü/ß.jpg".into(),
        ),
        (
            "21 PAX path beside a GNU name",
            Tar::new()
                .long_name(b'L', "l.jpg")
                .pax(
                    b'x',
                    &[("path", "p.jpg"), ("SCHILY.xattr.user.x", "a=b\nc")],
                )
                .file("x.jpg", b"five!")
                .end(),
            "p.jpg".into(),
        ),
        (
            "23 PAX size",
            Tar::new()
                .pax(b'x', &[("size", "5")])
                .raw(Header::new(b"a.jpg", 0), b"five!")
                .end(),
            "a.jpg".into(),
        ),
        (
            "24 base 256",
            Tar::new()
                .raw(
                    Header::new(b"a.jpg", 0).put(124, b"\x80\0\0\0\0\0\0\0\0\0\0\x05"),
                    b"five!",
                )
                .end(),
            "a.jpg".into(),
        ),
        (
            "25 PAX global",
            Tar::new()
                .pax(b'g', &[("comment", &"0".repeat(40)), ("path", "no.jpg")])
                .file("a.jpg", b"five!")
                .end(),
            "a.jpg".into(),
        ),
        (
            "27 v7",
            Tar::new()
                .raw(
                    Header::new(b"a.jpg", 5).put(257, &[0; 255]).flag(0),
                    b"five!",
                )
                .end(),
            "a.jpg".into(),
        ),
        (
            "28 prefix",
            Tar::new()
                .raw(
                    Header::new(name90.as_bytes(), 5).put(345, prefix.as_bytes()),
                    b"five!",
                )
                .end(),
            format!("{prefix}/{name90}"),
        ),
        (
            "28 GNU keeps times where the prefix is",
            Tar::new()
                .raw(
                    Header::new(b"a.jpg", 5)
                        .put(257, b"ustar  \0")
                        .put(345, b"14721034567\0"),
                    b"five!",
                )
                .end(),
            "a.jpg".into(),
        ),
        (
            "29 NUL",
            Tar::new()
                .raw(Header::new(b"a.jpg", 5).flag(0), b"five!")
                .end(),
            "a.jpg".into(),
        ),
        (
            "29 contiguous",
            Tar::new()
                .raw(Header::new(b"a.jpg", 5).flag(b'7'), b"five!")
                .end(),
            "a.jpg".into(),
        ),
        (
            "30 spaces before, NUL behind",
            Tar::new()
                .raw(
                    Header::new(b"a.jpg", 5).put(124, b"          5\0"),
                    b"five!",
                )
                .end(),
            "a.jpg".into(),
        ),
        (
            "30 a space behind",
            Tar::new()
                .raw(Header::new(b"a.jpg", 5).put(124, b"      5     "), b"five!")
                .end(),
            "a.jpg".into(),
        ),
        (
            "33 out of the folder",
            named(&["../../etc/x.jpg"]),
            "../../etc/x.jpg".into(),
        ),
        ("33 absolute", named(&["/abs/x.jpg"]), "/abs/x.jpg".into()),
        (
            "48 a key of 300 bytes",
            Tar::new()
                .pax(b'x', &[("path", &format!("{key300}.jpg"))])
                .file("x", b"five!")
                .end(),
            format!("{key300}.jpg"),
        ),
        (
            "a name of exactly 100 bytes has no NUL",
            named(&[&format!("{}.jpg", "h".repeat(96))]),
            format!("{}.jpg", "h".repeat(96)),
        ),
    ];
    for (number, bytes, name) in cases {
        let outcome = read(&bytes);
        assert_eq!(outcome.error_text(), "", "case {number}");
        assert_eq!(outcome.samples.len(), 1, "case {number}");
        let sample = &outcome.samples[0];
        assert_eq!(format!("{}.jpg", sample.key), name, "case {number}");
        let content = &*sample.field("jpg").unwrap().bytes;
        assert!(
            content == b"five!" || content == name.as_bytes(),
            "case {number}"
        );
        assert_eq!(outcome.counted(), "", "case {number}");
        assert_eq!(
            (sample.offset, sample.end_offset % 512),
            (sample.fields[0].offset, 0)
        );
    }
}

#[test]
fn a_signed_checksum_is_taken() {
    let mut header = Header::new("ü.jpg".as_bytes(), 0).put(148, b"        ").0;
    let sum: i64 = header
        .iter()
        .map(|&byte| i64::from(byte.cast_signed()))
        .sum();
    let text = format!("{sum:06o}\0 ");
    header = Header(header).put(148, text.as_bytes()).0;
    let bytes = [&header[..], &[0; 1024]].concat();
    assert_eq!(read(&bytes).told(), "ü:jpg");
}

#[test]
fn case_32_what_is_no_file_does_not_split_a_sample() {
    let mut tar = Tar::new().file("a.jpg", b"1");
    for flag in *b"123456" {
        // The size field of these means nothing.
        tar = tar.raw(Header::new(b"a.between", 700).flag(flag), b"");
    }
    tar = tar.raw(Header::new(b"dir/", 0).put(257, &[0; 8]).flag(0), b"");
    tar = tar.raw(Header::new(b"label", 0).flag(b'V'), b"");
    tar = tar.raw(Header::new(b"dump", 3).flag(b'D'), b"xyz");
    let outcome = read(&tar.file("a.txt", b"2").end());
    assert_eq!(outcome.told(), "a:jpg,txt");
    assert_eq!(outcome.counted(), "link_member=2 special_member=2");
}

#[test]
fn offsets_name_the_first_header_and_the_end_of_the_padding() {
    let tar = Tar::new()
        .long_name(b'L', "first.jpg")
        .file("x", &[1; 513])
        .file("first.txt", b"")
        .file("second.txt", &[2; 512])
        .end();
    let samples = read(&tar).samples;
    let spans: Vec<_> = samples.iter().map(|s| (s.offset, s.end_offset)).collect();
    assert_eq!(spans, [(0, 3072), (3072, 4096)]);
    assert_eq!(samples[0].fields[1].offset, 2560);
    assert_eq!(samples[0].len_bytes(), 513);
}

#[test]
fn bad_extended_headers_are_errors() {
    let cases = [
        (
            "malformed",
            Tar::new()
                .raw(Header::new(b"x", 5).flag(b'x'), b"hello")
                .file("a.txt", b"")
                .end(),
            ErrorKind::Corrupt,
            "malformed PAX records",
        ),
        (
            "too long",
            Tar::new()
                .raw(Header::new(b"x", 2 << 20).flag(b'L'), b"")
                .end(),
            ErrorKind::LimitReached,
            "extended header of 2097152 bytes",
        ),
        (
            "cut",
            Tar::new()
                .raw(Header::new(b"x", 60000).flag(b'L'), b"")
                .end(),
            ErrorKind::Truncated,
            "extended header is cut",
        ),
        (
            "PAX sparse",
            Tar::new()
                .pax(b'x', &[("GNU.sparse.major", "1")])
                .file("a.txt", b"")
                .end(),
            ErrorKind::Unsupported,
            "sparse",
        ),
        (
            "a size that is none",
            Tar::new()
                .raw(Header::new(b"a.txt", 0).put(124, &[0xff; 12]), b"")
                .end(),
            ErrorKind::Corrupt,
            "the size is no number",
        ),
        (
            "a size beyond everything",
            Tar::new()
                .pax(b'x', &[("size", "18446744073709551615")])
                .file("a.txt", b"")
                .end(),
            ErrorKind::LimitReached,
            "raise `memory`",
        ),
        (
            "a directory-like size beyond everything",
            Tar::new()
                .pax(b'x', &[("size", "18446744073709551615")])
                .file("README", b"")
                .end(),
            ErrorKind::Truncated,
            "is cut",
        ),
    ];
    for (name, bytes, kind, text) in cases {
        let outcome = read(&bytes);
        assert_eq!(outcome.error.as_ref().unwrap().kind(), kind, "{name}");
        assert!(
            outcome.error_text().contains(text),
            "{name}: {}",
            outcome.error_text()
        );
    }
}

#[test]
fn a_member_beyond_the_limit_costs_its_sample_alone() {
    let tar = Tar::new()
        .file("a.jpg", b"a")
        .file("b.jpg", &[0; 2000])
        .file("b.txt", b"b")
        .file("c.jpg", b"c")
        .end();
    let limited = SampleOptions {
        max_sample_bytes: 1000,
        ..SampleOptions::default()
    };
    let outcome = read_with(&tar, limited.clone());
    assert_eq!(outcome.told(), "a:jpg");
    assert_eq!(
        outcome.error.as_ref().unwrap().kind(),
        ErrorKind::LimitReached
    );
    assert!(outcome.error_text().contains("2000 bytes") && outcome.error_text().contains("\"b\""));
    let outcome = read_with(
        &tar,
        SampleOptions {
            on_error: onecopy::config::OnError::Skip,
            ..limited
        },
    );
    assert_eq!(outcome.told(), "a:jpg c:jpg");
    assert_eq!(outcome.counted(), "skipped:sample_too_large=1");
}
