//! Brace expansion as bash and WebDataset's `braceexpand` do it: `a-{000..999}.tar`, `{train,val}`, `{a..e}`, steps, nested.
//!
//! A pattern is read into a tree once, in time linear to its length; names are then made one at a time, so that a
//! misspelt range costs no memory. Escapes are respected and stay as they are: `escape.rs` takes them away.

use std::collections::BTreeMap;

use super::escape;
use super::shown::shown;
use crate::error::{Error, ErrorKind, Result};

/// Braces within braces, at most: nobody nests more than a few, and reading them takes stack.
const MAX_DEPTH: usize = 32;

/// The longest range: three numbers. What is longer is none, and is not looked at.
const MAX_RANGE_BYTES: usize = 100;

/// Letters in the order in which `braceexpand` counts, so that `{A..z}` has letters only.
const LETTERS: &[u8; 52] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Everything that a pattern stands for, in the order in which it is written.
#[derive(Debug)]
pub(super) struct Names(Sequence);

/// Parts that stand next to each other: each of the one goes with each of the next.
#[derive(Debug)]
struct Sequence {
    parts: Vec<Part>,
    /// How many names it stands for; `u64::MAX` where that is more.
    count: u64,
}

#[derive(Debug)]
enum Part {
    Text(String),
    /// What stands between commas, each with the number of names up to its end.
    Choice(Vec<(Sequence, u64)>),
    Range(Range),
}

/// `first..last` or `first..last..step`, up or down.
#[derive(Debug, PartialEq, Eq)]
struct Range {
    first: i128,
    step: i128,
    count: u64,
    /// Digits with the leading zeros that an end has, the sign included; 0 without.
    width: usize,
    has_letters: bool,
}

impl Names {
    /// Reads `pattern`. What is no valid brace stays as it is.
    ///
    /// # Errors
    ///
    /// `LimitReached` where braces are nested too deep, or a number is too large to be meant.
    pub(super) fn read(pattern: &str) -> Result<Self> {
        let reader = Reader {
            pattern,
            braces: braces(pattern),
        };
        reader.sequence(0, pattern.len(), 0).map(Self)
    }

    /// How many they are; `u64::MAX` where they are more.
    pub(super) fn count(&self) -> u64 {
        self.0.count
    }

    /// The names, made one at a time.
    pub(super) fn iter(&self) -> impl Iterator<Item = String> {
        (0..self.count()).map(|index| {
            let mut name = String::new();
            self.0.write(index, &mut name);
            name
        })
    }
}

impl Sequence {
    fn new(parts: Vec<Part>) -> Self {
        let count = parts.iter().map(Part::count).fold(1, u64::saturating_mul);
        Self { parts, count }
    }

    /// Appends the name number `index`: the last part counts fastest.
    fn write(&self, mut index: u64, name: &mut String) {
        let mut radix = self.count;
        for part in &self.parts {
            radix /= part.count();
            part.write(index / radix, name);
            index %= radix;
        }
    }
}

impl Part {
    /// At least 1.
    fn count(&self) -> u64 {
        match self {
            Self::Text(_) => 1,
            Self::Choice(options) => options.last().map_or(1, |(_, end)| *end),
            Self::Range(range) => range.count,
        }
    }

    fn write(&self, index: u64, name: &mut String) {
        match self {
            Self::Text(text) => name.push_str(text),
            Self::Choice(options) => {
                let at = options.partition_point(|(_, end)| *end <= index);
                if let Some((option, end)) = options.get(at) {
                    option.write(index - (end - option.count), name);
                }
            }
            Self::Range(range) => range.write(index, name),
        }
    }
}

impl Range {
    /// None where `inner` is no range.
    ///
    /// # Errors
    ///
    /// The word that is a number too large for this.
    fn read(inner: &str) -> Result<Option<Self>, &str> {
        let parts: Vec<&str> = inner.split("..").collect();
        let (first, last, step) = match parts.as_slice() {
            [first, last] => (*first, *last, "1"),
            [first, last, step] => (*first, *last, *step),
            _ => return Ok(None),
        };
        let Some(step) = number(step)? else {
            return Ok(None);
        };
        let letters = letter(first).zip(letter(last));
        let (from, to) = match (letters, number(first)?, number(last)?) {
            (Some(letters), ..) => letters,
            (None, Some(first), Some(last)) => (first, last),
            _ => return Ok(None),
        };
        let is_padded = |text: &str| {
            let digits = text.trim_start_matches(['-', '+']);
            digits.len() > 1 && digits.starts_with('0')
        };
        let width = if is_padded(first) || is_padded(last) {
            first.len().max(last.len())
        } else {
            0
        };
        let step = step.abs().max(1);
        let count = (from.abs_diff(to) / step.unsigned_abs()).saturating_add(1);
        Ok(Some(Self {
            first: from,
            step: if from <= to { step } else { -step },
            count: u64::try_from(count).unwrap_or(u64::MAX),
            width,
            has_letters: letters.is_some(),
        }))
    }

    fn write(&self, index: u64, name: &mut String) {
        let value = self.first + self.step * i128::from(index);
        if !self.has_letters {
            name.push_str(&format!("{value:0width$}", width = self.width));
        } else if let Some(letter) = usize::try_from(value).ok().and_then(|at| LETTERS.get(at)) {
            name.push(char::from(*letter));
        }
    }
}

/// A whole number, with a sign or without; none where `text` is none.
fn number(text: &str) -> Result<Option<i128>, &str> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(None);
    }
    // Up to 10^18, so that no sum or product of two of them overflows.
    match text.parse::<i64>() {
        Ok(value) if value.unsigned_abs() <= 10_u64.pow(18) => Ok(Some(value.into())),
        _ => Err(text),
    }
}

fn letter(text: &str) -> Option<i128> {
    let [letter] = text.as_bytes() else {
        return None;
    };
    let at = LETTERS.iter().position(|known| known == letter)?;
    i128::try_from(at).ok()
}

/// A brace that closes.
#[derive(Debug, Default)]
struct Brace {
    close: usize,
    /// Where the commas are that no inner brace holds.
    commas: Vec<usize>,
}

/// The braces of `pattern` that close, by where they open.
fn braces(pattern: &str) -> BTreeMap<usize, Brace> {
    let mut closed = BTreeMap::new();
    let mut open: Vec<(usize, Brace)> = Vec::new();
    for (at, character, is_escaped) in escape::characters(pattern) {
        match character {
            '{' if !is_escaped => open.push((at, Brace::default())),
            ',' if !is_escaped => {
                if let Some((_, brace)) = open.last_mut() {
                    brace.commas.push(at);
                }
            }
            '}' if !is_escaped => {
                if let Some((from, brace)) = open.pop() {
                    closed.insert(from, Brace { close: at, ..brace });
                }
            }
            _ => {}
        }
    }
    closed
}

struct Reader<'a> {
    pattern: &'a str,
    braces: BTreeMap<usize, Brace>,
}

impl Reader<'_> {
    /// Reads the bytes `[start, end)`, between which every brace that closes was opened.
    fn sequence(&self, start: usize, end: usize, depth: usize) -> Result<Sequence> {
        if depth > MAX_DEPTH {
            let why = format!("its braces are nested more than {MAX_DEPTH} deep");
            return Err(refused(self.pattern, why));
        }
        let (mut parts, mut text_from) = (Vec::new(), start);
        for (&open, brace) in self.braces.range(start..end) {
            // What was read as a part already is passed over.
            if open < text_from {
                continue;
            }
            let Some(part) = self.part(open + 1, brace, depth)? else {
                continue;
            };
            parts.push(Part::Text(self.pattern[text_from..open].to_owned()));
            parts.push(part);
            text_from = brace.close + 1;
        }
        parts.push(Part::Text(self.pattern[text_from..end].to_owned()));
        Ok(Sequence::new(parts))
    }

    /// Reads what stands between two braces, from `start` on; none where that is neither a range nor a choice.
    fn part(&self, start: usize, brace: &Brace, depth: usize) -> Result<Option<Part>> {
        let end = brace.close;
        if end - start <= MAX_RANGE_BYTES {
            let range = Range::read(&self.pattern[start..end])
                .map_err(|word| refused(self.pattern, format!("the number {word} is too large")))?;
            if let Some(range) = range {
                return Ok(Some(Part::Range(range)));
            }
        }
        if brace.commas.is_empty() {
            return Ok(None);
        }
        let (mut options, mut from, mut count) = (Vec::new(), start, 0_u64);
        for &to in brace.commas.iter().chain([&end]) {
            let option = self.sequence(from, to, depth + 1)?;
            count = count.saturating_add(option.count);
            options.push((option, count));
            from = to + 1;
        }
        Ok(Some(Part::Choice(options)))
    }
}

fn refused(pattern: &str, why: String) -> Error {
    let pattern: String = shown(pattern).chars().take(200).collect();
    Error::new(ErrorKind::LimitReached, "expand", pattern, why)
        .with_help("check the braces; a brace that is meant as it stands is written \\{")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(pattern: &str) -> String {
        let names = Names::read(pattern).unwrap();
        names.iter().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn expands_as_bash_and_braceexpand_do() {
        for (pattern, names) in [
            (
                "a-{008..011}.tar",
                "a-008.tar a-009.tar a-010.tar a-011.tar",
            ),
            ("{3..1}", "3 2 1"),
            ("{5..5}", "5"),
            ("{0..9..4}", "0 4 8"),
            ("{0..9..0}", "0 1 2 3 4 5 6 7 8 9"),
            ("{9..00..4}", "09 05 01"),
            ("{01..10..2}", "01 03 05 07 09"),
            ("{10..1..-3}", "10 7 4 1"),
            ("{-2..2}", "-2 -1 0 1 2"),
            ("{-01..1}", "-01 000 001"),
            ("{a..e}", "a b c d e"),
            ("{e..a..2}", "e c a"),
            ("{Y..b}", "Y Z a b"),
            ("x{a,b}{1..2}y", "xa1y xa2y xb1y xb2y"),
            ("x{a,b{1,2},}y", "xay xb1y xb2y xy"),
            ("{train-{0..1},val}/s", "train-0/s train-1/s val/s"),
            ("{{a,b},{c,{d,e}}}", "a b c d e"),
            ("{a,b{1..2}{x,y}}z", "az b1xz b1yz b2xz b2yz"),
            ("{a..c}{1..0}", "a1 a0 b1 b0 c1 c0"),
            ("{,}x", "x x"),
            ("ü{ä,ö}ß", "üäß üöß"),
        ] {
            assert_eq!(expanded(pattern), names, "{pattern}");
        }
    }

    #[test]
    fn leaves_alone_what_is_no_brace_expression() {
        for pattern in [
            "",
            "a",
            "{",
            "}",
            "{}",
            "{a}",
            "{1..x}",
            "{a..bc}",
            "{ä..ö}",
            "{1..2..x}",
            "{-..1}",
            "a{b",
            "}{",
            "{..}",
            "{1..2..3..4}",
            r"\{a,b\}",
            r"\{a,b}",
            r"{a\,b}",
            r"\{1..3\}",
        ] {
            assert_eq!(expanded(pattern), pattern);
        }
        assert_eq!(expanded("{x{1,2}"), "{x1 {x2");
        assert_eq!(expanded("{x{1,2}}"), "{x1} {x2}");
        assert_eq!(expanded(r"{a\,b,c\}}"), r"a\,b c\}");
        assert_eq!(expanded(r"{a\\,b}"), r"a\\ b");
    }

    #[test]
    fn counts_before_any_name_is_made() {
        for (pattern, count) in [
            ("{0..999999}", 1_000_000),
            ("{0..9999999}", 10_000_000),
            ("{0..99999}{0..99999}", 10_000_000_000),
            ("{0..9999}{0..9999}{0..9999}{0..9999}{0..9999}", u64::MAX),
            ("{{0..9},{a..z},x}", 37),
            (
                "{-1000000000000000000..1000000000000000000}",
                2_000_000_000_000_000_001,
            ),
        ] {
            assert_eq!(Names::read(pattern).unwrap().count(), count, "{pattern}");
        }
    }

    #[test]
    fn what_is_too_deep_or_too_large_is_refused() {
        let deep = "{a,".repeat(100_000) + &"}".repeat(100_000);
        for (pattern, why) in [
            (deep.as_str(), "32 deep"),
            ("{0..18446744073709551615}", "18446744073709551615"),
            ("{0..1..9999999999999999999999}", "too large"),
        ] {
            let error = Names::read(pattern).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::LimitReached);
            assert!(error.to_string().contains(why), "{error}");
            assert!(error.to_string().len() < 400, "{error}");
        }
    }

    #[test]
    fn long_patterns_are_read_in_one_pass() {
        let open = "{".repeat(60_000);
        assert_eq!(Names::read(&open).unwrap().count(), 1);
        let nested = "{".repeat(30_000) + &"}".repeat(30_000);
        assert_eq!(expanded(&nested), nested);
        let list = format!("{{{}}}", ",".repeat(60_000));
        assert_eq!(Names::read(&list).unwrap().count(), 60_001);
    }
}
