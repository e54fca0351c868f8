//! What came of each source, and how often its shards were begun.

use std::sync::OnceLock;

use serde::Serialize;

use super::Ledger;
use crate::sync::{AtomicU64, Ordering};

/// What came of one source of a mixture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SourceReport {
    /// What was read.
    pub urls: String,
    /// Samples handed to the consumer.
    pub samples: u64,
    /// Object bytes that were asked for and delivered.
    pub payload_bytes: u64,
    /// How often its shards were begun for these samples.
    pub passes: u64,
}

/// The counts of all sources. Nothing is known by name where there is one.
#[derive(Debug, Default)]
pub(super) struct Sources {
    alone: Count,
    mixed: OnceLock<Vec<Count>>,
}

#[derive(Debug, Default)]
struct Count {
    urls: String,
    samples: AtomicU64,
    payload_bytes: AtomicU64,
    /// Passes that ended before what was handed on last.
    passes: AtomicU64,
}

impl Count {
    fn begun(&self) -> u64 {
        1 + self.passes.load(Ordering::Relaxed)
    }
}

impl Sources {
    fn all(&self) -> &[Count] {
        let mixed = self.mixed.get();
        mixed.map_or(std::slice::from_ref(&self.alone), |mixed| mixed)
    }

    pub(super) fn report(&self) -> Vec<SourceReport> {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let mixed = self.mixed.get().into_iter().flatten();
        mixed
            .map(|of| SourceReport {
                urls: of.urls.clone(),
                samples: load(&of.samples),
                payload_bytes: load(&of.payload_bytes),
                passes: of.begun(),
            })
            .collect()
    }
}

impl Ledger {
    /// Counts by sources as well, which read these URLs; once, before anything is counted.
    pub fn mixes(&self, urls: impl IntoIterator<Item = String>) {
        let count = |urls| Count {
            urls,
            ..Count::default()
        };
        // A second time changes nothing.
        let _first = self
            .sources
            .mixed
            .set(urls.into_iter().map(count).collect());
    }

    /// Notes samples handed on to the consumer, by their sources.
    pub fn delivered_of(&self, sources: &[usize]) {
        let all = self.sources.all();
        for count in sources.iter().filter_map(|source| all.get(*source)) {
            count.samples.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Notes object bytes of a source that were asked for and delivered.
    pub fn delivered_bytes_of(&self, source: usize, bytes: u64) {
        if let Some(count) = self.sources.all().get(source) {
            count.payload_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Notes that the shards of a source were begun once more for what is handed on.
    pub fn passed(&self, source: usize) {
        if let Some(count) = self.sources.all().get(source) {
            count.passes.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How often all shards were begun for what was handed on so far: of several sources, those that were begun least.
    #[must_use]
    pub fn passes(&self) -> u64 {
        let begun = self.sources.all().iter().map(Count::begun);
        begun.min().unwrap_or(1)
    }
}
