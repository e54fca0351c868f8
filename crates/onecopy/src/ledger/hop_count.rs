//! What one hop has moved.

use crate::sync::{AtomicU64, Ordering};

#[derive(Debug, Default)]
pub(super) struct HopCount {
    pub(super) bytes: AtomicU64,
    pub(super) calls: AtomicU64,
    pub(super) busy_nanos: AtomicU64,
}

impl HopCount {
    pub(super) fn add(&self, more: &Self) {
        let add = |to: &AtomicU64, from: &AtomicU64| {
            to.fetch_add(from.load(Ordering::Relaxed), Ordering::Relaxed)
        };
        add(&self.bytes, &more.bytes);
        add(&self.calls, &more.calls);
        add(&self.busy_nanos, &more.busy_nanos);
    }
}
