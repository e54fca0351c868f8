//! All samples of a dataset in one row, shard by shard in the order of an epoch.

use super::grid::refused;
use super::order_shards;
use crate::error::Result;
use crate::size::to_usize;

/// Pieces of shards that are read in one epoch at most, those that are read again included: each is kept in a list of some 200
/// bytes.
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

/// All samples of a dataset in one row. It goes round: behind its end it begins again.
#[derive(Debug, Clone)]
pub struct Row {
    /// Shards in the order of the epoch.
    shards: Vec<u32>,
    /// Where each of them begins in the row, and where the last one ends.
    starts: Vec<u64>,
}

impl Row {
    /// The row of shards that hold `counts` samples, in the order that `seed` gives them in the epoch `number`, or as they are.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for more than 2^32 shards.
    pub fn new(counts: &[u64], seed: Option<u64>, number: u64) -> Result<Self> {
        let many = u32::try_from(counts.len());
        let many = many.map_err(|_many| {
            refused(
                "there are more than 2^32 shards".into(),
                "use larger shards",
            )
        })?;
        let mut shards: Vec<u32> = (0..many).collect();
        if let Some(seed) = seed {
            order_shards(&mut shards, seed, number);
        }
        let mut starts = Vec::with_capacity(shards.len() + 1);
        let mut all = 0_u64;
        for &shard in &shards {
            starts.push(all);
            all = all.saturating_add(counts[shard as usize]);
        }
        starts.push(all);
        Ok(Self { shards, starts })
    }

    /// Samples in it.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// `samples`, where it does not go round more often than anybody wants for them; `what` they are for. Each time `lanes` divide
    /// it among themselves.
    ///
    /// # Errors
    ///
    /// `InvalidInput` where it does.
    pub fn check(&self, samples: u128, lanes: u64, what: &str) -> Result<u64> {
        let all = u128::from(self.samples());
        let of_pass = (self.shards.len() as u128 + u128::from(lanes)).min(all);
        let pieces = samples.div_ceil(all.max(1)) * of_pass;
        match u64::try_from(samples) {
            Ok(samples) if u128::from(samples) <= all || pieces <= PIECES_MAX => Ok(samples),
            _ => Err(refused(
                format!(
                    "{what} take {samples} samples of {} shards that have {all}, so up to {pieces} pieces of shards would be read, and {PIECES_MAX} can be in one epoch",
                    self.shards.len()
                ),
                "make fewer steps in an epoch, and more epochs: `steps_per_epoch`",
            )),
        }
    }

    /// The piece `[from, to)`.
    #[must_use]
    pub fn piece(&self, mut from: u64, to: u64) -> Vec<Segment> {
        let all = self.samples();
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
