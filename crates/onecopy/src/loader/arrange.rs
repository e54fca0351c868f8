//! From wishes to work: what is there, who reads what, in which order and with how much memory.

use super::memory::Memory;
use super::order::{Ingredient, Mixing, Plan, Wish};
use super::route::{choose, hop_of};
use super::start::Prepared;
use super::{Catalog, Loader, cores, mix, shown};
use crate::buffer::{Mlock, NoLock, PageLock, Pool, Recycler};
use crate::error::{Error, Result};
use crate::ledger::{Ledger, OpenHop};
use crate::pipeline::{LaneWork, Steps, Work};
use crate::route::Hop;
use crate::sample::SampleOptions;
use crate::store::Source;
use crate::sync::Arc;

/// What is known before anything is read.
pub(super) struct Arranged {
    pub(super) plan: Plan,
    pub(super) memory: Memory,
    hop: OpenHop,
    catalogs: Vec<Arc<Catalog>>,
    ledger: Arc<Ledger>,
}

impl Loader {
    /// What is counted for a load.
    pub(super) fn ledger(&self) -> Result<Arc<Ledger>> {
        self.config.check()?;
        let (route, fallback) = choose(self.config.route)?;
        let ledger = Ledger::open(shown(&self.urls), route, self.device.to_string());
        ledger.allow_skips(self.config.max_skipped);
        if let Some(fallback) = fallback {
            ledger.fell_back(fallback);
        }
        Ok(ledger)
    }

    pub(super) fn arrange(&self, ledger: Arc<Ledger>) -> Result<Arranged> {
        let parts = self.parts();
        let catalogs = Self::look_up(&parts, &ledger)?;
        if self.mixed.is_some() {
            ledger.mixes(parts.iter().map(|part| shown(&part.urls)));
        }
        let all: Vec<&Source> = catalogs.iter().flat_map(|of| &of.sources).collect();
        let hop = ledger.hop(hop_of(&all));
        let plan = self.divide(&parts, &catalogs)?;
        if plan.order.counted.is_some() && !plan.order.groups.is_multiple_of(self.part.workers) {
            ledger.note(format!(
                "each of {} workers reads all that its rank reads, and gives a part: the order that it goes on with has {} turns, which they do not divide",
                self.part.workers, plan.order.groups
            ));
        }
        let lanes = plan.lanes.len().max(1);
        let mut memory = Memory::plan(&self.config, lanes)?;
        let lens: Option<Vec<u64>> = plan.lanes.iter().map(LaneWork::len_bytes).collect();
        if let Some(most) = lens.and_then(|lens| lens.into_iter().max()) {
            memory = memory.fitting(lanes, most);
        }
        Ok(Arranged {
            plan,
            memory,
            hop,
            catalogs,
            ledger,
        })
    }

    /// Divides what is there into lanes.
    fn divide(&self, parts: &[&Self], catalogs: &[Arc<Catalog>]) -> Result<Plan> {
        let all = parts.iter().zip(catalogs);
        if let Some(mixed) = &self.mixed {
            if self.shuffle.is_some() || !self.choices.is_empty() || self.index.is_some() {
                return Err(
                    mix::refused("the whole is to be shuffled, chosen from or counted")
                        .with_help("do that with each loader, before they are mixed"),
                );
            }
            let ingredients = all.map(|(part, catalog)| Ingredient {
                wish: self.wish(part, None),
                catalog,
            });
            let mixing = Mixing {
                ingredients: ingredients.collect(),
                weights: &mixed.weights,
                seed: mixed.how.seed,
                stop: mixed.how.stop,
            };
            return mixing.plan();
        }
        let catalog = catalogs.first().ok_or_else(nothing)?;
        let wish = self.wish(self, self.window);
        wish.plan(&catalog.sources, catalog.counted(), |counted, shards| {
            catalog.find_starts(counted, shards)
        })
    }

    /// How what `part` reads is ordered.
    fn wish<'a>(&'a self, part: &'a Self, window: Option<u64>) -> Wish<'a> {
        Wish {
            config: &self.config,
            part: self.part,
            lanes: self.lanes,
            groups: self.groups,
            tail: self.tail_wanted(),
            epoch: self.epoch,
            shuffle: part.shuffle.map(|wish| (wish.capacity as u64, wish.seed)),
            window,
            batch: self.step_samples(),
            position: self.position.clone(),
            choices: &part.choices,
            steps: self.steps.map(|steps| (steps, self.steps_made)),
            is_odd_told: self.is_odd_told,
        }
    }

    pub(super) fn prepare(self, ledger: Arc<Ledger>) -> Result<Prepared> {
        let Arranged {
            plan,
            memory,
            hop,
            catalogs,
            ledger,
        } = self.arrange(ledger)?;
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
        let step = self.step_samples();
        let options = self.parts().into_iter().map(|part| SampleOptions {
            max_sample_bytes: part.options.max_sample_bytes.min(memory.sample_bytes),
            ..part.options.clone()
        });
        let options: Vec<SampleOptions> = options.collect();
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
            steps: plan.order.steps_here.map(|left| Steps {
                left,
                samples: step,
                is_outside: self.is_stepped_outside,
            }),
            wait_limit: self.config.wait_limit_for(hop.hop() == Hop::Read),
            hop,
            ledger: Arc::clone(&ledger),
        };
        Ok(Prepared {
            work,
            order: plan.order,
            catalogs,
            ledger,
        })
    }
}

fn nothing() -> Error {
    Error::bug("arrange a load", "nothing was looked up")
}
