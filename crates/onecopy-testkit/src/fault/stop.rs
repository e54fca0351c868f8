//! A flag that ends every wait of the server at once.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Set once, when the server is dropped.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    /// Guards the flag that the condition variable tells of.
    stopped: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    pub(crate) fn set(&self) {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    pub(crate) fn is_set(&self) -> bool {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits, but not beyond the end of the server.
    pub(crate) fn wait_until(&self, due: Instant) {
        let mut stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
        while !*stopped {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.changed.wait_timeout(stopped, left);
            stopped = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub(crate) fn wait(&self, time: Duration) {
        self.wait_until(Instant::now() + time);
    }
}
