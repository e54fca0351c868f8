//! From wishes to work: what is there, who reads what, in which order and with how much memory.

use tokio::runtime::Runtime;

use super::indexed::Indexed;
use super::memory::Memory;
use super::order::{Order, Plan, Wish};
use super::route::{choose, hop_of};
use super::{Loader, cores, runtime, shown};
use crate::buffer::{Mlock, NoLock, PageLock, Pool, Recycler};
use crate::config::OnError;
use crate::error::Result;
use crate::ledger::{Ledger, OpenHop};
use crate::pipeline::Work;
use crate::store::{Absent, resolve_with};
use crate::sync::Arc;

/// What is known before anything is read.
pub(super) struct Arranged {
    pub(super) plan: Plan,
    pub(super) memory: Memory,
    hop: OpenHop,
    runtime: Runtime,
    ledger: Arc<Ledger>,
}

impl Loader {
    pub(super) fn arrange(&self) -> Result<Arranged> {
        self.config.check()?;
        let (route, fallback) = choose(self.config.route)?;
        let ledger = Ledger::open(shown(&self.urls), route, self.device.to_string());
        ledger.allow_skips(self.config.max_skipped);
        if let Some(fallback) = fallback {
            ledger.fell_back(fallback);
        }
        let runtime = runtime()?;
        // A file that is not there is a lost shard as an object in S3 is, where one may be lost.
        let absent = match self.config.on_error {
            OnError::Raise => Absent::Refused,
            _ if self.config.max_skipped == Some(0) => Absent::Refused,
            OnError::Warn | OnError::Skip | OnError::Ask(_) => Absent::Kept,
        };
        let found = resolve_with(&self.urls, &self.config.store, absent, &ledger);
        let sources = runtime.block_on(found)?;
        let hop = ledger.hop(hop_of(&sources));
        let (indexed, counted) = match &self.index {
            None => (None, self.counted.clone()),
            Some(url) => {
                let rule = self.options.key_rule;
                let read = Indexed::read(url, &self.config.store, rule, &sources);
                let (indexed, counted) = runtime.block_on(read)?;
                (Some(indexed), Some(counted))
            }
        };
        let wish = Wish {
            config: &self.config,
            part: self.part,
            lanes: self.lanes,
            groups: self.groups,
            tail: self.tail_wanted(),
            epoch: self.epoch,
            shuffle: self.shuffle.map(|wish| (wish.capacity as u64, wish.seed)),
            window: self.window,
            batch: self.step.unwrap_or(self.plan.size.unwrap_or(1) as u64),
            position: self.position.clone(),
        };
        let plan = wish.plan(sources, counted, |counted, shards| match &indexed {
            Some(indexed) => runtime.block_on(indexed.fill(counted, shards)),
            None => Ok(()),
        })?;
        let memory = Memory::plan(&self.config, plan.lanes.len().max(1))?;
        Ok(Arranged {
            plan,
            memory,
            hop,
            runtime,
            ledger,
        })
    }

    pub(super) fn prepare(self) -> Result<(Work, Order, Runtime, Arc<Ledger>)> {
        let Arranged {
            plan,
            memory,
            hop,
            runtime,
            ledger,
        } = self.arrange()?;
        let lock: Arc<dyn PageLock> = if self.config.is_locking {
            Arc::new(Mlock)
        } else {
            Arc::new(NoLock)
        };
        let pools = Pool::shared(
            memory.pool_bytes,
            memory.slab_bytes,
            plan.lanes.len().max(1),
            Arc::clone(&lock),
            &ledger,
        )?;
        let mut options = self.options;
        options.max_sample_bytes = options.max_sample_bytes.min(memory.sample_bytes());
        let work = Work {
            lanes: plan.lanes.into_iter().zip(pools).collect(),
            turns: plan.turns,
            span_bytes: memory.shuffle_bytes(),
            recycler: Recycler::new(memory.kept_bytes(), lock, &ledger),
            batch_bytes: memory.batch_bytes,
            range_bytes: memory.range_bytes,
            is_joining: memory.is_joining,
            decode_threads: self.config.decode_threads.unwrap_or_else(cores).max(1),
            options,
            limit: self.limit,
            hop,
            ledger: Arc::clone(&ledger),
        };
        Ok((work, plan.order, runtime, ledger))
    }
}
