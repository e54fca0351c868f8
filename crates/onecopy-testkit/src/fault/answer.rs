//! What to answer, decided before the first byte leaves; [`super::connection`] then sends it.

use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use s3s::crypto::{Checksum as _, Crc64Nvme};

use super::body::Pattern;
use super::request::Request;
use super::script::Fault;

/// Summed up at once.
const SUMMED_BYTES: u64 = 64 << 10;

/// The bytes of an object.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    Pattern(Pattern),
    Bytes(Bytes),
    /// A file, of which no more is held than is being sent.
    File(Arc<Path>),
}

impl Content {
    /// `length` bytes from `at` on: a slice of stored ones, or made in the buffer.
    pub(crate) fn take<'b>(
        &'b self,
        at: u64,
        length: u64,
        buffer: &'b mut Vec<u8>,
    ) -> io::Result<&'b [u8]> {
        let index = |offset| usize::try_from(offset).map_err(io::Error::other);
        match self {
            Self::Bytes(bytes) => return Ok(&bytes[index(at)?..index(at + length)?]),
            Self::Pattern(pattern) => {
                buffer.resize(index(length)?, 0);
                pattern.fill(at, buffer);
            }
            Self::File(path) => {
                buffer.resize(index(length)?, 0);
                File::open(path)?.read_exact_at(buffer, at)?;
            }
        }
        Ok(buffer)
    }
}

/// An object that was asked for.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) size: u64,
    /// Without quotes.
    pub(crate) etag: String,
    pub(crate) content: Content,
}

impl Target {
    /// The checksum of the whole, as S3 writes it.
    fn crc64nvme(&self) -> io::Result<String> {
        let mut sum = Crc64Nvme::new();
        let mut buffer = Vec::new();
        let mut at = 0;
        while at < self.size {
            let length = SUMMED_BYTES.min(self.size - at);
            sum.update(self.content.take(at, length, &mut buffer)?);
            at += length;
        }
        Ok(BASE64.encode(sum.finalize()))
    }
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Name and value, in order; may repeat.
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) content: Content,
    /// What is sent of the content, as [start, end).
    pub(crate) range: (u64, u64),
    /// Must the connection end with this answer, because its framing is broken or it says so?
    pub(crate) is_last: bool,
}

impl Answer {
    /// An answer with a body of its own.
    pub(crate) fn text(status: u16, content_type: &str, text: impl Into<Bytes>) -> Self {
        let bytes = text.into();
        let length = bytes.len() as u64;
        Self {
            status,
            headers: vec![
                ("Content-Type", content_type.to_owned()),
                ("Content-Length", length.to_string()),
            ],
            content: Content::Bytes(bytes),
            range: (0, length),
            is_last: false,
        }
    }

    /// An error as S3 tells it.
    pub(crate) fn error(status: u16, code: Option<&str>) -> Self {
        let code = code.unwrap_or_else(|| usual_code(status));
        let xml = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code><Message>as the \
             script says</Message><RequestId>0</RequestId></Error>"
        );
        Self::text(status, "application/xml", xml)
    }

    /// Replaces or adds a header.
    pub(crate) fn set(&mut self, name: &'static str, value: String) {
        self.headers.retain(|(n, _)| *n != name);
        self.headers.push((name, value));
    }

    /// Takes a header away.
    pub(crate) fn unset(&mut self, name: &str) {
        self.headers.retain(|(n, _)| *n != name);
    }

    /// The head as it goes over the wire.
    pub(crate) fn head(&self, version: &str) -> String {
        let mut head = format!("HTTP/{version} {} {}\r\n", self.status, reason(self.status));
        for (name, value) in &self.headers {
            // Writing to a String cannot fail.
            let _ = write!(head, "{name}: {value}\r\n");
        }
        head + "\r\n"
    }
}

fn usual_code(status: u16) -> &'static str {
    match status {
        301 => "PermanentRedirect",
        307 => "TemporaryRedirect",
        400 => "RequestTimeout",
        403 => "AccessDenied",
        404 => "NoSuchKey",
        412 => "PreconditionFailed",
        416 => "InvalidRange",
        429 => "TooManyRequests",
        503 => "SlowDown",
        _ => "InternalError",
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        206 => "Partial Content",
        301 => "Moved Permanently",
        307 => "Temporary Redirect",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        412 => "Precondition Failed",
        416 => "Range Not Satisfiable",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Slow Down",
        _ => "Scripted",
    }
}

/// Answers a GET or HEAD of an object under the faults of this request.
pub(crate) fn object(request: &Request, target: &Target, number: u64, faults: &[Fault]) -> Answer {
    let has = |fault: &Fault| faults.contains(fault);
    if let Some(answer) = instead(faults) {
        return answer;
    }
    let mut etag = target.etag.clone();
    if number > 0 && has(&Fault::ETagChanges) {
        etag = format!("{etag}-changed");
    }
    let shown = if has(&Fault::ETagWeak) {
        format!("W/\"{etag}\"")
    } else if has(&Fault::ETagUnquoted) {
        etag
    } else {
        format!("\"{etag}\"")
    };
    let wanted = request.header("if-match");
    if wanted.is_some_and(|w| w != shown && w != "*") && !has(&Fault::IgnoreIfMatch) {
        return Answer::error(412, None);
    }
    let (range, told) = match request.range(target.size).filter(|_| !has(&Fault::NoRange)) {
        None => ((0, target.size), None),
        Some(Ok(range)) => (range, Some(range)),
        Some(Err(())) => {
            let mut answer = Answer::error(416, None);
            answer.set("Content-Range", format!("bytes */{}", target.size));
            return answer;
        }
    };
    let length = range.1 - range.0;
    let mut answer = Answer {
        status: if told.is_some() { 206 } else { 200 },
        headers: vec![
            ("Content-Type", "binary/octet-stream".to_owned()),
            ("Accept-Ranges", "bytes".to_owned()),
            ("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT".to_owned()),
            ("Content-Length", length.to_string()),
        ],
        content: target.content.clone(),
        range,
        is_last: false,
    };
    if let Some((start, end)) = told {
        let shift = u64::from(has(&Fault::WrongRange));
        let (start, end) = (start + shift, end - 1 + shift);
        answer.set(
            "Content-Range",
            format!("bytes {start}-{end}/{}", target.size),
        );
    }
    if !has(&Fault::NoETag) {
        answer.set("ETag", shown);
    }
    if told.is_none() && has(&Fault::Sum) && request.header("x-amz-checksum-mode").is_some() {
        let Ok(sum) = target.crc64nvme() else {
            return Answer::error(500, None);
        };
        answer.set("x-amz-checksum-type", "FULL_OBJECT".to_owned());
        answer.set("x-amz-checksum-crc64nvme", sum);
    }
    damage_head(&mut answer, length, faults);
    answer
}

/// The answers that come instead of the object.
fn instead(faults: &[Fault]) -> Option<Answer> {
    let code = faults.iter().find_map(|f| {
        if let Fault::Code(code) = f {
            Some(code)
        } else {
            None
        }
    });
    let code = code.map(String::as_str);
    for fault in faults {
        let mut answer = match fault {
            Fault::Status(status) => Answer::error(*status, code),
            Fault::Html => {
                Answer::text(200, "text/html", "<html><body>please log in</body></html>")
            }
            Fault::XmlError => Answer::error(200, code.or(Some("InternalError"))),
            _ => continue,
        };
        if faults.contains(&Fault::NoBody) {
            answer.range = (0, 0);
            answer.set("Content-Length", "0".to_owned());
        }
        for fault in faults {
            if let Fault::RetryAfter(seconds) = fault {
                answer.set("Retry-After", seconds.to_string());
            }
        }
        return Some(answer);
    }
    None
}

/// Breaks what the head says of the length, and makes the head too big.
fn damage_head(answer: &mut Answer, length: u64, faults: &[Fault]) {
    for fault in faults {
        match fault {
            Fault::Short => answer.set("Content-Length", length.saturating_sub(1).to_string()),
            Fault::Long => answer.set("Content-Length", (length + 1).to_string()),
            Fault::TwoLengths => answer
                .headers
                .push(("Content-Length", (length + 1).to_string())),
            Fault::Chunked => {
                answer.unset("Content-Length");
                answer.set("Transfer-Encoding", "chunked".to_owned());
                continue;
            }
            Fault::BigHead => {
                let line = "x".repeat(1000);
                answer
                    .headers
                    .extend((0..70).map(|_| ("X-Filler", line.clone())));
                continue;
            }
            _ => continue,
        }
        answer.is_last = true;
    }
}
