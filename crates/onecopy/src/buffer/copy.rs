//! The one place where the CPU copies payload. `clippy.toml` bans the calls that do so anywhere else.
#![expect(
    clippy::disallowed_methods,
    reason = "this is the place that is allowed to copy, and it counts"
)]

use std::ops::Range;
use std::time::Instant;

use super::Slice;
use crate::ledger::OpenHop;

/// Copies `from` to the front of `to`.
///
/// # Copies
///
/// One in user space per byte, counted on `hop`.
///
/// # Panics
///
/// Where `to` is shorter than `from`.
pub fn lay(hop: &OpenHop, from: &[u8], to: &mut [u8]) {
    let start = Instant::now();
    to[..from.len()].copy_from_slice(from);
    hop.moved(from.len(), start.elapsed());
}

/// Puts `parts` together in ordinary memory.
///
/// # Copies
///
/// One in user space per byte, counted on `hop`.
#[must_use]
pub fn assemble(hop: &OpenHop, parts: &[Slice]) -> Slice {
    let start = Instant::now();
    let len = parts.iter().map(|part| part.len()).sum();
    let mut whole = Vec::with_capacity(len);
    for part in parts {
        whole.extend_from_slice(part);
    }
    hop.moved(len, start.elapsed());
    Slice::from_vec(whole)
}

/// Puts `from` behind what is in `to`.
///
/// # Copies
///
/// One in user space per byte, counted on `hop`.
pub fn append(hop: &OpenHop, from: &[u8], to: &mut Vec<u8>) {
    let start = Instant::now();
    to.extend_from_slice(from);
    hop.moved(from.len(), start.elapsed());
}

/// Moves the bytes `from` of `memory` to offset `to`; the two may overlap.
///
/// # Copies
///
/// One in user space per byte, counted on `hop`.
///
/// # Panics
///
/// Where either reaches outside of `memory`.
pub fn shift(hop: &OpenHop, memory: &mut [u8], from: Range<usize>, to: usize) {
    let start = Instant::now();
    let len = from.len();
    memory.copy_within(from, to);
    hop.moved(len, start.elapsed());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Ledger;
    use crate::route::Hop;

    #[test]
    fn every_copied_byte_is_counted() {
        let ledger = Ledger::unread();
        let hop = ledger.hop(Hop::Straddle);
        let whole = assemble(
            &hop,
            &[Slice::from_vec(vec![1; 3]), Slice::from_vec(vec![2; 2])],
        );
        assert_eq!(&whole[..], &[1, 1, 1, 2, 2]);
        let mut memory = [0, 1, 2, 3];
        shift(&hop, &mut memory, 1..4, 0);
        assert_eq!(memory, [1, 2, 3, 3]);
        lay(&hop, &[9], &mut memory);
        assert_eq!(memory[0], 9);
        assert_eq!(ledger.report().hops[0].bytes, 5 + 3 + 1);
    }
}
