//! What the fault server promises to break, and to serve.

#![expect(
    clippy::disallowed_methods,
    reason = "tests read whole answers; no payload of ours moves"
)]

mod client;

use std::io::{ErrorKind, Read as _};

use client::{Answer, Client};
use onecopy_testkit::fault::{FaultServer, Profile, fill};

fn body(key: &str, start: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    fill(key, start, &mut bytes);
    bytes
}

fn ask(server: &FaultServer, key: &str, headers: &[(&str, &str)]) -> Answer {
    Client::to(server.addr()).ask("GET", &format!("/bucket/{key}"), headers)
}

/// Reads the head, then whatever comes until the connection ends, and how it ends.
fn rest(server: &FaultServer, key: &str) -> (u16, String, Vec<u8>, Option<ErrorKind>) {
    let mut client = Client::to(server.addr());
    client.send("GET", &format!("/bucket/{key}"), &[], b"");
    let (status, headers) = client.head();
    let mut bytes = Vec::new();
    let end = client
        .stream
        .read_to_end(&mut bytes)
        .err()
        .map(|e| e.kind());
    (
        status,
        headers.get("content-length").cloned().unwrap_or_default(),
        bytes,
        end,
    )
}

#[test]
fn serves_a_body_that_is_a_function_of_key_and_offset() {
    let server = FaultServer::start().unwrap();
    let key = "ok/100kB/name";
    assert_eq!(ask(&server, key, &[]).body, body(key, 0, 100_000));
    let part = ask(&server, key, &[("Range", "bytes=777-80002")]);
    assert_eq!(
        (part.status, part.header("content-range")),
        (206, "bytes 777-80002/100000")
    );
    assert_eq!(part.body, body(key, 777, 79_226));
    let beyond = ask(&server, key, &[("Range", "bytes=100000-")]);
    assert_eq!(
        (beyond.status, beyond.header("content-range")),
        (416, "bytes */100000")
    );
    let mut client = Client::to(server.addr());
    assert_eq!(
        client
            .ask("HEAD", "/bucket/ok/100kB", &[])
            .header("content-length"),
        "100000"
    );
    assert_eq!(
        client.ask("GET", "/bucket/nothing", &[]).xml("Code"),
        "NoSuchKey"
    );
    assert_eq!(client.ask("GET", "/bucket/nonsense/5", &[]).status, 400);
}

#[test]
fn cuts_and_resets_the_first_answers_only() {
    let server = FaultServer::start().unwrap();
    let (status, length, bytes, end) = rest(&server, "cut=1000x2/5000");
    assert_eq!((status, length.as_str(), end), (200, "5000", None));
    assert_eq!(bytes, body("cut=1000x2/5000", 0, 1000));
    assert_eq!(rest(&server, "cut=1000x2/5000").2.len(), 1000);
    assert_eq!(ask(&server, "cut=1000x2/5000", &[]).body.len(), 5000);

    assert_eq!(
        rest(&server, "reset=10/5000").3,
        Some(ErrorKind::ConnectionReset)
    );
    assert_eq!(ask(&server, "reset=10/5000", &[]).body.len(), 5000);
    let seen = server.requests();
    assert_eq!(
        seen.iter().map(|r| r.bytes_sent).collect::<Vec<_>>(),
        [1000, 1000, 5000, 10, 5000]
    );
    assert_eq!(
        seen.iter().map(|r| r.number).collect::<Vec<_>>(),
        [0, 1, 2, 0, 1]
    );
}

#[test]
fn tells_wrong_lengths_and_places() {
    let server = FaultServer::start().unwrap();
    let (_, length, bytes, _) = rest(&server, "short/100");
    assert_eq!((length.as_str(), bytes.len()), ("99", 100));
    let (_, length, bytes, _) = rest(&server, "long/100");
    assert_eq!((length.as_str(), bytes.len()), ("101", 100));
    let wrong = ask(&server, "wrongrange/100", &[("Range", "bytes=10-19")]);
    assert_eq!(wrong.header("content-range"), "bytes 11-20/100");
    let whole = ask(&server, "norange/100", &[("Range", "bytes=10-19")]);
    assert_eq!((whole.status, whole.body.len()), (200, 100));
    let mut client = Client::to(server.addr());
    client.send("GET", "/bucket/dupelen/100", &[], b"");
    let mut bytes = Vec::new();
    client.stream.read_to_end(&mut bytes).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.contains("Content-Length: 100\r\n") && text.contains("Content-Length: 101\r\n"));
    let flipped = ask(&server, "flip=7/100", &[]).body;
    let right = body("flip=7/100", 0, 100);
    assert_eq!(flipped[7] ^ right[7], 1);
    assert_eq!((&flipped[..7], &flipped[8..]), (&right[..7], &right[8..]));
}

#[test]
fn answers_errors_as_often_as_the_script_says() {
    let server = FaultServer::start().unwrap();
    let codes = || {
        let answer = ask(&server, "status=503x3/10", &[]);
        (answer.status, answer.xml("Code"))
    };
    let told: Vec<_> = (0..4).map(|_| codes()).collect();
    let slow = (503, "SlowDown".to_owned());
    assert_eq!(
        told,
        [slow.clone(), slow.clone(), slow, (200, String::new())]
    );
    let later = ask(&server, "status=429x2,retryafter=1/10", &[]);
    assert_eq!((later.status, later.header("retry-after")), (429, "1"));
    assert_eq!(
        ask(&server, "status=403/10", &[]).xml("Code"),
        "AccessDenied"
    );
    assert_eq!(ask(&server, "status=403/10", &[]).status, 403);
    let expired = ask(&server, "status=400,code=ExpiredToken/10", &[]);
    assert_eq!(expired.xml("Code"), "ExpiredToken");
    assert_eq!(ask(&server, "status=500,nobody/10", &[]).body, b"");
    let page = ask(&server, "html/10", &[]);
    assert_eq!(
        (page.status, page.header("content-type")),
        (200, "text/html")
    );
    assert_eq!(ask(&server, "html/10", &[]).body, body("html/10", 0, 10));
    assert_eq!(
        ask(&server, "xmlerror/10", &[]).xml("Code"),
        "InternalError"
    );
}

#[test]
fn changes_weakens_and_hides_etags() {
    let server = FaultServer::start().unwrap();
    let first = ask(&server, "etag=change/10", &[]);
    let etag = first.header("etag").to_owned();
    assert_eq!(
        ask(&server, "etag=change/10", &[("If-Match", &etag)]).status,
        412
    );
    assert_ne!(ask(&server, "etag=change/10", &[]).header("etag"), etag);
    assert!(
        ask(&server, "etag=weak/10", &[])
            .header("etag")
            .starts_with("W/\"")
    );
    assert!(
        !ask(&server, "etag=unquoted/10", &[])
            .header("etag")
            .contains('"')
    );
    assert_eq!(ask(&server, "noetag/10", &[]).header("etag"), "");
    let other = [("If-Match", "\"other\"")];
    assert_eq!(ask(&server, "ok/10", &other).status, 412);
    assert_eq!(ask(&server, "ignoreifmatch/10", &other).status, 200);
}

#[test]
fn frames_answers_in_odd_but_valid_ways() {
    let server = FaultServer::start().unwrap();
    let key = "chunked,splithead/300kB";
    assert_eq!(ask(&server, key, &[]).body.len(), 300_000);
    let mut client = Client::to(server.addr());
    client.send("GET", "/bucket/100continue/10", &[], b"");
    assert_eq!((client.head().0, client.head().0), (100, 103));
    assert_eq!(client.answer("GET").body.len(), 10);
    let (status, _, bytes, end) = rest(&server, "http10/10");
    assert_eq!((status, bytes.len(), end), (200, 10, None));
    let big = ask(&server, "bighead/10", &[]);
    assert_eq!(big.header("x-filler").len(), 1000);
    let mut client = Client::to(server.addr());
    assert_eq!(
        client
            .ask("GET", "/bucket/closeafter=2/10", &[])
            .header("connection"),
        ""
    );
    assert_eq!(
        client
            .ask("GET", "/bucket/closeafter=2/10", &[])
            .header("connection"),
        "close"
    );
    assert_eq!(client.stream.read(&mut [0]).unwrap(), 0);
}

#[test]
fn serves_and_scripts_the_bytes_of_a_test() {
    let server = FaultServer::start().unwrap();
    server.put("my/key", b"0123456789".as_slice());
    server.script("my/key", "cut=3x1").unwrap();
    assert_eq!(rest(&server, "my/key").2, b"012");
    assert_eq!(ask(&server, "my/key", &[]).body, b"0123456789");
    server.script("my/key", "cut=4x1").unwrap();
    assert_eq!(rest(&server, "my/key").2, b"0123");
    assert!(server.script("my/key", "nonsense").is_err());
    let mut client = Client::to(server.addr());
    assert_eq!(client.put("/bucket/new", b"abc").status, 200);
    assert_eq!(client.ask("GET", "/bucket/new", &[]).body, b"abc");
    let list = client.ask("GET", "/bucket?list-type=2", &[]);
    assert_eq!(list.xml_all("Key"), ["my/key", "new"]);
    let etag = list.xml_all("ETag")[1].replace("&quot;", "\"");
    assert_eq!(
        client
            .ask("GET", "/bucket/new", &[("If-Match", &etag)])
            .status,
        200
    );
}

#[test]
fn lists_wrongly_when_told_to() {
    let server = FaultServer::start().unwrap();
    server.put_listing(
        "bucket",
        (0..5).map(|n| (format!("k{n}"), 10 + n)).collect(),
    );
    let page = |token: &str| {
        let mut target = "/bucket?list-type=2&max-keys=2".to_owned();
        if !token.is_empty() {
            target += &format!("&continuation-token={}", token.replace('+', "%2B"));
        }
        let page = Client::to(server.addr()).ask("GET", &target, &[]);
        (
            page.status,
            page.xml_all("Key"),
            page.xml("NextContinuationToken"),
            page.xml("IsTruncated"),
        )
    };
    let (_, keys, second, _) = page("");
    assert_eq!(keys, ["k0", "k1"]);
    assert_eq!(page(&second).1, ["k2", "k3"]);
    assert_eq!(ask(&server, "k3", &[]).body, body("k3", 0, 13));
    server.script_listing("bucket", "duplicates").unwrap();
    assert_eq!(page(&second).1, ["k1", "k2", "k3"]);
    server.script_listing("bucket", "sametoken").unwrap();
    assert_eq!(page(&second).2, second);
    server.script_listing("bucket", "emptypage").unwrap();
    let (_, keys, next, truncated) = page("");
    assert_eq!((keys.len(), truncated.as_str()), (0, "true"));
    assert_eq!(page(&next).1, ["k0", "k1"]);
    server.script_listing("bucket", "failpage=2").unwrap();
    assert_eq!((page("").0, page(&second).0), (200, 500));
    server.script_listing("bucket", "notoken").unwrap();
    assert_eq!((page("").2.as_str(), page("").3.as_str()), ("", "true"));
}

#[test]
fn stops_while_connections_hang_stall_drip_and_wait() {
    let server = FaultServer::start().unwrap();
    let keys = [
        "hang/10",
        "stall=1/10",
        "drip=1Bps/1000",
        "ttfb=1000s/10",
        "ok/1GiB",
    ];
    let mut clients = Vec::new();
    for key in keys {
        let mut client = Client::to(server.addr());
        client.send("GET", &format!("/bucket/{key}"), &[], b"");
        clients.push(client);
    }
    // An idle connection, too.
    clients.push(Client::to(server.addr()));
    while server.requests().len() < keys.len() {
        std::thread::yield_now();
    }
    drop(server);
    for mut client in clients {
        // Whatever came before, every connection has ended.
        drop(client.stream.read_to_end(&mut Vec::new()));
    }
}

#[test]
fn slows_down_beyond_the_rate_of_the_profile() {
    // A rate so low that no test lives to see a second token.
    let profile = Profile {
        requests_per_second: 1.0,
        close_after: 3,
        ..Profile::instant()
    };
    let server = FaultServer::start_with("127.0.0.1:0", profile).unwrap();
    let mut client = Client::to(server.addr());
    let told: Vec<_> = (0..3)
        .map(|_| client.ask("GET", "/bucket/ok/1", &[]).status)
        .collect();
    assert_eq!(told[0], 200);
    assert!(told.contains(&503));
    assert_eq!(
        client.stream.read(&mut [0]).unwrap(),
        0,
        "closed after three requests"
    );
}
