//! One tar header: 512 bytes, in any of the dialects that were ever written.

use super::cursor::BLOCK;

/// What a header says that is needed here. The name is read apart, since extended headers may overrule it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) typeflag: u8,
    /// What the size field says, in bytes.
    pub(super) size: u64,
}

/// Why a header is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BadHeader {
    Checksum,
    Size,
}

/// Reads a block that is not all zeros.
pub(super) fn parse(block: &[u8; BLOCK]) -> Result<Header, BadHeader> {
    let stored = number(&block[148..156]).ok_or(BadHeader::Checksum)?;
    if stored != u64::from(checksum(block)) && !is_signed_checksum(block, stored) {
        return Err(BadHeader::Checksum);
    }
    Ok(Header {
        typeflag: block[156],
        size: number(&block[124..136]).ok_or(BadHeader::Size)?,
    })
}

/// Whether a block is all zeros.
pub(super) fn is_zero(block: &[u8]) -> bool {
    // Folded without a branch per byte, so that it becomes vector code.
    block.iter().fold(0, |all, &byte| all | byte) == 0
}

/// The sum of all bytes, with the checksum field taken as spaces. Summed whole and corrected, so that it vectorises.
fn checksum(block: &[u8; BLOCK]) -> u32 {
    let sum = |bytes: &[u8]| bytes.iter().map(|&byte| u32::from(byte)).sum::<u32>();
    sum(block) - sum(&block[148..156]) + 8 * u32::from(b' ')
}

/// Some old writers summed signed characters.
#[cold]
fn is_signed_checksum(block: &[u8; BLOCK], stored: u64) -> bool {
    let sum = |bytes: &[u8]| {
        bytes
            .iter()
            .map(|&byte| i64::from(byte.cast_signed()))
            .sum::<i64>()
    };
    let signed = sum(block) - sum(&block[148..156]) + 8 * i64::from(b' ');
    u64::try_from(signed) == Ok(stored)
}

/// A numeric field: octal with spaces before and NULs or spaces behind, or base 256. Empty is 0.
fn number(field: &[u8]) -> Option<u64> {
    match field {
        [0x80, digits @ ..] => digits.iter().try_fold(0_u64, |value, &digit| {
            Some(value.checked_mul(256)? | u64::from(digit))
        }),
        // Negative, or with bits above what any size has.
        [0x81..=0xff, ..] => None,
        _ => octal(field),
    }
}

fn octal(field: &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    let mut bytes = field.iter().skip_while(|&&byte| byte == b' ');
    for &byte in bytes.by_ref() {
        match byte {
            b'0'..=b'7' => value = value.checked_mul(8)? | u64::from(byte - b'0'),
            0 | b' ' => break,
            _ => return None,
        }
    }
    bytes.all(|byte| matches!(byte, 0 | b' ')).then_some(value)
}

/// Puts the member's name, prefix included, into `out`.
#[expect(
    clippy::disallowed_methods,
    reason = "a name of at most 256 bytes, not payload"
)]
pub(super) fn name_into(block: &[u8; BLOCK], out: &mut Vec<u8>) {
    out.clear();
    let prefix = if &block[257..263] != b"ustar\0" {
        // GNU ("ustar  \0") keeps times there, v7 nothing.
        &[]
    } else if &block[508..512] == b"tar\0" {
        // star's own dialect has a shorter one, with times behind it.
        until_nul(&block[345..476])
    } else {
        until_nul(&block[345..500])
    };
    if !prefix.is_empty() {
        out.extend_from_slice(prefix);
        out.push(b'/');
    }
    out.extend_from_slice(until_nul(&block[..100]));
}

/// The bytes before the first NUL.
pub(super) fn until_nul(field: &[u8]) -> &[u8] {
    let end = field.iter().position(|&byte| byte == 0);
    &field[..end.unwrap_or(field.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_dialect() {
        let cases: [(&[u8], Option<u64>); 16] = [
            (b"00000001130\0", Some(600)),
            (b"       1130 ", Some(600)),
            (b"  1130\0     ", Some(600)),
            (b"1130        ", Some(600)),
            (b"1130\0\0\0\0\0\0\0\0", Some(600)),
            (b"\0\0\0\0\0\0\0\0\0\0\0\0", Some(0)),
            (b"            ", Some(0)),
            (b"777777777777", Some(0o777_777_777_777)),
            (b"\x80\0\0\0\0\0\0\0\0\0\0\x05", Some(5)),
            (b"\x80\0\0\0\0\0\0\x02\0\0\0\0", Some(2 << 32)),
            (b"\x80\0\0\x01\0\0\0\0\0\0\0\0", None),
            (
                b"\x80\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff",
                Some(u64::MAX),
            ),
            (b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", None),
            (b"0000000113x\0", None),
            (b"00000\x0011130\0", None),
            (b"00000000118\0", None),
        ];
        for (field, expected) in cases {
            assert_eq!(number(field), expected, "{field:?}");
        }
    }
}
