//! Which bytes of an object a cache holds, and the checksum of each run of them.

use std::collections::BTreeMap;
use std::ops::Range;

/// A run of bytes that were written together, and are believed together or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    /// Where in the object it begins.
    pub(super) offset: u64,
    pub(super) len: u32,
    /// CRC32C of its bytes.
    pub(super) crc: u32,
}

impl Piece {
    pub(super) fn range(self) -> Range<u64> {
        self.offset..self.offset + u64::from(self.len)
    }
}

/// A part of what is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// These bytes of the object are in that piece, which may hold more.
    Held(Range<u64>, Piece),
    /// Nobody has these.
    Missing(Range<u64>),
}

/// The pieces of one object, none of which holds a byte of another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Pieces {
    by_offset: BTreeMap<u64, Piece>,
}

impl Pieces {
    /// How many bytes are held.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> u64 {
        let pieces = self.by_offset.values();
        pieces.map(|piece| u64::from(piece.len)).sum()
    }

    /// Takes a piece in. One that holds a byte which is held already is left out: two processes may have written the same bytes,
    /// and either is as good.
    pub(super) fn add(&mut self, piece: Piece) {
        let range = piece.range();
        let before = self.by_offset.range(..range.end).next_back();
        let is_new = before.is_none_or(|(_, other)| other.range().end <= range.start);
        if is_new && piece.len > 0 {
            self.by_offset.insert(piece.offset, piece);
        }
    }

    /// Forgets a piece that is not what it was said to be.
    pub(super) fn remove(&mut self, piece: Piece) {
        if self.by_offset.get(&piece.offset) == Some(&piece) {
            self.by_offset.remove(&piece.offset);
        }
    }

    /// All of `wanted`, in order, by what is held of it.
    pub(super) fn parts(&self, wanted: Range<u64>) -> Vec<Part> {
        let mut parts = Vec::new();
        let mut at = wanted.start;
        let first = self.by_offset.range(..=wanted.start).next_back();
        let first = first.map_or(wanted.start, |(offset, _)| *offset);
        for piece in self.by_offset.range(first..).map(|(_, piece)| *piece) {
            let range = piece.range();
            if range.start >= wanted.end || at >= wanted.end {
                break;
            }
            if range.end <= at {
                continue;
            }
            if at < range.start {
                parts.push(Part::Missing(at..range.start));
            }
            let held = at.max(range.start)..wanted.end.min(range.end);
            at = held.end;
            parts.push(Part::Held(held, piece));
        }
        if at < wanted.end {
            parts.push(Part::Missing(at..wanted.end));
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn piece(offset: u64, len: u32) -> Piece {
        Piece {
            offset,
            len,
            crc: len ^ 0xABCD,
        }
    }

    #[test]
    fn what_is_held_and_what_is_missing_come_in_order() {
        let mut pieces = Pieces::default();
        for (offset, len) in [(10, 5), (20, 5), (15, 5)] {
            pieces.add(piece(offset, len));
        }
        assert_eq!(
            pieces.parts(0..30),
            [
                Part::Missing(0..10),
                Part::Held(10..15, piece(10, 5)),
                Part::Held(15..20, piece(15, 5)),
                Part::Held(20..25, piece(20, 5)),
                Part::Missing(25..30),
            ]
        );
        assert_eq!(pieces.parts(12..14), [Part::Held(12..14, piece(10, 5))]);
        assert!(pieces.parts(7..7).is_empty() && pieces.parts(12..12).is_empty());
        pieces.remove(piece(15, 5));
        assert_eq!(pieces.parts(14..21)[1], Part::Missing(15..20));
        assert_eq!(pieces.bytes(), 10);
    }

    proptest! {
        #[test]
        fn the_parts_tile_what_is_wanted_and_no_byte_is_held_twice(
            added in prop::collection::vec((0..200_u64, 0..40_u32), 0..30),
            wanted in (0..220_u64, 0..60_u64),
        ) {
            let mut pieces = Pieces::default();
            let mut held = [false; 240];
            for (offset, len) in added {
                let piece = piece(offset, len);
                let bytes = &mut held[usize::try_from(piece.offset).unwrap()..][..len as usize];
                if !bytes.contains(&true) {
                    bytes.fill(true);
                }
                pieces.add(piece);
            }
            prop_assert_eq!(pieces.bytes(), held.iter().filter(|held| **held).count() as u64);
            let wanted = wanted.0..(wanted.0 + wanted.1).min(240);
            let mut at = wanted.start;
            for part in pieces.parts(wanted.clone()) {
                let (range, is_held) = match &part {
                    Part::Held(range, piece) => {
                        prop_assert!(piece.range().start <= range.start && range.end <= piece.range().end);
                        (range.clone(), true)
                    }
                    Part::Missing(range) => (range.clone(), false),
                };
                prop_assert_eq!(range.start, at);
                prop_assert!(range.end > range.start);
                let bytes = &held[usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap()];
                prop_assert!(bytes.iter().all(|held| *held == is_held));
                at = range.end;
            }
            prop_assert_eq!(at, wanted.end.max(wanted.start));
        }
    }
}
