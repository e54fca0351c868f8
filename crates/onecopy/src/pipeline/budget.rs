//! How much batch memory is in flight: leased for blocks that the consumer has not received yet.

use crate::sync::{Arc, AtomicUsize, Condvar, Mutex, Ordering};

/// A bounded count of bytes. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Budget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limit_bytes: usize,
    limit_blocks: usize,
    /// Guards the bytes and blocks in flight, and whether the load was stopped.
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    bytes: usize,
    blocks: usize,
    is_stopped: bool,
}

/// A block's share. Clones are the same share; dropping the last one gives it back.
#[derive(Debug, Clone)]
pub(super) struct Share(Arc<Held>);

#[derive(Debug)]
struct Held {
    budget: Budget,
    bytes: AtomicUsize,
}

impl Budget {
    pub(super) fn new(limit_bytes: usize, limit_blocks: usize) -> Self {
        Self(Arc::new(Shared {
            limit_bytes,
            limit_blocks,
            state: Mutex::new(State::default()),
            changed: Condvar::new(),
        }))
    }

    /// Waits until there is room for one more block of about `bytes`. The first block in flight always has room, so that a batch larger
    /// than the budget is slow and not impossible. None once the load was stopped.
    pub(super) fn admit(&self, bytes: usize) -> Option<Share> {
        let shared = &self.0;
        let mut state = shared.state.lock();
        while !state.is_stopped
            && state.blocks > 0
            && (state.bytes + bytes > shared.limit_bytes || state.blocks >= shared.limit_blocks)
        {
            shared.changed.wait(&mut state);
        }
        if state.is_stopped {
            return None;
        }
        state.blocks += 1;
        Some(Share(Arc::new(Held {
            budget: self.clone(),
            bytes: AtomicUsize::new(0),
        })))
    }

    /// Wakes whoever waits, for good.
    pub(super) fn stop(&self) {
        self.0.state.lock().is_stopped = true;
        self.0.changed.notify_all();
    }
}

impl Share {
    /// Sets how much memory the block holds by now.
    pub(super) fn set(&self, bytes: usize) {
        let mut state = self.0.budget.0.state.lock();
        let before = self.0.bytes.swap(bytes, Ordering::Relaxed);
        state.bytes = state.bytes - before + bytes;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut state = self.budget.0.state.lock();
        state.bytes -= self.bytes.load(Ordering::Relaxed);
        state.blocks -= 1;
        drop(state);
        self.budget.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_block_is_admitted_whatever_its_size_and_the_next_waits() {
        let budget = Budget::new(10, 8);
        let first = budget.admit(1).unwrap();
        first.set(1000);
        let waiting = {
            let budget = budget.clone();
            crate::sync::spawn("test", move || budget.admit(1).is_some()).unwrap()
        };
        drop(first);
        assert!(waiting.join().unwrap());
    }

    #[test]
    fn stopping_ends_every_wait() {
        let budget = Budget::new(1, 1);
        let _first = budget.admit(1).unwrap();
        let waiting = {
            let budget = budget.clone();
            crate::sync::spawn("test", move || budget.admit(1).is_none()).unwrap()
        };
        budget.stop();
        assert!(waiting.join().unwrap());
    }
}
