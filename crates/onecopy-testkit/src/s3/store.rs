//! What the server keeps: objects by bucket and key, behind one trait with two forms.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::SystemTime;

use bytes::Bytes;
use md5::{Digest, Md5};
use s3s::crypto::Checksum as _;

use super::checksums::Checksums;

/// What a client may attach to an object and gets back with it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Attributes {
    pub(crate) content_type: Option<String>,
    pub(crate) content_encoding: Option<String>,
    pub(crate) metadata: Option<HashMap<String, String>>,
    pub(crate) checksums: Checksums,
    /// The MD5, in base64, of the key that the client keeps (SSE-C); the bytes are not really encrypted.
    pub(crate) customer_key_md5: Option<String>,
}

/// Where the bytes of an object lie.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    Memory(Bytes),
    File(PathBuf),
}

/// One object as it was when it was looked up.
#[derive(Debug, Clone)]
pub(crate) struct Object {
    pub(crate) size: u64,
    /// Without quotes.
    pub(crate) etag: String,
    pub(crate) modified: SystemTime,
    pub(crate) attributes: Attributes,
    pub(crate) content: Content,
}

/// What a listing tells of an object.
#[derive(Debug, Clone)]
pub(crate) struct Summary {
    pub(crate) size: u64,
    pub(crate) etag: String,
    pub(crate) modified: SystemTime,
}

impl From<&Object> for Summary {
    fn from(object: &Object) -> Self {
        Self {
            size: object.size,
            etag: object.etag.clone(),
            modified: object.modified,
        }
    }
}

/// Called with each key of a scan, in order of bytes.
pub(crate) type Visit<'a> = &'a mut dyn FnMut(&str, &dyn Fn() -> Summary) -> ControlFlow<()>;

/// Storage below the protocol. Calls are short and may block; they run on the server's thread.
pub(crate) trait Store: Send + Sync + 'static {
    fn buckets(&self) -> io::Result<Vec<(String, SystemTime)>>;
    fn has_bucket(&self, bucket: &str) -> bool;
    /// Makes a bucket; false if it was there.
    fn create_bucket(&self, bucket: &str) -> io::Result<bool>;
    /// Removes an empty bucket; false if it still holds objects.
    fn delete_bucket(&self, bucket: &str) -> io::Result<bool>;
    fn find(&self, bucket: &str, key: &str) -> io::Result<Option<Object>>;
    /// The checksums of an object that was found.
    fn checksums(&self, object: &Object) -> io::Result<Checksums> {
        Ok(object.attributes.checksums.clone())
    }
    fn put(&self, bucket: &str, key: &str, body: New) -> io::Result<()>;
    /// Removes an object; one that is not there is no error, as with S3.
    fn delete(&self, bucket: &str, key: &str) -> io::Result<()>;
    /// Visits the keys that begin with `prefix` and come after `after`, in order of bytes.
    fn scan(&self, bucket: &str, prefix: &str, after: &str, visit: Visit<'_>) -> io::Result<()>;
}

/// A new object on its way into the store.
#[derive(Debug)]
pub(crate) struct New {
    pub(crate) bytes: Bytes,
    /// Without quotes.
    pub(crate) etag: String,
    pub(crate) attributes: Attributes,
}

impl New {
    /// An object as a simple PUT makes it: the ETag is the MD5 of the body.
    pub(crate) fn simple(bytes: Bytes, attributes: Attributes) -> Self {
        let etag = hex(&Md5::digest(&bytes));
        Self {
            bytes,
            etag,
            attributes,
        }
    }
}

/// The ETag that S3 gives to an object of several parts: the MD5 of their MD5s, and their number.
pub(crate) fn multipart_etag<'a>(parts: impl Iterator<Item = &'a Bytes>) -> String {
    let mut whole = s3s::crypto::Md5::new();
    let mut count = 0_usize;
    for part in parts {
        whole.update(&Md5::digest(part));
        count += 1;
    }
    format!("{}-{count}", hex(&whole.finalize()))
}

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}
