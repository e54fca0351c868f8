//! Fields to values: pictures to pixels, arrays, numbers, text, straight into the memory of the batch.
//!
//! Hops here: decode, gather, inflate (npz). May import: buffer, ledger. Absent: shard, key and field names in errors,
//! which the caller adds; threads; and pickle, which runs what it reads.

mod jpeg;
mod json;
mod layout;
mod npy;
mod npz;
mod picture;
mod png;
mod text;
mod webp;

pub use layout::{DType, TensorLayout};
pub use npz::npz_members;
pub use picture::{Fit, MAX_PIXELS, Scratch};
pub use text::{parse_int, parse_text};

use crate::buffer::copy;
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::OpenHop;
use crate::route::Hop;

/// How the bytes of a field become a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoder {
    /// A JPEG, PNG or WebP, told by magic, to 8-bit RGB.
    Rgb {
        /// Height and width to bring every picture to; none keeps each as it is.
        size: Option<(u32, u32)>,
        /// How a picture of another shape is brought there.
        fit: Fit,
    },
    /// A NumPy array.
    Npy,
    /// Several NumPy arrays: [`npz_members`] takes them apart.
    Npz,
    /// A whole number in ASCII.
    Cls,
    /// UTF-8 text.
    Text,
    /// JSON: checked to its end, parsed by whoever wants the value. What is taken is what Python's `json.loads` takes (NaN,
    /// infinities, UTF-16 and UTF-32, too), but for whole numbers of more than 4300 digits and nesting of more than 900
    /// levels.
    Json,
    /// The bytes as they are.
    Raw,
    /// A pickle: refused.
    Pickle,
}

/// What a field will be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// An array; [`Decoder::decode_into`] writes [`TensorLayout::len_bytes`].
    Tensor(TensorLayout),
    /// This many bytes, as they are.
    Bytes(usize),
    /// Text in UTF-8: the bytes as they are.
    Text,
    /// JSON: the bytes as they are, in UTF-8 unless the shard has it otherwise.
    Json,
    /// A whole number: an `i64` in the machine's byte order.
    Int,
}

impl Decoder {
    /// The decoder for a field of this name, by its last extension, with the choices of WebDataset.
    #[must_use]
    pub fn for_field(name: &str) -> Self {
        let extension = name.rsplit('.').next().unwrap_or(name);
        match extension.to_ascii_lowercase().as_str() {
            "jpg" | "jpeg" | "png" | "webp" => Self::Rgb {
                size: None,
                fit: Fit::Crop,
            },
            "npy" => Self::Npy,
            "npz" => Self::Npz,
            "json" | "jsn" => Self::Json,
            "cls" | "cls2" | "class" | "count" | "index" | "inx" | "id" => Self::Cls,
            "txt" | "text" | "transcript" => Self::Text,
            "pkl" | "pickle" | "pyd" | "pth" | "pt" => Self::Pickle,
            _ => Self::Raw,
        }
    }

    /// What `bytes` will be, from their header alone.
    ///
    /// # Errors
    ///
    /// `Corrupt`, `Truncated`, `Unsupported` or `LimitReached`, saying what is wrong with the bytes.
    pub fn probe(&self, bytes: &[u8]) -> Result<Value> {
        match *self {
            Self::Rgb { size, .. } => {
                let found = picture::size_of(bytes)?;
                let (height, width) = size.unwrap_or(found);
                picture::check_pixels(height, width)
                    .map_err(|error| error.with_help("ask for smaller pictures: `size=224`"))?;
                Ok(Value::Tensor(TensorLayout::rgb(height, width)))
            }
            Self::Npy => Ok(Value::Tensor(npy::Array::parse(bytes)?.layout)),
            Self::Npz => {
                npz::check_magic(bytes)?;
                Ok(Value::Bytes(bytes.len()))
            }
            Self::Cls => Ok(Value::Int),
            Self::Text => Ok(Value::Text),
            Self::Json => Ok(Value::Json),
            Self::Raw => Ok(Value::Bytes(bytes.len())),
            Self::Pickle => Err(pickle("the field")),
        }
    }

    /// Decodes `bytes` into `out`, which is as long as [`Decoder::probe`] told. `hop` is [`Hop::Decode`].
    ///
    /// # Copies
    ///
    /// Arrays in the machine's own order, text, JSON and raw bytes are copied once, counted on `gather`. Everything else
    /// is a transform, counted on `hop`, written once into `out`; pictures that are brought to a size pass through
    /// `scratch` on the way.
    ///
    /// # Errors
    ///
    /// As [`Decoder::probe`]; and `InvalidInput` where `out` has another length. What `out` then holds is undefined.
    pub fn decode_into(
        &self,
        hop: &OpenHop,
        bytes: &[u8],
        out: &mut [u8],
        scratch: &mut Scratch,
    ) -> Result<()> {
        match *self {
            Self::Rgb { size, fit } => hop.timed(bytes.len(), || {
                picture::decode(bytes, size, fit, out, scratch)
            }),
            Self::Npy => npy::Array::parse(bytes)?.lay_into(hop, out),
            Self::Cls => {
                let number = parse_int(bytes)?.to_ne_bytes();
                expect_len(out, number.len())?;
                hop.timed(bytes.len(), || {
                    out.iter_mut().zip(number).for_each(|(to, from)| *to = from);
                });
                Ok(())
            }
            Self::Text => {
                parse_text(bytes)?;
                lay_as_is(hop, bytes, out)
            }
            Self::Json => {
                json::check(bytes)?;
                lay_as_is(hop, bytes, out)
            }
            Self::Npz => {
                npz::check_magic(bytes)?;
                lay_as_is(hop, bytes, out)
            }
            Self::Raw => lay_as_is(hop, bytes, out),
            Self::Pickle => Err(pickle("the field")),
        }
    }
}

fn lay_as_is(hop: &OpenHop, bytes: &[u8], out: &mut [u8]) -> Result<()> {
    expect_len(out, bytes.len())?;
    copy::lay(&hop.beside(Hop::Gather), bytes, out);
    Ok(())
}

/// An error about the bytes of `what`.
fn broken(kind: ErrorKind, what: &str, why: impl Into<String>) -> Error {
    Error::new(kind, "decode", what, why)
}

fn pickle(what: &str) -> Error {
    broken(
        ErrorKind::Unsupported,
        what,
        "it is a pickle, and reading a pickle runs the code in it",
    )
    .with_help("store it as npy, npz or json; or take the raw bytes and unpickle what you trust")
}

fn expect_len(out: &[u8], len_bytes: usize) -> Result<()> {
    if out.len() == len_bytes {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::InvalidInput,
        "decode",
        "a field",
        format!(
            "its value has {len_bytes} bytes, and its target {}",
            out.len()
        ),
    )
    .with_help("samples of one batch must have equal shapes: give pictures one size (`size=224`), or take single samples"))
}
