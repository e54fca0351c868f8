//! Writing to servers that refuse, break off, or answer oddly.
#![expect(clippy::unwrap_used, reason = "test helpers")]

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use onecopy::buffer::Slice;
use onecopy::config::{Limits, StoreConfig, Variables};
use onecopy::ledger::{Ledger, Report};
use onecopy::route::Hop;
use onecopy::store::{Attributes, CopySource, ETag, Key, Part, Store, Upload, open_store};
use onecopy::sync::{Arc, Mutex};
use onecopy::{Error, ErrorKind, Result};

/// What the server does with a request.
#[derive(Clone)]
enum Step {
    /// Reads all of it and answers.
    Answer(String),
    /// Answers once the head is read, and closes.
    Early(String),
    /// Closes once the head is read.
    Close,
    /// Reads no body and says nothing.
    Hold,
}

/// The heads and bodies of requests, in the order in which they came.
type Seen = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

struct Server {
    config: StoreConfig,
    seen: Seen,
}

fn answer(status: &str, headers: &str, body: &str) -> Step {
    Step::Answer(text(status, headers, body))
}

fn text(status: &str, headers: &str, body: &str) -> String {
    let len = body.len();
    format!("HTTP/1.1 {status}\r\nContent-Length: {len}\r\n{headers}\r\n{body}")
}

fn serve(steps: Vec<Step>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let seen = Seen::default();
    let steps = Arc::new(Mutex::new(VecDeque::from(steps)));
    let record = Arc::clone(&seen);
    onecopy::sync::spawn("test-server", move || {
        for stream in listener.incoming() {
            let (steps, record) = (Arc::clone(&steps), Arc::clone(&record));
            let stream = stream.unwrap();
            onecopy::sync::spawn("test-connection", move || speak(&stream, &steps, &record))
                .unwrap();
        }
    })
    .unwrap();
    let config = StoreConfig {
        endpoint_url: Some(url),
        is_anonymous: true,
        variables: Variables::only([("A", "b")]),
        limits: Limits {
            tries: 3,
            first_byte_timeout: Duration::from_millis(2000),
            stall_timeout: Duration::from_millis(300),
            ..Limits::default()
        },
        ..StoreConfig::default()
    };
    Server { config, seen }
}

fn speak(
    mut stream: &TcpStream,
    steps: &Mutex<VecDeque<Step>>,
    record: &Mutex<Vec<(String, Vec<u8>)>>,
) {
    while let Some(head) = read_head(stream) {
        let Some(step) = steps.lock().pop_front() else {
            return;
        };
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.map_or(0, |digits| digits.parse().unwrap())];
        if matches!(step, Step::Answer(_)) && stream.read_exact(&mut body).is_err() {
            return;
        }
        record.lock().push((head, body));
        match step {
            Step::Answer(text) => stream.write_all(text.as_bytes()).unwrap(),
            Step::Early(text) => {
                stream.write_all(text.as_bytes()).unwrap();
                // Read by nobody: closing now resets the connection under the client's writes.
                return;
            }
            Step::Close => return,
            Step::Hold => {
                let _until_the_client_closes = stream.peek(&mut [0]);
                std::thread::park_timeout(Duration::from_secs(3));
                return;
            }
        }
    }
}

fn read_head(mut stream: &TcpStream) -> Option<String> {
    let mut text = Vec::new();
    while !text.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        text.push(byte[0]);
    }
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// More than the buffers of two sockets hold.
const LONG: usize = 16 << 20;

async fn put(server: &Server, len: usize) -> (Result<(), Error>, Report) {
    let ledger = Ledger::unread();
    let hop = ledger.hop(Hop::Send);
    let (store, _) = open_store("s3://bkt", &server.config).unwrap();
    let writer = store.writer().unwrap();
    let body = Slice::from_vec(vec![7; len]);
    let attributes = Attributes::default();
    let put = writer
        .put(&hop, &writer.object(b"k"), body, &attributes)
        .await;
    (put.map(|_stored| ()), ledger.report())
}

#[tokio::test]
async fn a_body_is_sent_again_whole_after_what_passes() {
    for (step, cause) in [
        (answer("503 Slow Down", "", ""), "throttled"),
        (
            answer("500 Oops", "", "<Error><Code>InternalError</Code></Error>"),
            "server_error",
        ),
        (
            answer("400 Late", "", "<Error><Code>RequestTimeout</Code></Error>"),
            "server_timeout",
        ),
        (
            answer("200 OK", "", "\n <Error><Code>SlowDown</Code></Error>"),
            "throttled",
        ),
        (Step::Close, "closed"),
        (Step::Hold, "stalled"),
    ] {
        let server = serve(vec![step, answer("200 OK", "ETag: \"e\"\r\n", "")]);
        let len = if cause == "closed" { 100 } else { LONG };
        let (result, report) = put(&server, len).await;
        result.unwrap();
        let causes: Vec<&str> = report.retries.by_cause.keys().map(String::as_str).collect();
        // A connection that is closed before all was read shows as closed or as reset.
        let is_closed = cause == "closed" && causes == ["reset"];
        assert!(causes == [cause] || is_closed, "{cause}: {causes:?}");
        let seen = server.seen.lock();
        let last = &seen[seen.len() - 1].1;
        assert!(
            last.len() == len && last.iter().all(|byte| *byte == 7),
            "{cause}"
        );
    }
}

#[tokio::test]
async fn a_server_that_refuses_a_body_before_it_has_read_it_is_heard() {
    let refusal = text("403 No", "", "<Error><Code>AccessDenied</Code></Error>");
    let server = serve(vec![Step::Early(refusal)]);
    let (result, _) = put(&server, LONG).await;
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    assert_eq!(error.target(), "s3://bkt/k");
    assert_eq!(server.seen.lock().len(), 1);
}

#[tokio::test]
async fn a_connection_that_died_while_idle_costs_no_try() {
    let fine = || answer("200 OK", "ETag: \"e\"\r\n", "");
    let server = serve(vec![fine(), Step::Close, fine()]);
    let (store, _) = open_store("s3://bkt", &server.config).unwrap();
    let writer = store.writer().unwrap();
    let ledger = Ledger::unread();
    let hop = ledger.hop(Hop::Send);
    for _ in 0..2 {
        let body = Slice::from_vec(vec![7; 100]);
        let attributes = Attributes::default();
        writer
            .put(&hop, &writer.object(b"k"), body, &attributes)
            .await
            .unwrap();
    }
    assert_eq!(ledger.report().retries.total, 0);
    assert_eq!(server.seen.lock().len(), 3);
}

#[tokio::test]
async fn what_stays_is_an_error_of_the_right_kind() {
    for (step, kind) in [
        (
            answer("403 No", "", "<Error><Code>AccessDenied</Code></Error>"),
            ErrorKind::Denied,
        ),
        (
            answer("404 No", "", "<Error><Code>NoSuchBucket</Code></Error>"),
            ErrorKind::NotFound,
        ),
        (answer("412 No", "", ""), ErrorKind::Changed),
        (answer("405 No", "", ""), ErrorKind::Unsupported),
        (
            answer("200 OK", "", "<Error><Code>AccessDenied</Code></Error>"),
            ErrorKind::Denied,
        ),
    ] {
        let server = serve(vec![step]);
        let error = put(&server, 10).await.0.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert_eq!(server.seen.lock().len(), 1, "{error}");
    }
}

#[tokio::test]
async fn uploads_in_parts_believe_no_answer_that_says_too_little() {
    let begun = "<R><UploadId>id</UploadId></R>";
    let completed =
        "<CompleteMultipartUploadResult><ETag>\"e-1\"</ETag></CompleteMultipartUploadResult>";
    let late = "<Error><Code>InternalError</Code></Error>";
    // Steps, where it ends (begin, part, complete, or nowhere) and as what.
    for (steps, ends) in [
        (
            vec![answer("200 OK", "", "<R/>")],
            Some(("begin", ErrorKind::Corrupt)),
        ),
        (
            vec![answer("200 OK", "", "hello")],
            Some(("begin", ErrorKind::Corrupt)),
        ),
        (
            vec![answer("200 OK", "", begun), answer("200 OK", "", "")],
            Some(("part", ErrorKind::Corrupt)),
        ),
        (
            vec![
                answer("200 OK", "", begun),
                answer("200 OK", "ETag: \"p\"\r\n", ""),
                answer("200 OK", "", &format!("   \n{late}")),
                answer("200 OK", "", completed),
            ],
            None,
        ),
        (
            vec![
                answer("200 OK", "", begun),
                answer("200 OK", "ETag: \"p\"\r\n", ""),
                answer("400 Bad", "", "<Error><Code>InvalidPart</Code></Error>"),
            ],
            Some(("complete", ErrorKind::Unsupported)),
        ),
    ] {
        let server = serve(steps);
        let (store, _) = open_store("s3://bkt", &server.config).unwrap();
        match (in_one_part(&*store).await, ends) {
            (Ok(()), None) => {}
            (Err((place, error)), Some((wanted, kind))) => {
                assert_eq!((place, error.kind()), (wanted, kind), "{error}");
            }
            (result, ends) => assert!(ends.is_none() && result.is_ok(), "{ends:?}: {result:?}"),
        }
    }
}

async fn in_one_part(store: &dyn Store) -> Result<(), (&'static str, Error)> {
    let writer = store.writer().unwrap();
    let hop = Ledger::unread().hop(Hop::Send);
    let object = writer.object(b"k");
    let at = |place| move |error| (place, error);
    let upload = writer
        .begin(&object, &Attributes::default())
        .await
        .map_err(at("begin"))?;
    let body = Slice::from_vec(vec![7; 100]);
    let part = writer
        .put_part(&hop, &upload, 1, body)
        .await
        .map_err(at("part"))?;
    writer
        .complete(&upload, &[part])
        .await
        .map_err(at("complete"))?;
    Ok(())
}

/// What is told by a document, and its root.
const TOLD: [(&str, &str); 4] = [
    ("delete", "DeleteResult"),
    ("copy", "CopyObjectResult"),
    ("copy_part", "CopyPartResult"),
    ("complete", "CompleteMultipartUploadResult"),
];

async fn told(store: &dyn Store, what: &str) -> Result<()> {
    let writer = store.writer().unwrap();
    let object = writer.object(b"k");
    let source = CopySource {
        bucket: "other".to_owned(),
        object: object.clone(),
    };
    let upload = Upload {
        object: object.clone(),
        id: "id".into(),
    };
    match what {
        "delete" => {
            let refused = writer.delete(&[Key::new(*b"a"), Key::new(*b"b")]).await?;
            assert!(refused.is_empty(), "{refused:?}");
        }
        "copy" => {
            let attributes = Attributes::default();
            writer.copy(&source, &object, &attributes).await?;
        }
        "copy_part" => {
            writer.copy_part(&upload, 1, &source, (0, 10)).await?;
        }
        _ => {
            let part = Part {
                number: 1,
                etag: ETag("\"p\"".into()),
                len_bytes: 10,
                crc64nvme: None,
            };
            writer.complete(&upload, &[part]).await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_200_that_tells_no_success_is_asked_for_again_and_never_believed() {
    for (what, root) in TOLD {
        let fine = format!("<{root}><ETag>\"e\"</ETag></{root}>");
        for odd in [
            "",
            "  \n",
            "OK",
            "<html><body>Welcome to the guest network</body></html>",
            "<ListBucketResult/>",
            &fine[..fine.len() - 3],
            &format!("<{root}><Err"),
        ] {
            let page = || answer("200 OK", "Content-Type: text/html\r\n", odd);
            let server = serve(vec![page(), answer("200 OK", "", &fine)]);
            let (store, _) = open_store("s3://bkt", &server.config).unwrap();
            told(&*store, what).await.unwrap();
            assert_eq!(server.seen.lock().len(), 2, "{what} {odd:?}");
            let gone = || answer("404 No", "", "");
            let server = serve(vec![page(), page(), page(), gone(), gone()]);
            let (store, _) = open_store("s3://bkt", &server.config).unwrap();
            let error = told(&*store, what).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{what} {odd:?}: {error}");
            let told = if odd.starts_with("<html>") {
                "HTML came from"
            } else {
                root
            };
            assert!(error.to_string().contains(told), "{error}");
        }
        let server = serve(vec![answer("200 OK", "", &fine)]);
        let (store, _) = open_store("s3://bkt", &server.config).unwrap();
        told(&*store, what).await.unwrap();
    }
}
