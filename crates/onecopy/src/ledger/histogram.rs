//! Percentiles of what is counted by the million, in four kilobytes.

use serde::Serialize;

use crate::size::to_usize;
use crate::sync::{AtomicU64, Ordering};

/// Each power of two is parted into so many buckets: a percentile is told to within 1/16 of its value.
const PARTS: u64 = 8;

/// The powers of two of a u64, of which the smallest three have no parts of their own.
const POWERS: usize = 62;

/// Whole numbers, counted by their size. Any thread may add to it.
#[derive(Debug)]
pub(super) struct Histogram {
    buckets: Box<[AtomicU64]>,
    largest: AtomicU64,
}

/// How values are spread. All zero where there are none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Spread {
    /// How many there are.
    pub count: u64,
    /// One in a hundred is no larger.
    pub p1: f64,
    /// The median.
    pub p50: f64,
    /// One in a hundred is larger.
    pub p99: f64,
    /// The largest, exactly.
    pub max: f64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            buckets: (0..POWERS * to_usize(PARTS))
                .map(|_| AtomicU64::new(0))
                .collect(),
            largest: AtomicU64::new(0),
        }
    }
}

impl Histogram {
    pub(super) fn add(&self, value: u64) {
        if let Some(bucket) = self.buckets.get(index_of(value)) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.largest.fetch_max(value, Ordering::Relaxed);
    }

    /// The spread, in units of which `per_unit` are one.
    pub(super) fn spread(&self, per_unit: f64) -> Spread {
        let counts: Vec<u64> = self
            .buckets
            .iter()
            .map(|bucket| bucket.load(Ordering::Relaxed))
            .collect();
        let count: u64 = counts.iter().sum();
        let largest = self.largest.load(Ordering::Relaxed);
        let at = |percent: u64| {
            let rank = count.saturating_mul(percent).div_ceil(100).max(1);
            let mut seen = 0;
            let bucket = counts.iter().position(|in_it| {
                seen += in_it;
                seen >= rank
            });
            let value = bucket.map_or(0, middle_of);
            value.min(largest) as f64 / per_unit
        };
        Spread {
            count,
            p1: at(1),
            p50: at(50),
            p99: at(99),
            max: largest as f64 / per_unit,
        }
    }
}

/// Small values have a bucket each; of larger ones the highest four bits count.
fn index_of(value: u64) -> usize {
    if value < PARTS {
        return to_usize(value);
    }
    let shift = value.ilog2() - PARTS.ilog2();
    let part = (value >> shift) - PARTS;
    to_usize(u64::from(shift + 1) * PARTS + part)
}

/// The value in the middle of a bucket.
fn middle_of(index: usize) -> u64 {
    let index = index as u64;
    if index < PARTS {
        return index;
    }
    let (shift, part) = (index / PARTS - 1, index % PARTS);
    let low = (PARTS + part) << shift;
    low + ((1 << shift) >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_a_bucket_whose_middle_is_near() {
        for bit in 0..64 {
            for around in [0_u64, 1, 2, 3] {
                let value = (1_u64 << bit).saturating_sub(1).saturating_add(around);
                let index = index_of(value);
                let middle = middle_of(index);
                assert!(
                    middle.abs_diff(value) <= value / 16 + 1,
                    "{value}: {middle}"
                );
            }
        }
        assert_eq!(index_of(u64::MAX) + 1, Histogram::default().buckets.len());
        assert!((1..100_000).all(|value| index_of(value) >= index_of(value - 1)));
    }

    #[test]
    fn percentiles_are_right_to_a_sixteenth() {
        let histogram = Histogram::default();
        assert_eq!(histogram.spread(1.0), Spread::default());
        for value in 1..=10_000 {
            histogram.add(value);
        }
        let spread = histogram.spread(1000.0);
        assert_eq!((spread.count, spread.max), (10_000, 10.0));
        for (told, right) in [(spread.p1, 0.1), (spread.p50, 5.0), (spread.p99, 9.9)] {
            assert!((told - right).abs() <= right / 15.0, "{told} for {right}");
        }
        let one = Histogram::default();
        one.add(7_000_000);
        let spread = one.spread(1e6);
        assert!((spread.p50 - 7.0).abs() <= 0.44 && spread.p99 <= spread.max);
    }
}
