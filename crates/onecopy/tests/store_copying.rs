//! What a copy within a store says of its source.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

mod store_scripted;
use onecopy::config::{Secret, StoreConfig};
use onecopy::store::{Attributes, CopySource, Upload, open_store};
use store_scripted::*;

/// The value of a header that was sent.
fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.find(|line| line.0 == name).map(|line| line.1)
}

/// Copies `from` whole and as a part, with the version and the key that are given, and returns the heads of both requests.
async fn copied(version: Option<&str>, key: Option<&str>) -> Vec<String> {
    let server = serve_with(|request| {
        let root = if request.contains("partNumber") {
            "CopyPartResult"
        } else {
            "CopyObjectResult"
        };
        let text = format!("<{root}><ETag>\"e\"</ETag></{root}>");
        let head = format!("HTTP/1.1 200 OK\nContent-Length: {}", text.len());
        Some((raw(&head, text.as_bytes()), Then::Keep))
    });
    let config = StoreConfig {
        sse_c_key: key.map(|key| Secret(key.to_owned())),
        ..config(&server)
    };
    let (store, _) = open_store("s3://bkt", &config).unwrap();
    let writer = store.writer().unwrap();
    let mut from = writer.object(b"from");
    from.version = version.map(Into::into);
    let source = CopySource {
        bucket: "other".to_owned(),
        object: from,
    };
    let object = writer.object(b"to");
    let attributes = Attributes::default();
    writer.copy(&source, &object, &attributes).await.unwrap();
    let upload = Upload {
        object,
        id: "id".into(),
    };
    writer
        .copy_part(&upload, 1, &source, (0, 10))
        .await
        .unwrap();
    let seen = server.seen.lock();
    seen.iter().map(|(_, request)| request.clone()).collect()
}

#[tokio::test]
async fn a_copy_names_the_version_of_its_source() {
    for (version, place) in [
        (None, "/other/from"),
        (Some("v1"), "/other/from?versionId=v1"),
        (Some("a/+="), "/other/from?versionId=a%2F%2B%3D"),
    ] {
        for request in copied(version, None).await {
            assert_eq!(header(&request, "x-amz-copy-source"), Some(place));
        }
    }
}

#[tokio::test]
async fn a_key_of_the_customer_opens_the_source_and_closes_the_copy() {
    // The bytes 0 to 31, and their MD5.
    let key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let md5 = "tP/LI3N87DFaSk0aoqYgzg==";
    for given in [None, Some(key)] {
        for request in copied(None, given).await {
            for beginning in ["x-amz-", "x-amz-copy-source-"] {
                let sent = |name: &str| {
                    let name = format!("{beginning}server-side-encryption-customer-{name}");
                    header(&request, &name).map(str::to_owned)
                };
                assert_eq!(sent("algorithm"), given.map(|_| "AES256".to_owned()));
                assert_eq!(sent("key"), given.map(str::to_owned));
                assert_eq!(sent("key-md5"), given.map(|_| md5.to_owned()));
            }
        }
    }
}
