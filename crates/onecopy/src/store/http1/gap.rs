//! What of a target is still to be filled.

use std::io::IoSliceMut;

use super::super::checksum::Sum;
use crate::buffer::{Slab, copy};
use crate::ledger::OpenHop;

/// Slabs handed to one `recv` at most: enough for a range scattered over page-sized pieces, and far below `IOV_MAX`.
const MAX_SLICES: usize = 64;

/// The unfilled part of a list of slabs, `[filled, end)`.
#[derive(Debug)]
pub(in crate::store) struct Gap<'a> {
    slabs: &'a mut [Slab],
    filled: usize,
    end: usize,
    sum: Option<&'a mut Sum>,
}

impl<'a> Gap<'a> {
    /// The bytes `[filled, end)` of `slabs`; `end` is cut to what they hold.
    pub(in crate::store) fn new(slabs: &'a mut [Slab], filled: usize, end: usize) -> Self {
        let holds: usize = slabs.iter().map(|slab| slab.len()).sum();
        let end = end.min(holds);
        Self {
            slabs,
            filled: filled.min(end),
            end,
            sum: None,
        }
    }

    /// Takes what is filled into `sum`, piece by piece, while the caches of the core still hold it.
    ///
    /// The pieces are those that `recv` brings. To ask for less at once, so that they stay in the nearest cache, was
    /// measured (64 KiB to 2 MiB): it costs `recv` ten times what it spares the sum.
    pub(in crate::store) fn summed(mut self, sum: Option<&'a mut Sum>) -> Self {
        self.sum = sum;
        self
    }

    /// How many bytes are filled, counted from the start of the slabs.
    pub(in crate::store) fn filled(&self) -> usize {
        self.filled
    }

    /// How many bytes are still missing.
    pub(in crate::store) fn left(&self) -> usize {
        self.end - self.filled
    }

    /// Notes that the next `len` bytes are filled.
    pub(in crate::store) fn advance(&mut self, len: usize) {
        let from = self.filled;
        self.filled = (self.filled + len).min(self.end);
        if let Some(sum) = &mut self.sum {
            let mut start = 0;
            for slab in self.slabs.iter() {
                let end = start + slab.len();
                let (a, b) = (from.max(start), self.filled.min(end));
                if a < b {
                    sum.update(&slab[a - start..b - start]);
                }
                start = end;
            }
        }
    }

    /// The next bytes to fill, at most `most` of them, as far as they lie in one slab. Empty only where none is left.
    pub(in crate::store) fn front(&mut self, most: usize) -> &mut [u8] {
        let most = most.min(self.left());
        let mut at = self.filled;
        for slab in self.slabs.iter_mut() {
            let len = slab.len();
            if at < len {
                return &mut slab[at..len.min(at + most)];
            }
            at -= len;
        }
        &mut []
    }

    /// Whether the next `most` bytes lie in more than one slab.
    pub(in crate::store) fn is_split(&mut self, most: usize) -> bool {
        let most = most.min(self.left());
        self.front(most).len() < most
    }

    /// The next bytes to fill, at most `most` of them, slab by slab.
    pub(in crate::store) fn slices(&mut self, most: usize) -> Vec<IoSliceMut<'_>> {
        let mut most = most.min(self.left());
        let mut at = self.filled;
        let mut slices = Vec::new();
        for slab in self.slabs.iter_mut() {
            let len = slab.len();
            if at >= len {
                at -= len;
                continue;
            }
            let end = len.min(at + most);
            most -= end - at;
            if end > at {
                slices.push(IoSliceMut::new(&mut slab[at..end]));
            }
            at = 0;
            if most == 0 || slices.len() == MAX_SLICES {
                break;
            }
        }
        slices
    }

    /// Copies as much of `bytes` as there is room for, and says how much that was.
    ///
    /// # Copies
    ///
    /// One in user space per byte, counted on `hop`.
    pub(in crate::store) fn lay(&mut self, hop: &OpenHop, bytes: &[u8]) -> usize {
        let mut done = 0;
        while done < bytes.len() && self.left() > 0 {
            let front = self.front(bytes.len() - done);
            let len = front.len();
            copy::lay(hop, &bytes[done..done + len], front);
            done += len;
            self.advance(len);
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Ledger;
    use crate::route::Hop;

    #[test]
    fn walks_over_slabs_of_any_size() {
        let mut slabs = vec![Slab::heap(3), Slab::heap(0), Slab::heap(1), Slab::heap(4)];
        let hop = Ledger::unread().hop(Hop::HeadRest);
        let mut gap = Gap::new(&mut slabs, 2, 7);
        assert_eq!(gap.left(), 5);
        assert!(gap.is_split(2));
        let lens: Vec<usize> = gap
            .slices(usize::MAX)
            .iter()
            .map(|slice| slice.len())
            .collect();
        assert_eq!(lens, [1, 1, 3]);
        assert_eq!(gap.lay(&hop, &[1, 2, 3, 4, 5, 6]), 5);
        assert_eq!(gap.left(), 0);
        assert!(gap.front(9).is_empty());
        assert!(gap.slices(9).is_empty());
        assert_eq!(&slabs[0][..], &[0, 0, 1]);
        assert_eq!(&slabs[2][..], &[2]);
        assert_eq!(&slabs[3][..], &[3, 4, 5, 0]);
    }

    #[test]
    fn what_is_filled_is_summed_once_and_in_order() {
        use super::super::super::checksum::Algorithm;
        let hop = Ledger::unread().hop(Hop::HeadRest);
        let mut slabs = vec![Slab::heap(3), Slab::heap(0), Slab::heap(4)];
        let mut sum = Sum::new(Algorithm::Sha256);
        let mut wanted = sum.clone();
        let mut gap = Gap::new(&mut slabs, 1, 7).summed(Some(&mut sum));
        gap.lay(&hop, &[1]);
        gap.front(1)[0] = 2;
        gap.advance(1);
        gap.lay(&hop, &[3, 4, 5, 6, 7]);
        gap.advance(9);
        wanted.update(&[1, 2, 3, 4, 5, 6]);
        assert_eq!(sum.len_bytes(), 6);
        assert_eq!(sum.value(), wanted.value());
    }

    #[test]
    fn never_reaches_past_what_the_slabs_hold() {
        let mut slabs = vec![Slab::heap(3)];
        let gap = Gap::new(&mut slabs, 9, 99);
        assert_eq!((gap.filled(), gap.left()), (3, 0));
    }
}
