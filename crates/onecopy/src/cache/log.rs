//! The map of a cached object: a file to which each finished piece is appended, as a record that tells whether it is whole.
//!
//! Form, all numbers little-endian:
//!
//! | bytes | what |
//! |---|---|
//! | 16 | `onecopy cache 1` and a line feed |
//! | 4 | length of the text that follows |
//! | n | which object it is, as JSON: see [`Identity`](super::identity::Identity) |
//! | 4 | CRC32C of all before |
//! | 24 each | records: offset (8), length (4), CRC32C of the piece (4), 4 bytes `piec`, CRC32C of the 20 bytes before (4) |
//!
//! A record is appended by one write behind the piece's own bytes, by any number of processes. Nothing is ever changed in place,
//! and nothing is synced: after a crash the file may end anywhere or hold what was never written, and whatever is no whole record
//! is passed over byte by byte. A record whose piece never reached the disk is found out by the piece's checksum.

use crc_fast::CrcAlgorithm;

use super::pieces::Piece;

/// What every map begins with. Another version of the form has another number.
pub(super) const MAGIC: &[u8; 16] = b"onecopy cache 1\n";

/// Of a record.
pub(super) const RECORD: usize = 24;

const MARK: &[u8; 4] = b"piec";

/// No identity is longer: a key has at most 1,024 bytes, and as JSON six times as many.
const MOST_IDENTITY_BYTES: usize = 64 << 10;

/// CRC32C.
pub(super) fn crc32c(bytes: &[u8]) -> u32 {
    u32::try_from(crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, bytes)).unwrap_or(0)
}

/// What a map begins with.
pub(super) fn head(identity: &str) -> Vec<u8> {
    let len = u32::try_from(identity.len()).unwrap_or(u32::MAX);
    let mut head = [&MAGIC[..], &len.to_le_bytes(), identity.as_bytes()].concat();
    let crc = crc32c(&head);
    head.extend(crc.to_le_bytes());
    head
}

/// The identity in the head of a map, and where its records begin. None where it is no map of this version, or a torn one.
pub(super) fn read_head(bytes: &[u8]) -> Option<(&str, usize)> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let (len, rest) = rest.split_first_chunk::<4>()?;
    let len = u32::from_le_bytes(*len) as usize;
    if len > MOST_IDENTITY_BYTES {
        return None;
    }
    let (identity, rest) = rest.split_at_checked(len)?;
    let (crc, _) = rest.split_first_chunk::<4>()?;
    let end = MAGIC.len() + 4 + len;
    let is_whole = crc32c(bytes.get(..end)?) == u32::from_le_bytes(*crc);
    let identity = std::str::from_utf8(identity).ok()?;
    is_whole.then_some((identity, end + 4))
}

/// A record.
pub(super) fn record(piece: Piece) -> [u8; RECORD] {
    let mut record = [0; RECORD];
    let parts = [
        &piece.offset.to_le_bytes()[..],
        &piece.len.to_le_bytes(),
        &piece.crc.to_le_bytes(),
        MARK,
    ];
    for (to, from) in record.iter_mut().zip(parts.concat()) {
        *to = from;
    }
    let crc = crc32c(&record[..RECORD - 4]).to_le_bytes();
    for (to, from) in record[RECORD - 4..].iter_mut().zip(crc) {
        *to = from;
    }
    record
}

/// The pieces that whole records in `bytes` tell of, and how many bytes were read: what is left may be the beginning of a record.
pub(super) fn read_records(bytes: &[u8]) -> (Vec<Piece>, usize) {
    let mut pieces = Vec::new();
    let mut at = 0;
    while let Some(next) = bytes.get(at..at + RECORD) {
        match read_record(next) {
            Some(piece) => {
                pieces.push(piece);
                at += RECORD;
            }
            None => at += 1,
        }
    }
    (pieces, at)
}

fn read_record(bytes: &[u8]) -> Option<Piece> {
    let (offset, rest) = bytes.split_first_chunk::<8>()?;
    let (len, rest) = rest.split_first_chunk::<4>()?;
    let (crc, rest) = rest.split_first_chunk::<4>()?;
    let check = rest.strip_prefix(MARK)?.first_chunk::<4>()?;
    let is_whole = crc32c(bytes.get(..RECORD - 4)?) == u32::from_le_bytes(*check);
    let piece = Piece {
        offset: u64::from_le_bytes(*offset),
        len: u32::from_le_bytes(*len),
        crc: u32::from_le_bytes(*crc),
    };
    // An end beyond all numbers is nobody's record.
    let is_sane = piece.offset.checked_add(u64::from(piece.len)).is_some();
    (is_whole && is_sane).then_some(piece)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn crc32c_is_that_of_the_standard() {
        // RFC 3720, B.4: 32 bytes of zeros, of ones, and from 0 to 31.
        assert_eq!(crc32c(&[0; 32]), 0x8A91_36AA);
        assert_eq!(crc32c(&[0xFF; 32]), 0x62A8_AB43);
        assert_eq!(crc32c(&(0..32).collect::<Vec<u8>>()), 0x46DD_794E);
    }

    #[test]
    fn the_form_is_the_same_in_every_version_of_that_number() {
        let head = head("{}");
        assert_eq!(&head[..22], b"onecopy cache 1\n\x02\0\0\0{}");
        let piece = Piece {
            offset: 0x0102,
            len: 3,
            crc: 4,
        };
        assert_eq!(
            record(piece)[..20],
            *b"\x02\x01\0\0\0\0\0\0\x03\0\0\0\x04\0\0\0piec"
        );
    }

    #[test]
    fn a_head_is_read_or_is_none() {
        let whole = head("{\"key\": \"a\"}");
        assert_eq!(read_head(&whole), Some(("{\"key\": \"a\"}", whole.len())));
        for at in 0..whole.len() {
            assert_eq!(read_head(&whole[..at]), None, "cut at {at}");
            let mut flipped = whole.clone();
            flipped[at] ^= 1;
            assert_eq!(read_head(&flipped), None, "flipped at {at}");
        }
    }

    fn pieces() -> impl Strategy<Value = Vec<Piece>> {
        let piece = (0..u64::MAX / 2, any::<u32>(), any::<u32>());
        let piece = piece.prop_map(|(offset, len, crc)| Piece { offset, len, crc });
        prop::collection::vec(piece, 0..20)
    }

    proptest! {
        #[test]
        fn whatever_is_torn_or_flipped_loses_no_other_record(
            pieces in pieces(),
            junk in prop::collection::vec((any::<prop::sample::Index>(), prop::collection::vec(any::<u8>(), 0..40)), 0..4),
            flip in prop::option::of(any::<prop::sample::Index>()),
            cut in 0..RECORD,
        ) {
            let mut expected = pieces.clone();
            let mut records: Vec<Vec<u8>> = pieces.iter().map(|piece| record(*piece).into()).collect();
            if let Some(flip) = flip && !records.is_empty() {
                let at = flip.index(records.len() * RECORD);
                records[at / RECORD][at % RECORD] ^= 0x10;
                expected.remove(at / RECORD);
            }
            for (at, junk) in junk {
                records.insert(at.index(records.len() + 1), junk);
            }
            let mut bytes = records.concat();
            bytes.extend(&record(Piece { offset: 1, len: 2, crc: 3 })[..cut]);
            let (read, used) = read_records(&bytes);
            prop_assert_eq!(&read, &expected);
            prop_assert!(bytes.len() - used < RECORD);
            // In two halves, as a reader that goes on where it was.
            let half = bytes.len() / 2;
            let (mut first, used) = read_records(&bytes[..half]);
            first.extend(read_records(&bytes[used..]).0);
            prop_assert_eq!(first, expected);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _whatever = (read_head(&bytes), read_records(&bytes));
        }
    }
}
