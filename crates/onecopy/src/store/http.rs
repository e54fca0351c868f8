//! Objects on an ordinary web server.

use http::{HeaderMap, HeaderValue, Method, header};

use super::http1::{Answer, Client, Endpoint, Failure, Head, Request, retry_after};
use super::origin::{self, Origin};
use super::{
    BoxFuture, Filled, Key, ListPage, ListRequest, Object, Pace, Store, Taker, Target, ranged,
};
use crate::buffer::Slab;
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::{Ledger, OpenHop};
use crate::route::Hop;
use crate::sync::Arc;

/// Objects of one web server. A key is what follows the host: path and query, percent-encoded.
///
/// It can read and look up, not list. Redirects are followed, since no credentials are sent.
#[derive(Debug)]
pub(super) struct HttpStore {
    client: Arc<Client>,
    endpoint: Endpoint,
}

impl HttpStore {
    pub(super) fn new(client: Arc<Client>, endpoint: Endpoint) -> Self {
        Self { client, endpoint }
    }

    /// The object behind `rest`, what follows the host in a URL. Its `url` shows no query: that may be a signature.
    pub(super) fn object(&self, rest: &str) -> Object {
        let rest = rest.split('#').next().unwrap_or_default();
        let rest = if rest.starts_with('/') {
            rest.to_owned()
        } else {
            format!("/{rest}")
        };
        let shown = rest.split('?').next().unwrap_or_default();
        Object {
            url: format!("{}{shown}", self.endpoint).into(),
            key: Key::new(encode(&rest)),
            version: None,
            len_bytes: None,
            etag: None,
            modified_unix: None,
        }
    }

    fn request(&self, method: Method, object: &Object) -> Request {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
        headers.insert(
            header::USER_AGENT,
            HeaderValue::from_static(super::USER_AGENT),
        );
        Request {
            method,
            endpoint: self.endpoint.clone(),
            path_and_query: String::from_utf8_lossy(object.key.as_bytes()).into_owned(),
            headers,
            body: bytes::Bytes::new(),
        }
    }
}

/// Redirects followed at most.
const MAX_REDIRECTS: usize = 5;

/// The request to make instead, where an answer points elsewhere and that may be followed.
fn redirected(request: &Request, head: &Head) -> Option<Request> {
    if !matches!(head.status, 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let place = head.header("location")?;
    let mut next = request.clone();
    if place.starts_with('/') && !place.starts_with("//") {
        next.path_and_query = encode(place);
        return Some(next);
    }
    let (endpoint, rest) = Endpoint::split(place).ok()?;
    // What was asked for under TLS is not fetched without it.
    if request.endpoint.is_tls && !endpoint.is_tls {
        return None;
    }
    let rest = rest.split('#').next().unwrap_or_default();
    next.endpoint = endpoint;
    next.path_and_query = encode(if rest.starts_with('/') { rest } else { "/" });
    Some(next)
}

/// Encodes what may not stand in a request line; what is encoded already stays.
fn encode(text: &str) -> String {
    const ODD: percent_encoding::AsciiSet = percent_encoding::CONTROLS
        .add(b' ')
        .add(b'"')
        .add(b'<')
        .add(b'>')
        .add(b'\\')
        .add(b'^')
        .add(b'`')
        .add(b'{')
        .add(b'|')
        .add(b'}');
    percent_encoding::utf8_percent_encode(text, &ODD).to_string()
}

impl Origin for HttpStore {
    fn client(&self) -> &Client {
        &self.client
    }

    fn ask<'a>(
        &'a self,
        method: Method,
        object: &'a Object,
        conditions: HeaderMap,
        _ledger: Option<&'a Ledger>,
    ) -> BoxFuture<'a, Result<Answer, Failure>> {
        Box::pin(async move {
            let mut request = self.request(method, object);
            request.headers.extend(conditions);
            let mut way = None;
            for _ in 0..MAX_REDIRECTS {
                let answer = self.client.send(&request).await?;
                way = Some(answer.way());
                match redirected(&request, &answer.head) {
                    Some(next) => request = next,
                    None => return Ok(answer),
                }
            }
            let why = format!("more than {MAX_REDIRECTS} redirects");
            let failure = Failure::new(ErrorKind::Unreachable, "redirects", why).final_now();
            Err(match way {
                Some(way) => failure.on(&way),
                None => failure,
            })
        })
    }

    fn refused<'a>(&'a self, _method: &'a Method, answer: Answer) -> BoxFuture<'a, Failure> {
        Box::pin(async move {
            let mut failure = refusal(answer.head.status);
            failure.retry_after = retry_after(&answer.head);
            let way = answer.way();
            // The text is for browsers; reading it keeps the connection for the next request.
            let _text = answer.body.collect(64 << 10).await;
            failure.on(&way)
        })
    }
}

/// What a status means on an ordinary web server.
fn refusal(status: u16) -> Failure {
    let (kind, cause, why) = match status {
        404 | 410 => (ErrorKind::NotFound, "not_found", "there is no such object"),
        401 | 403 | 407 => (ErrorKind::Denied, "denied", "access denied"),
        429 | 503 => (
            ErrorKind::Throttled,
            "throttled",
            "the server asks for less",
        ),
        408 => (
            ErrorKind::Unreachable,
            "server_timeout",
            "the server waited too long",
        ),
        200..=299 => (
            ErrorKind::Corrupt,
            "bad_answer",
            "the server answered oddly",
        ),
        304 => (
            ErrorKind::Unsupported,
            "not_modified",
            "the server says that the object has not changed, which nobody asked",
        ),
        416 => (
            ErrorKind::Unsupported,
            "no_such_range",
            "the object has no such bytes",
        ),
        500 | 502 | 504 | 520..=530 => {
            (ErrorKind::Unreachable, "server_error", "the server failed")
        }
        300..=399 => (
            ErrorKind::Unsupported,
            "redirect",
            "it is elsewhere, and not safely reached",
        ),
        _ => (ErrorKind::Unsupported, "status", "the server refused"),
    };
    let failure = Failure::new(kind, cause, format!("{why} (status {status})"));
    match kind {
        ErrorKind::Denied => {
            failure.with_help("a signed URL may have expired; for S3 with credentials use s3://")
        }
        ErrorKind::NotFound => failure.with_help("check the URL"),
        _ => failure,
    }
}

impl Store for HttpStore {
    fn read_into<'a>(
        &'a self,
        hop: &'a OpenHop,
        object: &'a Object,
        offset: u64,
        target: Target,
    ) -> BoxFuture<'a, Result<Filled>> {
        Box::pin(ranged::read_into(self, hop, object, offset, target))
    }

    fn read_run<'a>(
        &'a self,
        hop: &'a OpenHop,
        object: &'a Object,
        offset: u64,
        target: Target,
        taker: &'a mut dyn Taker,
    ) -> BoxFuture<'a, Result<Filled>> {
        Box::pin(ranged::read_run(
            self,
            hop,
            object,
            offset,
            target,
            Some(taker),
        ))
    }

    fn pace(&self) -> Option<Pace> {
        Some(self.client.pace())
    }

    fn head<'a>(&'a self, object: &'a Object) -> BoxFuture<'a, Result<Object>> {
        Box::pin(async move {
            match origin::head(self, object).await {
                // URLs that are signed for GET, and some servers, refuse HEAD: one byte tells as much.
                Err(error)
                    if matches!(error.kind(), ErrorKind::Denied | ErrorKind::Unsupported) =>
                {
                    let hop = Ledger::unread().hop(Hop::Recv);
                    let target = vec![Slab::heap(1)];
                    Ok(ranged::read_into(self, &hop, object, 0, target)
                        .await?
                        .object)
                }
                other => other,
            }
        })
    }

    fn list<'a>(&'a self, request: &'a ListRequest) -> BoxFuture<'a, Result<ListPage>> {
        let error = Error::new(
            ErrorKind::Unsupported,
            "list",
            format!("{}{}", self.endpoint, request.prefix),
            "a web server does not tell what it holds",
        )
        .with_help("name the objects: http://host/shard-{000..099}.tar, or a file with a list");
        Box::pin(std::future::ready(Err(error)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::StoreConfig;

    fn store(url: &str) -> HttpStore {
        let client = Arc::new(Client::new(&StoreConfig::default()));
        HttpStore::new(client, Endpoint::split(url).unwrap().0)
    }

    #[test]
    fn what_is_encoded_stays_and_what_may_not_stand_in_a_request_is_encoded() {
        let key = |rest: &str| {
            let object = store("http://h").object(rest);
            String::from_utf8(object.key.as_bytes().into()).unwrap()
        };
        assert_eq!(
            key("/a b%20c?x=1 2&y=ü#part"),
            "/a%20b%20c?x=1%202&y=%C3%BC"
        );
        assert_eq!(key("/a\r\nx: y"), "/a%0D%0Ax:%20y");
        assert_eq!(key("?x=1"), "/?x=1");
        assert_eq!(&*store("http://h").object("/a?sig=1").url, "http://h/a");
    }

    #[test]
    fn redirects_never_leave_tls_and_stay_among_urls() {
        let to = |place: &str| {
            let text = format!("HTTP/1.1 302 Found\r\nLocation: {place}\r\n\r\n");
            Head::parse(text.as_bytes()).unwrap().unwrap().0
        };
        let store = store("https://h");
        let request = store.request(Method::GET, &store.object("/a"));
        let next = |place: &str| {
            let next = redirected(&request, &to(place))?;
            Some(format!("{}{}", next.endpoint, next.path_and_query))
        };
        assert_eq!(next("/b?c").as_deref(), Some("https://h/b?c"));
        assert_eq!(
            next("https://other/b#c").as_deref(),
            Some("https://other/b")
        );
        assert_eq!(next("https://other").as_deref(), Some("https://other/"));
        for place in [
            "http://h/b",
            "//other/b",
            "ftp://h/b",
            "https://me:you@h/b",
            "b",
        ] {
            assert_eq!(next(place), None, "{place}");
        }
    }

    #[test]
    fn statuses_have_their_kinds() {
        for (status, kind) in [
            (404, ErrorKind::NotFound),
            (401, ErrorKind::Denied),
            (429, ErrorKind::Throttled),
            (502, ErrorKind::Unreachable),
            (302, ErrorKind::Unsupported),
            (304, ErrorKind::Unsupported),
            (204, ErrorKind::Corrupt),
            (416, ErrorKind::Unsupported),
            (418, ErrorKind::Unsupported),
        ] {
            assert_eq!(refusal(status).kind, kind, "{status}");
        }
    }
}
