//! A service account of Google's: its key signs a claim, and a token is to be had for that at Google's own host alone.
#![expect(clippy::unwrap_used, reason = "test helpers")]

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

use onecopy::config::{StoreConfig, Variables};
use onecopy::store::{Named, open_store};
use onecopy::sync::{Arc, Mutex};
use onecopy_testkit::cloud::{Access, CloudServer};
use rcgen::{CertificateParams, KeyPair, PKCS_RSA_SHA256};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

const HOST: &str = "oauth2.googleapis.com";

/// The head of a message, and what follows it by its Content-Length.
fn message(from: &mut impl BufRead) -> (String, String) {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(from.read_line(&mut head).unwrap(), 0, "{head}");
    }
    let len = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.parse().unwrap())
    });
    let mut body = vec![0; len.unwrap_or(0)];
    from.read_exact(&mut body).unwrap();
    (head, String::from_utf8(body).unwrap())
}

/// A proxy behind which stands Google's host for tokens, with a certificate of its own: its address, the certificate, and what
/// was asked.
fn token_host() -> (String, String, Arc<Mutex<Vec<String>>>) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![HOST.to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let pem = certificate.pem();
    let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let record = Arc::clone(&seen);
    onecopy::sync::spawn("test-tokens", move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (head, _) = message(&mut BufReader::new(&mut stream));
            assert!(head.starts_with(&format!("CONNECT {HOST}:443 ")), "{head}");
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
            let tls = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = BufReader::new(StreamOwned::new(tls, stream));
            let (head, body) = message(&mut stream);
            record.lock().push(format!("{head}{body}"));
            let text = r#"{"access_token":"from-key","expires_in":3600,"token_type":"Bearer"}"#;
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}",
                text.len()
            );
            stream.get_mut().write_all(answer.as_bytes()).unwrap();
            stream.get_mut().flush().unwrap();
        }
    })
    .unwrap();
    (url, pem, seen)
}

#[tokio::test]
async fn where_no_token_is_to_be_had_the_error_says_who_refused_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("user.json");
    let text = serde_json::json!({
        "type": "authorized_user",
        "client_id": "id",
        "client_secret": "hush",
        "refresh_token": "hush",
    });
    std::fs::write(&file, text.to_string()).unwrap();
    let config = StoreConfig {
        variables: Variables::only([
            ("GOOGLE_APPLICATION_CREDENTIALS", file.to_str().unwrap()),
            ("HTTPS_PROXY", "http://127.0.0.1:1"),
        ]),
        ..StoreConfig::default()
    };
    let (store, Named::Object(object)) = open_store("gs://bkt/k", &config).unwrap() else {
        panic!("an object")
    };
    let error = store.head(&object).await.unwrap_err();
    assert!(error.why().contains(HOST), "{error}");
    assert!(error.why().contains("127.0.0.1:1"), "{error}");
    assert!(!format!("{error:#}").contains("hush"), "{error:?}");
}

#[tokio::test]
async fn the_key_of_a_service_account_is_exchanged_once_for_a_token_and_never_sent() {
    let folder = tempfile::tempdir().unwrap();
    let (proxy, pem, seen) = token_host();
    let key = KeyPair::generate_for(&PKCS_RSA_SHA256).unwrap();
    let file = folder.path().join("key.json");
    let text = serde_json::json!({
        "type": "service_account",
        "client_email": "reader@made-up.example",
        "private_key": key.serialize_pem(),
        "token_uri": "https://elsewhere.example/token",
    });
    std::fs::write(&file, text.to_string()).unwrap();
    let ca = folder.path().join("ca.pem");
    std::fs::write(&ca, pem).unwrap();
    let server = CloudServer::google("127.0.0.1:0", Access::Token("from-key".into())).unwrap();
    server.put("bkt", "k", "12345");
    let config = StoreConfig {
        endpoint_url: Some(server.endpoint()),
        ca_bundle: Some(ca.to_str().unwrap().to_owned()),
        variables: Variables::only([
            ("GOOGLE_APPLICATION_CREDENTIALS", file.to_str().unwrap()),
            ("HTTPS_PROXY", &proxy),
        ]),
        ..StoreConfig::default()
    };
    let (store, Named::Object(object)) = open_store("gs://bkt/k", &config).unwrap() else {
        panic!("an object")
    };
    for _ in 0..3 {
        let found = store.head(&object).await.unwrap();
        assert_eq!(found.len_bytes, Some(5));
    }
    let seen = seen.lock();
    assert_eq!(seen.len(), 1);
    assert!(seen[0].starts_with("POST /token HTTP/1.1"), "{}", seen[0]);
    assert!(seen[0].contains("jwt-bearer&assertion="), "{}", seen[0]);
    assert!(!seen[0].contains("PRIVATE"));
}
