//! Sets of hashes.

use std::hash::{BuildHasher, Hasher};

/// For numbers that are hashes already.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Plain(u64);

impl Hasher for Plain {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _bytes: &[u8]) {}

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

impl BuildHasher for Plain {
    type Hasher = Self;

    fn build_hasher(&self) -> Self {
        Self(0)
    }
}
