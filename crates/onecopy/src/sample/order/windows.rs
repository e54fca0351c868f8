//! Shuffling within a lane: windows of samples that follow each other, each in an order of its own.
//!
//! A window is read whole before its first sample is given. Why windows, and not a reservoir out of which a random sample leaves
//! for each that comes in: where a lane stands within its window is one number, so a run that goes on reads that window again and
//! nothing before it; in a reservoir a sample may lie for ever, and to build it anew takes all that came before.
//!
//! The first window of each lane is shorter, by a length that is drawn: lanes then do not all wait for whole windows at the same
//! time, and borders of windows lie elsewhere in each epoch.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;

use super::{below, mix};
use crate::size::to_usize;

/// The windows of one lane in one epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    /// Samples of a window, from 1: then nothing is shuffled.
    len: u64,
    seed: u64,
    epoch: u64,
    lane: u64,
    first: u64,
}

/// One window: which it is, and the samples of the lane that it holds at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Counted from 0.
    pub number: u64,
    /// The first of the lane's samples that is in it.
    pub start: u64,
    /// How many there are; fewer where the lane ends in it.
    pub len: u64,
}

impl Windows {
    /// Windows of `len` samples, in an order that is drawn from the other numbers.
    #[must_use]
    pub fn new(len: u64, seed: u64, epoch: u64, lane: u64) -> Self {
        let mut windows = Self {
            len: len.max(1),
            seed,
            epoch,
            lane,
            first: len.max(1),
        };
        if windows.len > 1 {
            windows.first = 1 + below(&mut windows.random(u64::MAX), windows.len) as u64;
        }
        windows
    }

    /// Windows of single samples: the order stays as it is.
    #[must_use]
    pub fn none() -> Self {
        Self::new(1, 0, 0, 0)
    }

    /// The window that holds the lane's sample `ordinal`, or gives it: both are the same one.
    #[must_use]
    pub fn around(&self, ordinal: u64) -> Window {
        if ordinal < self.first {
            return Window {
                number: 0,
                start: 0,
                len: self.first,
            };
        }
        let behind = (ordinal - self.first) / self.len;
        Window {
            number: 1 + behind,
            start: self.first + behind * self.len,
            len: self.len,
        }
    }

    /// How many samples the window `number` holds, unless the lane ends in it.
    #[must_use]
    pub fn len_of(&self, number: u64) -> u64 {
        if number == 0 { self.first } else { self.len }
    }

    /// Samples of a window, but for the first.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a window is never empty")]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether samples leave in the order in which they came.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.len == 1
    }

    /// In which order the samples of the window `number` leave, where `len` of them came.
    #[must_use]
    pub fn order(&self, number: u64, len: u64) -> Vec<u32> {
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        let mut order: Vec<u32> = (0..len).collect();
        mix(&mut order, &mut self.random(number));
        order
    }

    /// Which of its samples a lane of `total` gives as its sample `ordinal`.
    #[must_use]
    pub fn source(&self, ordinal: u64, total: u64) -> u64 {
        let window = self.around(ordinal);
        let order = self.order(window.number, window.len.min(total - window.start));
        let place = order.get(to_usize(ordinal - window.start)).copied();
        window.start + u64::from(place.unwrap_or(0))
    }

    /// The numbers of one window. All four numbers go into the key of the cipher as they are: no two windows share an order by
    /// construction.
    fn random(&self, window: u64) -> ChaCha8Rng {
        let mut key = [0; 32];
        let words = [self.seed, self.epoch, self.lane, window];
        let bytes = words.into_iter().flat_map(u64::to_le_bytes);
        for (to, from) in key.iter_mut().zip(bytes) {
            *to = from;
        }
        ChaCha8Rng::from_seed(key)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lane(windows: Windows, total: u64) -> Vec<u64> {
        (0..total)
            .map(|ordinal| windows.source(ordinal, total))
            .collect()
    }

    proptest! {
        #[test]
        fn each_sample_leaves_once_and_not_further_off_than_a_window(
            len in 1..50_u64, seed in any::<u64>(), epoch in any::<u64>(), of in any::<u64>(), total in 0..300_u64,
        ) {
            let windows = Windows::new(len, seed, epoch, of);
            let given = lane(windows, total);
            for (ordinal, &source) in (0_u64..).zip(&given) {
                prop_assert!(ordinal.abs_diff(source) < len);
                let window = windows.around(ordinal);
                prop_assert_eq!(windows.around(source), window);
                prop_assert!((window.start..window.start + window.len).contains(&ordinal));
            }
            let mut sorted = given;
            sorted.sort_unstable();
            prop_assert_eq!(sorted, (0..total).collect::<Vec<_>>());
        }
    }

    #[test]
    fn seed_epoch_and_lane_each_change_the_order() {
        let order = |seed, epoch, of| lane(Windows::new(100, seed, epoch, of), 1000);
        assert_eq!(order(7, 0, 3), order(7, 0, 3));
        for other in [
            order(8, 0, 3),
            order(7, 1, 3),
            order(7, 0, 4),
            order(0, 7, 3),
        ] {
            assert_ne!(order(7, 0, 3), other);
        }
        assert_eq!(lane(Windows::none(), 50), (0..50).collect::<Vec<_>>());
    }

    #[test]
    fn the_order_is_the_same_in_every_version() {
        assert_eq!(
            lane(Windows::new(4, 1, 2, 3), 10),
            [1, 0, 2, 6, 3, 4, 5, 9, 7, 8],
            "a run must be resumable by a later version"
        );
    }
}
