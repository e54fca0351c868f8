//! How long the next shards are, found out while the one before them is read.

use std::collections::VecDeque;

use tokio::task::JoinHandle;

use crate::sample::Extent;
use crate::store::Source;

/// Sources, with the lengths of the next ones looked up while the current one is read.
#[derive(Default)]
pub(super) struct LengthsAhead {
    /// So many look-ups at a time.
    most: usize,
    coming: VecDeque<(Source, Extent)>,
    /// Each source as it came, the task that looks it up, and what is wanted of it.
    waiting: VecDeque<(Source, JoinHandle<Source>, Extent)>,
    /// The lengths that are known of all sources to come.
    known_bytes: u64,
    /// How many have none.
    unknown: usize,
}

impl LengthsAhead {
    pub(super) fn of(parts: Vec<(Source, Extent)>, most: usize) -> Self {
        let lens = parts.iter().map(|(source, extent)| wanted(source, *extent));
        Self {
            most,
            known_bytes: lens.clone().flatten().fold(0, u64::saturating_add),
            unknown: lens.filter(Option::is_none).count(),
            coming: parts.into(),
            waiting: VecDeque::new(),
        }
    }

    /// The length of all that comes later; no end of it where that is not known.
    pub(super) fn later_bytes(&self) -> u64 {
        if self.unknown > 0 {
            return u64::MAX;
        }
        self.known_bytes
    }

    pub(super) async fn next(&mut self) -> Option<(Source, Extent)> {
        while self.waiting.len() < self.most {
            let Some((source, extent)) = self.coming.pop_front() else {
                break;
            };
            // The first one is wanted at once: its first range tells the length.
            let is_first = self.waiting.is_empty() && extent == Extent::WHOLE;
            let as_it_came = source.clone();
            let look_up = tokio::spawn(async move {
                if source.object.len_bytes.is_some() || is_first {
                    return source;
                }
                // What cannot be looked up (a URL signed for GET only) may still be read.
                match source.store.head(&source.object).await {
                    Ok(object) => Source {
                        store: source.store,
                        object,
                    },
                    Err(_reading_will_tell) => source,
                }
            });
            self.waiting.push_back((as_it_came, look_up, extent));
        }
        let (as_it_came, look_up, extent) = self.waiting.pop_front()?;
        match wanted(&as_it_came, extent) {
            Some(len) => self.known_bytes = self.known_bytes.saturating_sub(len),
            None => self.unknown -= 1,
        }
        // A look-up that panicked costs the source nothing: reading it will tell.
        Some((look_up.await.unwrap_or(as_it_came), extent))
    }
}

/// How many bytes of a source are wanted, as far as its length is known.
fn wanted(source: &Source, extent: Extent) -> Option<u64> {
    let end = extent.end.or(source.object.len_bytes)?;
    Some(end.saturating_sub(extent.start))
}
