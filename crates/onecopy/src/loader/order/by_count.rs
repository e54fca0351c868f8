//! Where samples are counted: every sample once, and the same number of steps for everybody.

use super::data::Data;
use super::{Counted, LANES, Order, Plan, Totals, Wish, other_kind, refused};
use crate::error::Result;
use crate::loader::Position;
use crate::pipeline::{LaneWork, Spot, Turns};
use crate::sample::order::{Chosen, Epoch, Grid, Part, Segment, Windows};
use crate::store::Source;
use crate::sync::Arc;

impl Wish<'_> {
    /// Which samples are read, where not all are.
    fn chosen(&self, counted: &Counted) -> Result<Option<Chosen>> {
        if self.choices.is_empty() {
            return Ok(None);
        }
        Chosen::new(&counted.samples, self.choices).map(Some)
    }

    /// Where samples are counted: every sample once, and the same number of steps for everybody.
    pub(super) fn by_count(
        &self,
        sources: &[Source],
        counted: Counted,
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
        let mut data = Data {
            sources,
            chosen: self.chosen(&counted)?,
            counted,
        };
        let (counts, number) = (data.counts(), self.epoch);
        let epoch = match self.steps {
            None => Epoch::new(&counts, grid, self.tail, shuffle, number),
            Some((steps, _)) => Epoch::of_steps(&counts, grid, steps, shuffle, number),
        }?;
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
        let is_part = |of: &Segment| !data.is_whole(of);
        let segments = segments.flat_map(|of| data.segments(*of));
        let mut parts: Vec<usize> = segments.filter(is_part).map(|of| of.shard).collect();
        parts.sort_unstable();
        parts.dedup();
        find_starts(&mut data.counted, &parts)?;
        let work = |(spot, windows, segments): (Spot, Windows, Vec<Segment>)| LaneWork {
            stretches: segments
                .into_iter()
                .flat_map(|segment| data.stretches(&data.segments(segment)))
                .collect(),
            again: Arc::default(),
            windows,
            spot,
        };
        let mut lanes_here: Vec<LaneWork> = lanes_here.into_iter().map(work).collect();
        if let (
            Part {
                rank: 0, worker: 0, ..
            },
            Some(first),
            None,
        ) = (self.part, lanes_here.first_mut(), &data.chosen)
        {
            // Shards that are said to be empty are looked at, too: what they have would be lost in silence.
            let empty = (0..sources.len()).filter(|&shard| data.counted.samples[shard] == 0);
            let looked_at = empty.filter_map(|shard| {
                data.stretch(&[Segment {
                    shard,
                    from: 0,
                    to: 0,
                }])
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
                    odd: epoch
                        .odd()
                        .into_iter()
                        .flat_map(|of| data.segments(of))
                        .collect(),
                }),
                steps_here: None,
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
