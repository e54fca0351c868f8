//! How many connections may be in use at once: a limit that changes, and a fair queue before it.

use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::failure::Failure;
use crate::error::ErrorKind;
use crate::sync::{Arc, Mutex};

/// A limit for what is in use at the same time. Whoever asks first is served first.
#[derive(Debug)]
pub(super) struct Gate {
    permits: Arc<Semaphore>,
    /// Guards the counts; never held over an await.
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    limit: usize,
    /// Passes that are still out although the limit was lowered: they end with their use.
    owed: usize,
    waiting: usize,
    /// Since when somebody waits.
    full_since: Option<Instant>,
    /// For how long somebody waited, since that was last asked.
    full: Duration,
}

/// The right to one connection. Dropping it gives it back.
#[derive(Debug)]
pub(super) struct Pass {
    permit: Option<OwnedSemaphorePermit>,
    gate: Arc<Gate>,
}

impl Gate {
    pub(super) fn new(limit: usize) -> Arc<Self> {
        let limit = limit.clamp(1, Semaphore::MAX_PERMITS);
        Arc::new(Self {
            permits: Arc::new(Semaphore::new(limit)),
            state: Mutex::new(State {
                limit,
                owed: 0,
                waiting: 0,
                full_since: None,
                full: Duration::ZERO,
            }),
        })
    }

    /// Waits for a pass.
    pub(super) async fn admit(self: &Arc<Self>) -> Result<Pass, Failure> {
        let permit = match Arc::clone(&self.permits).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_none_now) => {
                let _waiting = Waiting::new(self);
                let acquired = Arc::clone(&self.permits).acquire_owned().await;
                acquired.map_err(|error| Failure::new(ErrorKind::Bug, "pool", error.to_string()))?
            }
        };
        Ok(Pass {
            permit: Some(permit),
            gate: Arc::clone(self),
        })
    }

    /// Changes the limit. Fewer takes effect as passes come back.
    pub(super) fn set_limit(&self, limit: usize) {
        let limit = limit.clamp(1, Semaphore::MAX_PERMITS);
        let mut state = self.state.lock();
        if limit > state.limit {
            let more = limit - state.limit;
            let kept = more.min(state.owed);
            state.owed -= kept;
            self.permits.add_permits(more - kept);
        } else {
            let fewer = state.limit - limit;
            state.owed += fewer - self.permits.forget_permits(fewer);
        }
        state.limit = limit;
    }

    /// For how long somebody waited for a pass since this was last asked.
    pub(super) fn take_full(&self) -> Duration {
        let mut state = self.state.lock();
        let mut full = std::mem::take(&mut state.full);
        if let Some(since) = &mut state.full_since {
            let now = Instant::now();
            full += now.duration_since(std::mem::replace(since, now));
        }
        full
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut state = self.gate.state.lock();
        if let Some(permit) = self.permit.take()
            && state.owed > 0
        {
            state.owed -= 1;
            permit.forget();
        }
    }
}

/// Somebody who waits; a dropped future waits no longer.
struct Waiting<'a>(&'a Gate);

impl<'a> Waiting<'a> {
    fn new(gate: &'a Gate) -> Self {
        let mut state = gate.state.lock();
        state.waiting += 1;
        state.full_since.get_or_insert_with(Instant::now);
        Self(gate)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.waiting -= 1;
        if state.waiting == 0
            && let Some(since) = state.full_since.take()
        {
            state.full += since.elapsed();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free(gate: &Gate) -> usize {
        gate.permits.available_permits()
    }

    #[tokio::test]
    async fn a_lower_limit_takes_effect_as_passes_come_back() {
        let gate = Gate::new(4);
        let mut out = Vec::new();
        for _ in 0..4 {
            out.push(gate.admit().await.unwrap());
        }
        gate.set_limit(2);
        out.truncate(2);
        assert_eq!(free(&gate), 0);
        out.truncate(1);
        assert_eq!(free(&gate), 1);
        gate.set_limit(1);
        assert_eq!(free(&gate), 0);
        gate.set_limit(3);
        assert_eq!(free(&gate), 2);
        drop(out);
        assert_eq!(free(&gate), 3);
    }

    #[tokio::test]
    async fn raising_again_forgives_what_is_still_out() {
        let gate = Gate::new(3);
        let mut out = Vec::new();
        for _ in 0..3 {
            out.push(gate.admit().await.unwrap());
        }
        gate.set_limit(1);
        gate.set_limit(4);
        assert_eq!(free(&gate), 1);
        drop(out);
        assert_eq!(free(&gate), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn time_is_full_only_while_somebody_waits() {
        let gate = Gate::new(1);
        let first = gate.admit().await.unwrap();
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(gate.take_full(), Duration::ZERO);
        let waits = tokio::time::timeout(Duration::from_secs(2), gate.admit());
        assert!(waits.await.is_err());
        assert_eq!(gate.take_full(), Duration::from_secs(2));
        drop(first);
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(gate.take_full(), Duration::ZERO);
        // The one that gave up waiting took nothing with it.
        drop(gate.admit().await.unwrap());
        assert_eq!(free(&gate), 1);
    }
}
