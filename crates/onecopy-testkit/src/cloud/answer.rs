//! An answer, and what both services have in common in answering for an object.

use std::io::{self, Write};

use bytes::Bytes;

use super::objects::Stored;
use crate::fault::request::Request;

/// What is sent back.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn new(status: u16, body: impl Into<Bytes>) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: body.into(),
        }
    }

    pub(crate) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub(crate) fn write(&self, to: &mut impl Write, is_head: bool) -> io::Result<()> {
        let mut head = format!("HTTP/1.1 {} X\r\n", self.status);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("content-length: {}\r\n\r\n", self.body.len()));
        to.write_all(head.as_bytes())?;
        if !is_head {
            to.write_all(&self.body)?;
        }
        to.flush()
    }
}

/// What became of a request for an object that is there.
pub(crate) enum Found {
    Bytes(Answer),
    /// If-Match does not hold.
    Changed,
    /// The range begins at or behind the end.
    NoRange,
}

/// Answers with the object, or the range of it that is asked for.
pub(crate) fn object(request: &Request, stored: &Stored) -> Found {
    if request
        .header("if-match")
        .is_some_and(|tag| tag != stored.etag)
    {
        return Found::Changed;
    }
    let len = stored.bytes.len() as u64;
    let answer = match request.range(len) {
        None => Answer::new(200, stored.bytes.clone()),
        Some(Err(())) => return Found::NoRange,
        Some(Ok((from, to))) => {
            let at = |place: u64| usize::try_from(place).unwrap_or(usize::MAX);
            let part = stored.bytes.slice(at(from)..at(to));
            let told = format!("bytes {from}-{}/{len}", to - 1);
            Answer::new(206, part).with("content-range", told)
        }
    };
    Found::Bytes(
        answer
            .with("etag", &stored.etag)
            .with("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT")
            .with("content-type", "application/octet-stream"),
    )
}

/// Text as XML has it.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
