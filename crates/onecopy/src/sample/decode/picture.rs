//! Pictures of any format to RGB, and to the size that was asked for.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};

use super::{broken, expect_len, jpeg, png, webp};
use crate::error::{ErrorKind, Result};

/// The largest picture taken, in pixels: 64 million, or 192 MiB as RGB. A header of a few bytes could ask for 12 GiB.
pub const MAX_PIXELS: usize = 64 << 20;

/// What a thread keeps of its scratch from one picture to the next: a photo of 5 megapixels fits.
const KEPT_BYTES: usize = 16 << 20;

/// How a picture is brought to another shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fit {
    /// Scaled so that it covers the target, and cut equally on both sides.
    #[default]
    Crop,
    /// Each axis scaled for itself.
    Stretch,
}

/// Memory that one decoding thread uses again for each picture.
#[derive(Default)]
pub struct Scratch {
    pixels: Vec<u8>,
    channels: Vec<u8>,
    resizer: Resizer,
}

impl Scratch {
    /// Memory that holds nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets go of what a single large picture left behind: there is one scratch per thread, and they live long.
    fn let_go(&mut self) {
        for memory in [&mut self.pixels, &mut self.channels] {
            if memory.len() > KEPT_BYTES {
                *memory = Vec::new();
            }
        }
    }

    /// Memory for pixels of another layout than RGB.
    pub(super) fn channels(&mut self, len: usize) -> &mut [u8] {
        grown(&mut self.channels, len)
    }
}

impl fmt::Debug for Scratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = self.pixels.len() + self.channels.len();
        write!(f, "Scratch({held} bytes)")
    }
}

/// The first `len` bytes of `memory`, which never shrinks: what was touched once stays.
fn grown(memory: &mut Vec<u8>, len: usize) -> &mut [u8] {
    if memory.len() < len {
        memory.resize(len, 0);
    }
    &mut memory[..len]
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Jpeg,
    Png,
    WebP,
}

fn format_of(bytes: &[u8]) -> Result<Format> {
    match bytes {
        [0xff, 0xd8, 0xff, ..] => Ok(Format::Jpeg),
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Ok(Format::Png),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => Ok(Format::WebP),
        [] => Err(broken(ErrorKind::Truncated, "the picture", "it is empty")),
        _ => {
            let head = bytes[..bytes.len().min(12)].escape_ascii();
            let why = format!("it is no JPEG, PNG or WebP: it begins with \"{head}\"");
            Err(broken(ErrorKind::Corrupt, "the picture", why)
                .with_help("take other formats as raw bytes"))
        }
    }
}

/// Height and width, from the header alone, within the limit.
pub(super) fn size_of(bytes: &[u8]) -> Result<(u32, u32)> {
    let format = format_of(bytes)?;
    let (height, width) = fenced(format, || match format {
        Format::Jpeg => jpeg::size_of(bytes),
        Format::Png => png::size_of(bytes),
        Format::WebP => webp::size_of(bytes),
    })?;
    if height == 0 || width == 0 {
        let why = format!("its size is {height} x {width}");
        return Err(broken(ErrorKind::Corrupt, "the picture", why));
    }
    check_pixels(height, width).map_err(|error| error.with_help("scale it down before packing"))?;
    Ok((height, width))
}

/// Refuses more pixels than a picture may have, as it is packed or as it is asked for.
pub(super) fn check_pixels(height: u32, width: u32) -> Result<()> {
    if u64::from(height) * u64::from(width) <= MAX_PIXELS as u64 {
        return Ok(());
    }
    let why = format!("{height} x {width} pixels are more than {MAX_PIXELS}");
    Err(broken(ErrorKind::LimitReached, "the picture", why))
}

/// Decodes into `out`, by way of `scratch` where another size is wanted.
pub(super) fn decode(
    bytes: &[u8],
    size: Option<(u32, u32)>,
    fit: Fit,
    out: &mut [u8],
    scratch: &mut Scratch,
) -> Result<()> {
    let found = size_of(bytes)?;
    let wanted = size.unwrap_or(found);
    expect_len(out, rgb_bytes(wanted))?;
    if wanted == found {
        let outcome = decode_whole(bytes, out, scratch);
        scratch.let_go();
        return outcome;
    }
    if out.is_empty() {
        let why = format!("a size of {} x {} was asked for", wanted.0, wanted.1);
        return Err(broken(ErrorKind::InvalidInput, "the picture", why));
    }
    let mut pixels = std::mem::take(&mut scratch.pixels);
    let whole = grown(&mut pixels, rgb_bytes(found));
    let outcome = decode_whole(bytes, whole, scratch)
        .and_then(|()| resize(whole, found, out, wanted, fit, &mut scratch.resizer));
    scratch.pixels = pixels;
    scratch.let_go();
    outcome
}

fn rgb_bytes((height, width): (u32, u32)) -> usize {
    height as usize * width as usize * 3
}

/// Runs a decoder. They are written by others for the pixels of the whole world: should one of them panic on some bytes,
/// then these bytes are an error like any other, and the thread lives on.
fn fenced<T>(format: Format, decode: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(decode)).unwrap_or_else(|_panic| {
        let why = format!("the {format:?} decoder panicked on it");
        Err(broken(ErrorKind::Corrupt, "the picture", why))
    })
}

/// Decodes the picture as it is.
fn decode_whole(bytes: &[u8], out: &mut [u8], scratch: &mut Scratch) -> Result<()> {
    let format = format_of(bytes)?;
    fenced(format, || match format {
        Format::Jpeg => jpeg::decode(bytes, out),
        Format::Png => png::decode(bytes, out, scratch),
        Format::WebP => webp::decode(bytes, out, scratch),
    })
}

/// Scales with an area-aware bilinear filter, as Pillow and torchvision (`antialias=True`) do.
fn resize(
    from: &[u8],
    (from_height, from_width): (u32, u32),
    to: &mut [u8],
    (height, width): (u32, u32),
    fit: Fit,
    resizer: &mut Resizer,
) -> Result<()> {
    let bad = |why: String| broken(ErrorKind::Bug, "the picture", why);
    let source = ImageRef::new(from_width, from_height, from, PixelType::U8x3)
        .map_err(|error| bad(error.to_string()))?;
    let mut target = Image::from_slice_u8(width, height, to, PixelType::U8x3)
        .map_err(|error| bad(error.to_string()))?;
    let options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(FilterType::Bilinear));
    let options = match fit {
        Fit::Crop => options.fit_into_destination(Some((0.5, 0.5))),
        Fit::Stretch => options,
    };
    resizer
        .resize(&source, &mut target, &options)
        .map_err(|error| bad(error.to_string()))
}

/// Drops the alpha channel.
pub(super) fn rgba_to_rgb(from: &[u8], to: &mut [u8]) {
    for (to, from) in to.chunks_exact_mut(3).zip(from.chunks_exact(4)) {
        to[0] = from[0];
        to[1] = from[1];
        to[2] = from[2];
    }
}

/// Writes the first of `channels` three times.
pub(super) fn grey_to_rgb(from: &[u8], channels: usize, to: &mut [u8]) {
    for (to, from) in to.chunks_exact_mut(3).zip(from.chunks_exact(channels)) {
        to.fill(from[0]);
    }
}
