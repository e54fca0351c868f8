//! What an object is called, and what is known of it.

use std::fmt;

use crate::sync::Arc;

/// A key, byte for byte as the store knows it: never normalised, never assumed to be UTF-8.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(Arc<[u8]>);

impl Key {
    /// The key with these bytes.
    #[must_use]
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into().into())
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", String::from_utf8_lossy(&self.0).escape_debug())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}

/// An entity tag, opaque and verbatim, quotes included: sent back as it came. Two are equal where they name one version:
/// byte for byte but for the quotes, since some servers list tags without them.
#[derive(Debug, Clone)]
pub struct ETag(pub Arc<str>);

impl PartialEq for ETag {
    fn eq(&self, other: &Self) -> bool {
        self.bare() == other.bare()
    }
}

impl Eq for ETag {}

impl ETag {
    /// Whether it is that of a file of this machine, which `file` makes of inode, length and time: `1f-400-6a.000000001`. No
    /// store's tag has that form.
    #[must_use]
    pub fn is_of_file(&self) -> bool {
        let is_hex = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit());
        let Some((numbers, nanos)) = self.bare().rsplit_once('.') else {
            return false;
        };
        numbers.split('-').count() == 3
            && numbers.split('-').all(is_hex)
            && nanos.len() == 9
            && nanos.bytes().all(|b| b.is_ascii_digit())
    }

    /// The tag without quotes: what makes two equal.
    pub(crate) fn bare(&self) -> &str {
        let inner = self.0.strip_prefix('"');
        inner
            .and_then(|tag| tag.strip_suffix('"'))
            .unwrap_or(&self.0)
    }
}

/// An object to read.
#[derive(Debug, Clone)]
pub struct Object {
    /// How people call it: `s3://bucket/key`, a path, a URL without its query. Shown in errors and samples.
    pub url: Arc<str>,
    /// The key within its store.
    pub key: Key,
    /// Which version of it, where one was named (`?versionId=..`); else the newest.
    pub version: Option<Arc<str>>,
    /// The length in bytes, where a listing told it.
    pub len_bytes: Option<u64>,
    /// The version whose reading began, or that a listing told.
    pub etag: Option<ETag>,
    /// Seconds since the epoch, where a listing told it.
    pub modified_unix: Option<i64>,
}
