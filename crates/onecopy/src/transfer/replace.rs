//! Whether a copy may take the place of what is at its target.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

use super::entry::Entry;
use super::job::To;
use super::settings::Replace;
use super::shared::Shared;
use crate::error::{ErrorKind, Result};

/// Whether `entry` may be copied to `to`, by what is there now.
pub(super) async fn may_be(shared: &Shared, how: Replace, entry: &Entry, to: &To) -> Result<bool> {
    if how == Replace::Always {
        return Ok(true);
    }
    let Some((len_bytes, modified_unix)) = there(shared, to).await? else {
        return Ok(true);
    };
    let is_other = len_bytes != Some(entry.len_bytes);
    let is_older = match (modified_unix, entry.modified_unix) {
        (Some(there), Some(here)) => there < here,
        _ => false,
    };
    Ok(match how {
        Replace::Always => true,
        Replace::Never => false,
        Replace::IfSizeDiffers => is_other,
        Replace::IfSourceNewer => is_older,
        Replace::IfEither => is_other || is_older,
    })
}

/// Length and time of what is at a target; none where nothing is.
async fn there(shared: &Shared, to: &To) -> Result<Option<(Option<u64>, Option<i64>)>> {
    match to {
        To::Object { store, object } => match store.head(object).await {
            Ok(found) => Ok(Some((found.len_bytes, found.modified_unix))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        },
        To::File { root, relative } => {
            let path = root.path().join(OsStr::from_bytes(relative));
            let found = shared
                .on_a_thread(move || Ok(std::fs::symlink_metadata(path).ok()))
                .await?;
            Ok(found.map(|found| (Some(found.len()), Some(found.mtime()))))
        }
    }
}
