//! The front door: URLs and settings in, batches and the ledger of what happened out.

mod load;
mod memory;

pub use load::Load;
use load::Network;

use tokio::runtime::Runtime;

use crate::batch::{BatchPlan, Fields};
use crate::buffer::{Mlock, NoLock, PageLock, Pool, Recycler};
use crate::config::{LoadConfig, OnError};
use crate::device::Device;
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::Ledger;
use crate::pipeline::{Batches, Buffers, Samples, Work};
use crate::route::{Fallback, Hop, Route, RouteWish};
use crate::sample::decode::Decoder;
use crate::sample::{SampleOptions, Shuffle, order_shards};
use crate::store::{Absent, Source, resolve_with, shown_url};
use crate::sync::{Arc, runtime_named};
use memory::Memory;

/// A shuffle buffer, as asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ShuffleWish {
    /// Samples to choose from.
    capacity: usize,
    /// What the order is drawn from, together with the epoch.
    seed: u64,
}

/// What to load and how: each step returns the whole. Nothing is read before one of the `run` calls.
#[derive(Debug, Clone)]
#[must_use]
pub struct Loader {
    urls: Vec<String>,
    config: LoadConfig,
    plan: BatchPlan,
    options: SampleOptions,
    shuffle: Option<ShuffleWish>,
    limit: Option<u64>,
    device: Device,
    epoch: u64,
    /// Of how many parts the shards are divided into, this is which: `(index, count)`.
    part: (usize, usize),
}

/// Opens `urls` for loading: `s3://bucket/train-{000..999}.tar`, a prefix, a glob, `http(s)://`, `file://`, a path.
pub fn open(urls: impl IntoIterator<Item = impl Into<String>>, config: LoadConfig) -> Loader {
    let options = SampleOptions {
        on_error: config.on_error.clone(),
        ..SampleOptions::default()
    };
    Loader {
        urls: urls.into_iter().map(Into::into).collect(),
        config,
        plan: BatchPlan::default(),
        options,
        shuffle: None,
        limit: None,
        device: Device::Cpu,
        epoch: 0,
        part: (0, 1),
    }
}

impl Loader {
    /// Draws each next sample from a buffer of `capacity`, and shards in an order of their own; both from `seed` and epoch.
    pub fn shuffle(mut self, capacity: usize, seed: u64) -> Self {
        self.shuffle = (capacity > 1).then_some(ShuffleWish { capacity, seed });
        self
    }

    /// Decodes fields by their names; pictures as `pictures` says, or not at all.
    pub fn decode(mut self, pictures: Option<Decoder>) -> Self {
        self.plan.is_decoding = true;
        self.plan.pictures = pictures;
        self
    }

    /// Decodes the field `name` (or all fields with that last extension) in a way of its own.
    pub fn decode_field(mut self, name: impl Into<String>, decoder: Decoder) -> Self {
        self.plan.decoders.insert(name.into(), decoder);
        self
    }

    /// Keeps only these fields, in this order.
    pub fn fields(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.plan.fields = Fields::Named(names.into_iter().map(Into::into).collect());
        self
    }

    /// Collates `size` samples.
    pub fn batch(mut self, size: usize, is_dropping_last: bool) -> Self {
        self.plan.size = Some(size);
        self.plan.is_dropping_last = is_dropping_last;
        self
    }

    /// How shards are read: keys, duplicates, what follows the end of an archive.
    pub fn options(mut self, options: SampleOptions) -> Self {
        self.options = SampleOptions {
            on_error: self.config.on_error.clone(),
            ..options
        };
        self
    }

    /// Reads no more than `samples` of them and ends as at the end of the data: the last batch is as short as it has to be.
    /// Samples that are read and then left out, because a field does not decode, count. Buffers know no samples.
    pub fn limit(mut self, samples: u64) -> Self {
        self.limit = Some(samples);
        self
    }

    /// Where batches go.
    pub fn to(mut self, device: Device) -> Self {
        self.device = device;
        self
    }

    /// Which epoch this is: it changes the order of a shuffle, and nothing else.
    pub fn epoch(mut self, epoch: u64) -> Self {
        self.epoch = epoch;
        self
    }

    /// Reads only every `count`-th shard of the epoch's order, from the `index`-th: the parts of all indexes together are
    /// the whole, each shard once.
    pub fn part(mut self, index: usize, count: usize) -> Self {
        self.part = (index, count);
        self
    }

    /// Reads the shards' bytes and no further.
    ///
    /// # Errors
    ///
    /// What URLs, credentials, listing and configuration can meet.
    pub fn run_buffers(self) -> Result<Load<Buffers>> {
        let (work, runtime, ledger) = self.prepare()?;
        let output = work.buffers(runtime.handle());
        Ok(Load {
            output,
            ledger,
            _network: Network::new(runtime),
        })
    }

    /// Reads samples and no further.
    ///
    /// # Errors
    ///
    /// As [`Loader::run_buffers`].
    pub fn run_samples(self) -> Result<Load<Samples>> {
        let (work, runtime, ledger) = self.prepare()?;
        let output = work.samples(runtime.handle())?;
        Ok(Load {
            output,
            ledger,
            _network: Network::new(runtime),
        })
    }

    /// Reads batches on the device. Without `batch` the bytes of single samples that nobody decodes stay where the network
    /// put them: take them out before the next one, for they hold memory that the load needs.
    ///
    /// # Errors
    ///
    /// As [`Loader::run_buffers`].
    pub fn run(self) -> Result<Load<Batches>> {
        if self.plan.size == Some(0) {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                "make batches",
                "",
                "their size is 0",
            )
            .with_help("use `batch=64`, or leave it out for single samples"));
        }
        let (plan, on_error) = (self.plan.clone(), self.config.on_error.clone());
        let (work, runtime, ledger) = self.prepare()?;
        let output = work.batches(runtime.handle(), plan, on_error)?;
        Ok(Load {
            output,
            ledger,
            _network: Network::new(runtime),
        })
    }

    fn prepare(self) -> Result<(Work, Runtime, Arc<Ledger>)> {
        self.config.check()?;
        let (route, fallback) = choose(self.config.route)?;
        let ledger = Ledger::open(shown(&self.urls), route, self.device.to_string());
        ledger.allow_skips(self.config.max_skipped);
        if let Some(fallback) = fallback {
            ledger.fell_back(fallback);
        }
        let memory = Memory::plan(&self.config)?;
        let runtime = runtime()?;
        // A file that is not there is a lost shard as an object in S3 is, where one may be lost.
        let absent = match self.config.on_error {
            OnError::Raise => Absent::Refused,
            _ if self.config.max_skipped == Some(0) => Absent::Refused,
            OnError::Warn | OnError::Skip | OnError::Ask(_) => Absent::Kept,
        };
        let found = resolve_with(&self.urls, &self.config.store, absent, &ledger);
        let mut sources = runtime.block_on(found)?;
        if let Some(wish) = self.shuffle {
            order_shards(&mut sources, wish.seed, self.epoch);
        }
        let (index, count) = self.part;
        if index >= count {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                "take a part of the shards",
                "",
                format!("there is no part {index} of {count}"),
            )
            .with_help("parts are counted from 0"));
        }
        let sources: Vec<Source> = sources.into_iter().skip(index).step_by(count).collect();
        let lock: Arc<dyn PageLock> = if self.config.is_locking {
            Arc::new(Mlock)
        } else {
            Arc::new(NoLock)
        };
        let pool = Pool::new(
            memory.pool_bytes,
            memory.slab_bytes,
            Arc::clone(&lock),
            &ledger,
        )?;
        let mut options = self.options;
        options.max_sample_bytes = options.max_sample_bytes.min(memory.sample_bytes());
        let shuffle = self
            .shuffle
            .map(|wish| Shuffle::new(wish.capacity, wish.seed, self.epoch, memory.shuffle_bytes()));
        let hop = ledger.hop(hop_of(&sources));
        let work = Work {
            sources,
            pool,
            recycler: Recycler::new(memory.kept_bytes(), lock, &ledger),
            batch_bytes: memory.batch_bytes,
            range_bytes: memory.range_bytes,
            is_joining: memory.is_joining,
            decode_threads: self.config.decode_threads.unwrap_or_else(cores).max(1),
            options,
            limit: self.limit,
            shuffle,
            hop,
            ledger: Arc::clone(&ledger),
        };
        Ok((work, runtime, ledger))
    }
}

/// The URLs as a ledger may show them: without signatures.
fn shown(urls: &[String]) -> String {
    urls.iter()
        .map(|url| shown_url(url))
        .collect::<Vec<_>>()
        .join(" ")
}

/// The runtime of one load: network only.
fn runtime() -> Result<Runtime> {
    if tokio::runtime::Handle::try_current().is_ok() {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            "start a load",
            "",
            "this thread runs asynchronous tasks, which waiting for a load would block",
        )
        .with_help("start and read it on a thread of its own (tokio: spawn_blocking)"));
    }
    runtime_named("net")
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The hop that reads count on: `read` where all sources are files, `recv` otherwise (stores open what they need beside).
fn hop_of(sources: &[Source]) -> Hop {
    let is_local = |source: &Source| {
        let url = &source.object.url;
        url.starts_with("file://") || !url.contains("://")
    };
    if !sources.is_empty() && sources.iter().all(is_local) {
        Hop::Read
    } else {
        Hop::Recv
    }
}

/// The route taken for a wish. Only `stream` works in this version.
fn choose(wish: RouteWish) -> Result<(Route, Option<Fallback>)> {
    let why = "this version has the stream route only";
    match wish {
        RouteWish::Auto | RouteWish::Prefer(Route::Stream) | RouteWish::Require(Route::Stream) => {
            Ok((Route::Stream, None))
        }
        RouteWish::Prefer(route) => {
            let (wanted, used) = (route.to_string(), Route::Stream.to_string());
            Ok((
                Route::Stream,
                Some(Fallback {
                    wanted,
                    used,
                    why: why.to_owned(),
                }),
            ))
        }
        RouteWish::Require(route) => Err(Error::new(
            ErrorKind::Unsupported,
            "take the route",
            route.to_string(),
            why,
        )
        .with_help("use `require=stream`, or `route=auto`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_required_route_is_never_replaced() {
        assert_eq!(
            choose(RouteWish::Require(Route::Direct))
                .unwrap_err()
                .kind(),
            ErrorKind::Unsupported
        );
        let (route, fallback) = choose(RouteWish::Prefer(Route::Cache)).unwrap();
        assert_eq!(
            (route, fallback.unwrap().wanted.as_str()),
            (Route::Stream, "cache")
        );
    }
}
