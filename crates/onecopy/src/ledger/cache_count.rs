//! How a cache did.

use super::report::CacheFigures;
use crate::sync::{AtomicU64, Ordering};

/// Counts of one cache, in ranges and bytes.
#[derive(Debug, Default)]
pub struct CacheCount {
    hits: AtomicU64,
    misses: AtomicU64,
    hit_bytes: AtomicU64,
    miss_bytes: AtomicU64,
    damaged: AtomicU64,
    dropped_bytes: AtomicU64,
}

fn add(to: &AtomicU64, count: u64) {
    to.fetch_add(count, Ordering::Relaxed);
}

impl CacheCount {
    /// A range was found.
    pub fn hit(&self, bytes: u64) {
        add(&self.hits, 1);
        add(&self.hit_bytes, bytes);
    }

    /// A range was not found, and is fetched.
    pub fn missed(&self, bytes: u64) {
        add(&self.misses, 1);
        add(&self.miss_bytes, bytes);
    }

    /// A piece on the disk was not what was written.
    pub fn damaged(&self) {
        add(&self.damaged, 1);
    }

    /// Bytes that were fetched were not written, because the disk was behind.
    pub fn dropped(&self, bytes: u64) {
        add(&self.dropped_bytes, bytes);
    }

    pub(super) fn figures(&self) -> CacheFigures {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let (hits, misses) = (of(&self.hits), of(&self.misses));
        #[expect(clippy::cast_precision_loss, reason = "a rate")]
        let rate = hits as f64 / (hits + misses) as f64;
        CacheFigures {
            hits,
            misses,
            hit_rate: (hits + misses > 0).then_some(rate),
            hit_bytes: of(&self.hit_bytes),
            miss_bytes: of(&self.miss_bytes),
            damaged: of(&self.damaged),
            dropped_bytes: of(&self.dropped_bytes),
        }
    }
}
