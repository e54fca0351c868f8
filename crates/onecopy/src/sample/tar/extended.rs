//! The content of an extended header.

use super::cursor::Cursor;
use super::damage::Damage;
use crate::buffer::Slice;
use crate::error::ErrorKind;
use crate::sample::Pieces;

/// The longest extended header taken: names and attributes are far shorter, and it is held in memory.
const EXTENDED_BYTES: u64 = 1 << 20;

/// Takes the content, of `size` bytes, of the extended header at `offset`.
pub(super) fn body<I: Pieces>(
    cursor: &mut Cursor<I>,
    size: u64,
    offset: u64,
) -> Result<Slice, Box<Damage>> {
    if size > EXTENDED_BYTES {
        return Err(Damage::new(
            ErrorKind::LimitReached,
            "extended_header_too_long",
            offset,
            format!("an extended header of {size} bytes, of at most {EXTENDED_BYTES}"),
        ));
    }
    cursor.take(size)?.map_err(|got| {
        Damage::truncated(
            cursor.position(),
            format!("an extended header is cut: {got} of {size} bytes"),
        )
    })
}
