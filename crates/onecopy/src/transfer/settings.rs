//! What a transfer is asked to do, and what it tells.

use serde::Serialize;

use super::{Compare, Filter};
use crate::config::StoreConfig;
use crate::error::Error;
use crate::ledger::Report;
use crate::size::MIB;
use crate::store::{Attributes, shown_url};
use crate::sync::{Arc, AtomicBool, Ordering};

/// Settings that copying and syncing share.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How to reach the stores.
    pub store: StoreConfig,
    /// Memory for everything in flight, in bytes; none takes a quarter of what is free.
    pub memory_bytes: Option<usize>,
    /// The length of a ranged read and of a part that is written, in bytes: whole pages, at least 5 MiB for parts.
    pub range_bytes: usize,
    /// Whether to lock memory in RAM.
    pub is_locking: bool,
    /// Which relative keys are meant.
    pub filter: Filter,
    /// Tell what would be done, and do nothing.
    pub is_dry_run: bool,
    /// Wait for the disk before a file gets its name. Without it a file survives the end of this process, and after the
    /// end of the machine it may be empty.
    pub is_synced_to_disk: bool,
    /// Take links in a source folder for what they lead to.
    pub is_following_links: bool,
    /// What to tell of objects that are written.
    pub attributes: Attributes,
    /// Tell the media type that a file's name speaks of, where `attributes` name none.
    pub is_guessing_type: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            store: StoreConfig::default(),
            memory_bytes: None,
            range_bytes: 8 * MIB,
            is_locking: true,
            filter: Filter::default(),
            is_dry_run: false,
            is_synced_to_disk: false,
            is_following_links: true,
            attributes: Attributes::default(),
            is_guessing_type: true,
        }
    }
}

/// One copy of many.
#[derive(Debug, Clone)]
pub struct CopyOrder {
    /// What is copied.
    pub sources: Vec<String>,
    /// Where it goes.
    pub target: String,
}

impl CopyOrder {
    /// The sources as they may be shown: without signatures and passwords.
    pub(super) fn shown(&self) -> String {
        let shown: Vec<_> = self.sources.iter().map(|url| shown_url(url)).collect();
        shown.join(" ")
    }
}

/// Settings of a copy alone.
#[derive(Debug, Clone, Default)]
pub struct CopySettings {
    /// Take everything below a folder or prefix.
    pub is_recursive: bool,
    /// Leave out the folders between: every file goes right into the target.
    pub is_flat: bool,
    /// Take `*`, `?`, `[` and braces in sources for what they are.
    pub is_raw: bool,
    /// What may be replaced at the target.
    pub replace: Replace,
}

/// What may be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Replace {
    /// Everything.
    #[default]
    Always,
    /// Nothing: what is there stays.
    Never,
    /// What has another size.
    IfSizeDiffers,
    /// What is older than the source.
    IfSourceNewer,
    /// What has another size or is older.
    IfEither,
}

/// Settings of a sync alone.
#[derive(Debug, Clone, Default)]
pub struct SyncSettings {
    /// By what files are told apart.
    pub compare: Compare,
    /// Delete at the target what is not at the source.
    pub is_deleting: bool,
    /// Delete nothing at all where it would be more than this.
    pub max_delete: Option<u64>,
}

/// What was done to one item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// It was copied.
    #[serde(rename = "cp")]
    Copy,
    /// It was deleted.
    #[serde(rename = "rm")]
    Delete,
}

impl Action {
    /// The name in lines and in JSON: that of the command which does the same.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Copy => "cp",
            Self::Delete => "rm",
        }
    }
}

/// One item that is done, or that failed.
#[derive(Debug)]
pub struct Item<'a> {
    /// What was to be done.
    pub action: Action,
    /// Where the bytes come from; of a delete, what is deleted.
    pub source: &'a str,
    /// Where they go.
    pub target: Option<&'a str>,
    /// The length in bytes, where it is known.
    pub len_bytes: Option<u64>,
    /// Whether it would only have been done: a dry run.
    pub is_planned: bool,
    /// Why it failed.
    pub error: Option<&'a Error>,
}

/// Whoever looks on. Called from several threads.
pub trait Observer: Send + Sync {
    /// An item is done.
    fn item(&self, item: &Item<'_>);

    /// So many bytes more have arrived.
    fn moved(&self, bytes: u64);

    /// The transfer ends by an error; `summary` is what it came to until then.
    fn ended(&self, _summary: &Summary) {}
}

/// What a transfer came to.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// Items copied.
    pub copied: u64,
    /// Their bytes.
    pub copied_bytes: u64,
    /// Items deleted.
    pub deleted: u64,
    /// Items that were left as they are, because the target has them or they were not to be replaced.
    pub unchanged: u64,
    /// Items that failed or were refused.
    pub failed: u64,
    /// Whether all this was only planned.
    pub is_dry_run: bool,
    /// The account of every byte.
    pub ledger: Report,
}

/// A flag that stops a transfer: what is under way is undone, so that no half file and no open upload stays.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// A handle on `flag`: once it is true, the transfer stops.
    #[must_use]
    pub fn at(flag: Arc<AtomicBool>) -> Self {
        Self(flag)
    }

    /// Whether it is to stop.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
