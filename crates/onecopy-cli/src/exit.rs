//! What the exit codes mean.

use onecopy::{Error, ErrorKind};

use crate::stdout::Reader;

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
    /// Whoever read stdout went away before it had everything, as `head` does.
    Unread,
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
            // What a shell shows of a command that SIGPIPE ended, which is how most others end here.
            Self::Unread => 141,
        }
    }

    /// `Unread` where all else is well and the reader has gone.
    pub(crate) fn read_by(self, reader: Reader) -> Self {
        match (self, reader) {
            (Self::Done, Reader::Gone) => Self::Unread,
            _ => self,
        }
    }

    /// How two pieces of work ended that were done one after the other: an item that failed is what matters most.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Done, _) | (Self::Unread, Self::No) => other,
            _ => self,
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
