//! Which object is meant, and where its files lie.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use crate::store::{ETag, Object};

/// Which object, and which version of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    /// As people call it, with its bucket: two buckets, or two folders, with shards of one name have two files.
    pub(super) url: String,
    /// The version that was named, where one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) version: Option<String>,
    /// As the store gives it, without quotes.
    pub(super) etag: String,
    pub(super) len_bytes: u64,
}

impl Identity {
    /// That of `object`; none where its version or length is not known.
    pub(super) fn of(object: &Object) -> Option<Self> {
        Some(Self {
            url: object.url.to_string(),
            version: object.version.as_deref().map(str::to_owned),
            etag: object.etag.as_ref()?.bare().to_owned(),
            len_bytes: object.len_bytes?,
        })
    }

    /// `object`, with what is known of the version that this is.
    pub(super) fn described(&self, object: &Object) -> Object {
        let etag = object.etag.clone();
        Object {
            len_bytes: Some(self.len_bytes),
            etag: etag.or_else(|| Some(ETag(self.etag.as_str().into()))),
            ..object.clone()
        }
    }

    pub(super) fn json(&self) -> io::Result<String> {
        serde_json::to_string(self).map_err(io::Error::other)
    }
}

/// Where the files of an object lie, below the folder of a cache.
#[derive(Debug, Clone)]
pub(super) struct Paths {
    pub(super) data: PathBuf,
    pub(super) map: PathBuf,
}

impl Paths {
    /// By a hash of all that the object is.
    pub(super) fn of(folder: &Path, identity: &Identity) -> io::Result<Self> {
        let hash = digest(&SHA256, identity.json()?.as_bytes());
        let name: String = hash.as_ref()[..16]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let below = folder.join(&name[..2]);
        Ok(Self {
            data: below.join(format!("{name}.data")),
            map: below.join(format!("{name}.map")),
        })
    }
}

/// Removes an object's files: its map first, so that no data is believed that is going.
pub(super) fn remove(paths: &Paths) -> io::Result<()> {
    for path in [&paths.map, &paths.data] {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
