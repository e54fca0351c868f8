//! Shards to slices: memory is leased in the order of consumption, a range is requested once its memory is there, and
//! many ranges are on their way at the same time. Which of them are asked for together is for `runs`.

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::cutter::Cutter;
use super::feed::Announced;
use super::lengths::LengthsAhead;
use super::runs::{Asked, Open, Runs, Shard, whole};
use super::stretch::Stretch;
use crate::buffer::{Pool, Slab, Slice};
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::OpenHop;
use crate::sample::Extent;
use crate::size::to_usize;
use crate::store::{Filled, Object, Source, Taker};
use crate::sync::{Arc, Mutex};

/// Lengths of so many shards ahead are asked for where no listing told them, by all lanes together: a request takes some
/// 30 ms, a shard of 100 MB a second at 1 Gbit/s, so a few are enough; small objects want more.
const LENGTHS_AHEAD: usize = 32;

/// What the fetcher works with.
#[derive(Debug)]
pub(super) struct Fetcher {
    pub(super) range_bytes: usize,
    /// Whether several ranges may be asked for in one request.
    pub(super) is_joining: bool,
    pub(super) hop: OpenHop,
    pub(super) lanes: Vec<Wanted>,
}

/// What one lane wants, in its order.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) parts: Vec<(Source, Extent)>,
    /// What it wants then, once for each pass that is let begin; nothing where each sample comes once.
    pub(super) again: Arc<[Stretch]>,
    pub(super) passes: mpsc::UnboundedReceiver<()>,
    /// Memory of its own, so that no lane waits for what others hold.
    pub(super) pool: Pool,
    pub(super) announce: mpsc::UnboundedSender<Announced>,
}

/// Leases memory for one lane.
struct Leasing {
    lane: usize,
    /// How many there are in all.
    lanes: usize,
    pool: Pool,
    range_bytes: usize,
    hop: OpenHop,
    open: Arc<Open>,
    announce: mpsc::UnboundedSender<Announced>,
    asking: mpsc::UnboundedSender<Asked>,
}

/// The load was stopped: nobody listens any more.
struct Stopped;

/// What is read in each pass behind the first, and the word that one more may begin.
type Passes = (Arc<[Stretch]>, mpsc::UnboundedReceiver<()>);

impl Fetcher {
    /// Reads what each lane wants, one after the other, announcing every range before it is there. Ends early once nobody
    /// listens.
    pub(super) async fn run(self) {
        let (asking, asked) = mpsc::unbounded_channel();
        let open = Arc::new(Open::default());
        let runs = Runs::new(
            self.hop.clone(),
            self.range_bytes,
            self.is_joining,
            Arc::clone(&open),
        );
        let mut leasing = JoinSet::new();
        let lanes = self.lanes.len();
        for (lane, wanted) in self.lanes.into_iter().enumerate() {
            let one = Leasing {
                lane,
                lanes,
                pool: wanted.pool,
                range_bytes: self.range_bytes,
                hop: self.hop.clone(),
                open: Arc::clone(&open),
                announce: wanted.announce,
                asking: asking.clone(),
            };
            leasing.spawn(one.run(wanted.parts, (wanted.again, wanted.passes)));
        }
        drop(asking);
        runs.run(asked).await;
        while leasing.join_next().await.is_some() {}
    }
}

impl Leasing {
    /// Leases memory for all ranges of all `parts`, in order, and then for those of each pass that follows.
    async fn run(self, parts: Vec<(Source, Extent)>, passes: Passes) {
        let mut firsts = JoinSet::new();
        // Where the load was stopped, nobody waits for what still comes in.
        if let Ok(()) = self.passes(parts, passes, &mut firsts).await {
            drop(self);
            while firsts.join_next().await.is_some() {}
        }
    }

    async fn passes(
        &self,
        mut parts: Vec<(Source, Extent)>,
        (again, mut allowed): Passes,
        firsts: &mut JoinSet<()>,
    ) -> Result<(), Stopped> {
        let mut cutter = Cutter::new(self.pool.clone());
        loop {
            self.lease(parts, !again.is_empty(), &mut cutter, firsts)
                .await?;
            if again.is_empty() {
                return self.announce(Announced::Finished);
            }
            allowed.recv().await.ok_or(Stopped)?;
            parts = again.iter().map(Stretch::part).collect();
        }
    }

    /// One pass; what follows it has no end that is known, where it `is_repeating`.
    async fn lease(
        &self,
        parts: Vec<(Source, Extent)>,
        is_repeating: bool,
        cutter: &mut Cutter,
        firsts: &mut JoinSet<()>,
    ) -> Result<(), Stopped> {
        let mut ahead = LengthsAhead::of(parts, (LENGTHS_AHEAD / self.lanes).max(1));
        while let Some((source, extent)) = ahead.next().await {
            let later_bytes = match is_repeating {
                true => u64::MAX,
                false => ahead.later_bytes(),
            };
            let shard = self.begin(source, extent, cutter, firsts).await?;
            if let Some((shard, offset)) = shard {
                self.shard(&shard, (offset, extent), later_bytes, cutter)
                    .await?;
            }
            while firsts.try_join_next().is_some() {}
            cutter.align();
            self.announce(Announced::End)?;
        }
        Ok(())
    }

    fn announce(&self, what: Announced) -> Result<(), Stopped> {
        self.announce.send(what).map_err(|_nobody| Stopped)
    }

    /// Announces a shard, with its first range where that has to tell the length. Gives what is left to be requested, and
    /// from where on; none where the shard cannot be read.
    async fn begin(
        &self,
        mut source: Source,
        extent: Extent,
        cutter: &mut Cutter,
        firsts: &mut JoinSet<()>,
    ) -> Result<Option<(Arc<Shard>, u64)>, Stopped> {
        let mut offset = extent.start;
        if source.object.len_bytes.is_some() || extent != Extent::WHOLE {
            self.announce(Announced::Shard(source.object.clone()))?;
            if let Err(error) = fits(&source.object, extent) {
                self.announce(Announced::Failed(error))?;
                return Ok(None);
            }
        } else {
            let first = self.first_range(&source, cutter, firsts).await;
            if let Ok(First { object, .. }) = &first {
                source.object = object.clone();
            }
            self.announce(Announced::Shard(source.object.clone()))?;
            match first {
                Ok(First { len, coming, .. }) => {
                    offset = len;
                    self.announce(Announced::Range(coming, cutter.leased_bytes))?;
                }
                Err(error) => {
                    self.announce(Announced::Failed(error))?;
                    return Ok(None);
                }
            }
        }
        let shard = Arc::new(Shard {
            len_bytes: source.object.len_bytes.unwrap_or(offset),
            version: Mutex::new(source.object.etag.clone()),
            source,
        });
        Ok(Some((shard, offset)))
    }

    /// Has the ranges of a shard requested, from `offset` on to the end of `extent`. `later_bytes` come behind it.
    async fn shard(
        &self,
        shard: &Arc<Shard>,
        (mut offset, extent): (u64, Extent),
        later_bytes: u64,
        cutter: &mut Cutter,
    ) -> Result<(), Stopped> {
        let end = extent.end.unwrap_or(shard.len_bytes);
        while offset < end {
            let len = self.range_bytes.min(to_usize(end - offset));
            if cutter.may_wait(len) {
                // What was asked for goes out before memory is waited for, or made ready.
                tokio::task::yield_now().await;
                self.open.until_wanted(shard, self.range_bytes).await;
            }
            let target = match cutter.take(len).await {
                Ok(target) => target,
                Err(error) => return self.announce(Announced::Failed(error)),
            };
            let memory = (target, cutter.leased_bytes);
            // All lanes have about as much before them.
            let left_bytes = later_bytes.saturating_add(end - offset);
            let left_bytes = left_bytes.saturating_mul(self.lanes as u64);
            self.range((shard, offset), memory, left_bytes)?;
            offset += len as u64;
        }
        Ok(())
    }

    /// Has one range requested, and announces it.
    fn range(
        &self,
        (shard, offset): (&Arc<Shard>, u64),
        (target, leased_bytes): (Slab, u64),
        left_bytes: u64,
    ) -> Result<(), Stopped> {
        let (answer, receiver) = oneshot::channel();
        self.announce(Announced::Range(receiver, leased_bytes))?;
        self.open.add(target.len());
        let asked = self.asking.send(Asked {
            lane: self.lane,
            shard: Arc::clone(shard),
            offset,
            target,
            answer,
            left_bytes,
        });
        asked.map_err(|_nobody| Stopped)
    }

    /// Reads the first range of an object whose length nobody told. The head of the answer tells it: where more follows, the
    /// range goes on coming in while that is asked for.
    async fn first_range(
        &self,
        source: &Source,
        cutter: &mut Cutter,
        firsts: &mut JoinSet<()>,
    ) -> Result<First> {
        let target = cutter.take(self.range_bytes).await?;
        let len = target.len() as u64;
        let (told, telling) = oneshot::channel();
        let (first, hop) = (source.clone(), self.hop.clone());
        let mut read = Box::pin(async move {
            let mut ear = Ear {
                len,
                told: Some(told),
                bytes: None,
            };
            let (store, object) = (&first.store, &first.object);
            let read = store.read_run(&hop, object, 0, vec![target], &mut ear);
            let filled = read.await?;
            Ok((filled, ear.bytes))
        });
        let read: Result<(Filled, Option<Slice>)> = tokio::select! {
            biased;
            read = &mut read => read,
            Ok(object) = telling => {
                let (answer, coming) = oneshot::channel();
                firsts.spawn(async move {
                    let whole = read.await.and_then(|(filled, bytes)| match bytes {
                        Some(bytes) => Ok(bytes),
                        None => whole(filled, 0, len).and_then(only_slab).map(Slab::freeze),
                    });
                    // A reader that passes over the rest of a shard does not listen: fine.
                    let _passed_over = answer.send(whole);
                });
                return Ok(First { object, len, coming });
            }
        };
        let (filled, bytes) = read?;
        let (object, filled_bytes) = (filled.object.clone(), filled.len_bytes);
        if object.len_bytes.is_none() {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "read",
                &*object.url,
                "its server does not say how long it is",
            )
            .with_help("serve it with a Content-Length and a Content-Range, or put it into S3"));
        }
        let bytes = if let Some(bytes) = bytes {
            bytes
        } else {
            let mut slab = only_slab(filled)?;
            let whole = slab.split_to(to_usize(filled_bytes).min(slab.len()));
            cutter.give_back(slab);
            whole.freeze()
        };
        let (answer, coming) = oneshot::channel();
        let len = bytes.len() as u64;
        let _kept_by_the_receiver = answer.send(Ok(bytes));
        Ok(First {
            object,
            len,
            coming,
        })
    }
}

/// Whether an object has the bytes that are wanted of it.
fn fits(object: &Object, extent: Extent) -> Result<()> {
    let wanted = extent.end.unwrap_or(extent.start);
    let why = match object.len_bytes {
        Some(len) if len >= wanted => return Ok(()),
        Some(len) => format!("it has {len} bytes, and {wanted} are known of it"),
        None => "its server does not say how long it is".to_owned(),
    };
    let from = extent.start;
    Err(Error::new(
        ErrorKind::Changed,
        format!("read on from byte {from} of"),
        &*object.url,
        why,
    )
    .with_help("the shard is not what it was when its index or the state was written: make the index anew, or begin the epoch again"))
}

/// The first range of an object whose length nobody told.
struct First {
    /// The object, with its length.
    object: Object,
    /// The length of the range.
    len: u64,
    coming: oneshot::Receiver<Result<Slice>>,
}

/// Hears of an object that is longer than its first range.
#[derive(Debug)]
struct Ear {
    len: u64,
    told: Option<oneshot::Sender<Object>>,
    /// The range, where the store hands it over.
    bytes: Option<Slice>,
}

impl Taker for Ear {
    fn told(&mut self, object: &Object) {
        let told = self.told.take();
        if object.len_bytes.is_some_and(|len| len > self.len)
            && let Some(told) = told
        {
            // Where nobody listens any more, the load was stopped.
            let _stopped = told.send(object.clone());
        }
    }

    fn full(&mut self, _object: &Object, bytes: Slice) {
        self.bytes = Some(bytes);
    }
}

/// The one slab of a target that had one.
fn only_slab(filled: Filled) -> Result<Slab> {
    let slab = filled.target.into_iter().next();
    slab.ok_or_else(|| Error::bug("read a range", "the store kept the memory"))
}
