//! One page of a listing: prefix, delimiter, limit and where the last page ended.

use std::io;
use std::ops::ControlFlow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::store::{Store, Summary, hex};

/// The last thing that a page told; the next page goes on behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Position {
    Key(String),
    /// Everything that begins with it has been told.
    Prefix(String),
}

impl Position {
    /// As a token. It holds `+`, `/` and `=` on purpose: S3's tokens do, and a client that does
    /// not encode them in the query loses its place.
    pub(crate) fn to_token(&self) -> String {
        match self {
            Self::Key(key) => format!("+/k{}==", hex(key.as_bytes())),
            Self::Prefix(prefix) => format!("+/p{}==", hex(prefix.as_bytes())),
        }
    }

    /// Reads a token of ours; None for anything else.
    pub(crate) fn from_token(token: &str) -> Option<Self> {
        let token = token.strip_prefix("+/")?.strip_suffix("==")?;
        let (kind, digits) = token.split_at_checked(1)?;
        let bytes = (0..digits.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok())
            .collect::<Option<Vec<u8>>>()?;
        let text = String::from_utf8(bytes).ok()?;
        match kind {
            "k" => Some(Self::Key(text)),
            "p" => Some(Self::Prefix(text)),
            _ => None,
        }
    }

    /// The key or the prefix itself.
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Key(text) | Self::Prefix(text) => text,
        }
    }
}

/// What a page is to hold.
#[derive(Debug, Default)]
pub(crate) struct Wanted<'a> {
    pub(crate) prefix: &'a str,
    pub(crate) delimiter: Option<&'a str>,
    pub(crate) after: Option<Position>,
    pub(crate) max_keys: usize,
}

/// What a page holds.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) objects: Vec<(String, Summary)>,
    pub(crate) prefixes: Vec<String>,
    /// Where the page ended, if there is more.
    pub(crate) next: Option<Position>,
}

/// Lists one page; keys and prefixes count alike against `max_keys`, as with S3.
pub(crate) fn page(store: &dyn Store, bucket: &str, wanted: &Wanted<'_>) -> io::Result<Page> {
    let mut page = Page::default();
    if wanted.max_keys == 0 {
        return Ok(page);
    }
    let mut last = wanted.after.clone();
    let after = last
        .as_ref()
        .map_or(String::new(), |l| l.as_str().to_owned());
    store.scan(bucket, wanted.prefix, &after, &mut |key, summary| {
        if let Some(Position::Prefix(told)) = &last
            && key.starts_with(told.as_str())
        {
            return ControlFlow::Continue(());
        }
        if page.objects.len() + page.prefixes.len() == wanted.max_keys {
            page.next = last.take();
            return ControlFlow::Break(());
        }
        if let Some(common) = common_prefix(key, wanted) {
            page.prefixes.push(common.to_owned());
            last = Some(Position::Prefix(common.to_owned()));
        } else {
            page.objects.push((key.to_owned(), summary()));
            last = Some(Position::Key(key.to_owned()));
        }
        ControlFlow::Continue(())
    })?;
    Ok(page)
}

/// The part of the key up to the first delimiter behind the prefix.
fn common_prefix<'k>(key: &'k str, wanted: &Wanted<'_>) -> Option<&'k str> {
    let delimiter = wanted.delimiter.filter(|d| !d.is_empty())?;
    let rest = key.get(wanted.prefix.len()..)?;
    let end = wanted.prefix.len() + rest.find(delimiter)? + delimiter.len();
    key.get(..end)
}

/// What `encoding-type=url` leaves alone.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'*')
    .remove(b'/')
    .remove(b' ');

/// A key as S3 writes it under `encoding-type=url`: a blank is `+`, and a plus is `%2B`.
pub(crate) fn encode(key: &str) -> String {
    utf8_percent_encode(key, PLAIN)
        .to_string()
        .replace(' ', "+")
}
