//! What stores on HTTP have in common: how a range is asked for, and what of the answers is believed.

use http::{HeaderMap, HeaderValue, Method, header};

use super::checksum::{Algorithm, Checksum, Sum};
use super::http1::{Answer, Client, Failure, Head};
use super::retry::Retry;
use super::{BoxFuture, ETag, Object, dates};
use crate::error::{ErrorKind, Result};
use crate::ledger::Ledger;

/// A store on HTTP, as reading sees it.
pub(super) trait Origin: Send + Sync + std::fmt::Debug {
    fn client(&self) -> &Client;

    /// Asks once for `object`: signed where that is needed, and led on by answers that say how to ask, as far as that is
    /// safe. `conditions` (Range, If-Match) need not be signed, and so an odd ETag cannot break a signature.
    fn ask<'a>(
        &'a self,
        method: Method,
        object: &'a Object,
        conditions: HeaderMap,
        ledger: Option<&'a Ledger>,
    ) -> BoxFuture<'a, Result<Answer, Failure>>;

    /// Whether an answer that calls itself a success looks like an error text or a web page instead. `is_range_ignored`
    /// where a range was asked for and all of something came.
    fn is_disguised(&self, _head: &Head, _is_range_ignored: bool) -> bool {
        false
    }

    /// How the bytes of a range of `object` are to be summed up while they pass. None where the store gives no checksum,
    /// or none that ranges can be held against.
    fn summing<'a>(
        &'a self,
        _object: &'a Object,
        _ledger: &'a Ledger,
    ) -> BoxFuture<'a, Option<Algorithm>> {
        Box::pin(std::future::ready(None))
    }

    /// Takes note of what a look-up of `object` told besides.
    fn found(&self, _object: &Object, _head: &Head) {}

    /// The checksum that an answer with the whole of an object brings along.
    fn expected(&self, _head: &Head) -> Option<Checksum> {
        None
    }

    /// Holds the bytes that have passed from `offset` on, and those of other ranges, against the store's checksum.
    fn passed(
        &self,
        _object: &Object,
        _offset: u64,
        _sum: Sum,
        _ledger: &Ledger,
    ) -> Result<(), Failure> {
        Ok(())
    }

    /// What an answer that is no success means.
    fn refused<'a>(&'a self, method: &'a Method, answer: Answer) -> BoxFuture<'a, Failure>;
}

/// Looks an object up.
pub(super) async fn head(origin: &dyn Origin, object: &Object) -> Result<Object> {
    let mut retry = Retry::new(origin.client());
    loop {
        match head_once(origin, object).await {
            Ok(found) => {
                retry.succeeded();
                return Ok(found);
            }
            Err(failure) => {
                let next = retry.after(failure).await;
                next.map_err(|failure| failure.into_error("look up", &*object.url))?;
            }
        }
    }
}

async fn head_once(origin: &dyn Origin, object: &Object) -> Result<Object, Failure> {
    let asked = origin.ask(Method::HEAD, object, HeaderMap::new(), None);
    let answer = asked.await?;
    if answer.head.status != 200 || origin.is_disguised(&answer.head, false) {
        return Err(origin.refused(&Method::HEAD, answer).await);
    }
    let way = answer.way();
    let mut found = object.clone();
    let length = answer.head.content_length();
    found.len_bytes = length.map_err(|failure| failure.on(&way))?;
    found.etag = etag(&answer.head);
    found.modified_unix = modified(&answer.head);
    origin.found(&found, &answer.head);
    // Nothing follows the head; a server that sends something all the same loses its connection.
    let _is_kept = answer.body.finish().await?;
    Ok(found)
}

/// The ETag of an answer.
pub(super) fn etag(head: &Head) -> Option<ETag> {
    head.header("etag")
        .filter(|text| !text.is_empty())
        .map(|text| ETag(text.into()))
}

/// The `Last-Modified` of an answer, in seconds since the epoch.
pub(super) fn modified(head: &Head) -> Option<i64> {
    head.header("last-modified").and_then(dates::from_http)
}

/// `If-Match`, where the version is known and its tag may stand there as it came (RFC 9110, 8.8.3 and 13.1.1): in quotes,
/// and not weak, since a weak one never matches. Any other is only compared: a server that gives out tags without quotes
/// does not know them with quotes.
pub(super) fn if_match(object: &Object) -> Option<HeaderValue> {
    let tag = &*object.etag.as_ref()?.0;
    let inner = tag.strip_prefix('"')?.strip_suffix('"')?;
    let is_tag = |byte: u8| byte == 0x21 || (0x23..0x7f).contains(&byte);
    let is_valid = inner.bytes().all(is_tag);
    is_valid.then(|| HeaderValue::from_str(tag).ok()).flatten()
}

/// Notes the version that an answer tells in `object`, or holds it against the one that is known. Where there is no ETag,
/// the time of the last change has to do.
pub(super) fn check_version(
    object: &mut Object,
    head: &Head,
    ledger: &Ledger,
) -> Result<(), Failure> {
    let now = etag(head);
    if now.is_none() {
        ledger.warned("etag_missing");
    }
    if let (Some(known), Some(now)) = (&object.etag, &now) {
        if known != now {
            return Err(changed("another version of it came back"));
        }
    } else if let (Some(known), Some(now)) = (object.modified_unix, modified(head))
        // A listing may round to the next second.
        && known.abs_diff(now) > 1
    {
        return Err(changed("it was changed at another time"));
    }
    // From here on in the form that its header has, which is the one that can be sent back.
    object.etag = now.or(object.etag.take());
    Ok(())
}

/// An object that is no longer the one whose reading began.
pub(super) fn changed(why: &str) -> Failure {
    Failure::new(
        ErrorKind::Changed,
        "changed",
        format!("the object changed: {why}"),
    )
    .with_help("start again: what was read before belongs to the version before")
}

/// A body that ended before its time.
pub(super) fn short(missing: u64) -> Failure {
    let why = format!("the body ended {missing} bytes early");
    Failure::new(ErrorKind::Truncated, "short_body", why)
}

/// Bytes that were asked for where the object has none.
pub(super) fn past_the_end(len: Option<u64>) -> Failure {
    let why = match len {
        Some(len) => format!("the object has only {len} bytes"),
        None => "the object ends before that".to_owned(),
    };
    Failure::new(ErrorKind::InvalidInput, "past_the_end", why)
        .with_help("look it up or list it anew: it may have become shorter")
}

/// The whole of an object that does not fit where a range was asked for.
pub(super) fn ignores_ranges() -> Failure {
    let why = "the server sent the whole object where a range was asked for";
    Failure::new(ErrorKind::Unsupported, "no_ranges", why)
        .with_help("use a server (or a proxy) that answers Range requests")
}

/// Bytes that are not those that the store has the checksum of.
pub(super) fn wrong_bytes(algorithm: Algorithm) -> Failure {
    let name = algorithm.name();
    let why = format!("its bytes do not have the {name} that the store has of it");
    Failure::new(ErrorKind::Corrupt, "checksum", why).with_help(
        "read it again; where that fails too, the object is damaged: write it anew. \
         `no_verify_checksum` reads it all the same",
    )
}

/// `bytes=from-last` for `[from, to)`.
pub(super) fn range(from: u64, to: u64) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Ok(value) = HeaderValue::from_str(&format!("bytes={from}-{}", to.saturating_sub(1))) {
        headers.insert(header::RANGE, value);
    }
    headers
}

/// A `Content-Range`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ContentRange {
    /// `[from, to)`, where the answer has bytes.
    pub(super) bytes: Option<(u64, u64)>,
    /// The length of the object, where it is told.
    pub(super) total: Option<u64>,
}

impl ContentRange {
    /// Reads `bytes 0-7/100`, `bytes 0-7/*`, `bytes */100`.
    pub(super) fn read(head: &Head) -> Option<Self> {
        Self::parse(head.header("content-range")?)
    }

    fn parse(text: &str) -> Option<Self> {
        let (unit, rest) = text.split_once(' ')?;
        if !unit.eq_ignore_ascii_case("bytes") {
            return None;
        }
        let (bytes, total) = rest.trim().split_once('/')?;
        let total = match total {
            "*" => None,
            digits => Some(digits.parse().ok()?),
        };
        let bytes = match bytes {
            "*" => None,
            range => {
                let (from, last) = range.split_once('-')?;
                let (from, last): (u64, u64) = (from.parse().ok()?, last.parse().ok()?);
                let to = last.checked_add(1)?;
                if from >= to || total.is_some_and(|total| to > total) {
                    return None;
                }
                Some((from, to))
            }
        };
        Some(Self { bytes, total })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_ranges_are_read_exactly_or_not_at_all() {
        let range = |bytes, total| Some(ContentRange { bytes, total });
        assert_eq!(
            ContentRange::parse("bytes 0-7/100"),
            range(Some((0, 8)), Some(100))
        );
        assert_eq!(
            ContentRange::parse("Bytes 5-5/*"),
            range(Some((5, 6)), None)
        );
        assert_eq!(ContentRange::parse("bytes */0"), range(None, Some(0)));
        for text in [
            "bytes 7-0/100",
            "bytes 0-100/100",
            "bytes 0-18446744073709551615/*",
            "items 0-7/100",
            "bytes 0-7",
            "bytes a-7/9",
            "",
        ] {
            assert_eq!(ContentRange::parse(text), None, "{text:?}");
        }
    }
}
