//! How samples are to be read.

use std::str::FromStr;

use crate::config::OnError;

/// Which dot of a file name ends the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeyRule {
    /// The first one, as in WebDataset: `a.left.jpg` is field `left.jpg` of `a`.
    #[default]
    FirstDot,
    /// The last one: `Track 2.0.mp3` is field `mp3` of `Track 2.0`.
    LastDot,
}

impl KeyRule {
    /// The name that flags and indexes have for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::FirstDot => "first-dot",
            Self::LastDot => "last-dot",
        }
    }
}

impl FromStr for KeyRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "first-dot" => Ok(Self::FirstDot),
            "last-dot" => Ok(Self::LastDot),
            other => Err(format!(
                "unknown key rule {other:?}: use first-dot or last-dot"
            )),
        }
    }
}

/// What to do where a sample has the same field twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Duplicates {
    /// It is an error: one of the two would be lost.
    #[default]
    Error,
    /// Keep the first one, and count a warning.
    First,
    /// Keep the last one, as tar does when it unpacks, and count a warning.
    Last,
}

impl FromStr for Duplicates {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "error" => Ok(Self::Error),
            "first" => Ok(Self::First),
            "last" => Ok(Self::Last),
            other => Err(format!(
                "unknown rule for duplicates {other:?}: use error, first or last"
            )),
        }
    }
}

/// How samples are to be read from a shard.
#[derive(Debug, Clone)]
pub struct SampleOptions {
    /// Which dot of a file name ends the key.
    pub key_rule: KeyRule,
    /// What to do about damage.
    pub on_error: OnError,
    /// What to do where a sample has the same field twice.
    pub duplicates: Duplicates,
    /// Whether to go on behind an end-of-archive mark, as is needed for `cat a.tar b.tar`.
    pub ignore_zeros: bool,
    /// The largest sample taken, in bytes of the shard from its first header on: what has to fit into memory at once,
    /// and what a damaged size may cost at most.
    pub max_sample_bytes: u64,
}

impl Default for SampleOptions {
    fn default() -> Self {
        Self {
            key_rule: KeyRule::default(),
            on_error: OnError::default(),
            duplicates: Duplicates::default(),
            ignore_zeros: false,
            // Far above any picture, clip or embedding file, and still less than a training machine has.
            max_sample_bytes: 2 << 30,
        }
    }
}
