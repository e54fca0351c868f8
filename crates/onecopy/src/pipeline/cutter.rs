//! Slabs to the memory of ranges.

use super::run_len::FIRST_BYTES;
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
    /// How much of it was there when [`Cutter::may_wait`] last said yes.
    waited_at: Option<u64>,
}

impl Cutter {
    pub(super) fn new(pool: Pool) -> Self {
        Self {
            pool,
            rest: Slab::heap(0),
            leased_bytes: 0,
            waited_at: None,
        }
    }

    /// Whether memory for the next `len` bytes is to be waited for until it is wanted: where a slab is needed, and with the last one
    /// there is memory for a first run. Else many lanes of small slabs would begin with requests for one slab each.
    pub(super) fn may_wait(&mut self, len: usize) -> bool {
        let is_enough = |at| self.leased_bytes - at >= FIRST_BYTES;
        let may_wait = self.rest.len() < len && self.waited_at.is_none_or(is_enough);
        if may_wait {
            self.waited_at = Some(self.leased_bytes);
        }
        may_wait
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
                self.waited_at = self.waited_at.map(|at| at.min(self.leased_bytes));
            }
            Err((_tail, rest)) => self.rest = rest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::NoLock;
    use crate::sync::Arc;

    #[tokio::test]
    async fn memory_for_a_first_run_is_taken_in_one_go() {
        let ledger = crate::ledger::Ledger::unread();
        let waits = async |slab_bytes: usize| {
            let pool = Pool::new(8 * slab_bytes, slab_bytes, Arc::new(NoLock), &ledger).unwrap();
            let mut cutter = Cutter::new(pool);
            let mut waits = Vec::new();
            let mut taken = Vec::new();
            for _ in 0..6 {
                waits.push(cutter.may_wait(slab_bytes));
                taken.push(cutter.take(slab_bytes).await.unwrap());
            }
            waits
        };
        let each = [true; 6];
        assert_eq!(
            waits(1 << 20).await,
            [true, false, false, true, false, false]
        );
        assert_eq!(
            waits(2 << 20).await,
            [true, false, true, false, true, false]
        );
        assert_eq!(waits(4 << 20).await, each);
    }
}
