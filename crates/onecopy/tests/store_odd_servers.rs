//! What people read where something answers that is not S3, or S3 that is ill: what it is, who said it, what to do.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

mod store_scripted;
use std::io::Read;
use std::net::TcpListener;

use onecopy::config::{StoreConfig, Variables};
use onecopy::store::{Key, ListRequest, open_store};
use onecopy::sync::Arc;
use onecopy::{Error, ErrorKind};
use store_scripted::*;

const PAGE: &str = "<!DOCTYPE html>\n<html><body>Please log in</body></html>";

/// An answer with this body, of this kind.
fn typed(line: &str, kind: &str, text: &str) -> (Vec<u8>, Then) {
    let head = format!(
        "HTTP/1.1 {line}\nContent-Type: {kind}\nContent-Length: {}",
        text.len()
    );
    (raw(&head, text.as_bytes()), Then::Keep)
}

fn refused(code: &str, message: &str) -> (Vec<u8>, Then) {
    let text = format!("<Error><Code>{code}</Code><Message>{message}</Message></Error>");
    typed("400 Bad Request", "application/xml", &text)
}

async fn list(server: &Server) -> Error {
    let (store, _) = open_store("s3://bkt", &config(server)).unwrap();
    let request = ListRequest {
        prefix: Key::new(*b""),
        is_folded: false,
        page: None,
    };
    store.list(&request).await.unwrap_err()
}

#[tokio::test]
async fn what_went_wrong_is_told_with_what_to_do_and_who_was_asked() {
    let html = "text/html; charset=utf-8";
    let flood = "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(100).into_bytes();
    let refusal = |line: &str| (status(line), Then::Keep);
    for (answer, kind, why) in [
        (refusal("204 No Content"), ErrorKind::Corrupt, "204"),
        (
            refusal("304 Not Modified"),
            ErrorKind::Unsupported,
            "has not changed",
        ),
        (
            refusal("302 Found"),
            ErrorKind::Unsupported,
            "a redirect (status 302)",
        ),
        (
            refusal("307 Temporary Redirect"),
            ErrorKind::Unsupported,
            "a redirect",
        ),
        (
            refusal("400 Bad Request"),
            ErrorKind::Unsupported,
            "status 400",
        ),
        (
            refused("InvalidRequest", "Missing header"),
            ErrorKind::Unsupported,
            "400 InvalidRequest",
        ),
        (refusal("401 Unauthorized"), ErrorKind::Denied, "status 401"),
        (
            refusal("522 Connection Timed Out"),
            ErrorKind::Unreachable,
            "gave up after 4 tries",
        ),
        (
            refusal("418 I'm a teapot"),
            ErrorKind::Unsupported,
            "status 418",
        ),
        (
            refusal("412 Precondition Failed"),
            ErrorKind::Changed,
            "version",
        ),
        (
            refusal("408 Request Timeout"),
            ErrorKind::Unreachable,
            "waited too long",
        ),
        (
            refusal("429 Too Many Requests"),
            ErrorKind::Throttled,
            "gave up after 4 tries",
        ),
        (
            refusal("503 Slow Down"),
            ErrorKind::Throttled,
            "gave up after 4 tries",
        ),
        (
            refusal("500 Internal Server Error"),
            ErrorKind::Unreachable,
            "gave up after 4 tries",
        ),
        (
            typed("502 Bad Gateway", html, PAGE),
            ErrorKind::Unreachable,
            "HTML came from",
        ),
        (
            (part(0, 1000, 0), Then::Close),
            ErrorKind::Truncated,
            "the body ended",
        ),
        (
            (part(0, 1000, 0), Then::Hold),
            ErrorKind::Unreachable,
            "gave up after 4 tries",
        ),
        ((vec![], Then::Close), ErrorKind::Unreachable, "closed"),
        ((vec![], Then::Reset), ErrorKind::Unreachable, ""),
        (
            (vec![], Then::Hold),
            ErrorKind::Unreachable,
            "no answer within",
        ),
        (
            (raw("HTTP/1.1 200 OK\nContent-Length: 1x", b""), Then::Close),
            ErrorKind::Corrupt,
            "is no number",
        ),
        (
            (
                raw("HTTP/1.1 200 OK\nContent-Length: 1, 2", b""),
                Then::Close,
            ),
            ErrorKind::Corrupt,
            "two differing",
        ),
        ((flood, Then::Close), ErrorKind::Corrupt, "interim answers"),
        (
            (
                raw(
                    "HTTP/1.1 206 P\nContent-Length: 9\nContent-Range: bytes 1-9/10",
                    b"123456789",
                ),
                Then::Keep,
            ),
            ErrorKind::Corrupt,
            "were asked for",
        ),
    ] {
        for is_s3 in [true, false] {
            let server = serve(vec![answer.clone(); 4]);
            let source = source(&server, is_s3);
            let outcome = read_source(&server, &source, 0, &[4096]).await;
            let error = outcome.result.unwrap_err();
            let text = format!("{error:#}");
            if is_s3 {
                assert_eq!(error.kind(), kind, "{text}");
                assert!(error.why().contains(why), "{why}: {text}");
            }
            let help = error.help().unwrap_or_else(|| panic!("no help: {text}"));
            assert!(
                text.contains(&server.url) || kind == ErrorKind::Changed,
                "{text}"
            );
            for wrong in ["sse_c_key", "region"] {
                assert!(
                    !help.contains(wrong) && !error.why().contains(wrong),
                    "{text}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_web_page_in_place_of_an_answer_is_told_by_the_name_of_its_host() {
    let html = "text/html; charset=utf-8";
    for (answer, kind) in [
        (typed("200 OK", html, PAGE), ErrorKind::Corrupt),
        // A login page that is a file has a tag, too.
        (
            typed("200 OK\nETag: \"page\"", html, PAGE),
            ErrorKind::Corrupt,
        ),
        (typed("404 Not Found", html, PAGE), ErrorKind::NotFound),
        (typed("403 Forbidden", html, "<html>no"), ErrorKind::Denied),
        (
            typed("405 Method Not Allowed", "text/plain", PAGE),
            ErrorKind::Unsupported,
        ),
        (
            typed("503 Service Unavailable", html, PAGE),
            ErrorKind::Throttled,
        ),
        (
            typed("302 Found\nLocation: /login", html, PAGE),
            ErrorKind::Unsupported,
        ),
    ] {
        let server = serve(vec![answer; 4]);
        let outcome = read_source(&server, &source(&server, true), 0, &[4096]).await;
        let error = outcome.result.unwrap_err();
        let told = format!("HTML came from {} instead of an S3 answer", server.url);
        assert_eq!(error.kind(), kind, "{error:#}");
        assert!(error.why().contains(&told), "{error:#}");
        let is_passing = kind == ErrorKind::Throttled;
        assert!(
            is_passing || error.help().unwrap().contains("`endpoint_url`"),
            "{error:#}"
        );
    }
    for status in ["200 OK", "200 OK\nETag: \"page\"", "404 Not Found"] {
        let server = serve(vec![typed(status, html, PAGE)]);
        let error = list(&server).await;
        assert!(
            error
                .why()
                .contains(&format!("HTML came from {}", server.url)),
            "{error:#}"
        );
        assert!(
            error.help().unwrap().contains("`endpoint_url`"),
            "{error:#}"
        );
    }
    let head = format!("HTTP/1.1 200 OK\nContent-Type: {html}\nContent-Length: 57");
    let server = serve(vec![(raw(&head, b""), Then::Close)]);
    let source = source(&server, true);
    let error = source.store.head(&source.object).await.unwrap_err();
    assert!(
        error
            .why()
            .contains(&format!("HTML came from {}", server.url)),
        "{error:#}"
    );
}

#[tokio::test]
async fn a_web_page_that_is_an_object_is_read_as_one() {
    for lines in [
        "x-amz-request-id: 1\nETag: \"a\"",
        "Accept-Ranges: bytes\nETag: \"a\"",
    ] {
        let head = format!("200 OK\n{lines}");
        let server = serve(vec![typed(&head, "text/html", PAGE)]);
        let outcome = read_source(&server, &source(&server, true), 0, &[4096]).await;
        assert_eq!(outcome.result.unwrap().len_bytes, PAGE.len() as u64);
    }
    let server = serve(vec![typed("200 OK", "text/html", PAGE)]);
    let outcome = read_source(&server, &source(&server, false), 0, &[4096]).await;
    assert_eq!(outcome.result.unwrap().len_bytes, PAGE.len() as u64);
}

#[tokio::test]
async fn plain_http_to_a_port_that_wants_tls_is_told_with_the_cure() {
    let nginx = "<html><head><title>400 The plain HTTP request was sent to HTTPS port</title></head></html>";
    for (kind, text) in [
        ("text/html", nginx),
        (
            "text/plain",
            "Client sent an HTTP request to an HTTPS server.\n",
        ),
    ] {
        let server = serve(vec![typed("400 Bad Request", kind, text)]);
        let outcome = read_source(&server, &source(&server, true), 0, &[4096]).await;
        let error = outcome.result.unwrap_err();
        let cure = server.url.replace("http://", "`endpoint_url=https://");
        assert_eq!(error.kind(), ErrorKind::Unreachable, "{error:#}");
        assert!(error.help().unwrap().contains(&cure), "{error:#}");
        assert_eq!(outcome.requests.len(), 1);
    }
}

#[tokio::test]
async fn an_endpoint_from_which_nothing_ever_came_is_soon_given_up() {
    for (scheme, other) in [("http", "https://"), ("https", "http://")] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("{scheme}://{}", listener.local_addr().unwrap());
        onecopy::sync::spawn("test-closer", move || {
            for stream in listener.incoming() {
                let _some = stream.unwrap().read(&mut [0; 4096]);
            }
        })
        .unwrap();
        let server = Server {
            url: url.clone(),
            seen: Arc::default(),
        };
        let config = StoreConfig {
            limits: onecopy::config::Limits {
                tries: 10,
                ..limits()
            },
            ..config(&server)
        };
        let source = open("s3://bkt/k", &config);
        let outcome = read_source(&server, &source, 0, &[4096]).await;
        assert!(
            outcome.report.retries.total <= 2,
            "{:?}",
            outcome.report.retries
        );
        let error = outcome.result.unwrap_err();
        let help = error.help().unwrap();
        assert!(help.contains(&url) && help.contains(other), "{error:#}");
    }
}

#[tokio::test]
async fn an_endpoint_that_has_answered_is_waited_for() {
    let mut answers = vec![whole()];
    answers.extend(vec![(vec![], Then::Close); 7]);
    answers.push(whole());
    let server = serve(answers);
    let config = StoreConfig {
        limits: onecopy::config::Limits {
            tries: 10,
            ..limits()
        },
        ..config(&server)
    };
    let source = open("s3://bkt/k", &config);
    for _ in 0..2 {
        let outcome = read_source(&server, &source, 0, &[4096]).await;
        outcome.assert_bytes(0, 1000);
    }
    assert_eq!(server.seen.lock().len(), 9);
}

#[tokio::test]
async fn half_a_pair_of_keys_is_named_and_nothing_is_asked() {
    let server = serve(vec![]);
    let [key, secret] = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"];
    for (given, missing) in [(key, secret), (secret, key)] {
        let config = StoreConfig {
            is_anonymous: false,
            variables: Variables::only([(given, "hush"), ("AWS_EC2_METADATA_DISABLED", "true")]),
            ..config(&server)
        };
        let outcome = read_url(&server, &config, "s3://bkt/k").await;
        let error = outcome.result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied);
        let why = format!("{given} is set, and {missing} is not");
        assert!(error.why().contains(&why), "{error:#}");
        assert!(!format!("{error:#}").contains("hush"), "{error:#}");
        assert!(outcome.requests.is_empty());
    }
}
