//! An epoch of several sources whose samples are counted.

mod draws;

use self::draws::Draws;
use super::grid::refused;
use super::{Grid, Mixture, Part, Row, Segment, Stop, Tail, Windows};
use crate::error::Result;
use crate::size::to_usize;

/// Samples of an epoch at most: every draw is looked at once, which takes half a minute for so many at the
/// 17 ns that were measured for one.
const SAMPLES_MAX: u64 = 1 << 28;

/// One source of a mixture.
#[derive(Debug, Clone)]
pub struct Source {
    /// All samples of it.
    pub row: Row,
    /// Samples of a lane's window, and the seed; none where the order stays.
    pub shuffle: Option<(u64, u64)>,
}

/// How long an epoch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// So many global batches.
    Steps(u64),
    /// As the sources have samples.
    Until(Stop, Tail),
}

/// One epoch of several sources, as of one.
///
/// Which source gives a sample is drawn for the sample's place in the grid, so it depends on no rank. How often a source is drawn
/// for a lane says how long a piece of the source's row that lane reads: pieces follow each other in the row, lane by lane.
///
/// A source's pass ends when it was drawn as often as it has samples. It then begins again, with pieces of its own for each lane, so
/// that nothing of it comes twice before all of it came, but for what [`super::Epoch`] says of windows. Draws that only fill the last
/// batch begin no pass: they lengthen the pieces of the last one.
#[derive(Debug, Clone)]
pub struct Mixed {
    grid: Grid,
    mixture: Mixture,
    sources: Vec<Source>,
    number: u64,
    samples: u64,
    /// For each lane and source, in this order: where in the source's row the lane's pieces begin, and how long they are.
    pieces: Vec<Vec<(u64, u64)>>,
}

impl Mixed {
    /// The epoch `number`.
    ///
    /// # Errors
    ///
    /// `InvalidInput` where a source has nothing to give, or the epoch would have no samples or too many.
    pub fn new(
        grid: Grid,
        mixture: Mixture,
        sources: Vec<Source>,
        length: Length,
        number: u64,
    ) -> Result<Self> {
        if let Some(empty) = sources.iter().position(|source| source.row.samples() == 0) {
            return Err(refused(
                format!("source {empty} of the mixture has no samples (counted from 0)"),
                "leave it out",
            ));
        }
        check_length(grid, &mixture, &sources, length)?;
        let mut draws = Draws::new(grid, &mixture, &sources);
        let batch = grid.batch();
        match length {
            Length::Steps(steps) => draws.go_to(steps * batch)?,
            Length::Until(stop, tail) => {
                draws.go_until(stop)?;
                match tail {
                    Tail::Short => {}
                    Tail::Pad => draws.fill_up(draws.samples().next_multiple_of(batch)),
                    Tail::Drop => draws.go_back(draws.samples() / batch * batch),
                }
            }
        }
        let samples = draws.samples();
        if samples == 0 {
            return Err(refused(
                format!("no global batch of {batch} samples comes together"),
                "take smaller batches, or use `tail=pad` or `tail=short`",
            ));
        }
        let pieces = draws.into_pieces()?;
        Ok(Self {
            grid,
            mixture,
            sources,
            number,
            samples,
            pieces,
        })
    }

    /// See [`super::Epoch::check`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn check(&self, part: Part) -> Result<()> {
        self.grid.check_all(part, self.samples)
    }

    /// Samples that the epoch gives to all ranks together.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Global batches, the last short one included.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.samples.div_ceil(self.grid.batch())
    }

    /// How many of them are of `source`.
    #[must_use]
    pub fn samples_of(&self, source: usize) -> u64 {
        let own = self.pieces.iter().skip(source).step_by(self.sources.len());
        own.flatten().map(|(_, len)| len).sum()
    }

    /// The samples of `source` that come again, or do not come: both are a piece of its row.
    #[must_use]
    pub fn odd(&self, source: usize) -> Vec<Segment> {
        let row = &self.sources[source].row;
        let (all, given) = (row.samples(), self.samples_of(source));
        row.piece(all.min(given), all.max(given))
    }

    /// How many samples of `source` the lane gives.
    #[must_use]
    pub fn lane_len(&self, source: usize, lane: u64) -> u64 {
        self.pieces_of(source, lane)
            .iter()
            .map(|(_, len)| len)
            .sum()
    }

    /// How many of these are among the first `samples` of the epoch, for each source.
    #[must_use]
    pub fn taken(&self, lane: u64, samples: u64) -> Vec<u64> {
        let key = self.mixture.key(lane);
        let mut taken = vec![0; self.sources.len()];
        for ordinal in 0..self.grid.taken(lane, samples) {
            taken[self.mixture.draw(key, ordinal)] += 1;
        }
        taken
    }

    /// What the lane reads of `source`, from its sample `from` on, counted in the order in which it reads.
    #[must_use]
    pub fn lane(&self, source: usize, lane: u64, mut from: u64) -> Vec<Segment> {
        let row = &self.sources[source].row;
        let mut segments = Vec::new();
        for (start, len) in self.pieces_of(source, lane) {
            let before = from.min(*len);
            segments.append(&mut row.piece(start + before, start + len));
            from -= before;
        }
        segments
    }

    /// The order in which the lane gives what it reads of `source`.
    #[must_use]
    pub fn windows(&self, source: usize, lane: u64) -> Windows {
        let shuffle = self.sources[source].shuffle;
        shuffle.map_or_else(Windows::none, |(len, seed)| {
            Windows::new(len, seed, self.number, lane)
        })
    }

    fn pieces_of(&self, source: usize, lane: u64) -> &[(u64, u64)] {
        &self.pieces[to_usize(lane) * self.sources.len() + source]
    }
}

/// Refuses epochs of which every draw would have to be looked at for too long. A hundredth more than is expected is far more than
/// chance adds to so many.
fn check_length(grid: Grid, mixture: &Mixture, sources: &[Source], length: Length) -> Result<()> {
    let expected = sources.iter().enumerate().map(|(at, source)| {
        (u128::from(source.row.samples()) << 53) / u128::from(mixture.share(at).max(1))
    });
    let samples = match length {
        Length::Steps(steps) => Some(u128::from(steps) * u128::from(grid.batch())),
        Length::Until(Stop::FirstExhausted, _) => expected.min(),
        Length::Until(Stop::AllExhausted, _) => expected.max(),
    };
    let samples = samples.unwrap_or(0);
    if samples == 0 || samples > SAMPLES_MAX.into() {
        return Err(refused(
            format!(
                "an epoch of this mixture has some {samples} samples, and it may have {SAMPLES_MAX}"
            ),
            "say how long an epoch is (`steps_per_epoch`), end it with the first source that has no more, or use weights and sources that are less unlike",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
