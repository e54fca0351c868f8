//! Where samples are not counted: each shard to one worker, and the lanes end when they end.

use super::{LANES, Order, Plan, Wish, other_kind, refused};
use crate::error::Result;
use crate::loader::Position;
use crate::pipeline::{LaneWork, Spot, Stretch, Turns};
use crate::sample::order::{LANES_MAX, Tail, Windows, order_shards};
use crate::size::to_usize;
use crate::store::Source;

impl Wish<'_> {
    /// Where they are not: each shard to one worker, and the lanes end when they end.
    pub(super) fn by_shard(&self, sources: &[Source], dataset: u64) -> Result<Plan> {
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
        let mut shards: Vec<&Source> = sources.iter().collect();
        if let Some((_, seed)) = self.shuffle {
            order_shards(&mut shards, seed, self.epoch);
        }
        let own = shards
            .into_iter()
            .skip(to_usize(part.worker))
            .step_by(to_usize(part.workers).max(1));
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
        let each = to_usize(lanes);
        let lane = |(lane, spot): (usize, Spot)| LaneWork {
            stretches: going_on(own.iter().copied().skip(lane).step_by(each), spot),
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

/// The shards of a lane, from `spot` on.
fn going_on<'a>(shards: impl Iterator<Item = &'a Source>, spot: Spot) -> Vec<Stretch> {
    let mut stretches: Vec<Stretch> = shards
        .skip(to_usize(spot.stretch))
        .cloned()
        .map(Stretch::whole)
        .collect();
    if let Some(first) = stretches.first_mut() {
        first.extent.start = spot.offset;
        if let Some(take) = first.takes.first_mut() {
            take.skip = spot.skip;
        }
    }
    stretches
}
