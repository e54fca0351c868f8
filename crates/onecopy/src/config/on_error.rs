//! What is to be done about errors that cost a sample or a shard and need not end the load.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, ErrorKind, Result};
use crate::sync::Arc;

/// What to do with a sample that cannot be read, decoded or batched, and with a shard that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum OnError {
    /// Stop with the error.
    #[default]
    Raise,
    /// Log it, count it, go on.
    Warn,
    /// Count it, go on.
    Skip,
    /// What the handler says, each time.
    Ask(Handler),
}

/// What is to be done about one error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Stop with it.
    Raise,
    /// Log it, count it, go on.
    Warn,
    /// Count it, go on.
    Skip,
}

/// Decides about each error that may be passed over.
///
/// It is called once for each sample and each shard that would be left out, on the thread that found the error, while that
/// thread holds no lock: several threads may call it at a time. What it says holds for this one error. An error of its own
/// ends the load in place of the one that it was asked about.
#[derive(Clone)]
pub struct Handler(Arc<Ask>);

type Ask = dyn Fn(&Error) -> Result<Answer> + Send + Sync;

impl Handler {
    /// A handler that calls `ask`.
    pub fn new(ask: impl Fn(&Error) -> Result<Answer> + Send + Sync + 'static) -> Self {
        Self(Arc::new(ask))
    }
}

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handler")
    }
}

impl PartialEq for Handler {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Handler {}

impl OnError {
    /// Whether this policy may pass over an error of `kind`. None does where somebody stopped the run, or where we are wrong
    /// ourselves.
    #[must_use]
    pub const fn passes_over_kind(&self, kind: ErrorKind) -> bool {
        !matches!(self, Self::Raise) && !matches!(kind, ErrorKind::Cancelled | ErrorKind::Bug)
    }

    /// Whether this policy may pass over `error`: its kind allows it, and the next shard would not meet the same.
    #[must_use]
    pub fn passes_over(&self, error: &Error) -> bool {
        self.passes_over_kind(error.kind()) && !error.concerns_all()
    }

    /// What is to be done about `error`. A handler is asked where the error may be passed over, and only there.
    ///
    /// # Errors
    ///
    /// What the handler failed with.
    pub fn answer(&self, error: &Error) -> Result<Answer> {
        match self {
            Self::Warn if self.passes_over(error) => Ok(Answer::Warn),
            Self::Skip if self.passes_over(error) => Ok(Answer::Skip),
            Self::Ask(handler) if self.passes_over(error) => (handler.0)(error),
            _ => Ok(Answer::Raise),
        }
    }
}

impl FromStr for Answer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "raise" => Ok(Self::Raise),
            "warn" => Ok(Self::Warn),
            "skip" => Ok(Self::Skip),
            other => Err(format!("unknown policy {other:?}: use raise, warn or skip")),
        }
    }
}

impl From<Answer> for OnError {
    fn from(always: Answer) -> Self {
        match always {
            Answer::Raise => Self::Raise,
            Answer::Warn => Self::Warn,
            Answer::Skip => Self::Skip,
        }
    }
}

impl FromStr for OnError {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse::<Answer>().map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::{AtomicUsize, Ordering};

    fn error(kind: ErrorKind) -> Error {
        Error::new(kind, "read", "a.tar", "it is broken")
    }

    #[test]
    fn what_must_end_the_load_is_passed_over_by_none_and_asked_of_nobody() {
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&asked);
        let handler = Handler::new(move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
            Ok(Answer::Skip)
        });
        for policy in [OnError::Warn, OnError::Skip, OnError::Ask(handler.clone())] {
            for error in [
                error(ErrorKind::Cancelled),
                error(ErrorKind::Bug),
                error(ErrorKind::Denied).concerning_all(),
            ] {
                assert!(!policy.passes_over(&error), "{policy:?} {error}");
                assert_eq!(policy.answer(&error).unwrap(), Answer::Raise);
            }
        }
        assert_eq!(asked.load(Ordering::Relaxed), 0);
        for kind in [
            ErrorKind::Corrupt,
            ErrorKind::Denied,
            ErrorKind::InvalidInput,
        ] {
            let asking = OnError::Ask(handler.clone());
            assert_eq!(asking.answer(&error(kind)).unwrap(), Answer::Skip);
            assert_eq!(OnError::Warn.answer(&error(kind)).unwrap(), Answer::Warn);
            assert_eq!(OnError::Raise.answer(&error(kind)).unwrap(), Answer::Raise);
        }
        assert_eq!(asked.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn words_are_policies_and_a_handler_is_itself_alone() {
        assert_eq!("warn".parse(), Ok(OnError::Warn));
        assert!(
            "ask"
                .parse::<OnError>()
                .unwrap_err()
                .contains("raise, warn or skip")
        );
        let handler = Handler::new(|_| Ok(Answer::Warn));
        assert_eq!(handler, handler.clone());
        assert_ne!(handler, Handler::new(|_| Ok(Answer::Warn)));
    }
}
