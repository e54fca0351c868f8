//! What an error is about, beside its text: for whoever decides what is to be done about it.

use std::fmt;

use super::{Error, Printable};
use crate::setting::{Setting, spelled};

impl Error {
    /// Adds that it is about `shard`, or something in it.
    #[must_use]
    pub fn of_shard(mut self, shard: &str) -> Self {
        self.0.shard = Some(shard.to_owned());
        self
    }

    /// Adds that it is about the sample `key` of `shard`.
    #[must_use]
    pub fn of_sample(mut self, shard: &str, key: &str) -> Self {
        self.0.key = Some(key.to_owned());
        self.of_shard(shard)
    }

    /// The shard that it is about, where that is known.
    #[must_use]
    pub fn shard(&self) -> Option<&str> {
        self.0.shard.as_deref()
    }

    /// The key of the sample that it is about, where that is known.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.0.key.as_deref()
    }

    /// Adds that it is nothing of this object alone: whatever is read next would meet it, too.
    #[must_use]
    pub fn concerning_all(mut self) -> Self {
        self.0.concerns_all = true;
        self
    }

    /// Whether whatever is read next would meet it, too: no credentials, say, or none that the store knows.
    #[must_use]
    pub fn concerns_all(&self) -> bool {
        self.0.concerns_all
    }

    /// Adds to why it failed.
    #[must_use]
    pub fn and(mut self, more: impl fmt::Display) -> Self {
        self.0.why = format!("{}; {more}", self.0.why);
        self
    }

    /// Its whole text and its help, with settings in the words of whoever shows it: see [`spelled`].
    #[must_use]
    pub fn worded(
        &self,
        spell: impl Fn(Setting, Option<&str>) -> Option<String>,
    ) -> (String, Option<String>) {
        let help = self.help().map(|help| spelled(help, spell));
        let text = match &help {
            Some(help) => format!("{self}{}\nhelp: {}", Causes(self), Printable(help)),
            None => format!("{self}{}", Causes(self)),
        };
        (text, help)
    }
}

/// The chain of sources, a line each; those that say no more than the error does are left out.
pub(super) struct Causes<'a>(pub(super) &'a Error);

impl fmt::Display for Causes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cause = std::error::Error::source(self.0);
        while let Some(error) = cause {
            let text = error.to_string();
            if text != self.0.why() {
                write!(f, "\n  caused by: {}", Printable(&text))?;
            }
            cause = error.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::ErrorKind;
    use super::*;

    #[test]
    fn its_words_are_those_of_the_long_form() {
        let error = Error::new(ErrorKind::Corrupt, "read", "a\nb", "it is broken")
            .with_source(Error::new(ErrorKind::Io, "seek in", "a", "no"))
            .with_help("raise `memory`")
            .and("and so on");
        let (text, help) = error.worded(|_, _| None);
        assert_eq!(text, format!("{error:#}"));
        assert!(text.starts_with("could not read a\\nb: it is broken; and so on\n  caused by: "));
        assert_eq!(help.as_deref(), Some("raise `memory`"));
        let (text, help) = error.worded(|setting, _| Some(format!("--{}", setting.name())));
        assert!(text.ends_with("\nhelp: raise --memory"), "{text}");
        assert_eq!(help.as_deref(), Some("raise --memory"));
    }

    #[test]
    fn shard_and_key_are_told_where_they_are_known() {
        let error = Error::new(ErrorKind::Corrupt, "read", "it", "no");
        assert_eq!((error.shard(), error.key()), (None, None));
        let error = error.of_sample("a.tar", "7");
        assert_eq!((error.shard(), error.key()), (Some("a.tar"), Some("7")));
        assert!(!error.concerns_all() && error.concerning_all().concerns_all());
    }
}
