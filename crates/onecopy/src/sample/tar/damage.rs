//! What is wrong with a shard, and where.

use std::borrow::Cow;

use crate::config::OnError;
use crate::error::{Error, ErrorKind};

/// The name to count an archive by that ends between two members.
pub(in crate::sample) const MISSING_EOF: &str = "missing_eof";

/// What to do about damage of which nothing better is known.
pub(in crate::sample) const HELP: &str =
    "check the shard with `tar tf`, write it again, or pass over damage with `on_error=skip`";

/// A shard that is not what it should be.
#[derive(Debug)]
pub(in crate::sample) enum Damage {
    /// Found in the tar.
    Tar {
        kind: ErrorKind,
        /// The name to count it by.
        cause: &'static str,
        why: Cow<'static, str>,
        /// Where in the (inflated) tar.
        offset: u64,
        help: Option<&'static str>,
    },
    /// The bytes themselves did not come; the error says it all.
    Source(Error),
}

impl Damage {
    /// Damage found in the tar.
    pub(super) fn new(
        kind: ErrorKind,
        cause: &'static str,
        offset: u64,
        why: impl Into<Cow<'static, str>>,
    ) -> Box<Self> {
        Box::new(Self::Tar {
            kind,
            cause,
            why: why.into(),
            offset,
            help: None,
        })
    }

    /// Bytes that are there and wrong.
    pub(super) fn corrupt(
        cause: &'static str,
        offset: u64,
        why: impl Into<Cow<'static, str>>,
    ) -> Box<Self> {
        Self::new(ErrorKind::Corrupt, cause, offset, why)
    }

    /// Bytes that are missing.
    pub(super) fn truncated(offset: u64, why: impl Into<Cow<'static, str>>) -> Box<Self> {
        Self::new(ErrorKind::Truncated, "truncated", offset, why)
    }

    /// A member of a kind that is not read.
    pub(super) fn unsupported(typeflag: u8, offset: u64) -> Box<Self> {
        let why = if typeflag == b'S' {
            "a sparse member: sparse files are unsupported"
        } else {
            "a member that goes on from another volume: multi-volume archives are unsupported"
        };
        Self::new(ErrorKind::Unsupported, "unsupported_member", offset, why).with_help(
            "write the shard again without the options --sparse and --multi-volume of tar",
        )
    }

    /// An archive that ends between two members, and so may have been cut there.
    pub(super) fn missing_eof(offset: u64) -> Box<Self> {
        let why = "the shard ends at a member border without the end-of-archive mark, so it may have been cut there";
        Self::new(ErrorKind::Truncated, MISSING_EOF, offset, why).with_help(
            "pack it again with a writer that closes its archive; or take what is there, counted as missing_eof, with \
             `on_error=warn`",
        )
    }

    /// Adds what can be done about it.
    pub(super) fn with_help(mut self: Box<Self>, text: &'static str) -> Box<Self> {
        if let Self::Tar { help, .. } = &mut *self {
            *help = Some(text);
        }
        self
    }

    /// The name to count it by.
    pub(in crate::sample) fn cause(&self) -> &'static str {
        match self {
            Self::Tar { cause, .. } => cause,
            Self::Source(error) => error.kind().name(),
        }
    }

    /// The class of failure.
    pub(in crate::sample) fn kind(&self) -> ErrorKind {
        match self {
            Self::Tar { kind, .. } => *kind,
            Self::Source(error) => error.kind(),
        }
    }

    /// Whether `policy` may pass over it.
    pub(in crate::sample) fn is_passed_over_by(&self, policy: &OnError) -> bool {
        match self {
            Self::Tar { kind, .. } => policy.passes_over_kind(*kind),
            Self::Source(error) => policy.passes_over(error),
        }
    }

    /// What is wrong, in words.
    pub(in crate::sample) fn why(&self) -> &str {
        match self {
            Self::Tar { why, .. } => why,
            Self::Source(error) => error.why(),
        }
    }

    /// Whether everything that the shard is known to hold was read all the same.
    pub(in crate::sample) fn costs_nothing_known(&self) -> bool {
        self.cause() == MISSING_EOF
    }

    /// The error for the person who has to do something about it.
    pub(in crate::sample) fn into_error(self, shard: &str, last_good: Option<&str>) -> Error {
        let last = match last_good {
            Some(name) => format!("the last good member is {name:?}"),
            None => "no member before it is good".to_owned(),
        };
        let (kind, why, offset, help) = match self {
            Self::Source(error) => return with_last_good(error, &last),
            Self::Tar {
                kind,
                why,
                offset,
                help,
                ..
            } => (kind, why, offset, help),
        };
        Error::new(
            kind,
            format!("read the tar from byte {offset} of"),
            shard,
            format!("{why}; {last}"),
        )
        .with_help(help.unwrap_or(HELP))
    }
}

/// A body that is too short or cannot be inflated is damage too; what the network says for itself stays as it is.
fn with_last_good(error: Error, last: &str) -> Error {
    if !matches!(error.kind(), ErrorKind::Truncated | ErrorKind::Corrupt) {
        return error;
    }
    let told = Error::new(
        error.kind(),
        error.doing(),
        error.target(),
        format!("{}; {last}", error.why()),
    );
    match error.help() {
        Some(help) => told.with_help(help),
        None => told,
    }
    .with_source(error)
}

impl From<Error> for Box<Damage> {
    fn from(error: Error) -> Self {
        Box::new(Damage::Source(error))
    }
}
