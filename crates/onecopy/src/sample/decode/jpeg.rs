//! JPEG: baseline and progressive; grayscale, YCbCr, RGB, CMYK and YCCK, all to RGB, as Pillow's `convert("RGB")` has it.

use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;

use super::broken;
use crate::error::{Error, ErrorKind, Result};

const WHAT: &str = "the JPEG";

/// Where the frame header and the first scan are.
#[derive(Debug, Clone, Copy)]
struct Frame {
    height: u32,
    width: u32,
    scan_at: usize,
}

/// Height and width.
pub(super) fn size_of(bytes: &[u8]) -> Result<(u32, u32)> {
    let frame = frame(bytes)?;
    Ok((frame.height, frame.width))
}

/// Decodes into `out`, which has height x width x 3 bytes.
///
/// The decoder is told to be strict, because it otherwise fills up in gray what is missing. Stray bytes between headers
/// alone are forgiven, as libjpeg does: cameras and editors leave such, and no pixel depends on them.
///
/// What is not noticed: scan data that stops early, followed by a proper end mark. The decoder reads zeros there, and
/// libjpeg (so Pillow) does the like.
pub(super) fn decode(bytes: &[u8], out: &mut [u8]) -> Result<()> {
    let frame = frame(bytes)?;
    // The end mark is looked for from behind: it stands at the end, but for what editors append. Inside a scan these
    // two bytes cannot be, and a thumbnail, which has an end mark of its own, stands before the first scan.
    let has_end = bytes[frame.scan_at..]
        .windows(2)
        .rev()
        .any(|pair| pair == [0xff, 0xd9]);
    if !has_end {
        return Err(truncated("its end mark is missing"));
    }
    match decode_with(bytes, out, true) {
        Err(text) if text.contains("Extra bytes between headers") => decode_with(bytes, out, false),
        outcome => outcome,
    }
    .map_err(|text| broken(ErrorKind::Corrupt, WHAT, text))
}

fn decode_with(bytes: &[u8], out: &mut [u8], is_strict: bool) -> Result<(), String> {
    let options = DecoderOptions::new_fast()
        .set_strict_mode(is_strict)
        // Limits are checked in pixels before.
        .set_max_width(usize::from(u16::MAX))
        .set_max_height(usize::from(u16::MAX))
        .jpeg_set_out_colorspace(ColorSpace::RGB);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder
        .decode_headers()
        .map_err(|error| format!("{error:?}"))?;
    match decoder.output_buffer_size() {
        Some(len) if len == out.len() => {}
        other => {
            return Err(format!("it decodes to {other:?} bytes, not {}", out.len()));
        }
    }
    decoder
        .decode_into(out)
        .map_err(|error| format!("{error:?}"))
}

fn truncated(why: &str) -> Error {
    broken(ErrorKind::Truncated, WHAT, why)
}

/// Walks from segment to segment up to the first scan.
fn frame(bytes: &[u8]) -> Result<Frame> {
    let mut size = None;
    let mut at = 2;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let Some(skip) = rest.iter().position(|&byte| byte == 0xff) else {
            return Err(truncated("it ends within its headers"));
        };
        at += skip;
        let marker = match rest.get(skip + 1) {
            // Fill bytes, or no marker at all.
            Some(0xff | 0) => {
                at += 1;
                continue;
            }
            Some(&marker) => marker,
            None => return Err(truncated("it ends within its headers")),
        };
        let segment = bytes.get(at + 2..).unwrap_or_default();
        match (marker, segment) {
            // These stand alone.
            (0x01 | 0xd0..=0xd8, _) => at += 2,
            (0xd9, _) => return Err(truncated("it has no picture data")),
            (0xda, _) => {
                let Some((height, width)) = size else {
                    return Err(broken(ErrorKind::Corrupt, WHAT, "it has no frame header"));
                };
                return Ok(Frame {
                    height,
                    width,
                    scan_at: at,
                });
            }
            (marker, &[high, low, ref body @ ..]) => {
                if is_frame(marker)
                    && let &[_, y1, y0, x1, x0, ..] = body
                {
                    size = Some((
                        u32::from(u16::from_be_bytes([y1, y0])),
                        u32::from(u16::from_be_bytes([x1, x0])),
                    ));
                }
                at += 2 + usize::from(u16::from_be_bytes([high, low])).max(2);
            }
            _ => return Err(truncated("it ends within its headers")),
        }
    }
}

fn is_frame(marker: u8) -> bool {
    matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc)
}
