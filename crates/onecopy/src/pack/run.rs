//! All shards, side by side.

use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinSet;

use super::headers::{Counts, HeaderBytes, MOST_BYTES, Reading, cancelled};
use super::kept::{Earlier, Kept, is_of};
use super::layout::{INDEX, Layout, Planned};
use super::settings::{IndexObserver, IndexSettings, IndexSummary};
use crate::buffer::{NoLock, Recycler};
use crate::config::default_memory_bytes;
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::Ledger;
use crate::route::Hop;
use crate::sample::SampleOptions;
use crate::sample::index::{IndexedShard, Scan};
use crate::store::{Absent, resolve_with};
use crate::sync::{Arc, AtomicBool, Ordering, Threads};
use crate::transfer::{Depot, Stop};

/// Shards under way at the same time, at most. Where members are long each waits for one small answer after the other, so
/// the rate grows with their number; each has a thread.
const MOST_AT_ONCE: usize = 128;

/// How often a wait looks whether to stop.
const STOP_TICK: Duration = Duration::from_millis(25);

/// Whether to end early: somebody asked for it, or something failed that all depends on.
#[derive(Debug)]
pub(super) struct Halt {
    stop: Stop,
    is_broken: AtomicBool,
}

impl Halt {
    /// `Cancelled` where to end early.
    pub(super) fn check(&self) -> Result<()> {
        if self.stop.is_set() || self.is_broken.load(Ordering::Relaxed) {
            return Err(cancelled());
        }
        Ok(())
    }

    /// Runs `work` until it is done or to end early. `work` is then dropped.
    pub(super) async fn until_halted<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let halted = async {
            loop {
                if let Err(error) = self.check() {
                    return error;
                }
                tokio::time::sleep(STOP_TICK).await;
            }
        };
        tokio::select! {
            biased;
            done = work => done,
            error = halted => Err(error),
        }
    }
}

/// What one shard came to.
struct Done {
    place: usize,
    result: Result<IndexedShard>,
    is_reused: bool,
}

/// The surroundings of every shard.
pub(super) struct Work {
    settings: IndexSettings,
    ledger: Arc<Ledger>,
    observer: Arc<dyn IndexObserver>,
    reading: Reading,
    at_once: usize,
}

impl Work {
    pub(super) fn new(
        settings: &IndexSettings,
        runtime: &Handle,
        ledger: &Arc<Ledger>,
        observer: &Arc<dyn IndexObserver>,
        stop: &Stop,
    ) -> Self {
        let mut settings = settings.clone();
        // A sum over a whole shard cannot be had from a part of it, and asking for one would cost a request each.
        settings.store.is_checksum_unverified = true;
        // Nothing of a sample is held here.
        settings.options.max_sample_bytes = u64::MAX;
        let memory_bytes = settings.memory_bytes.unwrap_or_else(default_memory_bytes);
        let most_bytes = MOST_BYTES.min(memory_bytes / 2).max(512);
        // The piece that is looked at, and the one that comes next; an inflated one stands beside them.
        let at_once = memory_bytes / (2 * most_bytes);
        let reading = Reading {
            runtime: runtime.clone(),
            hop: ledger.hop(Hop::Recv),
            memory: Recycler::new(memory_bytes, Arc::new(NoLock), ledger),
            most_bytes,
            halt: Arc::new(Halt {
                stop: stop.clone(),
                is_broken: AtomicBool::new(false),
            }),
            counts: Arc::new(Counts::default()),
        };
        Self {
            at_once: at_once
                .min(settings.store.limits.connections)
                .clamp(1, MOST_AT_ONCE),
            settings,
            ledger: Arc::clone(ledger),
            observer: Arc::clone(observer),
            reading,
        }
    }

    /// Indexes everything.
    pub(super) async fn run(&self, urls: &[String]) -> Result<IndexSummary> {
        let halt = &self.reading.halt;
        let (settings, ledger) = (&self.settings, &self.ledger);
        let found = resolve_with(urls, &settings.store, Absent::Refused, ledger);
        let layout = Layout::new(halt.until_halted(found).await?, settings.out.as_deref())?;
        let depot = Depot::open(&layout.out, &settings.store, ledger);
        let depot = Arc::new(depot.map_err(|error| match settings.out {
            None if error.kind() == ErrorKind::Unsupported => {
                error.with_help("name a folder or an s3:// prefix for the index: `out`")
            }
            _ => error,
        })?);
        let key_rule = settings.options.key_rule;
        let earlier = Earlier::read(&depot, key_rule, settings.is_forced);
        let earlier = Arc::new(halt.until_halted(earlier).await?);
        let count = layout.shards.len();
        self.observer.planned(count as u64);
        let mut kept = Kept::new(&depot, &earlier, key_rule, settings.keep_every, count);
        let mut summary = self.summary(depot.url(INDEX));
        let done = self.all(&layout, &depot, &earlier, &mut kept, &mut summary);
        let done = done.await;
        if done.is_err() || summary.failed > 0 {
            // An error that ends it all says more than one of keeping what there was before it.
            let kept = kept.keep().await;
            done.and(kept)?;
        } else {
            if let Some(error) = kept.finish().await? {
                ledger.note(error.to_string());
            }
        }
        for shard in kept.entries() {
            summary.shards += 1;
            summary.samples += shard.samples;
            summary.shard_bytes += shard.len_bytes.unwrap_or(0);
            summary.without_offsets += u64::from(shard.offsets.is_none());
        }
        let counts = &self.reading.counts;
        summary.read_bytes = counts.bytes.load(Ordering::Relaxed);
        summary.requests = counts.requests.load(Ordering::Relaxed);
        ledger.finish();
        summary.ledger = ledger.report();
        Ok(summary)
    }

    fn summary(&self, index: String) -> IndexSummary {
        IndexSummary {
            index,
            shards: 0,
            samples: 0,
            shard_bytes: 0,
            without_offsets: 0,
            reused: 0,
            failed: 0,
            read_bytes: 0,
            requests: 0,
            ledger: self.ledger.report(),
        }
    }

    /// Takes one shard after the other, some at a time, and waits for all of them, whatever happens: their threads use the
    /// runtime.
    async fn all(
        &self,
        layout: &Layout,
        depot: &Arc<Depot>,
        earlier: &Arc<Earlier>,
        kept: &mut Kept<'_>,
        summary: &mut IndexSummary,
    ) -> Result<()> {
        let threads = Threads::new("index", self.at_once);
        let mut tasks: JoinSet<Done> = JoinSet::new();
        let mut outcome = Ok(());
        let mut shards = layout.shards.iter().enumerate();
        loop {
            while tasks.len() < self.at_once
                && outcome.is_ok()
                && let Some((place, planned)) = shards.next()
            {
                let shard = Shard {
                    reading: self.reading.clone(),
                    options: self.settings.options.clone(),
                    planned: planned.clone(),
                    depot: Arc::clone(depot),
                    threads: threads.clone(),
                };
                let earlier = Arc::clone(earlier);
                tasks.spawn(async move { shard.run(place, &earlier).await });
            }
            let Some(done) = tasks.join_next().await else {
                break;
            };
            let taken = match done {
                Ok(done) => self.take(done, layout, kept, summary).await,
                Err(panicked) => Err(Error::bug("index a shard", panicked.to_string())),
            };
            let taken = taken.and_then(|()| self.reading.halt.check());
            if let Err(error) = taken {
                self.reading.halt.is_broken.store(true, Ordering::Relaxed);
                outcome = outcome.and(Err(error));
            }
        }
        outcome
    }

    /// Counts and keeps what one shard came to.
    async fn take(
        &self,
        done: Done,
        layout: &Layout,
        kept: &mut Kept<'_>,
        summary: &mut IndexSummary,
    ) -> Result<()> {
        let url = layout
            .shards
            .get(done.place)
            .map(|planned| &planned.source.object.url);
        let url = url.map(AsRef::as_ref).unwrap_or_default();
        match done.result {
            Ok(entry) => {
                summary.reused += u64::from(done.is_reused);
                self.observer.shard(url, None);
                kept.add(done.place, entry).await
            }
            Err(error) if error.kind() == ErrorKind::Cancelled => Err(error),
            Err(error) => {
                summary.failed += 1;
                self.observer.shard(url, Some(&error));
                Ok(())
            }
        }
    }
}

/// One shard.
struct Shard {
    reading: Reading,
    options: SampleOptions,
    planned: Planned,
    depot: Arc<Depot>,
    threads: Threads,
}

impl Shard {
    async fn run(mut self, place: usize, earlier: &Earlier) -> Done {
        let halt = Arc::clone(&self.reading.halt);
        let reused = halt.until_halted(self.reuse(earlier)).await;
        let (result, is_reused) = match reused {
            Ok(Some(entry)) => (Ok(entry), true),
            Ok(None) => (self.index().await, false),
            Err(error) => (Err(error), false),
        };
        Done {
            place,
            result,
            is_reused,
        }
    }

    /// What an earlier start found out, where the shard is still the same and its offsets are there.
    async fn reuse(&mut self, earlier: &Earlier) -> Result<Option<IndexedShard>> {
        let known = earlier.of(&self.planned);
        if known.is_empty() {
            return Ok(None);
        }
        let source = &mut self.planned.source;
        if source.object.etag.is_none() || source.object.len_bytes.is_none() {
            self.reading.counts.requests.fetch_add(1, Ordering::Relaxed);
            let url = Arc::clone(&source.object.url);
            let found = source.store.head(&source.object).await?;
            source.object = crate::store::Object { url, ..found };
        }
        for entry in known {
            let offsets = entry.offsets.as_deref();
            let is_ours = offsets.is_none_or(|name| name == self.planned.offsets);
            if !is_ours || !is_of(entry, &source.object) {
                continue;
            }
            if offsets.is_none() || self.depot.len_of(&self.planned.offsets).await?.is_some() {
                return Ok(Some(entry.clone()));
            }
        }
        Ok(None)
    }

    /// Reads the headers, and writes the offsets.
    async fn index(self) -> Result<IndexedShard> {
        let Self {
            reading,
            options,
            planned,
            depot,
            threads,
        } = self;
        let halt = Arc::clone(&reading.halt);
        let ledger = Arc::clone(reading.hop.ledger());
        let Planned {
            source,
            name,
            offsets,
        } = planned;
        let scanned = threads.run(move || {
            let mut bytes = HeaderBytes::new(reading, source.clone());
            let (url, len_bytes) = (source.object.url, source.object.len_bytes);
            let mut scan = Scan::new(url, len_bytes, &mut bytes, options);
            let scanned = scan.run();
            ledger.take_over(scan.ledger());
            drop(scan);
            let failed = bytes.take_failed();
            scanned.and_then(|scanned| match failed {
                // A policy that passes over damage would count what came until then.
                Some(error) => Err(error),
                None => Ok((scanned, bytes.object().clone())),
            })
        });
        let (scanned, object) = scanned.await??;
        let mut entry = IndexedShard {
            name,
            samples: scanned.samples,
            len_bytes: object.len_bytes,
            etag: object.etag.map(|etag| etag.0.to_string()),
            offsets: None,
        };
        if let Some(text) = scanned.offsets {
            let written = depot.write(&offsets, text, "text/plain");
            halt.until_halted(written).await?;
            entry.offsets = Some(offsets);
        }
        Ok(entry)
    }
}
