//! JSON, checked to its end without being parsed: what Python's `json.loads` reads, and nothing else.
//!
//! No parser of ours takes what that one takes beyond the standard (NaN and infinities, UTF-16 and UTF-32, surrogates
//! without a partner), and a sample that one reads must not be refused here, nor the other way round: what is found out
//! only after collation leaves its batch short.

use std::borrow::Cow;

use super::broken;
use crate::error::{Error, ErrorKind, Result};

const WHAT: &str = "the JSON";

/// The deepest nesting taken. Python gives up at 1000 calls within each other (`sys.getrecursionlimit()`), those of the
/// program that reads included; RFC 8259 leaves the limit to each reader.
const DEPTH: usize = 900;

/// The most digits of a whole number: `sys.int_info.default_max_str_digits` of Python.
const DIGITS: usize = 4300;

/// Says whether `bytes` are one value in JSON, with white space around it.
///
/// # Errors
///
/// `Corrupt`, with the place in bytes, where they are not; `LimitReached` for nesting of more than 900 levels and for whole
/// numbers of more than 4300 digits.
pub(super) fn check(bytes: &[u8]) -> Result<()> {
    let encoding = Encoding::of(bytes);
    let text = encoding.units(bytes)?;
    let mut scan = Scan {
        text: &text,
        at: 0,
        open: Vec::new(),
    };
    scan.document().map_err(|bad| {
        let at = encoding.start + scan.at * encoding.width;
        let (kind, why) = match bad {
            Bad::Empty => return broken(ErrorKind::Corrupt, WHAT, "it is empty"),
            Bad::Cut => (ErrorKind::Corrupt, "it ends too early".to_owned()),
            Bad::Text(why) => (ErrorKind::Corrupt, why.to_owned()),
            Bad::Begin(first) => {
                let first = char::from(first);
                (
                    ErrorKind::Corrupt,
                    format!("no value begins with {first:?}"),
                )
            }
            Bad::Deep => (
                ErrorKind::LimitReached,
                format!("it is nested more than {DEPTH} levels deep"),
            ),
            Bad::Long => (
                ErrorKind::LimitReached,
                format!("a whole number has more than {DIGITS} digits"),
            ),
        };
        broken(kind, WHAT, format!("{why}, at byte {at}"))
    })
}

/// How the text is written, told as Python tells it: from a mark, or from where the zeros are.
struct Encoding {
    /// Bytes of a unit.
    width: usize,
    is_big_endian: bool,
    /// Bytes of the mark.
    start: usize,
}

impl Encoding {
    fn of(bytes: &[u8]) -> Self {
        let (width, is_big_endian, start) = match bytes {
            [0xff, 0xfe, 0, 0, ..] => (4, false, 4),
            [0, 0, 0xfe, 0xff, ..] => (4, true, 4),
            [0xff, 0xfe, ..] => (2, false, 2),
            [0xfe, 0xff, ..] => (2, true, 2),
            [0xef, 0xbb, 0xbf, ..] => (1, false, 3),
            [0, 0, _, _, ..] => (4, true, 0),
            [0, _, _, _, ..] | [0, _] => (2, true, 0),
            [_, 0, 0, 0, ..] => (4, false, 0),
            [_, 0, _, _, ..] | [_, 0] => (2, false, 0),
            _ => (1, false, 0),
        };
        Self {
            width,
            is_big_endian,
            start,
        }
    }

    /// One byte for each unit: itself where it is ASCII, else some byte that is none. Text in UTF-8 stays as it is.
    fn units<'a>(&self, bytes: &'a [u8]) -> Result<Cow<'a, [u8]>> {
        let text = bytes.get(self.start..).unwrap_or_default();
        if self.width == 1 {
            check_utf8(text, self.start)?;
            return Ok(Cow::Borrowed(text));
        }
        let units = text.chunks_exact(self.width);
        if !units.remainder().is_empty() {
            return Err(not_text(
                self.width * 8,
                bytes.len() - units.remainder().len(),
            ));
        }
        let number = |unit: &[u8]| {
            let step = |number: u32, byte: &u8| number << 8 | u32::from(*byte);
            if self.is_big_endian {
                unit.iter().fold(0, step)
            } else {
                unit.iter().rev().fold(0, step)
            }
        };
        let units = units.enumerate().map(|(place, unit)| match number(unit) {
            ascii @ 0..0x80 => Ok(ascii.to_le_bytes()[0]),
            0x80..=0x10_ffff => Ok(0x80),
            _ => Err(not_text(32, self.start + place * self.width)),
        });
        units.collect::<Result<Vec<u8>>>().map(Cow::Owned)
    }
}

fn not_text(bits: usize, at: usize) -> Error {
    let why = format!("it is not UTF-{bits} at byte {at}");
    broken(ErrorKind::Corrupt, WHAT, why)
}

/// UTF-8, or surrogates written like any other character, which Python passes.
fn check_utf8(mut text: &[u8], mut at: usize) -> Result<()> {
    while let Err(error) = std::str::from_utf8(text) {
        at += error.valid_up_to();
        text = match text.get(error.valid_up_to()..) {
            Some([0xed, 0xa0..=0xbf, 0x80..=0xbf, rest @ ..]) => rest,
            _ => return Err(not_text(8, at).with_source(error)),
        };
        at += 3;
    }
    Ok(())
}

/// What is wrong with a text, at the place where its scan stands.
enum Bad {
    Empty,
    Cut,
    Text(&'static str),
    Begin(u8),
    Deep,
    Long,
}

/// What the innermost open bracket is.
#[derive(Clone, Copy)]
enum Bracket {
    List,
    Object,
}

/// One walk over a text. It never goes back, and it keeps its own stack: no nesting can exhaust the thread's.
struct Scan<'a> {
    text: &'a [u8],
    at: usize,
    open: Vec<Bracket>,
}

impl Scan<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_while(&mut self, is_passed: impl Fn(u8) -> bool) {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let len = rest.iter().position(|&byte| !is_passed(byte));
        self.at += len.unwrap_or(rest.len());
    }

    fn skip_space(&mut self) {
        self.skip_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
    }

    fn document(&mut self) -> Result<(), Bad> {
        self.skip_space();
        if self.peek().is_none() {
            return Err(Bad::Empty);
        }
        loop {
            // A value is due.
            self.skip_space();
            match self.peek().ok_or(Bad::Cut)? {
                b'[' if !self.enter(Bracket::List, b']')? => continue,
                b'{' if !self.enter(Bracket::Object, b'}')? => {
                    self.key()?;
                    continue;
                }
                b'[' | b'{' => {}
                b'"' => self.string()?,
                b'-' | b'0'..=b'9' => self.number()?,
                first => self.word(first)?,
            }
            if self.leave()? {
                return Ok(());
            }
        }
    }

    /// Goes behind an opening bracket. Says whether the closing one follows.
    fn enter(&mut self, bracket: Bracket, closing: u8) -> Result<bool, Bad> {
        if self.open.len() == DEPTH {
            return Err(Bad::Deep);
        }
        self.open.push(bracket);
        self.at += 1;
        self.skip_space();
        Ok(self.peek() == Some(closing))
    }

    /// Goes from the end of a value to where the next one is due. Says whether there is none.
    fn leave(&mut self) -> Result<bool, Bad> {
        loop {
            self.skip_space();
            match (self.open.last(), self.peek()) {
                (None, None) => return Ok(true),
                (None, Some(_)) => return Err(Bad::Text("there is more behind its value")),
                (Some(_), None) => return Err(Bad::Cut),
                (Some(Bracket::List), Some(b',')) => {
                    self.at += 1;
                    return Ok(false);
                }
                (Some(Bracket::Object), Some(b',')) => {
                    self.at += 1;
                    self.skip_space();
                    self.key()?;
                    return Ok(false);
                }
                (Some(Bracket::List), Some(b']')) | (Some(Bracket::Object), Some(b'}')) => {
                    self.at += 1;
                    self.open.pop();
                }
                (Some(Bracket::List), Some(_)) => {
                    return Err(Bad::Text("neither , nor ] follows a value"));
                }
                (Some(Bracket::Object), Some(_)) => {
                    return Err(Bad::Text("neither , nor } follows a value"));
                }
            }
        }
    }

    /// A key and its colon.
    fn key(&mut self) -> Result<(), Bad> {
        match self.peek() {
            Some(b'"') => self.string()?,
            Some(_) => return Err(Bad::Text("a key is no string")),
            None => return Err(Bad::Cut),
        }
        self.skip_space();
        match self.peek() {
            Some(b':') => self.at += 1,
            Some(_) => return Err(Bad::Text("no : follows a key")),
            None => return Err(Bad::Cut),
        }
        Ok(())
    }

    fn string(&mut self) -> Result<(), Bad> {
        self.at += 1;
        loop {
            self.skip_while(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1f));
            match self.text.get(self.at..).unwrap_or_default() {
                [] | [b'\\'] => return Err(Bad::Cut),
                [b'"', ..] => {
                    self.at += 1;
                    return Ok(());
                }
                [
                    b'\\',
                    b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't',
                    ..,
                ] => self.at += 2,
                [b'\\', b'u', a, b, c, d, ..]
                    if [a, b, c, d].iter().all(|digit| digit.is_ascii_hexdigit()) =>
                {
                    self.at += 6;
                }
                [b'\\', ..] => return Err(Bad::Text("a string has an unknown escape")),
                _ => return Err(Bad::Text("a string has a control character")),
            }
        }
    }

    /// A number. Whatever is not part of one any more is left for what comes next to complain about.
    fn number(&mut self) -> Result<(), Bad> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        if rest.starts_with(b"-Infinity") {
            self.at += b"-Infinity".len();
            return Ok(());
        }
        let start = self.at;
        let begin = self.at + usize::from(rest.starts_with(b"-"));
        self.at = begin;
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.skip_while(|byte| byte.is_ascii_digit()),
            Some(_) => return Err(Bad::Text("no digit follows a -")),
            None => return Err(Bad::Cut),
        }
        let digits = self.at - begin;
        let is_fraction = self.digits_behind(&[b"."]);
        let is_power = self.digits_behind(&[b"e+", b"e-", b"e", b"E+", b"E-", b"E"]);
        if !is_fraction && !is_power && digits > DIGITS {
            self.at = start;
            return Err(Bad::Long);
        }
        Ok(())
    }

    /// Passes over the first of `signs` that stands here with digits behind it.
    fn digits_behind(&mut self, signs: &[&[u8]]) -> bool {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let is_here = |sign: &&&[u8]| {
            let behind = rest.strip_prefix(**sign).unwrap_or_default();
            behind.first().is_some_and(u8::is_ascii_digit)
        };
        let Some(sign) = signs.iter().find(is_here) else {
            return false;
        };
        self.at += sign.len();
        self.skip_while(|byte| byte.is_ascii_digit());
        true
    }

    fn word(&mut self, first: u8) -> Result<(), Bad> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let words: [&[u8]; 5] = [b"true", b"false", b"null", b"NaN", b"Infinity"];
        let word = words.iter().find(|word| rest.starts_with(word));
        self.at += word.ok_or(Bad::Begin(first))?.len();
        Ok(())
    }
}
