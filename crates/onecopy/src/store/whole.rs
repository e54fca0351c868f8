//! Small objects, at once.

use super::{Object, Store};
use crate::buffer::{Slab, Slice};
use crate::error::Result;
use crate::ledger::OpenHop;
use crate::size::to_usize;

/// The whole of `object`, which has `len_bytes`, in ordinary memory; counted on `hop`.
///
/// # Errors
///
/// As [`Store::read_into`].
pub(crate) async fn read_whole(
    store: &dyn Store,
    hop: &OpenHop,
    object: &Object,
    len_bytes: u64,
) -> Result<Slice> {
    let (bytes, _) = read_front(store, hop, object, len_bytes).await?;
    Ok(bytes)
}

/// The first `most_bytes` of `object`, fewer where it has fewer, and what the answer told of it; as [`read_whole`].
///
/// # Errors
///
/// As [`Store::read_into`].
pub(crate) async fn read_front(
    store: &dyn Store,
    hop: &OpenHop,
    object: &Object,
    most_bytes: u64,
) -> Result<(Slice, Object)> {
    let target = vec![Slab::heap(to_usize(most_bytes))];
    let filled = store.read_into(hop, object, 0, target).await?;
    let slab = filled.target.into_iter().next();
    let bytes = slab.map_or_else(Slice::empty, Slab::freeze);
    let len = to_usize(filled.len_bytes).min(bytes.len());
    Ok((bytes.slice(0..len), filled.object))
}
