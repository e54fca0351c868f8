//! The bounded pool: a fixed number of slabs, mapped once, touched and locked on first use, then reused for ever.

use std::fmt;
use std::time::Instant;

use tokio::sync::Semaphore;

use super::lock::PageLock;
use super::region::Region;
use super::run::{Home, Run};
use super::slab::Slab;
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::{Await, Ledger, Wait};
use crate::size::{MIB, whole_pages};
use crate::sync::{Arc, AtomicU64, Mutex, Ordering, Threads};

/// A pool of slabs. Clones are handles on the same pool.
///
/// Leases are granted in the order in which they were asked for. Whoever leases in the order in which the bytes will be
/// consumed can therefore never starve: the memory that the next byte needs was granted before any later byte's. Where
/// bytes are consumed in several such orders at once, each has a share of the pool of its own.
#[derive(Clone)]
pub struct Pool {
    slots: Arc<Slots>,
    /// Which share of the slots this handle leases from.
    share: usize,
    ledger: Arc<Ledger>,
    /// Where slabs are locked and touched for the first time: 32 MiB take 10 to 20 ms, in which the network goes on.
    maker: Threads,
}

/// The state shared by the pool and the runs that are out.
pub(super) struct Slots {
    region: Region,
    slab_len: usize,
    count: usize,
    /// Slots of a share; the first ones are those of the first share.
    of_share: usize,
    /// For each share one permit per free slot; fair, so that leases are granted in order.
    free: Vec<Semaphore>,
    lock: Arc<dyn PageLock>,
    locked_bytes: AtomicU64,
    /// Guards the list of free slots and which were made ready; held for a push or a pop.
    state: Mutex<State>,
}

struct State {
    /// For each share its free slots, most recently used last: it is still in the CPU's cache and its pages are touched.
    free: Vec<Vec<usize>>,
    is_ready: Vec<bool>,
    is_locked: Vec<bool>,
}

impl Pool {
    /// A pool of `pool_bytes`, cut into slabs of `slab_bytes` (rounded up to whole pages). At least one slab.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for a size of zero; `LimitReached` where the kernel refuses the mapping.
    pub fn new(
        pool_bytes: usize,
        slab_bytes: usize,
        lock: Arc<dyn PageLock>,
        ledger: &Arc<Ledger>,
    ) -> Result<Self> {
        let mut shares = Self::shared(pool_bytes, slab_bytes, 1, lock, ledger)?;
        shares
            .pop()
            .ok_or_else(|| Error::bug("make a pool", "it has no share"))
    }

    /// A pool of `pool_bytes`, cut into slabs as by [`Pool::new`], in `shares` shares of equal size, each of at least one slab.
    ///
    /// # Errors
    ///
    /// As [`Pool::new`].
    pub fn shared(
        pool_bytes: usize,
        slab_bytes: usize,
        shares: usize,
        lock: Arc<dyn PageLock>,
        ledger: &Arc<Ledger>,
    ) -> Result<Vec<Self>> {
        if slab_bytes == 0 || pool_bytes == 0 || shares == 0 {
            return Err(
                Error::new(ErrorKind::InvalidInput, "make a pool", "", "its size is 0")
                    .with_help("give it 16MiB at least: `memory=16MiB`"),
            );
        }
        let slab_len = whole_pages(slab_bytes);
        let of_share = (pool_bytes / shares / slab_len).max(1);
        let count = of_share * shares;
        let region = Region::map(count * slab_len)?;
        ledger.pool((count * slab_len) as u64, 0);
        let slots = Slots {
            region,
            slab_len,
            count,
            of_share,
            free: (0..shares).map(|_| Semaphore::new(of_share)).collect(),
            lock,
            locked_bytes: AtomicU64::new(0),
            state: Mutex::new(State {
                free: (0..shares)
                    .map(|share| (share * of_share..(share + 1) * of_share).rev().collect())
                    .collect(),
                is_ready: vec![false; count],
                is_locked: vec![false; count],
            }),
        };
        let slots = Arc::new(slots);
        let maker = Threads::new("memory", 1);
        let share = |share| Self {
            slots: Arc::clone(&slots),
            share,
            ledger: Arc::clone(ledger),
            maker: maker.clone(),
        };
        Ok((0..shares).map(share).collect())
    }

    fn free(&self) -> &Semaphore {
        &self.slots.free[self.share]
    }

    /// Waits for a free slab; its whole length is the caller's.
    ///
    /// # Errors
    ///
    /// Never in practice: the pool is never closed while a handle on it exists.
    pub async fn lease(&self) -> Result<Slab> {
        let permit = if let Ok(permit) = self.free().try_acquire() {
            permit
        } else {
            let start = Instant::now();
            let _memory = self.ledger.awaits(Await::Memory, "memory of the pool");
            let permit = self.free().acquire().await;
            self.ledger.waited(Wait::Pool, start.elapsed());
            permit.map_err(|closed| Error::bug("lease a slab", closed.to_string()))?
        };
        permit.forget();
        let (index, is_ready) = self.pop();
        if is_ready {
            return Ok(self.slab(index));
        }
        let pool = self.clone();
        // Where the caller is gone before it is ready, the slab that nobody hears of goes back.
        let made = self.maker.run(move || {
            pool.make_ready(index);
            pool.slab(index)
        });
        match made.await {
            Err(error) if error.kind() == ErrorKind::LimitReached => {
                // A machine that has no thread to spare waits here instead.
                self.make_ready(index);
                Ok(self.slab(index))
            }
            made => made,
        }
    }

    /// A free slab, if there is one now.
    #[cfg(test)]
    fn try_lease(&self) -> Option<Slab> {
        self.free().try_acquire().ok()?.forget();
        let (index, is_ready) = self.pop();
        if !is_ready {
            self.make_ready(index);
        }
        Some(self.slab(index))
    }

    /// Takes a slot that a permit was given for, and says whether it was used before.
    fn pop(&self) -> (usize, bool) {
        let mut state = self.slots.state.lock();
        let index = state.free[self.share]
            .pop()
            .expect("a permit stands for a free slot");
        (index, std::mem::replace(&mut state.is_ready[index], true))
    }

    /// The slab of a slot that was taken.
    fn slab(&self, index: usize) -> Slab {
        let slots = &self.slots;
        let start = slots.start_of(index);
        let run = Run::new(
            start,
            slots.slab_len,
            Home::Pool {
                slots: Arc::clone(slots),
                index,
            },
        );
        Slab::whole(run)
    }

    /// Locks a slot on its first use, so that start-up pays for what is used and not for the whole pool.
    fn make_ready(&self, index: usize) {
        let slots = &self.slots;
        match slots.lock.lock(slots.start_of(index), slots.slab_len) {
            Ok(()) => {
                slots.state.lock().is_locked[index] = true;
                let len = slots.slab_len as u64;
                let locked = slots.locked_bytes.fetch_add(len, Ordering::Relaxed) + len;
                self.ledger.pool(self.len_bytes() as u64, locked);
            }
            Err(error) => self.ledger.note(format!(
                "memory is not page-locked ({error}): raise the limit (ulimit -l) to {} KiB",
                self.len_bytes() / 1024
            )),
        }
    }

    /// The size of one slab.
    #[must_use]
    pub fn slab_bytes(&self) -> usize {
        self.slots.slab_len
    }

    /// How many slabs of the share are free now.
    #[must_use]
    pub fn free_slabs(&self) -> usize {
        self.free().available_permits()
    }

    /// The size of the pool.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.slots.count * self.slots.slab_len
    }
}

impl Slots {
    fn start_of(&self, index: usize) -> std::ptr::NonNull<u8> {
        self.region.offset(index * self.slab_len)
    }

    pub(super) fn put_back(&self, index: usize) {
        let share = index / self.of_share;
        self.state.lock().free[share].push(index);
        self.free[share].add_permits(1);
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        let locked = std::mem::take(&mut self.state.get_mut().is_locked);
        for (index, is_locked) in locked.into_iter().enumerate() {
            if is_locked {
                self.lock.unlock(self.start_of(index), self.slab_len);
            }
        }
    }
}

impl fmt::Debug for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slots({} x {} MiB)", self.count, self.slab_len / MIB)
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pool({:?}, {} free)", self.slots, self.free_slabs())
    }
}

#[cfg(test)]
mod tests {
    use super::super::lock::NoLock;
    use super::*;

    fn pool(slabs: usize) -> Pool {
        Pool::new(slabs * 8192, 8192, Arc::new(NoLock), &Ledger::unread()).unwrap()
    }

    #[test]
    fn gives_page_aligned_zeroed_slabs_and_no_more_than_it_has() {
        let pool = pool(2);
        let (a, b) = (pool.try_lease().unwrap(), pool.try_lease().unwrap());
        assert!(a.as_ptr().addr().is_multiple_of(4096) && b.as_ptr().addr().is_multiple_of(4096));
        assert!(a.iter().all(|&byte| byte == 0));
        assert!(pool.try_lease().is_none());
        drop(a);
        assert!(pool.try_lease().is_some());
    }

    #[test]
    fn a_slab_is_back_only_when_its_last_slice_is_dropped() {
        let pool = pool(1);
        let slice = pool.try_lease().unwrap().freeze();
        let part = slice.slice(10..20);
        drop(slice);
        assert!(pool.try_lease().is_none());
        drop(part);
        assert!(pool.try_lease().is_some());
    }

    #[test]
    fn reuses_the_slab_that_was_given_back_last() {
        let pool = pool(3);
        let slab = pool.try_lease().unwrap();
        let address = slab.as_ptr();
        drop(slab);
        assert_eq!(pool.try_lease().unwrap().as_ptr(), address);
    }

    #[tokio::test]
    async fn grants_leases_in_the_order_asked() {
        let pool = pool(1);
        let held = pool.lease().await.unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut waiting = Vec::new();
        for number in 0..3 {
            let (pool, order) = (pool.clone(), Arc::clone(&order));
            waiting.push(tokio::spawn(async move {
                let _slab = pool.lease().await.unwrap();
                order.lock().push(number);
            }));
            tokio::task::yield_now().await;
        }
        drop(held);
        for task in waiting {
            task.await.unwrap();
        }
        assert_eq!(*order.lock(), [0, 1, 2]);
    }

    #[test]
    fn what_cannot_be_locked_is_a_note_and_no_failure() {
        let ledger = Ledger::unread();
        let pool = Pool::new(8192, 4096, Arc::new(NoLock), &ledger).unwrap();
        let _slabs = (pool.try_lease().unwrap(), pool.try_lease().unwrap());
        let report = ledger.report();
        assert_eq!((report.notes.len(), report.locked_bytes), (1, 0));
    }
}
