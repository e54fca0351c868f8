//! The verbs that read one object: GET and HEAD, with ranges and conditions.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::ops::Range as Bytewise;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use md5::{Digest as _, Md5};
use s3s::dto::*;
use s3s::{Body, S3Result, s3_error};

use super::service::{Api, internal};
use super::store::{Content, Object};

/// Read from a file at once: 1 MiB stays below glibc's limit for fresh mappings, so the allocator
/// recycles pages that were touched before.
const FILE_CHUNK_BYTES: u64 = 1 << 20;

impl Api {
    pub(crate) fn get(&self, input: GetObjectInput) -> S3Result<GetObjectOutput> {
        let object = self.need_object(&input.bucket, &input.key)?;
        check_customer_key(
            &object,
            (
                input.sse_customer_key.as_deref(),
                input.sse_customer_key_md5.as_deref(),
            ),
        )?;
        check_conditions(
            &object,
            input.if_match.as_ref(),
            input.if_none_match.as_ref(),
        )?;
        // S3 tells checksums on demand, and only with the whole object.
        let is_told = input.checksum_mode.is_some() && input.range.is_none();
        let (kept, checksum_type) = self.checksums(&object, is_told)?;
        let (part, content_range) = select(input.range, object.size)?;
        let mut output = GetObjectOutput {
            accept_ranges: Some("bytes".to_owned()),
            checksum_type,
            checksum_crc32: kept.checksum_crc32,
            checksum_crc32c: kept.checksum_crc32c,
            checksum_crc64nvme: kept.checksum_crc64nvme,
            checksum_sha1: kept.checksum_sha1,
            checksum_sha256: kept.checksum_sha256,
            content_length: Some(length(&part)?),
            content_range,
            content_type: content_type(&object),
            content_encoding: object.attributes.content_encoding,
            e_tag: Some(ETag::Strong(object.etag)),
            last_modified: Some(object.modified.into()),
            metadata: object.attributes.metadata,
            ..Default::default()
        };
        output.body = Some(body(object.content, &part)?);
        Ok(output)
    }

    pub(crate) fn head(&self, input: HeadObjectInput) -> S3Result<HeadObjectOutput> {
        let object = self.need_object(&input.bucket, &input.key)?;
        check_customer_key(
            &object,
            (
                input.sse_customer_key.as_deref(),
                input.sse_customer_key_md5.as_deref(),
            ),
        )?;
        check_conditions(
            &object,
            input.if_match.as_ref(),
            input.if_none_match.as_ref(),
        )?;
        let (kept, checksum_type) = self.checksums(&object, input.checksum_mode.is_some())?;
        let (part, content_range) = select(input.range, object.size)?;
        let output = HeadObjectOutput {
            accept_ranges: Some("bytes".to_owned()),
            checksum_type,
            checksum_crc32: kept.checksum_crc32,
            checksum_crc32c: kept.checksum_crc32c,
            checksum_crc64nvme: kept.checksum_crc64nvme,
            checksum_sha1: kept.checksum_sha1,
            checksum_sha256: kept.checksum_sha256,
            content_length: Some(length(&part)?),
            content_range,
            content_type: content_type(&object),
            content_encoding: object.attributes.content_encoding,
            e_tag: Some(ETag::Strong(object.etag)),
            last_modified: Some(object.modified.into()),
            metadata: object.attributes.metadata,
            ..Default::default()
        };
        Ok(output)
    }

    /// The checksums to tell of an object, and their type; none where they are not asked for.
    fn checksums(
        &self,
        object: &Object,
        is_told: bool,
    ) -> S3Result<(Checksum, Option<ChecksumType>)> {
        if !is_told {
            return Ok(Default::default());
        }
        let kept = self.store.checksums(object).map_err(internal)?;
        let kind = ChecksumType::from_static(ChecksumType::FULL_OBJECT);
        let kind = (!kept.is_empty()).then_some(kind);
        Ok((kept.0, kind))
    }
}

fn length(part: &Bytewise<u64>) -> S3Result<i64> {
    i64::try_from(part.end - part.start).map_err(|e| internal(io::Error::other(e)))
}

fn content_type(object: &Object) -> Option<String> {
    let given = object.attributes.content_type.clone();
    Some(given.unwrap_or_else(|| "binary/octet-stream".to_owned()))
}

/// Holds the key of a client, and its MD5, against the object, as S3 does (SSE-C).
fn check_customer_key(object: &Object, given: (Option<&str>, Option<&str>)) -> S3Result<()> {
    match (&object.attributes.customer_key_md5, given) {
        (None, (None, None)) => Ok(()),
        (None, _) => Err(s3_error!(
            InvalidRequest,
            "The encryption parameters are not applicable to this object."
        )),
        (Some(_), (None, _) | (_, None)) => Err(s3_error!(
            InvalidRequest,
            "The object was stored using a form of Server Side Encryption. The correct parameters \
             must be provided to retrieve the object."
        )),
        (Some(md5), (Some(key), Some(given))) => {
            if *given != key_md5(key)? {
                return Err(s3_error!(InvalidArgument, "the MD5 is not that of the key"));
            }
            if given != md5 {
                return Err(s3_error!(AccessDenied, "Access Denied"));
            }
            Ok(())
        }
    }
}

/// The MD5 of a key, both in base64.
fn key_md5(key: &str) -> S3Result<String> {
    let odd = || s3_error!(InvalidArgument, "the key is not base64 of 32 bytes");
    let key = BASE64.decode(key).map_err(|_shows_it| odd())?;
    if key.len() != 32 {
        return Err(odd());
    }
    Ok(BASE64.encode(Md5::digest(&key)))
}

/// Holds the conditions of a GET or HEAD against the object.
fn check_conditions(
    object: &Object,
    if_match: Option<&ETagCondition>,
    if_none_match: Option<&ETagCondition>,
) -> S3Result<()> {
    let is = |condition: &ETagCondition| match condition {
        ETagCondition::Any => true,
        ETagCondition::ETag(etag) => etag.value() == object.etag,
    };
    if if_match.is_some_and(|condition| !is(condition)) {
        return Err(s3_error!(PreconditionFailed, "the object has another ETag"));
    }
    if if_none_match.is_some_and(is) {
        let mut error = s3_error!(NotModified);
        if let Ok(etag) = HeaderValue::from_str(&format!("\"{}\"", object.etag)) {
            error.set_headers(HeaderMap::from_iter([(header::ETAG, etag)]));
        }
        return Err(error);
    }
    Ok(())
}

/// What part of the object to send: all of it, or a range as `Content-Range` tells it.
fn select(range: Option<Range>, size: u64) -> S3Result<(Bytewise<u64>, Option<String>)> {
    let Some(range) = range else {
        return Ok((0..size, None));
    };
    // `s3s` lets a suffix of an empty object pass; S3 does not.
    match range.check(size) {
        Ok(part) if !part.is_empty() => {
            let told = format!("bytes {}-{}/{size}", part.start, part.end - 1);
            Ok((part, Some(told)))
        }
        _ => {
            let mut error = s3_error!(InvalidRange, "the requested range is not satisfiable");
            if let Ok(told) = HeaderValue::from_str(&format!("bytes */{size}")) {
                let xml = HeaderValue::from_static("application/xml");
                let headers = [(header::CONTENT_RANGE, told), (header::CONTENT_TYPE, xml)];
                error.set_headers(HeaderMap::from_iter(headers));
            }
            Err(error)
        }
    }
}

/// The bytes of a part of an object, without a copy from memory, in large pieces from a file.
fn body(content: Content, part: &Bytewise<u64>) -> S3Result<StreamingBlob> {
    match content {
        Content::Memory(bytes) => {
            let at = |offset| usize::try_from(offset).map_err(|e| internal(io::Error::other(e)));
            let piece = bytes.slice(at(part.start)?..at(part.end)?);
            Ok(StreamingBlob::from(Body::from(piece)))
        }
        Content::File(path) => {
            let mut file = File::open(path).map_err(internal)?;
            file.seek(SeekFrom::Start(part.start)).map_err(internal)?;
            let left = part.end - part.start;
            let pieces = futures::stream::try_unfold((file, left), |(file, left)| async move {
                if left == 0 {
                    return Ok::<_, io::Error>(None);
                }
                let read = tokio::task::spawn_blocking(move || read_piece(file, left));
                let (file, piece) = read.await.map_err(io::Error::other)??;
                let left = left - piece.len() as u64;
                Ok(Some((piece, (file, left))))
            });
            Ok(StreamingBlob::wrap(Box::pin(pieces)))
        }
    }
}

fn read_piece(mut file: File, left: u64) -> io::Result<(File, Bytes)> {
    let length = left.min(FILE_CHUNK_BYTES);
    let mut piece = Vec::with_capacity(usize::try_from(length).map_err(io::Error::other)?);
    (&mut file).take(length).read_to_end(&mut piece)?;
    if piece.is_empty() {
        // The file shrank under us; the connection must end, not wait.
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok((file, Bytes::from(piece)))
}
