//! The verbs of S3 on top of a store; what they share is in [`Api`].

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use s3s::dto::*;
use s3s::{S3, S3Error, S3ErrorCode, S3Request, S3Response, S3Result, s3_error};

use super::multipart::Uploads;
use super::store::{Object, Store};

/// The service that `s3s` calls.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) uploads: Arc<Uploads>,
    pub(crate) region: String,
}

/// A failure of the store as S3 tells it.
pub(crate) fn internal(error: io::Error) -> S3Error {
    let code = match error.kind() {
        io::ErrorKind::InvalidInput => S3ErrorCode::InvalidArgument,
        _ => S3ErrorCode::InternalError,
    };
    S3Error::with_message(code, error.to_string())
}

impl Api {
    pub(crate) fn need_bucket(&self, bucket: &str) -> S3Result<()> {
        if self.store.has_bucket(bucket) {
            Ok(())
        } else {
            Err(s3_error!(NoSuchBucket))
        }
    }

    pub(crate) fn need_object(&self, bucket: &str, key: &str) -> S3Result<Object> {
        self.need_bucket(bucket)?;
        let found = self.store.find(bucket, key).map_err(internal)?;
        found.ok_or_else(|| s3_error!(NoSuchKey))
    }
}

#[async_trait]
impl S3 for Api {
    async fn list_buckets(
        &self,
        request: S3Request<ListBucketsInput>,
    ) -> S3Result<S3Response<ListBucketsOutput>> {
        drop(request);
        let buckets = self
            .store
            .buckets()
            .map_err(internal)?
            .into_iter()
            .map(|(name, made)| Bucket {
                name: Some(name),
                bucket_region: Some(self.region.clone()),
                creation_date: Some(made.into()),
            });
        let buckets = Some(buckets.collect());
        Ok(S3Response::new(ListBucketsOutput {
            buckets,
            ..Default::default()
        }))
    }

    async fn head_bucket(
        &self,
        request: S3Request<HeadBucketInput>,
    ) -> S3Result<S3Response<HeadBucketOutput>> {
        self.need_bucket(&request.input.bucket)?;
        let bucket_region = Some(self.region.clone());
        Ok(S3Response::new(HeadBucketOutput {
            bucket_region,
            ..Default::default()
        }))
    }

    async fn get_bucket_location(
        &self,
        request: S3Request<GetBucketLocationInput>,
    ) -> S3Result<S3Response<GetBucketLocationOutput>> {
        self.need_bucket(&request.input.bucket)?;
        // S3 says nothing of its first region.
        let region = Some(self.region.clone()).filter(|region| region != "us-east-1");
        let location_constraint = region.map(BucketLocationConstraint::from);
        Ok(S3Response::new(GetBucketLocationOutput {
            location_constraint,
        }))
    }

    async fn create_bucket(
        &self,
        request: S3Request<CreateBucketInput>,
    ) -> S3Result<S3Response<CreateBucketOutput>> {
        if !self
            .store
            .create_bucket(&request.input.bucket)
            .map_err(internal)?
        {
            return Err(s3_error!(BucketAlreadyOwnedByYou));
        }
        let location = Some(format!("/{}", request.input.bucket));
        Ok(S3Response::new(CreateBucketOutput { location }))
    }

    async fn delete_bucket(
        &self,
        request: S3Request<DeleteBucketInput>,
    ) -> S3Result<S3Response<DeleteBucketOutput>> {
        self.need_bucket(&request.input.bucket)?;
        if !self
            .store
            .delete_bucket(&request.input.bucket)
            .map_err(internal)?
        {
            return Err(s3_error!(BucketNotEmpty));
        }
        Ok(S3Response::new(DeleteBucketOutput {}))
    }

    async fn list_objects(
        &self,
        request: S3Request<ListObjectsInput>,
    ) -> S3Result<S3Response<ListObjectsOutput>> {
        Ok(S3Response::new(self.list_first_version(request.input)?))
    }

    async fn list_objects_v2(
        &self,
        request: S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        Ok(S3Response::new(self.list(request.input)?))
    }

    async fn get_object(
        &self,
        request: S3Request<GetObjectInput>,
    ) -> S3Result<S3Response<GetObjectOutput>> {
        Ok(S3Response::new(self.get(request.input)?))
    }

    async fn head_object(
        &self,
        request: S3Request<HeadObjectInput>,
    ) -> S3Result<S3Response<HeadObjectOutput>> {
        Ok(S3Response::new(self.head(request.input)?))
    }

    async fn put_object(
        &self,
        request: S3Request<PutObjectInput>,
    ) -> S3Result<S3Response<PutObjectOutput>> {
        Ok(S3Response::new(self.put(request).await?))
    }

    async fn copy_object(
        &self,
        request: S3Request<CopyObjectInput>,
    ) -> S3Result<S3Response<CopyObjectOutput>> {
        Ok(S3Response::new(self.copy(request.input)?))
    }

    async fn delete_object(
        &self,
        request: S3Request<DeleteObjectInput>,
    ) -> S3Result<S3Response<DeleteObjectOutput>> {
        self.need_bucket(&request.input.bucket)?;
        self.store
            .delete(&request.input.bucket, &request.input.key)
            .map_err(internal)?;
        Ok(S3Response::new(DeleteObjectOutput::default()))
    }

    async fn delete_objects(
        &self,
        request: S3Request<DeleteObjectsInput>,
    ) -> S3Result<S3Response<DeleteObjectsOutput>> {
        Ok(S3Response::new(self.delete_many(request.input)?))
    }

    async fn create_multipart_upload(
        &self,
        request: S3Request<CreateMultipartUploadInput>,
    ) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
        Ok(S3Response::new(self.begin(request.input)?))
    }

    async fn upload_part(
        &self,
        request: S3Request<UploadPartInput>,
    ) -> S3Result<S3Response<UploadPartOutput>> {
        Ok(S3Response::new(self.part(request).await?))
    }

    async fn upload_part_copy(
        &self,
        request: S3Request<UploadPartCopyInput>,
    ) -> S3Result<S3Response<UploadPartCopyOutput>> {
        Ok(S3Response::new(self.copy_part(&request.input)?))
    }

    async fn complete_multipart_upload(
        &self,
        request: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        Ok(S3Response::new(self.complete(request.input)?))
    }

    async fn abort_multipart_upload(
        &self,
        request: S3Request<AbortMultipartUploadInput>,
    ) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
        self.uploads
            .abort(&request.input.upload_id)
            .ok_or_else(|| s3_error!(NoSuchUpload))?;
        Ok(S3Response::new(AbortMultipartUploadOutput::default()))
    }
}
