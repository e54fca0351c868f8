//! What came from the store is written beside, by a thread of its own: the buffers that are read are the buffers that are written, and
//! nobody waits for it.

use std::fmt;
use std::io;
use std::thread::JoinHandle;

use super::entry::Entry;
use crate::buffer::Slice;
use crate::error::Result;
use crate::ledger::OpenHop;
use crate::sync::channel::{Receiver, Sender, unbounded};
use crate::sync::{Arc, AtomicBool, AtomicUsize, Ordering, spawn};

/// Bytes on their way to the disk.
struct Job {
    entry: Arc<Entry>,
    offset: u64,
    bytes: Slice,
}

/// Writes behind the back of whoever reads.
pub(super) struct Tee {
    /// None once it is to end.
    jobs: Option<Sender<Job>>,
    writer: Option<JoinHandle<()>>,
    state: Arc<State>,
    /// What is on its way holds memory of the pool, so it may not be much: a slow disk then loses pieces, and no batch waits.
    most_bytes: usize,
}

struct State {
    hop: OpenHop,
    waiting_bytes: AtomicUsize,
    /// Set once the disk has refused a piece: the rest would be refused as well, each after a wait.
    is_off: AtomicBool,
}

impl Tee {
    /// With room for `most_bytes` on their way.
    ///
    /// # Errors
    ///
    /// `LimitReached` where no thread can be started.
    pub(super) fn new(hop: &OpenHop, most_bytes: usize) -> Result<Self> {
        let (jobs, work) = unbounded();
        let state = Arc::new(State {
            hop: hop.clone(),
            waiting_bytes: AtomicUsize::new(0),
            is_off: AtomicBool::new(false),
        });
        let mine = Arc::clone(&state);
        let writer = spawn("tee", move || mine.run(&work))?;
        Ok(Self {
            jobs: Some(jobs),
            writer: Some(writer),
            state,
            most_bytes,
        })
    }

    /// Has bytes of an object written, if there is room for them: else they are not cached this time, which is counted.
    pub(super) fn offer(&self, entry: &Arc<Entry>, offset: u64, bytes: &Slice) {
        if bytes.is_empty() || self.is_off() {
            return;
        }
        let waiting = &self.state.waiting_bytes;
        let before = waiting.fetch_add(bytes.len(), Ordering::Relaxed);
        let job = Job {
            entry: Arc::clone(entry),
            offset,
            bytes: bytes.clone(),
        };
        let has_room = before == 0 || before + bytes.len() <= self.most_bytes;
        let sent = has_room
            && self
                .jobs
                .as_ref()
                .is_some_and(|jobs| jobs.send(job).is_ok());
        if !sent {
            waiting.fetch_sub(bytes.len(), Ordering::Relaxed);
            let ledger = self.state.hop.ledger();
            ledger.cache().dropped(bytes.len() as u64);
        }
    }

    /// Whether nothing is written any more.
    pub(super) fn is_off(&self) -> bool {
        self.state.is_off.load(Ordering::Relaxed)
    }
}

impl State {
    fn run(&self, jobs: &Receiver<Job>) {
        for Job {
            entry,
            offset,
            bytes,
        } in jobs
        {
            if !self.is_off.load(Ordering::Relaxed)
                && let Err(error) = entry.write(&self.hop, offset, &bytes)
            {
                self.refused(&error);
            }
            let len = bytes.len();
            drop(bytes);
            self.waiting_bytes.fetch_sub(len, Ordering::Relaxed);
        }
    }

    fn refused(&self, error: &io::Error) {
        self.is_off.store(true, Ordering::Relaxed);
        self.hop.ledger().note(format!(
            "nothing more is written to the cache, and the data is streamed: {error}"
        ));
    }
}

impl Drop for Tee {
    /// Writes what is on its way, which is little.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(writer) = self.writer.take() {
            let _panicked = writer.join();
        }
    }
}

impl fmt::Debug for Tee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiting = self.state.waiting_bytes.load(Ordering::Relaxed);
        write!(f, "Tee({waiting} bytes on their way)")
    }
}
