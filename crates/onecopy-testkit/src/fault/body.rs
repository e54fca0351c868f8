//! Bodies that are a function of key and offset.

use crate::random::{hash, mix};

/// The endless body of one key, hashed once.
#[derive(Debug, Clone, Copy)]
pub struct Pattern(u64);

impl Pattern {
    /// The body of this key; the key is the part of the path behind the bucket, decoded.
    #[must_use]
    pub fn new(key: &str) -> Self {
        Self(hash(key))
    }

    /// The eight bytes at `8 * index`.
    #[inline]
    fn word(self, index: u64) -> [u8; 8] {
        mix(self.0 ^ index.wrapping_mul(0x9E37_79B9_7F4A_7C15)).to_le_bytes()
    }

    /// Fills with the bytes that begin at `offset`.
    pub fn fill(self, offset: u64, bytes: &mut [u8]) {
        let skip = usize::try_from(offset % 8).unwrap_or(0);
        let lead = if skip == 0 {
            0
        } else {
            bytes.len().min(8 - skip)
        };
        let (first, rest) = bytes.split_at_mut(lead);
        first.copy_from_slice(&self.word(offset / 8)[skip..skip + lead]);
        let words = (offset + lead as u64) / 8..;
        for (index, chunk) in words.zip(rest.chunks_mut(8)) {
            chunk.copy_from_slice(&self.word(index)[..chunk.len()]);
        }
    }
}

/// The byte at `offset` of the body of `key`.
#[must_use]
pub fn body_byte(key: &str, offset: u64) -> u8 {
    let mut byte = [0];
    Pattern::new(key).fill(offset, &mut byte);
    byte[0]
}

/// Fills with the bytes of the body of `key` that begin at `offset`.
pub fn fill(key: &str, offset: u64, bytes: &mut [u8]) {
    Pattern::new(key).fill(offset, bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_the_same_bytes_from_any_offset() {
        let mut whole = [0; 64];
        fill("k", 0, &mut whole);
        for start in 0..20 {
            for length in 0..30 {
                let mut part = vec![0; length];
                fill("k", start as u64, &mut part);
                assert_eq!(part, whole[start..start + length], "{start} {length}");
            }
        }
        assert_eq!(body_byte("k", 13), whole[13]);
        assert_ne!(body_byte("k", 13), body_byte("l", 13));
    }
}
