//! Why a connection is given up.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt::{self, Display};
use std::io;

use rustls::AlertDescription;

/// Something that the protocol does not allow, or that the other side gave up for. The connection is over.
#[derive(Debug)]
pub(in crate::store::http1) struct Breach {
    why: Cow<'static, str>,
    /// What to tell the other side; none where it gave up itself, or where keys are spent.
    alert: Option<AlertDescription>,
    source: Option<rustls::Error>,
}

impl Breach {
    pub(super) fn new(alert: AlertDescription, why: impl Into<Cow<'static, str>>) -> Self {
        Self {
            why: why.into(),
            alert: Some(alert),
            source: None,
        }
    }

    /// A message where it has no place.
    pub(super) fn unexpected(why: impl Into<Cow<'static, str>>) -> Self {
        Self::new(AlertDescription::UnexpectedMessage, why)
    }

    /// What the other side said before it went.
    pub(super) fn received(alert: AlertDescription) -> Self {
        Self {
            why: format!("the other side ended the connection with the alert {alert:?}").into(),
            alert: None,
            source: None,
        }
    }

    /// A key that may not be used once more.
    pub(super) fn spent(seq: u64) -> Self {
        Self {
            why: format!("{seq} records under one key: its limit is reached").into(),
            alert: None,
            source: None,
        }
    }

    pub(super) fn with_source(mut self, source: rustls::Error) -> Self {
        self.source = Some(source);
        self
    }

    pub(super) fn alert(&self) -> Option<AlertDescription> {
        self.alert
    }

    /// Whether `error` is one of these.
    pub(in crate::store::http1) fn is_in(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<Self>())
    }
}

impl Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TLS broke off: {}", self.why)
    }
}

impl StdError for Breach {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}

impl From<Breach> for io::Error {
    fn from(breach: Breach) -> Self {
        io::Error::other(breach)
    }
}
