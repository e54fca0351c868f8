//! The language of faults.

use std::io;
use std::str::FromStr;
use std::time::Duration;

/// What can go wrong with an answer. Lengths count bytes of this answer's body.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fault {
    FirstByte(Duration),
    Hang,
    Rate(u64),
    Cut(u64),
    Reset(u64),
    Stall(u64),
    Short,
    Long,
    WrongRange,
    NoRange,
    Status(u16),
    Code(String),
    NoBody,
    RetryAfter(u64),
    CloseAfter(u64),
    NoETag,
    ETagChanges,
    ETagWeak,
    ETagUnquoted,
    IgnoreIfMatch,
    Html,
    XmlError,
    Chunked,
    SplitHead,
    Continue,
    BigHead,
    TwoLengths,
    Http10,
    Flip(u64),
    Sum,
}

/// A list of faults, parted by `,` or `+`.
///
/// | word | what happens |
/// |---|---|
/// | `ok` | nothing |
/// | `ttfb=200ms` | the head comes late |
/// | `hang` | no answer until the client goes away; first request only |
/// | `rate=1MBps`, `drip=1Bps` | the body comes at this rate |
/// | `cut=1000`, `reset=1000`, `stall=1000` | after so many bytes of body: FIN, RST, silence |
/// | `short`, `long` | `Content-Length` is one below, one above what is sent; then FIN |
/// | `wrongrange` | `Content-Range` tells another place |
/// | `norange` | 200 and the whole object, whatever range was asked |
/// | `flip=1000` | one wrong bit in the byte at this offset of the body |
/// | `status=503` | an error with the XML of S3 (`code=ExpiredToken`, `nobody`, `retryafter=1`) |
/// | `closeafter=5` | `Connection: close` on the fifth request of a connection |
/// | `noetag`, `etag=weak`, `etag=unquoted` | odd ETags |
/// | `etag=change` | another ETag from the second answer on |
/// | `ignoreifmatch` | 200 or 206 even if the ETag is another |
/// | `html`, `xmlerror` | 200 with a web page, 200 with `<Error>` |
/// | `chunked` | `Transfer-Encoding: chunked`, with an extension and a trailer |
/// | `splithead` | the head comes byte by byte |
/// | `100continue` | 100 and 103 come before the answer |
/// | `bighead` | a head of more than 64 KiB |
/// | `dupelen` | two `Content-Length` that differ |
/// | `sum` | the CRC64NVME of the whole object is told where it is asked for |
/// | `http10` | the answer is HTTP/1.0, and the connection ends with it |
///
/// `x3` behind a word limits it to the first three GETs of the key, `x*` to none. Without it,
/// what damages an answer (and status 429 and 5xx) happens once, and what colours it always.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Script {
    faults: Vec<(Fault, u64)>,
}

impl Script {
    /// The faults of the request with this number, counted per key from 0.
    pub(crate) fn at(&self, number: u64) -> Vec<Fault> {
        let active = self.faults.iter().filter(|(_, times)| number < *times);
        active.map(|(fault, _)| fault.clone()).collect()
    }
}

impl FromStr for Script {
    type Err = io::Error;

    fn from_str(text: &str) -> io::Result<Self> {
        let words = text
            .split([',', '+'])
            .map(str::trim)
            .filter(|w| !w.is_empty() && *w != "ok");
        let faults = words.map(|word| {
            parse(word).ok_or_else(|| {
                io::Error::new(
                    io::ErrorKind::InvalidInput,
                    format!("no such fault: {word}"),
                )
            })
        });
        Ok(Self {
            faults: faults.collect::<io::Result<_>>()?,
        })
    }
}

fn parse(word: &str) -> Option<(Fault, u64)> {
    let (rest, times) = match word.rsplit_once('x') {
        Some((rest, "*")) => (rest, Some(u64::MAX)),
        Some((rest, count)) if count.parse::<u64>().is_ok() => (rest, count.parse().ok()),
        _ => (word, None),
    };
    let (name, value) = rest.split_once('=').unwrap_or((rest, ""));
    let fault = fault(name, value)?;
    let once = match &fault {
        Fault::Status(status) => *status == 429 || *status >= 500,
        Fault::Hang | Fault::Cut(_) | Fault::Reset(_) | Fault::Stall(_) | Fault::Flip(_) => true,
        Fault::Short | Fault::Long | Fault::WrongRange | Fault::TwoLengths => true,
        Fault::Html | Fault::XmlError | Fault::BigHead => true,
        _ => false,
    };
    Some((fault, times.unwrap_or(if once { 1 } else { u64::MAX })))
}

fn fault(name: &str, value: &str) -> Option<Fault> {
    Some(match (name, value) {
        ("ttfb", time) => Fault::FirstByte(duration(time)?),
        ("hang", "") => Fault::Hang,
        ("rate" | "drip", rate) => Fault::Rate(size(rate.strip_suffix("ps")?)?.max(1)),
        ("cut", bytes) => Fault::Cut(size(bytes)?),
        ("reset", bytes) => Fault::Reset(size(bytes)?),
        ("stall", bytes) => Fault::Stall(size(bytes)?),
        ("flip", offset) => Fault::Flip(size(offset)?),
        ("short", "") => Fault::Short,
        ("long", "") => Fault::Long,
        ("wrongrange", "") => Fault::WrongRange,
        ("norange", "") => Fault::NoRange,
        ("status", status) => Fault::Status(status.parse().ok()?),
        ("code", code) => Fault::Code(code.to_owned()),
        ("nobody", "") => Fault::NoBody,
        ("retryafter", seconds) => Fault::RetryAfter(seconds.parse().ok()?),
        ("closeafter", requests) => Fault::CloseAfter(requests.parse().ok()?),
        ("noetag", "") => Fault::NoETag,
        ("etag", "change") => Fault::ETagChanges,
        ("etag", "weak") => Fault::ETagWeak,
        ("etag", "unquoted") => Fault::ETagUnquoted,
        ("ignoreifmatch", "") => Fault::IgnoreIfMatch,
        ("html", "") => Fault::Html,
        ("xmlerror", "") => Fault::XmlError,
        ("chunked", "") => Fault::Chunked,
        ("splithead", "") => Fault::SplitHead,
        ("100continue", "") => Fault::Continue,
        ("bighead", "") => Fault::BigHead,
        ("dupelen", "") => Fault::TwoLengths,
        ("http10", "") => Fault::Http10,
        ("sum", "") => Fault::Sum,
        _ => return None,
    })
}

fn duration(text: &str) -> Option<Duration> {
    if let Some(milliseconds) = text.strip_suffix("ms") {
        return Some(Duration::from_millis(milliseconds.parse().ok()?));
    }
    Some(Duration::from_secs(text.strip_suffix('s')?.parse().ok()?))
}

/// Reads `1000`, `8MiB`, `1MB`, `64k`.
pub(crate) fn size(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit = match unit {
        "" | "B" => 1,
        "k" | "kB" | "KB" => 1000,
        "KiB" => 1 << 10,
        "M" | "MB" => 1_000_000,
        "MiB" => 1 << 20,
        "G" | "GB" => 1_000_000_000,
        "GiB" => 1 << 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_damage_to_the_first_request_and_colour_to_none() {
        let script: Script = "cut=1k,status=503x2+etag=weak,rate=1MBps,flip=3x*"
            .parse()
            .unwrap();
        let rate = Fault::Rate(1_000_000);
        let always = [Fault::ETagWeak, rate, Fault::Flip(3)];
        let with = |more: &[Fault]| [more, &always].concat();
        assert_eq!(script.at(0), with(&[Fault::Cut(1000), Fault::Status(503)]));
        assert_eq!(script.at(1), with(&[Fault::Status(503)]));
        assert_eq!(script.at(2), always);
    }

    #[test]
    fn names_the_word_that_it_does_not_know() {
        let error = "cut=5,nonsense=1".parse::<Script>().unwrap_err();
        assert_eq!(error.to_string(), "no such fault: nonsense=1");
    }
}
