//! The two faces of memory: a [`Slab`] that one owner writes, and a [`Slice`] that many read.
#![expect(
    unsafe_code,
    reason = "the borrow rules of a run, kept by ownership of its parts"
)]

use std::fmt;
use std::ops::{Deref, DerefMut, Range};

use super::run::Run;
use crate::sync::Arc;

/// Memory with one owner, who may write it. Page-aligned where it begins a run; dropping it gives it back.
pub struct Slab {
    run: Arc<Run>,
    start: usize,
    len: usize,
}

impl Slab {
    pub(super) fn whole(run: Run) -> Self {
        let len = run.len();
        Self {
            run: Arc::new(run),
            start: 0,
            len,
        }
    }

    /// Ordinary zeroed memory, in no pool: for what is rare or small.
    #[must_use]
    pub fn heap(len: usize) -> Self {
        Self::whole(Run::heap(len))
    }

    /// Cuts the first `at` bytes off and returns them; `self` keeps the rest. Both may be written at the same time.
    ///
    /// # Panics
    ///
    /// Where `at` is larger than the slab.
    #[must_use]
    pub fn split_to(&mut self, at: usize) -> Self {
        assert!(
            at <= self.len,
            "cannot cut {at} bytes off a slab of {}",
            self.len
        );
        let front = Self {
            run: Arc::clone(&self.run),
            start: self.start,
            len: at,
        };
        self.start += at;
        self.len -= at;
        front
    }

    /// Drops everything behind the first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Puts two neighbours of one run together again; gives them back where they are none.
    ///
    /// # Errors
    ///
    /// The two slabs, unchanged, where `next` does not follow `self` in the same run.
    pub fn join(self, next: Self) -> Result<Self, (Self, Self)> {
        if Arc::ptr_eq(&self.run, &next.run) && self.start + self.len == next.start {
            Ok(Self {
                run: self.run,
                start: self.start,
                len: self.len + next.len,
            })
        } else {
            Err((self, next))
        }
    }

    /// Ends writing: from now on any number of readers may hold parts of it.
    #[must_use]
    pub fn freeze(self) -> Slice {
        Slice {
            run: self.run,
            start: self.start,
            len: self.len,
        }
    }
}

impl Deref for Slab {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let start = self.run.at(self.start);
        // SAFETY: the part lies in the run, which lives as long as `self.run`; all of it is initialised (invariant 2)
        // and nobody else writes it, because this slab owns it (invariant 1).
        unsafe { std::slice::from_raw_parts(start.as_ptr(), self.len) }
    }
}

impl DerefMut for Slab {
    fn deref_mut(&mut self) -> &mut [u8] {
        let start = self.run.at(self.start);
        // SAFETY: as in `deref`; and nobody else reads it either, because this slab owns it and is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), self.len) }
    }
}

impl fmt::Debug for Slab {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slab({} bytes)", self.len)
    }
}

/// Memory that any number of readers share. Cloning and cutting cost a count, never a copy.
#[derive(Clone)]
pub struct Slice {
    run: Arc<Run>,
    start: usize,
    len: usize,
}

impl Slice {
    /// No bytes.
    #[must_use]
    pub fn empty() -> Self {
        Slab::heap(0).freeze()
    }

    /// The bytes of a vector, taken over without a copy of more than their ownership.
    #[must_use]
    pub fn from_vec(bytes: Vec<u8>) -> Self {
        Slab::whole(Run::from_box(bytes.into_boxed_slice())).freeze()
    }

    /// The part `range` of these bytes.
    ///
    /// # Panics
    ///
    /// Where `range` reaches outside.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Self {
        assert!(
            range.start <= range.end && range.end <= self.len,
            "bytes {range:?} of a slice of {}",
            self.len
        );
        Self {
            run: Arc::clone(&self.run),
            start: self.start + range.start,
            len: range.len(),
        }
    }

    /// The two as one where they are neighbours in the same run: a member that crosses a range border is whole again
    /// without a copy.
    #[must_use]
    pub fn join(&self, next: &Self) -> Option<Self> {
        let adjacent = Arc::ptr_eq(&self.run, &next.run) && self.start + self.len == next.start;
        adjacent.then(|| Self {
            run: Arc::clone(&self.run),
            start: self.start,
            len: self.len + next.len,
        })
    }
}

impl Deref for Slice {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let start = self.run.at(self.start);
        // SAFETY: the part lies in the run, which lives as long as `self.run`; it is initialised, and since it was
        // frozen nobody can write it (invariant 1).
        unsafe { std::slice::from_raw_parts(start.as_ptr(), self.len) }
    }
}

impl fmt::Debug for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slice({} bytes)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_slab_are_written_apart_and_joined_again() {
        let mut rest = Slab::heap(8);
        let mut front = rest.split_to(3);
        front.fill(1);
        rest.fill(2);
        let whole = front.join(rest).unwrap().freeze();
        assert_eq!(&whole[..], &[1, 1, 1, 2, 2, 2, 2, 2]);
    }

    #[test]
    fn neighbours_join_without_a_copy_and_strangers_do_not() {
        let mut rest = Slab::heap(4);
        let front = rest.split_to(2).freeze();
        let back = rest.freeze();
        let whole = front.join(&back).unwrap();
        assert_eq!(whole.as_ptr(), front.as_ptr());
        assert_eq!(whole.len(), 4);
        assert!(back.join(&front).is_none());
        assert!(front.join(&Slice::empty()).is_none());
    }

    #[test]
    fn a_slice_is_the_vectors_own_memory() {
        let bytes = vec![7_u8; 100];
        let address = bytes.as_ptr();
        let slice = Slice::from_vec(bytes);
        assert_eq!(slice.as_ptr(), address);
        assert_eq!(slice.slice(10..20).len(), 10);
    }
}
