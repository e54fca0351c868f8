//! The XML API of Google Cloud Storage.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use md5::{Digest as _, Md5};

use super::answer::{self, Answer, Found, escape};
use super::objects::{Stored, page};
use super::server::{Access, State};
use crate::fault::request::Request;
use crate::s3_encode;

pub(crate) fn answer(request: &Request, state: &State) -> Answer {
    if let Some(refusal) = refused(request, state) {
        return refusal;
    }
    let (bucket, key) = request.place();
    if !state.buckets.contains(&bucket) {
        return error(404, "NoSuchBucket");
    }
    if key.is_empty() {
        return list(request, state, &bucket);
    }
    let Some(stored) = state.objects.get(&(bucket, key)) else {
        return error(404, "NoSuchKey");
    };
    match answer::object(request, stored) {
        Found::Changed => error(412, "PreconditionFailed"),
        Found::NoRange => {
            let told = format!("bytes */{}", stored.bytes.len());
            error(416, "InvalidRange").with("content-range", told)
        }
        Found::Bytes(answer) => hashes(stored, state.is_lying)
            .into_iter()
            .fold(answer, |answer, hash| answer.with("x-goog-hash", hash))
            .with("x-goog-stored-content-encoding", "identity")
            .with("x-goog-generation", "1"),
    }
}

/// Who may not read is told so as Google does.
fn refused(request: &Request, state: &State) -> Option<Answer> {
    let Access::Token(token) = &state.access else {
        return None;
    };
    match request.header("authorization") {
        None => Some(error(403, "AccessDenied")),
        Some(sent) if sent == format!("Bearer {token}") => None,
        Some(_) => Some(error(401, "AuthenticationRequired")),
    }
}

pub(crate) fn error(status: u16, code: &str) -> Answer {
    let text = format!(
        "<?xml version='1.0' encoding='UTF-8'?><Error><Code>{code}</Code><Message>m</Message><Details>d</Details></Error>"
    );
    Answer::new(status, text).with("content-type", "application/xml; charset=UTF-8")
}

fn list(request: &Request, state: &State, bucket: &str) -> Answer {
    let parameter = |name| request.parameter(name);
    if parameter("list-type") != Some("2") || parameter("encoding-type") != Some("url") {
        return error(400, "InvalidArgument");
    }
    let prefix = parameter("prefix").unwrap_or_default();
    let from = (parameter("continuation-token"), state.page_len);
    let delimiter = parameter("delimiter");
    let Some(page) = page(&state.objects, bucket, prefix, delimiter, from) else {
        return error(400, "InvalidArgument");
    };
    let mut text = format!(
        "<?xml version='1.0' encoding='UTF-8'?><ListBucketResult xmlns='http://doc.s3.amazonaws.com/2006-03-01'>\
         <Name>{bucket}</Name><Prefix>{}</Prefix><EncodingType>url</EncodingType><IsTruncated>{}</IsTruncated>",
        s3_encode(prefix),
        page.next.is_some()
    );
    if let Some(next) = page.next {
        text.push_str(&format!(
            "<NextContinuationToken>{next}</NextContinuationToken>"
        ));
    }
    for (key, stored) in page.objects {
        text.push_str(&format!(
            "<Contents><Key>{}</Key><Generation>1</Generation><MetaGeneration>1</MetaGeneration>\
             <LastModified>1994-11-06T08:49:37.000Z</LastModified><ETag>{}</ETag><Size>{}</Size></Contents>",
            s3_encode(&key),
            escape(&stored.etag),
            stored.bytes.len()
        ));
    }
    for prefix in page.prefixes {
        let prefix = s3_encode(&prefix);
        text.push_str(&format!(
            "<CommonPrefixes><Prefix>{prefix}</Prefix></CommonPrefixes>"
        ));
    }
    text.push_str("</ListBucketResult>");
    Answer::new(200, text).with("content-type", "application/xml; charset=UTF-8")
}

/// Both checksums, one header each, as Google sends them.
fn hashes(stored: &Stored, is_lying: bool) -> [String; 2] {
    let sum = crc32c(&stored.bytes) ^ u32::from(is_lying);
    [
        format!("crc32c={}", BASE64_STANDARD.encode(sum.to_be_bytes())),
        format!("md5={}", BASE64_STANDARD.encode(Md5::digest(&stored.bytes))),
    ]
}

/// CRC-32C (Castagnoli), bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let sum = bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            (sum >> 1) ^ (0x82F6_3B78 & (sum & 1).wrapping_neg())
        })
    });
    !sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_the_catalogue() {
        assert_eq!(crc32c(b"123456789"), 0xE306_9283);
    }
}
