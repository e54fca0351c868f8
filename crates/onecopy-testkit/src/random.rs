//! Random numbers that are the same for the same seed, on every machine and for all time.
//!
//! Crates for random numbers change their streams between versions; a dataset that is named by
//! its seed must not.

/// `SplitMix64` (Steele, Lea, Flood 2014): 8 bytes of state, passes BigCrush.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

/// The finalizer of `SplitMix64`: every bit of the input changes half of the output's.
#[inline]
pub(crate) fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

/// FNV-1a, spread by [`mix`].
pub(crate) fn hash(text: &str) -> u64 {
    let start = 0xCBF2_9CE4_8422_2325_u64;
    mix(text.bytes().fold(start, |h, byte| {
        (h ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3)
    }))
}

impl Random {
    /// A stream of its own for each pair of seed and purpose.
    pub(crate) fn new(seed: u64, purpose: u64) -> Self {
        Self(mix(seed ^ mix(purpose.wrapping_add(0x9E37_79B9_7F4A_7C15))))
    }

    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mix(self.0)
    }

    /// Below `limit`, which is not 0. The bias of 2^-64 x limit does not matter here.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// In [0, 1), with 24 bits.
    #[expect(clippy::cast_precision_loss, reason = "24 bits fit an f32 exactly")]
    pub(crate) fn unit(&mut self) -> f32 {
        ((self.next() >> 40) as u32) as f32 / 16_777_216.0
    }

    /// Normal with mean 0 and deviation 1 (Box and Muller).
    pub(crate) fn normal(&mut self) -> f64 {
        // 1 - u is in (0, 1], so that the logarithm is finite.
        let radius = (-2.0 * (1.0 - f64::from(self.unit())).ln()).sqrt();
        radius * (std::f64::consts::TAU * f64::from(self.unit())).cos()
    }

    /// Fills with random bytes, 8 at a time.
    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let word = self.next().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }
}
