//! What of a server's answers is believed: ranges, lengths, framing, versions.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

mod store_scripted;
use onecopy::ErrorKind;
use onecopy::store::{ETag, Key, ListRequest, open_store, resolve};
use store_scripted::*;

#[tokio::test]
async fn wrong_ranges_are_never_written() {
    let range = |line: &str| format!("HTTP/1.1 206 P\nContent-Length: 10\nContent-Range: {line}");
    for head in [
        range("bytes 0-9/1000"),
        range("bytes 101-110/1000"),
        range("bytes 100-108/1000"),
        range("bytes 100-109/5"),
        range("items 100-109/1000"),
        "HTTP/1.1 206 P\nContent-Length: 10".to_owned(),
        "HTTP/1.1 206 P\nContent-Length: 9\nContent-Range: bytes 100-109/1000".to_owned(),
    ] {
        let answers = vec![(raw(&head, &[9; 10]), Then::Keep)];
        let outcome = read(answers, Some(1000), 100, &[10]).await;
        assert!(
            matches!(outcome.kind(), ErrorKind::Corrupt | ErrorKind::Changed),
            "{head}"
        );
        assert!(
            outcome.report.hops.iter().all(|hop| hop.bytes == 0),
            "{head}"
        );
        assert_eq!(outcome.requests.len(), 1);
    }
}

#[tokio::test]
async fn the_whole_object_is_taken_for_a_range_only_where_it_is_one() {
    let whole = || {
        (
            raw("HTTP/1.1 200 OK\nContent-Length: 1000", &body(0, 1000)),
            Then::Keep,
        )
    };
    read(vec![whole()], None, 0, &[4096])
        .await
        .assert_bytes(0, 1000);
    read(vec![whole()], Some(1000), 0, &[4096])
        .await
        .assert_bytes(0, 1000);
    for (len, offset, room) in [(None, 0, 500), (Some(1000), 0, 500), (Some(1000), 100, 900)] {
        let outcome = read(vec![whole()], len, offset, &[room]).await;
        assert_eq!(outcome.kind(), ErrorKind::Unsupported);
        assert!(outcome.report.hops.iter().all(|hop| hop.bytes == 0));
    }
    let outcome = read(vec![whole()], Some(999), 0, &[4096]).await;
    assert_eq!(outcome.kind(), ErrorKind::Changed);
}

#[tokio::test]
async fn chunked_and_unmarked_bodies_are_read_and_checked() {
    let chunks = |len: usize, end: &str| {
        let mut text = Vec::new();
        for at in (0..len).step_by(300) {
            let to = len.min(at + 300);
            text.extend(format!("{:x};x=y\r\n", to - at).bytes());
            text.extend(body(at, to));
            text.extend(b"\r\n");
        }
        text.extend(end.bytes());
        text
    };
    let ok = "HTTP/1.1 200 OK\nTransfer-Encoding: chunked";
    let partial = "HTTP/1.1 206 P\nTransfer-Encoding: chunked\nContent-Range: bytes 0-999/1000";
    let end = "0\r\nX-Trailer: 1\r\n\r\n";
    for head in [ok, partial] {
        let answers = vec![(raw(head, &chunks(1000, end)), Then::Keep)];
        let outcome = read(answers, None, 0, &[100, 4096]).await;
        outcome.assert_bytes(0, 1000);
        let rest = outcome
            .report
            .hops
            .iter()
            .find(|hop| hop.hop == "head_rest")
            .unwrap();
        assert_eq!(rest.bytes, 1000);
    }
    let cut = vec![(raw(ok, &chunks(1000, "")), Then::Close); 4];
    assert_eq!(
        read(cut, None, 0, &[4096]).await.kind(),
        ErrorKind::Truncated
    );
    let short = vec![(raw(partial, &chunks(900, end)), Then::Keep); 4];
    assert!(read(short, None, 0, &[4096]).await.result.is_err());
    let bare = |head: &str| vec![(raw(head, &body(0, 1000)), Then::Close)];
    read(bare("HTTP/1.0 200 OK"), None, 0, &[4096])
        .await
        .assert_bytes(0, 1000);
    read(bare("HTTP/1.1 200 OK"), Some(1000), 0, &[1000])
        .await
        .assert_bytes(0, 1000);
    assert_eq!(
        read(bare("HTTP/1.1 200 OK"), None, 0, &[900]).await.kind(),
        ErrorKind::Unsupported
    );
}

#[tokio::test]
async fn odd_heads_are_read_and_wrong_ones_refused() {
    let interim = "HTTP/1.1 100 Continue\n\nHTTP/1.1 103 Early\nLink: x\n\n";
    let head = "http/1.1 206 P".replace("http", "HTTP")
        + "\ncontent-length: 1000\ncontent-length: 1000\ncontent-range: bytes 0-999/1000";
    for head in [
        format!("{interim}{head}"),
        head.clone(),
        format!("{head}\nX: {}", "y".repeat(60_000)),
    ] {
        let answers = vec![(raw(&head, &body(0, 1000)), Then::Keep)];
        read(answers, None, 0, &[4096]).await.assert_bytes(0, 1000);
    }
    for head in [
        format!("{head}\ncontent-length: 999"),
        format!("{head}\nX: {}", "y".repeat(70_000)),
        format!("{head}\nTransfer-Encoding: gzip"),
        format!("{head}\nX: a\n folded"),
        "ICY 200 OK".to_owned(),
        "HTTP/1.1 101 Switching Protocols".to_owned(),
    ] {
        let answers = vec![(raw(&head, &body(0, 1000)), Then::Close)];
        let outcome = read(answers, None, 0, &[4096]).await;
        assert_eq!(
            outcome.kind(),
            ErrorKind::Corrupt,
            "{}",
            &head[..40.min(head.len())]
        );
        assert_eq!(outcome.requests.len(), 1);
    }
}

#[tokio::test]
async fn another_version_is_changed_and_never_a_mixture() {
    let other = raw(
        "HTTP/1.1 206 P\nETag: \"v2\"\nContent-Length: 750\nContent-Range: bytes 250-999/1000",
        &body(250, 1000),
    );
    let answers = vec![(part(0, 1000, 250), Then::Close), (other, Then::Keep)];
    let outcome = read(answers, None, 0, &[4096]).await;
    assert_eq!(outcome.kind(), ErrorKind::Changed);
    let longer = raw(
        "HTTP/1.1 206 P\nContent-Length: 10\nContent-Range: bytes 0-9/1001",
        &[0; 10],
    );
    let outcome = read(vec![(longer, Then::Keep)], Some(1000), 0, &[10]).await;
    assert_eq!(outcome.kind(), ErrorKind::Changed);
    let gone = vec![(
        status("416 Range Not Satisfiable\nContent-Range: bytes */5"),
        Then::Keep,
    )];
    assert_eq!(
        read(gone, Some(1000), 100, &[10]).await.kind(),
        ErrorKind::Changed
    );
}

#[tokio::test]
async fn tags_are_opaque_weak_ones_are_compared_and_missing_ones_counted() {
    let tagged = |tag: &str| {
        let head =
            format!("HTTP/1.1 206 P\n{tag}Content-Length: 10\nContent-Range: bytes 0-9/1000");
        vec![(raw(&head, &body(0, 10)), Then::Keep)]
    };
    for (known, answered, sent, is_missing) in [
        ("\"x-7\"", "ETag: \"x-7\"\n", Some("\"x-7\""), false),
        ("x-7", "ETag: \"x-7\"\n", None, false),
        ("W/\"x\"", "ETag: W/\"x\"\n", None, false),
        ("\"x\"", "", Some("\"x\""), true),
    ] {
        let server = serve(tagged(answered));
        let mut source = source(&server, true);
        source.object.etag = Some(ETag(known.into()));
        let outcome = read_source(&server, &source, 0, &[10]).await;
        outcome.assert_bytes(0, 10);
        assert_eq!(outcome.header(0, "if-match"), sent);
        assert_eq!(
            outcome.report.warnings.contains_key("etag_missing"),
            is_missing
        );
    }
}

#[tokio::test]
async fn an_empty_object_is_empty_by_whatever_way_it_is_told() {
    for answers in [
        &["416 No\nContent-Range: bytes */0"][..],
        &["200 OK"],
        // A 416 that does not say how long the object is proves nothing: it is asked for as a whole.
        &["416 No", "200 OK"],
        &["416 No\nContent-Range: bytes */1000", "200 OK"],
        &["416 No\nContent-Range: bytes */*", "200 OK"],
    ] {
        let told = answers.iter().map(|lines| (status(lines), Then::Keep));
        let outcome = read(told.collect(), None, 0, &[10]).await;
        let filled = outcome.result.as_ref().unwrap();
        let lens = (filled.len_bytes, filled.object.len_bytes);
        assert_eq!(lens, (0, Some(0)), "{answers:?}");
        assert_eq!(outcome.requests.len(), answers.len(), "{answers:?}");
        if answers.len() == 2 {
            assert_eq!(outcome.header(1, "range"), None, "{answers:?}");
        }
    }
}

#[tokio::test]
async fn a_refused_range_is_no_empty_object() {
    let whole = || raw("HTTP/1.1 200 OK\nContent-Length: 1000", &body(0, 1000));
    let no = || (status("416 No"), Then::Keep);
    let outcome = read(vec![no(), (whole(), Then::Keep)], None, 0, &[4096]).await;
    outcome.assert_bytes(0, 1000);
    for (answers, offset, kind) in [
        // It does not fit, and ranges are refused.
        (vec![no(), (whole(), Then::Keep)], 0, ErrorKind::Unsupported),
        (vec![no(), no()], 0, ErrorKind::Unsupported),
        // Behind the first byte there may be an end, but it has to be told.
        (vec![no()], 100, ErrorKind::InvalidInput),
    ] {
        let asked = answers.len();
        let outcome = read(answers, None, offset, &[500]).await;
        assert_eq!((outcome.kind(), outcome.requests.len()), (kind, asked));
        assert!(outcome.report.hops.iter().all(|hop| hop.bytes == 0));
    }
}

#[tokio::test]
async fn the_length_of_a_head_is_learnt() {
    let server = serve(vec![
        (part(0, 500, 500), Then::Keep),
        (part(500, 1000, 500), Then::Keep),
    ]);
    let mut source = source(&server, true);
    source.object.len_bytes = Some(1000);
    let rest = |outcome: &Outcome| {
        outcome
            .report
            .hops
            .iter()
            .find(|hop| hop.hop == "head_rest")
            .map_or(0, |hop| hop.bytes)
    };
    let first = read_source(&server, &source, 0, &[500]).await;
    let second = read_source(&server, &source, 500, &[500]).await;
    second.assert_bytes(500, 1000);
    assert!(rest(&first) > 100);
    assert!(rest(&second) < 70, "{}", rest(&second));
}

/// An answer with this XML.
fn xml(text: &str) -> (Vec<u8>, Then) {
    let head = format!("HTTP/1.1 200 OK\nContent-Length: {}", text.len());
    (raw(&head, text.as_bytes()), Then::Keep)
}

/// A page with one key, and one to follow.
fn page(key: &str, next: &str) -> (Vec<u8>, Then) {
    xml(&format!(
        "<ListBucketResult><IsTruncated>true</IsTruncated><Contents><Key>{key}</Key></Contents>\
         <NextContinuationToken>{next}</NextContinuationToken></ListBucketResult>"
    ))
}

#[tokio::test]
async fn pages_that_go_round_in_a_circle_are_an_error() {
    let server = serve(vec![
        page("a.tar", "1"),
        page("b.tar", "2"),
        page("a.tar", "1"),
    ]);
    let found = resolve(&["s3://bkt/".to_owned()], &config(&server)).await;
    assert_eq!(found.unwrap_err().kind(), ErrorKind::Corrupt);
}

#[tokio::test]
async fn an_empty_page_is_not_the_end_and_a_key_listed_twice_is_one() {
    let empty = "<ListBucketResult><IsTruncated>true</IsTruncated>\
                 <NextContinuationToken>a+/=</NextContinuationToken></ListBucketResult>";
    let last = "<ListBucketResult><Contents><Key>a.tar</Key></Contents><Contents>\
                <Key>b.tar</Key></Contents></ListBucketResult>";
    let server = serve(vec![xml(empty), page("a.tar", "z"), xml(last)]);
    let found = resolve(&["s3://bkt/".to_owned()], &config(&server))
        .await
        .unwrap();
    let urls: Vec<&str> = found.iter().map(|source| &*source.object.url).collect();
    assert_eq!(urls, ["s3://bkt/a.tar", "s3://bkt/b.tar"]);
    assert!(
        server.seen.lock()[1]
            .1
            .contains("continuation-token=a%2B%2F%3D&")
    );
}

#[tokio::test]
async fn an_error_under_a_good_status_is_an_error() {
    let slow = "\n <Error><Code>SlowDown</Code></Error>";
    let good = "<ListBucketResult></ListBucketResult>";
    let server = serve(vec![xml(slow), xml(good)]);
    let (store, _) = open_store("s3://bkt", &config(&server)).unwrap();
    let request = ListRequest {
        prefix: Key::new(*b""),
        is_folded: false,
        page: None,
    };
    assert!(store.list(&request).await.unwrap().objects.is_empty());
    assert_eq!(server.seen.lock().len(), 2);
}
