//! What is finished, kept for the next start.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::layout::{INDEX, PART, Planned};
use crate::error::{Error, ErrorKind, Result};
use crate::sample::KeyRule;
use crate::sample::index::{DatasetIndex, IndexedShard, MOST_INDEX_BYTES};
use crate::store::{ETag, Object};
use crate::transfer::Depot;

/// Keeping may take this part of the time.
const SHARE: u32 = 20;

/// What earlier starts found out, by the names of the shards.
#[derive(Debug, Default)]
pub(super) struct Earlier {
    shards: HashMap<String, Vec<IndexedShard>>,
    /// Whether there may be an `index.json.part`.
    has_part: bool,
}

impl Earlier {
    /// Reads what is there. Whatever `index.json` is, with `is_forced` it may be replaced.
    pub(super) async fn read(depot: &Depot, key_rule: KeyRule, is_forced: bool) -> Result<Self> {
        let mut earlier = Self {
            has_part: is_forced,
            ..Self::default()
        };
        if is_forced {
            return Ok(earlier);
        }
        for name in [INDEX, PART] {
            let Some(bytes) = depot.read(name, MOST_INDEX_BYTES).await? else {
                continue;
            };
            earlier.has_part |= name == PART;
            let url = depot.url(name);
            let index = DatasetIndex::read_wids(&url, &bytes);
            match index {
                Ok(index) if index.key_rule == Some(key_rule) => {
                    for shard in index.shards {
                        earlier
                            .shards
                            .entry(shard.name.clone())
                            .or_default()
                            .push(shard);
                    }
                }
                // Our own, of samples that are told apart in another way.
                Ok(index) if index.key_rule.is_some() => {}
                Ok(_) | Err(_) if name == INDEX => {
                    let why = "another file than an index of onecopy's has this name";
                    return Err(Error::new(ErrorKind::InvalidInput, "write", url, why).with_help(
                        "move it away, name another place by `out`, or let it be replaced by `force`",
                    ));
                }
                Ok(_) | Err(_) => {}
            }
        }
        Ok(earlier)
    }

    /// What is known of shards of that name.
    pub(super) fn of(&self, planned: &Planned) -> &[IndexedShard] {
        self.shards.get(&planned.name).map_or(&[], Vec::as_slice)
    }
}

/// Whether the object is known to be the very one that was indexed.
pub(super) fn is_of(shard: &IndexedShard, object: &Object) -> bool {
    let etag = shard.etag.as_deref().map(|etag| ETag(etag.into()));
    shard.len_bytes.is_some()
        && shard.len_bytes == object.len_bytes
        && etag.is_some()
        && etag == object.etag
}

/// What is finished.
#[derive(Debug)]
pub(super) struct Kept<'a> {
    depot: &'a Depot,
    key_rule: KeyRule,
    every: Duration,
    /// In the order of the shards.
    entries: Vec<Option<IndexedShard>>,
    is_changed: bool,
    /// Whether there may be an `index.json.part`.
    has_part: bool,
    kept_at: Instant,
    took: Duration,
}

impl<'a> Kept<'a> {
    pub(super) fn new(
        depot: &'a Depot,
        earlier: &Earlier,
        key_rule: KeyRule,
        every: Duration,
        count: usize,
    ) -> Self {
        Self {
            has_part: earlier.has_part,
            depot,
            key_rule,
            every,
            entries: vec![None; count],
            is_changed: false,
            kept_at: Instant::now(),
            took: Duration::ZERO,
        }
    }

    /// What is finished so far.
    pub(super) fn entries(&self) -> impl Iterator<Item = &IndexedShard> {
        self.entries.iter().flatten()
    }

    /// Takes an entry, and keeps all of them where that is due.
    pub(super) async fn add(&mut self, place: usize, entry: IndexedShard) -> Result<()> {
        if let Some(empty) = self.entries.get_mut(place) {
            *empty = Some(entry);
            self.is_changed = true;
        }
        if self.kept_at.elapsed() >= self.every.max(self.took * SHARE) {
            self.keep().await?;
        }
        Ok(())
    }

    fn text(&self) -> String {
        let index = DatasetIndex {
            shards: self.entries().cloned().collect(),
            key_rule: Some(self.key_rule),
        };
        index.to_json()
    }

    /// Writes what is finished to where the next start looks for it.
    pub(super) async fn keep(&mut self) -> Result<()> {
        if !self.is_changed {
            return Ok(());
        }
        let start = Instant::now();
        self.has_part = true;
        let written = self.depot.write(PART, self.text(), "application/json");
        written.await?;
        self.is_changed = false;
        (self.kept_at, self.took) = (Instant::now(), start.elapsed());
        Ok(())
    }

    /// Writes the index, which is whole. What was kept on the way is then of no use and does no harm: gives the error where it
    /// cannot be deleted, which not everybody who may write may do.
    pub(super) async fn finish(&mut self) -> Result<Option<Error>> {
        let written = self.depot.write(INDEX, self.text(), "application/json");
        written.await?;
        if !self.has_part {
            return Ok(None);
        }
        Ok(self.depot.delete(PART).await.err())
    }
}
