//! The memory that transfers pass through: page-aligned, locked, reused, and no more than was allowed.

use std::io;
use std::ptr::NonNull;
use std::time::Instant;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::buffer::{Mlock, NoLock, PageLock, Recycler, Slab};
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::{Ledger, Wait};
use crate::size::{MIB, whole_pages};
use crate::sync::{Arc, AtomicU64, Ordering};

/// What the budget is counted in: the smallest piece that is worth keeping for the next object.
const UNIT: usize = 64 << 10;

/// The share of the memory that is in use at a time. The rest is kept for reuse while nobody uses it: pieces of other
/// sizes than the ones that are asked for now.
const IN_USE: (usize, usize) = (2, 3);

/// Slabs of any length, bounded in sum.
#[derive(Debug)]
pub(super) struct Memory {
    recycler: Recycler,
    budget: Arc<Semaphore>,
    units: usize,
    ledger: Arc<Ledger>,
}

/// A slab, and its share of the budget. Both go back when it is dropped.
#[derive(Debug)]
pub(super) struct Leased {
    pub(super) slab: Slab,
    pub(super) permit: OwnedSemaphorePermit,
}

impl Memory {
    pub(super) fn new(memory_bytes: usize, is_locking: bool, ledger: &Arc<Ledger>) -> Self {
        let in_use = memory_bytes / IN_USE.1 * IN_USE.0;
        let units = (in_use / UNIT).clamp(1, Semaphore::MAX_PERMITS);
        let lock: Arc<dyn PageLock> = if is_locking {
            Arc::new(Told {
                lock: Mlock,
                ledger: Arc::clone(ledger),
                pool_bytes: memory_bytes as u64,
                locked_bytes: AtomicU64::new(0),
            })
        } else {
            Arc::new(NoLock)
        };
        ledger.pool(memory_bytes as u64, 0);
        Self {
            recycler: Recycler::new(memory_bytes - in_use, lock, ledger),
            budget: Arc::new(Semaphore::new(units)),
            units,
            ledger: Arc::clone(ledger),
        }
    }

    /// Waits for memory for `len` bytes, in the order of asking; the slab is `len` rounded up to whole pages.
    ///
    /// Whoever holds one must not wait for another.
    pub(super) async fn lease(&self, len: usize) -> Result<Leased> {
        let class = class(len);
        let units = class / UNIT;
        if units > self.units {
            let (need, have) = (class / MIB, self.units * UNIT / MIB);
            let why =
                format!("{need} MiB in one piece are more than the {have} MiB in use at a time");
            return Err(Error::new(ErrorKind::LimitReached, "lease", "memory", why)
                .with_help("give `memory` at least twice as much"));
        }
        let permits = u32::try_from(units).unwrap_or(u32::MAX);
        let budget = Arc::clone(&self.budget);
        let permit = match Arc::clone(&budget).try_acquire_many_owned(permits) {
            Ok(permit) => permit,
            Err(_none_now) => {
                let start = Instant::now();
                let permit = budget.acquire_many_owned(permits).await;
                self.ledger.waited(Wait::Pool, start.elapsed());
                permit.map_err(|closed| Error::bug("lease memory", closed.to_string()))?
            }
        };
        let mut slab = self.recycler.lease(class)?;
        slab.truncate(whole_pages(len));
        Ok(Leased { slab, permit })
    }
}

/// Lengths that are kept apart: few, so that what is given back fits what is asked for next.
fn class(len: usize) -> usize {
    if len <= MIB {
        len.next_power_of_two().max(UNIT)
    } else {
        len.div_ceil(MIB) * MIB
    }
}

/// Locks, and tells the ledger how much.
#[derive(Debug)]
struct Told {
    lock: Mlock,
    ledger: Arc<Ledger>,
    pool_bytes: u64,
    locked_bytes: AtomicU64,
}

impl PageLock for Told {
    fn lock(&self, start: NonNull<u8>, len: usize) -> io::Result<()> {
        self.lock.lock(start, len)?;
        let len = len as u64;
        let locked = self.locked_bytes.fetch_add(len, Ordering::Relaxed) + len;
        self.ledger.pool(self.pool_bytes, locked);
        Ok(())
    }

    fn unlock(&self, start: NonNull<u8>, len: usize) {
        self.lock.unlock(start, len);
        self.locked_bytes.fetch_sub(len as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn gives_whole_pages_and_never_more_than_allowed() {
        let memory = Memory::new(3 * MIB, false, &Ledger::unread());
        let first = memory.lease(100_000).await.unwrap();
        assert_eq!(first.slab.len(), 25 * 4096);
        let second = memory.lease(MIB).await.unwrap();
        let waiting = memory.lease(MIB);
        let blocked = tokio::time::timeout(std::time::Duration::from_millis(5), waiting).await;
        assert!(blocked.is_err(), "2 MiB are in use at a time");
        drop((first, second));
        assert!(memory.lease(2 * MIB).await.is_ok());
        let error = memory.lease(2 * MIB + 1).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LimitReached);
    }
}
