//! An epoch whose samples are counted: every sample once, and the same number of steps for everybody.

use super::grid::refused;
use super::{Grid, Part, Tail, Windows, order_shards};
use crate::error::Result;
use crate::size::to_usize;

/// Shards that are read in one epoch at most, those that are read again included: each is kept in a list of some 200 bytes.
const PIECES_MAX: u128 = 1 << 22;

/// Neighbouring samples of one shard, `[from, to)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Which shard, as the counts are numbered.
    pub shard: usize,
    /// The first sample.
    pub from: u64,
    /// Behind the last one.
    pub to: u64,
}

/// One epoch of a dataset whose samples are counted.
///
/// All samples stand in one row, shard by shard in the order of the epoch. The row is cut, or goes round, so that it holds what
/// the steps need, and falls into lanes, each of which reads its piece of the row from front to back.
#[derive(Debug, Clone)]
pub struct Epoch {
    grid: Grid,
    /// Samples of a lane's window, and the seed; none where the order stays.
    shuffle: Option<(u64, u64)>,
    number: u64,
    /// Shards in the order of the epoch.
    shards: Vec<u32>,
    /// Where each of them begins in the row, and where the last one ends.
    starts: Vec<u64>,
    /// Samples that the epoch gives, those that come twice included.
    samples: u64,
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
        let pieces = samples.div_ceil(all.into()) * counts.len() as u128;
        epoch.samples = u64::try_from(samples).unwrap_or(u64::MAX);
        if pieces > PIECES_MAX && samples > all.into() {
            return Err(refused(
                format!(
                    "{steps} steps of {batch} samples take {samples} samples of {} shards that have {all}, so {pieces} shards would be read, and {PIECES_MAX} can be in one epoch",
                    counts.len()
                ),
                "make fewer steps in an epoch, and more epochs: `steps_per_epoch`",
            ));
        }
        Ok(epoch)
    }

    /// All samples, each once.
    fn of_all(
        counts: &[u64],
        grid: Grid,
        shuffle: Option<(u64, u64)>,
        number: u64,
    ) -> Result<Self> {
        let many = u32::try_from(counts.len());
        let many = many.map_err(|_many| {
            refused(
                "there are more than 2^32 shards".into(),
                "use larger shards",
            )
        })?;
        let mut shards: Vec<u32> = (0..many).collect();
        if let Some((_, seed)) = shuffle {
            order_shards(&mut shards, seed, number);
        }
        let mut starts = Vec::with_capacity(shards.len() + 1);
        let mut all = 0_u64;
        for &shard in &shards {
            starts.push(all);
            all = all.saturating_add(counts[shard as usize]);
        }
        starts.push(all);
        Ok(Self {
            grid,
            shuffle,
            number,
            shards,
            starts,
            samples: all,
        })
    }

    /// Whether each rank of `part` gets as many steps as all others, and can be given whole lanes.
    ///
    /// # Errors
    ///
    /// `InvalidInput`, with what to do.
    pub fn check(&self, part: Part) -> Result<()> {
        self.grid.check(part)?;
        let rest = self.samples % self.grid.batch();
        if rest > 0 && rest < part.ranks {
            return Err(refused(
                format!(
                    "the last global batch has {rest} samples for {} ranks, so some would make a step less, and the others wait for them",
                    part.ranks
                ),
                "use `tail=pad` or `tail=drop`",
            ));
        }
        Ok(())
    }

    /// How samples are dealt out.
    #[must_use]
    pub fn grid(&self) -> Grid {
        self.grid
    }

    /// Samples in the shards.
    #[must_use]
    pub fn dataset_samples(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
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
        self.row(all.min(self.samples), all.max(self.samples))
    }

    /// How many samples `lane` gives.
    #[must_use]
    pub fn lane_len(&self, lane: u64) -> u64 {
        self.grid.taken(lane, self.samples)
    }

    /// Where in the row the piece of `lane` begins.
    fn lane_start(&self, lane: u64) -> u64 {
        let (group, place) = (lane % self.grid.groups(), lane / self.grid.groups());
        let before: u64 = (0..group)
            .map(|group| self.grid.taken_of_group(group, self.samples))
            .sum();
        let own = self.grid.taken_of_group(group, self.samples);
        let lanes = self.grid.lanes_of_group();
        before + place * (own / lanes) + place.min(own % lanes)
    }

    /// What `lane` reads, from its sample `from` on, counted in the order in which it reads.
    #[must_use]
    pub fn lane(&self, lane: u64, from: u64) -> Vec<Segment> {
        let (start, len) = (self.lane_start(lane), self.lane_len(lane));
        self.row(start + from.min(len), start + len)
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
        let at = self.lane_start(lane) + source;
        let found = self.row(at, at + 1).first().copied();
        found.map_or((0, 0), |segment| (segment.shard, segment.from))
    }

    /// The piece `[from, to)` of the row, which goes round.
    fn row(&self, mut from: u64, to: u64) -> Vec<Segment> {
        let all = self.dataset_samples();
        let mut segments: Vec<Segment> = Vec::new();
        while from < to && all > 0 {
            let at = from % all;
            // The last shard that begins there or before; empty ones end where they begin.
            let place = self.starts.partition_point(|&start| start <= at) - 1;
            let (start, end) = (self.starts[place], self.starts[place + 1]);
            let len = (end - at).min(to - from);
            segments.push(Segment {
                shard: to_usize(self.shards[place].into()),
                from: at - start,
                to: at - start + len,
            });
            from += len;
        }
        segments
    }
}
