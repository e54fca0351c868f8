//! An object becomes a file: socket to slab to disk, many ranges at a time.

use std::collections::VecDeque;

use tokio::task::JoinSet;

use super::file::{DIRECT_FROM, range_len};
use super::folder::{Draft, Root};
use super::names;
use super::shared::Shared;
use crate::buffer::Slab;
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::Ledger;
use crate::route::Hop;
use crate::size::to_usize;
use crate::store::{Filled, Object, Source};
use crate::sync::Arc;

/// Writes `source` to the file `relative` below `root`, and gives its length.
///
/// # Copies
///
/// None in user space over plain HTTP; past the page cache none by a CPU beyond `recv`.
pub(super) async fn run(
    shared: &Arc<Shared>,
    source: Source,
    root: &Arc<Root>,
    relative: &[u8],
) -> Result<u64> {
    let source = known(source).await?;
    let len = source.object.len_bytes.unwrap_or(0);
    let _open = shared.file().await?;
    let begin = {
        let (root, relative) = (Arc::clone(root), relative.to_owned());
        move || {
            let (folder, name) = names::split(&relative);
            let folder = root.enter(folder, true)?;
            let folder = folder.ok_or_else(|| Error::bug("make a folder", "it was not made"))?;
            folder.draft(name, len)
        }
    };
    let modified_unix = source.object.modified_unix;
    let is_synced = shared.settings.is_synced_to_disk;
    if len <= shared.settings.range_bytes as u64 {
        return small(shared, source, begin, len).await;
    }
    let draft = Arc::new(shared.on_a_thread(begin).await?);
    ranges(shared, &source, &draft, len).await?;
    if len >= DIRECT_FROM && !draft.output()?.is_direct() {
        shared
            .ledger
            .note("files are written through the page cache: the file system takes no O_DIRECT");
    }
    let only = Arc::try_unwrap(draft);
    let draft = only.map_err(|_shared| Error::bug("finish a file", "somebody still writes it"))?;
    shared
        .on_a_thread(move || draft.publish(len, modified_unix, is_synced))
        .await?;
    Ok(len)
}

/// An object that fits one range: the file is made once its bytes are there.
async fn small(
    shared: &Arc<Shared>,
    source: Source,
    begin: impl FnOnce() -> Result<Draft> + Send + 'static,
    len: u64,
) -> Result<u64> {
    let flight = shared.flight().await?;
    let leased = shared.memory.lease(to_usize(len)).await?;
    let hop = shared.hop(Hop::Recv);
    let filled = source
        .store
        .read_into(&hop, &source.object, 0, vec![leased.slab])
        .await?;
    check(&filled, &source.object, len)?;
    let modified_unix = source.object.modified_unix;
    let is_synced = shared.settings.is_synced_to_disk;
    shared
        .on_a_thread(move || {
            let draft = begin()?;
            for slab in &filled.target {
                let written = draft.output()?.write(&hop, slab, 0, to_usize(len));
                written.map_err(|error| draft.failed(error))?;
            }
            draft.publish(len, modified_unix, is_synced)
        })
        .await?;
    drop((leased.permit, flight));
    shared.moved(len);
    Ok(len)
}

async fn ranges(shared: &Arc<Shared>, source: &Source, draft: &Arc<Draft>, len: u64) -> Result<()> {
    let mut tasks: JoinSet<Result<()>> = JoinSet::new();
    let mut source = source.clone();
    let mut offset = 0;
    while offset < len {
        let flight = shared.flight().await?;
        while let Some(done) = tasks.try_join_next() {
            joined(done)?;
        }
        let range = range_len(offset, len, shared.settings.range_bytes);
        let leased = shared.memory.lease(range).await?;
        if source.object.etag.is_none() && offset == 0 {
            // No listing told the version: the first range tells it, if its store has any, and all others are of the same.
            let (object, at) = (source.object.clone(), offset);
            source.object = one(shared, &source, object, draft, (at, range), leased).await?;
        } else {
            let (shared, task, draft) = (Arc::clone(shared), source.clone(), Arc::clone(draft));
            tasks.spawn(async move {
                let object = task.object.clone();
                one(&shared, &task, object, &draft, (offset, range), leased).await?;
                drop((flight, draft));
                Ok(())
            });
        }
        offset += range as u64;
    }
    while let Some(done) = tasks.join_next().await {
        joined(done)?;
    }
    Ok(())
}

pub(super) fn joined<T>(done: Result<Result<T>, tokio::task::JoinError>) -> Result<T> {
    done.unwrap_or_else(|error| Err(Error::bug("move a range", error.to_string())))
}

/// One range: read, written, told. Gives the object as the answer showed it.
async fn one(
    shared: &Arc<Shared>,
    source: &Source,
    object: Object,
    draft: &Arc<Draft>,
    (offset, len): (u64, usize),
    leased: super::memory::Leased,
) -> Result<Object> {
    let hop = shared.hop(Hop::Recv);
    let target = vec![leased.slab];
    let filled = source
        .store
        .read_into(&hop, &object, offset, target)
        .await?;
    check(&filled, &object, len as u64)?;
    let (object, draft) = (filled.object.clone(), Arc::clone(draft));
    shared
        .on_a_thread(move || {
            for slab in &filled.target {
                let written = draft.output()?.write(&hop, slab, offset, len);
                written.map_err(|error| draft.failed(error))?;
            }
            Ok(())
        })
        .await?;
    drop(leased.permit);
    shared.moved(len as u64);
    Ok(object)
}

/// What came must be what was asked for: a shorter object is another one by now.
pub(super) fn check(filled: &Filled, object: &Object, len: u64) -> Result<()> {
    if filled.len_bytes >= len {
        return Ok(());
    }
    let why = format!("only {} of {len} bytes came", filled.len_bytes);
    Err(Error::new(ErrorKind::Changed, "read", &*object.url, why))
}

/// The source with its length, time and version known.
pub(super) async fn known(source: Source) -> Result<Source> {
    if source.object.len_bytes.is_some() && source.object.modified_unix.is_some() {
        return Ok(source);
    }
    let mut object = source.store.head(&source.object).await?;
    if object.len_bytes.is_none() {
        // A server that makes up its answer as it goes may still tell the length with a range.
        let hop = Ledger::unread().hop(Hop::Recv);
        let first = source
            .store
            .read_into(&hop, &object, 0, vec![Slab::heap(1)]);
        object = first.await?.object;
    }
    if object.len_bytes.is_none() {
        let why = "its server does not say how long it is";
        return Err(
            Error::new(ErrorKind::Unsupported, "read", &*object.url, why)
                .with_help("serve it with a Content-Length, or fetch it with onecopy cat"),
        );
    }
    let store = source.store;
    Ok(Source { store, object })
}

/// The ranges `[from, to)` of `len` bytes, `part` bytes each.
pub(super) fn cut(len: u64, part: u64) -> VecDeque<(u64, u64)> {
    let part = part.max(1);
    let count = len.div_ceil(part);
    (0..count)
        .map(|index| (index * part, ((index + 1) * part).min(len)))
        .collect()
}
