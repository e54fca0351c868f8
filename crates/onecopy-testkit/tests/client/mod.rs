//! A small HTTP client over plain sockets: it sends what it is told, byte for byte.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "test helpers fail by panicking and move no payload of ours"
)]
#![allow(
    dead_code,
    clippy::allow_attributes,
    reason = "each test binary uses another part of the client"
)]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqsign_aws_v4::{Credential, RequestSigner};
use reqsign_core::{Context, SignRequest as _};

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// The text between the first `<name>` and its end.
    pub(crate) fn xml(&self, name: &str) -> String {
        self.xml_all(name).into_iter().next().unwrap_or_default()
    }

    pub(crate) fn xml_all(&self, name: &str) -> Vec<String> {
        let text = self.text();
        let (begin, end) = (format!("<{name}>"), format!("</{name}>"));
        let pieces = text.split(&begin).skip(1);
        pieces
            .map(|p| p.split(&end).next().unwrap().to_owned())
            .collect()
    }
}

/// A connection that sends one request after the other.
pub(crate) struct Client {
    pub(crate) stream: BufReader<TcpStream>,
    host: String,
}

impl Client {
    pub(crate) fn to(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream: BufReader::new(stream),
            host: address.to_string(),
        }
    }

    pub(crate) fn send(
        &mut self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) {
        let mut head = format!("{method} {target} HTTP/1.1\r\nHost: {}\r\n", self.host);
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        if !body.is_empty() || method == "PUT" || method == "POST" {
            head += &format!("Content-Length: {}\r\n", body.len());
        }
        head += "\r\n";
        self.stream.get_mut().write_all(head.as_bytes()).unwrap();
        self.stream.get_mut().write_all(body).unwrap();
    }

    pub(crate) fn head(&mut self) -> (u16, BTreeMap<String, String>) {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        let status = line
            .split(' ')
            .nth(1)
            .unwrap_or_else(|| panic!("no status: {line:?}"));
        let status = status.trim().parse().unwrap();
        let mut headers = BTreeMap::new();
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).unwrap();
            let Some((name, value)) = line.trim_end().split_once(':') else {
                break;
            };
            headers.insert(name.to_lowercase(), value.trim().to_owned());
        }
        (status, headers)
    }

    pub(crate) fn answer(&mut self, method: &str) -> Answer {
        let (status, headers) = self.head();
        let mut body = Vec::new();
        let empty = method == "HEAD" || status == 204 || status == 304;
        if let (Some(length), false) = (headers.get("content-length"), empty) {
            body = vec![0; length.parse().unwrap()];
            self.stream.read_exact(&mut body).unwrap();
        } else if headers
            .get("transfer-encoding")
            .is_some_and(|t| t == "chunked")
            && !empty
        {
            loop {
                let mut line = String::new();
                self.stream.read_line(&mut line).unwrap();
                let size = line.trim().split(';').next().unwrap();
                let size = usize::from_str_radix(size, 16).unwrap();
                let mut chunk = vec![0; size + 2];
                self.stream.read_exact(&mut chunk).unwrap();
                body.extend_from_slice(&chunk[..size]);
                if size == 0 {
                    break;
                }
            }
        }
        Answer {
            status,
            headers,
            body,
        }
    }

    pub(crate) fn ask(&mut self, method: &str, target: &str, headers: &[(&str, &str)]) -> Answer {
        self.send(method, target, headers, b"");
        self.answer(method)
    }

    pub(crate) fn put(&mut self, target: &str, body: &[u8]) -> Answer {
        self.send("PUT", target, &[], body);
        self.answer("PUT")
    }

    pub(crate) fn signed(
        &mut self,
        method: &str,
        target: &str,
        keys: (&str, &str),
        region: &str,
        body: &[u8],
    ) -> Answer {
        let mut parts = http::Request::builder()
            .method(method)
            .uri(format!("http://{}{target}", self.host))
            .header("x-amz-content-sha256", "UNSIGNED-PAYLOAD")
            .body(())
            .unwrap()
            .into_parts()
            .0;
        let credential = Credential {
            access_key_id: keys.0.to_owned(),
            secret_access_key: keys.1.to_owned(),
            session_token: None,
            expires_in: None,
        };
        let signer = RequestSigner::new("s3", region);
        let context = Context::new();
        let signed = signer.sign_request(&context, &mut parts, Some(&credential), None);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(signed).unwrap();
        let headers: Vec<_> = parts
            .headers
            .iter()
            .filter(|(name, _)| *name != "host")
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        self.send(method, target, &headers, body);
        self.answer(method)
    }
}

/// A key as the path of a request.
pub(crate) fn encoded(key: &str) -> String {
    const PLAIN: &AsciiSet = &NON_ALPHANUMERIC
        .remove(b'-')
        .remove(b'_')
        .remove(b'.')
        .remove(b'~')
        .remove(b'/');
    utf8_percent_encode(key, PLAIN).to_string()
}
