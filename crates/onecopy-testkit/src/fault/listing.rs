//! Listings that go wrong.

use std::fmt::Write as _;
use std::io;

use super::request::Request;
use crate::s3_encode as encode;

/// What can go wrong with a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListFault {
    /// `IsTruncated` and the same token, page after page.
    SameToken,
    /// The first page is empty, but there is more.
    EmptyPage,
    /// Each page begins with the last key of the page before.
    Duplicates,
    /// `IsTruncated` without a token.
    NoToken,
    /// 500 on this page, counted from 1.
    FailPage(usize),
}

/// The keys of one bucket and what goes wrong with listing them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Listing {
    /// Key, size in bytes, ETag without quotes.
    pub(crate) keys: Vec<(String, u64, String)>,
    pub(crate) faults: Vec<ListFault>,
}

/// Reads `sametoken`, `emptypage`, `duplicates`, `notoken`, `failpage=2`, parted by commas.
pub(crate) fn parse(text: &str) -> io::Result<Vec<ListFault>> {
    let words = text
        .split([',', '+'])
        .map(str::trim)
        .filter(|w| !w.is_empty() && *w != "ok");
    let faults = words.map(|word| match (word, word.strip_prefix("failpage=")) {
        ("sametoken", _) => Ok(ListFault::SameToken),
        ("emptypage", _) => Ok(ListFault::EmptyPage),
        ("duplicates", _) => Ok(ListFault::Duplicates),
        ("notoken", _) => Ok(ListFault::NoToken),
        (_, Some(page)) if page.parse::<usize>().is_ok() => {
            Ok(ListFault::FailPage(page.parse().unwrap_or(1)))
        }
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("no such fault: {word}"),
        )),
    });
    faults.collect()
}

/// Where a token leads: the page, counted from 0, and the first key of it.
fn place(token: Option<&str>) -> (usize, usize) {
    let read = |token: &str| {
        let (page, key) = token
            .strip_prefix("+/")?
            .strip_suffix("==")?
            .split_once('.')?;
        Some((page.parse().ok()?, key.parse().ok()?))
    };
    token.and_then(read).unwrap_or((0, 0))
}

/// The XML of a page, or None where it is to fail.
pub(crate) fn page(listing: &Listing, bucket: &str, request: &Request) -> Option<String> {
    let has = |fault| listing.faults.contains(&fault);
    let prefix = request.parameter("prefix").unwrap_or("");
    let show = |key: &str| match request.parameter("encoding-type") {
        Some("url") => encode(key),
        _ => key
            .replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;"),
    };
    let token = request.parameter("continuation-token");
    let (number, start) = place(token);
    if has(ListFault::FailPage(number + 1)) {
        return None;
    }
    let limit = request
        .parameter("max-keys")
        .and_then(|m| m.parse().ok())
        .unwrap_or(1000);
    let keys: Vec<_> = listing
        .keys
        .iter()
        .filter(|(key, ..)| key.starts_with(prefix))
        .collect();
    let empty = number == 0 && has(ListFault::EmptyPage);
    let end = if empty {
        start
    } else {
        keys.len().min(start.saturating_add(limit))
    };
    let start = start.min(end);
    let first = if has(ListFault::Duplicates) {
        start.saturating_sub(1)
    } else {
        start
    };
    let again = has(ListFault::SameToken) || has(ListFault::NoToken);
    let more = end < keys.len() || again;

    // Writing to a String cannot fail.
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult>");
    let _ = write!(
        xml,
        "<Name>{bucket}</Name><Prefix>{}</Prefix>",
        show(prefix)
    );
    let _ = write!(
        xml,
        "<MaxKeys>{limit}</MaxKeys><KeyCount>{}</KeyCount>",
        end - first
    );
    let _ = write!(xml, "<IsTruncated>{more}</IsTruncated>");
    if more && !has(ListFault::NoToken) {
        let next = match token {
            Some(token) if has(ListFault::SameToken) => token.to_owned(),
            _ => format!("+/{}.{end}==", number + 1),
        };
        let _ = write!(xml, "<NextContinuationToken>{next}</NextContinuationToken>");
    }
    for (key, size, etag) in &keys[first..end] {
        let _ = write!(xml, "<Contents><Key>{}</Key><Size>{size}</Size>", show(key));
        xml.push_str("<LastModified>2026-01-01T00:00:00.000Z</LastModified>");
        let _ = write!(xml, "<ETag>&quot;{etag}&quot;</ETag>");
        xml.push_str("<StorageClass>STANDARD</StorageClass></Contents>");
    }
    xml.push_str("</ListBucketResult>");
    Some(xml)
}
