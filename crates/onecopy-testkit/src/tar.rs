//! A tar writer with nothing between the caller and the bytes, so that a test can damage any of
//! them.
//!
//! It writes ustar, v7, GNU long names, PAX records (`x` and `g`) and base-256 sizes. It checks
//! nothing: a size that does not match the content is the caller's to write.
//!
//! Absent: reading. The reader under test must not share code with what made its input.

use std::fmt::Write as _;
use std::ops::Range;

/// Headers and contents lie on multiples of this.
pub const BLOCK_BYTES: usize = 512;

/// Where the fields of a header lie (POSIX.1-1988, `ustar`).
pub mod field {
    use std::ops::Range;

    /// The name of the member, or its end if there is a prefix.
    pub const NAME: Range<usize> = 0..100;
    /// The permissions, in octal.
    pub const MODE: Range<usize> = 100..108;
    /// The user, in octal.
    pub const UID: Range<usize> = 108..116;
    /// The group, in octal.
    pub const GID: Range<usize> = 116..124;
    /// The length of the content, in octal or base-256.
    pub const SIZE: Range<usize> = 124..136;
    /// The time of the last change in seconds, in octal.
    pub const MTIME: Range<usize> = 136..148;
    /// The sum of all bytes, with this field taken for blanks.
    pub const CHECKSUM: Range<usize> = 148..156;
    /// What the member is: `0` for a file.
    pub const KIND: Range<usize> = 156..157;
    /// The target of a link.
    pub const LINK: Range<usize> = 157..257;
    /// `ustar` and the version.
    pub const MAGIC: Range<usize> = 257..265;
    /// What stands before the name, up to the slash between them.
    pub const PREFIX: Range<usize> = 345..500;
}

/// One header block. Each setter writes its field; [`Header::seal`] computes the checksum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The block itself, for whatever no setter does.
    pub block: [u8; BLOCK_BYTES],
}

impl Header {
    /// A sealed ustar header of a plain file. The name is cut at 100 bytes.
    #[must_use]
    pub fn ustar(name: &str, size_bytes: u64) -> Self {
        let mut header = Self::v7(name, size_bytes);
        header
            .set(field::MAGIC, b"ustar\x0000")
            .set(field::KIND, b"0")
            .seal();
        header
    }

    /// A sealed header as GNU tar writes it: another magic, no prefix.
    #[must_use]
    pub fn gnu(name: &str, size_bytes: u64) -> Self {
        let mut header = Self::v7(name, size_bytes);
        header
            .set(field::MAGIC, b"ustar  \0")
            .set(field::KIND, b"0")
            .seal();
        header
    }

    /// A sealed header as it was before POSIX: no magic, and a NUL for the kind of a file.
    #[must_use]
    pub fn v7(name: &str, size_bytes: u64) -> Self {
        let mut header = Self {
            block: [0; BLOCK_BYTES],
        };
        header
            .set(field::NAME, name.as_bytes())
            .set(field::MODE, b"0000644\0")
            .set(field::UID, b"0000000\0")
            .set(field::GID, b"0000000\0")
            .set_size(size_bytes)
            .set(field::MTIME, b"00000000000\0")
            .seal();
        header
    }

    /// Writes a field: zeroes, then the bytes, cut where the field ends. The checksum is not
    /// touched, so that a test may leave it wrong.
    pub fn set(&mut self, field: Range<usize>, bytes: &[u8]) -> &mut Self {
        let field = &mut self.block[field];
        field.fill(0);
        let length = bytes.len().min(field.len());
        field[..length].copy_from_slice(&bytes[..length]);
        self
    }

    /// Writes the size in octal; from 8 GiB on, where octal ends, in base-256.
    pub fn set_size(&mut self, size_bytes: u64) -> &mut Self {
        if size_bytes >= 1 << 33 {
            return self.set_size_base256(size_bytes);
        }
        self.set(field::SIZE, format!("{size_bytes:011o}\0").as_bytes())
    }

    /// Writes the size in base-256: the top bit set, then the number, big end first.
    pub fn set_size_base256(&mut self, size_bytes: u64) -> &mut Self {
        let mut text = [0; 12];
        text[0] = 0x80;
        text[4..].copy_from_slice(&size_bytes.to_be_bytes());
        self.set(field::SIZE, &text)
    }

    /// Computes and writes the checksum.
    pub fn seal(&mut self) -> &mut Self {
        self.set(field::CHECKSUM, b"        ");
        let sum: u32 = self.block.iter().map(|byte| u32::from(*byte)).sum();
        self.set(field::CHECKSUM, format!("{sum:06o}\0 ").as_bytes())
    }
}

/// The records of a PAX header: `length key=value`, where the length counts itself.
#[must_use]
pub fn pax_records(records: &[(&str, &str)]) -> Vec<u8> {
    let mut text = String::new();
    for (key, value) in records {
        // A blank, an equals sign and a line feed.
        let rest = key.len() + value.len() + 3;
        let mut length = rest + 1;
        while length != rest + length.to_string().len() {
            length = rest + length.to_string().len();
        }
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{length} {key}={value}");
    }
    text.into_bytes()
}

/// An archive that grows in memory.
#[derive(Debug, Clone, Default)]
pub struct TarWriter {
    bytes: Vec<u8>,
}

impl TarWriter {
    /// An archive without members.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The length so far in bytes, which is where the next header will lie.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Is there nothing in it yet?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Makes room, so that appending moves nothing.
    pub fn reserve(&mut self, bytes: usize) {
        self.bytes.reserve(bytes);
    }

    /// Appends a file in the plainest form that can bear the name: ustar, ustar with a prefix,
    /// PAX. Gives the offset of the content.
    pub fn file(&mut self, name: &str, content: &[u8]) -> u64 {
        let size_bytes = content.len() as u64;
        if name.len() <= field::NAME.len() {
            return self.member(&Header::ustar(name, size_bytes), content);
        }
        let at = name
            .match_indices('/')
            .map(|(at, _)| at)
            .find(|at| *at <= field::PREFIX.len() && name.len() - at - 1 <= field::NAME.len());
        match at {
            Some(at) if at > 0 => {
                let mut header = Header::ustar(&name[at + 1..], size_bytes);
                header.set(field::PREFIX, &name.as_bytes()[..at]).seal();
                self.member(&header, content)
            }
            _ => self.pax_file(&[("path", name)], "long-name", content),
        }
    }

    /// Appends a file whose name lies in a GNU `L` member before it.
    pub fn gnu_long_name_file(&mut self, name: &str, content: &[u8]) -> u64 {
        let mut header = Header::gnu("././@LongLink", name.len() as u64 + 1);
        header.set(field::KIND, b"L").seal();
        let mut text = name.as_bytes().to_vec();
        text.push(0);
        self.member(&header, &text);
        self.member(&Header::gnu(name, content.len() as u64), content)
    }

    /// Appends a file with PAX records of its own (`x`), under `name` in the plain header.
    pub fn pax_file(&mut self, records: &[(&str, &str)], name: &str, content: &[u8]) -> u64 {
        self.pax(b"x", records);
        self.member(&Header::ustar(name, content.len() as u64), content)
    }

    /// Appends PAX records for all members that follow (`g`).
    pub fn pax_global(&mut self, records: &[(&str, &str)]) {
        self.pax(b"g", records);
    }

    fn pax(&mut self, kind: &[u8], records: &[(&str, &str)]) {
        let text = pax_records(records);
        let mut header = Header::ustar("././@PaxHeader", text.len() as u64);
        header.set(field::KIND, kind).seal();
        self.member(&header, &text);
    }

    /// Appends a folder.
    pub fn folder(&mut self, name: &str) {
        let mut header = Header::ustar(name, 0);
        header
            .set(field::KIND, b"5")
            .set(field::MODE, b"0000755\0")
            .seal();
        self.member(&header, b"");
    }

    /// Appends a header as it is, and a content padded to a whole block. Gives the offset of the
    /// content.
    pub fn member(&mut self, header: &Header, content: &[u8]) -> u64 {
        self.bytes.extend_from_slice(&header.block);
        let offset = self.len();
        self.bytes.extend_from_slice(content);
        self.bytes
            .resize(self.bytes.len().next_multiple_of(BLOCK_BYTES), 0);
        offset
    }

    /// Appends bytes as they are, whatever they do to the archive.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The archive with its end mark: two blocks of zeroes.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        self.bytes.resize(self.bytes.len() + 2 * BLOCK_BYTES, 0);
        self.bytes
    }

    /// The archive without an end mark, as a writer leaves it that was killed.
    #[must_use]
    pub fn cut(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seals_a_header_with_the_sum_of_its_bytes() {
        let header = Header::ustar("a.txt", 5);
        let told = std::str::from_utf8(&header.block[148..154]).unwrap();
        let told = u32::from_str_radix(told, 8).unwrap();
        let mut blank = header.block;
        blank[field::CHECKSUM].fill(b' ');
        assert_eq!(told, blank.iter().map(|b| u32::from(*b)).sum::<u32>());
        assert_eq!(&header.block[field::SIZE], b"00000000005\0");
    }

    #[test]
    fn counts_the_length_of_a_record_with_itself() {
        assert_eq!(pax_records(&[("path", "ab")]), b"11 path=ab\n");
        let long = "x".repeat(91);
        assert_eq!(pax_records(&[("path", &long)]).len(), 100 + 1);
        assert!(pax_records(&[("path", &long)]).starts_with(b"101 path="));
    }

    #[test]
    fn splits_long_names_and_falls_back_to_pax() {
        let mut tar = TarWriter::new();
        let folder = "d".repeat(90);
        let offset = tar.file(&format!("{folder}/{folder}"), b"x");
        assert_eq!(offset, 512);
        let header = &tar.bytes[..512];
        assert_eq!(&header[field::PREFIX][..90], folder.as_bytes());
        let offset = tar.file(&"n".repeat(150), b"x");
        assert_eq!(offset, 1024 + 512 + 512 + 512);
    }

    #[test]
    fn writes_sizes_beyond_octal_in_base_256() {
        let mut header = Header::ustar("big", 0);
        header.set_size(1 << 33);
        assert_eq!(
            header.block[field::SIZE],
            [0x80, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0]
        );
    }
}
