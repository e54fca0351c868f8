//! Who may read: credentials, certificates, refusals, and how many connections.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

mod store_signed;
use onecopy::ErrorKind;
use onecopy::buffer::Slab;
use onecopy::config::{Secret, StoreConfig, Variables};
use onecopy::ledger::Ledger;
use onecopy::route::Hop;
use onecopy_testkit::s3::S3Server;
use store_signed::*;

#[tokio::test]
async fn refusals_are_told_apart() {
    let server = server();
    server.put("bkt", "k", bytes(10)).unwrap();
    let good = config(&server);
    let error = |url: &'static str, config: StoreConfig| async move {
        read(&open(url, &config), 0, &[16]).await.unwrap_err()
    };
    let missing = error("s3://bkt/nope", good.clone()).await;
    assert_eq!(
        (missing.kind(), missing.why()),
        (ErrorKind::NotFound, "the object does not exist")
    );
    assert_eq!(
        missing.to_string(),
        "could not read s3://bkt/nope: the object does not exist"
    );
    assert_eq!(missing.target(), "s3://bkt/nope");
    let missing = error("s3://nowhere/k", good.clone()).await;
    assert_eq!(
        (missing.kind(), missing.why()),
        (ErrorKind::NotFound, "there is no bucket nowhere")
    );
    let with = |id: &str, secret: &str| StoreConfig {
        variables: Variables::only([("AWS_ACCESS_KEY_ID", id), ("AWS_SECRET_ACCESS_KEY", secret)]),
        ..good.clone()
    };
    let wrong = error("s3://bkt/k", with("onecopy", "hush-hush")).await;
    assert_eq!(
        (wrong.kind(), wrong.why()),
        (ErrorKind::Denied, "the signature does not match")
    );
    assert!(!format!("{wrong:#}").contains("hush"));
    let unknown = error("s3://bkt/k", with("nobody", "x")).await;
    assert_eq!(
        (unknown.kind(), unknown.why()),
        (ErrorKind::Denied, "the access key is not known here")
    );
    let anonymous = error(
        "s3://bkt/k",
        StoreConfig {
            is_anonymous: true,
            ..good.clone()
        },
    )
    .await;
    assert_eq!(anonymous.kind(), ErrorKind::Denied);
    assert!(anonymous.help().unwrap().contains("`no_sign_request`"));
}

#[tokio::test]
async fn no_credentials_anywhere_is_said_with_help() {
    let server = server();
    let mut config = config(&server);
    config.variables = Variables::only([("AWS_EC2_METADATA_DISABLED", "true")]);
    let error = read(&open("s3://bkt/k", &config), 0, &[16])
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind(), error.why()),
        (ErrorKind::Denied, "no credentials were found")
    );
    assert!(error.help().unwrap().contains("AWS_ACCESS_KEY_ID"));
    assert_eq!(server.requests().len(), 0);
}

#[tokio::test]
async fn an_object_with_a_key_of_the_customer_is_read_with_that_key_only() {
    let server = server();
    let whole = bytes(100_000);
    // The bytes 0 to 31, and their MD5.
    let key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let md5 = "tP/LI3N87DFaSk0aoqYgzg==";
    server
        .put_locked("bkt", "locked", whole.clone(), md5)
        .unwrap();
    server.put("bkt", "open", whole.clone()).unwrap();
    let with = |key: Option<&str>| StoreConfig {
        sse_c_key: key.map(|key| Secret(key.to_owned())),
        ..config(&server)
    };
    let source = open("s3://bkt/locked", &with(Some(key)));
    let first = read(&source, 0, &[60_000]).await.unwrap();
    let second = read(&source, 60_000, &[60_000]).await.unwrap();
    assert_eq!([joined(&first), joined(&second)].concat(), whole);
    let found = source.store.head(&source.object).await.unwrap();
    assert_eq!(found.len_bytes, Some(100_000));
    let other = "BAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    for (url, key, kind) in [
        ("s3://bkt/locked", None, ErrorKind::Unsupported),
        ("s3://bkt/locked", Some(other), ErrorKind::Denied),
        ("s3://bkt/open", Some(key), ErrorKind::Unsupported),
    ] {
        let source = open(url, &with(key));
        let looked_up = source.store.head(&source.object).await.map(|_| ());
        let was_read = read(&source, 0, &[16]).await.map(|_| ());
        for result in [looked_up, was_read] {
            let error = result.unwrap_err();
            assert_eq!(error.kind(), kind, "{url} {error:#}");
            assert!(error.help().unwrap().contains("`sse_c_key`"), "{error:#}");
        }
    }
}

#[tokio::test]
async fn credentials_come_from_a_profile() {
    let server = server();
    server.put("bkt", "k", bytes(10)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("credentials");
    let text = "[lab]\naws_access_key_id = onecopy\naws_secret_access_key = onecopy-secret\n";
    std::fs::write(&file, text).unwrap();
    let mut config = config(&server);
    config.profile = Some("lab".to_owned());
    config.variables = Variables::only([
        ("AWS_SHARED_CREDENTIALS_FILE", file.to_str().unwrap()),
        ("AWS_ACCESS_KEY_ID", "somebody"),
        ("AWS_SECRET_ACCESS_KEY", "else"),
    ]);
    assert_eq!(
        read(&open("s3://bkt/k", &config), 0, &[16])
            .await
            .unwrap()
            .len_bytes,
        10
    );
}

#[tokio::test]
async fn connections_are_used_again_and_bounded() {
    let server = server();
    server.put("bkt", "k", bytes(100_000)).unwrap();
    let mut config = config(&server);
    config.limits.connections = 2;
    let source = open("s3://bkt/k", &config);
    let mut running = tokio::task::JoinSet::new();
    for part in 0..20_u64 {
        let source = source.clone();
        running.spawn(async move { read(&source, part * 5000, &[5000]).await.map(|f| (part, f)) });
    }
    while let Some(done) = running.join_next().await {
        let (part, filled) = done.unwrap().unwrap();
        let at = usize::try_from(part * 5000).unwrap();
        assert_eq!(joined(&filled), bytes(100_000)[at..at + 5000]);
    }
    let connections: std::collections::HashSet<u64> = server
        .requests()
        .iter()
        .map(|request| request.connection)
        .collect();
    assert!(connections.len() <= 2, "{connections:?}");
}

#[tokio::test]
async fn tls_is_read_with_the_right_bundle_and_refused_without() {
    let server = S3Server::builder().tls(true).start().unwrap();
    server.create_bucket("bkt").unwrap();
    let whole = bytes(1 << 20);
    server.put("bkt", "k", whole.clone()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("ca.pem");
    std::fs::write(&bundle, server.ca_pem().unwrap()).unwrap();
    let mut trusting = config(&server);
    trusting.ca_bundle = Some(bundle.to_str().unwrap().to_owned());
    let ledger = Ledger::unread();
    let hop = ledger.hop(Hop::Recv);
    let source = open("s3://bkt/k", &trusting);
    let target = vec![Slab::heap(1 << 19), Slab::heap(1 << 19)];
    let filled = source
        .store
        .read_into(&hop, &source.object, 0, target)
        .await
        .unwrap();
    assert_eq!(joined(&filled), whole);
    let report = ledger.report();
    let moved = |name| {
        let hop = report.hops.iter().find(|hop| hop.hop == name);
        hop.map_or(0, |hop| hop.bytes)
    };
    assert_eq!((moved("recv"), moved("tls_recv")), (0, 1 << 20));
    assert_eq!(moved("tls_open"), 1 << 20);
    // Behind the head, across the two slabs, and at the end.
    assert!(moved("tls_copy") <= 4 << 14, "{}", moved("tls_copy"));
    let unchecked = StoreConfig {
        is_tls_unverified: true,
        ..config(&server)
    };
    assert_eq!(
        joined(
            &read(&open("s3://bkt/k", &unchecked), 0, &[1 << 20])
                .await
                .unwrap()
        ),
        whole
    );
    // A certificate that the system does not know.
    let other = rcgen_bundle(folder.path());
    let distrusting = StoreConfig {
        ca_bundle: Some(other),
        ..config(&server)
    };
    let error = read(&open("s3://bkt/k", &distrusting), 0, &[16])
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    let help = error.help().unwrap_or_default();
    assert!(help.contains("`ca_bundle`"), "{error:#?}");
}

/// The certificate of another server.
fn rcgen_bundle(folder: &std::path::Path) -> String {
    let other = S3Server::builder().tls(true).start().unwrap();
    let path = folder.join("other.pem");
    std::fs::write(&path, other.ca_pem().unwrap()).unwrap();
    path.to_str().unwrap().to_owned()
}

#[tokio::test]
async fn tls_and_plain_mixed_up_is_said_with_help() {
    let plain = server();
    let https = plain.endpoint().replace("http://", "https://");
    let mixed = StoreConfig {
        endpoint_url: Some(https),
        ..config(&plain)
    };
    let mixed = StoreConfig {
        is_tls_unverified: true,
        ..mixed
    };
    let error = read(&open("s3://bkt/k", &mixed), 0, &[16])
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert!(error.help().unwrap().contains("http://"), "{error:#}");
    let secure = S3Server::builder().tls(true).start().unwrap();
    let http = secure.endpoint().replace("https://", "http://");
    let mixed = StoreConfig {
        endpoint_url: Some(http),
        ..config(&secure)
    };
    let error = read(&open("s3://bkt/k", &mixed), 0, &[16])
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert!(error.help().unwrap().contains("https://"), "{error:#}");
}

#[tokio::test]
async fn a_name_with_a_dead_address_still_answers() {
    // localhost is ::1 too on most machines, and nobody listens there.
    let server = server();
    server.put("bkt", "k", bytes(10)).unwrap();
    let named = server.endpoint().replace("127.0.0.1", "localhost");
    let named = StoreConfig {
        endpoint_url: Some(named),
        ..config(&server)
    };
    assert_eq!(
        read(&open("s3://bkt/k", &named), 0, &[16])
            .await
            .unwrap()
            .len_bytes,
        10
    );
}

#[tokio::test]
async fn a_name_that_does_not_resolve_is_unreachable() {
    let server = server();
    let url = Some("http://nowhere.invalid:1".to_owned());
    let mut lost = StoreConfig {
        endpoint_url: url,
        ..config(&server)
    };
    lost.limits.tries = 1;
    let error = read(&open("s3://bkt/k", &lost), 0, &[16])
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert!(error.why().contains("nowhere.invalid"));
}
