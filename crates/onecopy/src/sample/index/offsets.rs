//! Where the samples of one shard begin.

/// A tar's unit: headers and contents begin at multiples of it.
pub(super) const BLOCK: u64 = 512;

/// Where each sample of a shard begins, in bytes of its tar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offsets {
    /// One more than there are samples; each larger than the one before.
    bounds: Vec<u64>,
}

impl Offsets {
    /// Takes the start of each sample and the end of the last one, each of which must be a multiple of 512 and larger than
    /// the one before; else gives the place of the first that is not. No bounds at all are not enough: one is the end of
    /// no samples.
    pub(super) fn new(bounds: Vec<u64>) -> Result<Self, usize> {
        if bounds.is_empty() {
            return Err(0);
        }
        let mut before = None;
        for (place, &bound) in bounds.iter().enumerate() {
            if bound % BLOCK != 0 || before.is_some_and(|before| before >= bound) {
                return Err(place);
            }
            before = Some(bound);
        }
        Ok(Self { bounds })
    }

    /// The start of each sample, and the end of the last one.
    #[must_use]
    pub fn into_bounds(self) -> Vec<u64> {
        self.bounds
    }

    /// How many samples there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bounds.len() - 1
    }

    /// Whether there is no sample.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where to begin to read sample `place`, counted from 0: the first byte of its first header, or one between the end
    /// of the sample before and that header, at which another header lies. None past the last sample.
    #[must_use]
    pub fn start(&self, place: usize) -> Option<u64> {
        self.bounds[..self.len()].get(place).copied()
    }

    /// Where the last sample ends, padding included; 0 where there is none.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.bounds.last().copied().unwrap_or(0)
    }
}

/// What `size` bytes of content take up in a tar; none beyond what any tar has.
pub(super) fn padded(size: u64) -> Option<u64> {
    size.checked_next_multiple_of(BLOCK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_grow_block_by_block_and_the_last_is_the_end() {
        let offsets = Offsets::new(vec![0, 1024, 4096]).unwrap();
        assert_eq!((offsets.len(), offsets.end()), (2, 4096));
        assert_eq!(
            [0, 1, 2].map(|place| offsets.start(place)),
            [Some(0), Some(1024), None]
        );
        assert!(Offsets::new(vec![0]).unwrap().is_empty());
        for (bounds, place) in [
            (vec![], 0),
            (vec![0, 100], 1),
            (vec![512, 512], 1),
            (vec![0, 1024, 512], 2),
        ] {
            assert_eq!(Offsets::new(bounds), Err(place));
        }
    }
}
