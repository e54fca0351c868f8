//! Shards to slices: memory is leased in the order of consumption, a range is requested once its memory is there, and
//! many ranges are on their way at the same time.

use std::collections::VecDeque;

use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};

use super::feed::Announced;
use crate::buffer::{Pool, Slab, Slice};
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::OpenHop;
use crate::size::{PAGE, to_usize};
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
    /// Memory taken out of the pool so far, the unused ends of slabs included.
    leased_bytes: u64,
}

impl Cutter {
    /// Memory of exactly `len` bytes, which is at most a slab.
    async fn take(&mut self, len: usize) -> Result<Slab> {
        if self.rest.len() < len {
            // The old rest goes back first: holding it while waiting could starve a pool of one slab.
            self.leased_bytes += self.rest.len() as u64;
            self.rest = Slab::heap(0);
            self.rest = self.pool.lease().await?;
        }
        self.leased_bytes += len as u64;
        Ok(self.rest.split_to(len))
    }

    /// Starts the next object at a page border: O_DIRECT and DMA want that. Slabs are whole pages, so what is left of
    /// one tells where its border is.
    fn align(&mut self) {
        let padding = self.rest.len() % PAGE;
        self.leased_bytes += padding as u64;
        drop(self.rest.split_to(padding));
    }

    /// Takes back the end of what was taken last, if it is that: an object may be shorter than its first range.
    fn give_back(&mut self, tail: Slab) {
        let len = tail.len() as u64;
        let rest = std::mem::replace(&mut self.rest, Slab::heap(0));
        match tail.join(rest) {
            Ok(joined) => {
                self.rest = joined;
                self.leased_bytes -= len;
            }
            Err((_tail, rest)) => self.rest = rest,
        }
    }
}

impl Fetcher {
    /// Reads `sources` one after the other, announcing every range before it is there. Ends early once nobody listens.
    pub(super) async fn run(self, sources: Vec<Source>) {
        let mut cutter = Cutter {
            pool: self.pool.clone(),
            rest: Slab::heap(0),
            leased_bytes: 0,
        };
        let mut ahead = LengthsAhead::default();
        let mut tasks = JoinSet::new();
        let mut coming = sources.into();
        while let Some(source) = ahead.next(&mut coming).await {
            if self.shard(source, &mut cutter, &mut tasks).await.is_err() {
                return;
            }
        }
        // Nobody listens any more where the load was stopped.
        let _stopped = self.announce(Announced::Finished);
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
                    self.announce_filled(slice, cutter.leased_bytes)?;
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
            let memory = (target, cutter.leased_bytes);
            self.range(&source, offset, memory, &version, tasks)?;
            offset += len as u64;
        }
        cutter.align();
        self.announce(Announced::End)
    }

    /// Requests one range and announces it.
    fn range(
        &self,
        source: &Source,
        offset: u64,
        (target, leased_bytes): (Slab, u64),
        version: &Arc<Mutex<Option<ETag>>>,
        tasks: &mut JoinSet<()>,
    ) -> Result<(), Stopped> {
        let (answer, receiver) = oneshot::channel();
        self.announce(Announced::Range(receiver, leased_bytes))?;
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
    fn announce_filled(&self, slice: Slice, leased_bytes: u64) -> Result<(), Stopped> {
        let (answer, receiver) = oneshot::channel();
        let _kept_by_the_receiver = answer.send(Ok(slice));
        self.announce(Announced::Range(receiver, leased_bytes))
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
            return Err(Error::new(
                ErrorKind::Unsupported,
                "read",
                &*source.object.url,
                "its server does not say how long it is",
            )
            .with_help("serve it with a Content-Length and a Content-Range, or put it into S3"));
        };
        let whole = slab.split_to(to_usize(filled.len_bytes).min(slab.len()));
        cutter.give_back(slab);
        Ok((filled.object, whole.freeze()))
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
    /// Each source as it came, and the task that looks it up.
    waiting: VecDeque<(Source, JoinHandle<Source>)>,
}

impl LengthsAhead {
    async fn next(&mut self, coming: &mut VecDeque<Source>) -> Option<Source> {
        while self.waiting.len() < LENGTHS_AHEAD {
            let Some(source) = coming.pop_front() else {
                break;
            };
            // The first one is wanted at once: its first range tells the length.
            let is_first = self.waiting.is_empty() && source.object.len_bytes.is_none();
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
            self.waiting.push_back((as_it_came, look_up));
        }
        let (as_it_came, look_up) = self.waiting.pop_front()?;
        // A look-up that panicked costs the source nothing: reading it will tell.
        Some(look_up.await.unwrap_or(as_it_came))
    }
}
