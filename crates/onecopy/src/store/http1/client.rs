//! One request, one answer.

use std::collections::HashMap;
use std::io;
use std::time::{Duration, SystemTime};

use http::{HeaderMap, Method};
use tokio::time::{self, Instant};
use tokio_rustls::TlsConnector;

use super::super::dates;
use super::body::Body;
use super::endpoint::Endpoint;
use super::failure::Failure;
use super::head::{Head, MAX_HEAD};
use super::pool::{Lease, Pool};
use super::tls::Trust;
use super::tokens::Tokens;
use crate::config::{Limits, StoreConfig};
use crate::error::ErrorKind;
use crate::ledger::Ledger;
use crate::sync::{Arc, AtomicBool, Mutex, Ordering};

/// What is read on top where a head is longer than the guess: a few digits more, seldom a whole header.
const HEAD_STEP: usize = 64;

/// Retries that a client may make at once; after that come [`RETRIES_PER_SECOND`], one for every five requests that went
/// well, and one for every retry that did. So a store that is well loses no time by an outburst of failures, and one that
/// is ill is asked ten times a second and not a thousand times.
const RETRIES_AT_ONCE: f64 = 200.0;

/// Retries in a second, whatever becomes of them.
const RETRIES_PER_SECOND: f64 = 10.0;

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

/// The head of an answer, and the body still to be read.
#[derive(Debug)]
pub(in crate::store) struct Answer {
    pub(in crate::store) head: Head,
    pub(in crate::store) body: Body,
    /// When the request came here: what it carries is no younger.
    pub(in crate::store) asked: Instant,
}

/// Pools of connections, one per endpoint, and what they have in common.
#[derive(Debug)]
pub(in crate::store) struct Client {
    /// Guards the table of pools; never held over an await.
    pools: Mutex<HashMap<Endpoint, Arc<Pool>>>,
    /// Guards the TLS settings, which are read at the first use.
    tls: Mutex<Option<Tls>>,
    trust: Trust,
    limits: Limits,
    ledger: Arc<Ledger>,
    retries: Tokens,
    /// Whether a range was ever read well.
    has_served: AtomicBool,
}

#[derive(Clone)]
struct Tls(TlsConnector);

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

impl Client {
    pub(in crate::store) fn new(config: &StoreConfig) -> Self {
        Self {
            pools: Mutex::new(HashMap::new()),
            tls: Mutex::new(None),
            trust: Trust {
                ca_bundle: config
                    .ca_bundle
                    .clone()
                    .or_else(|| config.variables.get("AWS_CA_BUNDLE")),
                is_unverified: config.is_tls_unverified,
            },
            limits: config.limits.clone(),
            ledger: Ledger::unread(),
            has_served: AtomicBool::new(false),
            retries: Tokens::new(RETRIES_AT_ONCE, RETRIES_AT_ONCE, RETRIES_PER_SECOND),
        }
    }

    /// Counts what becomes of connections, and requests that belong to no read, on `ledger`.
    pub(in crate::store) fn counting_on(mut self, ledger: &Arc<Ledger>) -> Self {
        self.ledger = Arc::clone(ledger);
        self
    }

    pub(in crate::store) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Where requests that belong to no read are counted.
    pub(in crate::store) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Notes that a range was read well.
    pub(in crate::store) fn served(&self) {
        self.has_served.store(true, Ordering::Relaxed);
    }

    /// Whether a range was ever read well.
    pub(in crate::store) fn has_served(&self) -> bool {
        self.has_served.load(Ordering::Relaxed)
    }

    /// How many retries are left.
    pub(in crate::store) fn retries(&self) -> &Tokens {
        &self.retries
    }

    /// Sends `request` and reads the head of the answer. Interim answers are passed over; a connection that died while
    /// it was idle is replaced without counting as a try.
    pub(in crate::store) async fn send(&self, request: &Request) -> Result<Answer, Failure> {
        let asked = Instant::now();
        let tls = if request.endpoint.is_tls {
            Some(self.tls()?.0)
        } else {
            None
        };
        let pool = self.pool(&request.endpoint);
        let text = encode(request);
        let pass = pool.admit().await?;
        let mut lease = match pool.take_idle(pass) {
            Ok(lease) => lease,
            Err(pass) => pool.connect(pass, tls.as_ref()).await?,
        };
        loop {
            match self.exchange(&mut lease, &text).await {
                Ok((head, rest)) => {
                    if matches!(head.status, 429 | 503) {
                        pool.throttled();
                    }
                    let is_head = request.method == Method::HEAD;
                    let body = Body::new(lease, &head, is_head, rest, self.limits.stall_timeout)?;
                    return Ok(Answer { head, body, asked });
                }
                Err(Broken {
                    failure,
                    is_untouched,
                }) => {
                    if !(lease.is_reused && is_untouched) {
                        return Err(failure);
                    }
                    lease = pool.connect(lease.close(), tls.as_ref()).await?;
                }
            }
        }
    }

    /// Writes the request and reads the head, in no more than the time for a first byte.
    async fn exchange(&self, lease: &mut Lease, text: &[u8]) -> Result<(Head, Vec<u8>), Broken> {
        let timeout = self.limits.first_byte_timeout;
        let exchange = async {
            lease
                .connection
                .write(text)
                .await
                .map_err(|error| Broken::io(error, true))?;
            read_head(lease).await
        };
        time::timeout(timeout, exchange)
            .await
            .unwrap_or_else(|_elapsed| {
                let why = format!("no answer within {} ms", timeout.as_millis());
                Err(Failure::new(ErrorKind::Unreachable, "first_byte_timeout", why).into())
            })
    }

    fn pool(&self, endpoint: &Endpoint) -> Arc<Pool> {
        let mut pools = self.pools.lock();
        let pool = pools
            .entry(endpoint.clone())
            .or_insert_with(|| Pool::new(endpoint.clone(), &self.limits, &self.ledger));
        Arc::clone(pool)
    }

    fn tls(&self) -> Result<Tls, Failure> {
        let mut tls = self.tls.lock();
        if let Some(tls) = &*tls {
            return Ok(tls.clone());
        }
        let made = Tls(self.trust.connector()?);
        *tls = Some(made.clone());
        Ok(made)
    }
}

/// An exchange that broke, and whether the other side had not yet answered a byte.
struct Broken {
    failure: Failure,
    is_untouched: bool,
}

impl Broken {
    fn io(error: io::Error, is_untouched: bool) -> Self {
        Self {
            failure: Failure::connection(error),
            is_untouched,
        }
    }
}

impl From<Failure> for Broken {
    fn from(failure: Failure) -> Self {
        Self {
            failure,
            is_untouched: false,
        }
    }
}

/// Reads up to the end of a final head. What came along of the body is returned with it: hardly ever more than a few
/// bytes, because only as much is read as the head before was long.
async fn read_head(lease: &mut Lease) -> Result<(Head, Vec<u8>), Broken> {
    let mut bytes: Vec<u8> = Vec::new();
    let mut step = lease.pool().head_guess();
    let mut has_bytes = false;
    loop {
        let start = bytes.len();
        bytes.resize(start + step, 0);
        let read = lease.connection.read(&mut bytes[start..]).await;
        let len = read.map_err(|error| Broken::io(error, !has_bytes))?;
        if len == 0 {
            return Err(Broken::io(io::ErrorKind::UnexpectedEof.into(), !has_bytes));
        }
        has_bytes = true;
        bytes.truncate(start + len);
        step = (step - len).max(HEAD_STEP);
        while let Some((head, len)) = Head::parse(&bytes)? {
            let rest = bytes.split_off(len);
            if !head.is_interim() {
                let is_read = matches!(head.status, 200 | 206);
                lease.pool().answered(is_read.then_some(len));
                return Ok((head, rest));
            }
            if head.status == 101 {
                return Err(Failure::corrupt("the server switched to another protocol").into());
            }
            bytes = rest;
            step = lease.pool().head_guess();
        }
        if bytes.len() >= MAX_HEAD {
            let why = format!("the head of the answer is longer than {MAX_HEAD} bytes");
            return Err(Failure::corrupt(why).into());
        }
    }
}

/// The request as it goes over the wire.
#[expect(
    clippy::disallowed_methods,
    reason = "a request head and the small body of a credential request, not payload"
)]
fn encode(request: &Request) -> Vec<u8> {
    let mut text = format!(
        "{} {} HTTP/1.1\r\nhost: {}\r\n",
        request.method,
        request.path_and_query,
        request.endpoint.authority()
    )
    .into_bytes();
    for (name, value) in &request.headers {
        if name == http::header::HOST || name == http::header::CONTENT_LENGTH {
            continue;
        }
        text.extend_from_slice(name.as_str().as_bytes());
        text.extend_from_slice(b": ");
        text.extend_from_slice(value.as_bytes());
        text.extend_from_slice(b"\r\n");
    }
    if !request.body.is_empty() || matches!(request.method, Method::PUT | Method::POST) {
        text.extend_from_slice(format!("content-length: {}\r\n", request.body.len()).as_bytes());
    }
    text.extend_from_slice(b"\r\n");
    text.extend_from_slice(&request.body);
    text
}

/// A duration out of a `Retry-After` header, in seconds or as a date. A date is held against the server's own clock where
/// it tells it.
pub(in crate::store) fn retry_after(head: &Head) -> Option<Duration> {
    let text = head.header("retry-after")?;
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let then = dates::from_http(text)?;
    let now = head.header("date").and_then(dates::from_http).or_else(|| {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        i64::try_from(now.ok()?.as_secs()).ok()
    })?;
    Some(Duration::from_secs(
        u64::try_from(then.saturating_sub(now)).unwrap_or(0),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_asks_to_wait_is_read_in_both_forms() {
        let wait = |lines: &str| {
            let text = format!("HTTP/1.1 503 S\r\n{lines}\r\n\r\n");
            let head = Head::parse(text.as_bytes()).unwrap().unwrap().0;
            retry_after(&head).map(|wait| wait.as_secs())
        };
        let date = "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
        assert_eq!(wait("Retry-After: 7"), Some(7));
        assert_eq!(
            wait(&format!("{date}Retry-After: Sun, 06 Nov 1994 08:50:07 GMT")),
            Some(30)
        );
        assert_eq!(
            wait(&format!("{date}Retry-After: Sun, 06 Nov 1994 08:00:00 GMT")),
            Some(0)
        );
        assert_eq!(wait("Retry-After: Sun, 06 Nov 1994 08:50:07 GMT"), Some(0));
        for odd in [
            "X: y",
            "Retry-After: soon",
            "Retry-After: -1",
            "Retry-After:",
        ] {
            assert_eq!(wait(odd), None, "{odd}");
        }
    }

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
            encode(&request),
            b"GET /a%20b?c HTTP/1.1\r\nhost: h:9\r\nrange: bytes=0-1\r\n\r\n"
        );
        request.method = Method::PUT;
        request.headers.clear();
        assert_eq!(
            encode(&request),
            b"PUT /a%20b?c HTTP/1.1\r\nhost: h:9\r\ncontent-length: 0\r\n\r\n"
        );
    }
}
