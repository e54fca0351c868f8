//! NumPy's `.npz`: a zip of `.npy` files. Stored ones, as `numpy.savez` writes them, are parts of the archive's own bytes.

use std::collections::HashSet;
use std::ops::Range;
use std::time::Instant;

use flate2::{Decompress, FlushDecompress, Status};

use super::broken;
use crate::buffer::{Slab, Slice};
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::OpenHop;
use crate::route::Hop;
use crate::size::to_usize;

const WHAT: &str = "the npz archive";

/// The most that one archive may inflate to: a bomb of a few KiB could ask for anything.
const INFLATED_BYTES: u64 = 4 << 30;

/// What deflate can shrink by at most is 1032; a promise beyond that is a lie, told before memory is taken for it.
const MOST_SHRINKING: u64 = 1100;

/// One file of the archive, as its directory has it.
#[derive(Debug)]
struct File {
    name: String,
    is_encrypted: bool,
    method: u16,
    crc32: u32,
    packed_bytes: u64,
    len_bytes: u64,
    header_at: u64,
}

impl File {
    /// What the array in it is called.
    fn array(&self) -> &str {
        self.name.strip_suffix(".npy").unwrap_or(&self.name)
    }
}

/// The arrays of an npz, by name without `.npy`, each the bytes of an npy file.
///
/// # Copies
///
/// None for stored arrays, which are parts of `bytes`. Deflated ones are inflated into memory of their own, counted on
/// `inflate` beside `hop`.
///
/// # Errors
///
/// `Corrupt` or `Truncated` where the archive is damaged (checksums are held against the content), `Corrupt` where arrays
/// share bytes or a name, `Unsupported` for encryption and for methods other than stored and deflated, `LimitReached` for
/// more than 4 GiB.
pub fn npz_members(hop: &OpenHop, bytes: &Slice) -> Result<Vec<(String, Slice)>> {
    check_magic(bytes)?;
    let hop = hop.beside(Hop::Inflate);
    let mut inflated = 0_u64;
    let mut members = Vec::new();
    let (files, directory_at) = directory(bytes)?;
    // All places first: no byte is looked at twice, so that no archive costs more than its length and what it inflates to.
    let contents = contents(&files, bytes, directory_at)?;
    for (file, content) in files.into_iter().zip(contents) {
        let packed = bytes.slice(content);
        let content = match file.method {
            _ if file.is_encrypted => {
                let why = format!("{:?} is encrypted", file.name);
                return Err(broken(ErrorKind::Unsupported, WHAT, why));
            }
            0 if file.packed_bytes == file.len_bytes => packed,
            0 => return Err(corrupt(format!("{:?} has two lengths", file.name))),
            8 => {
                inflated = inflated.saturating_add(file.len_bytes);
                if inflated > INFLATED_BYTES {
                    let why = format!("it inflates to more than {INFLATED_BYTES} bytes");
                    return Err(broken(ErrorKind::LimitReached, WHAT, why));
                }
                inflate(&hop, &file, &packed)?
            }
            method => {
                let why = format!("{:?} is compressed by method {method}", file.name);
                return Err(broken(ErrorKind::Unsupported, WHAT, why)
                    .with_help("write it with numpy.savez or numpy.savez_compressed"));
            }
        };
        if crc32fast::hash(&content) != file.crc32 {
            return Err(corrupt(format!("the checksum of {:?} is wrong", file.name)));
        }
        members.push((file.array().to_owned(), content));
    }
    Ok(members)
}

/// Whether the bytes begin like a zip.
pub(super) fn check_magic(bytes: &[u8]) -> Result<()> {
    match bytes {
        [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Ok(()),
        [] => Err(broken(ErrorKind::Truncated, WHAT, "it is empty")),
        _ => Err(corrupt("it does not begin like one")),
    }
}

fn corrupt(why: impl Into<String>) -> Error {
    broken(ErrorKind::Corrupt, WHAT, why)
}

/// `N` bytes at `at`, if they are there.
fn field<const N: usize>(bytes: &[u8], at: u64) -> Option<[u8; N]> {
    let start = usize::try_from(at).ok()?;
    bytes.get(start..)?.first_chunk().copied()
}

fn u16_at(bytes: &[u8], at: u64) -> Option<u16> {
    field(bytes, at).map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: u64) -> Option<u32> {
    field(bytes, at).map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: u64) -> Option<u64> {
    field(bytes, at).map(u64::from_le_bytes)
}

/// Reads the directory at the archive's end; with it, where it begins.
fn directory(bytes: &[u8]) -> Result<(Vec<File>, u64)> {
    let cut = || broken(ErrorKind::Truncated, WHAT, "its directory is missing");
    // The end record is 22 bytes and a comment of at most 65535.
    let end = bytes
        .windows(22)
        .rev()
        .take(22 + 65535)
        .position(|window| window.starts_with(b"PK\x05\x06"))
        .ok_or_else(cut)?;
    let end = (bytes.len() - 22 - end) as u64;
    let (count, start) = ends(bytes, end).ok_or_else(cut)?;
    let mut files = Vec::new();
    let mut at = start;
    for _ in 0..count {
        let (file, next) = entry(bytes, at)
            .ok_or_else(|| corrupt(format!("its directory is damaged at byte {at}")))?;
        files.push(file);
        at = next;
    }
    Ok((files, start))
}

/// How many files there are, and where the directory begins.
fn ends(bytes: &[u8], end: u64) -> Option<(u64, u64)> {
    let count = u64::from(u16_at(bytes, end + 10)?);
    let start = u64::from(u32_at(bytes, end + 16)?);
    if count < 0xffff && start < 0xffff_ffff {
        return Some((count, start));
    }
    // The numbers did not fit: a locator of 20 bytes in front names the larger record.
    let locator = end.checked_sub(20)?;
    if &field::<4>(bytes, locator)? != b"PK\x06\x07" {
        return Some((count, start));
    }
    let larger = u64_at(bytes, locator + 8)?;
    if &field::<4>(bytes, larger)? != b"PK\x06\x06" {
        return None;
    }
    Some((
        u64_at(bytes, larger.checked_add(32)?)?,
        u64_at(bytes, larger.checked_add(48)?)?,
    ))
}

/// One entry of the directory, and where the next one begins.
fn entry(bytes: &[u8], at: u64) -> Option<(File, u64)> {
    if &field::<4>(bytes, at)? != b"PK\x01\x02" {
        return None;
    }
    let [name_len, extra_len, comment_len] = [
        u64::from(u16_at(bytes, at + 28)?),
        u64::from(u16_at(bytes, at + 30)?),
        u64::from(u16_at(bytes, at + 32)?),
    ];
    let name_at = at + 46;
    let extra_at = name_at + name_len;
    let next = extra_at + extra_len + comment_len;
    let name = bytes.get(to_usize(name_at)..to_usize(extra_at))?;
    let extra = bytes.get(to_usize(extra_at)..to_usize(extra_at + extra_len))?;
    let mut larger = Larger(zip64(extra));
    let file = File {
        name: String::from_utf8_lossy(name).into_owned(),
        is_encrypted: u16_at(bytes, at + 8)? & 1 != 0,
        method: u16_at(bytes, at + 10)?,
        crc32: u32_at(bytes, at + 16)?,
        // In this order, since the larger numbers stand so.
        len_bytes: larger.or(u32_at(bytes, at + 24)?)?,
        packed_bytes: larger.or(u32_at(bytes, at + 20)?)?,
        header_at: larger.or(u32_at(bytes, at + 42)?)?,
    };
    Some((file, next))
}

/// The extra field that holds numbers of 64 bits.
fn zip64(mut extra: &[u8]) -> &[u8] {
    while let [a, b, c, d, rest @ ..] = extra {
        let len = usize::from(u16::from_le_bytes([*c, *d])).min(rest.len());
        if u16::from_le_bytes([*a, *b]) == 1 {
            return &rest[..len];
        }
        extra = &rest[len..];
    }
    &[]
}

/// Numbers of 64 bits for those that did not fit.
struct Larger<'a>(&'a [u8]);

impl Larger<'_> {
    fn or(&mut self, number: u32) -> Option<u64> {
        if number != u32::MAX {
            return Some(u64::from(number));
        }
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*first))
    }
}

/// Where the packed contents lie, in the order of `files`: each in bytes of its own, and all before the directory.
fn contents(files: &[File], bytes: &[u8], directory_at: u64) -> Result<Vec<Range<usize>>> {
    let mut names = HashSet::with_capacity(files.len());
    if let Some(twice) = files.iter().find(|file| !names.insert(file.array())) {
        let why = format!("two of its arrays are called {:?}", twice.array());
        return Err(corrupt(why));
    }
    let mut places = Vec::with_capacity(files.len());
    for file in files {
        let content = content_of(file, bytes).filter(|content| content.end <= directory_at);
        places.push(content.ok_or_else(|| {
            let why = format!("{:?} is not where its directory says", file.name);
            broken(ErrorKind::Truncated, WHAT, why)
        })?);
    }
    let mut in_order: Vec<_> = files.iter().zip(&places).collect();
    in_order.sort_unstable_by_key(|(file, _)| file.header_at);
    for pair in in_order.windows(2) {
        if let [(before, content), (next, _)] = pair
            && next.header_at < content.end
        {
            let why = format!(
                "{:?} and {:?} lie in the same bytes",
                before.name, next.name
            );
            return Err(corrupt(why).with_help("write it with numpy.savez"));
        }
    }
    Ok(places
        .into_iter()
        .map(|content| to_usize(content.start)..to_usize(content.end))
        .collect())
}

/// The packed content: behind the file's own header, whose name and extra field may be of another length.
fn content_of(file: &File, bytes: &[u8]) -> Option<Range<u64>> {
    if &field::<4>(bytes, file.header_at)? != b"PK\x03\x04" {
        return None;
    }
    let name_len = u64::from(u16_at(bytes, file.header_at + 26)?);
    let extra_len = u64::from(u16_at(bytes, file.header_at + 28)?);
    let start = file.header_at + 30 + name_len + extra_len;
    let end = start.checked_add(file.packed_bytes)?;
    (end <= bytes.len() as u64).then_some(start..end)
}

fn inflate(hop: &OpenHop, file: &File, packed: &[u8]) -> Result<Slice> {
    let damaged = || corrupt(format!("{:?} cannot be inflated", file.name));
    if file.len_bytes > file.packed_bytes.saturating_mul(MOST_SHRINKING) {
        return Err(damaged());
    }
    let start = Instant::now();
    let mut out = Slab::heap(to_usize(file.len_bytes));
    let mut decompress = Decompress::new(false);
    let status = decompress
        .decompress(packed, &mut out, FlushDecompress::Finish)
        .map_err(|error| damaged().with_source(error))?;
    hop.moved(packed.len(), start.elapsed());
    // An empty target leaves no room for the decoder to notice the end.
    let is_whole = status == Status::StreamEnd || file.len_bytes == 0;
    if !is_whole || decompress.total_out() != file.len_bytes {
        return Err(damaged());
    }
    Ok(out.freeze())
}
