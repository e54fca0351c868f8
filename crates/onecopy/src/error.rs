//! The one public error type.
//!
//! An error says what was being done, to what, why it failed and what to do about it; a constructor that takes all of
//! them cannot forget one. Room-private errors become the `source`.

mod about;
mod limit;

use std::error::Error as StdError;
use std::fmt;

pub(crate) use limit::Limit;

use crate::setting::{Setting, spelled};

/// What class of failure this is. Retrying looks at nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The object, bucket, file or field does not exist.
    NotFound,
    /// Credentials are missing, wrong, expired, or not allowed to do this.
    Denied,
    /// The other side cannot be reached: name, route, connection, TLS, or silence past a deadline.
    Unreachable,
    /// The other side asks for less: 503 SlowDown, 429.
    Throttled,
    /// The object is no longer the one whose reading began.
    Changed,
    /// The bytes are there but are not what they claim to be.
    Corrupt,
    /// Fewer bytes arrived than were promised.
    Truncated,
    /// Understood, but not something this build or this machine does.
    Unsupported,
    /// A limit set by the configuration or the machine was reached.
    LimitReached,
    /// The caller asked for something that cannot be.
    InvalidInput,
    /// A device or its driver failed.
    Device,
    /// A local file or the operating system failed.
    Io,
    /// The work was stopped on request.
    Cancelled,
    /// An assumption of onecopy's own does not hold; please report it.
    Bug,
}

impl ErrorKind {
    /// The stable lower-case name, as used in JSON and in counts by cause.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::Denied => "denied",
            Self::Unreachable => "unreachable",
            Self::Throttled => "throttled",
            Self::Changed => "changed",
            Self::Corrupt => "corrupt",
            Self::Truncated => "truncated",
            Self::Unsupported => "unsupported",
            Self::LimitReached => "limit_reached",
            Self::InvalidInput => "invalid_input",
            Self::Device => "device",
            Self::Io => "io",
            Self::Cancelled => "cancelled",
            Self::Bug => "bug",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Text as it may be shown on a terminal or in a line of a log: what moves the cursor, ends the line or turns the writing
/// direction is escaped. A key, a name in a tar and a server's words may hold anything.
#[derive(Debug, Clone, Copy)]
pub struct Printable<'a>(pub &'a str);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // U+200B on: characters of no width, marks of direction, line and paragraph separators.
        let is_unfit = |c: char| {
            c.is_control()
                || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
        };
        let mut rest = self.0;
        while let Some(at) = rest.find(is_unfit) {
            let (fit, from) = rest.split_at(at);
            let mut after = from.chars();
            f.write_str(fit)?;
            if let Some(unfit) = after.next() {
                write!(f, "{}", unfit.escape_default())?;
            }
            rest = after.as_str();
        }
        f.write_str(rest)
    }
}

/// A failure, told for the person who has to do something about it.
///
/// `Display` prints one line: `could not <doing> <target>: <why>`, each part [`Printable`]. The alternate form (`{:#}`) adds the chain of
/// sources and the help. No secret and no signed URL ever gets in.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    doing: String,
    target: String,
    why: String,
    help: Option<String>,
    /// The help belongs to a limit of the machine, and fits better than what a caller foresaw.
    is_help_final: bool,
    /// The shard, and the key of the sample, that it is about.
    shard: Option<String>,
    key: Option<String>,
    concerns_all: bool,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// A failure of `kind` while doing `doing` (an infinitive: `read bytes 0..512 of`) to `target`, because `why`.
    #[must_use]
    pub fn new(
        kind: ErrorKind,
        doing: impl Into<String>,
        target: impl Into<String>,
        why: impl Into<String>,
    ) -> Self {
        Self(Box::new(Inner {
            kind,
            doing: doing.into(),
            target: target.into(),
            why: why.into(),
            help: None,
            is_help_final: false,
            shard: None,
            key: None,
            concerns_all: false,
            source: None,
        }))
    }

    /// Adds what the reader can do about it, with settings named as [`crate::setting`] says. Where a limit of the machine
    /// was reached ([`Error::io`]), the help that came with it stays.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        if !self.0.is_help_final {
            self.0.help = Some(help.into());
        }
        self
    }

    /// Adds the underlying failure.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// A failed call to the operating system, its kind told from the error number. A limit of the machine is told with its
    /// number, and with what to do.
    #[must_use]
    pub fn io(doing: impl Into<String>, target: impl Into<String>, error: std::io::Error) -> Self {
        use std::io::ErrorKind as Io;
        if let Some(limit) = Limit::of(&error) {
            let mut told = Self::new(limit.kind, doing, target, limit.why)
                .with_help(limit.help)
                .with_source(error);
            // A limit of the machine holds for whatever comes next.
            told.0.is_help_final = limit.kind == ErrorKind::LimitReached;
            told.0.concerns_all = told.0.is_help_final;
            return told;
        }
        let kind = match error.kind() {
            Io::NotFound => ErrorKind::NotFound,
            Io::PermissionDenied => ErrorKind::Denied,
            Io::ConnectionRefused
            | Io::ConnectionReset
            | Io::ConnectionAborted
            | Io::BrokenPipe
            | Io::TimedOut
            | Io::NetworkUnreachable
            | Io::HostUnreachable => ErrorKind::Unreachable,
            Io::UnexpectedEof => ErrorKind::Truncated,
            _ => ErrorKind::Io,
        };
        Self::new(kind, doing, target, error.to_string()).with_source(error)
    }

    /// A broken assumption of our own.
    #[must_use]
    pub fn bug(doing: impl Into<String>, why: impl Into<String>) -> Self {
        Self::new(ErrorKind::Bug, doing, "", why)
            .with_help("this is a defect of onecopy: please report it with this message")
    }

    /// The class of failure.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What was being done.
    #[must_use]
    pub fn doing(&self) -> &str {
        &self.0.doing
    }

    /// To what it was being done: an object, a field of a sample, a flag.
    #[must_use]
    pub fn target(&self) -> &str {
        &self.0.target
    }

    /// Why it failed.
    #[must_use]
    pub fn why(&self) -> &str {
        &self.0.why
    }

    /// What to do about it, where there is something to say.
    #[must_use]
    pub fn help(&self) -> Option<&str> {
        self.0.help.as_deref()
    }

    /// The same error with its settings in the words of whoever shows it: see [`spelled`].
    #[must_use]
    pub fn in_words(mut self, spell: impl Fn(Setting, Option<&str>) -> Option<String>) -> Self {
        self.0.help = self.0.help.map(|help| spelled(&help, spell));
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &self.0;
        write!(f, "could not {}", Printable(&inner.doing))?;
        if !inner.target.is_empty() {
            write!(f, " {}", Printable(&inner.target))?;
        }
        write!(f, ": {}", Printable(&inner.why))?;
        if f.alternate() {
            write!(f, "{}", about::Causes(self))?;
            if let Some(help) = &inner.help {
                write!(f, "\nhelp: {}", Printable(help))?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self:#}", self.0.kind)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0
            .source
            .as_deref()
            .map(|source| source as &(dyn StdError + 'static))
    }
}

/// What every fallible function of the engine returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_to_what_why_and_what_to_do() {
        let error = Error::new(
            ErrorKind::Denied,
            "read bytes 0..8388608 of",
            "s3://b/a.tar",
            "access denied",
        )
        .with_help("grant s3:GetObject on b/*");
        assert_eq!(
            error.to_string(),
            "could not read bytes 0..8388608 of s3://b/a.tar: access denied"
        );
        assert!(format!("{error:#}").ends_with("\nhelp: grant s3:GetObject on b/*"));
    }

    #[test]
    fn nothing_in_an_error_moves_the_cursor_or_begins_a_line() {
        for (text, shown) in [
            ("a/\u{1b}[2J.tar", "a/\\u{1b}[2J.tar"),
            ("one\ntwo\r\t\0", "one\\ntwo\\r\\t\\u{0}"),
            ("\u{85}\u{9b}31m", "\\u{85}\\u{9b}31m"),
            ("gpj.\u{202e}rat", "gpj.\\u{202e}rat"),
            (
                "\u{2028}\u{200b}\u{2066}\u{feff}",
                "\\u{2028}\\u{200b}\\u{2066}\\u{feff}",
            ),
            ("it's \"ä\\b\" 日本 👍", "it's \"ä\\b\" 日本 👍"),
        ] {
            assert_eq!(Printable(text).to_string(), shown);
            let error = Error::new(ErrorKind::Corrupt, text, text, text)
                .with_source(Error::new(ErrorKind::Io, "", "", text))
                .with_help(text);
            let lines: Vec<String> = format!("{error:#}").lines().map(str::to_owned).collect();
            assert_eq!(
                lines,
                [
                    format!("could not {shown} {shown}: {shown}"),
                    format!("  caused by: could not : {shown}"),
                    format!("help: {shown}"),
                ]
            );
        }
    }

    #[test]
    fn help_is_told_in_the_words_of_whoever_shows_it() {
        let error = Error::new(
            ErrorKind::LimitReached,
            "hold",
            "`memory`",
            "it is too large",
        )
        .with_help("raise `memory`")
        .in_words(|setting, _| Some(format!("--{}", setting.name())));
        assert_eq!(
            format!("{error:#}"),
            "could not hold `memory`: it is too large\nhelp: raise --memory"
        );
    }

    #[test]
    fn stays_one_pointer_wide() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
    }
}
