//! What an index is asked for, and what is told of it.

use std::time::Duration;

use serde::Serialize;

use crate::config::StoreConfig;
use crate::error::Error;
use crate::ledger::Report;
use crate::sample::SampleOptions;

/// How to index shards.
#[derive(Debug, Clone)]
pub struct IndexSettings {
    /// How to reach the stores.
    pub store: StoreConfig,
    /// Memory for what is in flight, in bytes; none takes a quarter of what is free. Indexes that grow come on top: some 50
    /// bytes per member of the shards under way.
    pub memory_bytes: Option<usize>,
    /// How samples are told apart, and what to do about damage. No sample is too large to be counted.
    pub options: SampleOptions,
    /// The folder or prefix that the index goes to; none takes the one that the shards have in common.
    pub out: Option<String>,
    /// Index everything anew, and take the place of whatever is called `index.json`.
    pub is_forced: bool,
    /// How often what is finished is kept for the next start, at most: it costs a write of all of it.
    pub keep_every: Duration,
}

impl Default for IndexSettings {
    fn default() -> Self {
        Self {
            store: StoreConfig::default(),
            memory_bytes: None,
            options: SampleOptions::default(),
            out: None,
            is_forced: false,
            keep_every: Duration::from_secs(5),
        }
    }
}

/// Whoever looks on. Called from one thread at a time.
pub trait IndexObserver: Send + Sync {
    /// So many shards there are.
    fn planned(&self, shards: u64);

    /// A shard is done, or failed.
    fn shard(&self, url: &str, error: Option<&Error>);
}

/// What an index came to.
#[derive(Debug, Clone, Serialize)]
pub struct IndexSummary {
    /// Where it is, or would be: not where shards failed.
    pub index: String,
    /// Shards that are in it.
    pub shards: u64,
    /// Their samples.
    pub samples: u64,
    /// Their bytes.
    pub shard_bytes: u64,
    /// Shards that have no offsets: what is compressed can be read from its beginning only.
    pub without_offsets: u64,
    /// Shards that were taken over from an earlier index.
    pub reused: u64,
    /// Shards that could not be indexed.
    pub failed: u64,
    /// Bytes of shards that were read.
    pub read_bytes: u64,
    /// Reads and look-ups of shards that it took; in a store each is a request.
    pub requests: u64,
    /// The account of every byte.
    pub ledger: Report,
}
