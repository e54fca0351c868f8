//! The index of one shard as DALI has it: a line of version and count, then one line per sample, which holds for each
//! member its extension, where its content begins, its length and (v1.2) its name, all parted by blanks.

use std::fmt::Write as _;

use super::offsets::{BLOCK, Offsets, padded};
use super::{check_len, corrupt};
use crate::error::{Error, ErrorKind, Result};
use crate::sample::KeyRule;
use crate::sample::names::{self, Named};

const DOING: &str = "read the index";

impl Offsets {
    /// Reads an index of DALI's, v1.1 or v1.2, from the file called `name`.
    ///
    /// Lines whose members are no part of any sample (`__index__.json`, hidden files), which DALI's own tool writes, are
    /// passed over where v1.2 tells their names.
    ///
    /// # Errors
    ///
    /// `Unsupported` for another version, `Truncated` where lines are missing, `Corrupt` for anything else that cannot be,
    /// `LimitReached` beyond [`super::MOST_INDEX_BYTES`].
    pub fn read_dali(name: &str, bytes: &[u8]) -> Result<Self> {
        check_len(bytes, DOING, name)?;
        let mut lines = bytes.split(|&byte| byte == b'\n');
        let (has_names, count) = first_line(name, lines.next().unwrap_or_default())?;
        let mut bounds = vec![0];
        let mut end = 0;
        for number in 1..=count {
            let Some(line) = lines.next() else {
                let why = format!("it ends after {} of {count} samples", number - 1);
                return Err(Error::new(ErrorKind::Truncated, DOING, name, why)
                    .with_help("index the shards again: onecopy index"));
            };
            let is_sample = sample(line, has_names, &mut end).map_err(|why| {
                // The first line has number 1 for people.
                corrupt(DOING, name, format!("line {}: {why}", number + 1))
            })?;
            if is_sample {
                bounds.push(end);
            }
        }
        if lines.any(|line| !line.trim_ascii().is_empty()) {
            let why = format!("more lines follow its {count} samples");
            return Err(corrupt(DOING, name, why));
        }
        Self::new(bounds)
            .map_err(|place| corrupt(DOING, name, format!("sample {place} is out of order")))
    }
}

/// Whether lines have names, and how many samples there are.
fn first_line(name: &str, line: &[u8]) -> Result<(bool, u64)> {
    let mut words = words(line);
    let has_names = match words.next() {
        Some(b"v1.2") => true,
        Some(b"v1.1") => false,
        Some(other) if other.first() == Some(&b'v') => {
            let version: String = other.escape_ascii().map(char::from).take(16).collect();
            let why = format!("it is of version {version}, where v1.1 and v1.2 are known");
            return Err(Error::new(ErrorKind::Unsupported, DOING, name, why)
                .with_help("index the shards again: onecopy index"));
        }
        _ => {
            return Err(corrupt(
                DOING,
                name,
                "line 1: it is no index: it begins with no version",
            ));
        }
    };
    match (words.next().and_then(number), words.next()) {
        (Some(count), None) => Ok((has_names, count)),
        _ => Err(corrupt(
            DOING,
            name,
            "line 1: no count of samples follows the version",
        )),
    }
}

/// Reads the line of one sample, which must lie behind `end`, and moves `end` behind it. Says whether it is a sample.
fn sample(line: &[u8], has_names: bool, end: &mut u64) -> Result<bool, &'static str> {
    let mut words = words(line);
    let mut members = 0;
    let mut is_sample = !has_names;
    while words.next().is_some() {
        let (Some(offset), Some(size)) =
            (words.next().and_then(number), words.next().and_then(number))
        else {
            return Err("an offset and a size must follow each extension");
        };
        if has_names {
            let member = words.next().ok_or("a name must follow each size")?;
            let member = names::text(member);
            is_sample |= matches!(
                names::split(&member, KeyRule::FirstDot),
                Named::Field { .. }
            );
        }
        // A header lies before each content.
        if offset % BLOCK != 0 || offset.checked_sub(BLOCK).is_none_or(|header| header < *end) {
            return Err(
                "an offset is no multiple of 512, or does not lie behind the member before",
            );
        }
        let padded = padded(size).and_then(|padded| offset.checked_add(padded));
        *end = padded.ok_or("a size is larger than any tar")?;
        members += 1;
    }
    if members == 0 {
        return Err("the sample has no members");
    }
    Ok(is_sample)
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let words = line.split(u8::is_ascii_whitespace);
    words.filter(|word| !word.is_empty())
}

fn number(word: &[u8]) -> Option<u64> {
    // What `parse` would take beside digits is a sign.
    let text = std::str::from_utf8(word).ok()?;
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain)
}

/// An index of DALI's, v1.2, as it grows.
#[derive(Debug, Default)]
pub struct IndexText {
    lines: String,
    samples: u64,
    is_in_line: bool,
}

impl IndexText {
    /// Adds a member of the current sample. `name` is its name in the tar, `field` what of it follows the key.
    ///
    /// Blanks part the columns, so those within a name are written as `%20`, and a field without a name as a dot.
    pub fn member(&mut self, field: &str, name: &str, offset: u64, size: u64) {
        if self.is_in_line {
            self.lines.push(' ');
        }
        self.is_in_line = true;
        self.word(if field.is_empty() { "." } else { field });
        let _infallible = write!(self.lines, " {offset} {size} ");
        self.word(name);
    }

    fn word(&mut self, text: &str) {
        for symbol in text.chars() {
            if symbol.is_whitespace() || symbol.is_control() {
                for byte in symbol.encode_utf8(&mut [0; 4]).bytes() {
                    let _infallible = write!(self.lines, "%{byte:02X}");
                }
            } else {
                self.lines.push(symbol);
            }
        }
    }

    /// Ends the current sample.
    pub fn end_sample(&mut self) {
        self.lines.push('\n');
        self.samples += 1;
        self.is_in_line = false;
    }

    /// The whole text.
    #[must_use]
    pub fn finish(mut self) -> String {
        let first = format!("v1.2 {}\n", self.samples);
        self.lines.insert_str(0, &first);
        self.lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(text: &str) -> Vec<u64> {
        let offsets = Offsets::read_dali("t.idx", text.as_bytes()).unwrap();
        let starts = (0..offsets.len()).filter_map(|place| offsets.start(place));
        starts.chain([offsets.end()]).collect()
    }

    #[test]
    fn samples_begin_where_the_one_before_ends() {
        // As wds2idx writes them: cls of one byte, then a jpg.
        let text =
            "v1.2 2\ncls 512 1 a.cls jpg 1536 600 a.jpg\ncls 3072 1 b.cls jpg 4096 512 b.jpg\n";
        assert_eq!(bounds(text), [0, 2560, 4608]);
        let text = "v1.1 2\r\ncls 512 1 jpg 1536 600\r\ncls 3072 0";
        assert_eq!(bounds(text), [0, 2560, 3072]);
        assert_eq!(bounds("v1.2 0\n"), [0]);
    }

    #[test]
    fn what_is_no_sample_lies_before_the_next() {
        let text = "v1.2 3\njson 512 9 __index__.json\njpg 1536 5 a.jpg\nREADME 2560 5 README\n";
        assert_eq!(bounds(text), [0, 2048]);
    }

    #[test]
    fn what_was_written_is_read() {
        let mut text = IndexText::default();
        text.member("jpg", "d/a b\u{a0}.jpg", 512, 5);
        text.member("", "d/a.", 1536, 0);
        text.end_sample();
        text.member("a.cls", "b.a.cls", 2048, 1);
        text.end_sample();
        let text = text.finish();
        assert_eq!(
            text,
            "v1.2 2\njpg 512 5 d/a%20b%C2%A0.jpg . 1536 0 d/a.\na.cls 2048 1 b.a.cls\n"
        );
        assert_eq!(bounds(&text), [0, 1536, 2560]);
    }

    #[test]
    fn what_cannot_be_is_told_by_its_line() {
        for (text, kind, told) in [
            ("", ErrorKind::Corrupt, "line 1"),
            ("{}", ErrorKind::Corrupt, "line 1"),
            ("v1.0 1\njpg 512 5", ErrorKind::Unsupported, "version v1.0"),
            ("v1.2\n", ErrorKind::Corrupt, "no count"),
            ("v1.2 -1\n", ErrorKind::Corrupt, "no count"),
            ("v1.2 +1\n", ErrorKind::Corrupt, "no count"),
            (
                "v1.2 2\njpg 512 5 a.jpg\n",
                ErrorKind::Corrupt,
                "line 3: the sample has no",
            ),
            (
                "v1.2 2\njpg 512 5 a.jpg",
                ErrorKind::Truncated,
                "1 of 2 samples",
            ),
            ("v1.2 18446744073709551615\n", ErrorKind::Corrupt, "line 2"),
            (
                "v1.2 1\njpg 512 5 a.jpg\nx",
                ErrorKind::Corrupt,
                "more lines",
            ),
            ("v1.2 1\njpg 512 5\n", ErrorKind::Corrupt, "line 2: a name"),
            (
                "v1.1 1\njpg 512\n",
                ErrorKind::Corrupt,
                "line 2: an offset and",
            ),
            ("v1.1 1\njpg 600 5\n", ErrorKind::Corrupt, "multiple of 512"),
            ("v1.1 1\njpg 0 5\n", ErrorKind::Corrupt, "behind the member"),
            (
                "v1.1 2\na 512 600\nb 1536 5\n",
                ErrorKind::Corrupt,
                "line 3",
            ),
            (
                "v1.1 1\njpg 512 18446744073709551615\n",
                ErrorKind::Corrupt,
                "larger than",
            ),
            (
                "v1.1 1\njpg 18446744073709551104 513\n",
                ErrorKind::Corrupt,
                "larger than",
            ),
        ] {
            let error = Offsets::read_dali("t.idx", text.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), kind, "{text:?}: {error}");
            assert!(error.to_string().contains(told), "{text:?}: {error}");
        }
    }
}
