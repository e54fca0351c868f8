//! The verbs that list: both versions of `ListObjects`.

use s3s::dto::*;
use s3s::{S3Result, s3_error};

use super::listing::{Page, Position, Wanted, encode, page};
use super::service::{Api, internal};

/// A page of S3 holds at most this many keys, whatever is asked.
const MAX_KEYS: i32 = 1000;

impl Api {
    pub(crate) fn list(&self, input: ListObjectsV2Input) -> S3Result<ListObjectsV2Output> {
        let after = match (&input.continuation_token, &input.start_after) {
            (Some(token), _) => Some(Position::from_token(token).ok_or_else(|| {
                s3_error!(
                    InvalidArgument,
                    "the continuation token provided is incorrect"
                )
            })?),
            (None, start) => start.clone().map(Position::Key),
        };
        let prefix = input.prefix.clone().unwrap_or_default();
        let delimiter = input.delimiter.clone();
        let limit = limit(input.max_keys)?;
        let page = self.page(&input.bucket, &prefix, delimiter.as_deref(), after, limit.1)?;
        let show = shown(input.encoding_type.as_ref());
        let (contents, common_prefixes) = tell(&page, show);
        Ok(ListObjectsV2Output {
            name: Some(input.bucket),
            prefix: Some(show(&prefix)),
            delimiter: delimiter.map(|d| show(&d)),
            start_after: input.start_after.map(|s| show(&s)),
            max_keys: Some(limit.0),
            key_count: i32::try_from(contents.len() + common_prefixes.len()).ok(),
            continuation_token: input.continuation_token,
            is_truncated: Some(page.next.is_some()),
            next_continuation_token: page.next.as_ref().map(Position::to_token),
            contents: Some(contents),
            common_prefixes: Some(common_prefixes),
            encoding_type: input.encoding_type,
            ..Default::default()
        })
    }

    pub(crate) fn list_first_version(
        &self,
        input: ListObjectsInput,
    ) -> S3Result<ListObjectsOutput> {
        let prefix = input.prefix.clone().unwrap_or_default();
        let delimiter = input.delimiter.clone();
        // A marker that ends in the delimiter was a common prefix, and all below it has been told.
        let after = input
            .marker
            .clone()
            .map(|marker| match delimiter.as_deref() {
                Some(d) if !d.is_empty() && marker.ends_with(d) => Position::Prefix(marker),
                _ => Position::Key(marker),
            });
        let limit = limit(input.max_keys)?;
        let page = self.page(&input.bucket, &prefix, delimiter.as_deref(), after, limit.1)?;
        let show = shown(input.encoding_type.as_ref());
        let (contents, common_prefixes) = tell(&page, show);
        Ok(ListObjectsOutput {
            name: Some(input.bucket),
            prefix: Some(show(&prefix)),
            delimiter: delimiter.map(|d| show(&d)),
            marker: Some(show(&input.marker.unwrap_or_default())),
            max_keys: Some(limit.0),
            is_truncated: Some(page.next.is_some()),
            next_marker: page.next.as_ref().map(|next| show(next.as_str())),
            contents: Some(contents),
            common_prefixes: Some(common_prefixes),
            encoding_type: input.encoding_type,
            ..Default::default()
        })
    }

    fn page(
        &self,
        bucket: &str,
        prefix: &str,
        delimiter: Option<&str>,
        after: Option<Position>,
        max_keys: usize,
    ) -> S3Result<Page> {
        self.need_bucket(bucket)?;
        let wanted = Wanted {
            prefix,
            delimiter,
            after,
            max_keys,
        };
        page(&*self.store, bucket, &wanted).map_err(internal)
    }
}

/// The limit of a page, as it is told and as it is used.
fn limit(asked: Option<i32>) -> S3Result<(i32, usize)> {
    let limit = asked.unwrap_or(MAX_KEYS).min(MAX_KEYS);
    match usize::try_from(limit) {
        Ok(used) => Ok((limit, used)),
        Err(_) => Err(s3_error!(InvalidArgument, "max-keys is below zero")),
    }
}

/// How keys are written: as they are, or percent-encoded if the client asked for that.
fn shown(encoding: Option<&EncodingType>) -> fn(&str) -> String {
    match encoding {
        Some(encoding) if encoding.as_str() == EncodingType::URL => encode,
        _ => str::to_owned,
    }
}

fn tell(page: &Page, show: fn(&str) -> String) -> (Vec<Object>, Vec<CommonPrefix>) {
    let objects = page.objects.iter().map(|(key, summary)| Object {
        key: Some(show(key)),
        size: i64::try_from(summary.size).ok(),
        e_tag: Some(ETag::Strong(summary.etag.clone())),
        last_modified: Some(summary.modified.into()),
        storage_class: Some(ObjectStorageClass::from_static(
            ObjectStorageClass::STANDARD,
        )),
        ..Default::default()
    });
    let prefixes = page.prefixes.iter().map(|prefix| CommonPrefix {
        prefix: Some(show(prefix)),
    });
    (objects.collect(), prefixes.collect())
}
