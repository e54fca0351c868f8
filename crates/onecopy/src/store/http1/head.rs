//! The head of an answer.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue};

use super::super::dates;
use super::failure::Failure;
use crate::error::ErrorKind;

/// A head longer than this is refused: S3's have some 500 bytes, and user metadata may add 2 KiB.
pub(super) const MAX_HEAD: usize = 64 << 10;

/// What a record of TLS begins with (RFC 8446, 5.1), before the 3 of its version.
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;

/// Header lines at most; the length limit is the one that matters.
const MAX_HEADERS: usize = 256;

/// Status and headers.
#[derive(Debug)]
pub(in crate::store) struct Head {
    pub(in crate::store) status: u16,
    pub(in crate::store) headers: HeaderMap,
    /// Whether the answer was HTTP/1.1 rather than 1.0.
    is_persistent_version: bool,
}

/// How the body is delimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum Framing {
    /// By its length; 0 also where there is none.
    Length(u64),
    /// In chunks that carry their own lengths.
    Chunked,
    /// By the end of the connection.
    UntilClose,
}

impl Head {
    /// Parses the head at the front of `bytes`: it and its length, or none where it has not all arrived.
    pub(in crate::store) fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, Failure> {
        if let [ALERT | HANDSHAKE, 3, ..] = bytes {
            let why = "the other side speaks TLS, and plain HTTP was spoken to it";
            let failure = Failure::new(ErrorKind::Unreachable, "wants_tls", why);
            return Err(failure.final_now());
        }
        let mut lines = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut parsed = httparse::Response::new(&mut lines);
        let bad = |error: httparse::Error| {
            Failure::corrupt(format!("the answer is not HTTP ({error})"))
                .with_help("check the endpoint: does it speak S3 or HTTP, and does it want https?")
        };
        let httparse::Status::Complete(len) = parsed.parse(bytes).map_err(bad)? else {
            return Ok(None);
        };
        let mut headers = HeaderMap::with_capacity(parsed.headers.len());
        for line in parsed.headers.iter() {
            let name = HeaderName::from_bytes(line.name.as_bytes());
            let value = HeaderValue::from_bytes(line.value);
            // A line that is no header by the letter of the RFC is of no use to us, and no reason to fail.
            if let (Ok(name), Ok(value)) = (name, value) {
                headers.append(name, value);
            }
        }
        let head = Self {
            status: parsed.code.unwrap_or_default(),
            headers,
            is_persistent_version: parsed.version == Some(1),
        };
        Ok(Some((head, len)))
    }

    /// The header, where there is exactly one that is text.
    pub(in crate::store) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok().map(str::trim)
    }

    pub(in crate::store) fn is_interim(&self) -> bool {
        (100..200).contains(&self.status)
    }

    /// How the body is delimited (RFC 9112, 6.3).
    pub(in crate::store) fn framing(&self, is_answer_to_head: bool) -> Result<Framing, Failure> {
        if is_answer_to_head || self.status == 204 || self.status == 304 {
            return Ok(Framing::Length(0));
        }
        let mut encodings = self.values("transfer-encoding");
        if let Some(first) = encodings.next() {
            if !first.eq_ignore_ascii_case("chunked") || encodings.next().is_some() {
                return Err(Failure::corrupt(format!(
                    "the answer has the transfer encoding {first:?}, which was not asked for"
                )));
            }
            return Ok(Framing::Chunked);
        }
        Ok(self
            .content_length()?
            .map_or(Framing::UntilClose, Framing::Length))
    }

    /// The promised length; several that agree are one.
    pub(in crate::store) fn content_length(&self) -> Result<Option<u64>, Failure> {
        let mut length = None;
        for text in self.values("content-length") {
            let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let Some(value) = text.parse::<u64>().ok().filter(|_| is_digits) else {
                return Err(Failure::corrupt(format!(
                    "the Content-Length {text:?} is no number"
                )));
            };
            if length.is_some_and(|first| first != value) {
                return Err(Failure::corrupt(
                    "the answer has two differing Content-Lengths",
                ));
            }
            length = Some(value);
        }
        Ok(length)
    }

    /// Whether the connection may serve another request once the body is read.
    pub(super) fn is_keeping_alive(&self) -> bool {
        let says = |word: &str| {
            self.values("connection")
                .any(|v| v.eq_ignore_ascii_case(word))
        };
        // Both delimiters at once smell of request smuggling (RFC 9112, 6.1): such a connection is not used again.
        let is_ambiguous = self.headers.contains_key("transfer-encoding")
            && self.headers.contains_key("content-length");
        !is_ambiguous && !says("close") && (self.is_persistent_version || says("keep-alive"))
    }

    /// All values of a list header, over all its lines.
    fn values(&self, name: &str) -> impl Iterator<Item = &str> {
        self.headers
            .get_all(name)
            .into_iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|line| line.split(',').map(str::trim))
    }
}

/// A duration out of a `Retry-After` header, in seconds or as a date. A date is held against the server's own clock where
/// it tells it.
pub(in crate::store) fn retry_after(head: &Head) -> Option<Duration> {
    let text = head.header("retry-after")?;
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let then = dates::from_http(text)?;
    let now = head.header("date").and_then(dates::from_http).or_else(|| {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        i64::try_from(now.ok()?.as_secs()).ok()
    })?;
    Some(Duration::from_secs(
        u64::try_from(then.saturating_sub(now)).unwrap_or(0),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_asks_to_wait_is_read_in_both_forms() {
        let wait = |lines: &str| {
            let text = format!("HTTP/1.1 503 S\r\n{lines}\r\n\r\n");
            let head = Head::parse(text.as_bytes()).unwrap().unwrap().0;
            retry_after(&head).map(|wait| wait.as_secs())
        };
        let date = "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
        assert_eq!(wait("Retry-After: 7"), Some(7));
        assert_eq!(
            wait(&format!("{date}Retry-After: Sun, 06 Nov 1994 08:50:07 GMT")),
            Some(30)
        );
        assert_eq!(
            wait(&format!("{date}Retry-After: Sun, 06 Nov 1994 08:00:00 GMT")),
            Some(0)
        );
        assert_eq!(wait("Retry-After: Sun, 06 Nov 1994 08:50:07 GMT"), Some(0));
        for odd in [
            "X: y",
            "Retry-After: soon",
            "Retry-After: -1",
            "Retry-After:",
        ] {
            assert_eq!(wait(odd), None, "{odd}");
        }
    }

    fn head(text: &str) -> Head {
        let text = format!("{text}\r\n\r\n");
        Head::parse(text.as_bytes()).unwrap().unwrap().0
    }

    #[test]
    fn an_unfinished_head_is_none_at_every_length() {
        let text = b"HTTP/1.1 206 Partial Content\r\ncontent-length: 5\r\n\r\n";
        for len in 0..text.len() {
            assert!(Head::parse(&text[..len]).unwrap().is_none(), "{len}");
        }
        let (head, len) = Head::parse(text).unwrap().unwrap();
        assert_eq!((head.status, len), (206, text.len()));
    }

    #[test]
    fn lengths_that_agree_are_one_and_others_are_refused() {
        let same = head("HTTP/1.1 200 OK\r\nContent-Length: 5\r\ncontent-length: 5, 5");
        assert_eq!(same.framing(false).unwrap(), Framing::Length(5));
        for lines in [
            "5\r\nContent-Length: 6",
            "5, 6",
            "+5",
            "-1",
            "",
            "99999999999999999999",
        ] {
            let differing = head(&format!("HTTP/1.1 200 OK\r\nContent-Length: {lines}"));
            assert_eq!(
                differing.framing(false).unwrap_err().cause,
                "bad_answer",
                "{lines:?}"
            );
        }
    }

    #[test]
    fn bodies_are_delimited_as_the_rfc_says() {
        let framing = |text: &str, to_head| head(text).framing(to_head).unwrap();
        assert_eq!(framing("HTTP/1.1 200 OK", false), Framing::UntilClose);
        assert_eq!(framing("HTTP/1.1 204 No", false), Framing::Length(0));
        assert_eq!(
            framing("HTTP/1.1 200 OK\r\nContent-Length: 7", true),
            Framing::Length(0)
        );
        let both = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nTransfer-Encoding: Chunked";
        assert_eq!(framing(both, false), Framing::Chunked);
        assert!(!head(both).is_keeping_alive());
        assert!(
            head("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked")
                .framing(false)
                .is_err()
        );
    }

    #[test]
    fn connections_are_kept_only_where_both_sides_mean_it() {
        assert!(head("HTTP/1.1 200 OK").is_keeping_alive());
        assert!(!head("HTTP/1.1 200 OK\r\nconnection: foo, Close").is_keeping_alive());
        assert!(!head("HTTP/1.0 200 OK").is_keeping_alive());
        assert!(head("HTTP/1.0 200 OK\r\nConnection: keep-alive").is_keeping_alive());
    }

    #[test]
    fn what_is_not_http_is_an_error_with_help() {
        for text in [
            "SSH-2.0-OpenSSH\r\n\r\n",
            "\x15\x03\x01\0\x02",
            "<html></html>\r\n\r\n",
        ] {
            let failure = Head::parse(text.as_bytes()).unwrap_err();
            assert!(failure.help.is_some() || failure.cause == "wants_tls");
        }
    }

    #[test]
    fn no_damage_makes_it_panic() {
        let text =
            b"HTTP/1.1 206 P\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\nX: y\r\n\r\n";
        for at in 0..text.len() {
            for byte in [0, b'\r', b'\n', b' ', b':', b',', 0x7f, 0xff] {
                let mut damaged = text.to_owned();
                damaged[at] = byte;
                if let Ok(Some((head, _))) = Head::parse(&damaged) {
                    let _framing = head.framing(false);
                    let _keeps = head.is_keeping_alive();
                }
            }
        }
    }
}
