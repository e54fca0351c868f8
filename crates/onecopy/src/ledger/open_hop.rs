//! The handle that whoever moves payload bytes must hold.

use std::time::{Duration, Instant};

use super::Ledger;
use crate::route::Hop;
use crate::sync::Arc;

/// A hop of a running ledger, open for counting. Cheap to clone; one per thread or connection is usual.
#[derive(Debug, Clone)]
pub struct OpenHop {
    ledger: Arc<Ledger>,
    hop: Hop,
}

impl OpenHop {
    pub(super) fn new(ledger: Arc<Ledger>, hop: Hop) -> Self {
        Self { ledger, hop }
    }

    /// Notes that one call moved `bytes` and kept its mover busy for `busy`.
    pub fn moved(&self, bytes: usize, busy: Duration) {
        self.ledger.add(self.hop, bytes as u64, busy);
    }

    /// Runs `work`, which moves `bytes`, and notes it with its time.
    pub fn timed<T>(&self, bytes: usize, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = work();
        self.moved(bytes, start.elapsed());
        result
    }

    /// Another hop of the same ledger.
    #[must_use]
    pub fn beside(&self, hop: Hop) -> Self {
        Self {
            ledger: Arc::clone(&self.ledger),
            hop,
        }
    }

    /// Which hop this is.
    #[must_use]
    pub fn hop(&self) -> Hop {
        self.hop
    }

    /// The ledger that this hop belongs to.
    #[must_use]
    pub fn ledger(&self) -> &Arc<Ledger> {
        &self.ledger
    }
}
