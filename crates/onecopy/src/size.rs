//! Sizes: object sizes are `u64`, memory sizes are `usize`, and on the machines that onecopy runs on they are the same.

use crate::error::{Error, ErrorKind, Result};

const _: () = assert!(
    usize::BITS == 64,
    "onecopy needs a 64-bit machine: objects are larger than 4 GiB"
);

/// The page size that all memory is aligned to. 4 KiB on x86-64 and on most arm64; larger pages are multiples of it.
pub const PAGE: usize = 4096;

/// One mebibyte.
pub const MIB: usize = 1 << 20;

/// An object offset as an index into memory.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    reason = "checked at compile time: usize is 64 bits wide"
)]
pub const fn to_usize(bytes: u64) -> usize {
    bytes as usize
}

/// `len` rounded up to whole pages.
#[must_use]
pub const fn whole_pages(len: usize) -> usize {
    len.div_ceil(PAGE) * PAGE
}

/// Reads a size as people write it: `2GiB`, `500MB`, `64k`, `1048576`. Binary and decimal units are what they say;
/// a bare `k`, `M`, `G`, `T` is binary, as with `dd` and most allocators.
///
/// # Errors
///
/// `InvalidInput` where the text is no size or the size does not fit.
pub fn parse(text: &str) -> Result<u64> {
    let bad = |why: &str| {
        Error::new(
            ErrorKind::InvalidInput,
            "read the size",
            format!("{text:?}"),
            why,
        )
        .with_help("write it like 2GiB, 500MB or 1048576")
    };
    let trimmed = text.trim();
    let digits = trimmed.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == ' ');
    let unit = trimmed[digits.len()..].trim().to_ascii_lowercase();
    let scale: f64 = match unit.as_str() {
        "" | "b" => 1.0,
        "k" | "kib" => 1024.0,
        "kb" => 1e3,
        "m" | "mib" => 1024.0 * 1024.0,
        "mb" => 1e6,
        "g" | "gib" => 1024.0 * 1024.0 * 1024.0,
        "gb" => 1e9,
        "t" | "tib" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        "tb" => 1e12,
        _ => return Err(bad("the unit is unknown")),
    };
    if let Ok(whole) = digits.parse::<u64>()
        && unit.is_empty()
    {
        return Ok(whole);
    }
    let number: f64 = digits.parse().map_err(|_error| bad("it is not a number"))?;
    let bytes = number * scale;
    if !(0.0..=9e18).contains(&bytes) {
        return Err(bad("it is negative or too large"));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "range checked above"
    )]
    Ok(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_binary_and_decimal_units() {
        assert_eq!(parse("2GiB").unwrap(), 2 << 30);
        assert_eq!(parse("500MB").unwrap(), 500_000_000);
        assert_eq!(parse("64k").unwrap(), 65536);
        assert_eq!(parse(" 1.5 MiB ").unwrap(), 3 << 19);
        assert_eq!(parse("1048576").unwrap(), 1 << 20);
    }

    #[test]
    fn refuses_what_is_no_size() {
        for text in ["", "GiB", "-1MB", "nanMB", "2 apples", "1e30GB", "infGB"] {
            assert_eq!(
                parse(text).unwrap_err().kind(),
                ErrorKind::InvalidInput,
                "{text:?}"
            );
        }
    }
}
