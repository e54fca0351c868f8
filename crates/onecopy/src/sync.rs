//! Threads and locks: every room takes them from here, so that threads have names and locks do not poison.

use std::io;
use std::thread::{Builder, JoinHandle};

pub use crossbeam_channel as channel;
pub use parking_lot::{Condvar, Mutex};
pub use std::sync::Arc;
pub use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Starts a thread named `onecopy-<name>`.
///
/// # Errors
///
/// Whatever the operating system says when it cannot start one more.
pub fn spawn<T: Send + 'static>(
    name: impl AsRef<str>,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new()
        .name(format!("onecopy-{}", name.as_ref()))
        .spawn(work)
}
