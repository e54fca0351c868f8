//! Numbers and text.

use super::broken;
use crate::error::{ErrorKind, Result};

/// The bytes as text.
///
/// # Errors
///
/// `Corrupt`, with the offset, where they are not UTF-8.
pub fn parse_text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|error| {
        broken(
            ErrorKind::Corrupt,
            "the text",
            format!("it is not UTF-8 at byte {}", error.valid_up_to()),
        )
        .with_help("store it as UTF-8, or take the raw bytes")
        .with_source(error)
    })
}

/// The bytes as a whole number in ASCII, with white space around it, as Python's `int` takes it but for underscores.
///
/// # Errors
///
/// `Corrupt` where they are none, or it does not fit into 64 bits.
pub fn parse_int(bytes: &[u8]) -> Result<i64> {
    let text = bytes.trim_ascii();
    let number = std::str::from_utf8(text).ok().map(str::parse::<i64>);
    if let Some(Ok(number)) = number {
        return Ok(number);
    }
    let why = if text.is_empty() {
        "it is empty".to_owned()
    } else {
        let head = &text[..text.len().min(40)];
        format!("it is {:?}", String::from_utf8_lossy(head))
    };
    let error = broken(ErrorKind::Corrupt, "the whole number", why)
        .with_help("store a whole number in ASCII, such as 3");
    Err(match number {
        Some(Err(cause)) => error.with_source(cause),
        _ => error,
    })
}
