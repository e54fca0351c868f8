//! The S3 store against a server that checks signatures.
#![expect(clippy::unwrap_used, reason = "test helpers")]

use onecopy::buffer::Slab;
use onecopy::config::{Limits, StoreConfig, Variables};
use onecopy::ledger::Ledger;
use onecopy::route::Hop;
use onecopy::store::{Filled, Key, ListRequest, Named, Object, Source, open_store, resolve};
use onecopy::sync::Arc;
use onecopy::{ErrorKind, Result};
use onecopy_testkit::s3::S3Server;

fn server() -> S3Server {
    let server = S3Server::builder().start().unwrap();
    server.create_bucket("bkt").unwrap();
    server
}

fn config(server: &S3Server) -> StoreConfig {
    StoreConfig {
        endpoint_url: Some(server.endpoint()),
        variables: Variables::only([
            ("AWS_ACCESS_KEY_ID", "onecopy"),
            ("AWS_SECRET_ACCESS_KEY", "onecopy-secret"),
            ("AWS_EC2_METADATA_DISABLED", "true"),
        ]),
        limits: Limits {
            tries: 2,
            ..Limits::default()
        },
        ..StoreConfig::default()
    }
}

/// Bytes that differ at every offset that a mistake is likely to hit.
fn bytes(len: usize) -> Vec<u8> {
    (0..len)
        .map(|at| (at ^ (at >> 8) ^ (at >> 16)) as u8)
        .collect()
}

async fn read(source: &Source, offset: u64, slabs: &[usize]) -> Result<Filled> {
    let hop = Ledger::unread().hop(Hop::Recv);
    let target = slabs.iter().map(|len| Slab::heap(*len)).collect();
    source
        .store
        .read_into(&hop, &source.object, offset, target)
        .await
}

fn joined(filled: &Filled) -> Vec<u8> {
    let all: Vec<u8> = filled
        .target
        .iter()
        .flat_map(|slab| slab.iter().copied())
        .collect();
    all[..usize::try_from(filled.len_bytes).unwrap()].into()
}

fn open(url: &str, config: &StoreConfig) -> Source {
    match open_store(url, config).unwrap() {
        (store, Named::Object(object)) => Source { store, object },
        (_, Named::Prefix(key)) => panic!("{key} is a prefix"),
    }
}

async fn resolved(urls: &[&str], config: &StoreConfig) -> Result<Vec<String>> {
    let urls: Vec<String> = urls.iter().map(|url| (*url).to_owned()).collect();
    let sources = resolve(&urls, config).await?;
    Ok(sources
        .iter()
        .map(|source| source.object.url.to_string())
        .collect())
}

#[tokio::test]
async fn reads_ranges_straight_into_slabs_and_counts_every_byte() {
    let server = server();
    let whole = bytes(3 << 20);
    server.put("bkt", "k", whole.clone()).unwrap();
    let source = open("s3://bkt/k", &config(&server));
    let ledger = Ledger::unread();
    let hop = ledger.hop(Hop::Recv);
    let target = vec![Slab::heap(1 << 20), Slab::heap(4096), Slab::heap(1 << 20)];
    let filled = source
        .store
        .read_into(&hop, &source.object, 12345, target)
        .await
        .unwrap();
    let len = (2 << 20) + 4096;
    assert_eq!(joined(&filled), whole[12345..12345 + len]);
    assert_eq!(filled.object.len_bytes, Some(3 << 20));
    assert!(filled.object.etag.is_some());
    let report = ledger.report();
    let of = |name: &str| {
        report
            .hops
            .iter()
            .find(|hop| hop.hop == name)
            .map_or(0, |hop| hop.bytes)
    };
    assert_eq!(of("recv"), len as u64);
    assert!(of("head_rest") < 512, "{}", of("head_rest"));
}

#[tokio::test]
async fn an_object_that_fits_is_read_by_a_plain_get_and_a_known_empty_one_by_none() {
    let server = server();
    server.put("bkt", "k", bytes(1000)).unwrap();
    server.put("bkt", "empty", bytes(0)).unwrap();
    let config = config(&server);
    let known = |key: &str| {
        let source = open(&format!("s3://bkt/{key}"), &config);
        async move {
            let object = source.store.head(&source.object).await.unwrap();
            Source { object, ..source }
        }
    };
    let (full, empty) = (known("k").await, known("empty").await);
    server.forget_requests();
    assert_eq!(joined(&read(&full, 0, &[4096]).await.unwrap()), bytes(1000));
    assert_eq!(read(&empty, 0, &[4096]).await.unwrap().len_bytes, 0);
    assert_eq!(read(&full, 1000, &[4096]).await.unwrap().len_bytes, 0);
    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].range, None);
    assert!(requests[0].if_match.is_some());
    assert_eq!(
        read(&full, 1001, &[8]).await.unwrap_err().kind(),
        ErrorKind::InvalidInput
    );
}

#[tokio::test]
async fn an_object_of_unknown_length_tells_it() {
    let server = server();
    server.put("bkt", "k", bytes(1000)).unwrap();
    server.put("bkt", "empty", bytes(0)).unwrap();
    let config = config(&server);
    let filled = read(&open("s3://bkt/k", &config), 990, &[4096])
        .await
        .unwrap();
    assert_eq!(
        (filled.len_bytes, filled.object.len_bytes),
        (10, Some(1000))
    );
    let filled = read(&open("s3://bkt/empty", &config), 0, &[4096])
        .await
        .unwrap();
    assert_eq!((filled.len_bytes, filled.object.len_bytes), (0, Some(0)));
    let error = read(&open("s3://bkt/k", &config), 2000, &[4096])
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

#[tokio::test]
async fn every_key_is_signed_sent_listed_and_read_as_it_is() {
    let long = "x".repeat(1000);
    let keys = [
        "a//b",
        "/lead",
        "trail/",
        " a  b ",
        "a b+c%20~'*[]?#&=;",
        "ümlaut/日本.tar",
        "new\nline",
        "%2F",
        "back\\slash",
        "a:b@c,d$e!f(g)",
        "..",
        "x/../y",
        "./z",
        "\u{7f}",
        "🦀",
        &long,
        "nfd-u\u{308}",
        "nfc-\u{fc}",
    ];
    let server = server();
    for key in keys {
        server
            .put("bkt", key, format!("<{key}>").into_bytes())
            .unwrap();
    }
    let config = config(&server);
    let (store, _) = open_store("s3://bkt", &config).unwrap();
    let request = ListRequest {
        prefix: Key::new(*b""),
        is_folded: false,
        page: None,
    };
    let page = store.list(&request).await.unwrap();
    let mut listed: Vec<&[u8]> = page
        .objects
        .iter()
        .map(|object| object.key.as_bytes())
        .collect();
    let mut wanted: Vec<&[u8]> = keys.iter().map(|key| key.as_bytes()).collect();
    wanted.sort_unstable();
    listed.sort_unstable();
    assert_eq!(listed, wanted);
    for object in page.objects {
        let source = Source {
            store: Arc::clone(&store),
            object,
        };
        let filled = read(&source, 0, &[4096]).await.unwrap();
        let key = String::from_utf8(source.object.key.as_bytes().into()).unwrap();
        assert_eq!(joined(&filled), format!("<{key}>").into_bytes(), "{key:?}");
    }
}

#[tokio::test]
async fn an_object_that_was_replaced_is_changed() {
    let server = server();
    server.put("bkt", "k", bytes(1000)).unwrap();
    let mut source = open("s3://bkt/k", &config(&server));
    source.object = read(&source, 0, &[100]).await.unwrap().object;
    server.put("bkt", "k", bytes(999)).unwrap();
    let error = read(&source, 100, &[100]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Changed);
    assert!(error.help().is_some());
}

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
        (ErrorKind::NotFound, "there is no such key")
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
    assert!(anonymous.help().unwrap().contains("--no-sign-request"));
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
async fn prefixes_globs_braces_and_lists_find_what_they_name() {
    let server = server();
    for key in [
        "t/a-0.tar",
        "t/a-1.tar",
        "t/b.TGZ",
        "t/x/c.tar",
        "t/readme.md",
        "t/",
        "odd/[1].bin",
    ] {
        server.put("bkt", key, bytes(10)).unwrap();
    }
    let config = config(&server);
    let find = |urls: &'static [&'static str]| resolved(urls, &config);
    let all = [
        "s3://bkt/t/a-0.tar",
        "s3://bkt/t/a-1.tar",
        "s3://bkt/t/b.TGZ",
        "s3://bkt/t/x/c.tar",
    ];
    assert_eq!(find(&["s3://bkt/t/"]).await.unwrap(), all);
    assert_eq!(find(&["s3://bkt"]).await.unwrap(), all);
    assert_eq!(find(&["s3://bkt/t/a*"]).await.unwrap(), all[..2]);
    assert_eq!(find(&["s3://bkt/t/**/c.tar"]).await.unwrap(), all[3..]);
    assert_eq!(
        find(&["s3://bkt/odd/[1].bin"]).await.unwrap(),
        ["s3://bkt/odd/[1].bin"]
    );
    server.forget_requests();
    assert_eq!(
        find(&["s3://bkt/t/a-{1..0}.tar"]).await.unwrap(),
        [all[1], all[0]]
    );
    assert_eq!(server.requests().len(), 0);
    for urls in [&["s3://bkt/t/z*"], &["s3://bkt/none/"], &["s3://bkt/odd/"]] {
        let error = find(urls).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.target()),
            (ErrorKind::NotFound, urls[0])
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("urls.txt");
    std::fs::write(
        &list,
        "# two\r\ns3://bkt/t/x/c.tar\r\n\r\ns3://bkt/t/a-{0..1}.tar\n",
    )
    .unwrap();
    let list = list.to_str().unwrap();
    let wanted = [all[3], all[0], all[1]];
    assert_eq!(resolved(&[list], &config).await.unwrap(), wanted);
    assert_eq!(
        resolved(&[&format!("@{list}")], &config).await.unwrap(),
        wanted
    );
}

#[tokio::test]
async fn more_keys_than_fit_a_page_are_all_found() {
    let server = server();
    for index in 0..1001 {
        server
            .put("bkt", &format!("p/{index:04}.tar"), bytes(1))
            .unwrap();
    }
    let config = config(&server);
    assert_eq!(
        resolved(&["s3://bkt/p/"], &config).await.unwrap().len(),
        1001
    );
    let (store, _) = open_store("s3://bkt", &config).unwrap();
    let request = ListRequest {
        prefix: Key::new(*b""),
        is_folded: true,
        page: None,
    };
    let page = store.list(&request).await.unwrap();
    assert_eq!(page.prefixes, [Key::new(*b"p/")]);
    assert!(page.objects.is_empty());
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
    let names: Vec<&str> = report.hops.iter().map(|hop| &*hop.hop).collect();
    assert!(
        names.contains(&"tls_copy") && !names.contains(&"recv"),
        "{names:?}"
    );
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
    assert!(error.help().unwrap().contains("--ca-bundle"), "{error:#}");
}

/// The certificate of another server.
fn rcgen_bundle(folder: &std::path::Path) -> String {
    let other = S3Server::builder().tls(true).start().unwrap();
    let path = folder.join("other.pem");
    std::fs::write(&path, other.ca_pem().unwrap()).unwrap();
    path.to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_look_up_tells_length_version_and_time() {
    let server = server();
    server.put("bkt", "k", bytes(77)).unwrap();
    let config = config(&server);
    let source = open("s3://bkt/k", &config);
    let found: Object = source.store.head(&source.object).await.unwrap();
    assert_eq!(found.len_bytes, Some(77));
    assert_eq!(
        found.etag.map(|tag| tag.0.to_string()),
        server.etag("bkt", "k").unwrap()
    );
    assert!(found.modified_unix.is_some());
    let missing = open("s3://bkt/nope", &config);
    let error = missing.store.head(&missing.object).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}
