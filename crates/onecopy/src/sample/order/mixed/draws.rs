//! Which source gives each of the first samples of an epoch, and so what each lane reads of each source.

use super::{SAMPLES_MAX, Source};
use crate::error::Result;
use crate::sample::order::grid::refused;
use crate::sample::order::{Grid, Mixture, Row, Stop};
use crate::size::to_usize;

/// The draws for the first samples of an epoch.
pub(super) struct Draws<'a> {
    grid: Grid,
    mixture: &'a Mixture,
    keys: Vec<u64>,
    /// So many samples were drawn for.
    samples: u64,
    /// How often, for each lane and source, in the pass in which the source is.
    of_lanes: Vec<u64>,
    sources: Vec<Drawn<'a>>,
}

/// How often one source was drawn.
struct Drawn<'a> {
    row: &'a Row,
    /// Of each pass that ended: the lanes that read of the source in it, and how many samples, in the order of their pieces.
    ended: Vec<Vec<(u64, u64)>>,
    /// Samples of the pass in which it is.
    samples: u64,
    /// The lanes that read them. So a pass that few lanes read takes little, and no more than [`Row::check`] counts.
    lanes: Vec<u64>,
}

impl Drawn<'_> {
    /// Whether the pass ends with the sample that was drawn last.
    fn is_whole(&self) -> bool {
        self.samples == self.row.samples()
    }

    fn has_been_whole(&self) -> bool {
        self.is_whole() || !self.ended.is_empty()
    }
}

impl<'a> Draws<'a> {
    pub(super) fn new(grid: Grid, mixture: &'a Mixture, sources: &'a [Source]) -> Self {
        let keys: Vec<u64> = (0..grid.lanes()).map(|lane| mixture.key(lane)).collect();
        let drawn = |source: &'a Source| Drawn {
            row: &source.row,
            ended: Vec::new(),
            samples: 0,
            lanes: Vec::new(),
        };
        Self {
            grid,
            mixture,
            samples: 0,
            of_lanes: vec![0; keys.len() * sources.len()],
            keys,
            sources: sources.iter().map(drawn).collect(),
        }
    }

    pub(super) fn samples(&self) -> u64 {
        self.samples
    }

    /// The lane and the source of a sample.
    fn at(&self, sample: u64) -> (u64, usize) {
        let (lane, ordinal) = self.grid.place(sample);
        (lane, self.mixture.draw(self.keys[to_usize(lane)], ordinal))
    }

    fn count(&mut self, lane: u64, source: usize) -> &mut u64 {
        &mut self.of_lanes[to_usize(lane) * self.sources.len() + source]
    }

    /// Goes on by one sample, in the pass in which its source is.
    fn take(&mut self, lane: u64, source: usize) {
        let count = self.count(lane, source);
        *count += 1;
        if *count == 1 {
            self.sources[source].lanes.push(lane);
        }
        self.sources[source].samples += 1;
        self.samples += 1;
    }

    /// Goes on by one sample. A source that has no more begins again.
    fn take_or_begin_again(&mut self, lane: u64, source: usize) -> Result<()> {
        if self.sources[source].is_whole() {
            self.end_pass(source);
            self.check(source, 1)?;
        }
        self.take(lane, source);
        Ok(())
    }

    /// Goes on to the first `samples`.
    pub(super) fn go_to(&mut self, samples: u64) -> Result<()> {
        while self.samples < samples {
            let (lane, source) = self.at(self.samples);
            self.take_or_begin_again(lane, source)?;
        }
        Ok(())
    }

    /// Goes on to the first `samples`, where those that are missing only fill a batch.
    pub(super) fn fill_up(&mut self, samples: u64) {
        while self.samples < samples {
            let (lane, source) = self.at(self.samples);
            self.take(lane, source);
        }
    }

    /// Goes on to the end of the epoch.
    pub(super) fn go_until(&mut self, stop: Stop) -> Result<()> {
        let mut whole = 0;
        while self.samples <= SAMPLES_MAX + SAMPLES_MAX / 100 {
            let (lane, source) = self.at(self.samples);
            let has_been = self.sources[source].has_been_whole();
            if has_been && stop == Stop::FirstExhausted {
                return Ok(());
            }
            self.take_or_begin_again(lane, source)?;
            whole += usize::from(!has_been && self.sources[source].is_whole());
            if whole == self.sources.len() && stop == Stop::AllExhausted {
                return Ok(());
            }
        }
        Err(refused(
            format!("an epoch of this mixture has more than {SAMPLES_MAX} samples"),
            "say how long an epoch is: `steps_per_epoch`",
        ))
    }

    /// Goes back to the first `samples`, also into passes that ended.
    pub(super) fn go_back(&mut self, samples: u64) {
        while self.samples > samples {
            self.samples -= 1;
            let (lane, source) = self.at(self.samples);
            if self.sources[source].samples == 0 {
                self.reopen_pass(source);
            }
            *self.count(lane, source) -= 1;
            self.sources[source].samples -= 1;
        }
    }

    fn end_pass(&mut self, source: usize) {
        let mut lanes = std::mem::take(&mut self.sources[source].lanes);
        let groups = self.grid.groups();
        lanes.sort_unstable_by_key(|lane| (lane % groups, *lane));
        let of_lane = |lane| (lane, std::mem::take(self.count(lane, source)));
        let pass = lanes.into_iter().map(of_lane).collect();
        self.sources[source].ended.push(pass);
        self.sources[source].samples = 0;
    }

    /// Takes up the pass that ended last, where nothing is left of the one behind it.
    fn reopen_pass(&mut self, source: usize) {
        let pass = self.sources[source].ended.pop().unwrap_or_default();
        let lanes = pass.iter().map(|(lane, _)| *lane).collect();
        for (lane, samples) in pass {
            *self.count(lane, source) = samples;
            self.sources[source].samples += samples;
        }
        self.sources[source].lanes = lanes;
    }

    /// Refuses what would read a source more often than anybody wants: the passes that ended, and so many samples more.
    fn check(&self, source: usize, more: u64) -> Result<()> {
        let Drawn { row, ended, .. } = &self.sources[source];
        let samples = ended.len() as u128 * u128::from(row.samples()) + u128::from(more);
        let what = format!("source {source} of the mixture");
        row.check(samples, self.grid.lanes(), &what).map(drop)
    }

    /// For each lane and source, in this order, the pieces of the source's row that the lane reads: where each begins, and how long
    /// it is. Those of a pass follow each other in the row, in the order of lanes that [`Grid::taken_before`] has.
    pub(super) fn into_pieces(mut self) -> Result<Vec<Vec<(u64, u64)>>> {
        let many = self.sources.len();
        let mut pieces = vec![Vec::new(); self.of_lanes.len()];
        for source in 0..many {
            self.check(source, self.sources[source].samples)?;
            self.end_pass(source);
            let mut start = 0;
            for (lane, len) in self.sources[source].ended.drain(..).flatten() {
                pieces[to_usize(lane) * many + source].push((start, len));
                start += len;
            }
        }
        Ok(pieces)
    }
}
