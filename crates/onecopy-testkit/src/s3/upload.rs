//! The verbs that write: PUT, DELETE, copy, and uploads in parts.

use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use s3s::dto::*;
use s3s::{S3Error, S3ErrorCode, S3Request, S3Result, s3_error};

use super::checksums::Checksums;
use super::multipart::Refusal;
use super::service::{Api, internal};
use super::store::{Attributes, Content, New, Object};

/// Takes a body whole.
async fn collect(body: Option<StreamingBlob>) -> S3Result<Bytes> {
    let Some(mut body) = body else {
        return Ok(Bytes::new());
    };
    let mut whole = BytesMut::new();
    while let Some(piece) = body.next().await {
        whole.extend_from_slice(
            &piece.map_err(|e| S3Error::with_source(S3ErrorCode::IncompleteBody, e))?,
        );
    }
    Ok(whole.freeze())
}

/// Holds `If-Match` and `If-None-Match: *` of a write against what is there.
fn check_conditions(
    now: Option<&str>,
    if_match: Option<&ETagCondition>,
    if_none_match: Option<&ETagCondition>,
) -> S3Result<()> {
    let matches = if_match.is_none_or(|condition| match (condition, now) {
        (_, None) => false,
        (ETagCondition::Any, Some(_)) => true,
        (ETagCondition::ETag(wanted), Some(now)) => wanted.as_strong() == Some(now),
    });
    if !matches || (if_none_match.is_some() && now.is_some()) {
        return Err(s3_error!(
            PreconditionFailed,
            "a condition of the request does not hold"
        ));
    }
    Ok(())
}

impl Api {
    pub(crate) async fn put(
        &self,
        request: S3Request<PutObjectInput>,
    ) -> S3Result<PutObjectOutput> {
        let S3Request {
            input,
            headers,
            trailing_headers,
            ..
        } = request;
        self.need_bucket(&input.bucket)?;
        let bytes = collect(input.body).await?;
        let trailers = trailing_headers.and_then(|t| t.take()).unwrap_or_default();
        let checksums = Checksums::check(&[&headers, &trailers], &bytes)?;
        let now = self
            .store
            .find(&input.bucket, &input.key)
            .map_err(internal)?;
        let now = now.as_ref().map(|object| object.etag.as_str());
        check_conditions(now, input.if_match.as_ref(), input.if_none_match.as_ref())?;
        let attributes = Attributes {
            content_type: input.content_type,
            content_encoding: input.content_encoding,
            metadata: input.metadata,
            checksums,
            customer_key_md5: input.sse_customer_key_md5,
        };
        let new = New::simple(bytes, attributes);
        let e_tag = Some(ETag::Strong(new.etag.clone()));
        self.store
            .put(&input.bucket, &input.key, new)
            .map_err(internal)?;
        Ok(PutObjectOutput {
            e_tag,
            ..Default::default()
        })
    }

    pub(crate) fn begin(
        &self,
        input: CreateMultipartUploadInput,
    ) -> S3Result<CreateMultipartUploadOutput> {
        self.need_bucket(&input.bucket)?;
        let attributes = Attributes {
            content_type: input.content_type,
            content_encoding: input.content_encoding,
            metadata: input.metadata,
            checksums: Checksums::default(),
            customer_key_md5: input.sse_customer_key_md5,
        };
        let id = self.uploads.begin(&input.bucket, &input.key, attributes);
        Ok(CreateMultipartUploadOutput {
            bucket: Some(input.bucket),
            key: Some(input.key),
            upload_id: Some(id),
            ..Default::default()
        })
    }

    pub(crate) async fn part(
        &self,
        request: S3Request<UploadPartInput>,
    ) -> S3Result<UploadPartOutput> {
        let S3Request {
            input,
            headers,
            trailing_headers,
            ..
        } = request;
        let bytes = collect(input.body).await?;
        let trailers = trailing_headers.and_then(|t| t.take()).unwrap_or_default();
        Checksums::check(&[&headers, &trailers], &bytes)?;
        let New { bytes, etag, .. } = New::simple(bytes, Attributes::default());
        self.uploads
            .add(&input.upload_id, input.part_number, etag.clone(), bytes)
            .ok_or_else(|| s3_error!(NoSuchUpload))?;
        Ok(UploadPartOutput {
            e_tag: Some(ETag::Strong(etag)),
            ..Default::default()
        })
    }

    pub(crate) fn complete(
        &self,
        input: CompleteMultipartUploadInput,
    ) -> S3Result<CompleteMultipartUploadOutput> {
        let now = self
            .store
            .find(&input.bucket, &input.key)
            .map_err(internal)?;
        let now = now.as_ref().map(|object| object.etag.as_str());
        check_conditions(now, input.if_match.as_ref(), input.if_none_match.as_ref())?;
        let parts = input
            .multipart_upload
            .and_then(|upload| upload.parts)
            .unwrap_or_default();
        let named: Vec<_> = parts
            .into_iter()
            .map(|part| {
                (
                    part.part_number.unwrap_or(0),
                    part.e_tag.map(ETag::into_value),
                )
            })
            .collect();
        let new = self
            .uploads
            .complete((&input.bucket, &input.key), &input.upload_id, &named)
            .map_err(|refusal| match refusal {
                Refusal::NoSuchUpload => s3_error!(NoSuchUpload),
                Refusal::InvalidPart => s3_error!(InvalidPart),
                Refusal::InvalidPartOrder => s3_error!(InvalidPartOrder),
                Refusal::EntityTooSmall => s3_error!(EntityTooSmall),
            })?;
        let e_tag = Some(ETag::Strong(new.etag.clone()));
        self.store
            .put(&input.bucket, &input.key, new)
            .map_err(internal)?;
        Ok(CompleteMultipartUploadOutput {
            bucket: Some(input.bucket),
            key: Some(input.key),
            e_tag,
            ..Default::default()
        })
    }

    /// The object that a copy reads, and its bytes.
    fn copied(
        &self,
        source: &CopySource,
        if_match: Option<&ETagCondition>,
    ) -> S3Result<(Object, Bytes)> {
        let CopySource::Bucket { bucket, key, .. } = source else {
            return Err(s3_error!(NotImplemented));
        };
        let source = self.need_object(bucket, key)?;
        check_conditions(Some(&source.etag), if_match, None)?;
        let bytes = match &source.content {
            Content::Memory(bytes) => bytes.clone(),
            Content::File(path) => Bytes::from(std::fs::read(path).map_err(internal)?),
        };
        Ok((source, bytes))
    }

    pub(crate) fn copy_part(&self, input: &UploadPartCopyInput) -> S3Result<UploadPartCopyOutput> {
        let (_, mut bytes) =
            self.copied(&input.copy_source, input.copy_source_if_match.as_ref())?;
        if let Some(range) = &input.copy_source_range {
            let invalid = || s3_error!(InvalidArgument, "the range to copy is not valid");
            let ends = range
                .strip_prefix("bytes=")
                .and_then(|ends| ends.split_once('-'));
            let (first, last) = ends.ok_or_else(invalid)?;
            let first: usize = first.parse().map_err(|_no_number| invalid())?;
            let last: usize = last.parse().map_err(|_no_number| invalid())?;
            if first > last || last >= bytes.len() {
                return Err(invalid());
            }
            bytes = bytes.slice(first..=last);
        }
        let New { bytes, etag, .. } = New::simple(bytes, Attributes::default());
        self.uploads
            .add(&input.upload_id, input.part_number, etag.clone(), bytes)
            .ok_or_else(|| s3_error!(NoSuchUpload))?;
        let result = CopyPartResult {
            e_tag: Some(ETag::Strong(etag)),
            ..Default::default()
        };
        Ok(UploadPartCopyOutput {
            copy_part_result: Some(result),
            ..Default::default()
        })
    }

    pub(crate) fn copy(&self, input: CopyObjectInput) -> S3Result<CopyObjectOutput> {
        self.need_bucket(&input.bucket)?;
        let (source, bytes) =
            self.copied(&input.copy_source, input.copy_source_if_match.as_ref())?;
        let new = New {
            bytes,
            etag: source.etag.clone(),
            attributes: match &input.metadata_directive {
                Some(directive) if directive.as_str() == MetadataDirective::REPLACE => Attributes {
                    content_type: input.content_type,
                    content_encoding: input.content_encoding,
                    metadata: input.metadata,
                    checksums: source.attributes.checksums,
                    customer_key_md5: input.sse_customer_key_md5,
                },
                _ => source.attributes,
            },
        };
        self.store
            .put(&input.bucket, &input.key, new)
            .map_err(internal)?;
        let result = CopyObjectResult {
            e_tag: Some(ETag::Strong(source.etag)),
            last_modified: Some(source.modified.into()),
            ..Default::default()
        };
        Ok(CopyObjectOutput {
            copy_object_result: Some(result),
            ..Default::default()
        })
    }

    pub(crate) fn delete_many(&self, input: DeleteObjectsInput) -> S3Result<DeleteObjectsOutput> {
        self.need_bucket(&input.bucket)?;
        let quiet = input.delete.quiet.unwrap_or(false);
        let mut deleted = Vec::new();
        for object in input.delete.objects {
            self.store
                .delete(&input.bucket, &object.key)
                .map_err(internal)?;
            deleted.push(DeletedObject {
                key: Some(object.key),
                ..Default::default()
            });
        }
        let deleted = (!quiet).then_some(deleted);
        Ok(DeleteObjectsOutput {
            deleted,
            ..Default::default()
        })
    }
}
