//! Answers that are right and unusual: stored bytes in another encoding, listings that are folded over several pages, and
//! what goes along with requests.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

mod store_scripted;
use onecopy::ErrorKind;
use onecopy::config::StoreConfig;
use onecopy::store::{Key, ListRequest, open_store};
use store_scripted::*;

#[tokio::test]
async fn stored_bytes_are_given_as_they_are_whatever_encoding_they_are_said_to_have() {
    let head = "HTTP/1.1 206 P\nETag: \"v1\"\nContent-Encoding: gzip\nContent-Length: 1000\n\
                Content-Range: bytes 0-999/1000";
    for is_s3 in [true, false] {
        let server = serve(vec![(raw(head, &body(0, 1000)), Then::Keep)]);
        let outcome = read_source(&server, &source(&server, is_s3), 0, &[4096]).await;
        outcome.assert_bytes(0, 1000);
        assert_eq!(outcome.header(0, "accept-encoding"), None);
    }
}

#[tokio::test]
async fn web_servers_are_asked_without_headers_of_s3() {
    // A signed URL is refused where a header of S3's goes along that was not signed.
    let server = serve(vec![whole()]);
    let outcome = read_source(&server, &source(&server, false), 0, &[4096]).await;
    outcome.assert_bytes(0, 1000);
    assert!(
        !outcome.requests[0].1.contains("x-amz-"),
        "{:?}",
        outcome.requests
    );
    let server = serve(vec![(status("403 Forbidden"), Then::Keep)]);
    let outcome = read_source(&server, &source(&server, false), 0, &[4096]).await;
    let error = outcome.result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Denied);
    assert!(
        error
            .help()
            .unwrap()
            .contains("a signed URL may have expired"),
        "{error:#}"
    );
}

#[tokio::test]
async fn every_header_of_s3_is_signed() {
    let server = serve(vec![whole()]);
    let config = StoreConfig {
        is_requester_paying: true,
        is_checksum_unverified: false,
        ..signed(&server)
    };
    let mut source = open("s3://bkt/k", &config);
    source.object.len_bytes = Some(1000);
    let outcome = read_source(&server, &source, 0, &[1000]).await;
    let authorization = outcome.header(0, "authorization").unwrap();
    let signed = authorization.split("SignedHeaders=").nth(1).unwrap();
    let signed: Vec<&str> = signed.split(',').next().unwrap().split(';').collect();
    let own = outcome.requests[0]
        .1
        .lines()
        .filter_map(|line| line.split_once(": "));
    let own: Vec<&str> = own
        .map(|line| line.0)
        .filter(|name| name.starts_with("x-amz-"))
        .collect();
    assert!(
        own.contains(&"x-amz-checksum-mode") && own.contains(&"x-amz-request-payer"),
        "{own:?}"
    );
    assert!(
        own.iter().all(|name| signed.contains(name)),
        "{own:?} {signed:?}"
    );
}

#[tokio::test]
async fn folded_pages_may_mix_objects_and_prefixes_in_any_order() {
    let xml = |inner: &str| {
        let text = format!("<ListBucketResult>{inner}</ListBucketResult>");
        let head = format!("HTTP/1.1 200 OK\nContent-Length: {}", text.len());
        (raw(&head, text.as_bytes()), Then::Keep)
    };
    let object = |key: &str| format!("<Contents><Key>{key}</Key><Size>1</Size></Contents>");
    let prefix = |key: &str| format!("<CommonPrefixes><Prefix>{key}</Prefix></CommonPrefixes>");
    let on = |token: &str| {
        format!(
            "<IsTruncated>true</IsTruncated><NextContinuationToken>{token}</NextContinuationToken>"
        )
    };
    let server = serve(vec![
        xml(&(prefix("a/") + &object("b") + &on("1"))),
        // Nothing but prefixes, and then nothing but the end.
        xml(&(on("2") + &prefix("c/") + &prefix("d/"))),
        xml(""),
    ]);
    let (store, _) = open_store("s3://bkt", &config(&server)).unwrap();
    let mut request = ListRequest {
        prefix: Key::new(*b""),
        is_folded: true,
        page: None,
    };
    let (mut objects, mut prefixes) = (Vec::new(), Vec::new());
    loop {
        let page = store.list(&request).await.unwrap();
        objects.extend(page.objects.into_iter().map(|object| object.key));
        prefixes.extend(page.prefixes);
        request.page = page.next;
        if request.page.is_none() {
            break;
        }
    }
    assert_eq!(objects, [Key::new(*b"b")]);
    assert_eq!(prefixes, [*b"a/", *b"c/", *b"d/"].map(Key::new));
    assert_eq!(server.seen.lock().len(), 3);
}

#[tokio::test]
async fn a_listing_that_breaks_off_is_asked_for_again_and_one_cut_short_is_an_error() {
    let text = "<ListBucketResult><Contents><Key>a</Key></Contents></ListBucketResult>";
    let head = format!("HTTP/1.1 200 OK\nContent-Length: {}", text.len());
    let good = (raw(&head, text.as_bytes()), Then::Keep);
    let broken = (raw(&head, &text.as_bytes()[..20]), Then::Close);
    let request = ListRequest {
        prefix: Key::new(*b""),
        is_folded: false,
        page: None,
    };
    let server = serve(vec![broken, good]);
    let (store, _) = open_store("s3://bkt", &config(&server)).unwrap();
    assert_eq!(store.list(&request).await.unwrap().objects.len(), 1);
    let short = &text[..text.len() - 5];
    let head = format!("HTTP/1.1 200 OK\nContent-Length: {}", short.len());
    let server = serve(vec![(raw(&head, short.as_bytes()), Then::Keep)]);
    let (store, _) = open_store("s3://bkt", &config(&server)).unwrap();
    let error = store.list(&request).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.help().is_some());
}
