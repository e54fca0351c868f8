//! Many requests at once: what they share (connections, credentials, retries) and how it is counted.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use onecopy::buffer::Slab;
use onecopy::config::{Limits, StoreConfig, Variables};
use onecopy::ledger::{Ledger, Report};
use onecopy::route::Hop;
use onecopy::store::{Filled, Named, Object, Store, open_store_counted};
use onecopy::sync::Arc;
use onecopy::{Error, ErrorKind};
use onecopy_testkit::fault::{FaultServer, body_byte};

/// Several objects of one bucket, read over the same connections and counted together.
struct Bucket {
    store: Arc<dyn Store>,
    object: Object,
    ledger: Arc<Ledger>,
}

impl Bucket {
    fn open(config: &StoreConfig) -> Self {
        let ledger = Ledger::unread();
        let (store, named) = open_store_counted("s3://bkt/any", config, &ledger).unwrap();
        let Named::Object(object) = named else {
            panic!("an object")
        };
        Self {
            store,
            object,
            ledger,
        }
    }

    fn object(&self, key: &str) -> Object {
        let mut object = self.object.clone();
        object.key = onecopy::store::Key::new(key);
        object.url = format!("s3://bkt/{key}").into();
        object
    }

    /// Reads `len` bytes of the object from 0 on.
    async fn read(&self, key: &str, len: usize) -> Result<Filled, Error> {
        let hop = self.ledger.hop(Hop::Recv);
        let object = self.object(key);
        let read = self
            .store
            .read_into(&hop, &object, 0, vec![Slab::heap(len)]);
        let filled = read.await?;
        let is_right = |(at, byte): (usize, &u8)| *byte == body_byte(key, at as u64);
        assert!(filled.target[0].iter().enumerate().all(is_right), "{key}");
        Ok(filled)
    }

    fn report(&self) -> Report {
        self.ledger.report()
    }
}

fn config(server: &FaultServer) -> StoreConfig {
    StoreConfig {
        endpoint_url: Some(server.endpoint()),
        variables: Variables::only([("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b")]),
        // A look-up would come first, and requests are counted here.
        is_checksum_unverified: true,
        limits: Limits {
            tries: 4,
            first_byte_timeout: Duration::from_secs(5),
            ..Limits::default()
        },
        ..StoreConfig::default()
    }
}

#[tokio::test]
async fn one_odd_answer_from_a_server_that_gave_right_ones_is_asked_for_once_more() {
    let server = FaultServer::start().unwrap();
    for (script, cause) in [
        ("html", "bad_answer"),
        ("wrongrange", "bad_answer"),
        ("bighead", "bad_answer"),
        ("norangex1", "no_ranges"),
    ] {
        let key = format!("{script}/9000/a");
        // From a server that never gave a right one it is an error at once.
        let bucket = Bucket::open(&config(&server));
        assert!(bucket.read(&key, 1000).await.is_err(), "{script}");
        assert_eq!(bucket.report().retries.total, 0, "{script}");
        bucket.read("ok/1000/b", 1000).await.unwrap();
        let key = format!("{script}/9000/c");
        bucket.read(&key, 1000).await.unwrap();
        assert_eq!(bucket.report().retries.by_cause[cause], 1, "{script}");
        // And one that stays odd is an error after the second.
        let always = format!("{}x*/9000/d", script.trim_end_matches("x1"));
        assert!(bucket.read(&always, 1000).await.is_err(), "{script}");
        assert_eq!(bucket.report().retries.by_cause[cause], 2, "{script}");
    }
}

#[tokio::test]
async fn look_ups_count_their_retries() {
    let server = FaultServer::start().unwrap();
    let bucket = Bucket::open(&config(&server));
    let object = bucket.object("status=503x*/9/a");
    let error = bucket.store.head(&object).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Throttled);
    assert_eq!(bucket.report().retries.by_cause["throttled"], 3);
}

/// A profile whose keys come from a program that notes each of its runs, and gives another key each time.
fn counting_profile(folder: &std::path::Path) -> Variables {
    let program = folder.join("keys.sh");
    let text = format!(
        "#!/bin/sh\necho run >> {runs}\nkey=$(wc -l < {runs})\necho '{{\"Version\": 1, \"AccessKeyId\": \"'$key'\", \
         \"SecretAccessKey\": \"b\", \"SessionToken\": \"t\", \"Expiration\": \"2100-01-01T00:00:00Z\"}}'\n",
        runs = folder.join("runs").display()
    );
    std::fs::write(&program, text).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
    let file = folder.join("config");
    let text = format!("[default]\ncredential_process = {}\n", program.display());
    std::fs::write(&file, text).unwrap();
    Variables::only([
        ("AWS_CONFIG_FILE", file.to_str().unwrap()),
        ("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent"),
        ("AWS_EC2_METADATA_DISABLED", "true"),
    ])
}

#[tokio::test]
async fn many_ranges_refused_together_refresh_the_credentials_once() {
    let server = FaultServer::start().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(&server);
    config.variables = counting_profile(folder.path());
    let bucket = Arc::new(Bucket::open(&config));
    let mut ranges = tokio::task::JoinSet::new();
    for range in 0..20 {
        let bucket = Arc::clone(&bucket);
        ranges.spawn(async move {
            // All are asked before the first is answered.
            let key = format!("ttfb=1500msx1,status=400x1,code=ExpiredTokenx1/1000/{range}");
            bucket.read(&key, 1000).await.map(|_| ())
        });
    }
    while let Some(done) = ranges.join_next().await {
        done.unwrap().unwrap();
    }
    assert_eq!(bucket.report().retries.by_cause["expired_token"], 20);
    let runs = std::fs::read_to_string(folder.path().join("runs")).unwrap();
    assert_eq!(
        runs.lines().count(),
        2,
        "once at first, once for all twenty"
    );
}

#[tokio::test]
async fn a_fixed_number_of_connections_is_never_passed_and_survives_refusals() {
    let server = FaultServer::start().unwrap();
    let mut config = config(&server);
    config.limits.connections = 3;
    let bucket = Arc::new(Bucket::open(&config));
    let mut ranges = tokio::task::JoinSet::new();
    for range in 0..40 {
        let bucket = Arc::clone(&bucket);
        ranges.spawn(async move {
            let script = if range % 4 == 0 { "status=503" } else { "ok" };
            bucket
                .read(&format!("{script}/1000/{range}"), 1000)
                .await
                .map(|_| ())
        });
    }
    while let Some(done) = ranges.join_next().await {
        done.unwrap().unwrap();
    }
    let connections = server
        .requests()
        .iter()
        .map(|r| r.connection)
        .max()
        .unwrap()
        + 1;
    assert!(connections <= 3, "{connections}");
    let report = bucket.report();
    assert_eq!(report.retries.by_cause["throttled"], 10);
    let network = report.network;
    assert_eq!(
        network.first_byte_seconds.count, 50,
        "forty answers and ten refusals"
    );
    assert_eq!(network.range_seconds.count, 40);
    assert_eq!(network.connections.opened, connections);
    assert_eq!(network.connections.reused, 50 - connections);
    assert!(network.connections.allowed <= 3);
    assert_eq!(network.addresses["127.0.0.1"], connections);
}

/// Reads enough ranges for the next ones to be compared with.
async fn read_many(bucket: &Bucket) {
    for range in 0..20 {
        bucket
            .read(&format!("ok/300000/{range}"), 300_000)
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn a_range_slow_among_its_like_goes_on_elsewhere_at_the_exact_offset() {
    let server = FaultServer::start().unwrap();
    let bucket = Bucket::open(&config(&server));
    read_many(&bucket).await;
    // The first answer would take ten seconds, and the second takes none.
    let key = "rate=200kBpsx1/2000000/slow";
    bucket.read(key, 2_000_000).await.unwrap();
    assert_eq!(bucket.report().retries.by_cause["slow"], 1);
    let asked: Vec<_> = server
        .requests()
        .into_iter()
        .filter(|r| r.key == key)
        .collect();
    assert_eq!(asked.len(), 2);
    assert_ne!(asked[0].connection, asked[1].connection);
    let range = asked[1].range.as_deref().unwrap();
    assert!(
        range.starts_with("bytes=") && range.ends_with("-1999999"),
        "{range}"
    );
    assert!(
        !range.starts_with("bytes=0-"),
        "what had come is not asked for again"
    );
    assert!(asked[1].if_match.is_some());
}

#[tokio::test]
async fn a_first_byte_late_among_its_like_is_asked_for_elsewhere() {
    let server = FaultServer::start().unwrap();
    let bucket = Bucket::open(&config(&server));
    read_many(&bucket).await;
    let key = "ttfb=60sx1/1000/late";
    bucket.read(key, 1000).await.unwrap();
    assert_eq!(bucket.report().retries.by_cause["late_first_byte"], 1);
}
