//! Samples that are counted, as bytes to read.

use std::borrow::Cow;
use std::ops::Range;

use super::Counted;
use crate::error::Result;
use crate::pipeline::{LaneWork, Spot, Stretch, Take};
use crate::sample::Extent;
use crate::sample::order::{Chosen, Segment, Windows};
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

    /// The work of lanes that stand somewhere and read something, of the source with this number.
    pub(super) fn work(
        &mut self,
        source: usize,
        lanes: Vec<(Spot, Windows, Vec<Segment>)>,
        is_first: bool,
        find_starts: impl Fn(&mut Counted, &[usize]) -> Result<()>,
    ) -> Result<Vec<LaneWork>> {
        let segments = lanes.iter().flat_map(|(_, _, segments)| segments);
        let is_part = |of: &Segment| !self.is_whole(of);
        let segments = segments.flat_map(|of| self.segments(*of));
        let mut parts: Vec<usize> = segments.filter(is_part).map(|of| of.shard).collect();
        parts.sort_unstable();
        parts.dedup();
        find_starts(&mut self.counted, &parts)?;
        let work = |(spot, windows, segments): (Spot, Windows, Vec<Segment>)| LaneWork {
            source,
            stretches: segments
                .into_iter()
                .flat_map(|segment| self.stretches(&self.segments(segment)))
                .collect(),
            again: Arc::default(),
            windows,
            spot,
        };
        let mut lanes: Vec<LaneWork> = lanes.into_iter().map(work).collect();
        if let (true, Some(first), None) = (is_first, lanes.first_mut(), &self.chosen) {
            // Shards that are said to be empty are looked at, too: what they have would be lost in silence.
            let shards = 0..self.sources.len();
            let empty = shards.filter(|&shard| self.counted.samples[shard] == 0);
            let looked_at = empty.filter_map(|shard| {
                self.stretch(&[Segment {
                    shard,
                    from: 0,
                    to: 0,
                }])
            });
            first.stretches.extend(looked_at);
        }
        Ok(lanes)
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
