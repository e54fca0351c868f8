//! How the memory of a load is divided.

use crate::config::{LoadConfig, RANGE_BYTES, default_memory_bytes};
use crate::error::{Error, ErrorKind, Result};
use crate::size::{MIB, PAGE, to_usize};

/// The share of `memory` that ranges get; batches in flight get the rest. A range becomes batch memory of about its own
/// size where bytes are kept, and of 1 to 3 times its size where pictures are decoded small.
const POOL_SHARE: (usize, usize) = (3, 4);

/// A slab holds several ranges, so that few members lie across two slabs: with members of 110 KB and slabs of 32 MiB
/// one member in 300 does.
const SLAB_BYTES: usize = 32 * MIB;

/// Slabs at least: some fill while others are read, and some are held back (see [`Memory::shuffle_bytes`]).
const SLABS: usize = 8;

/// The same for each of several lanes, which hold windows back: smaller slabs leave more of the memory to those.
const SLABS_OF_LANE: usize = 2 * SLABS;

/// How the memory is divided.
#[derive(Debug, Clone, Copy)]
pub(super) struct Memory {
    /// All lanes together.
    pub(super) pool_bytes: usize,
    /// One lane.
    lane_bytes: usize,
    /// How much of the stream one sample may take: a quarter of what a lane may have.
    pub(super) sample_bytes: u64,
    pub(super) slab_bytes: usize,
    pub(super) range_bytes: usize,
    /// Whether several ranges may be asked for in one request.
    pub(super) is_joining: bool,
    pub(super) batch_bytes: usize,
}

impl Memory {
    pub(super) fn plan(config: &LoadConfig, lanes: usize) -> Result<Self> {
        let memory = config.memory_bytes.unwrap_or_else(default_memory_bytes);
        if memory < MIB {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                "divide",
                format!("{memory} bytes of memory"),
                "it is less than 1 MiB",
            )
            .with_help("give it 16MiB at least; `memory=256MiB` is a good start"));
        }
        let pool_bytes = memory / POOL_SHARE.1 * POOL_SHARE.0;
        let lane_bytes = pool_bytes / lanes;
        let slabs = if lanes == 1 { SLABS } else { SLABS_OF_LANE };
        if lane_bytes / slabs < PAGE {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                "divide",
                format!("{memory} bytes of memory"),
                format!("it is too little for {lanes} lanes"),
            )
            .with_help("raise `memory`, or read in fewer lanes"));
        }
        // Whole pages, so that what is asked for is what a slab holds.
        let range_bytes = config.range_bytes.unwrap_or(RANGE_BYTES);
        let range_bytes = range_bytes.clamp(PAGE, lane_bytes / slabs) / PAGE * PAGE;
        // Whole ranges, so that they tile a slab.
        let ranges = (SLAB_BYTES.min(lane_bytes / slabs) / range_bytes).max(1);
        let slab_bytes = ranges * range_bytes;
        let lane_bytes = lane_bytes / slab_bytes * slab_bytes;
        Ok(Self {
            pool_bytes: lane_bytes * lanes,
            lane_bytes,
            sample_bytes: lane_bytes as u64 / 4,
            slab_bytes,
            range_bytes,
            // A range that was asked for is taken at its word, and little memory is better cut small.
            is_joining: config.range_bytes.is_none() && (ranges > 1 || lanes > 1),
            batch_bytes: memory - pool_bytes,
        })
    }

    /// How much batch memory is kept while nobody uses it: all that is in flight and as much again, for what the consumer
    /// holds. Mapping and touching a batch's memory anew costs more than filling it.
    pub(super) fn kept_bytes(&self) -> usize {
        2 * self.batch_bytes.max(self.pool_bytes / 2)
    }

    /// The same for lanes that read no more than `most_bytes` each: memory that nothing will fill is not even touched.
    pub(super) fn fitting(self, lanes: usize, most_bytes: u64) -> Self {
        let slab_bytes = to_usize(most_bytes).max(1).next_multiple_of(PAGE);
        if slab_bytes >= self.slab_bytes {
            return self;
        }
        let lane_bytes = self.lane_bytes.min(SLABS_OF_LANE * slab_bytes);
        Self {
            pool_bytes: lane_bytes * lanes,
            lane_bytes,
            slab_bytes,
            range_bytes: self.range_bytes.min(slab_bytes),
            ..self
        }
    }

    /// How far back in the stream a shuffle may reach. With what a sample may take, and the slabs that both touch at
    /// their ends, two slabs at least are left for what comes next.
    pub(super) fn shuffle_bytes(&self) -> u64 {
        let lane_bytes = self.lane_bytes as u64;
        if self.lane_bytes / self.slab_bytes >= 2 * SLABS {
            lane_bytes / 2
        } else {
            lane_bytes / 4
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_tile_slabs_and_there_are_enough_of_them_in_any_memory() {
        let sizes = [
            1 << 20,
            10_000_000,
            16_000_000,
            16 << 20,
            20_000_000,
            256 << 20,
            2 << 30,
        ];
        for (memory, lanes) in sizes.into_iter().flat_map(|size| [(size, 1), (size, 8)]) {
            for range_bytes in [1, 1000, 100_000, 8 << 20, 1 << 30] {
                let config = LoadConfig {
                    memory_bytes: Some(memory),
                    range_bytes: Some(range_bytes),
                    ..LoadConfig::default()
                };
                let plan = Memory::plan(&config, lanes).unwrap();
                assert!(plan.pool_bytes + plan.batch_bytes <= memory, "{plan:?}");
                assert_eq!(plan.slab_bytes % plan.range_bytes, 0, "{plan:?}");
                assert_eq!(plan.range_bytes % PAGE, 0, "{plan:?}");
                assert!(plan.lane_bytes / plan.slab_bytes >= SLABS, "{plan:?}");
                assert_eq!(plan.lane_bytes * lanes, plan.pool_bytes, "{plan:?}");
            }
        }
        let config = LoadConfig {
            memory_bytes: Some(1 << 20),
            ..LoadConfig::default()
        };
        assert!(Memory::plan(&config, 64).is_err());
    }
}
