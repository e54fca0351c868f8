//! A file becomes an object: disk to slab to socket, many parts at a time.

use std::io::{self, Read};
use std::path::Path;

use super::download::{cut, joined};
use super::file::{DIRECT_FROM, Input};
use super::memory::Leased;
use super::parts::{self, LEAST_PART};
use super::shared::Shared;
use crate::buffer::Slice;
use crate::error::{Error, ErrorKind, Result};
use crate::route::Hop;
use crate::size::to_usize;
use crate::store::{Attributes, Object, Part, Store, Upload};
use crate::sync::Arc;

/// Writes the file at `path` to `object`, and gives its length.
///
/// # Copies
///
/// None in user space over plain HTTP: what was read is sent from where it lies.
pub(super) async fn file(
    shared: &Arc<Shared>,
    path: &Path,
    store: &Arc<dyn Store>,
    object: &Object,
) -> Result<u64> {
    let _open = shared.until_stopped(shared.file()).await?;
    let opened = path.to_owned();
    let input = Arc::new(shared.on_a_thread(move || Input::open(&opened)).await?);
    let len = input.stamp.len_bytes;
    let attributes = &attributes(shared, path)?;
    let part = parts::part_len(object, len, shared.settings.range_bytes as u64)?;
    if len <= part {
        let whole = whole(shared, &input, store, object, attributes);
        shared.until_stopped(whole).await?;
        note(shared, &input);
        return Ok(len);
    }
    let send: parts::Send = {
        let (shared, store, input) = (Arc::clone(shared), Arc::clone(store), Arc::clone(&input));
        Arc::new(move |upload, number, range| {
            let (shared, store) = (Arc::clone(&shared), Arc::clone(&store));
            let input = Arc::clone(&input);
            Box::pin(async move {
                let read = read(&shared, &input, range).await?;
                put_part(&shared, &store, &upload, number, read).await
            })
        })
    };
    parts::write(shared, store, object, attributes, cut(len, part), send).await?;
    note(shared, &input);
    Ok(len)
}

/// What is told of the object that the file at `path` becomes.
fn attributes(shared: &Shared, path: &Path) -> Result<Attributes> {
    let mut attributes = shared.settings.attributes.clone();
    let is_guessed = shared.settings.is_guessing_type && attributes.get("content-type").is_none();
    if let Some(kind) = mime_guess::from_path(path)
        .first_raw()
        .filter(|_| is_guessed)
    {
        attributes.set("content-type", kind)?;
    }
    Ok(attributes)
}

/// Which way the file was read is a fact for the ledger.
fn note(shared: &Shared, input: &Input) {
    if input.stamp.len_bytes >= DIRECT_FROM && !input.is_direct() {
        shared
            .ledger
            .note("files are read through the page cache: the file system takes no O_DIRECT");
    }
}

async fn whole(
    shared: &Arc<Shared>,
    input: &Arc<Input>,
    store: &Arc<dyn Store>,
    object: &Object,
    attributes: &Attributes,
) -> Result<()> {
    let flight = shared.flight().await?;
    let len = input.stamp.len_bytes;
    let (slice, permit) = read(shared, input, (0, len)).await?;
    let hop = shared.hop(Hop::Send);
    let put = parts::writes(store)?.put(&hop, object, slice, attributes);
    put.await?;
    drop((permit, flight));
    shared.moved(len);
    Ok(())
}

/// Memory that was filled, and its share of the budget.
pub(super) type Bytes = (Slice, tokio::sync::OwnedSemaphorePermit);

async fn read(shared: &Arc<Shared>, input: &Arc<Input>, (from, to): (u64, u64)) -> Result<Bytes> {
    let len = to_usize(to - from);
    let mut leased = shared.memory.lease(len).await?;
    let (hop, input) = (shared.hop(Hop::Read), Arc::clone(input));
    let leased = shared
        .on_a_thread(move || {
            input.read(&hop, &mut leased.slab, from, len)?;
            // Whichever part is read last: the file is still the one whose reading began.
            input.check()?;
            Ok(leased)
        })
        .await?;
    Ok(filled(leased, len))
}

/// The first `len` bytes of a slab, to be read from now on.
pub(super) fn filled(leased: Leased, len: usize) -> Bytes {
    let mut slab = leased.slab;
    slab.truncate(len);
    (slab.freeze(), leased.permit)
}

/// Sends a part, and counts its bytes as arrived.
pub(super) async fn put_part(
    shared: &Arc<Shared>,
    store: &Arc<dyn Store>,
    upload: &Upload,
    number: u32,
    (slice, permit): Bytes,
) -> Result<Part> {
    let len = slice.len() as u64;
    let hop = shared.hop(Hop::Send);
    let writer = parts::writes(store)?;
    let part = writer.put_part(&hop, upload, number, slice).await?;
    drop(permit);
    shared.moved(len);
    Ok(part)
}

/// Parts of a stream grow by this factor after every thousand, so that what nobody knows the length of fits 10,000.
const GROWTH: u64 = 2;
const PARTS_OF_A_LENGTH: u32 = 1000;

/// Writes what `input` gives to `object`, and gives its length.
pub(super) async fn stream(
    shared: &Arc<Shared>,
    input: impl Read + Send + 'static,
    store: &Arc<dyn Store>,
    object: &Object,
) -> Result<u64> {
    let attributes = &shared.settings.attributes;
    let part_len = LEAST_PART.max(shared.settings.range_bytes as u64);
    let (input, first) = take(shared, input, part_len).await?;
    let writer = parts::writes(store)?;
    if (first.0.len() as u64) < part_len {
        let (len, hop) = (first.0.len() as u64, shared.hop(Hop::Send));
        let put = writer.put(&hop, object, first.0, attributes);
        shared.until_stopped(put).await?;
        shared.moved(len);
        return Ok(len);
    }
    let upload = shared
        .until_stopped(writer.begin(object, attributes))
        .await?;
    let mut len = 0;
    let work = async {
        let parts = rest(shared, store, &upload, input, first).await?;
        len = parts.iter().map(|part| part.len_bytes).sum();
        writer.complete(&upload, &parts).await
    };
    parts::finish(shared, writer, &upload, work).await?;
    Ok(len)
}

async fn rest(
    shared: &Arc<Shared>,
    store: &Arc<dyn Store>,
    upload: &Upload,
    mut input: impl Read + Send + 'static,
    first: Bytes,
) -> Result<Vec<Part>> {
    let mut part_len = first.0.len() as u64;
    let mut next = first;
    let mut tasks = tokio::task::JoinSet::new();
    let mut number = 1;
    loop {
        let is_last = (next.0.len() as u64) < part_len;
        if !next.0.is_empty() {
            if u64::from(number) > parts::MOST_PARTS {
                let why = "the stream is longer than an object can be";
                let target = &*upload.object.url;
                return Err(Error::new(ErrorKind::LimitReached, "write", target, why));
            }
            let flight = shared.flight().await?;
            let (shared, store, upload) = (Arc::clone(shared), Arc::clone(store), upload.clone());
            tasks.spawn(async move {
                let part = put_part(&shared, &store, &upload, number, next).await;
                drop(flight);
                part
            });
        }
        if is_last {
            break;
        }
        if number % PARTS_OF_A_LENGTH == 0 {
            part_len *= GROWTH;
        }
        number += 1;
        (input, next) = take(shared, input, part_len).await?;
    }
    let mut parts = Vec::new();
    while let Some(part) = tasks.join_next().await {
        parts.push(joined(part)?);
    }
    parts.sort_unstable_by_key(|part: &Part| part.number);
    Ok(parts)
}

/// Reads `len` bytes, or as many as there are.
async fn take<R: Read + Send + 'static>(
    shared: &Arc<Shared>,
    mut input: R,
    len: u64,
) -> Result<(R, Bytes)> {
    let len = to_usize(len);
    let mut leased = shared.memory.lease(len).await?;
    let hop = shared.hop(Hop::Read);
    let reading = shared.on_a_thread(move || {
        let start = std::time::Instant::now();
        let mut at = 0;
        while at < len {
            match input.read(&mut leased.slab[at..len]) {
                Ok(0) => break,
                Ok(read) => at += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io("read", "standard input", error)),
            }
        }
        hop.moved(at, start.elapsed());
        Ok((input, filled(leased, at)))
    });
    shared.until_stopped(reading).await
}
