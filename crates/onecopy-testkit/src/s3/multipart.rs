//! Uploads in parts, until they are completed or given up. Parts stay in memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};

use super::store::{Attributes, New, multipart_etag};

/// One upload that was begun.
#[derive(Debug)]
struct Upload {
    bucket: String,
    key: String,
    attributes: Attributes,
    parts: BTreeMap<i32, (String, Bytes)>,
}

/// Why an upload could not be completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    NoSuchUpload,
    InvalidPart,
    InvalidPartOrder,
    EntityTooSmall,
}

/// S3 refuses a part below this, unless it is the last.
const MIN_PART_BYTES: usize = 5 << 20;

/// All uploads that are under way.
#[derive(Debug, Default)]
pub(crate) struct Uploads {
    /// Guards the uploads and the number of the next one.
    begun: Mutex<(u64, HashMap<String, Upload>)>,
}

impl Uploads {
    fn lock(&self) -> MutexGuard<'_, (u64, HashMap<String, Upload>)> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins an upload and gives its id.
    pub(crate) fn begin(&self, bucket: &str, key: &str, attributes: Attributes) -> String {
        let mut begun = self.lock();
        begun.0 += 1;
        let id = format!("upload-{:08}", begun.0);
        let (bucket, key) = (bucket.to_owned(), key.to_owned());
        let upload = Upload {
            bucket,
            key,
            attributes,
            parts: BTreeMap::new(),
        };
        begun.1.insert(id.clone(), upload);
        id
    }

    /// Keeps a part; one with the same number is replaced.
    pub(crate) fn add(&self, id: &str, number: i32, etag: String, part: Bytes) -> Option<()> {
        self.lock()
            .1
            .get_mut(id)?
            .parts
            .insert(number, (etag, part));
        Some(())
    }

    /// Ends an upload without an object; None if there is no such upload.
    pub(crate) fn abort(&self, id: &str) -> Option<()> {
        self.lock().1.remove(id).map(|_| ())
    }

    /// Uploads that are neither completed nor aborted: what a tidy client leaves at 0.
    pub(crate) fn open(&self) -> usize {
        self.lock().1.len()
    }

    /// Puts the named parts together.
    pub(crate) fn complete(
        &self,
        (bucket, key): (&str, &str),
        id: &str,
        named: &[(i32, Option<String>)],
    ) -> Result<New, Refusal> {
        let mut begun = self.lock();
        let upload = begun.1.get(id).ok_or(Refusal::NoSuchUpload)?;
        if upload.bucket != bucket || upload.key != key {
            return Err(Refusal::NoSuchUpload);
        }
        if !named.is_sorted_by(|a, b| a.0 < b.0) {
            return Err(Refusal::InvalidPartOrder);
        }
        let mut parts = Vec::with_capacity(named.len());
        for (number, etag) in named {
            let (was, part) = upload.parts.get(number).ok_or(Refusal::InvalidPart)?;
            if etag.as_ref().is_some_and(|etag| etag != was) {
                return Err(Refusal::InvalidPart);
            }
            parts.push(part.clone());
        }
        let (last, before) = parts.split_last().ok_or(Refusal::InvalidPart)?;
        if before.iter().any(|part| part.len() < MIN_PART_BYTES) {
            return Err(Refusal::EntityTooSmall);
        }
        let mut whole = BytesMut::with_capacity(parts.iter().map(Bytes::len).sum());
        before
            .iter()
            .chain([last])
            .for_each(|part| whole.extend_from_slice(part));
        let etag = multipart_etag(parts.iter());
        let attributes = upload.attributes.clone();
        begun.1.remove(id);
        Ok(New {
            bytes: whole.freeze(),
            etag,
            attributes,
        })
    }
}
