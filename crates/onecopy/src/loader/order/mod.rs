//! From sources and wishes to lanes: who reads what, and in which order.

mod by_count;
mod by_shard;
mod data;
mod mixing;

pub(super) use mixing::{Ingredient, Mixing};

use super::Position;
use super::dataset::dataset_of;
use super::memory::Memory;
use crate::config::{LoadConfig, default_memory_bytes};
use crate::error::{Error, ErrorKind, Result};
use crate::pipeline::{LaneWork, Turns};
use crate::sample::order::{Choice, Part, Segment, Tail};
use crate::size::MIB;
use crate::store::Source;
use crate::sync::Arc;

/// Lanes unless another number is asked for: as many ranks can share an epoch, and as many shards are mixed.
pub const LANES: u64 = 64;

/// What a lane should have of the memory, where nobody asked for a number of lanes: several ranges and a window.
const LANE_BYTES: usize = 32 * MIB;

/// What is known of the samples of each source, in the order of the sources.
#[derive(Debug, Clone, Default)]
pub struct Counted {
    /// How many samples a shard has.
    pub samples: Vec<u64>,
    /// Where they begin in the shard, and where the last one ends; none where that is not known.
    pub starts: Vec<Option<Arc<[u64]>>>,
}

/// How an epoch is ordered, as asked for.
#[derive(Debug, Clone)]
pub(super) struct Wish<'a> {
    pub(super) config: &'a LoadConfig,
    pub(super) part: Part,
    pub(super) lanes: Option<u64>,
    pub(super) groups: Option<u64>,
    pub(super) tail: Tail,
    pub(super) epoch: u64,
    /// Samples to choose from over all lanes, and the seed.
    pub(super) shuffle: Option<(u64, u64)>,
    /// Samples of a lane's window, where a run that goes on says so.
    pub(super) window: Option<u64>,
    /// Samples of a batch of one rank.
    pub(super) batch: u64,
    pub(super) position: Option<Position>,
    /// Which samples are read; none are all.
    pub(super) choices: &'a [Choice],
    /// Steps of the epoch, and how many of them were made before; none goes by what there is.
    pub(super) steps: Option<(u64, u64)>,
    /// Whether [`Totals::odd`] is wanted.
    pub(super) is_odd_told: bool,
}

/// How an epoch is ordered. Whoever goes on with it later needs the same of each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// Lanes; of this process alone where samples are not counted.
    pub lanes: u64,
    /// Groups of lanes that take turns.
    pub groups: u64,
    /// Samples of a lane's window.
    pub window: u64,
    /// Samples of a global batch.
    pub global_batch: u64,
    /// What is known where samples are counted.
    pub counted: Option<Totals>,
    /// Steps that are still to be made here, where their number was asked for and samples are not counted.
    pub steps_here: Option<u64>,
    /// The sources, as one number: names and lengths, in the order in which they are read without a shuffle.
    pub dataset: u64,
}

/// The numbers of an epoch whose samples are counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Totals {
    /// Samples in the shards.
    pub dataset_samples: u64,
    /// Samples that all ranks give together.
    pub samples: u64,
    /// Global batches.
    pub steps: u64,
    /// Samples that come twice.
    pub padded: u64,
    /// Samples that do not come.
    pub dropped: u64,
    /// Which these are, where a plan tells: a load does not. The shards of several sources are numbered through.
    pub odd: Option<Vec<Segment>>,
    /// Of each source, where there are several.
    pub sources: Vec<SourceTotals>,
}

/// The numbers of one source of a mixture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceTotals {
    /// Samples in its shards.
    pub dataset_samples: u64,
    /// Samples of it that all ranks give together.
    pub samples: u64,
}

/// What there is to do.
pub(super) struct Plan {
    pub(super) order: Order,
    pub(super) lanes: Vec<LaneWork>,
    pub(super) turns: Turns,
}

impl Wish<'_> {
    /// Divides `sources` into lanes. `find_starts` finds out where the samples of some shards begin, if it can.
    pub(super) fn plan(
        &self,
        sources: &[Source],
        counted: Option<Counted>,
        find_starts: impl Fn(&mut Counted, &[usize]) -> Result<()>,
    ) -> Result<Plan> {
        let dataset = self.dataset(sources);
        match counted {
            Some(counted) => self.by_count(sources, counted, dataset, find_starts),
            None if !self.choices.is_empty() => Err(refused(
                "some of the samples are asked for, and there is no index that tells how many there are".into(),
            )
            .with_help("make one with `onecopy index` and open the data with `index`")),
            None => self.by_shard(sources, dataset),
        }
    }

    fn dataset(&self, sources: &[Source]) -> u64 {
        dataset_of(sources, self.choices)
    }

    fn is_divided(&self) -> bool {
        self.part.ranks > 1 || self.part.workers > 1
    }

    /// The window of a lane, of `lanes` in all.
    fn window(&self, lanes: u64) -> u64 {
        self.window.unwrap_or_else(|| {
            let capacity = self.shuffle.map_or(1, |(capacity, _)| capacity);
            capacity.div_ceil(lanes).max(1)
        })
    }

    /// The samples that windows of `window` samples hold on `lanes` lanes, of `all` that there are, and the bytes of these.
    fn held(window: u64, lanes: u64, sources: &[Source], all: u64) -> (u64, u128) {
        if window == 1 {
            return (0, 0);
        }
        let lens = sources.iter().map(|source| source.object.len_bytes);
        let bytes: u64 = lens.flatten().fold(0, u64::saturating_add);
        let held = window.saturating_mul(lanes).min(all);
        let takes = u128::from(held) * u128::from(bytes) / u128::from(all.max(1));
        (held, takes)
    }

    /// Refuses windows that take far more than the memory: samples beyond it would have to be copied out of the way.
    fn check_held(&self, (held, takes): (u64, u128)) -> Result<()> {
        let memory = self
            .config
            .memory_bytes
            .unwrap_or_else(default_memory_bytes);
        if takes <= 2 * memory as u128 {
            return Ok(());
        }
        Err(refused(format!(
            "shuffling among {held} samples takes {takes} bytes here, and the memory is {memory}"
        ))
        .with_help("raise `memory`, or shuffle among fewer samples: `shuffle`"))
    }

    /// So many lanes for each of `sources`, of `most`, as the memory has room for; a power of two.
    fn fitting_lanes(&self, most: u64, sources: u64) -> Result<u64> {
        let fit = (Memory::plan(self.config, 1)?.pool_bytes / LANE_BYTES) as u64;
        let most = most.min(fit / sources).max(1);
        Ok(1 << most.ilog2())
    }
}

fn refused(why: String) -> Error {
    Error::new(ErrorKind::InvalidInput, "plan the order", "", why)
}

fn other_kind(before: &str, now: &str) -> Error {
    refused(format!(
        "the state was written {before}, and the data are opened {now}"
    ))
    .with_help("open them as they were then, or begin the epoch again")
}
