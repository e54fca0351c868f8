//! Samples that are counted, as bytes to read.

use std::borrow::Cow;
use std::ops::Range;

use super::Counted;
use crate::pipeline::{Stretch, Take};
use crate::sample::Extent;
use crate::sample::order::{Chosen, Segment};
use crate::size::{MIB, to_usize};
use crate::store::Source;
use crate::sync::Arc;

/// Samples between two that are read are read over where they are no longer: another request would cost more than they do.
const GAP_BYTES: u64 = MIB as u64;

/// What is read of a dataset whose samples are counted.
pub(super) struct Data<'a> {
    pub(super) sources: &'a [Source],
    pub(super) counted: Counted,
    /// Where not all samples are read: which.
    pub(super) chosen: Option<Chosen>,
}

impl Data<'_> {
    /// How many samples of each shard are read.
    pub(super) fn counts(&self) -> Cow<'_, [u64]> {
        match &self.chosen {
            Some(chosen) => Cow::Owned(chosen.counts()),
            None => Cow::Borrowed(&self.counted.samples),
        }
    }

    /// Neighbours among the samples that are read, as neighbours among all.
    pub(super) fn segments(&self, segment: Segment) -> Vec<Segment> {
        match &self.chosen {
            Some(chosen) => chosen.segments(segment),
            None => vec![segment],
        }
    }

    pub(super) fn is_whole(&self, of: &Segment) -> bool {
        of.from == 0 && of.to == self.counted.samples[of.shard]
    }

    /// Rising segments of one shard as what is read in one go: where their bytes are known, those that lie near each other.
    pub(super) fn stretches(&self, segments: &[Segment]) -> Vec<Stretch> {
        let starts = segments.first().and_then(|of| self.starts(of.shard));
        let is_near = |one: &Segment, next: &Segment| {
            let (from, to) = (
                starts?.get(to_usize(one.to))?,
                starts?.get(to_usize(next.from))?,
            );
            Some(to.saturating_sub(*from) <= GAP_BYTES)
        };
        let near = segments.chunk_by(|one, next| is_near(one, next).unwrap_or(true));
        near.filter_map(|segments| self.stretch(segments)).collect()
    }

    fn starts(&self, shard: usize) -> Option<&Arc<[u64]>> {
        self.counted.starts.get(shard).and_then(Option::as_ref)
    }

    pub(super) fn stretch(&self, segments: &[Segment]) -> Option<Stretch> {
        let (first, last) = (segments.first()?, segments.last()?);
        let (shard, count) = (first.shard, self.counted.samples[first.shard]);
        let is_last = last.to == count;
        let (extent, mut at) = match self.starts(shard) {
            Some(starts) if count > 0 => (extent(starts, first.from..last.to, is_last), first.from),
            _ => (Extent::WHOLE, 0),
        };
        let mut take = |of: &Segment| Take {
            skip: of.from - std::mem::replace(&mut at, of.to),
            take: Some(of.to - of.from),
        };
        Some(Stretch {
            source: self.sources[shard].clone(),
            extent,
            takes: segments.iter().map(&mut take).collect(),
            is_last,
        })
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
