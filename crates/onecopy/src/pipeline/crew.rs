//! The threads and tasks of a load, and their end.

use std::thread::JoinHandle;
use std::time::Duration;

use tokio::task::AbortHandle;

use super::budget::Budget;
use crate::error::{Error, Result};
use crate::ledger::{Await, Awaited, Ledger};
use crate::sync::{Arc, AtomicBool, Ordering, channel, spawn};

/// How long threads may take to end once they are told to. They look after each sample, so one that takes longer is in a
/// function of the caller's that does not return, or in a call to a disk that is dead.
const PATIENCE: Duration = Duration::from_secs(10);

/// Threads and tasks; stopped and joined on drop. A thread that does not come to its end is left behind, and ends whenever
/// what it is at lets it.
#[derive(Debug)]
pub(super) struct Crew {
    pub(super) is_stopped: Arc<AtomicBool>,
    /// See [`Stage`](super::sample_stage::Stage).
    pub(super) is_complete: Arc<AtomicBool>,
    fetcher: AbortHandle,
    pub(super) budget: Budget,
    threads: Vec<JoinHandle<()>>,
    /// Held by each thread until its end, so that all of them can be waited for with a limit; none once that was done.
    running: Option<channel::Sender<()>>,
    ended: channel::Receiver<()>,
    patience: Duration,
    ledger: Arc<Ledger>,
}

impl Crew {
    /// The task alone. Threads get no more patience than `wait_limit`, where there is one.
    pub(super) fn new(
        fetcher: AbortHandle,
        budget: Budget,
        wait_limit: Option<Duration>,
        ledger: &Arc<Ledger>,
    ) -> Self {
        let (running, ended) = channel::bounded(0);
        Self {
            is_stopped: Arc::new(AtomicBool::new(false)),
            is_complete: Arc::new(AtomicBool::new(false)),
            fetcher,
            budget,
            threads: Vec::new(),
            running: Some(running),
            ended,
            patience: wait_limit.map_or(PATIENCE, |limit| limit.min(PATIENCE)),
            ledger: Arc::clone(ledger),
        }
    }

    /// Starts a thread.
    ///
    /// # Errors
    ///
    /// `LimitReached` where the system starts no more.
    pub(super) fn start(
        &mut self,
        name: impl AsRef<str>,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<()> {
        let running = self.running.clone();
        let thread = spawn(name, move || {
            work();
            drop(running);
        })?;
        self.threads.push(thread);
        Ok(())
    }

    /// What a queue that ended means: the end, or that a thread died, which must never look like one.
    pub(super) fn check_end(&self) -> Result<()> {
        if self.is_complete.load(Ordering::Acquire) {
            return Ok(());
        }
        Err(Error::bug("read the shards", "the sample thread died"))
    }

    /// Says what is left behind: threads of this load, and calls to a disk that have not come back for so long.
    fn note_left(&self, threads: &[JoinHandle<()>]) {
        // The last one to start is the one that the others wait for.
        let names: Vec<&str> = threads
            .iter()
            .rev()
            .filter_map(|thread| thread.thread().name())
            .collect();
        let is_left = |one: &Awaited| match one.kind {
            Await::Disk => one.time >= self.patience,
            Await::Answer | Await::Decoder => !names.is_empty(),
            Await::Request | Await::Memory => false,
        };
        let awaited = self.ledger.awaited();
        let left: Vec<String> = awaited
            .into_iter()
            .filter(is_left)
            .map(|one| format!("{}, for {} s", one.what, one.time.as_secs()))
            .collect();
        if names.is_empty() && left.is_empty() {
            return;
        }
        let note = format!(
            "closed without waiting any longer; left behind: {}; still waited for: {}",
            told(&names),
            told(&left)
        );
        tracing::warn!("{note}");
        self.ledger.note(note);
    }
}

/// The first few of a list, in words.
fn told(list: &[impl AsRef<str>]) -> String {
    const FEW: usize = 3;
    let mut few: Vec<&str> = list.iter().take(FEW).map(AsRef::as_ref).collect();
    let more = format!("and {} more", list.len().saturating_sub(FEW));
    match list.len() {
        0 => few.push("nothing"),
        len if len > FEW => few.push(&more),
        _ => {}
    }
    few.join("; ")
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
        drop(self.running.take());
        // Nothing is ever sent: it ends when the last thread does, or after the time.
        let waited = self.ended.recv_timeout(self.patience);
        let has_all = waited == Err(channel::RecvTimeoutError::Disconnected);
        let (over, left): (Vec<_>, Vec<_>) = std::mem::take(&mut self.threads)
            .into_iter()
            .partition(|thread| has_all || thread.is_finished());
        for thread in over {
            // A thread that panicked has said so on stderr; whoever waited for it was told, too.
            let _panic = thread.join();
        }
        self.note_left(&left);
        self.ledger.finish();
    }
}
