//! The end of an epoch.

use std::fmt;
use std::str::FromStr;

/// What becomes of the last samples of an epoch where they do not fill a global batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tail {
    /// The last global batch is as short as it has to be, on all ranks to one sample.
    #[default]
    Short,
    /// It is filled up with the first samples of the epoch, which then come twice.
    Pad,
    /// It is left out.
    Drop,
}

impl Tail {
    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Short => "short",
            Self::Pad => "pad",
            Self::Drop => "drop",
        }
    }
}

impl fmt::Display for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Tail {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Self::Short, Self::Pad, Self::Drop];
        let found = all.into_iter().find(|tail| tail.name() == text);
        found.ok_or_else(|| format!("unknown tail {text:?}: use short, pad or drop"))
    }
}
