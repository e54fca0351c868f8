//! How the memory of a load is divided.

use crate::config::{LoadConfig, default_memory_bytes};
use crate::error::{Error, ErrorKind, Result};
use crate::size::MIB;

/// The share of `memory` that ranges get; batches in flight get the rest. A range becomes batch memory of about its own
/// size where bytes are kept, and of 1 to 3 times its size where pictures are decoded small.
const POOL_SHARE: (usize, usize) = (3, 4);

/// A slab holds several ranges, so that few members lie across two slabs: with members of 110 KB and slabs of 32 MiB
/// one member in 300 does.
const SLAB_BYTES: usize = 32 * MIB;

/// Slabs at least, so that some fill while others are read.
const SLABS: usize = 8;

/// How the memory is divided.
#[derive(Debug, Clone, Copy)]
pub(super) struct Memory {
    pub(super) pool_bytes: usize,
    pub(super) slab_bytes: usize,
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
            .with_help("give `memory` at least 16MiB; 256MiB is a good start"));
        }
        let pool_bytes = memory / POOL_SHARE.1 * POOL_SHARE.0;
        let range = config.range_bytes.clamp(1, pool_bytes / 2);
        // Whole ranges, so that they tile a slab.
        let ranges = (SLAB_BYTES.min(pool_bytes / SLABS) / range).max(1);
        Ok(Self {
            pool_bytes,
            slab_bytes: ranges * range,
            batch_bytes: memory - pool_bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_tile_slabs_and_everything_fits_the_memory() {
        for memory in [16 * MIB, 256 * MIB, 2048 * MIB] {
            let config = LoadConfig {
                memory_bytes: Some(memory),
                ..LoadConfig::default()
            };
            let plan = Memory::plan(&config).unwrap();
            assert!(plan.pool_bytes + plan.batch_bytes <= memory);
            assert!(plan.slab_bytes * 2 <= plan.pool_bytes, "{plan:?}");
        }
    }
}
