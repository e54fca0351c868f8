//! An object that is written in parts: begun, sent many parts at a time, completed, or given up whole.

use tokio::task::JoinSet;

use super::download::joined;
use super::shared::Shared;
use crate::error::{Error, ErrorKind, Result};
use crate::size::MIB;
use crate::store::{Attributes, BoxFuture, Object, Part, Store, Upload, Writer};
use crate::sync::Arc;

/// Parts of one object at most, and the smallest and largest of them (S3's limits).
pub(super) const MOST_PARTS: u64 = 10_000;
pub(super) const LEAST_PART: u64 = 5 * MIB as u64;

/// The largest object of S3: 5 TiB.
const MOST_BYTES: u64 = 5 << 40;

/// Sends one part of an upload.
pub(super) type Send = Arc<
    dyn Fn(Upload, u32, (u64, u64)) -> BoxFuture<'static, Result<Part>> + std::marker::Send + Sync,
>;

/// The length of the parts of an object of `len` bytes: `wanted`, unless that is too short or makes too many.
pub(super) fn part_len(object: &Object, len: u64, wanted: u64) -> Result<u64> {
    if len > MOST_BYTES {
        let why = format!("{len} bytes are more than an object can have ({MOST_BYTES})");
        return Err(Error::new(
            ErrorKind::LimitReached,
            "write",
            &*object.url,
            why,
        ));
    }
    let least = len.div_ceil(MOST_PARTS).next_multiple_of(MIB as u64);
    Ok(wanted.max(LEAST_PART).max(least))
}

/// The writing side of a store that has one.
pub(super) fn writes(store: &Arc<dyn Store>) -> Result<&dyn Writer> {
    let missing = || Error::bug("write to a store", "it cannot be written to");
    store.writer().ok_or_else(missing)
}

/// Writes `object` in `parts`, each of which `send` sends. Whatever goes wrong, and if the transfer is stopped, the upload is
/// given up, so that nobody pays for parts that belong to nothing.
pub(super) async fn write(
    shared: &Arc<Shared>,
    store: &Arc<dyn Store>,
    object: &Object,
    attributes: &Attributes,
    parts: impl IntoIterator<Item = (u64, u64)>,
    send: Send,
) -> Result<()> {
    let writer = writes(store)?;
    let upload = shared
        .until_stopped(writer.begin(object, attributes))
        .await?;
    let sent = async {
        let parts = all(shared, &upload, parts, send).await?;
        writer.complete(&upload, &parts).await
    };
    finish(shared, writer, &upload, sent).await
}

/// Waits for `work`, and gives the upload up where it fails or is stopped.
pub(super) async fn finish<T>(
    shared: &Shared,
    writer: &dyn Writer,
    upload: &Upload,
    work: impl Future<Output = Result<T>>,
) -> Result<()> {
    match shared.until_stopped(work).await {
        Ok(_) => Ok(()),
        Err(error) => {
            if let Err(left) = writer.abort(upload).await {
                tracing::warn!("an upload in parts stays open: {left}");
            }
            Err(error)
        }
    }
}

async fn all(
    shared: &Arc<Shared>,
    upload: &Upload,
    parts: impl IntoIterator<Item = (u64, u64)>,
    send: Send,
) -> Result<Vec<Part>> {
    let mut tasks: JoinSet<Result<Part>> = JoinSet::new();
    let mut done: Vec<Part> = Vec::new();
    for (number, range) in (1..).zip(parts) {
        let flight = shared.flight().await?;
        while let Some(part) = tasks.try_join_next() {
            done.push(joined(part)?);
        }
        let sending = send(upload.clone(), number, range);
        tasks.spawn(async move {
            let part = sending.await;
            drop(flight);
            part
        });
    }
    while let Some(part) = tasks.join_next().await {
        done.push(joined(part)?);
    }
    done.sort_unstable_by_key(|part| part.number);
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Key;

    #[test]
    fn no_object_has_too_many_or_too_short_parts() {
        let object = Object {
            url: "s3://b/k".into(),
            key: Key::new(*b"k"),
            version: None,
            len_bytes: None,
            etag: None,
            modified_unix: None,
        };
        let mib = MIB as u64;
        for (len, wanted, part) in [
            (10 * mib, 8 * mib, 8 * mib),
            (10 * mib, 4096, 5 * mib),
            (80_000 * mib, 8 * mib, 8 * mib),
            (80_000 * mib + 1, 8 * mib, 9 * mib),
            (5 << 40, 8 * mib, 525 * mib),
        ] {
            let found = part_len(&object, len, wanted).unwrap();
            assert_eq!(found, part, "{len}");
            assert!(len.div_ceil(found) <= MOST_PARTS);
        }
        let error = part_len(&object, (5 << 40) + 1, mib).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LimitReached);
    }
}
