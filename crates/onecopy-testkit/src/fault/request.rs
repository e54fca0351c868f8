//! A request as it came in, read by hand.

use std::io::{self, BufRead, BufReader, Read};

use percent_encoding::percent_decode_str;

/// No client of S3 sends a head beyond this.
const MAX_HEAD_BYTES: u64 = 64 << 10;

/// The parts of a request that faults depend on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// The target as it was on the wire, without the query.
    pub(crate) path: String,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// Reads the next request; None when the client is done.
    pub(crate) fn read(from: &mut BufReader<impl Read>) -> io::Result<Option<Self>> {
        let mut head = from.by_ref().take(MAX_HEAD_BYTES);
        let mut line = String::new();
        if head.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let mut words = line.split_ascii_whitespace().map(str::to_owned);
        let method = words.next().unwrap_or_default();
        let target = words.next().unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let query = query
            .split('&')
            .filter(|part| !part.is_empty())
            .map(|part| {
                let (name, value) = part.split_once('=').unwrap_or((part, ""));
                (decode(name), decode(&value.replace('+', " ")))
            });
        let mut request = Self {
            method,
            path: path.to_owned(),
            query: query.collect(),
            ..Self::default()
        };
        loop {
            let mut line = String::new();
            if head.read_line(&mut line)? == 0 {
                return Ok(None);
            }
            let Some((name, value)) = line.trim_end().split_once(':') else {
                break;
            };
            request
                .headers
                .push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        if let Some(length) = request
            .header("content-length")
            .and_then(|l| l.parse().ok())
        {
            from.by_ref().take(length).read_to_end(&mut request.body)?;
        }
        Ok(Some(request))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.query
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, value)| value.as_str())
    }

    /// The bucket and the key, decoded; the key is empty for the bucket itself.
    pub(crate) fn place(&self) -> (String, String) {
        let path = self.path.strip_prefix('/').unwrap_or(&self.path);
        let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
        (decode(bucket), decode(key))
    }

    /// The range that is asked of an object of `size` bytes, as [start, end); Err for one that
    /// cannot be satisfied, and None where the header is missing or of another form.
    pub(crate) fn range(&self, size: u64) -> Option<Result<(u64, u64), ()>> {
        let (first, last) = self
            .header("range")?
            .strip_prefix("bytes=")?
            .split_once('-')?;
        let (start, end) = if first.is_empty() {
            (size.saturating_sub(last.parse().ok()?), size)
        } else if last.is_empty() {
            (first.parse().ok()?, size)
        } else {
            (
                first.parse().ok()?,
                last.parse::<u64>().ok()?.saturating_add(1).min(size),
            )
        };
        Some(if start < end {
            Ok((start, end))
        } else {
            Err(())
        })
    }
}

fn decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}
