//! A bucket that is elsewhere: where requests go then, and where credentials never go.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

mod store_scripted;
mod store_signed;
use onecopy::ErrorKind;
use onecopy::config::StoreConfig;
use onecopy::store::{Key, ListRequest, Named, Source, open_store};
use onecopy_testkit::s3::S3Server;
use store_scripted::{Outcome, Server, Then, part, raw, read_source, serve, signed, status};

fn source(server: &Server) -> Source {
    store_signed::open("s3://bkt/k", &signed(server))
}

/// The region in the scope of a signature.
fn region(outcome: &Outcome, request: usize) -> &str {
    let scope = outcome.header(request, "authorization").unwrap();
    scope.split('/').nth(2).unwrap()
}

fn error(line: &str, inner: &str) -> (Vec<u8>, Then) {
    let text = format!("<?xml version=\"1.0\"?><Error>{inner}</Error>");
    let head = format!("HTTP/1.1 {line}\nContent-Length: {}", text.len());
    (raw(&head, text.as_bytes()), Then::Keep)
}

fn whole() -> (Vec<u8>, Then) {
    (part(0, 1000, 1000), Then::Keep)
}

#[tokio::test]
async fn the_region_is_learned_once_by_reading_looking_up_and_listing() {
    let server = S3Server::builder().region("eu-west-3").start().unwrap();
    server.create_bucket("bkt").unwrap();
    server.put("bkt", "k", store_signed::bytes(1000)).unwrap();
    let config = StoreConfig {
        is_checksum_unverified: true,
        ..store_signed::config(&server)
    };
    let source = store_signed::open("s3://bkt/k", &config);
    for _ in 0..3 {
        let filled = store_signed::read(&source, 0, &[4096]).await.unwrap();
        assert_eq!(store_signed::joined(&filled), store_signed::bytes(1000));
    }
    let statuses = |server: &S3Server| -> Vec<u16> {
        let requests = server.requests();
        server.forget_requests();
        requests.iter().map(|request| request.status).collect()
    };
    assert_eq!(statuses(&server), [400, 206, 206, 206]);
    let source = store_signed::open("s3://bkt/k", &config);
    source.store.head(&source.object).await.unwrap();
    assert_eq!(statuses(&server), [400, 200]);
    let (store, _) = open_store("s3://bkt", &config).unwrap();
    let request = ListRequest {
        prefix: Key::new(*b""),
        is_folded: false,
        page: None,
    };
    for _ in 0..2 {
        assert_eq!(store.list(&request).await.unwrap().objects.len(), 1);
    }
    assert_eq!(statuses(&server), [400, 200, 200]);
}

#[tokio::test]
async fn every_way_to_name_the_region_is_understood() {
    for refusal in [
        error(
            "301 Moved Permanently\nx-amz-bucket-region: eu-west-3",
            "<Code>PermanentRedirect</Code>",
        ),
        error("301 Moved Permanently\nx-amz-bucket-region: eu-west-3", ""),
        error(
            "400 Bad Request",
            "<Code>AuthorizationHeaderMalformed</Code><Region>eu-west-3</Region>",
        ),
        error(
            "307 Temporary Redirect\nLocation: https://bkt.s3.eu-west-3.amazonaws.com/k",
            "",
        ),
        error(
            "403 Forbidden",
            "<Code>AuthorizationHeaderMalformed</Code><Region>eu-west-3</Region>",
        ),
    ] {
        let server = serve(vec![refusal, whole()]);
        let outcome = read_source(&server, &source(&server), 0, &[4096]).await;
        outcome.assert_bytes(0, 1000);
        assert_eq!(
            (region(&outcome, 0), region(&outcome, 1)),
            ("us-east-1", "eu-west-3")
        );
        assert_eq!(outcome.retries(), [("wrong_region", 1)]);
        assert!(outcome.report.notes[0].contains("`region=eu-west-3`"));
    }
}

#[tokio::test]
async fn credentials_never_follow_a_redirect_to_another_host() {
    for (line, asked) in [
        ("301 Moved Permanently", 1),
        ("302 Found", 1),
        ("307 Temporary Redirect", 1),
        ("308 Permanent Redirect", 1),
        ("307 Temporary Redirect\nx-amz-bucket-region: us-east-1", 1),
        (
            "307 Temporary Redirect\nx-amz-bucket-region: evil.example/",
            1,
        ),
        // A region that it names is signed for, but here.
        ("307 Temporary Redirect\nx-amz-bucket-region: eu-west-3", 2),
    ] {
        let foreign = serve(vec![whole(), whole()]);
        // S3 itself points elsewhere where the region is wrong, and never by a 302.
        let kind = if line.starts_with("302") {
            ErrorKind::Unsupported
        } else {
            ErrorKind::InvalidInput
        };
        let line = format!("{line}\nLocation: {}/k?secret=1", foreign.url);
        let server = serve(vec![(status(&line), Then::Keep); 4]);
        let outcome = read_source(&server, &source(&server), 0, &[4096]).await;
        assert_eq!(outcome.kind(), kind, "{line}");
        let shown = format!("{:#}", outcome.result.as_ref().unwrap_err());
        assert!(shown.contains(&foreign.url) || asked == 2, "{shown}");
        assert!(!shown.contains("secret="), "{shown}");
        assert_eq!(foreign.seen.lock().len(), 0, "{line}");
        assert!(
            outcome.requests.len() <= asked,
            "{line}: {:?}",
            outcome.requests
        );
        let found = source(&server);
        assert!(found.store.head(&found.object).await.is_err());
        assert_eq!(foreign.seen.lock().len(), 0, "{line}");
    }
}

#[tokio::test]
async fn two_regions_that_point_at_each_other_are_an_error() {
    let to = |region: &str| {
        let inner = format!("<Code>AuthorizationHeaderMalformed</Code><Region>{region}</Region>");
        error("400 Bad Request", &inner)
    };
    let answers = (0..20).map(|at| to(["eu-west-3", "us-east-1"][at % 2]));
    let server = serve(answers.collect());
    let outcome = read_source(&server, &source(&server), 0, &[4096]).await;
    assert_eq!(outcome.kind(), ErrorKind::InvalidInput);
    assert_eq!(outcome.requests.len(), 5);
}

#[tokio::test]
async fn a_look_up_that_is_refused_without_a_word_asks_for_the_reason() {
    let found = raw("HTTP/1.1 200 OK\nContent-Length: 1000\nETag: \"v1\"", b"");
    let server = serve(vec![
        (
            raw("HTTP/1.1 400 Bad Request\nContent-Length: 99", b""),
            Then::Keep,
        ),
        error(
            "400 Bad Request",
            "<Code>AuthorizationHeaderMalformed</Code><Region>eu-west-3</Region>",
        ),
        (found, Then::Keep),
    ]);
    let source = source(&server);
    let object = source.store.head(&source.object).await.unwrap();
    assert_eq!(object.len_bytes, Some(1000));
    let seen = server.seen.lock().clone();
    let methods: Vec<&str> = seen.iter().map(|(_, text)| &text[..4]).collect();
    assert_eq!(methods, ["HEAD", "GET ", "HEAD"]);
    assert!(seen[1].1.contains("range: bytes=0-0"));
    assert!(seen[2].1.contains("/eu-west-3/s3/aws4_request"));
}

#[tokio::test]
async fn a_style_and_an_endpoint_that_cannot_go_together_are_refused_at_once() {
    let server = serve(vec![]);
    let config = StoreConfig {
        addressing_style: Some("virtual".parse().unwrap()),
        ..signed(&server)
    };
    let error = open_store("s3://bkt/k", &config).unwrap_err();
    assert!(error.help().unwrap().contains("`addressing_style=path`"));
    let point = "s3://arn:aws:s3:eu-west-1:123:accesspoint/ap/k";
    assert!(open_store(point, &config).is_err());
    let (_, named) = open_store(point, &StoreConfig::default()).unwrap();
    let Named::Object(object) = named else {
        panic!("an object")
    };
    assert_eq!((&*object.url, object.key.as_bytes()), (point, &b"k"[..]));
}
