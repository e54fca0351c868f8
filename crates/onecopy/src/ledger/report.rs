//! The ledger as a value: the JSON form that every command, report and binding shows.

use std::collections::BTreeMap;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use serde::Serialize;

use super::network::NetworkReport;
use super::skipped::Skipped;
use super::sources::SourceReport;
use crate::route::{Fallback, Hop, HopSpec, Kind, Mover, Space};

/// Bytes moved by one hop.
#[derive(Debug, Clone, Serialize)]
pub struct HopReport {
    /// The hop's name.
    pub hop: &'static str,
    /// Where the bytes came from.
    pub from: &'static str,
    /// Where they went.
    pub to: &'static str,
    /// Who carried them.
    pub by: Mover,
    /// In whose time.
    pub space: Space,
    /// Copy or transform.
    pub kind: Kind,
    /// How many bytes went in.
    pub bytes: u64,
    /// In how many calls.
    pub calls: u64,
    /// How long the movers were busy, added up over threads, in seconds.
    pub busy_seconds: f64,
    /// How we know: `counted` means that our own code moved and counted them.
    pub evidence: &'static str,
}

impl HopReport {
    pub(super) fn new(spec: HopSpec, bytes: u64, calls: u64, busy_seconds: f64) -> Self {
        Self {
            hop: spec.name,
            from: spec.from.name(),
            to: spec.to.name(),
            by: spec.by,
            space: spec.space,
            kind: spec.kind,
            bytes,
            calls,
            busy_seconds,
            evidence: "counted",
        }
    }
}

/// How often each payload byte was copied.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct CopiesPerByte {
    /// By a CPU core, kernel and user space together.
    pub cpu: f64,
    /// Of these, in user space.
    pub user: f64,
    /// By DMA.
    pub dma: f64,
}

/// Who waited for whom, in seconds.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Waits {
    /// The training loop, for a batch.
    pub consumer_seconds: f64,
    /// The sample stage, for bytes from the store.
    pub network_seconds: f64,
    /// The sample stage, for a free decoder.
    pub decode_seconds: f64,
    /// The sample stage, until the consumer took a batch off the device's queue.
    pub device_seconds: f64,
    /// A range, for a free slab.
    pub pool_seconds: f64,
}

/// Disk traffic of our own making.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Disk {
    /// Bytes written.
    pub written_bytes: u64,
    /// Bytes read.
    pub read_bytes: u64,
}

/// How the cache did. All zero where there is none.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct CacheFigures {
    /// Ranges found.
    pub hits: u64,
    /// Ranges fetched.
    pub misses: u64,
    /// Hits over both, or null where there was no cache.
    pub hit_rate: Option<f64>,
    /// Bytes found.
    pub hit_bytes: u64,
    /// Bytes fetched.
    pub miss_bytes: u64,
    /// Pieces on the disk that were not what was written; they were fetched again.
    pub damaged: u64,
    /// Bytes fetched and not kept, because the disk was behind.
    pub dropped_bytes: u64,
}

/// Requests made again.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Retries {
    /// How many.
    pub total: u64,
    /// By cause.
    pub by_cause: BTreeMap<String, u64>,
}

/// A ledger, closed or as it stood when asked: `"schema": 1`.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The version of this form.
    pub schema: u32,
    /// The version of onecopy.
    pub version: &'static str,
    /// What was read.
    pub urls: String,
    /// The route taken.
    pub route: &'static str,
    /// Where the batches went.
    pub device: String,
    /// Object bytes that were asked for and delivered.
    pub payload_bytes: u64,
    /// Samples handed to the consumer.
    pub samples: u64,
    /// Batches handed to the consumer.
    pub batches: u64,
    /// How often the shards were begun: more than once where steps are given out that need more than they have.
    pub passes: u64,
    /// What came of each source; nothing where there is one.
    pub sources: Vec<SourceReport>,
    /// Wall-clock time.
    pub seconds: f64,
    /// CPU time of this process, user and system.
    pub cpu_seconds: f64,
    /// From the start to the first result.
    pub first_batch_seconds: f64,
    /// The path, hop by hop.
    pub hops: Vec<HopReport>,
    /// How often each payload byte was copied.
    pub copies_per_byte: CopiesPerByte,
    /// Disk traffic of our own making.
    pub disk: Disk,
    /// Who waited for whom.
    pub waits: Waits,
    /// How the cache did.
    pub cache: CacheFigures,
    /// Wishes that were not granted.
    pub fallbacks: Vec<Fallback>,
    /// What the network was like.
    pub network: NetworkReport,
    /// Requests made again.
    pub retries: Retries,
    /// What was left out.
    pub skipped: Skipped,
    /// Oddities that cost no sample, by name.
    pub warnings: BTreeMap<String, u64>,
    /// Objects whose bytes had the checksum that the store gives for the whole of them, by algorithm.
    pub verified: BTreeMap<String, u64>,
    /// Facts about this run, in words.
    pub notes: Vec<String>,
    /// The pool's size.
    pub pool_bytes: u64,
    /// How much of the pool is locked in memory, by the kernel's leave.
    pub locked_bytes: u64,
    /// The most memory this process ever held.
    pub peak_rss_bytes: u64,
}

/// What a running ledger knows, before the sums are made.
#[derive(Debug)]
pub(super) struct Figures {
    pub(super) urls: String,
    pub(super) route: &'static str,
    pub(super) device: String,
    pub(super) payload_bytes: u64,
    pub(super) samples: u64,
    pub(super) batches: u64,
    pub(super) passes: u64,
    pub(super) sources: Vec<SourceReport>,
    pub(super) seconds: f64,
    pub(super) cpu_seconds: f64,
    pub(super) first_batch_seconds: f64,
    pub(super) hops: Vec<HopReport>,
    pub(super) disk: Disk,
    pub(super) cache: CacheFigures,
    pub(super) waits: Waits,
    pub(super) fallbacks: Vec<Fallback>,
    pub(super) network: NetworkReport,
    pub(super) retries: BTreeMap<String, u64>,
    pub(super) skipped: Skipped,
    pub(super) warnings: BTreeMap<String, u64>,
    pub(super) verified: BTreeMap<String, u64>,
    pub(super) notes: Vec<String>,
    pub(super) pool_bytes: u64,
    pub(super) locked_bytes: u64,
}

impl Report {
    pub(super) fn new(figures: Figures) -> Self {
        Self {
            schema: 1,
            version: env!("CARGO_PKG_VERSION"),
            copies_per_byte: copies_per_byte(&figures.hops, figures.payload_bytes),
            urls: figures.urls,
            route: figures.route,
            device: figures.device,
            payload_bytes: figures.payload_bytes,
            samples: figures.samples,
            batches: figures.batches,
            passes: figures.passes,
            sources: figures.sources,
            seconds: figures.seconds,
            cpu_seconds: figures.cpu_seconds,
            first_batch_seconds: figures.first_batch_seconds,
            hops: figures.hops,
            disk: figures.disk,
            waits: figures.waits,
            cache: figures.cache,
            fallbacks: figures.fallbacks,
            network: figures.network,
            retries: Retries {
                total: figures.retries.values().sum(),
                by_cause: figures.retries,
            },
            skipped: figures.skipped,
            warnings: figures.warnings,
            verified: figures.verified,
            notes: figures.notes,
            pool_bytes: figures.pool_bytes,
            locked_bytes: figures.locked_bytes,
            peak_rss_bytes: peak_rss(),
        }
    }

    /// The JSON form, on one line.
    ///
    /// # Panics
    ///
    /// Never: a report has string keys and finite numbers only.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a report has string keys and finite numbers only")
    }
}

fn copies_per_byte(hops: &[HopReport], payload_bytes: u64) -> CopiesPerByte {
    let arrived = arrived_bytes(hops, payload_bytes);
    let per_byte = |counts: &dyn Fn(&HopReport) -> bool| {
        let bytes: u64 = hops
            .iter()
            .filter(|hop| hop.kind == Kind::Copy && counts(hop))
            .map(|hop| hop.bytes)
            .sum();
        if arrived == 0 {
            0.0
        } else {
            bytes as f64 / arrived as f64
        }
    };
    CopiesPerByte {
        cpu: per_byte(&|hop| hop.by == Mover::Cpu),
        user: per_byte(&|hop| hop.by == Mover::Cpu && hop.space == Space::User),
        dma: per_byte(&|hop| hop.by == Mover::Dma),
    }
}

/// Bytes that came in: more than the payload where a load ended early and left what was read ahead.
pub(super) fn arrived_bytes(hops: &[HopReport], payload_bytes: u64) -> u64 {
    let outer = [Hop::Recv, Hop::TlsOpen, Hop::Read].map(|hop| hop.spec().name);
    let came: u64 = hops
        .iter()
        .filter(|hop| outer.contains(&hop.hop))
        .map(|hop| hop.bytes)
        .sum();
    came.max(payload_bytes)
}

/// CPU time that this process has used so far, user and system.
pub(super) fn process_cpu() -> Duration {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else {
        return Duration::ZERO;
    };
    let micros = |time: nix::sys::time::TimeVal| {
        u64::try_from(time.tv_sec()).unwrap_or(0) * 1_000_000
            + u64::try_from(time.tv_usec()).unwrap_or(0)
    };
    Duration::from_micros(micros(usage.user_time()) + micros(usage.system_time()))
}

/// `VmHWM` of /proc/self/status, in bytes; 0 where it cannot be read.
fn peak_rss() -> u64 {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else {
        return 0;
    };
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|kib| kib.parse::<u64>().ok())
        .map_or(0, |kib| kib * 1024)
}
