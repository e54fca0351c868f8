//! The buckets of an account: who gets them, and over how many pages.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

mod store_scripted;
mod store_signed;

use onecopy::ErrorKind;
use onecopy::config::{StoreConfig, Variables};
use onecopy::store::list_buckets;
use store_scripted::{Then, raw, serve, status};

fn names(buckets: &[onecopy::store::Bucket]) -> Vec<&str> {
    buckets.iter().map(|bucket| &*bucket.name).collect()
}

fn answer(body: &str) -> (Vec<u8>, Then) {
    let text = format!("<ListAllMyBucketsResult>{body}</ListAllMyBucketsResult>");
    let head = format!("HTTP/1.1 200 OK\nContent-Length: {}", text.len());
    (raw(&head, text.as_bytes()), Then::Keep)
}

#[tokio::test]
async fn an_account_has_buckets_and_a_stranger_has_none() {
    let server = store_signed::server();
    let config = store_signed::config(&server);
    server.create_bucket("a.b").unwrap();
    let buckets = list_buckets(&config).await.unwrap();
    assert_eq!(names(&buckets), ["a.b", "bkt"]);
    assert!(buckets.iter().all(|bucket| bucket.created_unix.is_some()));
    assert_eq!(buckets[0].region.as_deref(), Some("us-east-1"));
    let anonymous = StoreConfig {
        is_anonymous: true,
        ..config.clone()
    };
    let error = list_buckets(&anonymous).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(
        error.help().unwrap().contains("`no_sign_request`"),
        "{error:?}"
    );
    assert_eq!(error.target(), server.endpoint());
    let wrong = StoreConfig {
        variables: Variables::only([
            ("AWS_ACCESS_KEY_ID", "onecopy"),
            ("AWS_SECRET_ACCESS_KEY", "wrong"),
        ]),
        ..config.clone()
    };
    assert_eq!(
        list_buckets(&wrong).await.unwrap_err().kind(),
        ErrorKind::Denied
    );
    let elsewhere = StoreConfig {
        region: Some("eu-west-1".to_owned()),
        ..config
    };
    // The store tells where it is, and is asked again there.
    assert_eq!(list_buckets(&elsewhere).await.unwrap(), buckets);
}

#[tokio::test]
async fn pages_follow_each_other_and_never_in_a_circle() {
    let page = |name: &str, next: &str| {
        answer(&format!(
            "<Buckets><Bucket><Name>{name}</Name></Bucket></Buckets>\
             <ContinuationToken>{next}</ContinuationToken>"
        ))
    };
    let server = serve(vec![page("a", "1+/="), page("b", "2"), page("c", "")]);
    let config = store_scripted::config(&server);
    assert_eq!(
        names(&list_buckets(&config).await.unwrap()),
        ["a", "b", "c"]
    );
    let asked: Vec<String> = server
        .seen
        .lock()
        .iter()
        .map(|(_, text)| text.clone())
        .collect();
    assert!(asked[0].starts_with("GET / HTTP/1.1\r\n"), "{asked:?}");
    assert!(
        asked[1].starts_with("GET /?continuation-token=1%2B%2F%3D HTTP/1.1\r\n"),
        "{asked:?}"
    );
    let server = serve(vec![page("a", "1"), page("b", "1"), page("c", "1")]);
    let error = list_buckets(&store_scripted::config(&server))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
}

#[tokio::test]
async fn an_endpoint_without_buckets_is_told_from_one_that_is_down() {
    for (line, kind, text) in [
        ("404 Not Found", ErrorKind::NotFound, "lists no buckets"),
        (
            "405 Method Not Allowed",
            ErrorKind::Unsupported,
            "lists no buckets",
        ),
        (
            "307 Temporary Redirect",
            ErrorKind::Denied,
            "an account has a list of buckets",
        ),
        ("403 Forbidden", ErrorKind::Denied, "access denied"),
    ] {
        let server = serve(vec![(status(line), Then::Keep)]);
        let error = list_buckets(&store_scripted::config(&server))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), kind, "{line}: {error:?}");
        assert!(error.why().contains(text), "{line}: {error:?}");
        assert!(
            error.help().unwrap().contains("s3://bucket/"),
            "{line}: {error:?}"
        );
    }
    let flaky = serve(vec![(status("500 Oh"), Then::Keep), answer("<Buckets/>")]);
    let buckets = list_buckets(&store_scripted::config(&flaky)).await.unwrap();
    assert!(buckets.is_empty());
}
