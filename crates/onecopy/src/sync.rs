//! Threads and locks: every room takes them from here, so that threads have names, locks do not poison, and a machine
//! that has no thread to give is an error and never a panic.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use crate::error::{Error, ErrorKind, Result};

pub use crossbeam_channel as channel;
pub use parking_lot::{Condvar, Mutex};
pub use std::sync::Arc;
pub use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// How long a thread of [`Threads`] waits for work before it ends.
const IDLE: Duration = Duration::from_secs(10);

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

type Job = Box<dyn FnOnce() + Send>;

/// Threads for work that waits for the machine (a disk, a look-up of a name), awaited by tasks. Started as they are
/// needed, ended when they have been idle for a while or the last handle is dropped.
#[derive(Clone)]
pub(crate) struct Threads {
    name: &'static str,
    most: usize,
    shared: Arc<Shared>,
    /// The threads have no handle: the last one dropped tells them to end.
    _handle: Arc<Handle>,
}

struct Shared {
    /// Guards the queue; held for a push or a pop.
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Job>,
    threads: usize,
    idle: usize,
    is_closed: bool,
}

struct Handle(Arc<Shared>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.state.lock().is_closed = true;
        self.0.changed.notify_all();
    }
}

impl std::fmt::Debug for Threads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Threads({} of {})", self.name, self.most)
    }
}

impl Threads {
    /// None yet; `most` at a time, each named `onecopy-<name>`.
    pub(crate) fn new(name: &'static str, most: usize) -> Self {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        Self {
            name,
            most,
            _handle: Arc::new(Handle(Arc::clone(&shared))),
            shared,
        }
    }

    /// Runs `work` on one of the threads and gives its result. Dropping the future lets the work go on unheard.
    ///
    /// # Errors
    ///
    /// `LimitReached` where there is no thread and none can be started; where there are some, the work waits for one.
    /// `Bug` where the work panicked.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        let (answer, answered) = oneshot::channel();
        self.submit(Box::new(move || {
            // Nobody listens where the future was dropped.
            let _unheard = answer.send(work());
        }))?;
        answered.await.map_err(|_panicked| {
            Error::bug(
                format!("run work on the thread {}", self.name),
                "it panicked",
            )
        })
    }

    fn submit(&self, job: Job) -> Result<()> {
        let mut state = self.shared.state.lock();
        if state.idle <= state.queue.len() && state.threads < self.most {
            let shared = Arc::clone(&self.shared);
            match spawn(self.name, move || shared.work()) {
                Ok(_runs_until_it_is_idle) => state.threads += 1,
                Err(error) if state.threads == 0 => return Err(error),
                // One of those that run will take it.
                Err(_) => {}
            }
        }
        state.queue.push_back(job);
        drop(state);
        self.shared.changed.notify_one();
        Ok(())
    }
}

impl Shared {
    fn work(&self) {
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.queue.pop_front() {
                drop(state);
                // A panic has been printed; whoever waits sees that there is no answer.
                let _panicked = catch_unwind(AssertUnwindSafe(job));
                state = self.state.lock();
                continue;
            }
            if state.is_closed {
                break;
            }
            state.idle += 1;
            let is_over = self.changed.wait_for(&mut state, IDLE).timed_out();
            state.idle -= 1;
            if is_over && state.queue.is_empty() {
                break;
            }
        }
        state.threads -= 1;
    }
}

/// A runtime for the network, a thread for each of up to eight cores, named `onecopy-<name>`.
///
/// `LimitReached` where the system starts no more threads.
pub(crate) fn runtime_named(name: &str) -> Result<Runtime> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let workers = cores.clamp(1, 8);
    check_threads(name, workers)?;
    let name = format!("onecopy-{name}");
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder
        .worker_threads(workers)
        .thread_name(&name)
        .enable_all();
    // tokio panics where it cannot start a worker: rarely, since the threads were there a moment ago.
    catch_unwind(AssertUnwindSafe(|| builder.build()))
        .map_err(|_panic| io::Error::from(io::ErrorKind::WouldBlock))
        .flatten()
        .map_err(|error| no_thread(&name, error))
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

    #[tokio::test]
    async fn work_is_run_by_few_threads_and_all_of_it() {
        let threads = Threads::new("test", 3);
        let mut running = tokio::task::JoinSet::new();
        for number in 0..100_u64 {
            let threads = threads.clone();
            running.spawn(async move { threads.run(move || number).await.unwrap() });
        }
        let mut sum = 0;
        while let Some(number) = running.join_next().await {
            sum += number.unwrap();
        }
        assert_eq!(sum, 4950);
        assert!(threads.shared.state.lock().threads <= 3);
    }

    #[tokio::test]
    async fn a_panic_is_told_and_costs_no_thread() {
        let threads = Threads::new("test", 1);
        let error = threads
            .run(|| assert!(false_by_design(), "on purpose"))
            .await;
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Bug);
        assert_eq!(threads.run(|| 7).await.unwrap(), 7);
    }

    fn false_by_design() -> bool {
        std::hint::black_box(false)
    }

    #[test]
    fn threads_end_with_their_last_handle() {
        let threads = Threads::new("test", 2);
        let shared = Arc::clone(&threads.shared);
        let (entered, seen) = channel::bounded(0);
        threads
            .submit(Box::new(move || entered.send(()).unwrap()))
            .unwrap();
        seen.recv().unwrap();
        drop(threads);
        while shared.state.lock().threads > 0 {
            std::thread::yield_now();
        }
    }

    #[test]
    fn asking_for_threads_leaves_none_behind() {
        check_threads("test", 4).unwrap();
    }
}
