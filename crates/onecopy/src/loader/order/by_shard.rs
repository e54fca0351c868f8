//! Where samples are not counted: each shard to one process, and the lanes end when they end, or begin again until the steps are
//! made.

use super::{LANES, Order, Plan, Wish, other_kind, refused};
use crate::error::Result;
use crate::loader::Position;
use crate::pipeline::{Again, LaneWork, Rounds, Spot, Stretch, Turns};
use crate::sample::order::{LANES_MAX, Tail, Windows, order_shards};
use crate::size::to_usize;
use crate::store::Source;
use crate::sync::Arc;

impl Wish<'_> {
    /// Where they are not: each shard to one process, and the lanes end when they end, or begin again.
    pub(super) fn by_shard(&self, sources: &[Source], dataset: u64) -> Result<Plan> {
        self.check_uncounted(sources)?;
        let lanes = match (self.lanes, self.shuffle) {
            (Some(lanes), _) => lanes,
            (None, Some(_)) => self.fitting_lanes(LANES.min(self.shards_here(sources)), 1)?,
            (None, None) => 1,
        };
        let (spots, next) = match &self.position {
            None => (vec![Spot::default(); to_usize(lanes.min(LANES_MAX))], 0),
            Some(Position::Spots { lanes, next }) => (lanes.clone(), *next),
            Some(Position::Samples(_)) => return Err(other_kind("with an index", "without one")),
            Some(Position::Mixed { .. }) => return Err(other_kind("of a mixture", "alone")),
        };
        if spots.len() as u64 != lanes || !(1..=LANES_MAX).contains(&lanes) {
            return Err(refused(format!(
                "the state is of {} lanes, and here are {lanes}",
                spots.len()
            )));
        }
        let again = match self.steps {
            Some(_) => Again::Always,
            None => Again::Never,
        };
        let (lanes_here, _) = self.shard_lanes(0, sources, spots, again);
        Ok(Plan {
            lanes: lanes_here,
            turns: Turns::Rounds(Rounds {
                lanes: to_usize(lanes),
                next: vec![next],
                again,
                ended: vec![false],
                draws: None,
            }),
            order: Order {
                lanes,
                groups: self.part.workers,
                window: self.window(lanes),
                global_batch: self.batch.saturating_mul(self.part.ranks),
                counted: None,
                steps_here: self.steps_here(),
                dataset,
            },
        })
    }

    /// Which process this is, and of how many.
    pub(super) fn process(&self) -> (u64, u64) {
        let part = self.part;
        let process = part.rank * part.workers + part.worker;
        (process, part.ranks.saturating_mul(part.workers))
    }

    /// How many of the shards this process reads.
    pub(super) fn shards_here(&self, sources: &[Source]) -> u64 {
        let (process, processes) = self.process();
        (sources.len() as u64)
            .saturating_sub(process)
            .div_ceil(processes)
    }

    /// The steps that are still to be made here.
    pub(super) fn steps_here(&self) -> Option<u64> {
        self.steps.map(|(steps, made)| {
            let all = steps.saturating_sub(self.part.worker);
            all.div_ceil(self.part.workers).saturating_sub(made)
        })
    }

    /// What the lanes of a source have to do that stand at `spots`; and whether all of it was read before.
    pub(super) fn shard_lanes(
        &self,
        source: usize,
        sources: &[Source],
        spots: Vec<Spot>,
        again: Again,
    ) -> (Vec<LaneWork>, bool) {
        let (process, processes) = self.process();
        let mut shards: Vec<&Source> = sources.iter().collect();
        if let Some((_, seed)) = self.shuffle {
            order_shards(&mut shards, seed, self.epoch);
        }
        let own = shards.into_iter().skip(to_usize(process));
        let own: Vec<&Source> = own.step_by(to_usize(processes)).collect();
        let lanes = spots.len();
        let of_lane = |lane: usize| own.iter().copied().skip(lane).step_by(lanes).cloned();
        let rows: Vec<Vec<Stretch>> = (0..lanes)
            .map(|lane| of_lane(lane).map(Stretch::whole).collect())
            .collect();
        let window = self.window(lanes as u64);
        let is_repeating = again != Again::Never;
        let pass = if is_repeating {
            pass_of(&spots, &rows)
        } else {
            0
        };
        let lane = |(lane, (spot, row)): (usize, (Spot, Vec<Stretch>))| {
            let spot = spot_in(pass, spot, row.len() as u64);
            let number = lane as u64 * processes + process;
            LaneWork {
                source,
                stretches: going_on(pass, spot, &row),
                again: if is_repeating {
                    row.into()
                } else {
                    Arc::default()
                },
                windows: self.shuffle.map_or_else(Windows::none, |(_, seed)| {
                    Windows::new(window, seed, self.epoch, number)
                }),
                spot,
            }
        };
        let lanes = spots.into_iter().zip(rows).enumerate().map(lane).collect();
        (lanes, pass > 0)
    }

    /// Refuses what takes counts of samples.
    pub(super) fn check_uncounted(&self, sources: &[Source]) -> Result<()> {
        let part = self.part;
        if part.rank >= part.ranks || part.worker >= part.workers {
            return Err(refused(format!(
                "there is no rank {} of {}, or no worker {} of {}",
                part.rank, part.ranks, part.worker, part.workers
            ))
            .with_help("both are counted from 0"));
        }
        let Some((steps, _)) = self.steps else {
            if part.ranks > 1 {
                return Err(refused(format!(
                    "{} ranks are to make the same number of steps, and there is no index that tells how many samples the shards have",
                    part.ranks
                ))
                .with_help("make one with `onecopy index` and open the data with `index`; or say how many steps each rank makes: `steps_per_epoch`; or read all of it on each rank: `world_size=1`"));
            }
            if self.tail == Tail::Pad {
                return Err(refused("`tail=pad` is asked for, and there is no index that tells how many samples the shards have".into())
                    .with_help("make one with `onecopy index` and open the data with `index`; or use `tail=short` or `tail=drop`"));
            }
            return Ok(());
        };
        if steps == 0 {
            return Err(refused("no steps are to be made".into())
                .with_help("use `steps_per_epoch=1`, or leave it out"));
        }
        let processes = part.ranks.saturating_mul(part.workers);
        if (sources.len() as u64) < processes {
            return Err(refused(format!(
                "{} shards cannot be dealt to {processes} processes ({} ranks of {} workers), and there is no index that tells how many samples they have",
                sources.len(), part.ranks, part.workers
            ))
            .with_help("make one with `onecopy index` and open the data with `index`: parts of shards are then dealt; or use fewer workers (`num_workers`) or smaller shards"));
        }
        Ok(())
    }
}

/// The pass in which lanes stand that read `rows` again and again. None begins a pass before all have ended the one before, so it
/// is the last in which any of them stands; where one is exactly at an end, that is the one that it has ended.
fn pass_of(spots: &[Spot], rows: &[Vec<Stretch>]) -> u64 {
    let passes = spots.iter().zip(rows).map(|(spot, row)| {
        let len = (row.len() as u64).max(1);
        let pass = spot.stretch / len;
        if is_at(*spot, pass.saturating_mul(len)) {
            pass.saturating_sub(1)
        } else {
            pass
        }
    });
    passes.max().unwrap_or(0)
}

/// Whether nothing is read yet of the stretch `at`, where the lane stands.
fn is_at(spot: Spot, at: u64) -> bool {
    let begin = Spot {
        stretch: at,
        window: spot.window,
        ..Spot::default()
    };
    spot == begin
}

/// Where a lane of `len` stretches stands in the pass `pass`: at its beginning, where it had ended the one before.
fn spot_in(pass: u64, spot: Spot, len: u64) -> Spot {
    let begin = pass.saturating_mul(len);
    if spot.stretch >= begin {
        return spot;
    }
    Spot {
        stretch: begin,
        window: spot.window,
        ..Spot::default()
    }
}

/// What is left in the pass `pass` of the stretches in `row`, from `spot` on.
fn going_on(pass: u64, spot: Spot, row: &[Stretch]) -> Vec<Stretch> {
    let begin = pass.saturating_mul(row.len() as u64);
    let left = row
        .iter()
        .skip(to_usize(spot.stretch.saturating_sub(begin)));
    let mut stretches: Vec<Stretch> = left.cloned().collect();
    if let Some(first) = stretches.first_mut() {
        first.extent.start = spot.offset;
        if let Some(take) = first.takes.first_mut() {
            take.skip = spot.skip;
        }
    }
    stretches
}
