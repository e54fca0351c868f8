//! A run: one piece of leased memory, whole, and the way back to where it came from.
#![expect(unsafe_code, reason = "address arithmetic within a run")]

use std::ptr::NonNull;

use super::pool::Slots;
use super::recycler::Shelf;
use super::region::Region;
use crate::sync::Arc;

/// Where a run goes when its last part is dropped.
#[derive(Debug)]
pub(super) enum Home {
    /// Slot `index` of a pool, whose region `slots` keeps mapped.
    Pool { slots: Arc<Slots>, index: usize },
    /// A recycler's shelf. `region` is taken out on drop.
    Shelf {
        shelf: Arc<Shelf>,
        region: Option<Region>,
        is_locked: bool,
    },
    /// Nowhere: ordinary memory, a leaked box that the run takes back on drop.
    Heap,
}

/// One piece of leased memory.
#[derive(Debug)]
pub(super) struct Run {
    start: NonNull<u8>,
    len: usize,
    home: Home,
}

// SAFETY: the memory belongs to the run (its home keeps it mapped); access is ordered by `Slab` and `Slice`.
unsafe impl Send for Run {}
// SAFETY: `Run` itself only hands out addresses; see the invariants in mod.rs.
unsafe impl Sync for Run {}

impl Run {
    /// `home` must keep `len` initialised bytes from `start` alive, and hand them to nobody else, until it is dropped.
    pub(super) fn new(start: NonNull<u8>, len: usize, home: Home) -> Self {
        Self { start, len, home }
    }

    /// Ordinary zeroed memory.
    pub(super) fn heap(len: usize) -> Self {
        Self::from_box(vec![0_u8; len].into_boxed_slice())
    }

    /// Ordinary memory that somebody else filled.
    pub(super) fn from_box(memory: Box<[u8]>) -> Self {
        let len = memory.len();
        let start = NonNull::from(Box::leak(memory)).cast::<u8>();
        Self {
            start,
            len,
            home: Home::Heap,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The address of byte `offset`, which is at most `len`.
    pub(super) fn at(&self, offset: usize) -> NonNull<u8> {
        assert!(offset <= self.len, "offset within the run");
        // SAFETY: checked above: the result lies in the run or one past its end.
        unsafe { self.start.add(offset) }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        match &mut self.home {
            Home::Pool { slots, index } => slots.put_back(*index),
            Home::Shelf {
                shelf,
                region,
                is_locked,
            } => {
                if let Some(region) = region.take() {
                    shelf.put_back(region, *is_locked);
                }
            }
            Home::Heap => {
                let memory = NonNull::slice_from_raw_parts(self.start, self.len);
                // SAFETY: `from_box` leaked exactly this box, and no part of the run lives any more.
                drop(unsafe { Box::from_raw(memory.as_ptr()) });
            }
        }
    }
}
