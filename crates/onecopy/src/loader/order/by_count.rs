//! Where samples are counted: every sample once, and the same number of steps for everybody.

use super::data::Data;
use super::{Counted, LANES, Order, Plan, Totals, Wish, other_kind, refused};
use crate::error::Result;
use crate::loader::Position;
use crate::pipeline::{Spot, Turns};
use crate::sample::order::{Chosen, Epoch, Grid, Segment, Windows};
use crate::store::Source;

impl Wish<'_> {
    /// Which samples are read, where not all are.
    pub(super) fn chosen(&self, counted: &Counted) -> Result<Option<Chosen>> {
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
        let own = grid.lanes_of(self.part).count() as u64;
        self.check_held(Self::held(window, own, sources, epoch.dataset_samples()))?;
        let from = self.begun_at(epoch.samples(), batch)?;
        let lanes_here: Vec<(Spot, Windows, Vec<Segment>)> = grid
            .lanes_of(self.part)
            .map(|lane| {
                let (given, len) = (grid.taken(lane, from), epoch.lane_len(lane));
                lane_from(given, len, epoch.windows(lane), |at| epoch.lane(lane, at))
            })
            .collect();
        let lanes_here = data.work(0, lanes_here, self.is_first(), find_starts)?;
        Ok(Plan {
            lanes: lanes_here,
            turns: Turns::Grid {
                grid,
                part: self.part,
                from,
                samples: epoch.samples(),
                mixture: None,
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
                    odd: self.is_odd_told.then(|| odd_of(&epoch, &data)),
                    sources: Vec::new(),
                }),
                steps_here: None,
                dataset,
            },
        })
    }
    /// Behind how many of the `samples` of the epoch this run begins.
    pub(super) fn begun_at(&self, samples: u64, batch: u64) -> Result<u64> {
        let from = match &self.position {
            None => 0,
            Some(Position::Samples(from)) => *from,
            Some(Position::Spots { .. } | Position::Mixed { .. }) => {
                return Err(other_kind("without an index", "with one"));
            }
        };
        if from > samples {
            return Err(refused(format!(
                "the state stands behind {from} samples, and the epoch has {samples}"
            )));
        }
        if from % batch != 0 && from != samples {
            return Err(refused(format!(
                "the state stands behind {from} samples, which is in the midst of a global batch of {batch}"
            )));
        }
        Ok(from)
    }

    /// Whether this process looks at what nobody reads.
    pub(super) fn is_first(&self) -> bool {
        self.part.rank == 0 && self.part.worker == 0
    }
}

/// The samples that come twice, or not at all.
fn odd_of(epoch: &Epoch, data: &Data<'_>) -> Vec<Segment> {
    let odd = epoch.odd().into_iter();
    odd.flat_map(|of| data.segments(of)).collect()
}

/// Where a lane of `len` samples stands that has given so many, and what it reads from there on: `read` tells from which of its
/// samples on.
pub(super) fn lane_from(
    given: u64,
    len: u64,
    windows: Windows,
    read: impl Fn(u64) -> Vec<Segment>,
) -> (Spot, Windows, Vec<Segment>) {
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
    (spot, windows, read(window.start))
}
