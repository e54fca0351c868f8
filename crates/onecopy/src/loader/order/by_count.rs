//! Where samples are counted: every sample once, and the same number of steps for everybody.

use std::ops::Range;

use super::{Counted, LANES, Order, Plan, Totals, Wish, other_kind, refused};
use crate::error::Result;
use crate::loader::Position;
use crate::pipeline::{LaneWork, Spot, Stretch, Turns};
use crate::sample::Extent;
use crate::sample::order::{Epoch, Grid, Part, Segment, Windows};
use crate::size::to_usize;
use crate::store::Source;

impl Wish<'_> {
    /// Where samples are counted: every sample once, and the same number of steps for everybody.
    pub(super) fn by_count(
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
