//! WebP, lossy and lossless; of an animation the first frame. Alpha is dropped and not blended.

use std::io::Cursor;

use image_webp::{DecodingError, WebPDecoder};

use super::picture::{Scratch, rgba_to_rgb};
use super::{MAX_PIXELS, broken};
use crate::error::{Error, ErrorKind, Result};

const WHAT: &str = "the WebP";

/// Height and width.
pub(super) fn size_of(bytes: &[u8]) -> Result<(u32, u32)> {
    let (width, height) = open(bytes)?.dimensions();
    Ok((height, width))
}

/// Decodes into `out`, which has height x width x 3 bytes.
pub(super) fn decode(bytes: &[u8], out: &mut [u8], scratch: &mut Scratch) -> Result<()> {
    let mut decoder = open(bytes)?;
    decoder.set_memory_limit(MAX_PIXELS * 8);
    if !decoder.has_alpha() {
        return decoder.read_image(out).map_err(explain);
    }
    let pixels = scratch.channels(out.len() / 3 * 4);
    decoder.read_image(pixels).map_err(explain)?;
    rgba_to_rgb(pixels, out);
    Ok(())
}

fn open(bytes: &[u8]) -> Result<WebPDecoder<Cursor<&[u8]>>> {
    // The file says how long it is; what is behind that is not its own.
    if let Some(&[a, b, c, d]) = bytes.get(4..8)
        && (bytes.len() as u64) < u64::from(u32::from_le_bytes([a, b, c, d])) + 8
    {
        return Err(broken(
            ErrorKind::Truncated,
            WHAT,
            "it is shorter than its header says",
        ));
    }
    WebPDecoder::new(Cursor::new(bytes)).map_err(explain)
}

fn explain(error: DecodingError) -> Error {
    let kind = match &error {
        DecodingError::IoError(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            ErrorKind::Truncated
        }
        DecodingError::MemoryLimitExceeded | DecodingError::ImageTooLarge => {
            ErrorKind::LimitReached
        }
        _ => ErrorKind::Corrupt,
    };
    broken(kind, WHAT, error.to_string()).with_source(error)
}
