//! Brace expansion: `a-{000..999}.tar`, `{train,val}`, nested as in a shell.

use super::url::shown;
use crate::error::{Error, ErrorKind, Result};

/// Names that one pattern may stand for, at most: 10 PB in shards of 1 GB, and a misspelt range is found out.
const MAX_NAMES: usize = 10_000_000;

/// Everything that `pattern` stands for, in the order in which it is written. What is no valid brace stays as it is.
///
/// # Errors
///
/// `LimitReached` where that is more than ten million names.
pub(super) fn expand(pattern: &str) -> Result<Vec<String>> {
    let Some((before, choices, after)) = first_braces(pattern)? else {
        return Ok(vec![pattern.to_owned()]);
    };
    let mut middles = Vec::new();
    for choice in choices {
        middles.extend(expand(&choice)?);
    }
    let ends = expand(after)?;
    if middles.len().saturating_mul(ends.len()) > MAX_NAMES {
        return Err(too_many(pattern));
    }
    let mut all = Vec::with_capacity(middles.len() * ends.len());
    for middle in &middles {
        for end in &ends {
            all.push(format!("{before}{middle}{end}"));
        }
    }
    Ok(all)
}

fn too_many(pattern: &str) -> Error {
    let why = format!("it stands for more than {MAX_NAMES} names");
    Error::new(ErrorKind::LimitReached, "expand", shown(pattern), why).with_help("check the braces")
}

type Parts<'a> = (&'a str, Vec<String>, &'a str);

/// The first valid brace expression: what stands before it, its choices, what stands after it.
fn first_braces(pattern: &str) -> Result<Option<Parts<'_>>> {
    for (open, _) in pattern.match_indices('{') {
        let Some(len) = closing(&pattern[open..]) else {
            continue;
        };
        let inner = &pattern[open + 1..open + len];
        let choices = match range(inner, pattern)? {
            Some(range) => range,
            None => list(inner),
        };
        if !choices.is_empty() {
            return Ok(Some((
                &pattern[..open],
                choices,
                &pattern[open + len + 1..],
            )));
        }
    }
    Ok(None)
}

/// Where the brace that opens `text` closes.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, character) in text.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// `a,b{1,2},c` at its outer commas; empty where there is none.
fn list(inner: &str) -> Vec<String> {
    let mut choices = vec![String::new()];
    let mut depth = 0_usize;
    for character in inner.chars() {
        match character {
            ',' if depth == 0 => {
                choices.push(String::new());
                continue;
            }
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if let Some(last) = choices.last_mut() {
            last.push(character);
        }
    }
    if choices.len() < 2 {
        Vec::new()
    } else {
        choices
    }
}

/// `first..last` or `first..last..step`, up or down, with leading zeros kept; none where it is no range.
fn range(inner: &str, pattern: &str) -> Result<Option<Vec<String>>> {
    let parts: Vec<&str> = inner.split("..").collect();
    let (first, last, step) = match parts.as_slice() {
        [first, last] => (*first, *last, "1"),
        [first, last, step] => (*first, *last, *step),
        _ => return Ok(None),
    };
    let number = |text: &str| {
        let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u64>().ok().filter(|_| is_digits)
    };
    let (Some(from), Some(to), Some(step)) = (number(first), number(last), number(step)) else {
        return Ok(None);
    };
    let step = step.max(1);
    if from.abs_diff(to) / step >= MAX_NAMES as u64 {
        return Err(too_many(pattern));
    }
    let is_padded = [first, last]
        .iter()
        .any(|text| text.len() > 1 && text.starts_with('0'));
    let width = if is_padded {
        first.len().max(last.len())
    } else {
        0
    };
    let count = from.abs_diff(to) / step;
    let at = |index: u64| {
        if from <= to {
            from + index * step
        } else {
            from - index * step
        }
    };
    Ok(Some(
        (0..=count)
            .map(|index| format!("{:0width$}", at(index)))
            .collect(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(pattern: &str) -> String {
        expand(pattern).unwrap().join(" ")
    }

    #[test]
    fn expands_as_a_shell_does() {
        assert_eq!(
            expanded("a-{008..011}.tar"),
            "a-008.tar a-009.tar a-010.tar a-011.tar"
        );
        assert_eq!(expanded("{3..1}"), "3 2 1");
        assert_eq!(expanded("{0..9..4}"), "0 4 8");
        assert_eq!(expanded("{9..00..4}"), "09 05 01");
        assert_eq!(expanded("{a,b}{1..2}"), "a1 a2 b1 b2");
        assert_eq!(expanded("x{a,b{1,2},}y"), "xay xb1y xb2y xy");
        assert_eq!(
            expanded("{train-{0..1},val}/s"),
            "train-0/s train-1/s val/s"
        );
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
            "a{b",
            "{..}",
            "{1..2..3..4}",
        ] {
            assert_eq!(expanded(pattern), pattern);
        }
        assert_eq!(expanded("{x{1,2}"), "{x1 {x2");
        assert_eq!(expanded("{x{1,2}}"), "{x1} {x2}");
    }

    #[test]
    fn too_many_names_are_refused_before_they_are_made() {
        for pattern in [
            "{0..18446744073709551615}",
            "{0..99999}{0..99999}",
            "{0..9999}{0..9999}{0..9999}{0..9999}",
        ] {
            assert_eq!(
                expand(pattern).unwrap_err().kind(),
                ErrorKind::LimitReached,
                "{pattern}"
            );
        }
    }
}
