//! An epoch whose samples are counted: every sample once, and the same number of steps for everybody.

use super::grid::refused;
use super::{Grid, Part, Row, Segment, Tail, Windows};
use crate::error::Result;

/// One epoch of a dataset whose samples are counted.
///
/// All samples stand in one row, shard by shard in the order of the epoch. The row is cut, or goes round, so that it holds what
/// the steps need, and falls into lanes, each of which reads its piece of the row from front to back.
///
/// A row that goes round for [`Epoch::of_steps`] does so pass by pass: in each pass, lanes read pieces of the row that lie side by
/// side, as many samples as they give in that pass, and a lane is the chain of its pieces. So the first pass gives each sample
/// once, the next one again, and so on, but for windows: those in which lanes stand where a pass ends hold samples of the next one,
/// too. To cut them there would make windows of any length, where samples of a small dataset would hardly be moved.
#[derive(Debug, Clone)]
pub struct Epoch {
    grid: Grid,
    /// Samples of a lane's window, and the seed; none where the order stays.
    shuffle: Option<(u64, u64)>,
    number: u64,
    row: Row,
    /// Samples that the epoch gives, those that come twice included.
    samples: u64,
    /// Samples of a pass: where the epoch has more, lanes begin the row again.
    pass: u64,
}

impl Epoch {
    /// The epoch `number` of shards that hold `counts` samples. `shuffle` are the samples of a lane's window, and the seed; none
    /// keeps the order of the shards, too.
    ///
    /// # Errors
    ///
    /// `InvalidInput` where there is nothing to give.
    pub fn new(
        counts: &[u64],
        grid: Grid,
        tail: Tail,
        shuffle: Option<(u64, u64)>,
        number: u64,
    ) -> Result<Self> {
        let mut epoch = Self::of_all(counts, grid, shuffle, number)?;
        let (all, batch) = (epoch.samples, grid.batch());
        epoch.samples = match tail {
            Tail::Short => all,
            Tail::Pad => all.div_ceil(batch) * batch,
            Tail::Drop => all / batch * batch,
        };
        if epoch.samples == 0 {
            return Err(refused(
                format!(
                    "of {all} samples none is left for global batches of {batch} samples (`tail={tail}`)"
                ),
                "take smaller batches, or use `tail=pad` or `tail=short`",
            ));
        }
        // What fills the last batch is no pass of its own.
        epoch.pass = epoch.samples;
        Ok(epoch)
    }

    /// As [`Epoch::new`], but of exactly `steps` full global batches, whether that is less than there is or more: the row then
    /// goes round, as often as it takes.
    ///
    /// # Errors
    ///
    /// `InvalidInput` where there is nothing to give, or the row would be read more often than anybody wants.
    pub fn of_steps(
        counts: &[u64],
        grid: Grid,
        steps: u64,
        shuffle: Option<(u64, u64)>,
        number: u64,
    ) -> Result<Self> {
        let mut epoch = Self::of_all(counts, grid, shuffle, number)?;
        let (all, batch) = (epoch.samples, grid.batch());
        if all == 0 || steps == 0 {
            return Err(refused(
                format!("{steps} steps of {batch} samples are to be made of {all} samples"),
                "make one step at least, of data that have samples",
            ));
        }
        let samples = u128::from(steps) * u128::from(batch);
        let what = format!("{steps} steps of {batch} samples");
        epoch.samples = epoch.row.check(samples, grid.lanes(), &what)?;
        Ok(epoch)
    }

    /// All samples, each once.
    fn of_all(
        counts: &[u64],
        grid: Grid,
        shuffle: Option<(u64, u64)>,
        number: u64,
    ) -> Result<Self> {
        let row = Row::new(counts, shuffle.map(|(_, seed)| seed), number)?;
        Ok(Self {
            grid,
            shuffle,
            number,
            samples: row.samples(),
            pass: row.samples(),
            row,
        })
    }

    /// Whether each rank of `part` gets as many steps as all others, and can be given whole lanes.
    ///
    /// # Errors
    ///
    /// `InvalidInput`, with what to do.
    pub fn check(&self, part: Part) -> Result<()> {
        self.grid.check_all(part, self.samples)
    }

    /// How samples are dealt out.
    #[must_use]
    pub fn grid(&self) -> Grid {
        self.grid
    }

    /// Samples in the shards.
    #[must_use]
    pub fn dataset_samples(&self) -> u64 {
        self.row.samples()
    }

    /// Samples that the epoch gives to all ranks together, those that come twice included.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Global batches, the last short one included: so many steps each rank makes.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.samples.div_ceil(self.grid.batch())
    }

    /// Samples that come twice.
    #[must_use]
    pub fn padded(&self) -> u64 {
        self.samples.saturating_sub(self.dataset_samples())
    }

    /// Samples that do not come.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dataset_samples().saturating_sub(self.samples)
    }

    /// The samples that come twice, and those that do not come: both are a piece of the row.
    #[must_use]
    pub fn odd(&self) -> Vec<Segment> {
        let all = self.dataset_samples();
        self.row.piece(all.min(self.samples), all.max(self.samples))
    }

    /// How many samples `lane` gives.
    #[must_use]
    pub fn lane_len(&self, lane: u64) -> u64 {
        self.grid.taken(lane, self.samples)
    }

    /// Where in the row the sample `ordinal` of `lane` stands, and how many of its samples follow each other from there on.
    fn piece(&self, lane: u64, ordinal: u64) -> (u64, u64) {
        let begin = self.grid.sample_of(lane, ordinal) / self.pass * self.pass;
        let end = begin.saturating_add(self.pass).min(self.samples);
        let before = |samples| self.grid.taken_before(lane, samples);
        let start = begin + before(end) - before(begin);
        let read = ordinal - self.grid.taken(lane, begin);
        (start + read, self.grid.taken(lane, end) - ordinal)
    }

    /// What `lane` reads, from its sample `from` on, counted in the order in which it reads.
    #[must_use]
    pub fn lane(&self, lane: u64, mut from: u64) -> Vec<Segment> {
        let mut segments = Vec::new();
        while from < self.lane_len(lane) {
            let (start, len) = self.piece(lane, from);
            segments.append(&mut self.row.piece(start, start + len));
            from += len;
        }
        segments
    }

    /// The order in which `lane` gives what it reads.
    #[must_use]
    pub fn windows(&self, lane: u64) -> Windows {
        self.shuffle.map_or_else(Windows::none, |(len, seed)| {
            Windows::new(len, seed, self.number, lane)
        })
    }

    /// Which sample of which shard is sample `g` of the epoch.
    #[must_use]
    pub fn sample(&self, sample: u64) -> (usize, u64) {
        let (lane, ordinal) = self.grid.place(sample);
        let source = self.windows(lane).source(ordinal, self.lane_len(lane));
        let (at, _) = self.piece(lane, source);
        let found = self.row.piece(at, at + 1).first().copied();
        found.map_or((0, 0), |segment| (segment.shard, segment.from))
    }
}
