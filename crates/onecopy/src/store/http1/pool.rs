//! The connections of one endpoint.

use std::time::{Duration, Instant};

use super::addresses::{Addresses, Placed};
use super::climb::Climb;
use super::connect;
use super::connection::Connection;
use super::endpoint::Endpoint;
use super::epoch::{EPOCH, Epoch};
use super::failure::Failure;
use super::files;
use super::gate::{Gate, Pass};
use super::proxy::Proxy;
use super::recent::Recent;
use super::tls::TlsConnector;
use super::way::Way;
use crate::config::Limits;
use crate::ledger::Ledger;
use crate::store::Pace;
use crate::sync::{Arc, AtomicU64, AtomicUsize, Mutex, Ordering};

/// The first guess at the length of a head: S3's are somewhat longer, so no body byte comes along.
const FIRST_HEAD_GUESS: usize = 512;

/// Tries for an endpoint that never answered: it is more likely misspelt than ill.
const FIRST_CONTACT_TRIES: u32 = 3;

/// Connections to one endpoint: the idle ones, and a limit for all, which moves with what it brings.
#[derive(Debug)]
pub(super) struct Pool {
    way: Arc<Way>,
    addresses: Arc<Addresses>,
    /// Guards the idle connections, newest last; never held over an await.
    idle: Mutex<Vec<Idle>>,
    gate: Arc<Gate>,
    /// Body bytes that came in during this epoch.
    came_in: AtomicU64,
    /// Guards the number of connections and the clock of its epochs; held for some sums.
    pace: Mutex<Clock>,
    connect_timeout: Duration,
    idle_timeout: Duration,
    head_guess: AtomicUsize,
    recent: Recent,
    ledger: Arc<Ledger>,
}

#[derive(Debug)]
struct Clock {
    climb: Climb,
    began: tokio::time::Instant,
    epoch_began: tokio::time::Instant,
}

#[derive(Debug)]
struct Idle {
    connection: Connection,
    placed: Placed,
    since: Instant,
}

/// A connection in use. Dropping it closes it; [`Lease::give_back`] keeps it for the next request.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) connection: Connection,
    pub(super) is_reused: bool,
    placed: Placed,
    pool: Arc<Pool>,
    pass: Pass,
}

impl Pool {
    pub(super) fn new(
        endpoint: Endpoint,
        proxy: Option<Arc<Proxy>>,
        limits: &Limits,
        ledger: &Arc<Ledger>,
    ) -> Arc<Self> {
        if let Some(proxy) = &proxy {
            ledger.note(format!(
                "connections to {endpoint} go through the proxy {proxy}"
            ));
        }
        let (most, note) = files::clamp(limits.connections, files::left());
        if let Some(note) = note {
            ledger.note(note);
        }
        let climb = Climb::new(limits.connections_at_first, most);
        ledger.connections_allowed(climb.count());
        let now = tokio::time::Instant::now();
        Arc::new(Self {
            way: Way::new(endpoint, proxy),
            addresses: Arc::default(),
            idle: Mutex::new(Vec::new()),
            gate: Gate::new(climb.count()),
            came_in: AtomicU64::new(0),
            pace: Mutex::new(Clock {
                climb,
                began: now,
                epoch_began: now,
            }),
            connect_timeout: limits.connect_timeout,
            idle_timeout: limits.idle_timeout,
            head_guess: AtomicUsize::new(FIRST_HEAD_GUESS),
            recent: Recent::new(limits.first_byte_timeout),
            ledger: Arc::clone(ledger),
        })
    }

    /// Waits for the right to hold one more connection.
    pub(super) async fn admit(&self) -> Result<Pass, Failure> {
        self.gate.admit().await
    }

    /// Notes body bytes that came in. Once an epoch is over, the number of connections follows what it brought.
    pub(super) fn took(&self, len: usize) {
        self.came_in.fetch_add(len as u64, Ordering::Relaxed);
        let now = tokio::time::Instant::now();
        let mut pace = self.pace.lock();
        let span = now.duration_since(pace.epoch_began);
        if span < EPOCH {
            return;
        }
        pace.epoch_began = now;
        let epoch = Epoch {
            span,
            full: self.gate.take_full(),
            bytes: self.came_in.swap(0, Ordering::Relaxed),
        };
        let since = now.duration_since(pace.began);
        pace.climb.ended(since, epoch);
        self.allow(pace.climb.count());
    }

    /// Notes that the other side asked for less.
    pub(super) fn throttled(&self) {
        let mut pace = self.pace.lock();
        let since = pace.began.elapsed();
        pace.climb.throttled(since);
        self.allow(pace.climb.count());
    }

    fn allow(&self, connections: usize) {
        tracing::trace!(connections, "connections that there may be");
        self.gate.set_limit(connections);
        self.ledger.connections_allowed(connections);
    }

    /// The idle connection that was used last, where one is young enough and still silent.
    pub(super) fn take_idle(self: &Arc<Self>, pass: Pass) -> Result<Lease, Pass> {
        let mut idle = self.idle.lock();
        while let Some(mut last) = idle.pop() {
            if last.since.elapsed() >= self.idle_timeout {
                // Newest last: all others are older still.
                idle.clear();
                break;
            }
            if last.connection.is_quiet() {
                self.ledger.connection_reused();
                return Ok(Lease {
                    connection: last.connection,
                    placed: last.placed,
                    is_reused: true,
                    pool: Arc::clone(self),
                    pass,
                });
            }
        }
        Err(pass)
    }

    /// A new connection.
    pub(super) async fn connect(
        self: &Arc<Self>,
        pass: Pass,
        tls: Option<&TlsConnector>,
    ) -> Result<Lease, Failure> {
        let connected = connect::connect(
            self.way.endpoint(),
            self.way.proxy(),
            &self.addresses,
            tls,
            self.connect_timeout,
        )
        .await;
        let (connection, placed) = connected.map_err(|mut failure| {
            if let Some(tries) = self.tries_at_first_contact() {
                failure.most_tries = Some(tries);
            }
            failure
        })?;
        self.ledger.connection_opened(placed.ip());
        Ok(Lease {
            connection,
            is_reused: false,
            placed,
            pool: Arc::clone(self),
            pass,
        })
    }

    #[cfg(test)]
    pub(super) fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// The most tries while the endpoint has never answered: it is more likely misspelt than ill.
    pub(super) fn tries_at_first_contact(&self) -> Option<u32> {
        (!self.way.has_answered()).then_some(FIRST_CONTACT_TRIES)
    }

    /// What reads are like just now.
    pub(super) fn reading(&self) -> Pace {
        let (first_byte, rate) = self.recent.medians();
        Pace {
            connections: self.pace.lock().climb.aim(),
            first_byte,
            bytes_per_second: rate,
        }
    }

    /// What recent requests were like.
    pub(super) fn recent(&self) -> &Recent {
        &self.recent
    }

    /// Where connections lead, and by way of whom.
    pub(super) fn way(&self) -> &Arc<Way> {
        &self.way
    }

    /// How many bytes to read for a head: as long as the one before was.
    pub(super) fn head_guess(&self) -> usize {
        self.head_guess.load(Ordering::Relaxed)
    }

    /// Notes an answer, and the length of its head where the next is likely to be as long.
    pub(super) fn answered(&self, head_len: Option<usize>) {
        self.way.answered();
        if let Some(len) = head_len {
            self.head_guess.store(len, Ordering::Relaxed);
        }
    }
}

impl Lease {
    /// Notes that the connection answered after `time`.
    pub(super) fn answered(&self, time: Duration) {
        self.placed.praise();
        self.pool.ledger.answered(time);
        self.pool.recent.answered(time);
        // Epochs end here, too, where no bodies are read, as with look-ups.
        self.pool.took(0);
    }

    /// Notes that the connection broke, or brought nothing in time.
    pub(super) fn strike(&self) {
        self.placed.strike();
    }

    /// Notes that nothing at all came from the other side.
    pub(super) fn rest(&self) {
        self.placed.rest();
    }

    pub(super) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Closes the connection and keeps the right to hold one.
    pub(super) fn close(self) -> Pass {
        self.pass
    }

    /// Keeps the connection for the next request.
    pub(super) fn give_back(self) {
        let mut idle = self.pool.idle.lock();
        let timeout = self.pool.idle_timeout;
        idle.retain(|kept| kept.since.elapsed() < timeout);
        idle.push(Idle {
            connection: self.connection,
            placed: self.placed,
            since: Instant::now(),
        });
    }
}
