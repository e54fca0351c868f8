//! What the exit codes mean.

use onecopy::{Error, ErrorKind};

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done, and the answer is yes where there was a question.
    Done,
    /// It ran to its end, but the answer is no, or some items failed or were skipped.
    No,
    /// It could not run, or not to its end: bad arguments or an error.
    Failed,
    /// Ctrl-C (SIGINT).
    Interrupted,
    /// SIGTERM.
    Terminated,
    /// SIGHUP: the terminal is gone.
    HungUp,
}

impl Exit {
    /// The code that the process ends with: 0, 1, 2 as with grep and diff; after a signal 128 and its
    /// number, as shells show it.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::No => 1,
            Self::Failed => 2,
            Self::Interrupted => 130,
            Self::Terminated => 143,
            Self::HungUp => 129,
        }
    }

    /// `Done` where `is_true`, else `No`.
    pub(crate) const fn answer(is_true: bool) -> Self {
        if is_true { Self::Done } else { Self::No }
    }
}

impl From<&Error> for Exit {
    fn from(error: &Error) -> Self {
        match error.kind() {
            ErrorKind::Cancelled => Self::Interrupted,
            _ => Self::Failed,
        }
    }
}
