//! Threads for work that waits for the machine, awaited by tasks.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::{Arc, Condvar, Mutex, spawn};
use crate::error::{Error, Result};

type Job = Box<dyn FnOnce() + Send>;

/// How long a thread waits for work before it ends.
const IDLE: Duration = Duration::from_secs(10);

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
    /// Told when there may be nothing left to do.
    rested: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Job>,
    threads: usize,
    idle: usize,
    is_closed: bool,
}

impl State {
    /// Whether nothing is being done and nothing waits.
    fn is_at_rest(&self) -> bool {
        self.queue.is_empty() && self.threads == self.idle
    }
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
            rested: Condvar::new(),
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

    /// Drops what has not begun, and waits until what has is done, but no longer than `limit`.
    pub(crate) fn finish(&self, limit: Duration) {
        let end = Instant::now() + limit;
        let mut state = self.shared.state.lock();
        let unbegun = std::mem::take(&mut state.queue);
        // Not under the lock: what is dropped may be the last holder of anything.
        drop(state);
        drop(unbegun);
        state = self.shared.state.lock();
        while !state.is_at_rest() {
            if self.shared.rested.wait_until(&mut state, end).timed_out() {
                return;
            }
        }
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
            self.rested.notify_all();
            let is_over = self.changed.wait_for(&mut state, IDLE).timed_out();
            state.idle -= 1;
            if is_over && state.queue.is_empty() {
                break;
            }
        }
        state.threads -= 1;
        self.rested.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::super::channel;
    use super::*;
    use crate::error::ErrorKind;

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
    fn what_has_begun_is_waited_for_and_what_has_not_is_dropped() {
        let threads = Threads::new("test", 1);
        let (enter, entered) = channel::bounded(0);
        let (finish, may_finish) = channel::bounded::<()>(0);
        let done = Arc::new(super::super::AtomicBool::new(false));
        let (set, ordering) = (Arc::clone(&done), super::super::Ordering::SeqCst);
        threads
            .submit(Box::new(move || {
                enter.send(()).unwrap();
                let _released = may_finish.recv();
                set.store(true, ordering);
            }))
            .unwrap();
        entered.recv().unwrap();
        let unbegun = Arc::new(());
        let held = Arc::clone(&unbegun);
        threads.submit(Box::new(move || drop(held))).unwrap();
        threads.finish(Duration::ZERO);
        assert!(!done.load(ordering), "a limit is obeyed");
        assert_eq!(Arc::strong_count(&unbegun), 1, "dropped without being run");
        drop(finish);
        threads.finish(Duration::from_secs(60));
        assert!(done.load(ordering));
    }
}
