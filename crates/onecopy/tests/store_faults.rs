//! What a server may do to a client, and what becomes of it: cuts, resets, silence, refusals.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

mod store_scripted;
use onecopy::ErrorKind;
use onecopy::config::{Limits, Variables};
use onecopy::store::{Key, ListRequest, Named, Source, open_store};
use onecopy::sync::Arc;
use std::net::TcpListener;
use store_scripted::*;

#[tokio::test]
async fn a_cut_body_goes_on_at_the_exact_offset_with_the_first_etag() {
    for then in [Then::Close, Then::Reset] {
        let answers = vec![
            (part(100, 700, 250), then),
            (part(350, 700, 350), Then::Keep),
        ];
        let outcome = read(answers, Some(1000), 100, &[200, 400]).await;
        // A reset may overtake bytes on their way: then more is asked for again, which this script cannot answer.
        if then == Then::Close {
            outcome.assert_bytes(100, 700);
            assert_eq!(outcome.header(1, "range"), Some("bytes=350-699"));
            assert_eq!(outcome.header(1, "if-match"), Some("\"v1\""));
            assert_eq!(outcome.retries(), [("short_body", 1)]);
        }
        assert_eq!(outcome.header(0, "range"), Some("bytes=100-699"));
        assert_eq!(outcome.requests[1].0, 1, "on a new connection");
    }
}

#[tokio::test]
async fn a_body_cut_without_end_is_truncated_in_the_end() {
    let answers = vec![(part(0, 1000, 0), Then::Close); 4];
    let outcome = read(answers, None, 0, &[4096]).await;
    assert_eq!(outcome.kind(), ErrorKind::Truncated);
    assert_eq!(outcome.requests.len(), 4);
}

#[tokio::test]
async fn failures_before_the_answer_are_tried_again() {
    let whole = (part(0, 1000, 1000), Then::Keep);
    for (answer, cause) in [
        ((vec![], Then::Close), "closed"),
        ((vec![], Then::Hold), "first_byte_timeout"),
        ((status("503 Slow Down"), Then::Keep), "throttled"),
        ((status("429 Too Many Requests"), Then::Keep), "throttled"),
        (
            (status("500 Internal Server Error"), Then::Keep),
            "server_error",
        ),
        ((status("502 Bad Gateway"), Then::Close), "server_error"),
        ((status("504 Gateway Timeout"), Then::Keep), "server_error"),
        ((part(0, 1000, 0), Then::Hold), "stalled"),
        ((vec![], Then::Reset), "reset"),
        ((part(0, 1000, 0), Then::Reset), "reset"),
    ] {
        let outcome = read(vec![answer, whole.clone()], None, 0, &[4096]).await;
        outcome.assert_bytes(0, 1000);
        assert_eq!(outcome.retries(), [(cause, 1)]);
    }
}

#[tokio::test]
async fn codes_in_the_text_decide_over_the_status() {
    let error = |line: &str, code: &str| {
        let text = format!("<Error><Code>{code}</Code></Error>");
        raw(
            &format!("HTTP/1.1 {line}\nContent-Length: {}", text.len()),
            text.as_bytes(),
        )
    };
    let whole = (part(0, 1000, 1000), Then::Keep);
    for (line, code, cause) in [
        ("400 Bad Request", "RequestTimeout", "server_timeout"),
        ("403 Forbidden", "RequestTimeTooSkewed", "clock"),
    ] {
        let answers = vec![(error(line, code), Then::Keep), whole.clone()];
        let outcome = read(answers, None, 0, &[4096]).await;
        outcome.assert_bytes(0, 1000);
        assert_eq!(outcome.retries(), [(cause, 1)]);
    }
    let expired = vec![(error("400 Bad Request", "ExpiredToken"), Then::Keep); 4];
    let outcome = read(expired, None, 0, &[4096]).await;
    assert_eq!(
        (outcome.kind(), outcome.requests.len()),
        (ErrorKind::Denied, 1),
        "nothing to renew"
    );
}

#[tokio::test]
async fn final_refusals_are_not_tried_again() {
    for (line, kind) in [
        ("403 Forbidden", ErrorKind::Denied),
        ("404 Not Found", ErrorKind::NotFound),
        ("412 Precondition Failed", ErrorKind::Changed),
        ("400 Bad Request", ErrorKind::Unsupported),
        (
            "301 Moved Permanently\nLocation: http://127.0.0.1:1/",
            ErrorKind::InvalidInput,
        ),
    ] {
        let outcome = read(vec![(status(line), Then::Keep)], None, 0, &[4096]).await;
        assert_eq!(
            (outcome.kind(), outcome.requests.len()),
            (kind, 1),
            "{line}"
        );
    }
}

#[tokio::test]
async fn a_connection_that_died_while_idle_costs_no_try() {
    for then in [Then::Close, Then::Reset] {
        let server = serve(vec![
            (part(0, 500, 500), Then::Keep),
            (vec![], then),
            (part(500, 1000, 500), Then::Keep),
        ]);
        let mut source = source(&server, true);
        source.object.len_bytes = Some(1000);
        let first = read_source(&server, &source, 0, &[500]).await;
        first.assert_bytes(0, 500);
        let second = read_source(&server, &source, 500, &[500]).await;
        second.assert_bytes(500, 1000);
        assert!(second.retries().is_empty());
        let connections: Vec<usize> = second.requests.iter().map(|request| request.0).collect();
        assert_eq!(connections, [0, 0, 1]);
    }
}

#[tokio::test]
async fn a_connection_that_is_to_be_closed_is_not_used_again() {
    for lines in ["HTTP/1.1 206 P\nConnection: close", "HTTP/1.0 206 P"] {
        let head = format!("{lines}\nContent-Length: 500\nContent-Range: bytes 0-499/1000");
        let server = serve(vec![
            (raw(&head, &body(0, 500)), Then::Keep),
            (part(500, 1000, 500), Then::Keep),
        ]);
        let mut source = source(&server, true);
        source.object.len_bytes = Some(1000);
        read_source(&server, &source, 0, &[500])
            .await
            .assert_bytes(0, 500);
        let second = read_source(&server, &source, 500, &[500]).await;
        second.assert_bytes(500, 1000);
        assert_eq!(second.requests[1].0, 1, "{lines}");
    }
}

#[tokio::test]
async fn an_endpoint_that_is_not_there_is_soon_given_up_with_help() {
    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let server = Server {
        url: format!("http://{closed}"),
        seen: Arc::default(),
    };
    let outcome = read_source(&server, &source(&server, true), 0, &[10]).await;
    assert_eq!(outcome.kind(), ErrorKind::Unreachable);
    assert_eq!(outcome.retries(), [("refused", 2)]);
    assert!(
        outcome
            .result
            .unwrap_err()
            .help()
            .unwrap()
            .contains(&server.url)
    );
}

#[tokio::test]
async fn web_servers_are_followed_and_their_queries_kept_secret() {
    let server = serve(vec![
        (status("302 Found\nLocation: /there?sig=2"), Then::Keep),
        (part(0, 1000, 1000), Then::Keep),
        (status("404 Not Found"), Then::Keep),
    ]);
    let (store, named) =
        open_store(&format!("{}/a b?sig=1", server.url), &config(&server)).unwrap();
    let Named::Object(object) = named else {
        panic!("an object")
    };
    let source = Source { store, object };
    let outcome = read_source(&server, &source, 0, &[4096]).await;
    outcome.assert_bytes(0, 1000);
    assert!(
        outcome.requests[0]
            .1
            .starts_with("GET /a%20b?sig=1 HTTP/1.1\r\n")
    );
    assert!(
        outcome.requests[1]
            .1
            .starts_with("GET /there?sig=2 HTTP/1.1\r\n")
    );
    let error = read_source(&server, &source, 0, &[4096])
        .await
        .result
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(!format!("{error:#}").contains("sig="));
    let request = ListRequest {
        prefix: Key::new(*b"/"),
        is_folded: false,
        page: None,
    };
    assert_eq!(
        source.store.list(&request).await.unwrap_err().kind(),
        ErrorKind::Unsupported
    );
}

#[tokio::test]
async fn a_look_up_falls_back_where_head_is_refused() {
    let one = raw(
        "HTTP/1.1 206 P\nContent-Length: 1\nContent-Range: bytes 0-0/1000",
        &body(0, 1),
    );
    let server = serve(vec![
        (status("403 Forbidden"), Then::Keep),
        (one, Then::Keep),
    ]);
    let source = source(&server, false);
    let found = source.store.head(&source.object).await.unwrap();
    assert_eq!(found.len_bytes, Some(1000));
}

#[tokio::test]
async fn a_denied_look_up_in_s3_says_that_it_may_be_missing() {
    let server = serve(vec![(status("403 Forbidden"), Then::Keep)]);
    let mut config = config(&server);
    config.is_anonymous = false;
    config.variables =
        Variables::only([("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b")]);
    let (store, named) = open_store("s3://bkt/k", &config).unwrap();
    let Named::Object(object) = named else {
        panic!("an object")
    };
    let error = store.head(&object).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(error.why().contains("or there is no such object"));
}

#[tokio::test]
async fn nothing_of_an_odd_answer_counts() {
    let longer = raw(
        "HTTP/1.1 200 OK\nTransfer-Encoding: chunked",
        format!("3e9\r\n{}\r\n0\r\n\r\n", "x".repeat(1001)).as_bytes(),
    );
    let server = serve(vec![
        (part(0, 500, 500), Then::Keep),
        (longer.clone(), Then::Keep),
        (part(0, 1000, 1000), Then::Keep),
        (
            raw("HTTP/1.1 200 OK\nContent-Length: 1000", &body(0, 1000)),
            Then::Keep,
        ),
    ]);
    let mut source = source(&server, true);
    source.object.len_bytes = Some(1000);
    read_source(&server, &source, 0, &[500])
        .await
        .assert_bytes(0, 500);
    // Longer than the object, and then a part of it where all of it was asked for: one is forgiven and two are not.
    let outcome = read_source(&server, &source, 0, &[1000]).await;
    assert_eq!(outcome.kind(), ErrorKind::Corrupt);
    assert_eq!(
        (outcome.retries(), outcome.requests.len()),
        (vec![("bad_answer", 1)], 3)
    );
    let outcome = read_source(&server, &source, 0, &[1000]).await;
    outcome.assert_bytes(0, 1000);
}

#[tokio::test]
async fn dropping_a_read_closes_its_connection() {
    let server = serve(vec![
        (part(0, 1000, 10), Then::Hold),
        (part(0, 1000, 1000), Then::Keep),
    ]);
    let mut config = config(&server);
    config.limits = Limits {
        connections: 1,
        ..Limits::default()
    };
    let (store, named) = open_store("s3://bkt/k", &config).unwrap();
    let Named::Object(object) = named else {
        panic!("an object")
    };
    let source = Source { store, object };
    let mut first = Box::pin(read_source(&server, &source, 0, &[4096]));
    while server.seen.lock().is_empty() {
        assert!(futures_poll(&mut first).await);
    }
    drop(first);
    // The only connection there may be is free again.
    read_source(&server, &source, 0, &[4096])
        .await
        .assert_bytes(0, 1000);
}

/// Polls once, lets the runtime turn, and says whether the future still waits.
async fn futures_poll<T>(future: &mut std::pin::Pin<Box<impl Future<Output = T>>>) -> bool {
    tokio::select! {
        biased;
        _ = future => false,
        () = tokio::task::yield_now() => true,
    }
}
