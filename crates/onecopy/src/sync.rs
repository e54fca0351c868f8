//! Threads and locks: every room takes them from here, so that threads have names, locks do not poison, and a machine
//! that has no thread to give is an error and never a panic.

mod mutex;
mod runtime;
mod threads;

use std::io;
use std::thread::{Builder, JoinHandle};

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};

use crate::error::{Error, ErrorKind, Result};

pub use crossbeam_channel as channel;
pub use mutex::{Condvar, Mutex, MutexGuard, WaitTimeoutResult};
pub use std::sync::Arc;
pub use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

pub(crate) use runtime::runtime_named;
pub use runtime::{check_files, runtime_here};
pub(crate) use threads::Threads;

/// Starts a thread named `onecopy-<name>`.
///
/// # Errors
///
/// `LimitReached` where the system starts no more threads.
pub fn spawn<T: Send + 'static>(
    name: impl AsRef<str>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    let name = format!("onecopy-{}", name.as_ref());
    let started = Builder::new().name(name.clone()).spawn(work);
    started.map_err(|error| no_thread(&name, error))
}

/// Why a thread was not started, and what to do about it: the error for `error`, which the system gave instead.
#[must_use]
pub fn no_thread(name: &str, error: io::Error) -> Error {
    // What pthread_create gives for every limit there is: threads of the user, of the control group, memory for a stack.
    if error.kind() != io::ErrorKind::WouldBlock {
        return Error::io("start the thread", name, error);
    }
    let limit = match getrlimit(Resource::RLIMIT_NPROC) {
        Ok((soft, _)) if soft != RLIM_INFINITY => format!("; this user may have {soft}"),
        _ => String::new(),
    };
    let mut help =
        "raise the limit: ulimit -u, TasksMax= of a systemd unit, pids.max of a container"
            .to_owned();
    // What is started behind the decoders, or is one, can be had by starting fewer of them.
    if ["decode", "sample"]
        .iter()
        .any(|stage| name.contains(stage))
    {
        help.push_str("; or decode with fewer threads: `decode_threads=2`");
    }
    Error::new(
        ErrorKind::LimitReached,
        "start the thread",
        name,
        format!("the system starts no more threads{limit}"),
    )
    .with_help(help)
    .with_source(error)
}

/// Holds that `count` more threads can be started, by starting and ending them.
///
/// For libraries that panic where theirs cannot: asking before is all that can be done.
///
/// # Errors
///
/// `LimitReached`, as [`spawn`].
fn check_threads(name: &str, count: usize) -> Result<()> {
    let (release, held) = channel::bounded::<()>(0);
    let mut threads = Vec::new();
    let started = (0..count).try_for_each(|_| {
        let held = held.clone();
        // Ends when the sender is dropped: nothing is ever sent.
        threads.push(spawn(name, move || held.recv().is_ok())?);
        Ok(())
    });
    drop(release);
    for thread in threads {
        let _nothing_to_panic = thread.join();
    }
    started
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_threads_is_a_limit_with_a_cure() {
        let error = no_thread("onecopy-x", io::ErrorKind::WouldBlock.into());
        assert_eq!(error.kind(), ErrorKind::LimitReached);
        assert!(error.to_string().starts_with(
            "could not start the thread onecopy-x: the system starts no more threads"
        ));
        assert!(error.help().unwrap().contains("ulimit -u"), "{error:?}");
        assert!(!error.help().unwrap().contains("decode"), "{error:?}");
        let decoder = no_thread("onecopy-decode-3", io::ErrorKind::WouldBlock.into());
        assert!(decoder.help().unwrap().ends_with("`decode_threads=2`"));
        let other = no_thread("onecopy-x", io::ErrorKind::InvalidInput.into());
        assert_eq!(other.kind(), ErrorKind::Io);
    }

    #[test]
    fn asking_for_threads_leaves_none_behind() {
        check_threads("test", 4).unwrap();
    }
}
