//! `--include` and `--exclude`, with the meaning that they have in the AWS command.

use globset::{GlobBuilder, GlobMatcher};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::error::{Error, ErrorKind, Result};

/// Which relative keys are meant: all of them, but for what the rules say. Of the rules that match the last one counts.
#[derive(Debug, Clone, Default)]
pub struct Filter(Vec<(bool, GlobMatcher)>);

impl Filter {
    /// Adds a rule after those before. `*` stands for any bytes, slashes too, `?` for one, `[a-z]` and `[!a-z]` for one
    /// of a set.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for what is no pattern.
    pub fn add(&mut self, is_included: bool, pattern: &str) -> Result<()> {
        // Braces and backslashes mean nothing in patterns of the AWS command.
        let text = pattern.replace('{', "[{]").replace('}', "[}]");
        let built = GlobBuilder::new(&text)
            .literal_separator(false)
            .backslash_escape(false)
            .build();
        let glob = built.map_err(|error| {
            let why = error.to_string();
            Error::new(ErrorKind::InvalidInput, "read the pattern", pattern, why)
                .with_help("* ? [a-z] [!a-z] have a meaning; write [[] for a bracket")
        })?;
        self.0.push((is_included, glob.compile_matcher()));
        Ok(())
    }

    /// Whether the relative key is meant.
    #[must_use]
    pub fn is_meant(&self, relative: &[u8]) -> bool {
        let path = OsStr::from_bytes(relative);
        let last = self.0.iter().rev().find(|(_, glob)| glob.is_match(path));
        last.is_none_or(|(is_included, _)| *is_included)
    }
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
    fn what_is_no_pattern_is_refused_with_help() {
        let error = Filter::default().add(true, "a[").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.help().is_some());
    }
}
