//! Where samples are not counted: each shard to one process, and the lanes end when they end, or begin again until the steps are
//! made.

use super::{LANES, Order, Plan, Wish, other_kind, refused};
use crate::error::Result;
use crate::loader::Position;
use crate::pipeline::{LaneWork, Spot, Stretch, Turns};
use crate::sample::order::{LANES_MAX, Tail, Windows, order_shards};
use crate::size::to_usize;
use crate::store::Source;
use crate::sync::Arc;

impl Wish<'_> {
    /// Where they are not: each shard to one process, and the lanes end when they end, or begin again.
    pub(super) fn by_shard(&self, sources: &[Source], dataset: u64) -> Result<Plan> {
        self.check_uncounted(sources)?;
        let part = self.part;
        let processes = part.ranks * part.workers;
        let process = part.rank * part.workers + part.worker;
        let mut shards: Vec<&Source> = sources.iter().collect();
        if let Some((_, seed)) = self.shuffle {
            order_shards(&mut shards, seed, self.epoch);
        }
        let own = shards
            .into_iter()
            .skip(to_usize(process))
            .step_by(to_usize(processes));
        let own: Vec<&Source> = own.collect();
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
        let is_repeating = self.steps.is_some();
        let each = to_usize(lanes);
        let of_lane = |lane: usize| own.iter().copied().skip(lane).step_by(each).cloned();
        let rows: Vec<Vec<Stretch>> = (0..each)
            .map(|lane| of_lane(lane).map(Stretch::whole).collect())
            .collect();
        let pass = if is_repeating {
            pass_of(&spots, &rows)
        } else {
            0
        };
        let lane = |(lane, (spot, row)): (usize, (Spot, Vec<Stretch>))| {
            let spot = spot_in(pass, spot, row.len() as u64);
            LaneWork {
                stretches: going_on(pass, spot, &row),
                again: if is_repeating {
                    row.into()
                } else {
                    Arc::default()
                },
                windows: self.shuffle.map_or_else(Windows::none, |(_, seed)| {
                    Windows::new(window, seed, self.epoch, lane as u64 * processes + process)
                }),
                spot,
            }
        };
        Ok(Plan {
            lanes: spots.into_iter().zip(rows).enumerate().map(lane).collect(),
            turns: Turns::Round { next, is_repeating },
            order: Order {
                lanes,
                groups: part.workers,
                window,
                global_batch: self.batch.saturating_mul(part.ranks),
                counted: None,
                steps_here: self.steps.map(|(steps, made)| {
                    let all = steps.saturating_sub(part.worker).div_ceil(part.workers);
                    all.saturating_sub(made)
                }),
                dataset,
            },
        })
    }

    /// Refuses what takes counts of samples.
    fn check_uncounted(&self, sources: &[Source]) -> Result<()> {
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
