//! Reading by way of a proxy, as the environment names it.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "test helpers; the copies are a proxy's"
)]

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};

use onecopy::buffer::Slab;
use onecopy::config::{Limits, StoreConfig, Variables};
use onecopy::ledger::{Ledger, Report};
use onecopy::route::Hop;
use onecopy::store::{Filled, Key, ListPage, ListRequest, Named, open_store_counted};
use onecopy::sync::{Arc, Mutex};
use onecopy::{Error, ErrorKind};
use onecopy_testkit::fault::{FaultServer, body_byte};
use onecopy_testkit::s3::S3Server;

/// A proxy that leads to one server, whatever host it is asked for, and notes the heads of what it is asked.
struct Proxy {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    /// `refusal` is what it answers instead, if anything.
    fn start(server: SocketAddr, refusal: Option<&'static str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let heads: Arc<Mutex<Vec<String>>> = Arc::default();
        let noted = Arc::clone(&heads);
        onecopy::sync::spawn("test-proxy", move || {
            for client in listener.incoming() {
                let (client, noted) = (client.unwrap(), Arc::clone(&noted));
                // A client that goes away is part of the game.
                let serve = move || drop(hand_on(client, server, &noted, refusal));
                onecopy::sync::spawn("test-proxied", serve).unwrap();
            }
        })
        .unwrap();
        Self { address, heads }
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().clone()
    }
}

fn hand_on(
    mut client: TcpStream,
    server: SocketAddr,
    noted: &Mutex<Vec<String>>,
    refusal: Option<&str>,
) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    noted.lock().push(head.clone());
    if let Some(refusal) = refusal {
        return client
            .write_all(format!("HTTP/1.1 {refusal}\r\nContent-Length: 0\r\n\r\n").as_bytes());
    }
    let mut upstream = TcpStream::connect(server)?;
    if head.starts_with("CONNECT ") {
        client.write_all(b"HTTP/1.0 200 Connection established\r\nVia: test\r\n\r\n")?;
        let (mut from, mut to) = (client.try_clone()?, upstream.try_clone()?);
        onecopy::sync::spawn("test-up", move || {
            let _ended = std::io::copy(&mut from, &mut to);
            drop(to.shutdown(Shutdown::Write));
        })
        .map_err(std::io::Error::other)?;
    } else {
        // From the absolute form to the path; one request a connection is enough here.
        let (line, rest) = head.split_once("\r\n").unwrap();
        let path = line.split("http://").nth(1).unwrap();
        let path = &path[path.find('/').unwrap()..];
        let method = line.split(' ').next().unwrap();
        upstream.write_all(format!("{method} {path}\r\nConnection: close\r\n{rest}").as_bytes())?;
    }
    std::io::copy(&mut upstream, &mut client)?;
    client.shutdown(Shutdown::Write)
}

fn config(endpoint: &str, variables: &[(&str, &str)]) -> StoreConfig {
    let keys = [
        ("AWS_ACCESS_KEY_ID", "onecopy"),
        ("AWS_SECRET_ACCESS_KEY", "onecopy-secret"),
    ];
    StoreConfig {
        endpoint_url: Some(endpoint.to_owned()),
        is_tls_unverified: true,
        // A look-up would come first, and requests are counted here.
        is_checksum_unverified: true,
        variables: Variables::only(keys.iter().chain(variables).copied()),
        limits: Limits {
            tries: 2,
            ..Limits::default()
        },
        ..StoreConfig::default()
    }
}

async fn read(url: &str, config: &StoreConfig, len: usize) -> (Result<Filled, Error>, Report) {
    let ledger = Ledger::unread();
    let (store, named) = open_store_counted(url, config, &ledger).unwrap();
    let Named::Object(object) = named else {
        panic!("an object")
    };
    let hop = ledger.hop(Hop::Recv);
    let filled = store
        .read_into(&hop, &object, 0, vec![Slab::heap(len)])
        .await;
    (filled, ledger.report())
}

async fn list(url: &str, config: &StoreConfig) -> Result<ListPage, Error> {
    let (store, _) = open_store_counted(url, config, &Ledger::unread()).unwrap();
    let request = ListRequest {
        prefix: Key::new(*b""),
        is_folded: false,
        page: None,
    };
    store.list(&request).await
}

#[tokio::test]
async fn plain_requests_go_through_the_proxy_in_absolute_form() {
    let server = FaultServer::start().unwrap();
    let proxy = Proxy::start(server.addr(), None);
    let variable = format!("http://me:secret@{}", proxy.address);
    // Only the proxy knows this name.
    let config = config("http://store.invalid", &[("http_proxy", &variable)]);
    let key = "ok/1000/a b";
    let (filled, report) = read(&format!("s3://bkt/{key}"), &config, 1000).await;
    let filled = filled.unwrap();
    assert!((0..1000).all(|at| filled.target[0][at] == body_byte(key, at as u64)));
    let heads = proxy.heads();
    assert!(heads[0].starts_with(
        "GET http://store.invalid/bkt/ok/1000/a%20b HTTP/1.1\r\nhost: store.invalid\r\n"
    ));
    // printf me:secret | base64
    assert!(heads[0].contains("proxy-authorization: Basic bWU6c2VjcmV0\r\n"));
    let text = format!("{report:?}");
    assert!(
        text.contains(&format!("http://{}", proxy.address)) && !text.contains("secret"),
        "{text}"
    );
    // A server on the open web is reached as an S3 store is.
    let (filled, _) = read("http://web.invalid/bkt/ok/1000/b", &config, 1000).await;
    assert_eq!(filled.unwrap().len_bytes, 1000);
}

#[tokio::test]
async fn tls_goes_through_a_tunnel_that_the_proxy_cannot_look_into() {
    let server = S3Server::builder().tls(true).start().unwrap();
    server.create_bucket("bkt").unwrap();
    server.put("bkt", "k", vec![7; 5000]).unwrap();
    let proxy = Proxy::start(server.addr(), None);
    let variable = format!("me:secret@{}", proxy.address);
    let config = config("https://store.invalid:9000", &[("ALL_PROXY", &variable)]);
    let (filled, _) = read("s3://bkt/k", &config, 5000).await;
    assert!(filled.unwrap().target[0].iter().all(|byte| *byte == 7));
    let heads = proxy.heads();
    assert_eq!(heads.len(), 1);
    assert!(
        heads[0].starts_with("CONNECT store.invalid:9000 HTTP/1.1\r\nhost: store.invalid:9000\r\n")
    );
    assert!(heads[0].contains("proxy-authorization: Basic bWU6c2VjcmV0\r\n"));
    assert!(!heads[0].contains("AWS4"), "what is signed goes inside");
}

#[tokio::test]
async fn what_a_proxy_refuses_is_said_by_its_name_and_without_a_password() {
    let nobody = SocketAddr::from(([127, 0, 0, 1], 1));
    for (endpoint, refusal, kind, why, retries) in [
        (
            "http://store.invalid",
            "407 Proxy Authentication Required",
            ErrorKind::Denied,
            "does not accept our user name",
            0,
        ),
        (
            "https://store.invalid",
            "407 Proxy Authentication Required",
            ErrorKind::Denied,
            "does not accept our user name",
            0,
        ),
        (
            "https://store.invalid",
            "403 Forbidden",
            ErrorKind::Denied,
            "gives no way to store.invalid:443 (status 403)",
            0,
        ),
        (
            "https://store.invalid",
            "502 Bad Gateway",
            ErrorKind::Unreachable,
            "gives no way to store.invalid:443 (status 502)",
            1,
        ),
    ] {
        let proxy = Proxy::start(nobody, Some(refusal));
        let variable = format!("http://me:secret@{}", proxy.address);
        let config = config(endpoint, &[("all_proxy", &variable)]);
        let (filled, report) = read("s3://bkt/k", &config, 10).await;
        let error = filled.unwrap_err();
        assert_eq!(error.kind(), kind, "{refusal}");
        let text = format!("{error:#} {error:?}");
        assert!(
            text.contains(why) && text.contains(&proxy.address.to_string()),
            "{text}"
        );
        assert!(!text.contains("secret"), "{text}");
        assert!(error.help().is_some());
        assert_eq!(report.retries.total, retries, "{refusal}");
    }
}

#[tokio::test]
async fn a_proxy_that_is_not_there_is_named() {
    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let variable = format!("http://{closed}");
    let config = config("https://store.invalid", &[("https_proxy", &variable)]);
    let (filled, _) = read("s3://bkt/k", &config, 10).await;
    let error = filled.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert!(
        error
            .help()
            .unwrap()
            .contains(&format!("the proxy {variable}"))
    );
}

#[tokio::test]
async fn whom_no_proxy_names_is_reached_directly() {
    let server = FaultServer::start().unwrap();
    let proxy = Proxy::start(server.addr(), Some("500 Never"));
    let variable = format!("http://{}", proxy.address);
    // Loopback is never asked for by way of a proxy.
    let near = config(&server.endpoint(), &[("http_proxy", &variable)]);
    assert!(read("s3://bkt/ok/9/a", &near, 9).await.0.is_ok());
    assert!(proxy.heads().is_empty());
    let listed = config(
        "http://store.invalid",
        &[("http_proxy", &variable), ("NO_PROXY", ".invalid")],
    );
    let error = read("s3://bkt/ok/9/a", &listed, 9).await.0.unwrap_err();
    assert!(error.why().contains("does not resolve"), "{error:#}");
    assert!(proxy.heads().is_empty());
}

#[tokio::test]
async fn whatever_fails_beyond_a_proxy_names_the_proxy_and_no_password() {
    let nobody = SocketAddr::from(([127, 0, 0, 1], 1));
    for refusal in [
        "200 OK\r\nContent-Type: text/html",
        "204 No Content",
        "302 Found\r\nLocation: http://login.invalid/?back=secret",
        "400 Bad Request",
        "403 Forbidden",
        "404 Not Found",
        "429 Too Many Requests",
        "502 Bad Gateway",
        "503 Service Unavailable",
        "206 P\r\nContent-Range: bytes 5-6/7",
        "nonsense",
    ] {
        let proxy = Proxy::start(nobody, Some(refusal));
        let variable = format!("http://me:secret@{}", proxy.address);
        let config = config("http://store.invalid", &[("http_proxy", &variable)]);
        let open = StoreConfig {
            is_anonymous: true,
            ..config.clone()
        };
        for (url, config) in [
            ("s3://bkt/k", &config),
            ("http://store.invalid/bkt/k", &config),
            ("gs://bkt/k", &open),
            ("az://bkt/k", &open),
        ] {
            let (filled, _) = read(url, config, 10).await;
            if refusal.starts_with("200 ") && url.starts_with("http") {
                // On the web a page is as good an object as any.
                assert_eq!(filled.unwrap().len_bytes, 0);
                continue;
            }
            let error = filled.unwrap_err();
            let text = format!("{error:#} {error:?}");
            assert!(
                error
                    .why()
                    .contains(&format!("the proxy http://{}", proxy.address)),
                "{url} {refusal}: {text}"
            );
            assert!(!text.contains("secret"), "{text}");
            assert!(error.help().is_some(), "{url} {text}");
        }
        let name = format!("the proxy http://{}", proxy.address);
        for (url, config) in [
            ("s3://bkt", &config),
            ("gs://bkt", &open),
            ("az://bkt", &open),
        ] {
            let error = list(url, config).await.unwrap_err();
            assert!(error.why().contains(&name), "{url} {refusal}: {error:#}");
        }
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_beyond_a_proxy_names_the_proxy() {
    let server = FaultServer::start().unwrap();
    let proxy = Proxy::start(server.addr(), None);
    let variable = format!("http://me:secret@{}", proxy.address);
    let config = config("http://store.invalid", &[("http_proxy", &variable)]);
    let error = read("s3://bkt/cut=0x*/1000/a", &config, 1000)
        .await
        .0
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Truncated);
    assert!(
        error.why().contains(&proxy.address.to_string()),
        "{error:#}"
    );
}

#[tokio::test]
async fn a_search_for_credentials_that_fails_says_where_and_through_which_proxy() {
    let nobody = SocketAddr::from(([127, 0, 0, 1], 1));
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "hush-hush").unwrap();
    for (refusal, why) in [
        ("403 Forbidden", "gives no way to sts."),
        ("407 Who", "does not accept our user name"),
    ] {
        let proxy = Proxy::start(nobody, Some(refusal));
        let variable = format!("http://me:secret@{}", proxy.address);
        let mut config = config("http://127.0.0.1:1", &[]);
        config.variables = Variables::only([
            ("AWS_ROLE_ARN", "arn:aws:iam::1:role/r"),
            ("AWS_WEB_IDENTITY_TOKEN_FILE", token.to_str().unwrap()),
            ("AWS_EC2_METADATA_DISABLED", "true"),
            ("https_proxy", &variable),
        ]);
        let error = read("s3://bkt/k", &config, 10).await.0.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{error:#}");
        let text = format!("{error:#} {error:?}");
        assert!(
            error.why().starts_with("no credentials were found: "),
            "{text}"
        );
        assert!(error.why().contains(why), "{text}");
        assert!(error.why().contains(&proxy.address.to_string()), "{text}");
        assert!(!text.contains("secret") && !text.contains("hush"), "{text}");
    }
}
