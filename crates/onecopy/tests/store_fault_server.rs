//! The store against the testkit's fault server: what is read is right to the last byte, or an error.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

use std::time::Duration;

use onecopy::buffer::Slab;
use onecopy::config::{Limits, StoreConfig, Variables};
use onecopy::ledger::Ledger;
use onecopy::route::Hop;
use onecopy::store::{Filled, Named, Source, open_store};
use onecopy::{Error, ErrorKind};
use onecopy_testkit::fault::{FaultServer, body_byte};

const LEN: usize = 200_000;

fn config(server: &FaultServer) -> StoreConfig {
    StoreConfig {
        endpoint_url: Some(server.endpoint()),
        variables: Variables::only([("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b")]),
        limits: Limits {
            tries: 3,
            first_byte_timeout: Duration::from_millis(400),
            stall_timeout: Duration::from_millis(400),
            ..Limits::default()
        },
        ..StoreConfig::default()
    }
}

fn source(server: &FaultServer, script: &str) -> (Source, String) {
    let key = format!("{script}/{LEN}/object");
    let (store, named) = open_store(&format!("s3://bkt/{key}"), &config(server)).unwrap();
    let Named::Object(object) = named else {
        panic!("an object")
    };
    (Source { store, object }, key)
}

async fn read(source: &Source, offset: usize, len: usize) -> (Result<Filled, Error>, Vec<String>) {
    let ledger = Ledger::unread();
    let hop = ledger.hop(Hop::Recv);
    let mut target = vec![Slab::heap(len)];
    let front = target[0].split_to(len / 3);
    target.insert(0, front);
    let filled = source
        .store
        .read_into(&hop, &source.object, offset as u64, target)
        .await;
    (
        filled,
        ledger.report().retries.by_cause.into_keys().collect(),
    )
}

fn assert_right(filled: &Filled, key: &str, offset: usize, what: &str) {
    let len = usize::try_from(filled.len_bytes).unwrap();
    let mut bytes = filled
        .target
        .iter()
        .flat_map(|slab| slab.iter().copied())
        .take(len);
    let is_right = (0..len).all(|at| bytes.next() == Some(body_byte(key, (offset + at) as u64)));
    assert!(is_right, "{what}: wrong bytes");
    assert_eq!(len, LEN - offset, "{what}");
}

#[tokio::test]
async fn what_passes_is_survived_and_noted_by_its_cause() {
    let server = FaultServer::start().unwrap();
    for (script, cause) in [
        ("ok", ""),
        ("splithead", ""),
        ("100continue", ""),
        ("chunked", ""),
        ("http10", ""),
        ("noetag", ""),
        ("etag=weak", ""),
        ("etag=unquoted", ""),
        ("closeafter=1", ""),
        ("cut=0", "short_body"),
        ("cut=100000", "short_body"),
        ("chunked+cut=100000x1", "short_body"),
        ("reset=100000", "reset"),
        ("stall=100000", "stalled"),
        ("drip=1Bpsx1", "stalled"),
        ("hang", "first_byte_timeout"),
        ("ttfb=60sx1", "first_byte_timeout"),
        ("noetag+cut=50000", "short_body"),
        ("etag=unquoted+cut=50000", "short_body"),
        ("etag=weak+cut=50000", "short_body"),
        ("status=500", "server_error"),
        ("status=503", "throttled"),
        ("status=503+nobody", "throttled"),
        ("status=429", "throttled"),
        ("status=400x1+code=RequestTimeoutx1", "server_timeout"),
    ] {
        let (source, key) = source(&server, script);
        for offset in [0, 777] {
            let (filled, causes) = read(&source, offset, LEN).await;
            let what = format!("{script} from {offset}");
            let filled = filled.unwrap_or_else(|error| panic!("{what}: {error:#}"));
            assert_right(&filled, &key, offset, &what);
            if offset == 0 && !cause.is_empty() {
                assert!(
                    causes.iter().any(|seen| seen == cause),
                    "{what}: {causes:?}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_long_body_that_trickles_is_no_stall() {
    // More than a wait may wait for at once, at a rate at which that would take longer than the stall.
    const LONG: usize = 560_000;
    let server = FaultServer::start().unwrap();
    let (store, named) = open_store(
        &format!("s3://bkt/rate=200KBpsx*/{LONG}/object"),
        &config(&server),
    )
    .unwrap();
    let Named::Object(object) = named else {
        panic!("an object")
    };
    let (filled, causes) = read(&Source { store, object }, 0, LONG).await;
    assert_eq!(filled.unwrap().len_bytes, LONG as u64);
    assert!(causes.is_empty(), "{causes:?}");
}

#[tokio::test]
async fn what_stays_is_an_error_of_the_right_kind_and_never_wrong_bytes() {
    let server = FaultServer::start().unwrap();
    for (script, kind) in [
        ("norange", ErrorKind::Unsupported),
        ("wrongrangex*", ErrorKind::Corrupt),
        ("bigheadx*", ErrorKind::Corrupt),
        ("dupelenx*", ErrorKind::Corrupt),
        ("htmlx*", ErrorKind::Corrupt),
        ("xmlerrorx*", ErrorKind::Unreachable),
        ("cut=0x*", ErrorKind::Truncated),
        ("status=503x*", ErrorKind::Throttled),
        ("status=404x*", ErrorKind::NotFound),
        ("status=403x*", ErrorKind::Denied),
        ("etag=change+cut=100", ErrorKind::Changed),
    ] {
        let (source, _) = source(&server, script);
        let (result, _) = read(&source, 1000, LEN - 2000).await;
        let error = result.err().unwrap_or_else(|| panic!("{script}: no error"));
        assert_eq!(error.kind(), kind, "{script}: {error:#}");
        assert!(error.target().starts_with("s3://bkt/"), "{script}");
    }
}

#[tokio::test]
async fn an_object_is_empty_only_where_that_is_proven() {
    let server = FaultServer::start().unwrap();
    let source_of = |script: &str, len: usize| {
        let (mut source, _) = source(&server, script);
        let key = format!("{script}/{len}/object");
        let (_, named) = open_store(&format!("s3://bkt/{key}"), &config(&server)).unwrap();
        let Named::Object(object) = named else {
            panic!("an object")
        };
        source.object = object;
        (source, key)
    };
    // The server's own 416 says `bytes */0`; the scripted one says nothing, and is once or for ever.
    for script in ["ok", "status=416x1", "status=416x1+nobody", "chunked"] {
        let (source, _) = source_of(script, 0);
        let filled = read(&source, 0, LEN).await.0.unwrap();
        assert_eq!(
            (filled.len_bytes, filled.object.len_bytes),
            (0, Some(0)),
            "{script}"
        );
        let (source, key) = source_of(script, LEN);
        let filled = read(&source, 0, LEN).await.0.unwrap();
        assert_right(&filled, &key, 0, script);
    }
    for len in [0, LEN] {
        let (source, _) = source_of("status=416x*", len);
        let error = read(&source, 0, LEN).await.0.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error:#}");
    }
}

#[tokio::test]
async fn many_ranges_at_once_over_failing_connections_are_all_right() {
    let server = FaultServer::start().unwrap();
    let (mut first, key) = source(&server, "cut=3000x9+reset=2000x5+status=503x3");
    first.object.len_bytes = Some(LEN as u64);
    let mut running = tokio::task::JoinSet::new();
    for part in 0..20 {
        let source = first.clone();
        running.spawn(async move {
            let limit = LEN / 20;
            let hop = Ledger::unread().hop(Hop::Recv);
            let target = vec![Slab::heap(limit)];
            let at = part * limit;
            (
                at,
                source
                    .store
                    .read_into(&hop, &source.object, at as u64, target)
                    .await,
            )
        });
    }
    while let Some(done) = running.join_next().await {
        let (at, filled) = done.unwrap();
        // Three tries may not be enough for one of them; what is delivered is right.
        let Ok(filled) = filled else { continue };
        for (index, byte) in filled.target[0].iter().enumerate() {
            assert_eq!(
                *byte,
                body_byte(&key, (at + index) as u64),
                "byte {}",
                at + index
            );
        }
    }
}
