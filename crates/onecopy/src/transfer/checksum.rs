//! Whether two files of one length have the same bytes, by the checksums that stores keep.

use std::path::Path;

use super::download::cut;
use super::entry::Entry;
use super::file::Input;
use super::job::Origin;
use super::shared::Shared;
use super::sync::Sides;
use crate::error::Result;
use crate::route::Hop;
use crate::size::to_usize;
use crate::store::{Checksum, Object, Store, Sum};
use crate::sync::Arc;

/// Whether source and target are the same by their checksums. Where a store keeps none nobody can tell, and they count as
/// different.
pub(super) async fn is_same(
    shared: &Arc<Shared>,
    sides: &Sides,
    source: &Entry,
    target: &Entry,
) -> Result<bool> {
    let from = kept(&sides.origin, source).await?;
    let goal = match &sides.goal {
        super::job::Goal::Bucket { store, .. } => Origin::Store(Arc::clone(store)),
        super::job::Goal::Folder(root) => Origin::Folder(root.path().to_owned()),
    };
    let to = kept(&goal, target).await?;
    let (ours, theirs) = match (from, to) {
        (Some(from), Some(to)) => (Some(from), Some(to)),
        (None, Some(to)) => (
            computed(shared, &sides.origin, source, &to).await?,
            Some(to),
        ),
        (Some(from), None) => (computed(shared, &goal, target, &from).await?, Some(from)),
        (None, None) => (None, None),
    };
    if ours.is_none() || theirs.is_none() {
        shared.ledger.warned("checksum_missing");
        return Ok(false);
    }
    Ok(ours == theirs)
}

/// The checksum that a store keeps.
async fn kept(origin: &Origin, entry: &Entry) -> Result<Option<Checksum>> {
    match (origin, &entry.object) {
        (Origin::Store(store), Some(object)) => of_object(store, object).await,
        _ => Ok(None),
    }
}

async fn of_object(store: &Arc<dyn Store>, object: &Object) -> Result<Option<Checksum>> {
    match store.writer() {
        Some(writer) => writer.checksum(object).await,
        None => Ok(None),
    }
}

/// The checksum of a file, of the kind that the other side has. Of an object whose store keeps none there is none.
async fn computed(
    shared: &Arc<Shared>,
    origin: &Origin,
    entry: &Entry,
    like: &Checksum,
) -> Result<Option<Checksum>> {
    let Origin::Folder(folder) = origin else {
        return Ok(None);
    };
    use std::os::unix::ffi::OsStrExt;
    let path = folder.join(std::ffi::OsStr::from_bytes(&entry.relative));
    of_file(shared, &path, like.begin()).await.map(Some)
}

async fn of_file(shared: &Arc<Shared>, path: &Path, mut sum: Sum) -> Result<Checksum> {
    let range = shared.settings.range_bytes;
    let _open = shared.file().await?;
    let leased = shared.memory.lease(range).await?;
    let (path, hop) = (path.to_owned(), shared.hop(Hop::Read));
    shared
        .on_a_thread(move || {
            let mut leased = leased;
            let input = Input::open(&path)?;
            for (from, to) in cut(input.stamp.len_bytes, range as u64) {
                let len = to_usize(to - from);
                input.read(&hop, &mut leased.slab, from, len)?;
                sum.update(&leased.slab[..len]);
            }
            Ok(sum.checksum())
        })
        .await
}
