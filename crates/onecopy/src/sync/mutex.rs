//! A mutex and a condition over the standard library's, whose waiters are known to the kernel alone.
//!
//! `parking_lot` has a table of its own of threads that wait, and they stand in it on their stacks. A forked child inherits the
//! table and gives those stacks to its new threads: the next that is started rewrites what is no list any more. A `DataLoader`
//! forks while a load runs.

use std::fmt::{self, Debug};
use std::ops::{Deref, DerefMut};
use std::sync::{self, PoisonError};
use std::time::{Duration, Instant};

/// A mutex that a panic does not poison: what it guards is told by its owner.
#[derive(Default)]
pub struct Mutex<T>(sync::Mutex<T>);

/// The right to what a [`Mutex`] guards.
pub struct MutexGuard<'a, T>(
    /// None only while a [`Condvar`] has it.
    Option<sync::MutexGuard<'a, T>>,
);

impl<T> Mutex<T> {
    /// A mutex around `value`.
    pub const fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }

    /// Waits for it.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard(Some(self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// What it guards, for its only owner.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Debug> Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T: Debug> Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_deref().expect("a condition gives the lock back")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        let value = self.0.as_deref_mut();
        value.expect("a condition gives the lock back")
    }
}

/// What threads wait for under a [`Mutex`].
#[derive(Debug, Default)]
pub struct Condvar(sync::Condvar);

/// Whether a wait came to its end by time.
#[derive(Debug, Clone, Copy)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Whether the time was over.
    #[must_use]
    pub fn timed_out(self) -> bool {
        self.0
    }
}

impl Condvar {
    /// A condition that nobody waits for.
    #[must_use]
    pub const fn new() -> Self {
        Self(sync::Condvar::new())
    }

    /// Wakes one who waits.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all who wait.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }

    /// Gives the lock back, waits to be woken, and takes it again. May wake without cause.
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        if let Some(held) = guard.0.take() {
            guard.0 = Some(self.0.wait(held).unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// The same, but for no longer than `limit`.
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, limit: Duration) -> WaitTimeoutResult {
        let Some(held) = guard.0.take() else {
            return WaitTimeoutResult(true);
        };
        let waited = self.0.wait_timeout(held, limit);
        let (held, result) = waited.unwrap_or_else(PoisonError::into_inner);
        guard.0 = Some(held);
        WaitTimeoutResult(result.timed_out())
    }

    /// The same, but no longer than until `end`.
    pub fn wait_until<T>(&self, guard: &mut MutexGuard<'_, T>, end: Instant) -> WaitTimeoutResult {
        self.wait_for(guard, end.saturating_duration_since(Instant::now()))
    }
}
