//! Memory for batches: made when needed, kept when given back, so that its pages are touched once and not per batch.
//!
//! Unlike the pool it never makes anybody wait: a consumer who keeps every batch uses memory, but stalls nothing.

use std::collections::BTreeMap;
use std::fmt;

use super::lock::PageLock;
use super::region::Region;
use super::run::{Home, Run};
use super::slab::Slab;
use crate::error::Result;
use crate::ledger::Ledger;
use crate::size::PAGE;
use crate::sync::{Arc, Mutex};

/// A source of batch memory. Clones are handles on the same shelf.
#[derive(Clone)]
pub struct Recycler {
    shelf: Arc<Shelf>,
    ledger: Arc<Ledger>,
}

/// Regions that were given back.
pub(super) struct Shelf {
    keep_bytes: usize,
    lock: Arc<dyn PageLock>,
    /// Guards the kept regions; held for a look-up or a few.
    kept: Mutex<Kept>,
}

/// Kept regions, each with whether it is locked. There may be as many as a batch has columns, which is up to whoever wrote
/// the shards: nothing here looks through all of them.
#[derive(Default)]
struct Kept {
    /// By length, and among equals by age.
    regions: BTreeMap<(usize, u64), (Region, bool)>,
    /// The length of each, the oldest first.
    lens: BTreeMap<u64, usize>,
    bytes: usize,
    came: u64,
}

impl Kept {
    fn push(&mut self, region: Region, is_locked: bool) {
        self.came += 1;
        self.bytes += region.len();
        self.lens.insert(self.came, region.len());
        self.regions
            .insert((region.len(), self.came), (region, is_locked));
    }

    fn remove(&mut self, len: usize, age: u64) -> Option<(Region, bool)> {
        let removed = self.regions.remove(&(len, age))?;
        self.lens.remove(&age);
        self.bytes -= len;
        Some(removed)
    }

    fn remove_oldest(&mut self) -> Option<(Region, bool)> {
        let (&age, &len) = self.lens.first_key_value()?;
        self.remove(len, age)
    }
}

impl Recycler {
    /// A recycler that keeps at most `keep_bytes` of memory that nobody uses.
    #[must_use]
    pub fn new(keep_bytes: usize, lock: Arc<dyn PageLock>, ledger: &Arc<Ledger>) -> Self {
        let shelf = Shelf {
            keep_bytes,
            lock,
            kept: Mutex::new(Kept::default()),
        };
        Self {
            shelf: Arc::new(shelf),
            ledger: Arc::clone(ledger),
        }
    }

    /// A slab of exactly `len` bytes, page-aligned. What is in it is whatever was there before.
    ///
    /// # Errors
    ///
    /// `LimitReached` where the kernel has no memory for it.
    pub fn lease(&self, len: usize) -> Result<Slab> {
        let (region, is_locked) = match self.shelf.find(len) {
            Some(found) => found,
            None => self.make(len)?,
        };
        let start = region.start();
        let shelf = Arc::clone(&self.shelf);
        Ok(Slab::whole(Run::new(
            start,
            len,
            Home::Shelf {
                shelf,
                region: Some(region),
                is_locked,
            },
        )))
    }

    fn make(&self, len: usize) -> Result<(Region, bool)> {
        let region = Region::map(len)?;
        // Locking touches every page: a batch of a size that nobody fills would take that memory all the same.
        let lock = || {
            if region.len() > self.shelf.keep_bytes {
                return Err(std::io::Error::other(
                    "a batch is larger than `memory` foresees",
                ));
            }
            self.shelf.lock.lock(region.start(), region.len())
        };
        let is_locked = match lock() {
            Ok(()) => true,
            Err(error) => {
                self.ledger
                    .note(format!("batch memory is not page-locked ({error})"));
                false
            }
        };
        Ok((region, is_locked))
    }
}

impl Shelf {
    /// The smallest kept region that holds `len` and wastes at most half of itself; among equals the one that was in use
    /// last, which the cache knows best.
    fn find(&self, len: usize) -> Option<(Region, bool)> {
        let mut kept = self.kept.lock();
        let (&(region_len, _), _) = kept.regions.range((len, 0)..).next()?;
        let mut equals = kept.regions.range(..=(region_len, u64::MAX));
        let (&(_, age), _) = equals.next_back()?;
        if region_len / 2 > len.max(PAGE) {
            return None;
        }
        kept.remove(region_len, age)
    }

    /// Keeps `region`, and lets go of those that were kept longest where that is too much: sizes change, and what is no
    /// longer asked for must make room.
    pub(super) fn put_back(&self, region: Region, is_locked: bool) {
        let mut kept = self.kept.lock();
        kept.push(region, is_locked);
        let mut gone = Vec::new();
        while kept.bytes > self.keep_bytes
            && let Some(oldest) = kept.remove_oldest()
        {
            gone.push(oldest);
        }
        drop(kept);
        for (region, is_locked) in gone {
            if is_locked {
                self.lock.unlock(region.start(), region.len());
            }
        }
    }
}

impl Drop for Shelf {
    fn drop(&mut self) {
        let kept = std::mem::take(self.kept.get_mut());
        for (region, is_locked) in kept.regions.into_values() {
            if is_locked {
                self.lock.unlock(region.start(), region.len());
            }
        }
    }
}

impl fmt::Debug for Shelf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shelf({} kept)", self.kept.lock().regions.len())
    }
}

impl fmt::Debug for Recycler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Recycler({:?})", self.shelf)
    }
}

#[cfg(test)]
mod tests {
    use super::super::lock::NoLock;
    use super::*;

    #[test]
    fn gives_the_same_memory_again_and_keeps_no_more_than_told() {
        let recycler = Recycler::new(16 * 4096, Arc::new(NoLock), &Ledger::unread());
        let first = recycler.lease(10 * 4096).unwrap();
        let address = first.as_ptr();
        drop(first.freeze());
        let second = recycler.lease(9 * 4096).unwrap();
        assert_eq!((second.as_ptr(), second.len()), (address, 9 * 4096));
        let third = recycler.lease(10 * 4096).unwrap();
        drop((second, third));
        assert_eq!(recycler.shelf.kept.lock().regions.len(), 1);
    }

    #[test]
    fn the_smallest_that_fits_is_given_and_none_that_is_far_too_large() {
        let recycler = Recycler::new(1 << 20, Arc::new(NoLock), &Ledger::unread());
        let slabs = [8, 2, 4].map(|pages| recycler.lease(pages * PAGE).unwrap());
        let [large, small, middle] = [0, 1, 2].map(|index| slabs[index].as_ptr());
        drop(slabs);
        let again = [3, 1, 5].map(|pages| recycler.lease(pages * PAGE).unwrap());
        let addresses = [0, 1, 2].map(|index| again[index].as_ptr());
        assert_eq!(addresses, [middle, small, large]);
        drop(again);
        let first = recycler.lease(2 * PAGE).unwrap();
        let second = recycler.lease(PAGE).unwrap();
        assert_eq!(first.as_ptr(), small);
        // What is left has four pages and eight.
        assert!(![middle, large].contains(&second.as_ptr()));
        let kept = recycler.shelf.kept.lock();
        assert_eq!(
            (kept.regions.len(), kept.lens.len(), kept.bytes),
            (2, 2, 12 * PAGE)
        );
    }
}
