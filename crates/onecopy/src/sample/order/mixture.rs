//! Which of several sources gives a sample, drawn by weights.

use std::fmt;
use std::str::FromStr;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore as _, SeedableRng as _};

use super::grid::refused;
use crate::error::Result;

/// Draws are whole numbers below this, so shares are exact to as much, on every machine.
const WHOLE: f64 = (1_u64 << 53) as f64;

/// The least share that a source may have: one sample of 2^40 is none that anybody would miss.
const LEAST_SHARE: u64 = 1 << 13;

/// When an epoch of several sources ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stop {
    /// Where a source is drawn that has no more: no sample comes twice.
    #[default]
    FirstExhausted,
    /// Once every source was read whole; those that were before begin again.
    AllExhausted,
}

impl Stop {
    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::FirstExhausted => "first_exhausted",
            Self::AllExhausted => "all_exhausted",
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Stop {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Self::FirstExhausted, Self::AllExhausted];
        let found = all.into_iter().find(|stop| stop.name() == text);
        found.ok_or_else(|| format!("unknown end {text:?}: use first_exhausted or all_exhausted"))
    }
}

/// Draws a source for each sample of each lane, out of nothing but (seed, epoch, lane, sample).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mixture {
    /// Behind the numbers of each source.
    cuts: Vec<u64>,
    seed: u64,
    epoch: u64,
}

impl Mixture {
    /// Sources by `weights`, which need not add up to anything.
    ///
    /// # Errors
    ///
    /// `InvalidInput` where there is none, or a weight is not positive and finite, or nothing beside the others.
    pub fn new(weights: &[f64], seed: u64, epoch: u64) -> Result<Self> {
        let is_weight = |weight: &f64| weight.is_finite() && *weight > 0.0;
        if let Some(weight) = weights.iter().find(|weight| !is_weight(weight)) {
            return Err(refused(
                format!("{weight} is given for a weight"),
                "use positive finite numbers; leave sources out that are to give nothing",
            ));
        }
        let total: f64 = weights.iter().sum();
        let mut sum = 0.0;
        let mut cuts: Vec<u64> = Vec::with_capacity(weights.len());
        for weight in weights {
            sum += weight;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "between 0 and 2^53"
            )]
            cuts.push((sum / total * WHOLE) as u64);
        }
        let last = cuts.last_mut();
        *last.ok_or_else(|| refused("no source is given".into(), "give one at least"))? = 1 << 53;
        let mixture = Self { cuts, seed, epoch };
        let least = (0..mixture.sources()).find(|source| mixture.share(*source) < LEAST_SHARE);
        match least {
            Some(source) => Err(refused(
                format!(
                    "the weight {} is nothing beside a sum of {total}",
                    weights[source]
                ),
                "use weights of which each is more than 2^-40 of their sum; leave sources out that are to give nothing",
            )),
            None => Ok(mixture),
        }
    }

    /// How many sources there are.
    #[must_use]
    pub fn sources(&self) -> usize {
        self.cuts.len()
    }

    /// How many of 2^53 draws are of `source`.
    #[must_use]
    pub fn share(&self, source: usize) -> u64 {
        let before = source.checked_sub(1).map_or(0, |before| self.cuts[before]);
        self.cuts[source].saturating_sub(before)
    }

    /// What the draws of `lane` are made from.
    #[must_use]
    pub fn key(&self, lane: u64) -> u64 {
        let mut key = [0; 32];
        let words = [self.seed, self.epoch, lane];
        let bytes = words.into_iter().flat_map(u64::to_le_bytes);
        for (to, from) in key.iter_mut().zip(bytes) {
            *to = from;
        }
        ChaCha8Rng::from_seed(key).next_u64()
    }

    /// The source that gives the sample `ordinal` of the lane whose key this is: Steele, Lea and Flood's SplitMix64, of which each
    /// number can be had without those before it.
    #[must_use]
    pub fn draw(&self, key: u64, ordinal: u64) -> usize {
        let mut mixed =
            key.wrapping_add(ordinal.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        self.cuts.partition_point(|cut| *cut <= mixed >> 11)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn shares_are_the_whole_and_each_source_is_drawn_as_often_as_its_share(
            weights in prop::collection::vec(0.1..10.0_f64, 1..6), seed in any::<u64>(), epoch in 0..9_u64,
        ) {
            let mixture = Mixture::new(&weights, seed, epoch).unwrap();
            let shares: u64 = (0..weights.len()).map(|source| mixture.share(source)).sum();
            prop_assert_eq!(shares, 1 << 53);
            let mut times = vec![0_u32; weights.len()];
            for lane in 0..4 {
                let key = mixture.key(lane);
                for ordinal in 0..2500 {
                    times[mixture.draw(key, ordinal)] += 1;
                }
            }
            let total: f64 = weights.iter().sum();
            for (weight, times) in weights.iter().zip(times) {
                let expected = weight / total * 10_000.0;
                // Six standard deviations.
                prop_assert!((f64::from(times) - expected).abs() <= 6.0 * expected.sqrt() + 1.0, "{} of {}", times, expected);
            }
        }
    }

    #[test]
    fn draws_are_the_same_in_every_version() {
        let mixture = Mixture::new(&[1.0, 2.0, 1.0], 7, 3).unwrap();
        let key = mixture.key(5);
        let drawn: Vec<usize> = (0..16).map(|ordinal| mixture.draw(key, ordinal)).collect();
        assert_eq!(
            drawn,
            [1, 1, 1, 1, 1, 1, 1, 0, 1, 2, 1, 1, 2, 1, 2, 1],
            "a run must be resumable by a later version"
        );
    }

    #[test]
    fn seed_epoch_and_lane_each_change_what_is_drawn() {
        let draws = |seed, epoch, lane| -> Vec<usize> {
            let mixture = Mixture::new(&[1.0, 1.0], seed, epoch).unwrap();
            let key = mixture.key(lane);
            (0..200).map(|ordinal| mixture.draw(key, ordinal)).collect()
        };
        assert_eq!(draws(1, 2, 3), draws(1, 2, 3));
        for other in [
            draws(2, 2, 3),
            draws(1, 3, 3),
            draws(1, 2, 4),
            draws(2, 1, 3),
        ] {
            assert_ne!(draws(1, 2, 3), other);
        }
    }

    #[test]
    fn weights_that_cannot_be_are_refused() {
        for weights in [
            &[][..],
            &[0.0],
            &[1.0, -1.0],
            &[f64::NAN],
            &[1.0, f64::INFINITY],
            &[f64::MAX, f64::MAX],
            &[1.0, 1e-13],
        ] {
            assert!(Mixture::new(weights, 0, 0).is_err(), "{weights:?}");
        }
        assert!(Mixture::new(&[1e-9, 1e-18], 0, 0).is_ok());
    }
}
