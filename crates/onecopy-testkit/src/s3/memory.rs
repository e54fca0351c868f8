//! Objects in memory: a sorted map per bucket.

use std::collections::BTreeMap;
use std::io;
use std::ops::{Bound, ControlFlow};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use super::store::{Content, New, Object, Store, Summary, Visit};

#[derive(Debug)]
struct Bucket {
    made: SystemTime,
    /// Sorted by the bytes of the key, which is the order that S3 lists in.
    objects: BTreeMap<String, Object>,
}

/// The store of a server without a folder.
#[derive(Debug, Default)]
pub(crate) struct MemoryStore {
    /// Guards all buckets; held for look-ups only, never while a body is sent.
    buckets: Mutex<BTreeMap<String, Bucket>>,
}

impl MemoryStore {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Bucket>> {
        // A test that panicked elsewhere leaves the map whole: every change is one call.
        self.buckets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for MemoryStore {
    fn buckets(&self) -> io::Result<Vec<(String, SystemTime)>> {
        Ok(self
            .lock()
            .iter()
            .map(|(name, bucket)| (name.clone(), bucket.made))
            .collect())
    }

    fn has_bucket(&self, bucket: &str) -> bool {
        self.lock().contains_key(bucket)
    }

    fn create_bucket(&self, bucket: &str) -> io::Result<bool> {
        let mut buckets = self.lock();
        if buckets.contains_key(bucket) {
            return Ok(false);
        }
        let made = SystemTime::now();
        buckets.insert(
            bucket.to_owned(),
            Bucket {
                made,
                objects: BTreeMap::new(),
            },
        );
        Ok(true)
    }

    fn delete_bucket(&self, bucket: &str) -> io::Result<bool> {
        let mut buckets = self.lock();
        if buckets.get(bucket).is_some_and(|b| !b.objects.is_empty()) {
            return Ok(false);
        }
        buckets.remove(bucket);
        Ok(true)
    }

    fn find(&self, bucket: &str, key: &str) -> io::Result<Option<Object>> {
        Ok(self
            .lock()
            .get(bucket)
            .and_then(|b| b.objects.get(key))
            .cloned())
    }

    fn put(&self, bucket: &str, key: &str, body: New) -> io::Result<()> {
        let mut buckets = self.lock();
        let bucket = buckets.get_mut(bucket).ok_or(io::ErrorKind::NotFound)?;
        let object = Object {
            size: body.bytes.len() as u64,
            etag: body.etag,
            modified: SystemTime::now(),
            attributes: body.attributes,
            content: Content::Memory(body.bytes),
        };
        bucket.objects.insert(key.to_owned(), object);
        Ok(())
    }

    fn delete(&self, bucket: &str, key: &str) -> io::Result<()> {
        if let Some(bucket) = self.lock().get_mut(bucket) {
            bucket.objects.remove(key);
        }
        Ok(())
    }

    fn scan(&self, bucket: &str, prefix: &str, after: &str, visit: Visit<'_>) -> io::Result<()> {
        let buckets = self.lock();
        let bucket = buckets.get(bucket).ok_or(io::ErrorKind::NotFound)?;
        let from = if after >= prefix && !after.is_empty() {
            Bound::Excluded(after)
        } else {
            Bound::Included(prefix)
        };
        for (key, object) in bucket.objects.range::<str, _>((from, Bound::Unbounded)) {
            if !key.starts_with(prefix) {
                break;
            }
            if let ControlFlow::Break(()) = visit(key, &|| Summary::from(object)) {
                break;
            }
        }
        Ok(())
    }
}
