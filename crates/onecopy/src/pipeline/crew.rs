//! The threads and tasks of a load, and their end.

use std::thread::JoinHandle;

use tokio::task::AbortHandle;

use super::budget::Budget;
use crate::error::{Error, Result};
use crate::ledger::Ledger;
use crate::sync::{Arc, AtomicBool, Ordering};

/// Threads and tasks; stopped and joined on drop.
#[derive(Debug)]
pub(super) struct Crew {
    pub(super) is_stopped: Arc<AtomicBool>,
    /// See [`Stage`](super::sample_stage::Stage).
    pub(super) is_complete: Arc<AtomicBool>,
    pub(super) fetcher: AbortHandle,
    pub(super) budget: Budget,
    pub(super) threads: Vec<JoinHandle<()>>,
    pub(super) ledger: Arc<Ledger>,
}

impl Crew {
    /// What a queue that ended means: the end, or that a thread died, which must never look like one.
    pub(super) fn check_end(&self) -> Result<()> {
        if self.is_complete.load(Ordering::Acquire) {
            return Ok(());
        }
        Err(Error::bug("read the shards", "the sample thread died"))
    }
}

impl Crew {
    /// Tells everybody to end, and waits for nobody.
    pub(super) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        self.fetcher.abort();
        self.budget.stop();
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.stop();
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so on stderr; whoever waited for it was told, too.
            let _panic = thread.join();
        }
        self.ledger.finish();
    }
}
