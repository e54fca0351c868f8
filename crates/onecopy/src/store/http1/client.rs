//! One request, one answer.

use std::collections::HashMap;
use std::pin::pin;
use std::time::Duration;

use http::Method;
use tokio::time::{self, Instant};

use super::body::Body;
use super::endpoint::Endpoint;
use super::failure::Failure;
use super::head::Head;
use super::pool::{Lease, Pool};
use super::proxy::Proxies;
use super::request::Request;
use super::tls::{Sealed, TlsConnector, Trust};
use super::tokens::Tokens;
use super::way::Way;
use super::wire::{Broken, early_answer, read_head, send_body};
use crate::config::{Limits, StoreConfig};
use crate::error::ErrorKind;
use crate::ledger::Ledger;
use crate::store::Pace;
use crate::sync::{Arc, AtomicBool, Mutex, Ordering};

/// Retries that a client may make at once; after that come [`RETRIES_PER_SECOND`], one for every five requests that went
/// well, and two for every retry that did. So a store that is well loses no time by an outburst of failures, and one that
/// is ill is asked ten times a second and not a thousand times.
const RETRIES_AT_ONCE: f64 = 200.0;

/// Retries in a second, whatever becomes of them.
const RETRIES_PER_SECOND: f64 = 10.0;

/// The head of an answer, and the body still to be read.
#[derive(Debug)]
pub(in crate::store) struct Answer {
    pub(in crate::store) head: Head,
    pub(in crate::store) body: Body,
    /// What of the request's body was encrypted on its way.
    pub(in crate::store) sealed: Sealed,
}

impl Answer {
    /// Whom it came from.
    pub(in crate::store) fn way(&self) -> Arc<Way> {
        self.body.way()
    }
}

/// Pools of connections, one per endpoint, and what they have in common.
#[derive(Debug)]
pub(in crate::store) struct Client {
    /// Guards the table of pools; never held over an await.
    pools: Mutex<HashMap<Endpoint, Arc<Pool>>>,
    /// Guards the TLS settings, which are read at the first use.
    tls: Mutex<Option<TlsConnector>>,
    trust: Trust,
    proxies: Proxies,
    limits: Limits,
    ledger: Arc<Ledger>,
    retries: Tokens,
    /// Whether a range, a look-up or a listing ever went well.
    has_served: AtomicBool,
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
            proxies: Proxies::read(&config.variables),
            limits: config.limits.clone(),
            ledger: Ledger::unread(),
            has_served: AtomicBool::new(false),
            retries: Tokens::new(RETRIES_AT_ONCE, RETRIES_AT_ONCE, RETRIES_PER_SECOND),
        }
    }

    /// Without any proxy, whatever the environment says.
    pub(in crate::store) fn directly(mut self) -> Self {
        self.proxies = Proxies::default();
        self
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

    /// Notes that a range, a look-up or a listing went well.
    pub(in crate::store) fn served(&self) {
        self.has_served.store(true, Ordering::Relaxed);
    }

    /// Whether one ever did.
    pub(in crate::store) fn has_served(&self) -> bool {
        self.has_served.load(Ordering::Relaxed)
    }

    /// How many retries are left.
    pub(in crate::store) fn retries(&self) -> &Tokens {
        &self.retries
    }

    /// What reads are like just now, over all endpoints that were read from: one that only redirects tells nothing.
    pub(in crate::store) fn pace(&self) -> Pace {
        let pools = self.pools.lock();
        let all = pools.values().map(|pool| pool.reading());
        let (read, asked): (Vec<Pace>, Vec<Pace>) =
            all.partition(|pace| pace.bytes_per_second > 0.0);
        let all = if read.is_empty() { asked } else { read };
        let pace = all.into_iter().reduce(Pace::and);
        let pace = pace.unwrap_or_else(|| Pace::at_first(&self.limits));
        Pace {
            connections: pace.connections.min(self.limits.connections.max(1)),
            ..pace
        }
    }

    /// Sends `request` and reads the head of the answer. Interim answers are passed over; a connection that died while
    /// it was idle is replaced without counting as a try.
    pub(in crate::store) async fn send(&self, request: &Request) -> Result<Answer, Failure> {
        let tls = if request.endpoint.is_tls {
            Some(self.tls()?)
        } else {
            None
        };
        let pool = self.pool(&request.endpoint)?;
        let sent = self.send_by(&pool, tls.as_ref(), request).await;
        sent.map_err(|failure| failure.on(pool.way()))
    }

    async fn send_by(
        &self,
        pool: &Arc<Pool>,
        tls: Option<&TlsConnector>,
        request: &Request,
    ) -> Result<Answer, Failure> {
        let proxy = pool.way().proxy();
        let text = request.encode(proxy);
        let pass = pool.admit().await?;
        let mut lease = match pool.take_idle(pass) {
            Ok(lease) => lease,
            Err(pass) => pool.connect(pass, tls).await?,
        };
        loop {
            let sent = std::time::Instant::now();
            match self.exchange(&mut lease, request, &text).await {
                Ok((head, rest)) => {
                    if let (407, Some(proxy)) = (head.status, proxy) {
                        return Err(proxy.wants_credentials());
                    }
                    if matches!(head.status, 429 | 503) {
                        pool.throttled();
                    }
                    let sealed = lease.connection.take_sealed();
                    let is_head = request.method == Method::HEAD;
                    let body = Body::new(lease, &head, is_head, rest, self.limits.stall_timeout)?
                        .of_a_change(!request.is_read())
                        .sent_at(sent);
                    return Ok(Answer { head, body, sealed });
                }
                Err(Broken {
                    failure,
                    is_untouched,
                }) => {
                    if !(lease.is_reused && is_untouched) {
                        return Err(failure);
                    }
                    lease = pool.connect(lease.close(), tls).await?;
                }
            }
        }
    }

    /// Writes the request and reads the head, in no more than the time for a first byte; less where a read is late among
    /// its like and another connection may be asked.
    async fn exchange(
        &self,
        lease: &mut Lease,
        request: &Request,
        text: &[u8],
    ) -> Result<(Head, Vec<u8>), Broken> {
        let pool = Arc::clone(lease.pool());
        let recent = pool.recent();
        let began = Instant::now();
        let wait = recent.wait() + request.time_to_send();
        let late = recent
            .late_after()
            .filter(|late| request.is_read() && *late < wait);
        let outcome = {
            let mut exchange = pin!(async {
                let written = lease.connection.write(text).await;
                written.map_err(|error| Broken::io(error, true))?;
                // The head is no payload.
                let _head = lease.connection.take_sealed();
                let sent = send_body(lease, &request.body, self.limits.stall_timeout).await;
                match sent {
                    Ok(()) => read_head(lease).await,
                    Err(broken) => early_answer(lease, broken).await,
                }
            });
            let mut outcome = None;
            if let Some(late) = late {
                outcome = time::timeout(late, &mut exchange).await.ok();
                if outcome.is_none() && recent.may_ask_anew() {
                    outcome = Some(Err(first_byte("late_first_byte", late).promptly().into()));
                }
            }
            match outcome {
                Some(outcome) => Some(outcome),
                None => time::timeout_at(began + wait, exchange).await.ok(),
            }
        };
        match outcome {
            Some(Ok(answer)) => {
                // What a change takes says nothing of reads.
                if request.is_read() {
                    lease.answered(began.elapsed());
                }
                Ok(answer)
            }
            Some(Err(mut broken)) => {
                if broken.is_untouched && !broken.failure.is_prompt {
                    broken.failure.most_tries = pool.tries_at_first_contact();
                }
                if !(lease.is_reused && broken.is_untouched) {
                    lease.strike();
                }
                Err(broken)
            }
            None => {
                recent.timed_out(wait);
                lease.rest();
                let mut failure = first_byte("first_byte_timeout", wait);
                failure.most_tries = pool.tries_at_first_contact();
                Err(failure.into())
            }
        }
    }

    fn pool(&self, endpoint: &Endpoint) -> Result<Arc<Pool>, Failure> {
        let mut pools = self.pools.lock();
        if let Some(pool) = pools.get(endpoint) {
            return Ok(Arc::clone(pool));
        }
        let proxy = self.proxies.toward(endpoint)?;
        let pool = Pool::new(endpoint.clone(), proxy, &self.limits, &self.ledger);
        pools.insert(endpoint.clone(), Arc::clone(&pool));
        Ok(pool)
    }

    fn tls(&self) -> Result<TlsConnector, Failure> {
        let mut tls = self.tls.lock();
        if let Some(tls) = &*tls {
            return Ok(tls.clone());
        }
        let made = self.trust.connector()?;
        *tls = Some(made.clone());
        Ok(made)
    }
}

fn first_byte(cause: &'static str, wait: Duration) -> Failure {
    let why = format!("no answer within {} ms", wait.as_millis());
    Failure::new(ErrorKind::Unreachable, cause, why)
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use onecopy_testkit::fault::FaultServer;

    use super::super::addresses::tests::{named, resolve_to};
    use super::*;

    #[tokio::test]
    async fn an_address_that_takes_requests_and_never_answers_rests_after_one() {
        let server = FaultServer::start().unwrap();
        let good = server.addr();
        let port = good.port();
        let hole = SocketAddr::from(([127, 0, 0, 2], port));
        // It accepts (the kernel does) and reads nothing.
        let _listener = std::net::TcpListener::bind(hole).unwrap();
        let client = Client::new(&StoreConfig {
            limits: Limits {
                first_byte_timeout: Duration::from_millis(1500),
                ..Limits::default()
            },
            ..StoreConfig::default()
        });
        let request = Request {
            method: Method::GET,
            endpoint: named(port),
            path_and_query: "/bkt/ok/1000/a".to_owned(),
            headers: http::HeaderMap::new(),
            body: bytes::Bytes::new(),
        };
        resolve_to(
            client.pool(&request.endpoint).unwrap().addresses(),
            &[good, hole],
        );
        let mut failures = Vec::new();
        for _ in 0..8 {
            // An answer that is dropped takes its connection with it, so each one is new.
            if let Err(failure) = client.send(&request).await {
                failures.push(failure.cause);
            }
        }
        assert_eq!(failures, ["first_byte_timeout"]);
    }
}
