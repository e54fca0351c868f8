//! The order of an epoch: a pure function of numbers.
//!
//! | file | what it holds |
//! |---|---|
//! | `grid` | which lane gives which sample of the epoch, and who reads which lanes |
//! | `windows` | the order within a lane |
//! | `epoch` | where samples are counted: which of them a lane has, how many steps there are, what is padded or dropped |
//! | `choice` | which samples of a dataset are read: slices, lists, drawn parts |
//! | `row` | all samples of a dataset in one row, of which lanes read pieces |
//! | `mixture` | which of several sources gives a sample, drawn by weights |
//! | `mixed` | an epoch of several sources whose samples are counted; `draws`: what each lane reads of each of them |
//! | `tail` | what becomes of samples that fill no global batch |

mod choice;
mod epoch;
mod grid;
mod mixed;
mod mixture;
mod row;
mod tail;
mod windows;

pub use choice::{Choice, Chosen};
pub use epoch::Epoch;
pub use grid::{Grid, LANES_MAX, Part};
pub use mixed::{Length, Mixed, Source};
pub use mixture::{Mixture, Stop};
pub use row::{Row, Segment};
pub use tail::Tail;
pub use windows::{Window, Windows};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore as _, SeedableRng as _};

/// Puts `shards` into an order that follows from (seed, epoch) alone.
pub fn order_shards<T>(shards: &mut [T], seed: u64, epoch: u64) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    // A stream of its own for each epoch: no two of them share numbers.
    random.set_stream(epoch);
    mix(shards, &mut random);
}

/// Puts `items` into an order drawn from ChaCha8, each equally likely: Fisher and Yates.
fn mix<T>(items: &mut [T], random: &mut ChaCha8Rng) {
    for last in (1..items.len()).rev() {
        items.swap(last, below(random, last as u64 + 1));
    }
}

/// A number below `limit`, each equally likely but for 2^-64 of a hair.
fn below(random: &mut ChaCha8Rng, limit: u64) -> usize {
    let wide = u128::from(random.next_u64()) * u128::from(limit);
    crate::size::to_usize(u64::try_from(wide >> 64).unwrap_or(0))
}

#[cfg(test)]
mod tests;
