//! Why a request came to nothing, before it is known what it was for.

use std::error::Error as StdError;
use std::io;
use std::time::Duration;

use super::tls::Breach;
use super::way::Way;
use crate::error::{Error, ErrorKind, Limit};
use crate::sync::Arc;

/// Tries of a request for which no socket can be opened: a few seconds, in which other requests end.
const MOST_TRIES_WITHOUT_FILES: u32 = 4;

/// Causes that have nothing to do with the object that was asked for: who asks is not known (any more), or cannot ask. Were
/// such a failure passed over, one object after the other would be, to the end of the data.
const CONCERN_ALL: [&str; 8] = [
    "no_credentials",
    "unknown_key",
    "expired_token",
    "signature",
    "clock",
    "requester_pays",
    "proxy_denied",
    "no_files",
];

/// A failed request.
#[derive(Debug)]
pub(in crate::store) struct Failure {
    pub(in crate::store) kind: ErrorKind,
    /// The name under which the ledger counts a retry.
    pub(in crate::store) cause: &'static str,
    pub(in crate::store) why: String,
    pub(in crate::store) help: Option<String>,
    pub(in crate::store) is_worth_retrying: bool,
    /// Whether to try again at once and without counting it: whoever made this failure sees to it that it is rare.
    pub(in crate::store) is_prompt: bool,
    /// What the other side asked us to wait.
    pub(in crate::store) retry_after: Option<Duration>,
    /// Tries at most that may end in this cause, where fewer than usual make sense.
    pub(in crate::store) most_tries: Option<u32>,
    /// Whom the request went to.
    way: Option<Arc<Way>>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Failure {
    /// A failure of `kind`; worth another try where the kind says so.
    pub(in crate::store) fn new(
        kind: ErrorKind,
        cause: &'static str,
        why: impl Into<String>,
    ) -> Self {
        let is_worth_retrying = matches!(
            kind,
            ErrorKind::Unreachable | ErrorKind::Throttled | ErrorKind::Truncated
        );
        Self {
            kind,
            cause,
            why: why.into(),
            help: None,
            is_worth_retrying,
            is_prompt: false,
            retry_after: None,
            most_tries: None,
            way: None,
            source: None,
        }
    }

    /// An answer that is not what HTTP or the question allow: asking again will not change it.
    pub(in crate::store) fn corrupt(why: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corrupt, "bad_answer", why)
    }

    /// What failed on this machine and not on the other side.
    pub(in crate::store) fn of_ours(cause: &'static str, error: Error) -> Self {
        let mut failure = Self::new(error.kind(), cause, error.to_string());
        failure.help = error.help().map(str::to_owned);
        failure.with_source(error)
    }

    /// Whether the answer was not one to the question that was asked.
    pub(in crate::store) fn is_odd(&self) -> bool {
        self.kind == ErrorKind::Corrupt || self.cause == "no_ranges"
    }

    /// A connection that failed.
    pub(in crate::store) fn connection(error: io::Error) -> Self {
        if let Some(limit) = Limit::of(&error) {
            let mut failure = Self::new(limit.kind, "no_files", limit.why)
                .with_source(error)
                .with_help(limit.help);
            // Other requests may soon give theirs back.
            failure.is_worth_retrying = true;
            failure.most_tries = Some(MOST_TRIES_WITHOUT_FILES);
            return failure;
        }
        let (cause, why) = match error.kind() {
            io::ErrorKind::ConnectionRefused => ("refused", "connection refused".to_owned()),
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe => ("reset", "the connection was reset".to_owned()),
            io::ErrorKind::UnexpectedEof => ("closed", "the connection was closed".to_owned()),
            _ if Breach::is_in(&error) => ("tls", error.to_string()),
            _ => ("connection", error.to_string()),
        };
        Self::new(ErrorKind::Unreachable, cause, why).with_source(error)
    }

    /// Whether an error is of this machine's making, and says nothing of the other side.
    pub(super) fn is_our_own(error: &io::Error) -> bool {
        matches!(
            error.raw_os_error(),
            Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM | libc::EADDRNOTAVAIL)
        )
    }

    /// Notes on which way it came up, so that it can be named; the first to say so knows best.
    pub(in crate::store) fn on(mut self, way: &Arc<Way>) -> Self {
        self.way.get_or_insert_with(|| Arc::clone(way));
        self
    }

    /// To be tried again at once, on another connection.
    pub(super) fn promptly(mut self) -> Self {
        self.is_prompt = true;
        self
    }

    pub(in crate::store) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(in crate::store) fn with_source(
        mut self,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        self.source = Some(source.into());
        self
    }

    pub(in crate::store) fn final_now(mut self) -> Self {
        self.is_worth_retrying = false;
        self
    }

    /// The public error, for whoever knows what was being done to what.
    pub(in crate::store) fn into_error(
        self,
        doing: impl Into<String>,
        target: impl Into<String>,
    ) -> Error {
        let advice = |way: &Arc<Way>| way.advice(self.kind, self.cause);
        let help = self.help.or_else(|| self.way.as_ref().and_then(advice));
        // What is no answer to anything is nobody's but the store's.
        let help = help.or_else(|| {
            let is_odd = self.kind == ErrorKind::Corrupt && self.cause == "bad_answer";
            let what = "check that the endpoint speaks the store's protocol, and that no proxy alters what it says";
            is_odd.then(|| what.to_owned())
        });
        let why = match &self.way {
            Some(way) => way.told(self.why),
            None => self.why,
        };
        let mut error = Error::new(self.kind, doing, target, why);
        if CONCERN_ALL.contains(&self.cause) {
            error = error.concerning_all();
        }
        if let Some(help) = help {
            error = error.with_help(help);
        }
        if let Some(source) = self.source {
            error = error.with_source(source);
        }
        error
    }
}
