//! How the memory of a load is divided.

use crate::config::{LoadConfig, RANGE_BYTES, default_memory_bytes};
use crate::error::{Error, ErrorKind, Result};
use crate::size::{MIB, PAGE};

/// The share of `memory` that ranges get; batches in flight get the rest. A range becomes batch memory of about its own
/// size where bytes are kept, and of 1 to 3 times its size where pictures are decoded small.
const POOL_SHARE: (usize, usize) = (3, 4);

/// A slab holds several ranges, so that few members lie across two slabs: with members of 110 KB and slabs of 32 MiB
/// one member in 300 does.
const SLAB_BYTES: usize = 32 * MIB;

/// Slabs at least: some fill while others are read, and some are held back (see [`Memory::shuffle_bytes`]).
const SLABS: usize = 8;

/// How the memory is divided.
#[derive(Debug, Clone, Copy)]
pub(super) struct Memory {
    pub(super) pool_bytes: usize,
    pub(super) slab_bytes: usize,
    pub(super) range_bytes: usize,
    /// Whether several ranges may be asked for in one request.
    pub(super) is_joining: bool,
    pub(super) batch_bytes: usize,
}

impl Memory {
    pub(super) fn plan(config: &LoadConfig) -> Result<Self> {
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
        // Whole pages, so that what is asked for is what a slab holds.
        let range_bytes = config.range_bytes.unwrap_or(RANGE_BYTES);
        let range_bytes = range_bytes.clamp(PAGE, pool_bytes / SLABS) / PAGE * PAGE;
        // Whole ranges, so that they tile a slab.
        let ranges = (SLAB_BYTES.min(pool_bytes / SLABS) / range_bytes).max(1);
        let slab_bytes = ranges * range_bytes;
        Ok(Self {
            pool_bytes: pool_bytes / slab_bytes * slab_bytes,
            slab_bytes,
            range_bytes,
            // A range that was asked for is taken at its word, and little memory is better cut small.
            is_joining: config.range_bytes.is_none() && ranges > 1,
            batch_bytes: memory - pool_bytes,
        })
    }

    /// How much batch memory is kept while nobody uses it: all that is in flight and as much again, for what the consumer
    /// holds. Mapping and touching a batch's memory anew costs more than filling it.
    pub(super) fn kept_bytes(&self) -> usize {
        2 * self.batch_bytes.max(self.pool_bytes / 2)
    }

    /// How much of the stream one sample may take: a quarter of the pool.
    pub(super) fn sample_bytes(&self) -> u64 {
        self.pool_bytes as u64 / 4
    }

    /// How far back in the stream a shuffle may reach. With what a sample may take, and the slabs that both touch at
    /// their ends, two slabs at least are left for what comes next.
    pub(super) fn shuffle_bytes(&self) -> u64 {
        let pool_bytes = self.pool_bytes as u64;
        if self.pool_bytes / self.slab_bytes >= 2 * SLABS {
            pool_bytes / 2
        } else {
            pool_bytes / 4
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
        for memory in sizes {
            for range_bytes in [1, 1000, 100_000, 8 << 20, 1 << 30] {
                let config = LoadConfig {
                    memory_bytes: Some(memory),
                    range_bytes: Some(range_bytes),
                    ..LoadConfig::default()
                };
                let plan = Memory::plan(&config).unwrap();
                assert!(plan.pool_bytes + plan.batch_bytes <= memory, "{plan:?}");
                assert_eq!(plan.slab_bytes % plan.range_bytes, 0, "{plan:?}");
                assert_eq!(plan.range_bytes % PAGE, 0, "{plan:?}");
                assert!(plan.pool_bytes / plan.slab_bytes >= SLABS, "{plan:?}");
            }
        }
    }
}
