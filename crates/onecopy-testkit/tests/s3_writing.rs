//! What the S3 server promises of writing and of TLS, asked over plain sockets.
#![expect(clippy::unwrap_used, reason = "test helpers")]

mod client;

use bytes::Bytes;
use client::Client;
use onecopy_testkit::s3::S3Server;

fn open_server() -> S3Server {
    let server = S3Server::builder().anonymous(true).start().unwrap();
    server.create_bucket("bucket").unwrap();
    server
}

#[test]
fn puts_parts_together_under_the_etag_of_s3() {
    let server = open_server();
    let mut client = Client::to(server.addr());
    client.send("POST", "/bucket/big?uploads", &[], b"");
    let id = client.answer("POST").xml("UploadId");
    assert_eq!(server.open_uploads(), 1);
    let first = vec![1_u8; 5 << 20];
    let mut xml = "<CompleteMultipartUpload>".to_owned();
    for (number, part) in [(1, first.as_slice()), (2, b"end".as_slice())] {
        let put = client.put(
            &format!("/bucket/big?partNumber={number}&uploadId={id}"),
            part,
        );
        assert_eq!(put.status, 200, "{}", put.text());
        xml += &format!(
            "<Part><PartNumber>{number}</PartNumber><ETag>{}</ETag></Part>",
            put.header("etag")
        );
    }
    xml += "</CompleteMultipartUpload>";
    client.send(
        "POST",
        &format!("/bucket/big?uploadId={id}"),
        &[],
        xml.as_bytes(),
    );
    let done = client.answer("POST");
    assert_eq!(done.status, 200, "{}", done.text());
    let etag = server.etag("bucket", "big").unwrap().unwrap();
    assert!(etag.ends_with("-2\""), "{etag}");
    assert_eq!(
        server.get("bucket", "big").unwrap().unwrap().len(),
        first.len() + 3
    );
    assert_eq!(server.open_uploads(), 0);

    client.send("POST", "/bucket/gone?uploads", &[], b"");
    let id = client.answer("POST").xml("UploadId");
    assert_eq!(
        client
            .ask("DELETE", &format!("/bucket/gone?uploadId={id}"), &[])
            .status,
        204
    );
    assert_eq!(server.open_uploads(), 0);
    assert!(server.get("bucket", "gone").unwrap().is_none());
}

#[test]
fn makes_and_removes_buckets_and_objects_over_the_wire() {
    let server = S3Server::builder().anonymous(true).start().unwrap();
    let mut client = Client::to(server.addr());
    assert_eq!(client.put("/fresh", b"").status, 200);
    assert_eq!(client.put("/fresh/k", b"abc").status, 200);
    assert_eq!(client.ask("GET", "/", &[]).xml_all("Name"), ["fresh"]);
    assert_eq!(
        client.ask("DELETE", "/fresh", &[]).xml("Code"),
        "BucketNotEmpty"
    );
    assert_eq!(client.ask("DELETE", "/fresh/k", &[]).status, 204);
    assert_eq!(client.ask("DELETE", "/fresh/k", &[]).status, 204);
    assert_eq!(client.ask("DELETE", "/fresh", &[]).status, 204);
    assert_eq!(client.ask("HEAD", "/fresh", &[]).status, 404);
}

#[test]
fn checks_claimed_checksums_and_tells_them_again() {
    let server = open_server();
    let mut client = Client::to(server.addr());
    client.send(
        "PUT",
        "/bucket/k",
        &[("x-amz-checksum-crc32c", "yZRlqg==")],
        b"hello world",
    );
    assert_eq!(client.answer("PUT").status, 200);
    client.send(
        "PUT",
        "/bucket/k",
        &[("x-amz-checksum-crc32c", "AAAAAA==")],
        b"hello world",
    );
    assert_eq!(client.answer("PUT").xml("Code"), "BadDigest");
    let got = client.ask("GET", "/bucket/k", &[("x-amz-checksum-mode", "ENABLED")]);
    assert_eq!(got.header("x-amz-checksum-crc32c"), "yZRlqg==");
}

#[test]
fn speaks_tls_that_a_client_with_its_authority_trusts() {
    use std::io::{Read as _, Write as _};
    use std::sync::Arc;

    use rustls_pki_types::pem::PemObject as _;

    let server = S3Server::builder()
        .anonymous(true)
        .tls(true)
        .start()
        .unwrap();
    server.create_bucket("bucket").unwrap();
    server
        .put("bucket", "k", Bytes::from_static(b"secret"))
        .unwrap();
    assert!(server.endpoint().starts_with("https://127.0.0.1:"));
    let pem = server.ca_pem().unwrap();
    let ca = rustls_pki_types::CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(ca).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = rustls_pki_types::ServerName::try_from("127.0.0.1").unwrap();
    let session = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let socket = std::net::TcpStream::connect(server.addr()).unwrap();
    let mut stream = rustls::StreamOwned::new(session, socket);
    stream
        .write_all(b"GET /bucket/k HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(
        text.starts_with("HTTP/1.1 200") && text.ends_with("secret"),
        "{text}"
    );
}
