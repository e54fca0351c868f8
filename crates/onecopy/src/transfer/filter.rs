//! `--include` and `--exclude`, with the meaning that they have in the AWS command.

use globset::{GlobBuilder, GlobMatcher};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::error::{Error, ErrorKind, Result};

/// Which relative keys are meant: all of them, but for what the rules say. Of the rules that match the last one counts.
#[derive(Debug, Clone, Default)]
pub struct Filter(Vec<Rule>);

#[derive(Debug, Clone)]
struct Rule {
    is_included: bool,
    glob: GlobMatcher,
    /// What stands before the first character with a meaning.
    beginning: Vec<u8>,
    /// Whether it ends in `*`: it then matches whatever goes on behind a match.
    is_open: bool,
}

impl Filter {
    /// Adds a rule after those before. `*` stands for any bytes, slashes too, `?` for one, `[a-z]` and `[!a-z]` for one
    /// of a set.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for what is no pattern.
    pub fn add(&mut self, is_included: bool, pattern: &str) -> Result<()> {
        // Backslashes mean nothing in patterns of the AWS command.
        let built = GlobBuilder::new(&without_alternates(pattern))
            .literal_separator(false)
            .backslash_escape(false)
            .build();
        let glob = built.map_err(|error| {
            let why = error.to_string();
            Error::new(ErrorKind::InvalidInput, "read the pattern", pattern, why)
                .with_help("* ? [a-z] [!a-z] have a meaning; write [[] for a bracket")
        })?;
        let beginning = pattern.split(['*', '?', '[']).next().unwrap_or_default();
        self.0.push(Rule {
            is_included,
            glob: glob.compile_matcher(),
            beginning: beginning.as_bytes().into(),
            is_open: pattern.ends_with('*'),
        });
        Ok(())
    }

    /// Whether the relative key is meant.
    #[must_use]
    pub fn is_meant(&self, relative: &[u8]) -> bool {
        let path = OsStr::from_bytes(relative);
        let last = self.0.iter().rev().find(|rule| rule.glob.is_match(path));
        last.is_none_or(|rule| rule.is_included)
    }

    /// Whether a key below `folder`, which ends in a slash, may be meant. Where rules are too intricate to tell, it may.
    pub(super) fn is_meant_below(&self, folder: &[u8]) -> bool {
        let path = OsStr::from_bytes(folder);
        for rule in self.0.iter().rev() {
            let beginning = &rule.beginning[..];
            if rule.is_included {
                if beginning.starts_with(folder) || folder.starts_with(beginning) {
                    return true;
                }
            } else if rule.is_open && rule.glob.is_match(path) {
                return false;
            }
        }
        true
    }

    /// Whether what can be neither copied nor compared is meant: a folder, with a slash at its end, for what may be below it.
    pub(super) fn is_odd_meant(&self, relative: &[u8]) -> bool {
        if relative.ends_with(b"/") {
            self.is_meant_below(relative)
        } else {
            self.is_meant(relative)
        }
    }
}

/// The pattern with its braces, which mean nothing in patterns of the AWS command, as sets of one. In a set they stand for
/// themselves already.
fn without_alternates(pattern: &str) -> String {
    let mut text = String::with_capacity(pattern.len());
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '{' | '}' => text.extend(['[', c, ']']),
            '[' => {
                text.push(c);
                text.extend(chars.next_if(|c| matches!(c, '!' | '^')));
                // A bracket that comes first is one of the set.
                text.extend(chars.next());
                for c in chars.by_ref() {
                    text.push(c);
                    if c == ']' {
                        break;
                    }
                }
            }
            _ => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_rule_that_matches_counts() {
        let filter = |rules: &[(bool, &str)]| {
            let mut filter = Filter::default();
            for (is_included, pattern) in rules {
                filter.add(*is_included, pattern).unwrap();
            }
            filter
        };
        let all = filter(&[]);
        assert!(all.is_meant(b"a/b.txt"));
        let txt = filter(&[(false, "*"), (true, "*.txt")]);
        assert!(txt.is_meant(b"a/b.txt") && !txt.is_meant(b"a/b.jpg"));
        let none = filter(&[(true, "*.txt"), (false, "*")]);
        assert!(!none.is_meant(b"a.txt"));
        let set = filter(&[(false, "a/[!x]?.{j}")]);
        assert!(!set.is_meant(b"a/yz.{j}") && set.is_meant(b"a/xz.{j}"));
        assert!(
            !filter(&[(false, "a*")]).is_meant(b"a/b/c"),
            "a star crosses slashes"
        );
    }

    #[test]
    fn braces_mean_themselves_in_a_set_and_outside() {
        for (pattern, matched, other) in [
            ("a[{]b", "a{b", "a[{]b"),
            ("a[}]b", "a}b", "ab"),
            ("a[!{]b", "axb", "a{b"),
            ("a[]{]b", "a]b", "a}b"),
            ("a[]{]b", "a{b", "a[b"),
            ("a[x{]{b}", "a{{b}", "ax{b"),
            ("{a,b}", "{a,b}", "a"),
        ] {
            let mut filter = Filter::default();
            filter.add(false, pattern).unwrap();
            assert!(!filter.is_meant(matched.as_bytes()), "{pattern} {matched}");
            assert!(filter.is_meant(other.as_bytes()), "{pattern} {other}");
        }
    }

    #[test]
    fn what_is_below_a_folder_is_left_out_only_where_that_is_sure() {
        for (rules, folder, is_meant) in [
            (&[][..], "d/", true),
            (&[(false, "d/*")], "d/", false),
            (&[(false, "d/*")], "d/e/", false),
            (&[(false, "d/*")], "dd/", true),
            (&[(false, "d*")], "dd/", false),
            (&[(false, "*")], "d/", false),
            (&[(false, "*/d/*")], "a/d/", false),
            (&[(false, "*/d/*")], "d/", true),
            (&[(false, "[a-e]/*")], "d/", false),
            (&[(false, "d/")], "d/", true),
            (&[(false, "d/*.txt")], "d/", true),
            (&[(false, "d/a*")], "d/", true),
            (&[(true, "d/x"), (false, "d/*")], "d/", false),
            (&[(false, "d/*"), (true, "d/x")], "d/", true),
            (&[(false, "d/*"), (true, "*.txt")], "d/", true),
            (&[(false, "*"), (true, "e/*")], "d/", false),
            (&[(false, "*"), (true, "d/e/f")], "d/e/", true),
        ] {
            let mut filter = Filter::default();
            for (is_included, pattern) in rules {
                filter.add(*is_included, pattern).unwrap();
            }
            let found = filter.is_meant_below(folder.as_bytes());
            assert_eq!(found, is_meant, "{rules:?} {folder}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused_with_help() {
        let error = Filter::default().add(true, "a[").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.help().is_some());
    }
}
