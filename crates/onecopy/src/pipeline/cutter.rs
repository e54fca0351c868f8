//! Slabs to the memory of ranges.

use crate::buffer::{Pool, Slab};
use crate::error::Result;
use crate::size::PAGE;

/// Cuts slabs into the memory of ranges, so that neighbouring ranges of a shard are neighbours in memory and small
/// objects share a slab.
pub(super) struct Cutter {
    pool: Pool,
    pub(super) rest: Slab,
    /// Memory taken out of the pool so far, the unused ends of slabs included.
    pub(super) leased_bytes: u64,
}

impl Cutter {
    pub(super) fn new(pool: Pool) -> Self {
        Self {
            pool,
            rest: Slab::heap(0),
            leased_bytes: 0,
        }
    }

    /// Memory of exactly `len` bytes, which is at most a slab.
    pub(super) async fn take(&mut self, len: usize) -> Result<Slab> {
        if self.rest.len() < len {
            // The old rest goes back first: holding it while waiting could starve a pool of one slab.
            self.leased_bytes += self.rest.len() as u64;
            self.rest = Slab::heap(0);
            self.rest = self.pool.lease().await?;
        }
        self.leased_bytes += len as u64;
        Ok(self.rest.split_to(len))
    }

    /// Starts the next object at a page border: O_DIRECT and DMA want that. Slabs are whole pages, so what is left of
    /// one tells where its border is.
    pub(super) fn align(&mut self) {
        let padding = self.rest.len() % PAGE;
        self.leased_bytes += padding as u64;
        drop(self.rest.split_to(padding));
    }

    /// Takes back the end of what was taken last, if it is that: an object may be shorter than its first range.
    pub(super) fn give_back(&mut self, tail: Slab) {
        let len = tail.len() as u64;
        let rest = std::mem::replace(&mut self.rest, Slab::heap(0));
        match tail.join(rest) {
            Ok(joined) => {
                self.rest = joined;
                self.leased_bytes -= len;
            }
            Err((_tail, rest)) => self.rest = rest,
        }
    }
}
