//! Whatever a server sends: heads and chunked bodies are parsed without a panic, and alike over any split.

use super::chunked::Chunks;
use super::head::{Head, MAX_HEAD};
use crate::fuzzing::fuzz;
use crate::store::dates;
use crate::store::origin::ContentRange;

#[test]
fn fuzz_heads() {
    let seeds: [&[u8]; 4] = [
        b"HTTP/1.1 206 Partial Content\r\nContent-Length: 8388608\r\nContent-Range: bytes 0-8388607/268435456\r\n\
          ETag: \"9b2cf535f27731c974343645a3985328-2\"\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n",
        b"HTTP/1.0 301 Moved\r\nlocation: https://elsewhere/\r\nx-amz-bucket-region: eu-west-1\r\nretry-after: 3\r\n\r\n",
        b"HTTP/1.1 416 X\r\ncontent-length: 0\r\ncontent-length: 0, 0\r\ncontent-range: bytes */100\r\n\r\n",
    ];
    let words: [&[u8]; 12] = [
        b"\r\n",
        b"\n",
        b": ",
        b"\0",
        b"content-length: ",
        b"18446744073709551615",
        b"-1",
        b"transfer-encoding: chunked\r\n",
        b"content-range: bytes ",
        b"9223372036854775808-",
        b"HTTP/1.1 ",
        b"\xff",
    ];
    fuzz(&seeds, &words, |input| {
        let whole = Head::parse(input);
        if let Ok(Some((head, len))) = &whole {
            assert!((1..=input.len()).contains(len));
            // No byte behind the head changes what it says, and no head is found before it is complete.
            assert!(matches!(Head::parse(&input[..*len]), Ok(Some((_, same))) if same == *len));
            assert!(!matches!(Head::parse(&input[..len - 1]), Ok(Some(_))));
            drop(head.framing(false));
            drop(head.framing(true));
            let _kept = head.is_keeping_alive();
            if let Some(range) = ContentRange::read(head)
                && let Some((from, to)) = range.bytes
            {
                assert!(from < to && range.total.is_none_or(|total| to <= total));
            }
            let _time = head.header("last-modified").and_then(dates::from_http);
        }
        if let Ok(None) = whole {
            assert!(input.len() < MAX_HEAD);
        }
    });
}

/// The body, whether it ended, and whether it was refused.
fn body_of(input: &[u8], piece: usize) -> (Vec<u8>, bool, bool) {
    let mut chunks = Chunks::new();
    let mut body = Vec::new();
    for mut part in input.chunks(piece) {
        while !part.is_empty() && !chunks.is_ended() {
            let Ok((used, payload)) = chunks.step(part, piece) else {
                return (body, false, true);
            };
            assert!(used > 0 && payload.end <= used);
            body.extend(part[payload].iter());
            part = &part[used..];
        }
    }
    (body, chunks.is_ended(), false)
}

#[test]
fn fuzz_chunked_bodies() {
    let seeds: [&[u8]; 3] = [
        b"4;name=\"x\"\r\nWiki\r\n5\r\npedia\r\nA\nabcdefghij\r\n0\r\nX-Sum: 1\r\n\r\n",
        b"0\r\n\r\n",
        b"10\r\n0123456789abcdef\r\n1\r\nx\r\n0\r\n\r\n",
    ];
    let words: [&[u8]; 8] = [
        b"\r\n",
        b"\n",
        b"0\r\n",
        b"ffffffffffffffff\r\n",
        b"fffffffffffffffff\r\n",
        b"-1\r\n",
        b";",
        b"\r\n\r\n",
    ];
    fuzz(&seeds, &words, |input| {
        let whole = body_of(input, input.len().max(1));
        for piece in [1, 2, 3, 7, 61] {
            assert_eq!(body_of(input, piece), whole, "in pieces of {piece}");
        }
    });
}
