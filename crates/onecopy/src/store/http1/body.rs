//! What follows the head.

use std::time::{Duration, Instant};

use super::chunked::Chunks;
use super::connection::Hops;
use super::failure::Failure;
use super::gap::Gap;
use super::head::{Framing, Head};
use super::patience::{LEAST_PROGRESS, Patience};
use super::pool::Lease;
use super::way::Way;
use crate::error::ErrorKind;
use crate::ledger::OpenHop;
use crate::sync::Arc;

/// Read at once for what goes through memory of our own: chunked bodies, listings, error texts.
const SCRATCH: usize = 16 << 10;

/// A body that is being read.
#[derive(Debug)]
pub(in crate::store) struct Body {
    lease: Lease,
    framing: Left,
    /// Bytes that came in through memory of our own, `[rest_at, ..)` still to be used.
    rest: Vec<u8>,
    rest_at: usize,
    is_keeping_alive: bool,
    stall: Duration,
    /// Whether it answers a request that changes something.
    is_of_a_change: bool,
    /// When it was asked for.
    sent: Instant,
}

/// What is left of the body.
#[derive(Debug)]
enum Left {
    Length(u64),
    Chunked(Chunks),
    UntilClose { is_closed: bool },
}

impl Body {
    pub(super) fn new(
        lease: Lease,
        head: &Head,
        is_answer_to_head: bool,
        rest: Vec<u8>,
        stall: Duration,
    ) -> Result<Self, Failure> {
        let framing = match head.framing(is_answer_to_head)? {
            Framing::Length(len) => Left::Length(len),
            Framing::Chunked => Left::Chunked(Chunks::new()),
            Framing::UntilClose => Left::UntilClose { is_closed: false },
        };
        let is_keeping_alive = head.is_keeping_alive();
        Ok(Self {
            lease,
            framing,
            rest,
            rest_at: 0,
            is_keeping_alive,
            stall,
            is_of_a_change: false,
            sent: Instant::now(),
        })
    }

    /// Notes whether it answers a request that changes something.
    pub(super) fn of_a_change(mut self, is_of_a_change: bool) -> Self {
        self.is_of_a_change = is_of_a_change;
        self
    }

    /// The patience with what no range is read from.
    fn patience(&self) -> Patience<'static> {
        if self.is_of_a_change {
            Patience::with_a_change(self.stall)
        } else {
            Patience::new(self.stall, None)
        }
    }

    /// Notes when it was asked for.
    pub(super) fn sent_at(mut self, sent: Instant) -> Self {
        self.sent = sent;
        self
    }

    /// Whom it comes from.
    pub(in crate::store) fn way(&self) -> Arc<Way> {
        Arc::clone(self.lease.pool().way())
    }

    /// The length, where it was promised.
    pub(in crate::store) fn len_bytes(&self) -> Option<u64> {
        match self.framing {
            Left::Length(len) => Some(len),
            _ => None,
        }
    }

    /// Whether only the end of the connection tells the end of the body: a cut would look the same.
    pub(in crate::store) fn is_unproven(&self) -> bool {
        matches!(self.framing, Left::UntilClose { .. })
    }

    /// Reads until `gap` is full or the body ends, whichever comes first. What was filled before a failure stays. A body
    /// that is slow among its like is a failure, too, where another connection would bring the rest sooner.
    ///
    /// # Copies
    ///
    /// None in user space over plain HTTP, but for what came along with the head and for chunked bodies.
    pub(in crate::store) async fn fill(
        &mut self,
        hop: &OpenHop,
        gap: &mut Gap<'_>,
    ) -> Result<(), Failure> {
        let (began, filled) = (Instant::now(), gap.filled());
        let pool = Arc::clone(self.lease.pool());
        let mut patience = Patience::new(self.stall, Some(pool.recent()));
        let result = self.pour(hop, gap, &mut patience).await;
        let (bytes, time) = ((gap.filled() - filled) as u64, began.elapsed());
        match &result {
            Ok(()) => {
                pool.recent().read(bytes, time);
                hop.ledger().range_read(bytes, self.sent.elapsed(), time);
            }
            Err(_) => self.lease.strike(),
        }
        result.map_err(|failure| failure.on(pool.way()))
    }

    async fn pour(
        &mut self,
        hop: &OpenHop,
        gap: &mut Gap<'_>,
        patience: &mut Patience<'_>,
    ) -> Result<(), Failure> {
        let hops = Hops::beside(hop);
        let mut is_late = false;
        while gap.left() > 0 && !self.is_ended() {
            if self.has_rest() {
                self.lay_rest(&hops, gap)?;
                continue;
            }
            if matches!(self.framing, Left::Chunked(_)) {
                let left = gap.left() as u64;
                let len = patience.read(left, self.refill(usize::MAX)).await?;
                self.lease.pool().took(len);
                continue;
            }
            let most = self.promised();
            let left = most.min(gap.left()) as u64;
            let read = async {
                let connection = &mut self.lease.connection;
                let read = connection.read_into(&hops, gap, most, is_late).await;
                read.map_err(Failure::connection)
            };
            let Some(len) = patience.read_for_a_beat(left, read).await? else {
                is_late = true;
                continue;
            };
            // Until enough came to be no stall: the beat that finds one must have seen every byte.
            is_late &= len < LEAST_PROGRESS;
            self.lease.pool().took(len);
            self.took(len)?;
        }
        Ok(())
    }

    /// Ends a body that should have nothing left, and keeps the connection where that holds; says whether it did.
    pub(in crate::store) async fn finish(self) -> Result<bool, Failure> {
        let way = self.way();
        self.end().await.map_err(|failure| failure.on(&way))
    }

    async fn end(mut self) -> Result<bool, Failure> {
        // The end of a chunked body is a line of its own, that of an unmarked one the end of the connection.
        let mut patience = self.patience();
        while !self.is_ended() {
            if !self.has_rest() {
                if matches!(self.framing, Left::Length(_)) {
                    return Ok(false);
                }
                let len = patience.read(0, self.refill(usize::MAX)).await?;
                if len == 0 {
                    self.took(0)?;
                    continue;
                }
            }
            if self.payload()?.is_some() {
                return Ok(false);
            }
        }
        if self.is_keeping_alive && !self.has_rest() {
            self.lease.give_back();
        }
        Ok(true)
    }

    /// The whole body in memory: for listings and error texts.
    ///
    /// A body longer than `limit` is `LimitReached`.
    pub(in crate::store) async fn collect(self, limit: usize) -> Result<Vec<u8>, Failure> {
        let way = self.way();
        let whole = self.gather(limit).await;
        whole.map_err(|failure| failure.on(&way))
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "listings and error texts, not payload"
    )]
    async fn gather(mut self, limit: usize) -> Result<Vec<u8>, Failure> {
        let mut whole = Vec::new();
        let mut patience = self.patience();
        while !self.is_ended() {
            if !self.has_rest() {
                let most = self.promised();
                let len = patience.read(0, self.refill(most)).await?;
                if len == 0 {
                    self.took(0)?;
                    continue;
                }
            }
            if let Some(piece) = self.payload()? {
                whole.extend_from_slice(&self.rest[piece]);
            }
            if whole.len() > limit {
                let why = format!("the answer is longer than {limit} bytes");
                return Err(Failure::new(ErrorKind::LimitReached, "too_long", why));
            }
        }
        if self.is_keeping_alive && !self.has_rest() {
            self.lease.give_back();
        }
        Ok(whole)
    }

    fn has_rest(&self) -> bool {
        self.rest_at < self.rest.len()
    }

    fn is_ended(&self) -> bool {
        match &self.framing {
            Left::Length(left) => *left == 0,
            Left::Chunked(chunks) => chunks.is_ended(),
            Left::UntilClose { is_closed } => *is_closed,
        }
    }

    /// How much more may be read without taking what is not this body's.
    fn promised(&self) -> usize {
        match self.framing {
            Left::Length(left) => usize::try_from(left).unwrap_or(usize::MAX),
            _ => usize::MAX,
        }
    }

    /// Notes that `len` body bytes were read from the connection; 0 is its end.
    fn took(&mut self, len: usize) -> Result<(), Failure> {
        match &mut self.framing {
            Left::UntilClose { is_closed } if len == 0 => *is_closed = true,
            Left::Length(left) if len > 0 => *left = left.saturating_sub(len as u64),
            Left::UntilClose { .. } => {}
            _ => {
                let why = "the body ended before its promised length";
                return Err(Failure::new(ErrorKind::Truncated, "short_body", why));
            }
        }
        Ok(())
    }

    /// One read into memory of our own, where all before is used up.
    async fn refill(&mut self, most: usize) -> Result<usize, Failure> {
        self.rest.resize(SCRATCH.min(most), 0);
        self.rest_at = self.rest.len();
        let read = self.lease.connection.read(&mut self.rest).await;
        let len = read.map_err(Failure::connection)?;
        self.rest.truncate(len);
        self.rest_at = 0;
        if len == 0 && matches!(self.framing, Left::Chunked(_)) {
            self.took(0)?;
        }
        Ok(len)
    }

    /// The next body bytes among those that came in: their place in `rest`. None where there were none among them.
    fn payload(&mut self) -> Result<Option<std::ops::Range<usize>>, Failure> {
        let at = self.rest_at;
        let (used, payload) = self.unframe(usize::MAX)?;
        self.rest_at += used;
        Ok((!payload.is_empty()).then_some(at + payload.start..at + payload.end))
    }

    fn unframe(&mut self, most: usize) -> Result<(usize, std::ops::Range<usize>), Failure> {
        let input = &self.rest[self.rest_at..];
        if let Left::Chunked(chunks) = &mut self.framing {
            return chunks.step(input, most);
        }
        let len = input.len().min(most).min(self.promised());
        self.took(len)?;
        Ok((len, 0..len))
    }

    /// Lays what came in through memory of our own into the gap.
    fn lay_rest(&mut self, hops: &Hops, gap: &mut Gap<'_>) -> Result<(), Failure> {
        let at = self.rest_at;
        let (used, payload) = self.unframe(gap.left())?;
        self.rest_at += used;
        if !payload.is_empty() {
            // These bytes made the same way into this process as all others, and one more within it.
            hops.came_with_a_head(self.lease.connection.is_tls(), payload.len());
            gap.lay(
                &hops.head_rest,
                &self.rest[at + payload.start..at + payload.end],
            );
        }
        Ok(())
    }
}
