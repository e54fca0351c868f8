//! The connections of one endpoint.

use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsConnector;

use super::connect::{self, Addresses};
use super::connection::Connection;
use super::endpoint::Endpoint;
use super::failure::Failure;
use crate::config::Limits;
use crate::error::ErrorKind;
use crate::sync::{Arc, AtomicBool, AtomicUsize, Mutex, Ordering};

/// The first guess at the length of a head: S3's are somewhat longer, so no body byte comes along.
const FIRST_HEAD_GUESS: usize = 512;

/// Tries for an endpoint that never answered: it is more likely misspelt than ill.
const FIRST_CONTACT_TRIES: u32 = 3;

/// Connections to one endpoint: the idle ones, and a limit for all.
#[derive(Debug)]
pub(super) struct Pool {
    endpoint: Endpoint,
    addresses: Addresses,
    /// Guards the idle connections, newest last; never held over an await.
    idle: Mutex<Vec<Idle>>,
    /// One permit per connection in use; waiters are served in the order they came.
    permits: Arc<Semaphore>,
    connect_timeout: Duration,
    idle_timeout: Duration,
    head_guess: AtomicUsize,
    has_answered: AtomicBool,
}

#[derive(Debug)]
struct Idle {
    connection: Connection,
    since: Instant,
}

/// A connection in use. Dropping it closes it; [`Lease::give_back`] keeps it for the next request.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) connection: Connection,
    pub(super) is_reused: bool,
    pool: Arc<Pool>,
    permit: OwnedSemaphorePermit,
}

impl Pool {
    pub(super) fn new(endpoint: Endpoint, limits: &Limits) -> Arc<Self> {
        Arc::new(Self {
            endpoint,
            addresses: Addresses::default(),
            idle: Mutex::new(Vec::new()),
            permits: Arc::new(Semaphore::new(
                limits.connections.clamp(1, Semaphore::MAX_PERMITS),
            )),
            connect_timeout: limits.connect_timeout,
            idle_timeout: limits.idle_timeout,
            head_guess: AtomicUsize::new(FIRST_HEAD_GUESS),
            has_answered: AtomicBool::new(false),
        })
    }

    /// Waits for the right to hold one more connection.
    pub(super) async fn admit(&self) -> Result<OwnedSemaphorePermit, Failure> {
        Arc::clone(&self.permits)
            .acquire_owned()
            .await
            .map_err(|error| Failure::new(ErrorKind::Bug, "pool", error.to_string()))
    }

    /// The idle connection that was used last, where one is young enough and still silent.
    pub(super) fn take_idle(
        self: &Arc<Self>,
        permit: OwnedSemaphorePermit,
    ) -> Result<Lease, OwnedSemaphorePermit> {
        let mut idle = self.idle.lock();
        while let Some(last) = idle.pop() {
            if last.since.elapsed() >= self.idle_timeout {
                // Newest last: all others are older still.
                idle.clear();
                break;
            }
            if last.connection.is_quiet() {
                return Ok(Lease {
                    connection: last.connection,
                    is_reused: true,
                    pool: Arc::clone(self),
                    permit,
                });
            }
        }
        Err(permit)
    }

    /// A new connection.
    pub(super) async fn connect(
        self: &Arc<Self>,
        permit: OwnedSemaphorePermit,
        tls: Option<&TlsConnector>,
    ) -> Result<Lease, Failure> {
        let connected =
            connect::connect(&self.endpoint, &self.addresses, tls, self.connect_timeout).await;
        let connection = connected.map_err(|mut failure| {
            if !self.has_answered.load(Ordering::Relaxed) {
                failure.most_tries = Some(FIRST_CONTACT_TRIES);
            }
            failure
        })?;
        Ok(Lease {
            connection,
            is_reused: false,
            pool: Arc::clone(self),
            permit,
        })
    }

    /// How many bytes to read for a head: as long as the one before was.
    pub(super) fn head_guess(&self) -> usize {
        self.head_guess.load(Ordering::Relaxed)
    }

    /// Notes an answer, and the length of its head where the next is likely to be as long.
    pub(super) fn answered(&self, head_len: Option<usize>) {
        self.has_answered.store(true, Ordering::Relaxed);
        if let Some(len) = head_len {
            self.head_guess.store(len, Ordering::Relaxed);
        }
    }
}

impl Lease {
    pub(super) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Closes the connection and keeps the right to hold one.
    pub(super) fn close(self) -> OwnedSemaphorePermit {
        self.permit
    }

    /// Keeps the connection for the next request.
    pub(super) fn give_back(self) {
        let mut idle = self.pool.idle.lock();
        let timeout = self.pool.idle_timeout;
        idle.retain(|kept| kept.since.elapsed() < timeout);
        idle.push(Idle {
            connection: self.connection,
            since: Instant::now(),
        });
    }
}
