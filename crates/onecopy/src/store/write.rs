//! What stores that can be written to promise.

use super::{BoxFuture, Checksum, ETag, Key, Object, Sum};
use crate::buffer::Slice;
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::OpenHop;
use crate::sync::Arc;

/// What is told of an object beside its bytes: headers such as `content-type` and `x-amz-storage-class`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attributes(Vec<(String, String)>);

impl Attributes {
    /// Sets the header `name`; a later value replaces an earlier one.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for what cannot stand in a header.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let is_fine = http::HeaderName::from_bytes(name.as_bytes()).is_ok()
            && http::HeaderValue::from_str(value).is_ok();
        if !is_fine {
            let why = format!("{value:?} cannot stand in a header");
            return Err(Error::new(ErrorKind::InvalidInput, "set", name, why));
        }
        let name = name.to_ascii_lowercase();
        self.0.retain(|(known, _)| *known != name);
        self.0.push((name, value.to_owned()));
        Ok(())
    }

    /// The value of the header `name`, given in lower case.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// All of them, in the order in which they were set.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// An upload in parts that was begun and is neither completed nor aborted.
#[derive(Debug, Clone)]
pub struct Upload {
    /// What is being written.
    pub object: Object,
    /// The store's name for it.
    pub id: Arc<str>,
}

/// A part of an upload that the store has.
#[derive(Debug, Clone)]
pub struct Part {
    /// From 1 on; parts are put together in this order.
    pub number: u32,
    /// What the store called it.
    pub etag: ETag,
    /// Its length in bytes.
    pub len_bytes: u64,
    /// The CRC64NVME that was sent with it, where one was.
    pub crc64nvme: Option<Sum>,
}

/// An object that was written.
#[derive(Debug, Clone)]
pub struct Stored {
    /// The ETag that the store gave it, where it told.
    pub etag: Option<ETag>,
}

/// An object of the same store's endpoint to copy from.
#[derive(Debug, Clone)]
pub struct CopySource {
    /// Its bucket.
    pub bucket: String,
    /// The object; where its ETag is known, another version is not copied.
    pub object: Object,
}

/// A key that could not be deleted.
#[derive(Debug)]
pub struct Refused {
    /// The key.
    pub key: Key,
    /// Why not.
    pub error: Error,
}

/// A store that can be written to. Every call retries by kind of error, as reading does.
pub trait Writer: Send + Sync + std::fmt::Debug {
    /// The bucket.
    fn bucket(&self) -> &str;

    /// The object at `key`, of which nothing else is known.
    fn object(&self, key: &[u8]) -> Object;

    /// Writes an object whole. `body` is sent from where it lies and held until the store has it.
    ///
    /// # Copies
    ///
    /// None in user space over plain HTTP; `hop` counts what the kernel takes.
    ///
    /// # Errors
    ///
    /// `Denied`, `NotFound` (the bucket), `LimitReached` (5 GiB), `Corrupt` where the store says that other bytes came,
    /// and what a request can meet.
    fn put<'a>(
        &'a self,
        hop: &'a OpenHop,
        object: &'a Object,
        body: Slice,
        attributes: &'a Attributes,
    ) -> BoxFuture<'a, Result<Stored>>;

    /// Begins an upload in parts.
    ///
    /// # Errors
    ///
    /// As for [`Writer::put`].
    fn begin<'a>(
        &'a self,
        object: &'a Object,
        attributes: &'a Attributes,
    ) -> BoxFuture<'a, Result<Upload>>;

    /// Sends part `number` of an upload, as [`Writer::put`] sends an object.
    ///
    /// # Errors
    ///
    /// As for [`Writer::put`].
    fn put_part<'a>(
        &'a self,
        hop: &'a OpenHop,
        upload: &'a Upload,
        number: u32,
        body: Slice,
    ) -> BoxFuture<'a, Result<Part>>;

    /// Makes bytes `[from, to)` of another object part `number` of an upload, without their passing through here.
    ///
    /// # Errors
    ///
    /// `Changed` where the source is another version by now, `Unsupported` where the store cannot do this.
    fn copy_part<'a>(
        &'a self,
        upload: &'a Upload,
        number: u32,
        source: &'a CopySource,
        range: (u64, u64),
    ) -> BoxFuture<'a, Result<Part>>;

    /// Puts the parts together, in the order given. The object is there when this returns, and not before.
    ///
    /// # Errors
    ///
    /// `Corrupt` where the store has other parts than were sent; as for [`Writer::put`].
    fn complete<'a>(
        &'a self,
        upload: &'a Upload,
        parts: &'a [Part],
    ) -> BoxFuture<'a, Result<Stored>>;

    /// Gives an upload up, and its parts with it.
    ///
    /// # Errors
    ///
    /// What a request can meet; an upload that is gone is none.
    fn abort<'a>(&'a self, upload: &'a Upload) -> BoxFuture<'a, Result<()>>;

    /// Copies an object of at most 5 GiB within the endpoint, without its passing through here. What is told of it
    /// beside its bytes is kept, or replaced by `attributes` where there are any.
    ///
    /// # Errors
    ///
    /// As for [`Writer::copy_part`].
    fn copy<'a>(
        &'a self,
        source: &'a CopySource,
        object: &'a Object,
        attributes: &'a Attributes,
    ) -> BoxFuture<'a, Result<Stored>>;

    /// What is told of an object beside its bytes, to be told of a copy.
    ///
    /// # Errors
    ///
    /// As for [`super::Store::head`].
    fn attributes<'a>(&'a self, object: &'a Object) -> BoxFuture<'a, Result<Attributes>>;

    /// The checksum over the whole object that the store keeps, where it keeps one.
    ///
    /// # Errors
    ///
    /// As for [`super::Store::head`].
    fn checksum<'a>(&'a self, object: &'a Object) -> BoxFuture<'a, Result<Option<Checksum>>>;

    /// Deletes at most 1000 keys; one that is not there is no error. Returns those that the store kept.
    ///
    /// # Errors
    ///
    /// Where the request as a whole was refused.
    fn delete<'a>(&'a self, keys: &'a [Key]) -> BoxFuture<'a, Result<Vec<Refused>>>;
}
