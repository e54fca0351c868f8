//! NumPy's `.npy`, versions 1 to 3: plain numbers of either byte order and either memory order. Never a pickle.

use super::{DType, TensorLayout, broken, expect_len, pickle};
use crate::buffer::copy;
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::OpenHop;
use crate::route::Hop;

const WHAT: &str = "the npy array";

/// The longest header taken. NumPy itself stops at 10 000 bytes unless told otherwise.
const HEADER_BYTES: usize = 1 << 20;

/// The most axes an array may have; NumPy's own limit.
const AXES: usize = 64;

/// An array in a file.
#[derive(Debug)]
pub(super) struct Array<'a> {
    pub(super) layout: TensorLayout,
    content: &'a [u8],
    is_swapped: bool,
}

/// The header's dictionary.
#[derive(Debug, Default, PartialEq, Eq)]
struct Dictionary<'a> {
    descr: Option<&'a str>,
    is_fortran: Option<bool>,
    shape: Option<Vec<usize>>,
}

impl<'a> Array<'a> {
    /// Reads the header, and checks that the content is all there.
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self> {
        let (header, content) = split(bytes)?;
        let header = std::str::from_utf8(header)
            .map_err(|error| corrupt("its header is no text").with_source(error))?;
        let dictionary = dictionary(header)?;
        let (Some(descr), Some(is_fortran), Some(shape)) =
            (dictionary.descr, dictionary.is_fortran, dictionary.shape)
        else {
            return Err(corrupt("its header lacks descr, fortran_order or shape"));
        };
        let (dtype, is_swapped) = dtype(descr)?;
        let len_bytes = shape
            .iter()
            .try_fold(dtype.size_bytes(), |len, &axis| len.checked_mul(axis))
            .filter(|_| shape.len() <= AXES)
            .ok_or_else(|| broken(ErrorKind::LimitReached, WHAT, "its shape is too large"))?;
        let Some(content) = content.get(..len_bytes) else {
            return Err(broken(
                ErrorKind::Truncated,
                WHAT,
                format!(
                    "its shape {shape:?} of {} needs {len_bytes} bytes, and {} are there",
                    dtype.name(),
                    content.len()
                ),
            ));
        };
        Ok(Self {
            layout: TensorLayout {
                dtype,
                shape,
                is_channels_last: false,
                is_fortran,
            },
            content,
            is_swapped,
        })
    }

    /// Writes the elements into `out`: last axis fastest, in the machine's byte order.
    ///
    /// # Copies
    ///
    /// One, counted on `gather`, where the array lies like that already; else a transform, counted on `hop`.
    pub(super) fn lay_into(&self, hop: &OpenHop, out: &mut [u8]) -> Result<()> {
        expect_len(out, self.content.len())?;
        let has_axes = self.layout.shape.iter().filter(|&&axis| axis > 1).count() > 1;
        if self.layout.is_fortran && has_axes {
            hop.timed(self.content.len(), || self.transpose(out));
        } else if self.is_swapped {
            hop.timed(self.content.len(), || self.swap(out));
        } else {
            copy::lay(&hop.beside(Hop::Gather), self.content, out);
        }
        Ok(())
    }

    fn swap(&self, out: &mut [u8]) {
        let part = self.layout.dtype.part_bytes();
        let pairs = out.chunks_exact_mut(part);
        for (to, from) in pairs.zip(self.content.chunks_exact(part)) {
            to.iter_mut()
                .zip(from.iter().rev())
                .for_each(|(to, from)| *to = *from);
        }
    }

    /// First axis fastest to last axis fastest.
    fn transpose(&self, out: &mut [u8]) {
        let shape = &self.layout.shape;
        let size = self.layout.dtype.size_bytes();
        let part = if self.is_swapped {
            self.layout.dtype.part_bytes()
        } else {
            1
        };
        let steps: Vec<usize> = shape
            .iter()
            .scan(size, |step, &axis| {
                let this = *step;
                *step *= axis;
                Some(this)
            })
            .collect();
        let mut place = vec![0_usize; shape.len()];
        let mut at = 0;
        for to in out.chunks_exact_mut(size) {
            let from = &self.content[at..at + size];
            for (index, to) in to.iter_mut().enumerate() {
                // With parts of one byte this is the index itself.
                *to = from[index - index % part + (part - 1 - index % part)];
            }
            for axis in (0..shape.len()).rev() {
                place[axis] += 1;
                at += steps[axis];
                if place[axis] < shape[axis] {
                    break;
                }
                at -= steps[axis] * shape[axis];
                place[axis] = 0;
            }
        }
    }
}

fn corrupt(why: impl Into<String>) -> Error {
    broken(ErrorKind::Corrupt, WHAT, why)
}

/// The header's text, and what follows it.
fn split(bytes: &[u8]) -> Result<(&[u8], &[u8])> {
    let cut = || broken(ErrorKind::Truncated, WHAT, "it ends within its header");
    let (start, len) = match bytes {
        [0x93, b'N', b'U', b'M', b'P', b'Y', 1, _, a, b, ..] => {
            (10, usize::from(u16::from_le_bytes([*a, *b])))
        }
        [0x93, b'N', b'U', b'M', b'P', b'Y', 2 | 3, _, a, b, c, d, ..] => {
            (12, u32::from_le_bytes([*a, *b, *c, *d]) as usize)
        }
        [0x93, b'N', b'U', b'M', b'P', b'Y', version, ..] if *version > 3 || *version == 0 => {
            let why = format!("its version is {version}");
            return Err(broken(ErrorKind::Unsupported, WHAT, why));
        }
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => return Err(cut()),
        [] => return Err(broken(ErrorKind::Truncated, WHAT, "it is empty")),
        // The opcode that every binary pickle of protocol 2 and later begins with.
        [0x80, 2..=5, ..] => return Err(pickle(WHAT)),
        _ => return Err(corrupt("it does not begin like one")),
    };
    if len > HEADER_BYTES {
        let why = format!("its header has {len} bytes, of at most {HEADER_BYTES}");
        return Err(broken(ErrorKind::LimitReached, WHAT, why));
    }
    bytes[start..].split_at_checked(len).ok_or_else(cut)
}

/// Reads `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`.
fn dictionary(text: &str) -> Result<Dictionary<'_>> {
    let bad = || corrupt("its header is no dictionary that NumPy writes");
    let mut found = Dictionary::default();
    let inner = text.trim().strip_prefix('{').ok_or_else(bad)?;
    let mut rest = inner.strip_suffix('}').ok_or_else(bad)?.trim();
    while !rest.is_empty() {
        let (key, after) = quoted(rest).ok_or_else(bad)?;
        let value = after.trim_start().strip_prefix(':').ok_or_else(bad)?;
        let value = value.trim_start();
        let after = match key {
            "descr" if value.starts_with('[') => {
                return Err(broken(
                    ErrorKind::Unsupported,
                    WHAT,
                    "its elements are records",
                ));
            }
            "descr" => {
                let (descr, after) = quoted(value).ok_or_else(bad)?;
                found.descr = Some(descr);
                after
            }
            "fortran_order" => {
                let (is_true, after) = boolean(value).ok_or_else(bad)?;
                found.is_fortran = Some(is_true);
                after
            }
            "shape" => {
                let (shape, after) = tuple(value).ok_or_else(bad)?;
                found.shape = Some(shape);
                after
            }
            _ => return Err(bad()),
        };
        rest = after.trim_start();
        rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
    }
    Ok(found)
}

fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    text[1..].split_once(quote)
}

fn boolean(text: &str) -> Option<(bool, &str)> {
    let is_true = text.strip_prefix("True").map(|after| (true, after));
    is_true.or_else(|| text.strip_prefix("False").map(|after| (false, after)))
}

fn tuple(text: &str) -> Option<(Vec<usize>, &str)> {
    let (inner, after) = text.strip_prefix('(')?.split_once(')')?;
    let axes = inner
        .split(',')
        .map(str::trim)
        .filter(|axis| !axis.is_empty());
    // Python 2 wrote long integers with an L.
    let axes: Result<Vec<usize>, _> = axes
        .map(|axis| axis.strip_suffix('L').unwrap_or(axis).parse())
        .collect();
    Some((axes.ok()?, after))
}

/// The element type, and whether its bytes have to be turned round.
fn dtype(descr: &str) -> Result<(DType, bool)> {
    let (order, name) = match descr.as_bytes().first() {
        Some(b'<' | b'>' | b'|' | b'=') => descr.split_at(1),
        _ => ("=", descr),
    };
    let dtype = match name {
        "b1" => DType::Bool,
        "u1" => DType::U8,
        "i1" => DType::I8,
        "u2" => DType::U16,
        "i2" => DType::I16,
        "u4" => DType::U32,
        "i4" => DType::I32,
        "u8" => DType::U64,
        "i8" => DType::I64,
        "f2" => DType::F16,
        "f4" => DType::F32,
        "f8" => DType::F64,
        "c8" => DType::C64,
        "c16" => DType::C128,
        name if name.starts_with('O') => return Err(pickle(WHAT)),
        _ => {
            let why = format!("its element type {descr:?} is no plain number");
            return Err(broken(ErrorKind::Unsupported, WHAT, why)
                .with_help("store numbers, or take the raw bytes"));
        }
    };
    let foreign = if cfg!(target_endian = "little") {
        ">"
    } else {
        "<"
    };
    Ok((dtype, order == foreign && dtype.part_bytes() > 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_headers_as_they_are_written() {
        let read = dictionary("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }  \n");
        let expected = |shape: &[usize]| Dictionary {
            descr: Some("<f4"),
            is_fortran: Some(false),
            shape: Some(Vec::from(shape)),
        };
        assert_eq!(read.unwrap(), expected(&[3, 4]));
        let read = dictionary("{\"shape\":(2L,),\"fortran_order\":False,\"descr\":\"<f4\"}");
        assert_eq!(read.unwrap(), expected(&[2]));
        assert_eq!(
            dictionary("{'shape': (), 'fortran_order': False, 'descr': '<f4'}").unwrap(),
            expected(&[])
        );
    }

    #[test]
    fn refuses_headers_that_numpy_does_not_write() {
        for text in [
            "",
            "{",
            "{'descr'}",
            "{'descr': <f4}",
            "{'shape': (3, -4)}",
            "{'shape': (3, 4}",
            "{'shape': (99999999999999999999,)}",
            "{'fortran_order': 1}",
            "{'evil': __import__('os')}",
        ] {
            let error = dictionary(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{text:?}");
        }
    }
}
