//! Shards to slices: memory is leased in the order of consumption, a range is requested once its memory is there, and
//! many ranges are on their way at the same time.

use std::collections::VecDeque;

use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};

use super::feed::Announced;
use crate::buffer::{Pool, Slab, Slice};
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::OpenHop;
use crate::size::{to_usize, whole_pages};
use crate::store::{ETag, Filled, Object, Source};
use crate::sync::{Arc, Mutex};

/// Lengths of so many shards ahead are asked for where no listing told them: a request takes some 30 ms, a shard of
/// 100 MB a second at 1 Gbit/s, so a few are enough; small objects want more.
const LENGTHS_AHEAD: usize = 32;

/// What the fetcher works with.
#[derive(Debug)]
pub(super) struct Fetcher {
    pub(super) pool: Pool,
    pub(super) range_bytes: usize,
    pub(super) hop: OpenHop,
    pub(super) announce: mpsc::UnboundedSender<Announced>,
}

/// The load was stopped: nobody listens any more.
struct Stopped;

/// Cuts slabs into the memory of ranges, so that neighbouring ranges of a shard are neighbours in memory and small
/// objects share a slab.
struct Cutter {
    pool: Pool,
    rest: Slab,
}

impl Cutter {
    /// Memory of exactly `len` bytes, which is at most a slab.
    async fn take(&mut self, len: usize) -> Result<Slab> {
        if self.rest.len() < len {
            // The old rest goes back first: holding it while waiting could starve a pool of one slab.
            self.rest = Slab::heap(0);
            self.rest = self.pool.lease().await?;
        }
        Ok(self.rest.split_to(len))
    }

    /// Starts the next object at a page border: O_DIRECT and DMA want that.
    fn align(&mut self, taken: usize) {
        let padding = (whole_pages(taken) - taken).min(self.rest.len());
        drop(self.rest.split_to(padding));
    }
}

impl Fetcher {
    /// Reads `sources` one after the other, announcing every range before it is there. Ends early once nobody listens.
    pub(super) async fn run(self, sources: Vec<Source>) {
        let mut cutter = Cutter {
            pool: self.pool.clone(),
            rest: Slab::heap(0),
        };
        let mut ahead = LengthsAhead::default();
        let mut tasks = JoinSet::new();
        let mut coming = sources.into();
        while let Some(source) = ahead.next(&mut coming).await {
            if self.shard(source, &mut cutter, &mut tasks).await.is_err() {
                break;
            }
        }
        drop((cutter, self.announce));
        while tasks.join_next().await.is_some() {}
    }

    fn announce(&self, what: Announced) -> Result<(), Stopped> {
        self.announce.send(what).map_err(|_nobody| Stopped)
    }

    async fn shard(
        &self,
        mut source: Source,
        cutter: &mut Cutter,
        tasks: &mut JoinSet<()>,
    ) -> Result<(), Stopped> {
        let mut offset = 0;
        if source.object.len_bytes.is_none() {
            let first = self.first_range(&source, cutter).await;
            if let Ok((object, _)) = &first {
                source.object = object.clone();
            }
            self.announce(Announced::Shard(source.object.clone()))?;
            match first {
                Ok((_, slice)) => {
                    offset = slice.len() as u64;
                    self.announce_filled(slice)?;
                }
                Err(error) => {
                    self.announce(Announced::Failed(error))?;
                    return self.announce(Announced::End);
                }
            }
        } else {
            self.announce(Announced::Shard(source.object.clone()))?;
        }
        let version = Arc::new(Mutex::new(source.object.etag.clone()));
        let end = source.object.len_bytes.unwrap_or(offset);
        while offset < end {
            let len = self.range_bytes.min(to_usize(end - offset));
            let target = match cutter.take(len).await {
                Ok(target) => target,
                Err(error) => {
                    self.announce(Announced::Failed(error))?;
                    break;
                }
            };
            while tasks.try_join_next().is_some() {}
            self.range(&source, offset, target, &version, tasks)?;
            offset += len as u64;
        }
        cutter.align(to_usize(offset));
        self.announce(Announced::End)
    }

    /// Requests one range and announces it.
    fn range(
        &self,
        source: &Source,
        offset: u64,
        target: Slab,
        version: &Arc<Mutex<Option<ETag>>>,
        tasks: &mut JoinSet<()>,
    ) -> Result<(), Stopped> {
        let (answer, receiver) = oneshot::channel();
        self.announce(Announced::Range(receiver))?;
        let (source, hop, version) = (source.clone(), self.hop.clone(), Arc::clone(version));
        tasks.spawn(async move {
            let mut object = source.object.clone();
            object.etag = version.lock().clone();
            let read = source.store.read_into(&hop, &object, offset, vec![target]);
            let result = read.await.and_then(|filled| {
                same_version(&version, &filled.object)?;
                whole(filled, offset)
            });
            // A reader that passes over the rest of a shard does not listen: fine.
            let _passed_over = answer.send(result);
        });
        Ok(())
    }

    /// Announces bytes that are there already.
    fn announce_filled(&self, slice: Slice) -> Result<(), Stopped> {
        let (answer, receiver) = oneshot::channel();
        let _kept_by_the_receiver = answer.send(Ok(slice));
        self.announce(Announced::Range(receiver))
    }

    /// Reads the first range of an object whose length nobody told; the answer tells it.
    async fn first_range(&self, source: &Source, cutter: &mut Cutter) -> Result<(Object, Slice)> {
        let target = vec![cutter.take(self.range_bytes).await?];
        let filled = source
            .store
            .read_into(&self.hop, &source.object, 0, target)
            .await?;
        let told = (filled.object.len_bytes, filled.target.into_iter().next());
        let (Some(_), Some(mut slab)) = told else {
            return Err(Error::bug(
                "read the first range of",
                "the store told no length",
            ));
        };
        slab.truncate(to_usize(filled.len_bytes));
        Ok((filled.object, slab.freeze()))
    }
}

/// Holds the version of one range against the first one seen.
fn same_version(version: &Mutex<Option<ETag>>, object: &Object) -> Result<()> {
    let mut first = version.lock();
    match (&*first, &object.etag) {
        (Some(first), Some(now)) if first != now => Err(Error::new(
            ErrorKind::Changed,
            "read",
            &*object.url,
            "the object was replaced while it was being read",
        )
        .with_help("start again: the new version is read from its beginning")),
        (None, Some(now)) => {
            *first = Some(now.clone());
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The bytes of a range that must be whole.
fn whole(filled: Filled, offset: u64) -> Result<Slice> {
    let wanted: usize = filled.target.iter().map(|slab| slab.len()).sum();
    if filled.len_bytes != wanted as u64 {
        return Err(Error::new(
            ErrorKind::Truncated,
            format!("read bytes {offset}..{} of", offset + wanted as u64),
            &*filled.object.url,
            format!("only {} bytes came", filled.len_bytes),
        ));
    }
    let mut slabs = filled.target.into_iter();
    slabs
        .next()
        .map(Slab::freeze)
        .ok_or_else(|| Error::bug("read a range", "the store kept the memory"))
}

/// Sources, with the lengths of the next ones looked up while the current one is read.
#[derive(Default)]
struct LengthsAhead {
    waiting: VecDeque<JoinHandle<Source>>,
}

impl LengthsAhead {
    async fn next(&mut self, coming: &mut VecDeque<Source>) -> Option<Source> {
        while self.waiting.len() < LENGTHS_AHEAD {
            let Some(source) = coming.pop_front() else {
                break;
            };
            // The first one is wanted at once: its first range tells the length.
            let is_first = self.waiting.is_empty() && source.object.len_bytes.is_none();
            self.waiting.push_back(tokio::spawn(async move {
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
            }));
        }
        self.waiting.pop_front()?.await.ok()
    }
}
