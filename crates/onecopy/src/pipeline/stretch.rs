//! What a lane has to do, and where it stands.

use crate::sample::Extent;
use crate::sample::order::Windows;
use crate::store::Source;
use crate::sync::Arc;

/// Samples of one shard that are read in one go.
#[derive(Debug, Clone)]
pub struct Stretch {
    /// The shard.
    pub source: Source,
    /// Which of its bytes.
    pub extent: Extent,
    /// Which of the samples in it: by turns some are passed over, and some taken.
    pub takes: Vec<Take>,
    /// Whether nothing may follow those.
    pub is_last: bool,
}

/// Neighbouring samples of a stretch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Take {
    /// So many are passed over first: nobody knows where those behind them begin, or they are too few to be worth a request.
    pub skip: u64,
    /// So many follow, and not one less; none takes all that come.
    pub take: Option<u64>,
}

/// Neither passes over nor takes anything.
pub(super) const NOTHING: Take = Take {
    skip: 0,
    take: Some(0),
};

impl Stretch {
    /// All of a shard, however much that is.
    #[must_use]
    pub fn whole(source: Source) -> Self {
        Self {
            source,
            extent: Extent::WHOLE,
            takes: vec![Take {
                skip: 0,
                take: None,
            }],
            is_last: false,
        }
    }

    /// How many bytes of the shard are read, where that is known.
    #[must_use]
    pub fn len_bytes(&self) -> Option<u64> {
        let end = self.extent.end.or(self.source.object.len_bytes)?;
        Some(end.saturating_sub(self.extent.start))
    }

    /// What of which shard has to come in for it.
    pub(super) fn part(&self) -> (Source, Extent) {
        (self.source.clone(), self.extent)
    }
}

/// Where a lane stands: which window its samples leave from, where that begins, and how many have left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spot {
    /// Which of the lane's stretches the window begins in; as many as there are at the lane's end. Where they are read pass
    /// by pass, it goes on counting.
    pub stretch: u64,
    /// Where in the shard it begins, in bytes.
    pub offset: u64,
    /// So many samples behind that.
    pub skip: u64,
    /// Which window it is.
    pub window: u64,
    /// How many samples it holds; 0 where none was read yet, so that it holds what its windows say.
    pub len: u64,
    /// How many of them have left.
    pub given: u64,
}

/// What a lane has to do.
#[derive(Debug)]
pub struct LaneWork {
    /// Which source it reads, where there are several.
    pub source: usize,
    /// What it reads: from the beginning of the window of its spot on.
    pub stretches: Vec<Stretch>,
    /// What it reads then, pass by pass and without end, once all lanes have ended their pass; nothing where each sample
    /// comes once.
    pub again: Arc<[Stretch]>,
    /// The order in which its samples leave.
    pub windows: Windows,
    /// Where it stands when it begins.
    pub spot: Spot,
}

impl LaneWork {
    /// How many bytes it reads, where all lengths are known and there is an end.
    #[must_use]
    pub fn len_bytes(&self) -> Option<u64> {
        if !self.again.is_empty() {
            return None;
        }
        self.stretches.iter().map(Stretch::len_bytes).sum()
    }
}
