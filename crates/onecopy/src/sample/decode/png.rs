//! PNG: every colour type and depth to 8-bit RGB. Alpha is dropped and not blended, as Pillow's `convert("RGB")` does;
//! of 16 bits the upper 8 are kept.

use std::io::Cursor;

use ::png::{ColorType, Decoder, DecodingError, Limits, Transformations};

use super::picture::{Scratch, grey_to_rgb, rgba_to_rgb};
use super::{MAX_PIXELS, broken};
use crate::error::{Error, ErrorKind, Result};

const WHAT: &str = "the PNG";

/// Height and width.
pub(super) fn size_of(bytes: &[u8]) -> Result<(u32, u32)> {
    let number = |at: usize| {
        let field = bytes.get(at..at + 4)?;
        Some(u32::from_be_bytes(field.try_into().ok()?))
    };
    match (number(20), number(16)) {
        (Some(height), Some(width)) if bytes.get(12..16) == Some(b"IHDR") => Ok((height, width)),
        _ => Err(broken(
            ErrorKind::Truncated,
            WHAT,
            "it ends within its header",
        )),
    }
}

/// Decodes into `out`, which has height x width x 3 bytes.
pub(super) fn decode(bytes: &[u8], out: &mut [u8], scratch: &mut Scratch) -> Result<()> {
    // Twice RGBA of the largest picture: the decoder counts its own buffers.
    let limits = Limits {
        bytes: MAX_PIXELS * 8,
    };
    let mut decoder = Decoder::new_with_limits(Cursor::new(bytes), limits);
    decoder.set_transformations(Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().map_err(explain)?;
    let len = reader.output_buffer_size().unwrap_or(usize::MAX);
    let (color, _) = reader.output_color_type();
    let channels = color.samples();
    if len != out.len() / 3 * channels {
        let why = format!("it decodes to {len} bytes of {channels} channels");
        return Err(broken(ErrorKind::Corrupt, WHAT, why));
    }
    if color == ColorType::Rgb {
        reader.next_frame(out).map_err(explain)?;
    } else {
        let pixels = scratch.channels(len);
        reader.next_frame(pixels).map_err(explain)?;
        match color {
            ColorType::Rgba => rgba_to_rgb(pixels, out),
            _ => grey_to_rgb(pixels, channels, out),
        }
    }
    // To the very end: a picture whose last chunk is missing was cut.
    reader.finish().map_err(explain)
}

fn explain(error: DecodingError) -> Error {
    let kind = match &error {
        DecodingError::IoError(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            ErrorKind::Truncated
        }
        DecodingError::LimitsExceeded => ErrorKind::LimitReached,
        _ => ErrorKind::Corrupt,
    };
    broken(kind, WHAT, error.to_string()).with_source(error)
}
