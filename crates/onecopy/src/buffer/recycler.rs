//! Memory for batches: made when needed, kept when given back, so that its pages are touched once and not per batch.
//!
//! Unlike the pool it never makes anybody wait: a consumer who keeps every batch uses memory, but stalls nothing.

use std::fmt;

use super::lock::PageLock;
use super::region::Region;
use super::run::{Home, Run};
use super::slab::Slab;
use crate::error::Result;
use crate::ledger::Ledger;
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
    /// Guards the kept regions, each with whether it is locked; held for a push or a search.
    kept: Mutex<Vec<(Region, bool)>>,
}

impl Recycler {
    /// A recycler that keeps at most `keep_bytes` of memory that nobody uses.
    #[must_use]
    pub fn new(keep_bytes: usize, lock: Arc<dyn PageLock>, ledger: &Arc<Ledger>) -> Self {
        let shelf = Shelf {
            keep_bytes,
            lock,
            kept: Mutex::new(Vec::new()),
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
    /// The smallest kept region that holds `len` and wastes at most half of itself.
    fn find(&self, len: usize) -> Option<(Region, bool)> {
        let mut kept = self.kept.lock();
        let (index, _) = kept
            .iter()
            .enumerate()
            .filter(|(_, (region, _))| region.len() >= len && region.len() / 2 <= len.max(4096))
            .min_by_key(|(_, (region, _))| region.len())?;
        Some(kept.remove(index))
    }

    /// Keeps `region`, and lets go of those that were kept longest where that is too much: sizes change, and what is no
    /// longer asked for must make room.
    pub(super) fn put_back(&self, region: Region, is_locked: bool) {
        let mut kept = self.kept.lock();
        kept.push((region, is_locked));
        let mut kept_bytes: usize = kept.iter().map(|(region, _)| region.len()).sum();
        let mut gone = Vec::new();
        while kept_bytes > self.keep_bytes {
            let (oldest, is_locked) = kept.remove(0);
            kept_bytes -= oldest.len();
            gone.push((oldest, is_locked));
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
        for (region, is_locked) in self.kept.get_mut().drain(..) {
            if is_locked {
                self.lock.unlock(region.start(), region.len());
            }
        }
    }
}

impl fmt::Debug for Shelf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shelf({} kept)", self.kept.lock().len())
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
        assert_eq!(recycler.shelf.kept.lock().len(), 1);
    }
}
