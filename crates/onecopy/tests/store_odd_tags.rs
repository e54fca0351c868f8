//! ETags of all kinds, and none: what is sent back, what is only compared, and what has to do in their place.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

mod store_scripted;
use onecopy::ErrorKind;
use onecopy::store::{ETag, Source};
use store_scripted::*;

/// A right 206 for `[from, to)` of 1000 bytes with these lines in its head.
fn with(lines: &str, from: usize, to: usize) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 206 P\n{lines}Content-Length: {}\nContent-Range: bytes {from}-{}/1000",
        to - from,
        to - 1
    );
    raw(&head, &body(from, to))
}

/// The range that a request asks for, and what it makes its answer hang on.
fn asked(request: &str) -> ((usize, usize), Option<&str>) {
    let header = |name: &str| {
        let mut lines = request.lines().filter_map(|line| line.split_once(": "));
        lines.find(|line| line.0 == name).map(|line| line.1)
    };
    let range = header("range").unwrap();
    let (from, last) = range
        .strip_prefix("bytes=")
        .unwrap()
        .split_once('-')
        .unwrap();
    let range = (from.parse().unwrap(), last.parse::<usize>().unwrap() + 1);
    (range, header("if-match"))
}

#[tokio::test]
async fn an_object_in_many_ranges_is_read_whatever_its_tag_looks_like() {
    for (tag, is_sent) in [
        ("\"v1\"", true),
        ("\"\"", true),
        ("\"a!~'b\"", true),
        ("abc", false),
        ("\"open", false),
        ("open\"", false),
        ("\"", false),
        ("a\"b", false),
        ("\"a b\"", false),
        ("\"a\"b\"", false),
        ("'v1'", false),
        ("W/\"v1\"", false),
        ("W/v1", false),
    ] {
        // As it is by the letter: another tag, by a quote more or less, is another version.
        let server = serve_with(move |request| {
            let ((from, to), condition) = asked(request);
            let is_same = condition.is_none_or(|condition| condition == tag);
            let line = format!("ETag: {tag}\n");
            let answer = if is_same {
                with(&line, from, to)
            } else {
                status("412 Precondition Failed")
            };
            Some((answer, Then::Keep))
        });
        let mut source = source(&server, true);
        for from in [0, 400, 800] {
            let to = 1000.min(from + 400);
            let outcome = read_source(&server, &source, from as u64, &[400]).await;
            outcome.assert_bytes(from, to);
            source.object = outcome.result.unwrap().object;
        }
        assert_eq!(&*source.object.etag.clone().unwrap().0, tag);
        let sent: Vec<Option<String>> = server.seen.lock()[1..]
            .iter()
            .map(|(_, request)| asked(request).1.map(str::to_owned))
            .collect();
        assert_eq!(sent, vec![is_sent.then(|| tag.to_owned()); 2], "{tag}");
    }
}

#[tokio::test]
async fn another_tag_is_another_version_and_other_quotes_are_not() {
    for (known, now, is_same) in [
        ("\"1\"", "\"2\"", false),
        ("1", "2", false),
        ("W/\"1\"", "W/\"2\"", false),
        ("W/\"1\"", "\"1\"", false),
        ("\"1\"", "W/\"1\"", false),
        ("\"a\"", "\"A\"", false),
        ("W/\"1\"", "W/\"1\"", true),
        // Some list a tag without its quotes and send it with them.
        ("1", "\"1\"", true),
        ("\"1\"", "1", true),
    ] {
        let answer = with(&format!("ETag: {now}\n"), 0, 10);
        let server = serve(vec![(answer, Then::Keep)]);
        let mut source = source(&server, true);
        source.object.etag = Some(ETag(known.into()));
        source.object.len_bytes = Some(1000);
        let outcome = read_source(&server, &source, 0, &[10]).await;
        if is_same {
            outcome.assert_bytes(0, 10);
            // In the form of the header from here on: that is the one which can be sent back.
            assert_eq!(&*outcome.result.unwrap().object.etag.unwrap().0, now);
        } else {
            assert_eq!(outcome.kind(), ErrorKind::Changed, "{known} {now}");
        }
    }
}

#[tokio::test]
async fn without_a_tag_the_time_of_the_last_change_has_to_do_and_that_is_counted() {
    let at = |second: u32| format!("Last-Modified: Sun, 06 Nov 1994 08:49:{second:02} GMT\n");
    for (first, second, kind) in [
        (String::new(), String::new(), None),
        (at(10), at(10), None),
        // A listing may round.
        (at(10), at(11), None),
        (at(10), String::new(), None),
        (at(10), at(30), Some(ErrorKind::Changed)),
        (at(30), at(10), Some(ErrorKind::Changed)),
    ] {
        let server = serve(vec![
            (with(&first, 0, 500), Then::Keep),
            (with(&second, 500, 1000), Then::Keep),
        ]);
        let Source { store, object } = source(&server, true);
        let outcome = read_source(&server, &Source { store, object }, 0, &[500]).await;
        outcome.assert_bytes(0, 500);
        assert_eq!(outcome.report.warnings["etag_missing"], 1);
        let mut source = source(&server, true);
        source.object = outcome.result.unwrap().object;
        let outcome = read_source(&server, &source, 500, &[500]).await;
        match kind {
            None => outcome.assert_bytes(500, 1000),
            Some(kind) => assert_eq!(outcome.kind(), kind, "{first}{second}"),
        }
    }
}
