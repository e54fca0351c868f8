//! Bytes held against the checksums that S3 has of whole objects.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

mod store_scripted;
mod store_signed;
use onecopy::buffer::Slab;
use onecopy::config::{Limits, StoreConfig, Variables};
use onecopy::ledger::{Ledger, Report};
use onecopy::route::Hop;
use onecopy::store::Source;
use onecopy::{Error, ErrorKind};
use onecopy_testkit::fault::{FaultServer, fill};
use store_scripted::{Server, Then, raw, serve_with};

/// Reads ranges one after the other; the first error ends it.
async fn read_all(
    source: &Source,
    ranges: &[(u64, usize)],
) -> (Result<Vec<Vec<u8>>, Error>, Report) {
    let ledger = Ledger::unread();
    let hop = ledger.hop(Hop::Recv);
    let mut all = Vec::new();
    for (offset, len) in ranges {
        let target = vec![Slab::heap(len / 2), Slab::heap(len - len / 2)];
        let read = source
            .store
            .read_into(&hop, &source.object, *offset, target);
        match read.await {
            Ok(filled) => all.push(store_signed::joined(&filled)),
            Err(error) => return (Err(error), ledger.report()),
        }
    }
    (Ok(all), ledger.report())
}

fn verified(report: &Report) -> Vec<(&str, u64)> {
    let all = report.verified.iter();
    all.map(|(name, count)| (&**name, *count)).collect()
}

#[tokio::test]
async fn an_object_is_verified_whole_and_in_ranges_against_what_s3_has() {
    let server = store_signed::server();
    let whole = store_signed::bytes(100_000);
    server.put("bkt", "k", whole.clone()).unwrap();
    let config = store_signed::config(&server);
    let mut source = store_signed::open("s3://bkt/k", &config);
    let (read, report) = read_all(&source, &[(0, 60_000), (60_000, 40_000)]).await;
    assert_eq!(read.unwrap().concat(), whole);
    assert_eq!(verified(&report), [("crc64nvme", 1)]);
    assert_eq!(server.count("HEAD"), 1, "one look-up for all ranges");
    // Once more, in another order: begun anew, not looked up again.
    let (read, report) = read_all(&source, &[(60_000, 40_000), (0, 60_000)]).await;
    assert!(read.is_ok());
    assert_eq!(verified(&report), [("crc64nvme", 1)]);
    assert_eq!(server.count("HEAD"), 1);
    source.object = source.store.head(&source.object).await.unwrap();
    server.forget_requests();
    let (read, report) = read_all(&source, &[(0, 100_000)]).await;
    assert_eq!(read.unwrap().concat(), whole);
    assert_eq!(verified(&report), [("crc64nvme", 1)]);
    assert_eq!(
        server.requests().len(),
        1,
        "a whole object brings its checksum along"
    );
    let (_, report) = read_all(&source, &[(0, 60_000)]).await;
    assert_eq!(verified(&report), [], "not all of it was read");
    let unverified = StoreConfig {
        is_checksum_unverified: true,
        ..config
    };
    let source = store_signed::open("s3://bkt/k", &unverified);
    server.forget_requests();
    let (_, report) = read_all(&source, &[(0, 60_000), (60_000, 40_000)]).await;
    assert_eq!(verified(&report), []);
    assert_eq!(server.count("HEAD"), 0);
}

/// A server with one object of 1000 bytes, the checksum headers given, and the bytes of the first `spoilt` GETs wrong.
fn object(headers: &'static str, spoilt: usize) -> Server {
    let gets = onecopy::sync::AtomicUsize::new(0);
    serve_with(move |request| {
        let right = store_scripted::body(0, 1000);
        let common = format!("ETag: \"e\"{headers}");
        if request.starts_with("HEAD") {
            assert!(request.contains("x-amz-checksum-mode: ENABLED"));
            let head = format!("HTTP/1.1 200 OK\nContent-Length: 1000\n{common}");
            return Some((raw(&head, b""), Then::Keep));
        }
        let mut body = right;
        if gets.fetch_add(1, onecopy::sync::Ordering::Relaxed) < spoilt {
            body[100] ^= 1;
        }
        let range = request.split_once("range: bytes=").map(|(_, rest)| {
            let (from, to) = rest.split_once("\r\n").unwrap().0.split_once('-').unwrap();
            let (from, last): (usize, usize) = (from.parse().unwrap(), to.parse().unwrap());
            (from, last.min(999) + 1)
        });
        Some(match range {
            None => {
                let head = format!("HTTP/1.1 200 OK\nContent-Length: 1000\n{common}");
                (raw(&head, &body), Then::Keep)
            }
            Some((from, to)) => {
                let head = format!(
                    "HTTP/1.1 206 P\nETag: \"e\"\nContent-Length: {}\nContent-Range: bytes {from}-{}/1000",
                    to - from,
                    to - 1
                );
                (raw(&head, &body[from..to]), Then::Keep)
            }
        })
    })
}

fn source(server: &Server, len: Option<u64>) -> Source {
    let config = StoreConfig {
        is_checksum_unverified: false,
        ..store_scripted::config(server)
    };
    let mut source = store_signed::open("s3://bkt/k", &config);
    source.object.len_bytes = len;
    source
}

/// Of `body(0, 1000)`, by Python's zlib and hashlib.
const CRC32: &str = "\nx-amz-checksum-crc32: mHG0RA==\nx-amz-checksum-type: FULL_OBJECT";
const SHA256: &str = "\nx-amz-checksum-sha256: muW/aiTAm8qdJjP8mcxxJBoWuZPvfIAZ9XSZP8iGVUw=";

#[tokio::test]
async fn every_checksum_of_a_whole_object_is_verified_where_it_can_be() {
    let ranges = &[(0, 400), (400, 600)][..];
    let whole = &[(0, 1000)][..];
    for (headers, ranges, wanted) in [
        (CRC32, whole, Some("crc32")),
        (CRC32, ranges, Some("crc32")),
        (SHA256, whole, Some("sha256")),
        (SHA256, ranges, None),
        ("", whole, None),
        ("", ranges, None),
        (
            "\nx-amz-checksum-crc32: AAAAAA==\nx-amz-checksum-type: COMPOSITE",
            whole,
            None,
        ),
        ("\nx-amz-checksum-crc32: AAAAAA==-2", ranges, None),
        // What looks like an MD5 is none.
        ("\nETag: \"00000000000000000000000000000000\"", whole, None),
    ] {
        let server = object(headers, 0);
        let (read, report) = read_all(&source(&server, Some(1000)), ranges).await;
        assert_eq!(read.unwrap().concat(), store_scripted::body(0, 1000));
        let wanted: Vec<(&str, u64)> = wanted.into_iter().map(|name| (name, 1)).collect();
        assert_eq!(verified(&report), wanted, "{headers}");
        let is_said = report.notes.iter().any(|note| note.contains("sha256"));
        assert_eq!(is_said, headers == SHA256 && ranges.len() > 1);
    }
}

#[tokio::test]
async fn wrong_bytes_are_an_error_and_never_delivered_as_the_whole() {
    for headers in [CRC32, SHA256] {
        let once = object(headers, 1);
        let (read, report) = read_all(&source(&once, Some(1000)), &[(0, 1000)]).await;
        assert_eq!(read.unwrap().concat(), store_scripted::body(0, 1000));
        assert_eq!(report.retries.by_cause["checksum"], 1);
        let always = object(headers, 9);
        let (read, report) = read_all(&source(&always, Some(1000)), &[(0, 1000)]).await;
        let error = read.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.help().unwrap().contains("`no_verify_checksum`"));
        assert_eq!(verified(&report), []);
        assert_eq!(always.seen.lock().len(), 2);
    }
    let server = object(CRC32, 1);
    let (read, _) = read_all(&source(&server, None), &[(0, 400), (400, 600)]).await;
    let error = read.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.why().contains("crc32"), "{error:#}");
}

/// The key of an object of the fault server that has a checksum, and an open source of it.
fn faulty(server: &FaultServer, faults: &str, len: usize) -> (Source, Vec<u8>) {
    let key = format!("sum,{faults}/{len}/object");
    let config = StoreConfig {
        endpoint_url: Some(server.endpoint()),
        is_anonymous: true,
        limits: Limits {
            stall_timeout: std::time::Duration::from_millis(1000),
            ..Limits::default()
        },
        variables: Variables::only([("A", "b")]),
        ..StoreConfig::default()
    };
    let mut right = vec![0; len];
    fill(&key, 0, &mut right);
    (
        store_signed::open(&format!("s3://bkt/{key}"), &config),
        right,
    )
}

/// Longer than what is received at once.
const LONG: usize = (2 << 20) + 12_345;

#[tokio::test]
async fn no_byte_is_summed_twice_or_left_out_however_bodies_come() {
    let server = FaultServer::start().unwrap();
    for faults in [
        "ok",
        "cut=33333",
        "cut=1x3",
        "reset=1000003",
        "stall=777777",
        "chunked",
        "chunked,cut=12345",
        "chunked,splithead,cut=1048577",
        "http10,cut=65537",
    ] {
        for ranges in [
            &[(0, LONG)][..],
            &[(0, 1_048_577), (1_048_577, LONG - 1_048_577)],
        ] {
            let (mut source, right) = faulty(&server, faults, LONG);
            if ranges.len() == 1 {
                source.object.len_bytes = Some(LONG as u64);
            }
            let (read, report) = read_all(&source, ranges).await;
            assert!(read.unwrap().concat() == right, "{faults}");
            assert_eq!(verified(&report), [("crc64nvme", 1)], "{faults}");
        }
    }
}

#[tokio::test]
async fn damage_before_a_resumed_body_is_found_and_asked_for_again_on_another_connection() {
    let server = FaultServer::start().unwrap();
    let (mut source, right) = faulty(&server, "cut=33333,flip=1000", 100_001);
    source.object.len_bytes = Some(100_001);
    let (read, report) = read_all(&source, &[(0, 100_001)]).await;
    assert!(read.unwrap().concat() == right);
    assert_eq!(verified(&report), [("crc64nvme", 1)]);
    assert_eq!(report.retries.by_cause["checksum"], 1);
    let connections: Vec<u64> = server.requests().iter().map(|r| r.connection).collect();
    assert_eq!(connections, [0, 1, 2]);
    // Where it is damaged each time, it is delivered never: the resumed part this time, too.
    let (mut source, _) = faulty(&server, "cut=33333,flip=1000x*", 100_001);
    source.object.len_bytes = Some(100_001);
    let (read, report) = read_all(&source, &[(0, 100_001)]).await;
    assert_eq!(read.unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(verified(&report), []);
}

#[tokio::test]
async fn a_range_that_was_taken_over_is_summed_once() {
    let server = FaultServer::start().unwrap();
    let (warm, _) = faulty(&server, "ok", 20 * 300_000);
    let warming: Vec<_> = (0..20).map(|at| (at * 300_000, 300_000)).collect();
    assert!(read_all(&warm, &warming).await.0.is_ok());
    let key = "sum,rate=200kBpsx1/2000001/slow";
    let mut slow = warm.clone();
    slow.object.key = onecopy::store::Key::new(key);
    slow.object.url = format!("s3://bkt/{key}").into();
    let (read, report) = read_all(&slow, &[(0, 2_000_001)]).await;
    let mut right = vec![0; 2_000_001];
    fill(key, 0, &mut right);
    assert!(read.unwrap().concat() == right);
    assert_eq!(report.retries.by_cause["slow"], 1);
    assert_eq!(verified(&report), [("crc64nvme", 1)]);
}

#[tokio::test]
async fn what_an_odd_answer_makes_void_is_summed_anew() {
    let gets = onecopy::sync::AtomicUsize::new(0);
    let server = serve_with(move |request| {
        if request.starts_with("HEAD") {
            let head = format!("HTTP/1.1 200 OK\nContent-Length: 1000\nETag: \"v1\"{CRC32}");
            return Some((raw(&head, b""), Then::Keep));
        }
        Some(match gets.fetch_add(1, onecopy::sync::Ordering::Relaxed) {
            0 => (store_scripted::part(0, 401, 77), Then::Close),
            1 => (store_scripted::part(78, 401, 323), Then::Close),
            2 => (store_scripted::part(0, 401, 401), Then::Keep),
            _ => (store_scripted::part(401, 1000, 599), Then::Keep),
        })
    });
    let (read, report) = read_all(&source(&server, None), &[(0, 401), (401, 599)]).await;
    assert_eq!(read.unwrap().concat(), store_scripted::body(0, 1000));
    assert_eq!(verified(&report), [("crc32", 1)]);
}
