//! What follows the head.

use std::future::Future;
use std::pin::{Pin, pin};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

use super::chunked::Chunks;
use super::connection::Hops;
use super::failure::Failure;
use super::gap::Gap;
use super::head::{Framing, Head};
use super::pool::Lease;
use crate::error::ErrorKind;
use crate::ledger::OpenHop;

/// Read at once for what goes through memory of our own: chunked bodies, listings, error texts.
const SCRATCH: usize = 16 << 10;

/// A body that brings less than this in the time without which it would count as stalled is as good as stalled:
/// 1.6 KiB/s at the default of 10 s. Else one byte every few seconds would hold a slab for ever.
const LEAST_PROGRESS: usize = 16 << 10;

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
        })
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

    /// Reads until `gap` is full or the body ends, whichever comes first. What was filled before a failure stays.
    ///
    /// # Copies
    ///
    /// None in user space over plain HTTP, but for what came along with the head and for chunked bodies.
    pub(in crate::store) async fn fill(
        &mut self,
        hop: &OpenHop,
        gap: &mut Gap<'_>,
    ) -> Result<(), Failure> {
        let hops = Hops::beside(hop);
        let mut patience = Patience::new(self.stall);
        while gap.left() > 0 && !self.is_ended() {
            if self.has_rest() {
                self.lay_rest(&hops, gap)?;
                continue;
            }
            if matches!(self.framing, Left::Chunked(_)) {
                let len = patience.read(self.refill(usize::MAX)).await?;
                self.lease.pool().took(len);
                continue;
            }
            let most = self.promised();
            let read = async {
                let read = self.lease.connection.read_into(&hops, gap, most).await;
                read.map_err(Failure::connection)
            };
            let len = patience.read(read).await?;
            self.lease.pool().took(len);
            self.took(len)?;
        }
        Ok(())
    }

    /// Ends a body that should have nothing left, and keeps the connection where that holds; says whether it did.
    pub(in crate::store) async fn finish(mut self) -> Result<bool, Failure> {
        // The end of a chunked body is a line of its own, that of an unmarked one the end of the connection.
        let mut patience = Patience::new(self.stall);
        while !self.is_ended() {
            if !self.has_rest() {
                if matches!(self.framing, Left::Length(_)) {
                    return Ok(false);
                }
                let len = patience.read(self.refill(usize::MAX)).await?;
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
    #[expect(
        clippy::disallowed_methods,
        reason = "listings and error texts, not payload"
    )]
    pub(in crate::store) async fn collect(mut self, limit: usize) -> Result<Vec<u8>, Failure> {
        let mut whole = Vec::new();
        let mut patience = Patience::new(self.stall);
        while !self.is_ended() {
            if !self.has_rest() {
                let most = self.promised();
                let len = patience.read(self.refill(most)).await?;
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
            hops.came_in(
                self.lease.connection.is_tls(),
                payload.len(),
                Duration::ZERO,
            );
            gap.lay(
                &hops.head_rest,
                &self.rest[at + payload.start..at + payload.end],
            );
        }
        Ok(())
    }
}

/// How long we wait for a body that does not come. Only time spent reading counts, because it is made when reading
/// begins; the timer is armed at the first read that has to wait, and moved on rather than made anew.
#[derive(Debug)]
struct Patience {
    sleep: Pin<Box<Sleep>>,
    stall: Duration,
    /// Bytes since the timer was set.
    progress: usize,
}

impl Patience {
    fn new(stall: Duration) -> Self {
        Self {
            sleep: Box::pin(sleep(stall)),
            stall,
            progress: 0,
        }
    }

    async fn read(
        &mut self,
        read: impl Future<Output = Result<usize, Failure>>,
    ) -> Result<usize, Failure> {
        let mut read = pin!(read);
        loop {
            tokio::select! {
                biased;
                result = &mut read => {
                    self.progress += result.as_ref().copied().unwrap_or_default();
                    return result;
                }
                () = &mut self.sleep => {
                    if self.progress < LEAST_PROGRESS {
                        return Err(self.stalled());
                    }
                    self.progress = 0;
                    self.sleep.as_mut().reset(Instant::now() + self.stall);
                }
            }
        }
    }

    fn stalled(&self) -> Failure {
        let why = format!(
            "the body stalled: {} bytes in {} ms",
            self.progress,
            self.stall.as_millis()
        );
        Failure::new(ErrorKind::Unreachable, "stalled", why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn drip(bytes: usize) -> Result<usize, Failure> {
        sleep(Duration::from_secs(3)).await;
        Ok(bytes)
    }

    #[tokio::test(start_paused = true)]
    async fn a_drip_is_a_stall_and_a_slow_stream_is_none() {
        let mut patience = Patience::new(Duration::from_secs(10));
        for _ in 0..100 {
            patience.read(drip(LEAST_PROGRESS / 2)).await.unwrap();
        }
        let mut patience = Patience::new(Duration::from_secs(10));
        let mut reads = 0;
        let failure = loop {
            match patience.read(drip(1)).await {
                Ok(_) => reads += 1,
                Err(failure) => break failure,
            }
        };
        assert_eq!((reads, failure.cause), (3, "stalled"));
        assert!(
            failure.why.contains("3 bytes in 10000 ms"),
            "{}",
            failure.why
        );
    }

    #[tokio::test(start_paused = true)]
    async fn time_in_which_nobody_reads_is_no_stall() {
        for _ in 0..3 {
            let mut patience = Patience::new(Duration::from_secs(10));
            patience.read(drip(1)).await.unwrap();
            sleep(Duration::from_secs(60)).await;
        }
    }
}
