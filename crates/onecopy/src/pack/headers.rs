//! The bytes of a shard, but for what nobody looks at.

use tokio::runtime::Handle;

use super::run::Halt;
use crate::buffer::{Recycler, Slab, Slice};
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::OpenHop;
use crate::sample::Pieces;
use crate::size::{MIB, to_usize};
use crate::store::{Object, Source};
use crate::sync::{Arc, AtomicU64, Ordering};

/// What is read where a header lies behind a gap: the header, extended headers before it, and with them the small members
/// (labels, captions) that stand beside a large one. 0.8 % of a member of 1 MB.
const HEADER_BYTES: usize = 8 << 10;

/// Where at least so much would be read for nothing, another request is made in its place. A smaller gap costs less to
/// read than the wait for the first byte of an answer, many times over.
const GAP_BYTES: u64 = 128 << 10;

/// The longest read. At the rate of an S3 connection (50 MB/s) three times as long as the wait for its first byte.
pub(super) const MOST_BYTES: usize = 4 * MIB;

/// What all shards of an index share.
#[derive(Debug, Clone)]
pub(super) struct Reading {
    pub(super) runtime: Handle,
    pub(super) hop: OpenHop,
    pub(super) memory: Recycler,
    pub(super) most_bytes: usize,
    pub(super) halt: Arc<Halt>,
    pub(super) counts: Arc<Counts>,
}

/// What reading came to.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) bytes: AtomicU64,
    pub(super) requests: AtomicU64,
}

/// A shard that is read on a thread that may wait. Members that are passed over are not read, where they are long.
#[derive(Debug)]
pub(super) struct HeaderBytes {
    reading: Reading,
    source: Source,
    /// Where the next byte lies.
    at: u64,
    /// How long the last read was.
    window: usize,
    /// Bytes that were passed over since.
    gap: u64,
    is_over: bool,
    /// Why the store did not give the bytes: an error that no policy on damaged shards passes over.
    failed: Option<Error>,
}

impl HeaderBytes {
    pub(super) fn new(reading: Reading, source: Source) -> Self {
        Self {
            reading,
            source,
            at: 0,
            window: 0,
            gap: 0,
            is_over: false,
            failed: None,
        }
    }

    /// The object, with what its answers told.
    pub(super) fn object(&self) -> &Object {
        &self.source.object
    }

    /// Why the bytes did not come, where they did not.
    pub(super) fn take_failed(&mut self) -> Option<Error> {
        self.failed.take()
    }

    /// Reads from where we are on; none at the end.
    fn read(&mut self) -> Result<Option<Slice>> {
        self.reading.halt.check()?;
        let left = self
            .source
            .object
            .len_bytes
            .map(|len| len.saturating_sub(self.at));
        if left == Some(0) {
            return Ok(None);
        }
        let most = self.reading.most_bytes;
        self.window = if self.window == 0 || self.gap >= GAP_BYTES {
            HEADER_BYTES.min(most)
        } else {
            (self.window * 2).min(most)
        };
        self.gap = 0;
        let want = left.map_or(self.window, |left| self.window.min(to_usize(left)));
        let target = vec![self.reading.memory.lease(want)?];
        let Source { store, object } = &self.source;
        let read = store.read_into(&self.reading.hop, object, self.at, target);
        let read = self.reading.halt.until_halted(read);
        self.reading.counts.requests.fetch_add(1, Ordering::Relaxed);
        let filled = self.reading.runtime.block_on(read)?;
        let url = Arc::clone(&self.source.object.url);
        self.source.object = Object {
            url,
            ..filled.object
        };
        self.at += filled.len_bytes;
        self.reading
            .counts
            .bytes
            .fetch_add(filled.len_bytes, Ordering::Relaxed);
        self.reading.hop.ledger().delivered_bytes(filled.len_bytes);
        let slab: Option<Slab> = filled.target.into_iter().next();
        Ok(slab.filter(|_| filled.len_bytes > 0).map(|mut slab| {
            slab.truncate(to_usize(filled.len_bytes));
            slab.freeze()
        }))
    }
}

impl Pieces for &mut HeaderBytes {
    const HAS_CONTENT: bool = false;

    fn next_piece(&mut self) -> Option<Result<Slice>> {
        if self.is_over {
            return None;
        }
        let read = self.read().transpose();
        self.is_over = !matches!(read, Some(Ok(_)));
        if let Some(Err(error)) = &read {
            self.failed = Some(again(error));
        }
        read
    }

    fn pass_over(&mut self, len_bytes: u64) -> u64 {
        let left = self
            .source
            .object
            .len_bytes
            .map_or(0, |len| len.saturating_sub(self.at));
        let passed = len_bytes.min(left);
        self.at += passed;
        self.gap += passed;
        passed
    }
}

/// The same error once more.
fn again(error: &Error) -> Error {
    let same = Error::new(error.kind(), error.doing(), error.target(), error.why());
    match error.help() {
        Some(help) => same.with_help(help),
        None => same,
    }
}

/// The error of what was stopped.
pub(super) fn cancelled() -> Error {
    Error::new(ErrorKind::Cancelled, "finish", "", "interrupted")
}
