//! The ledger while the run goes on: atomics that any thread may add to.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::OpenHop;
use super::cache_count::CacheCount;
use super::hop_count::HopCount;
use super::network::Network;
use super::pulse::Pulse;
use super::report::{self, Report};
use super::skipped;
use super::skipped::{Lost, Skipped};
use super::sources::Sources;
use crate::route::{Fallback, Hop, Route};
use crate::sync::{Arc, AtomicU64, Mutex, Ordering};

/// Whom a wait is charged to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// The training loop waited for a batch: the number this project exists to bring to zero.
    Consumer,
    /// The sample stage waited for bytes from the store.
    Network,
    /// The sample stage waited for a free decoder.
    Decode,
    /// The sample stage waited until the consumer took a batch.
    Device,
    /// A range waited for a free slab.
    Pool,
}

const WAITS: usize = 5;

/// What is not counted by atomics: rare events, with names.
#[derive(Debug, Default)]
pub(super) struct Events {
    pub(super) fallbacks: Vec<Fallback>,
    pub(super) retries: BTreeMap<String, u64>,
    pub(super) skipped: Skipped,
    pub(super) warnings: BTreeMap<String, u64>,
    pub(super) verified: BTreeMap<String, u64>,
    pub(super) notes: Vec<String>,
}

/// A running account of one load.
#[derive(Debug)]
pub struct Ledger {
    urls: String,
    route: Route,
    device: String,
    started: Instant,
    cpu_at_start: Duration,
    hops: Vec<HopCount>,
    waits_nanos: [AtomicU64; WAITS],
    payload_bytes: AtomicU64,
    samples: AtomicU64,
    batches: AtomicU64,
    /// What came of each source.
    pub(super) sources: Sources,
    first_batch_nanos: AtomicU64,
    finished_nanos: AtomicU64,
    finished_cpu_nanos: AtomicU64,
    pool_bytes: AtomicU64,
    locked_bytes: AtomicU64,
    disk_written_bytes: AtomicU64,
    disk_read_bytes: AtomicU64,
    network: Network,
    cache: CacheCount,
    pulse: Arc<Pulse>,
    /// Guards the rare, named events; never held over anything that waits.
    events: Mutex<Events>,
}

impl Ledger {
    /// Opens an account for reading `urls` by `route` to `device`. The clock starts now.
    #[must_use]
    pub fn open(urls: impl Into<String>, route: Route, device: impl Into<String>) -> Arc<Self> {
        Self::with_pulse(Arc::default(), urls, route, device)
    }

    fn with_pulse(
        pulse: Arc<Pulse>,
        urls: impl Into<String>,
        route: Route,
        device: impl Into<String>,
    ) -> Arc<Self> {
        Arc::new(Self {
            urls: urls.into(),
            route,
            device: device.into(),
            started: Instant::now(),
            cpu_at_start: report::process_cpu(),
            hops: Hop::ALL.iter().map(|_| HopCount::default()).collect(),
            waits_nanos: Default::default(),
            payload_bytes: AtomicU64::new(0),
            samples: AtomicU64::new(0),
            batches: AtomicU64::new(0),
            sources: Sources::default(),
            first_batch_nanos: AtomicU64::new(0),
            finished_nanos: AtomicU64::new(0),
            finished_cpu_nanos: AtomicU64::new(0),
            pool_bytes: AtomicU64::new(0),
            locked_bytes: AtomicU64::new(0),
            disk_written_bytes: AtomicU64::new(0),
            disk_read_bytes: AtomicU64::new(0),
            network: Network::default(),
            cache: CacheCount::default(),
            pulse,
            events: Mutex::new(Events::default()),
        })
    }

    /// An account that nobody will read: for reads outside any load.
    #[must_use]
    pub fn unread() -> Arc<Self> {
        Self::open("", Route::Stream, "cpu")
    }

    /// Another one that nobody will read, but that what it hears of is seen to move here.
    #[must_use]
    pub fn unread_beside(&self) -> Arc<Self> {
        Self::with_pulse(Arc::clone(&self.pulse), "", Route::Stream, "cpu")
    }

    pub(super) fn pulse(&self) -> &Arc<Pulse> {
        &self.pulse
    }

    /// How the cache does.
    #[must_use]
    pub fn cache(&self) -> &CacheCount {
        &self.cache
    }

    pub(super) fn network(&self) -> &Network {
        &self.network
    }

    /// Opens `hop` for counting.
    #[must_use]
    pub fn hop(self: &Arc<Self>, hop: Hop) -> OpenHop {
        OpenHop::new(Arc::clone(self), hop)
    }

    pub(super) fn add(&self, hop: Hop, bytes: u64, busy: Duration) {
        let count = &self.hops[hop.index()];
        count.bytes.fetch_add(bytes, Ordering::Relaxed);
        count.calls.fetch_add(1, Ordering::Relaxed);
        count.busy_nanos.fetch_add(nanos(busy), Ordering::Relaxed);
        self.pulse.stir();
    }

    /// Notes object bytes that were asked for and delivered.
    pub fn delivered_bytes(&self, bytes: u64) {
        self.payload_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Notes samples handed on to the consumer.
    pub fn delivered_samples(&self, samples: u64) {
        self.samples.fetch_add(samples, Ordering::Relaxed);
    }

    /// Notes one batch handed to the consumer.
    pub fn delivered_batch(&self) {
        self.batches.fetch_add(1, Ordering::Relaxed);
        self.mark_first();
    }

    /// Notes that the first result is there; later calls change nothing.
    pub fn mark_first(&self) {
        let now = nanos(self.started.elapsed()).max(1);
        let _first =
            self.first_batch_nanos
                .compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Charges `time` to `wait`.
    pub fn waited(&self, wait: Wait, time: Duration) {
        self.waits_nanos[wait as usize].fetch_add(nanos(time), Ordering::Relaxed);
    }

    /// Notes a request that was made again, by cause (`reset`, `short_body`, `throttled`).
    pub fn retried(&self, cause: &str) {
        self.pulse.stir();
        *self
            .events
            .lock()
            .retries
            .entry(cause.to_owned())
            .or_default() += 1;
    }

    /// Allows `max` samples and shards, together, to be left out; none allows any number.
    pub fn allow_skips(&self, max: Option<u64>) {
        self.events.lock().skipped.max_skipped = max;
    }

    /// Notes a sample that is left out, or a shard of which all or the rest is given up, by cause.
    ///
    /// # Errors
    ///
    /// What was left out before, where that is as much as may be: then nothing is noted. Exact, whoever else calls.
    pub fn leave_out(&self, lost: Lost, cause: &str) -> Result<(), Box<Skipped>> {
        self.events.lock().skipped.add(lost, cause)
    }

    /// Notes something odd that cost no sample, by name (`missing_eof`).
    pub fn warned(&self, name: &str) {
        *self
            .events
            .lock()
            .warnings
            .entry(name.to_owned())
            .or_default() += 1;
    }

    /// Notes an object whose bytes were held against the store's checksum and found right, by algorithm (`crc64nvme`).
    pub fn verified(&self, algorithm: &str) {
        *self
            .events
            .lock()
            .verified
            .entry(algorithm.to_owned())
            .or_default() += 1;
    }

    /// Notes a fact about this run in words, once (`memory is not page-locked: ..`).
    pub fn note(&self, text: impl Into<String>) {
        let text = text.into();
        let mut events = self.events.lock();
        if !events.notes.contains(&text) {
            events.notes.push(text);
        }
    }

    /// Notes a wish that was not granted.
    pub fn fell_back(&self, fallback: Fallback) {
        self.events.lock().fallbacks.push(fallback);
    }

    /// Takes over what another ledger counted of hops, warnings and what was left out: that of a part of this work.
    pub(crate) fn take_over(&self, part: &Self) {
        for (count, more) in self.hops.iter().zip(&part.hops) {
            count.add(more);
        }
        let report = part.report();
        let events = &mut *self.events.lock();
        events.skipped.take_over(report.skipped);
        skipped::add_counts(&mut events.warnings, report.warnings);
    }

    /// Notes the size of the pool and how much of it is locked in memory.
    pub fn pool(&self, pool_bytes: u64, locked_bytes: u64) {
        self.pool_bytes.store(pool_bytes, Ordering::Relaxed);
        self.locked_bytes.store(locked_bytes, Ordering::Relaxed);
    }

    /// Notes bytes written to a file.
    pub fn disk_written(&self, bytes: u64) {
        self.disk_written_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Notes bytes read from a file.
    pub fn disk_read(&self, bytes: u64) {
        self.disk_read_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Stops the clock: the run is over. The first call counts.
    pub fn finish(&self) {
        let now = nanos(self.started.elapsed()).max(1);
        if self
            .finished_nanos
            .compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
        {
            let cpu = report::process_cpu().saturating_sub(self.cpu_at_start);
            self.finished_cpu_nanos.store(nanos(cpu), Ordering::Relaxed);
        }
    }

    /// The account as it stands.
    #[must_use]
    pub fn report(&self) -> Report {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let seconds = |counter: &AtomicU64| Duration::from_nanos(load(counter)).as_secs_f64();
        let finished = load(&self.finished_nanos) > 0;
        let events = self.events.lock();
        let hops = Hop::ALL
            .iter()
            .zip(&self.hops)
            .filter(|(_, count)| load(&count.calls) > 0)
            .map(|(hop, count)| {
                report::HopReport::new(
                    hop.spec(),
                    load(&count.bytes),
                    load(&count.calls),
                    seconds(&count.busy_nanos),
                )
            })
            .collect();
        Report::new(report::Figures {
            urls: self.urls.clone(),
            route: self.route.name(),
            device: self.device.clone(),
            payload_bytes: load(&self.payload_bytes),
            samples: load(&self.samples),
            batches: load(&self.batches),
            passes: self.passes(),
            sources: self.sources.report(),
            seconds: if finished {
                seconds(&self.finished_nanos)
            } else {
                self.started.elapsed().as_secs_f64()
            },
            cpu_seconds: if finished {
                seconds(&self.finished_cpu_nanos)
            } else {
                report::process_cpu()
                    .saturating_sub(self.cpu_at_start)
                    .as_secs_f64()
            },
            first_batch_seconds: seconds(&self.first_batch_nanos),
            hops,
            cache: self.cache.figures(),
            disk: report::Disk {
                written_bytes: load(&self.disk_written_bytes),
                read_bytes: load(&self.disk_read_bytes),
            },
            waits: report::Waits {
                consumer_seconds: seconds(&self.waits_nanos[Wait::Consumer as usize]),
                network_seconds: seconds(&self.waits_nanos[Wait::Network as usize]),
                decode_seconds: seconds(&self.waits_nanos[Wait::Decode as usize]),
                device_seconds: seconds(&self.waits_nanos[Wait::Device as usize]),
                pool_seconds: seconds(&self.waits_nanos[Wait::Pool as usize]),
            },
            fallbacks: events.fallbacks.clone(),
            network: self.network.report(),
            retries: events.retries.clone(),
            skipped: events.skipped.clone(),
            warnings: events.warnings.clone(),
            verified: events.verified.clone(),
            notes: events.notes.clone(),
            pool_bytes: load(&self.pool_bytes),
            locked_bytes: load(&self.locked_bytes),
        })
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_copies_per_byte_and_leaves_transforms_out() {
        let ledger = Ledger::open("s3://b/a.tar", Route::Stream, "cpu");
        ledger.delivered_bytes(1000);
        ledger.hop(Hop::Recv).moved(990, Duration::from_millis(1));
        ledger.hop(Hop::HeadRest).moved(10, Duration::ZERO);
        ledger.hop(Hop::Decode).moved(900, Duration::from_millis(5));
        let copies = ledger.report().copies_per_byte;
        assert!((copies.cpu - 1.0).abs() < 1e-9);
        assert!((copies.user - 0.01).abs() < 1e-9);
        assert!(copies.dma.abs() < 1e-9);
    }

    #[test]
    fn finish_stops_the_clock_once() {
        let ledger = Ledger::unread();
        ledger.finish();
        let first = ledger.report().seconds;
        ledger.finish();
        assert!((ledger.report().seconds - first).abs() < f64::EPSILON);
    }
}
