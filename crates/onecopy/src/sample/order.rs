//! The order of shards in an epoch.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore as _, SeedableRng as _};

/// Puts `shards` into an order that follows from (seed, epoch) alone: Fisher and Yates, drawn from ChaCha8.
pub fn order_shards<T>(shards: &mut [T], seed: u64, epoch: u64) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    // A stream of its own for each epoch: no two of them share numbers.
    random.set_stream(epoch);
    for last in (1..shards.len()).rev() {
        shards.swap(last, below(&mut random, last as u64 + 1));
    }
}

/// A number below `limit`, each equally likely but for 2^-64 of a hair.
fn below(random: &mut ChaCha8Rng, limit: u64) -> usize {
    let wide = u128::from(random.next_u64()) * u128::from(limit);
    crate::size::to_usize(u64::try_from(wide >> 64).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(seed: u64, epoch: u64) -> Vec<u32> {
        let mut shards: Vec<u32> = (0..100).collect();
        order_shards(&mut shards, seed, epoch);
        shards
    }

    #[test]
    fn an_order_follows_from_seed_and_epoch_and_keeps_every_shard() {
        assert_eq!(order(7, 0), order(7, 0));
        assert_ne!(order(7, 0), order(7, 1));
        assert_ne!(order(7, 0), order(8, 0));
        let mut sorted = order(7, 3);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..100).collect::<Vec<u32>>());
    }
}
