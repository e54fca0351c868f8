//! From sources and wishes to lanes: who reads what, and in which order.

use std::ops::Range;

use super::Position;
use super::dataset::dataset_of;
use super::memory::Memory;
use crate::config::{LoadConfig, default_memory_bytes};
use crate::error::{Error, ErrorKind, Result};
use crate::pipeline::{LaneWork, Spot, Stretch, Turns};
use crate::sample::Extent;
use crate::sample::order::{Epoch, Grid, LANES_MAX, Part, Segment, Tail, Windows, order_shards};
use crate::size::{MIB, to_usize};
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
    /// Which these are.
    pub odd: Vec<Segment>,
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
        sources: Vec<Source>,
        counted: Option<Counted>,
        find_starts: impl Fn(&mut Counted, &[usize]) -> Result<()>,
    ) -> Result<Plan> {
        let dataset = dataset_of(&sources);
        match counted {
            Some(counted) => self.by_count(&sources, counted, dataset, find_starts),
            None => self.by_shard(sources, dataset),
        }
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

    /// Refuses windows that take far more than the memory: samples beyond it would have to be copied out of the way.
    fn check_window(&self, window: u64, lanes: u64, sources: &[Source], all: u64) -> Result<()> {
        let lens = sources.iter().map(|source| source.object.len_bytes);
        let bytes: u64 = lens.flatten().fold(0, u64::saturating_add);
        let held = (window * lanes).min(all);
        let takes = u128::from(held) * u128::from(bytes) / u128::from(all.max(1));
        let memory = self
            .config
            .memory_bytes
            .unwrap_or_else(default_memory_bytes);
        if window == 1 || takes <= 2 * memory as u128 {
            return Ok(());
        }
        Err(refused(format!(
            "shuffling among {held} samples takes {takes} bytes here, and the memory is {memory}"
        ))
        .with_help("raise `memory`, or shuffle among fewer samples: `shuffle`"))
    }

    /// So many lanes, of `most`, as the memory has room for; a power of two.
    fn fitting_lanes(&self, most: u64) -> Result<u64> {
        let fit = (Memory::plan(self.config, 1)?.pool_bytes / LANE_BYTES) as u64;
        let most = most.min(fit).max(1);
        Ok(1 << most.ilog2())
    }

    /// Where samples are counted: every sample once, and the same number of steps for everybody.
    fn by_count(
        &self,
        sources: &[Source],
        mut counted: Counted,
        dataset: u64,
        find_starts: impl Fn(&mut Counted, &[usize]) -> Result<()>,
    ) -> Result<Plan> {
        let groups = self.groups.unwrap_or(self.part.workers);
        let lanes = match (self.lanes, self.is_divided(), self.shuffle) {
            (Some(lanes), _, _) => lanes,
            (None, false, None) => 1,
            // The same for any number of ranks, and whatever the memory is.
            (None, _, _) => LANES.next_multiple_of(groups.max(1)),
        };
        let batch = self.batch.saturating_mul(self.part.ranks);
        let grid = Grid::new(batch, lanes, groups)?;
        let window = self.window(lanes);
        let shuffle = self.shuffle.map(|(_, seed)| (window, seed));
        let epoch = Epoch::new(&counted.samples, grid, self.tail, shuffle, self.epoch)?;
        epoch.check(self.part)?;
        let own = lanes / (self.part.ranks * self.part.workers);
        self.check_window(window, own, sources, epoch.dataset_samples())?;
        let from = match &self.position {
            None => 0,
            Some(Position::Samples(samples)) => *samples,
            Some(Position::Spots { .. }) => return Err(other_kind("without an index", "with one")),
        };
        if from > epoch.samples() {
            return Err(refused(format!(
                "the state stands behind {from} samples, and the epoch has {}",
                epoch.samples()
            )));
        }
        if from % batch != 0 && from != epoch.samples() {
            return Err(refused(format!(
                "the state stands behind {from} samples, which is in the midst of a global batch of {batch}"
            )));
        }
        let lanes_here: Vec<(Spot, Windows, Vec<Segment>)> = grid
            .lanes_of(self.part)
            .map(|lane| lane_from(&epoch, lane, from))
            .collect();
        let segments = lanes_here.iter().flat_map(|(_, _, segments)| segments);
        let is_part = |of: &&Segment| of.from > 0 || of.to < counted.samples[of.shard];
        let mut parts: Vec<usize> = segments.filter(is_part).map(|of| of.shard).collect();
        parts.sort_unstable();
        parts.dedup();
        find_starts(&mut counted, &parts)?;
        let work = |(spot, windows, segments): (Spot, Windows, Vec<Segment>)| LaneWork {
            stretches: segments
                .into_iter()
                .map(|segment| stretch(sources, &counted, segment))
                .collect(),
            windows,
            spot,
        };
        let mut lanes_here: Vec<LaneWork> = lanes_here.into_iter().map(work).collect();
        if let (
            Part {
                rank: 0, worker: 0, ..
            },
            Some(first),
        ) = (self.part, lanes_here.first_mut())
        {
            // Shards that are said to be empty are looked at, too: what they have would be lost in silence.
            let empty = (0..sources.len()).filter(|&shard| counted.samples[shard] == 0);
            let looked_at = empty.map(|shard| {
                let segment = Segment {
                    shard,
                    from: 0,
                    to: 0,
                };
                stretch(sources, &counted, segment)
            });
            first.stretches.extend(looked_at);
        }
        Ok(Plan {
            lanes: lanes_here,
            turns: Turns::Grid {
                grid,
                part: self.part,
                from,
                samples: epoch.samples(),
            },
            order: Order {
                lanes,
                groups,
                window,
                global_batch: batch,
                counted: Some(Totals {
                    dataset_samples: epoch.dataset_samples(),
                    samples: epoch.samples(),
                    steps: epoch.steps(),
                    padded: epoch.padded(),
                    dropped: epoch.dropped(),
                    odd: epoch.odd(),
                }),
                dataset,
            },
        })
    }

    /// Where they are not: each shard to one worker, and the lanes end when they end.
    fn by_shard(&self, mut sources: Vec<Source>, dataset: u64) -> Result<Plan> {
        let part = self.part;
        if part.ranks > 1 {
            return Err(refused(format!(
                "{} ranks are to make the same number of steps, and there is no index that tells how many samples the shards have",
                part.ranks
            ))
            .with_help("make one with `onecopy index` and open the data with `index`; or read all of it on each rank: `world_size=1`"));
        }
        if self.tail == Tail::Pad {
            return Err(refused("`tail=pad` is asked for, and there is no index that tells how many samples the shards have".into())
                .with_help("make one with `onecopy index` and open the data with `index`; or use `tail=short` or `tail=drop`"));
        }
        if part.worker >= part.workers {
            return Err(refused(format!(
                "there is no worker {} of {}",
                part.worker, part.workers
            )));
        }
        if let Some((_, seed)) = self.shuffle {
            order_shards(&mut sources, seed, self.epoch);
        }
        let own = sources
            .into_iter()
            .skip(to_usize(part.worker))
            .step_by(to_usize(part.workers).max(1));
        let own: Vec<Source> = own.collect();
        let lanes = match (self.lanes, self.shuffle) {
            (Some(lanes), _) => lanes,
            (None, Some(_)) => self.fitting_lanes(LANES.min(own.len() as u64))?,
            (None, None) => 1,
        };
        let (spots, next) = match &self.position {
            None => (vec![Spot::default(); to_usize(lanes.min(LANES_MAX))], 0),
            Some(Position::Spots { lanes, next }) => (lanes.clone(), *next),
            Some(Position::Samples(_)) => return Err(other_kind("with an index", "without one")),
        };
        if spots.len() as u64 != lanes || !(1..=LANES_MAX).contains(&lanes) {
            return Err(refused(format!(
                "the state is of {} lanes, and here are {lanes}",
                spots.len()
            )));
        }
        let window = self.window(lanes);
        let each = to_usize(lanes);
        let lane = |(lane, spot): (usize, Spot)| LaneWork {
            stretches: going_on(own.iter().skip(lane).step_by(each), spot),
            windows: self.shuffle.map_or_else(Windows::none, |(_, seed)| {
                Windows::new(
                    window,
                    seed,
                    self.epoch,
                    lane as u64 * part.workers + part.worker,
                )
            }),
            spot,
        };
        Ok(Plan {
            lanes: spots.into_iter().enumerate().map(lane).collect(),
            turns: Turns::Round { next },
            order: Order {
                lanes,
                groups: part.workers,
                window,
                global_batch: self.batch,
                counted: None,
                dataset,
            },
        })
    }
}

/// Where a lane stands behind the first `from` samples of the epoch, and what it reads from there on.
fn lane_from(epoch: &Epoch, lane: u64, from: u64) -> (Spot, Windows, Vec<Segment>) {
    let (given, len) = (epoch.grid().taken(lane, from), epoch.lane_len(lane));
    let windows = epoch.windows(lane);
    if given >= len {
        return (Spot::default(), windows, Vec::new());
    }
    let window = windows.around(given);
    let spot = Spot {
        window: window.number,
        len: window.len.min(len - window.start),
        given: given - window.start,
        ..Spot::default()
    };
    (spot, windows, epoch.lane(lane, window.start))
}

/// The shards of a lane, from `spot` on.
fn going_on<'a>(shards: impl Iterator<Item = &'a Source>, spot: Spot) -> Vec<Stretch> {
    let mut stretches: Vec<Stretch> = shards
        .skip(to_usize(spot.stretch))
        .cloned()
        .map(Stretch::whole)
        .collect();
    if let Some(first) = stretches.first_mut() {
        first.extent.start = spot.offset;
        first.skip = spot.skip;
    }
    stretches
}

/// The bytes of neighbouring samples, where it is known which these are.
fn stretch(sources: &[Source], counted: &Counted, segment: Segment) -> Stretch {
    let Segment { shard, from, to } = segment;
    let count = counted.samples[shard];
    let is_last = to == count;
    let starts = counted.starts.get(shard).and_then(Option::as_ref);
    let (extent, skip) = match starts {
        Some(starts) if count > 0 => (extent(starts, from..to, is_last), 0),
        _ => (Extent::WHOLE, from),
    };
    Stretch {
        source: sources[shard].clone(),
        extent,
        skip,
        take: Some(to - from),
        is_last,
    }
}

/// The last samples are read to the end of the archive, so that its end mark is looked at.
fn extent(starts: &[u64], samples: Range<u64>, is_last: bool) -> Extent {
    let start_of = |sample: u64| starts.get(to_usize(sample)).copied();
    Extent {
        start: start_of(samples.start).unwrap_or(0),
        end: if is_last { None } else { start_of(samples.end) },
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
