//! Chunked bodies (RFC 9112, 7.1): which of the bytes that come in are the body's.

use std::ops::Range;

use super::failure::Failure;

/// A chunk-size line or a trailer line longer than this is refused.
const MAX_LINE: usize = 4096;

/// Trailer lines, all together.
const MAX_TRAILERS: usize = 16 << 10;

/// Where in the framing the next byte stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Size,
    Payload(u64),
    PayloadEnd,
    Trailer,
    End,
}

/// Takes the framing off, over any split of the input.
#[derive(Debug)]
pub(super) struct Chunks {
    at: At,
    /// The line being gathered.
    line: Vec<u8>,
    trailer_bytes: usize,
}

impl Chunks {
    pub(super) fn new() -> Self {
        Self {
            at: At::Size,
            line: Vec::new(),
            trailer_bytes: 0,
        }
    }

    /// Whether the last chunk and its trailers are behind us.
    pub(super) fn is_ended(&self) -> bool {
        self.at == At::End
    }

    /// Looks at the front of `input`: how many bytes of it are dealt with, and where among them body bytes lie.
    /// At most `most` body bytes are given out. Goes forward by at least one byte where there is one and `most > 0`.
    pub(super) fn step(
        &mut self,
        input: &[u8],
        most: usize,
    ) -> Result<(usize, Range<usize>), Failure> {
        if let At::Payload(left) = self.at {
            let len = usize::try_from(left)
                .unwrap_or(usize::MAX)
                .min(input.len())
                .min(most);
            let left = left - len as u64;
            self.at = if left == 0 {
                At::PayloadEnd
            } else {
                At::Payload(left)
            };
            return Ok((len, 0..len));
        }
        let mut used = 0;
        for byte in input {
            if matches!(self.at, At::Payload(_) | At::End) {
                break;
            }
            used += 1;
            if *byte == b'\n' {
                self.end_line()?;
            } else {
                self.line.push(*byte);
                if self.line.len() > MAX_LINE {
                    return Err(Failure::corrupt("a line of the chunked body has no end"));
                }
            }
        }
        Ok((used, 0..0))
    }

    fn end_line(&mut self) -> Result<(), Failure> {
        let line = std::mem::take(&mut self.line);
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        self.at = match self.at {
            At::Size => match chunk_size(line)? {
                0 => At::Trailer,
                size => At::Payload(size),
            },
            At::PayloadEnd if line.is_empty() => At::Size,
            At::PayloadEnd => {
                return Err(Failure::corrupt(
                    "a chunk of the body is longer than it says",
                ));
            }
            At::Trailer if line.is_empty() => At::End,
            At::Trailer => {
                self.trailer_bytes += line.len();
                if self.trailer_bytes > MAX_TRAILERS {
                    return Err(Failure::corrupt("the trailers of the body have no end"));
                }
                At::Trailer
            }
            At::Payload(_) | At::End => self.at,
        };
        Ok(())
    }
}

/// The size at the front of a chunk line; extensions are ignored.
fn chunk_size(line: &[u8]) -> Result<u64, Failure> {
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
    let text = std::str::from_utf8(digits).unwrap_or_default().trim();
    let is_hex = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    u64::from_str_radix(text, 16)
        .ok()
        .filter(|_| is_hex)
        .ok_or_else(|| Failure::corrupt("a chunk of the body has no size"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(input: &[u8], piece: usize) -> Result<(Vec<u8>, bool), Failure> {
        let mut chunks = Chunks::new();
        let mut body = Vec::new();
        for mut part in input.chunks(piece) {
            while !part.is_empty() && !chunks.is_ended() {
                let (used, payload) = chunks.step(part, 3)?;
                body.extend(part[payload].iter());
                part = &part[used..];
            }
        }
        Ok((body, chunks.is_ended()))
    }

    #[test]
    fn decodes_over_any_split() {
        let input = b"4;name=\"x\"\r\nWiki\r\n5\r\npedia\r\nA\nabcdefghij\r\n0\r\nX-Sum: 1\r\n\r\n";
        for piece in 1..=input.len() {
            let (body, is_ended) = decode(input, piece).unwrap();
            assert_eq!(body, b"Wikipediaabcdefghij", "pieces of {piece}");
            assert!(is_ended);
        }
    }

    #[test]
    fn refuses_nonsense() {
        let endless = vec![b'1'; 2 * MAX_LINE];
        let cases: [&[u8]; 6] = [
            b"\r\n",
            b"xyz\r\n",
            b"-1\r\n",
            b"+1\r\n",
            b"1\r\nab\r\n",
            &endless,
        ];
        for input in cases {
            assert!(
                decode(input, 7).is_err(),
                "{:?}",
                &input[..input.len().min(9)]
            );
        }
        assert!(!decode(b"4\r\nWi", 7).unwrap().1);
        assert!(decode(b"fffffffffffffffff\r\n", 7).is_err());
    }
}
