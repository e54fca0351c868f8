//! What all items of one transfer share.

use std::future::Future;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::folder::OPEN_FOLDERS;
use super::memory::Memory;
use super::settings::{Action, Item, Observer, Settings, Stop, Summary};
use crate::config::default_memory_bytes;
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::{Ledger, OpenHop};
use crate::route::{Hop, Route};
use crate::size::{MIB, PAGE};
use crate::store::files_left;
use crate::sync::{Arc, Mutex, Threads};

/// How often a transfer looks whether it is to stop: well within the time in which a command must end after Ctrl-C.
const STOP_TICK: Duration = Duration::from_millis(25);

/// Ranges on their way beyond one per connection: those at the disk while the next are on the wire, and one or more that wait
/// for a connection, which is how the store sees that it could use another. Each holds memory, and memory that was never
/// touched costs more than receiving into it: 1 GiB at once, of which each piece was used once, took 0.3 CPU seconds.
const RANGES_BESIDE: usize = 8;

/// Memory below this holds too few ranges for anything to overlap.
const LEAST_MEMORY: usize = 16 * MIB;

/// Ranges that wait for a disk at the same time, at most: as many as are on their way with 256 connections.
const DISK_THREADS: usize = 512;

/// Descriptors of a file on its way: itself, once more for O_DIRECT, and its folder.
const OPEN_PER_FILE: usize = 3;

#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Counts {
    pub(super) copied: u64,
    pub(super) copied_bytes: u64,
    pub(super) deleted: u64,
    pub(super) unchanged: u64,
    pub(super) failed: u64,
}

/// The surroundings of every item.
pub(super) struct Shared {
    pub(super) settings: Settings,
    pub(super) memory: Memory,
    pub(super) ledger: Arc<Ledger>,
    disk: Threads,
    /// One permit per range that is on its way.
    flights: Arc<Semaphore>,
    /// Guards how many permits there are; held to add some.
    flights_given: Mutex<usize>,
    /// One permit per file that is held open; taken before any flight.
    files: Arc<Semaphore>,
    observer: Arc<dyn Observer>,
    stop: Stop,
    /// Whoever holds it looks whether to stop, for all that wait for it: timers of a thousand items would cost more than
    /// small items do.
    watch: tokio::sync::Mutex<()>,
    /// Guards the counts; held for an addition.
    counts: Mutex<Counts>,
}

impl Shared {
    pub(super) fn new(
        shown: String,
        mut settings: Settings,
        observer: Arc<dyn Observer>,
        stop: Stop,
    ) -> Result<Arc<Self>> {
        let memory_bytes = settings.memory_bytes.unwrap_or_else(default_memory_bytes);
        if memory_bytes < LEAST_MEMORY {
            let why = format!("it is less than {} MiB", LEAST_MEMORY / MIB);
            let target = format!("{memory_bytes} bytes of memory");
            return Err(Error::new(ErrorKind::InvalidInput, "use", target, why)
                .with_help("256MiB is a good start"));
        }
        // Whole pages, for O_DIRECT; and several ranges must fit.
        settings.range_bytes = settings.range_bytes.clamp(PAGE, memory_bytes / 8) / PAGE * PAGE;
        let ledger = Ledger::open(shown, Route::Stream, "disk");
        let wanted = settings.store.limits.connections.max(1);
        let (sockets, files) = share_out(wanted, files_left());
        settings.store.limits.connections = sockets;
        if sockets < wanted {
            ledger.note(format!(
                "connections: at most {sockets} of the {wanted} allowed, so that the process may open files, too: raise \
                 the limit (ulimit -n), or lower `connections`"
            ));
        }
        let limits = &settings.store.limits;
        let first = limits.connections_at_first.min(limits.connections).max(1);
        let flights = first + RANGES_BESIDE;
        Ok(Arc::new(Self {
            memory: Memory::new(memory_bytes, settings.is_locking, &ledger),
            ledger,
            disk: Threads::new("disk", DISK_THREADS),
            flights: Arc::new(Semaphore::new(flights)),
            flights_given: Mutex::new(flights),
            files: Arc::new(Semaphore::new(files.min(Semaphore::MAX_PERMITS))),
            settings,
            observer,
            stop,
            watch: tokio::sync::Mutex::new(()),
            counts: Mutex::new(Counts::default()),
        }))
    }

    pub(super) fn hop(&self, hop: Hop) -> OpenHop {
        self.ledger.hop(hop)
    }

    /// Waits until one more range may be on its way.
    pub(super) async fn flight(&self) -> Result<OwnedSemaphorePermit> {
        self.most_flights();
        let permit = Arc::clone(&self.flights).acquire_owned().await;
        permit.map_err(|closed| Error::bug("begin a range", closed.to_string()))
    }

    /// Waits until one more file may be open.
    pub(super) async fn file(&self) -> Result<OwnedSemaphorePermit> {
        let permit = Arc::clone(&self.files).acquire_owned().await;
        permit.map_err(|closed| Error::bug("open a file", closed.to_string()))
    }

    /// How many ranges may be on their way: as the store allows more connections, more.
    pub(super) fn most_flights(&self) -> usize {
        let wanted = self.ledger.connections() + RANGES_BESIDE;
        let mut given = self.flights_given.lock();
        if wanted > *given {
            self.flights.add_permits(wanted - *given);
            *given = wanted;
        }
        *given
    }

    /// Bytes that are at their target.
    pub(super) fn moved(&self, bytes: u64) {
        self.ledger.mark_first();
        self.ledger.delivered_bytes(bytes);
        self.observer.moved(bytes);
    }

    pub(super) fn unchanged(&self) {
        self.counts.lock().unchanged += 1;
    }

    /// Counts and tells an item that is done.
    pub(super) fn done(
        &self,
        action: Action,
        source: &str,
        target: Option<&str>,
        result: &Result<Option<u64>>,
    ) {
        let is_planned = self.settings.is_dry_run;
        let len_bytes = result.as_ref().ok().copied().flatten();
        {
            let mut counts = self.counts.lock();
            match (result, action) {
                (Ok(_), Action::Copy) => {
                    counts.copied += 1;
                    counts.copied_bytes += len_bytes.unwrap_or(0);
                }
                (Ok(_), Action::Delete) => counts.deleted += 1,
                (Err(_), _) => counts.failed += 1,
            }
        }
        self.observer.item(&Item {
            action,
            source,
            target,
            len_bytes,
            is_planned,
            error: result.as_ref().err(),
        });
    }

    /// How many items failed so far.
    pub(super) fn failed(&self) -> u64 {
        self.counts.lock().failed
    }

    /// Counts and tells an item that cannot be done.
    pub(super) fn refused(&self, source: &str, target: Option<&str>, error: Error) {
        self.done(Action::Copy, source, target, &Err(error));
    }

    /// Runs `work` until it is done or the transfer is to stop. `work` is then dropped.
    pub(super) async fn until_stopped<T>(
        &self,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        tokio::select! {
            biased;
            done = work => done,
            () = self.stopped() => Err(cancelled()),
        }
    }

    /// Runs `work`, which may wait for a disk, where waiting harms nobody.
    pub(super) async fn on_a_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.disk.run(work).await?
    }

    /// Lets what the disk is busy with come to its end, but waits no longer than `limit`.
    pub(super) fn finish_disk(&self, limit: Duration) {
        self.disk.finish(limit);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.is_set()
    }

    async fn stopped(&self) {
        let _watch = self.watch.lock().await;
        while !self.stop.is_set() {
            tokio::time::sleep(STOP_TICK).await;
        }
    }

    /// Tells of a transfer that ends by an error what it came to until then.
    pub(super) fn ended(&self) {
        self.observer.ended(&self.summary());
    }

    /// What it came to.
    pub(super) fn summary(&self) -> Summary {
        self.ledger.finish();
        let counts = *self.counts.lock();
        Summary {
            copied: counts.copied,
            copied_bytes: counts.copied_bytes,
            deleted: counts.deleted,
            unchanged: counts.unchanged,
            failed: counts.failed,
            is_dry_run: self.settings.is_dry_run,
            ledger: self.ledger.report(),
        }
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Shared({:?})", self.counts.lock())
    }
}

/// How many connections and how many files may be open at a time, where this process may open `left` more of both.
fn share_out(connections: usize, left: Option<usize>) -> (usize, usize) {
    let Some(left) = left else {
        return (connections, usize::MAX);
    };
    let sockets = connections.min((left / 2).max(1));
    let rest = left.saturating_sub(sockets + OPEN_FOLDERS);
    (sockets, (rest / OPEN_PER_FILE).max(1))
}

/// The error of what was stopped.
pub(super) fn cancelled() -> Error {
    Error::new(ErrorKind::Cancelled, "finish", "", "interrupted")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_and_files_share_what_the_process_may_open() {
        for (connections, left, wanted) in [
            (256, None, (256, usize::MAX)),
            (256, Some(1_000_000), (256, 333_226)),
            (256, Some(940), (256, 206)),
            (256, Some(180), (90, 8)),
            (256, Some(60), (30, 1)),
            (256, Some(1), (1, 1)),
            (4, Some(180), (4, 37)),
        ] {
            assert_eq!(share_out(connections, left), wanted, "{left:?}");
        }
    }
}
