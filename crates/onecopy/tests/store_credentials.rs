//! What requests are signed with while a run goes on: renewed credentials, another clock, other headers.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

mod store_scripted;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use onecopy::ErrorKind;
use onecopy::config::{Secret, StoreConfig, Variables};
use onecopy::store::{Key, ListRequest, Source, open_store};
use onecopy::sync::{Arc, AtomicUsize, Ordering};
use store_scripted::{
    Then, error, open, raw, read_source, read_url, serve, serve_with, signed, status, whole,
};

const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// `KEY1`, `KEY2`, ..: a program that gives out another key at each call, as a credential process.
fn key_program(folder: &Path) -> StoreConfig {
    let program = folder.join("keys.sh");
    let calls = folder.join("calls");
    let text = format!(
        "#!/bin/sh\necho >> {calls}\nn=$(wc -l < {calls})\n\
         echo '{{\"Version\":1,\"AccessKeyId\":\"KEY'$n'\",\"SecretAccessKey\":\"hush\",\"SessionToken\":\"T'$n'\"}}'\n",
        calls = calls.display()
    );
    fs::write(&program, text).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let file = folder.join("config");
    fs::write(
        &file,
        format!("[default]\ncredential_process = {}\n", program.display()),
    )
    .unwrap();
    StoreConfig {
        variables: Variables::only([
            ("AWS_CONFIG_FILE", file.to_str().unwrap()),
            ("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent"),
        ]),
        ..StoreConfig::default()
    }
}

#[tokio::test]
async fn credentials_that_expire_in_mid_run_are_renewed_once_for_all_ranges() {
    let folder = tempfile::tempdir().unwrap();
    let good = Arc::new(AtomicUsize::new(1));
    let now = Arc::clone(&good);
    let server = serve_with(move |request| {
        let key = format!("Credential=KEY{}/", now.load(Ordering::Relaxed));
        Some(if request.contains(&key) {
            whole()
        } else {
            error("400 Bad Request", "ExpiredToken")
        })
    });
    let config = StoreConfig {
        variables: key_program(folder.path()).variables,
        ..signed(&server)
    };
    let source = open("s3://bkt/k", &config);
    read_source(&server, &source, 0, &[4096])
        .await
        .assert_bytes(0, 1000);
    good.store(2, Ordering::Relaxed);
    let server = Arc::new(server);
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let (source, server) = (source.clone(), Arc::clone(&server));
        running.spawn(async move { read_source(&server, &source, 0, &[4096]).await });
    }
    while let Some(outcome) = running.join_next().await {
        outcome.unwrap().assert_bytes(0, 1000);
    }
    let calls = fs::read_to_string(folder.path().join("calls")).unwrap();
    assert_eq!(calls.lines().count(), 2);
}

#[tokio::test]
async fn credentials_that_cannot_be_renewed_fail_at_once_with_help() {
    let server = serve_with(|_| Some(error("400 Bad Request", "ExpiredToken")));
    let outcome = read_url(&server, &signed(&server), "s3://bkt/k").await;
    assert_eq!(
        (outcome.kind(), outcome.requests.len()),
        (ErrorKind::Denied, 1)
    );
    let error = outcome.result.unwrap_err();
    assert_eq!(error.why(), "the credentials have expired");
    assert!(error.help().unwrap().contains("aws sso login"));
}

#[tokio::test]
async fn a_wrong_clock_is_learned_from_the_store_and_told_in_the_ledger() {
    // The store lives in 1994.
    let server = serve_with(|request| {
        let is_right = request.contains("x-amz-date: 19941106T08");
        Some(if is_right {
            whole()
        } else {
            error(
                "403 Forbidden\nDate: Sun, 06 Nov 1994 08:49:37 GMT",
                "RequestTimeTooSkewed",
            )
        })
    });
    let source = open("s3://bkt/k", &signed(&server));
    let outcome = read_source(&server, &source, 0, &[4096]).await;
    outcome.assert_bytes(0, 1000);
    assert_eq!(outcome.retries(), [("clock", 1)]);
    assert!(
        outcome.report.notes[0].contains("ahead of the store's"),
        "{:?}",
        outcome.report.notes
    );
    let again = read_source(&server, &source, 0, &[4096]).await;
    assert_eq!(again.requests.len(), 3, "learned once");
}

#[tokio::test]
async fn a_store_that_contradicts_itself_about_the_time_is_an_error() {
    let server = serve_with(|_| {
        Some(error(
            "403 Forbidden\nDate: Sun, 06 Nov 1994 08:49:37 GMT",
            "RequestTimeTooSkewed",
        ))
    });
    let outcome = read_url(&server, &signed(&server), "s3://bkt/k").await;
    assert_eq!(outcome.kind(), ErrorKind::Denied);
    assert!(outcome.result.unwrap_err().why().contains("clock"));
    assert!(outcome.requests.len() <= 5);
}

#[tokio::test]
async fn a_requester_who_pays_says_so_under_the_signature() {
    let server = serve(vec![whole()]);
    let config = StoreConfig {
        is_requester_paying: true,
        ..signed(&server)
    };
    let outcome = read_url(&server, &config, "s3://bkt/k").await;
    assert_eq!(outcome.header(0, "x-amz-request-payer"), Some("requester"));
    let names = outcome.header(0, "authorization").unwrap();
    assert!(names.contains(";x-amz-request-payer,"), "{names}");
    let server = serve(vec![error("403 Forbidden", "AccessDenied")]);
    let outcome = read_url(&server, &signed(&server), "s3://bkt/k").await;
    let error = outcome.result.unwrap_err();
    assert!(error.help().unwrap().contains("`request_payer=requester`"));
}

#[tokio::test]
async fn a_version_is_asked_for_and_a_deleted_one_named() {
    let server = serve(vec![
        whole(),
        (status("405 M\nx-amz-delete-marker: true"), Then::Keep),
    ]);
    let source = open("s3://bkt/a b?versionId=3/L4+x=", &signed(&server));
    assert_eq!(&*source.object.url, "s3://bkt/a b?versionId=3/L4+x=");
    read_source(&server, &source, 0, &[4096])
        .await
        .assert_bytes(0, 1000);
    let outcome = read_source(&server, &source, 0, &[4096]).await;
    assert_eq!(outcome.kind(), ErrorKind::NotFound);
    let error = outcome.result.unwrap_err();
    assert_eq!(error.why(), "the object was deleted");
    let line = outcome.requests[0].1.lines().next().unwrap();
    assert_eq!(line, "GET /bkt/a%20b?versionId=3%2FL4%2Bx%3D HTTP/1.1");
}

#[tokio::test]
async fn an_archived_object_is_named_as_such_with_the_cure() {
    let server = serve(vec![error("403 Forbidden", "InvalidObjectState")]);
    let error = read_url(&server, &signed(&server), "s3://bkt/k")
        .await
        .result
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.why().contains("Glacier"));
    assert!(error.help().unwrap().contains("restore-object"));
}

#[tokio::test]
async fn a_key_of_the_customer_goes_with_objects_only_and_is_never_shown() {
    let listing = "<ListBucketResult></ListBucketResult>";
    let head = format!("HTTP/1.1 200 OK\nContent-Length: {}", listing.len());
    let server = serve(vec![
        whole(),
        (
            raw("HTTP/1.1 200 OK\nContent-Length: 1000", b""),
            Then::Keep,
        ),
        (raw(&head, listing.as_bytes()), Then::Keep),
        error("400 Bad Request", "InvalidRequest"),
    ]);
    let config = StoreConfig {
        sse_c_key: Some(Secret(KEY.to_owned())),
        ..signed(&server)
    };
    assert!(!format!("{config:?}").contains(KEY));
    let source = open("s3://bkt/k", &config);
    read_source(&server, &source, 0, &[4096])
        .await
        .assert_bytes(0, 1000);
    source.store.head(&source.object).await.unwrap();
    let request = ListRequest {
        prefix: Key::new(*b""),
        is_folded: false,
        page: None,
    };
    source.store.list(&request).await.unwrap();
    let outcome = read_source(&server, &source, 0, &[4096]).await;
    let name = "x-amz-server-side-encryption-customer-key";
    let sent: Vec<Option<&str>> = (0..4).map(|at| outcome.header(at, name)).collect();
    assert_eq!(sent, [Some(KEY), Some(KEY), None, Some(KEY)]);
    let md5 = outcome.header(0, &format!("{name}-md5"));
    assert_eq!(md5, Some("tP/LI3N87DFaSk0aoqYgzg=="));
    let error = outcome.result.unwrap_err();
    let shown = format!("{error:#} {error:?} {:?} {source:?}", outcome.report);
    assert!(!shown.contains(KEY), "{shown}");
    let without = serve(vec![error_400()]);
    let error = read_url(&without, &signed(&without), "s3://bkt/k")
        .await
        .result
        .unwrap_err();
    assert!(error.help().unwrap().contains("`sse_c_key`"), "{error:#}");
}

fn error_400() -> (Vec<u8>, Then) {
    let text = "<Error><Code>InvalidRequest</Code><Message>The object was stored using a form of Server Side \
                Encryption. The correct parameters must be provided to retrieve the object.</Message></Error>";
    let head = format!("HTTP/1.1 400 Bad Request\nContent-Length: {}", text.len());
    (raw(&head, text.as_bytes()), Then::Keep)
}

#[tokio::test]
async fn keys_that_are_no_text_are_listed_signed_and_asked_for_byte_for_byte() {
    let listing = "<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>a%FF%00%2F..%2F%2B+</Key>\
                   <Size>1000</Size></Contents></ListBucketResult>";
    let head = format!("HTTP/1.1 200 OK\nContent-Length: {}", listing.len());
    let whole = raw(
        "HTTP/1.1 200 OK\nETag: \"v1\"\nContent-Length: 1000",
        &store_scripted::body(0, 1000),
    );
    let server = serve(vec![
        (raw(&head, listing.as_bytes()), Then::Keep),
        (whole, Then::Keep),
    ]);
    let (store, _) = open_store("s3://bkt", &signed(&server)).unwrap();
    let request = ListRequest {
        prefix: Key::new(*b"a\xff"),
        is_folded: false,
        page: None,
    };
    let object = store.list(&request).await.unwrap().objects.remove(0);
    assert_eq!(object.key.as_bytes(), b"a\xff\x00/../+ ");
    let source = Source { store, object };
    let outcome = read_source(&server, &source, 0, &[4096]).await;
    outcome.assert_bytes(0, 1000);
    assert!(outcome.requests[0].1.contains("&prefix=a%FF "));
    let line = outcome.requests[1].1.lines().next().unwrap();
    assert_eq!(line, "GET /bkt/a%FF%00/../%2B%20 HTTP/1.1");
    assert!(outcome.header(1, "authorization").is_some());
}
