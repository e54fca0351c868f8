//! An object becomes another: within the endpoint without its bytes passing through here, else through memory.

use super::download::{check, cut, known};
use super::parts;
use super::shared::Shared;
use super::upload::{filled, put_part};
use crate::error::{Error, ErrorKind, Result};
use crate::route::{Fallback, Hop};
use crate::size::{MIB, to_usize};
use crate::store::{Attributes, CopySource, Object, Source, Store};
use crate::sync::Arc;

/// Objects up to this size are copied by one request, which keeps all that is told of them; larger ones in parts of this
/// size. S3 copies some 100 MB/s by one request and says nothing meanwhile: more would look like an answer that stalls.
const COPY_PART: u64 = 128 * MIB as u64;

/// Copies `source` to `object`, and gives its length.
pub(super) async fn run(
    shared: &Arc<Shared>,
    source: Source,
    store: &Arc<dyn Store>,
    object: &Object,
) -> Result<u64> {
    let source = known(source).await?;
    let len = source.object.len_bytes.unwrap_or(0);
    let attributes = &shared.settings.attributes;
    if let Some(writer) = source.store.writer() {
        let from = CopySource {
            bucket: writer.bucket().to_owned(),
            object: source.object.clone(),
        };
        match within(shared, &from, &source, store, object, len).await {
            Ok(()) => {
                shared.moved(len);
                return Ok(len);
            }
            Err(error) if is_unable(&error) => shared.ledger.fell_back(Fallback {
                wanted: "copy within the store".to_owned(),
                used: "copy through memory".to_owned(),
                why: error.why().to_owned(),
            }),
            Err(error) => return Err(error),
        }
        let kept = with_kept(&source, attributes).await?;
        through(shared, source, store, object, &kept, len).await?;
    } else {
        through(shared, source, store, object, attributes, len).await?;
    }
    Ok(len)
}

/// Whether the store cannot copy at all, so that reading and writing may still work.
fn is_unable(error: &Error) -> bool {
    error.kind() == ErrorKind::Unsupported
}

/// What is told of the source, with what was asked for over it.
async fn with_kept(source: &Source, asked: &Attributes) -> Result<Attributes> {
    let Some(writer) = source.store.writer() else {
        return Ok(asked.clone());
    };
    let mut kept = writer.attributes(&source.object).await?;
    for (name, value) in asked.iter() {
        kept.set(name, value)?;
    }
    Ok(kept)
}

async fn within(
    shared: &Arc<Shared>,
    from: &CopySource,
    source: &Source,
    store: &Arc<dyn Store>,
    object: &Object,
    len: u64,
) -> Result<()> {
    let asked = &shared.settings.attributes;
    if len <= COPY_PART {
        let flight = shared.flight().await?;
        // Attributes that are named replace all others: those of the source are named with them.
        let attributes = if asked.iter().next().is_some() {
            with_kept(source, asked).await?
        } else {
            Attributes::default()
        };
        let copy = parts::writes(store)?.copy(from, object, &attributes);
        shared.until_stopped(copy).await?;
        drop(flight);
        return Ok(());
    }
    let attributes = with_kept(source, asked).await?;
    let part = parts::part_len(object, len, COPY_PART)?;
    let send: parts::Send = {
        let (store, from) = (Arc::clone(store), from.clone());
        Arc::new(move |upload, number, range| {
            let (store, from) = (Arc::clone(&store), from.clone());
            Box::pin(async move {
                let writer = parts::writes(&store)?;
                writer.copy_part(&upload, number, &from, range).await
            })
        })
    };
    parts::write(shared, store, object, &attributes, cut(len, part), send).await
}

/// Reads the source range by range, and sends each range on as a part.
async fn through(
    shared: &Arc<Shared>,
    source: Source,
    store: &Arc<dyn Store>,
    object: &Object,
    attributes: &Attributes,
    len: u64,
) -> Result<()> {
    let part = parts::part_len(object, len, shared.settings.range_bytes as u64)?;
    if len <= part {
        let whole = async {
            let flight = shared.flight().await?;
            let (slice, permit) = read(shared, &source, (0, len)).await?;
            let hop = shared.hop(Hop::Send);
            let put = parts::writes(store)?.put(&hop, object, slice, attributes);
            put.await?;
            drop((permit, flight));
            shared.moved(len);
            Ok(())
        };
        return shared.until_stopped(whole).await;
    }
    let send: parts::Send = {
        let (shared, store) = (Arc::clone(shared), Arc::clone(store));
        Arc::new(move |upload, number, range| {
            let (shared, store) = (Arc::clone(&shared), Arc::clone(&store));
            let source = source.clone();
            Box::pin(async move {
                let bytes = read(&shared, &source, range).await?;
                put_part(&shared, &store, &upload, number, bytes).await
            })
        })
    };
    parts::write(shared, store, object, attributes, cut(len, part), send).await
}

async fn read(
    shared: &Arc<Shared>,
    source: &Source,
    (from, to): (u64, u64),
) -> Result<super::upload::Bytes> {
    let len = to_usize(to - from);
    let mut leased = shared.memory.lease(len).await?;
    leased.slab.truncate(len);
    let hop = shared.hop(Hop::Recv);
    let target = vec![leased.slab];
    let read = source.store.read_into(&hop, &source.object, from, target);
    let filled_slabs = read.await?;
    check(&filled_slabs, &source.object, len as u64)?;
    let mut slabs = filled_slabs.target.into_iter();
    let missing = || Error::bug("read a range", "the store kept the memory");
    leased.slab = slabs.next().ok_or_else(missing)?;
    Ok(filled(leased, len))
}
