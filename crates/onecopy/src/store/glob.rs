//! Globs over whole keys: `*` and `?` stay within a folder, `**` crosses folders, `[a-z]` is one of its characters.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use globset::{GlobBuilder, GlobMatcher};

use super::shown::shown;
use super::{Key, escape};
use crate::error::{Error, ErrorKind, Result};

/// A pattern over whole keys: `*` and `?` stay within a folder, `**` goes over folders, `[a-z]` is one of a set.
#[derive(Debug, Clone)]
pub struct Glob {
    matcher: GlobMatcher,
    /// As it is written: an object that bears this very name is meant, too.
    written: Key,
    /// What every match begins with.
    prefix: Key,
    /// The folders before the first wildcard, where the pattern is no text: the matcher knows what comes behind.
    base: Key,
}

impl Glob {
    /// The pattern `written`, which came with `name`.
    ///
    /// # Errors
    ///
    /// `InvalidInput` where it cannot be read.
    pub fn new(written: &Key, name: &str) -> Result<Self> {
        let (base, rest) = split(written.as_bytes());
        let text = String::from_utf8_lossy(rest);
        let built = GlobBuilder::new(&in_globset_words(&text))
            .literal_separator(true)
            .backslash_escape(true)
            .build();
        let glob = built.map_err(|error| {
            Error::new(
                ErrorKind::InvalidInput,
                "read the pattern",
                shown(name),
                error.kind().to_string(),
            )
            .with_help("what is meant as it stands is written behind a backslash: \\[, \\*, \\?")
        })?;
        let prefix: String = escape::characters(&text)
            .take_while(|(_, character, is_escaped)| *is_escaped || !"*?[".contains(*character))
            .map(|(_, character, _)| character)
            .collect();
        Ok(Self {
            matcher: glob.compile_matcher(),
            written: written.clone(),
            prefix: Key::new([&base, prefix.as_bytes()].concat()),
            base: Key::new(base),
        })
    }

    /// What every match begins with.
    #[must_use]
    pub fn prefix(&self) -> &Key {
        &self.prefix
    }

    /// Whether `key` matches, or is the very pattern.
    #[must_use]
    pub fn is_match(&self, key: &Key) -> bool {
        let behind = key.as_bytes().strip_prefix(self.base.as_bytes());
        *key == self.written
            || behind.is_some_and(|rest| self.matcher.is_match(OsStr::from_bytes(rest)))
    }
}

/// The folders before the first wildcard, as they are meant, and the rest. Text stays whole: only what is none needs to be
/// kept from the matcher, which reads text.
fn split(written: &[u8]) -> (Vec<u8>, &[u8]) {
    let (mut base, mut name, mut rest) = (Vec::new(), Vec::new(), written);
    if std::str::from_utf8(written).is_ok() {
        return (base, written);
    }
    let mut at = 0;
    while let Some(&byte) = written.get(at).filter(|byte| !b"*?[".contains(byte)) {
        let next = written.get(at + 1).copied();
        let escaped =
            next.filter(|next| byte == b'\\' && escape::SPECIAL.as_bytes().contains(next));
        name.push(escaped.unwrap_or(byte));
        at += 1 + usize::from(escaped.is_some());
        if byte == b'/' {
            base.append(&mut name);
            rest = &written[at..];
        }
    }
    (base, rest)
}

/// Braces are expanded by now, so what is left of them is meant as it stands; so is a backslash that escapes nothing.
fn in_globset_words(text: &str) -> String {
    let mut words = String::with_capacity(text.len());
    let mut characters = escape::characters(text);
    while let Some((_, character, is_escaped)) = characters.next() {
        match character {
            '[' if !is_escaped => words.push_str(&class(&mut characters)),
            '*' | '?' if !is_escaped => words.push(character),
            '*' | '?' | '[' | ']' | '{' | '}' | ',' | '\\' => words.extend(['\\', character]),
            _ => words.push(character),
        }
    }
    words
}

/// What follows a `[`, up to its `]`. There a backslash is none to globset, and a bracket is one of the characters where
/// it stands first.
fn class(characters: &mut impl Iterator<Item = (usize, char, bool)>) -> String {
    let (mut start, mut bracket, mut members) = ("[", "", String::new());
    let mut end = "";
    for (_, character, is_escaped) in characters {
        match character {
            '!' | '^'
                if !is_escaped && start == "[" && bracket.is_empty() && members.is_empty() =>
            {
                start = "[!";
            }
            ']' if !(is_escaped || bracket.is_empty() && members.is_empty()) => {
                end = "]";
                break;
            }
            ']' => bracket = "]",
            _ => members.push(character),
        }
    }
    [start, bracket, &members, end].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_before_the_first_wildcard_need_not_be_text() {
        let glob = Glob::new(&Key::new(*b"/\xfe\\*/d/a*.tar"), "name").unwrap();
        assert_eq!(glob.prefix(), &Key::new(*b"/\xfe*/d/a"));
        for (key, is_meant) in [
            (&b"/\xfe*/d/ab.tar"[..], true),
            (b"/\xfe*/d/a/b.tar", false),
            (b"/\xff*/d/ab.tar", false),
            (b"/\xfe\\*/d/a*.tar", true),
        ] {
            assert_eq!(glob.is_match(&Key::new(key)), is_meant, "{key:?}");
        }
    }

    fn glob(pattern: &str) -> Result<Glob> {
        Glob::new(&Key::new(pattern), pattern)
    }

    #[test]
    fn globs_stay_within_a_folder_unless_told_otherwise() {
        for (pattern, key, is_match) in [
            ("a/*.tar", "a/b.tar", true),
            ("a/*.tar", "a/b/c.tar", false),
            ("a/**/*.tar", "a/b/c.tar", true),
            ("a/b?[0-9].tar", "a/bx7.tar", true),
            ("a/[!0-9].tar", "a/x.tar", true),
            ("a/[^0-9].tar", "a/7.tar", false),
            ("a/[x].tar", "a/[x].tar", true), // the very name
            ("a/{x*", "a/{xy", true),
            ("a/{x,y}*", "a/{x,y}z", true),
            ("a/{x,y}*", "a/xz", false),
            (r"a/\*-*", "a/*-1", true),
            (r"a/\*-*", "a/b-1", false),
            (r"a/\[x\]?", "a/[x]y", true),
            (r"a\b*", r"a\bc", true),
            (r"a\b*", "abc", false),
            (r"a\\*", r"a\x", true),
            (r"[\]x]*", "]a", true),
            (r"[]x]*", "]a", true),
            (r"[!\]x]*", "]a", false),
            (r"[\*{,]y", "{y", true),
            (r"[\*{,]y", "xy", false),
        ] {
            let found = glob(pattern).unwrap().is_match(&Key::new(key));
            assert_eq!(found, is_match, "{pattern} {key}");
        }
    }

    #[test]
    fn what_every_match_begins_with_is_listed() {
        for (pattern, prefix) in [
            ("a/b-[0-9]*.tar", "a/b-"),
            ("*", ""),
            (r"a/\*b\c?d", r"a/*b\c"),
        ] {
            assert_eq!(
                glob(pattern).unwrap().prefix().as_bytes(),
                prefix.as_bytes()
            );
        }
    }

    #[test]
    fn a_class_without_an_end_is_refused_with_the_cure() {
        for pattern in ["a/[b", "[", r"[\]", "[]", "[z-a]"] {
            let error = glob(pattern).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{pattern}");
            assert!(error.help().unwrap().contains(r"\["), "{pattern}");
        }
    }
}
