//! Runtimes for the network. tokio panics where it lacks a thread or a file for signals, so both are asked for before.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tokio::runtime::{Builder, Runtime};

use super::{check_threads, no_thread};
use crate::error::{Error, Result};

/// Files that a runtime opens: an epoll and a copy of it, an eventfd, and for signals a pair of sockets and a copy of one.
const FILES: usize = 6;

/// A runtime for the network, a thread for each of up to eight cores, named `onecopy-<name>`.
///
/// `LimitReached` where the system starts no more threads, or opens no more files.
pub(crate) fn runtime_named(name: &str) -> Result<Runtime> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let workers = cores.clamp(1, 8);
    check_threads(name, workers)?;
    let name = format!("onecopy-{name}");
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(workers).thread_name(&name);
    build(&name, builder)
}

/// A runtime on the calling thread, for `name` as an error calls it.
///
/// # Errors
///
/// `LimitReached` where the system opens no more files.
pub fn runtime_here(name: &str) -> Result<Runtime> {
    build(name, Builder::new_current_thread())
}

fn build(name: &str, mut builder: Builder) -> Result<Runtime> {
    check_files(name, FILES)?;
    builder.enable_all();
    let built = catch_unwind(AssertUnwindSafe(|| builder.build()));
    let Ok(built) = built else {
        // What was there a moment ago was taken by others since: rarely.
        check_files(name, FILES)?;
        return Err(no_thread(name, io::ErrorKind::WouldBlock.into()));
    };
    built.map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock => no_thread(name, error),
        _ => Error::io("start", name, error),
    })
}

/// Holds that `count` more files can be opened, which `name` needs to start, by opening and closing pipes.
///
/// # Errors
///
/// `LimitReached` where they cannot.
pub fn check_files(name: &str, count: usize) -> Result<()> {
    // A pipe has two ends.
    let pipes = (0..count.div_ceil(2)).map(|_| io::pipe());
    let opened: io::Result<Vec<_>> = pipes.collect();
    opened
        .map(drop)
        .map_err(|error| Error::io("start", name, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asking_for_files_leaves_none_open() {
        for _ in 0..10_000 {
            check_files("test", 7).unwrap();
        }
    }

    #[test]
    fn a_runtime_on_this_thread_runs_and_waits() {
        let runtime = runtime_here("test").unwrap();
        let waited = runtime.block_on(async {
            tokio::time::sleep(std::time::Duration::ZERO).await;
            7
        });
        assert_eq!(waited, 7);
    }
}
