//! A request as it goes over the wire.

use std::time::Duration;

use http::{HeaderMap, Method};

use super::endpoint::Endpoint;
use super::proxy::Proxy;

/// A body is sent at least at this rate, in bytes per second: with less, no upload of a range would end in time.
const SLOWEST_UPLOAD: u64 = 64 << 10;

/// The time that a store may take for what is not a read: to put the parts of an upload together it takes minutes.
pub(super) const LONGEST_CHANGE: Duration = Duration::from_secs(120);

/// A request, ready to be sent.
#[derive(Debug, Clone)]
pub(in crate::store) struct Request {
    pub(in crate::store) method: Method,
    pub(in crate::store) endpoint: Endpoint,
    /// Path and query, percent-encoded.
    pub(in crate::store) path_and_query: String,
    /// Everything but `host` and `content-length`.
    pub(in crate::store) headers: HeaderMap,
    pub(in crate::store) body: bytes::Bytes,
}

impl Request {
    /// Whether it only reads.
    pub(super) fn is_read(&self) -> bool {
        matches!(self.method, Method::GET | Method::HEAD)
    }

    /// The time it may take on top of the usual wait for an answer.
    pub(super) fn time_to_send(&self) -> Duration {
        if self.is_read() {
            return Duration::ZERO;
        }
        LONGEST_CHANGE + Duration::from_secs(self.body.len() as u64 / SLOWEST_UPLOAD)
    }

    /// Its head, for the endpoint itself or for a proxy on the way, which has to be told where it goes (RFC 9112, 3.2.2).
    /// A proxy that only gives a tunnel is told so before, and never sees it. The body follows from where it lies.
    #[expect(clippy::disallowed_methods, reason = "a request head, not payload")]
    pub(super) fn encode(&self, proxy: Option<&Proxy>) -> Vec<u8> {
        let proxy = proxy.filter(|_| !self.endpoint.is_tls);
        let place = proxy.map_or_else(String::new, |_| self.endpoint.to_string());
        let mut text = format!(
            "{} {place}{} HTTP/1.1\r\nhost: {}\r\n{}",
            self.method,
            self.path_and_query,
            self.endpoint.authority(),
            proxy.map_or_else(String::new, Proxy::header)
        )
        .into_bytes();
        for (name, value) in &self.headers {
            if name == http::header::HOST || name == http::header::CONTENT_LENGTH {
                continue;
            }
            text.extend_from_slice(name.as_str().as_bytes());
            text.extend_from_slice(b": ");
            text.extend_from_slice(value.as_bytes());
            text.extend_from_slice(b"\r\n");
        }
        if !self.body.is_empty() || matches!(self.method, Method::PUT | Method::POST) {
            text.extend_from_slice(format!("content-length: {}\r\n", self.body.len()).as_bytes());
        }
        text.extend_from_slice(b"\r\n");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_one_host_and_a_length_only_where_it_has_a_body() {
        let mut request = Request {
            method: Method::GET,
            endpoint: Endpoint::split("http://h:9").unwrap().0,
            path_and_query: "/a%20b?c".to_owned(),
            headers: HeaderMap::new(),
            body: bytes::Bytes::new(),
        };
        request
            .headers
            .insert("host", http::HeaderValue::from_static("elsewhere"));
        request
            .headers
            .insert("range", http::HeaderValue::from_static("bytes=0-1"));
        assert_eq!(
            request.encode(None),
            b"GET /a%20b?c HTTP/1.1\r\nhost: h:9\r\nrange: bytes=0-1\r\n\r\n"
        );
        request.method = Method::PUT;
        request.headers.clear();
        assert_eq!(
            request.encode(None),
            b"PUT /a%20b?c HTTP/1.1\r\nhost: h:9\r\ncontent-length: 0\r\n\r\n"
        );
    }
}
