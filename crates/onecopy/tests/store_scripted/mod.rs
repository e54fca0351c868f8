//! A server on bare TCP that answers by script, byte for byte, and a client to hold against it.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file uses another part of this one"
)]

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;

use onecopy::buffer::Slab;
use onecopy::config::{Limits, StoreConfig, Variables};
use onecopy::ledger::{Ledger, Report};
use onecopy::route::Hop;
use onecopy::store::{Filled, Named, Source, open_store};
use onecopy::sync::{Arc, Mutex};
use onecopy::{Error, ErrorKind};

/// What becomes of the connection after an answer.
#[derive(Clone, Copy, PartialEq)]
pub enum Then {
    Keep,
    Close,
    Reset,
    /// Silence, until the client gives up.
    Hold,
}

pub struct Server {
    pub url: String,
    pub seen: Arc<Mutex<Vec<(usize, String)>>>,
}

/// Answers the nth request, over all connections, with the nth of `answers`; then closes.
pub fn serve(answers: Vec<(Vec<u8>, Then)>) -> Server {
    let answers = Mutex::new(VecDeque::from(answers));
    serve_with(move |_request| answers.lock().pop_front())
}

/// Answers each request with what `answer_to` makes of its text; where that is none, closes.
pub fn serve_with(
    answer_to: impl Fn(&str) -> Option<(Vec<u8>, Then)> + Send + Sync + 'static,
) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let seen: Arc<Mutex<Vec<(usize, String)>>> = Arc::default();
    let answer_to = Arc::new(answer_to);
    let record = Arc::clone(&seen);
    onecopy::sync::spawn("test-server", move || {
        for (index, stream) in listener.incoming().enumerate() {
            let (answer_to, record) = (Arc::clone(&answer_to), Arc::clone(&record));
            let stream = stream.unwrap();
            onecopy::sync::spawn("test-connection", move || {
                while let Some(request) = read_request(&stream) {
                    record.lock().push((index, request.clone()));
                    let Some((bytes, then)) = answer_to(&request) else {
                        return;
                    };
                    if !answer(&stream, &bytes, then) {
                        return;
                    }
                }
            })
            .unwrap();
        }
    })
    .unwrap();
    Server { url, seen }
}

pub fn read_request(mut stream: &TcpStream) -> Option<String> {
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

pub fn answer(mut stream: &TcpStream, bytes: &[u8], then: Then) -> bool {
    // A client that has gone is part of the game.
    let _gone = stream.write_all(bytes);
    match then {
        Then::Keep => true,
        Then::Close => {
            let _gone = stream.shutdown(Shutdown::Both);
            false
        }
        Then::Reset => {
            let linger = Some(Duration::ZERO);
            socket2::SockRef::from(stream).set_linger(linger).unwrap();
            false
        }
        Then::Hold => {
            let _until_the_client_closes = stream.read(&mut [0]);
            false
        }
    }
}

pub fn body(from: usize, to: usize) -> Vec<u8> {
    (from..to)
        .map(|at| (at ^ (at >> 8)).to_le_bytes()[0])
        .collect()
}

/// An answer with these lines in its head.
pub fn raw(lines: &str, body: &[u8]) -> Vec<u8> {
    [
        format!("{}\r\n\r\n", lines.replace('\n', "\r\n")).as_bytes(),
        body,
    ]
    .concat()
}

/// A right 206 for `[from, to)` of 1000 bytes, of which only the first `sent` are sent.
pub fn part(from: usize, to: usize, sent: usize) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 206 Partial Content\nETag: \"v1\"\nContent-Length: {}\nContent-Range: bytes {from}-{}/1000",
        to - from,
        to - 1
    );
    raw(&head, &body(from, from + sent))
}

pub fn status(line: &str) -> Vec<u8> {
    raw(&format!("HTTP/1.1 {line}\nContent-Length: 0"), b"")
}

pub struct Outcome {
    pub result: Result<Filled, Error>,
    pub report: Report,
    pub requests: Vec<(usize, String)>,
}

impl Outcome {
    pub fn kind(&self) -> ErrorKind {
        self.result.as_ref().unwrap_err().kind()
    }

    pub fn retries(&self) -> Vec<(&str, u64)> {
        self.report
            .retries
            .by_cause
            .iter()
            .map(|(cause, count)| (&**cause, *count))
            .collect()
    }

    pub fn header(&self, request: usize, name: &str) -> Option<&str> {
        let lines = self.requests[request].1.lines();
        lines
            .filter_map(|line| line.split_once(": "))
            .find(|line| line.0 == name)
            .map(|line| line.1)
    }

    pub fn assert_bytes(&self, from: usize, to: usize) {
        let filled = self.result.as_ref().unwrap();
        let all: Vec<u8> = filled
            .target
            .iter()
            .flat_map(|slab| slab.iter().copied())
            .collect();
        assert_eq!(filled.len_bytes, (to - from) as u64);
        assert_eq!(all[..to - from], body(from, to));
    }
}

pub fn limits() -> Limits {
    Limits {
        tries: 4,
        first_byte_timeout: Duration::from_millis(300),
        stall_timeout: Duration::from_millis(300),
        ..Limits::default()
    }
}

pub fn config(server: &Server) -> StoreConfig {
    StoreConfig {
        endpoint_url: Some(server.url.clone()),
        is_anonymous: true,
        // Answers come by their number: no look-up may come between.
        is_checksum_unverified: true,
        limits: limits(),
        variables: Variables::only([("A", "b")]),
        ..StoreConfig::default()
    }
}

pub fn source(server: &Server, is_s3: bool) -> Source {
    let url = if is_s3 {
        "s3://bkt/k".to_owned()
    } else {
        format!("{}/k", server.url)
    };
    let (store, named) = open_store(&url, &config(server)).unwrap();
    let Named::Object(object) = named else {
        panic!("an object")
    };
    Source { store, object }
}

/// Reads `slabs` from `offset` on, of an object of 1000 bytes whose length is known or not.
pub async fn read(
    answers: Vec<(Vec<u8>, Then)>,
    len: Option<u64>,
    offset: u64,
    slabs: &[usize],
) -> Outcome {
    let server = serve(answers);
    let mut source = source(&server, true);
    source.object.len_bytes = len;
    read_source(&server, &source, offset, slabs).await
}

pub async fn read_source(
    server: &Server,
    source: &Source,
    offset: u64,
    slabs: &[usize],
) -> Outcome {
    let ledger = Ledger::unread();
    let hop = ledger.hop(Hop::Recv);
    let target = slabs.iter().map(|len| Slab::heap(*len)).collect();
    let result = source
        .store
        .read_into(&hop, &source.object, offset, target)
        .await;
    let requests = server.seen.lock().clone();
    Outcome {
        result,
        report: ledger.report(),
        requests,
    }
}

/// The configuration of the scripted server, with credentials.
pub fn signed(server: &Server) -> StoreConfig {
    StoreConfig {
        is_anonymous: false,
        variables: Variables::only([
            ("AWS_ACCESS_KEY_ID", "AKIAKEY"),
            ("AWS_SECRET_ACCESS_KEY", "hush"),
        ]),
        ..config(server)
    }
}

/// The object that a URL names.
pub fn open(url: &str, config: &StoreConfig) -> Source {
    match open_store(url, config).unwrap() {
        (store, Named::Object(object)) => Source { store, object },
        (_, Named::Prefix(key)) => panic!("{key} is a prefix"),
    }
}

/// A refusal as S3 words it.
pub fn error(line: &str, code: &str) -> (Vec<u8>, Then) {
    let text = format!("<Error><Code>{code}</Code></Error>");
    let head = format!("HTTP/1.1 {line}\nContent-Length: {}", text.len());
    (raw(&head, text.as_bytes()), Then::Keep)
}

/// An object of 1000 bytes, in the answer to a range that holds all of it.
pub fn whole() -> (Vec<u8>, Then) {
    (part(0, 1000, 1000), Then::Keep)
}

/// Reads an object that a URL names.
pub async fn read_url(server: &Server, config: &StoreConfig, url: &str) -> Outcome {
    read_source(server, &open(url, config), 0, &[4096]).await
}
