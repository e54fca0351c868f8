//! What is to be deleted: collected first, so that it can be counted and refused, and done last.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};

use tokio::task::JoinSet;

use super::download::joined;
use super::job::Goal;
use super::settings::Action;
use super::shared::{Shared, cancelled};
use crate::error::{Error, ErrorKind, Result};
use crate::store::{Key, Store};
use crate::sync::Arc;

/// Keys that S3 takes in one request.
const BATCH: usize = 1000;

/// Requests under way at a time: each takes S3 some 100 ms and more, and it deletes 3,500 keys a second below a prefix.
const BATCHES_AT_A_TIME: usize = 4;

/// Relative keys, in a file without a name: ten million of them are no burden on memory.
#[derive(Debug)]
pub(super) struct Doomed {
    file: BufWriter<File>,
    pub(super) count: u64,
}

impl Doomed {
    pub(super) fn new() -> Result<Self> {
        let made = tempfile::tempfile().map_err(failed)?;
        Ok(Self {
            file: BufWriter::new(made),
            count: 0,
        })
    }

    pub(super) fn add(&mut self, relative: &[u8]) -> Result<()> {
        let len = u32::try_from(relative.len()).unwrap_or(u32::MAX);
        self.file.write_all(&len.to_le_bytes()).map_err(failed)?;
        self.file.write_all(relative).map_err(failed)?;
        self.count += 1;
        Ok(())
    }

    /// Deletes all of them below `goal`.
    pub(super) async fn run(self, shared: &Arc<Shared>, goal: &Goal) -> Result<()> {
        let mut file = self
            .file
            .into_inner()
            .map_err(|error| failed(error.into_error()))?;
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        let mut left = self.count;
        let mut file = BufReader::new(file);
        let mut tasks = JoinSet::new();
        while left > 0 && !shared.is_stopped() {
            let mut batch = Vec::new();
            while left > 0 && batch.len() < BATCH {
                batch.push(read(&mut file).map_err(failed)?);
                left -= 1;
            }
            if tasks.len() >= BATCHES_AT_A_TIME
                && let Some(done) = tasks.join_next().await
            {
                joined(done)?;
            }
            let (shared, goal) = (Arc::clone(shared), goal.clone());
            tasks.spawn(async move { delete(&shared, &goal, batch).await });
        }
        while let Some(done) = tasks.join_next().await {
            joined(done)?;
        }
        if shared.is_stopped() {
            return Err(cancelled());
        }
        Ok(())
    }
}

fn read(file: &mut impl Read) -> std::io::Result<Vec<u8>> {
    let mut len = [0; 4];
    file.read_exact(&mut len)?;
    let mut relative = vec![0; usize::try_from(u32::from_le_bytes(len)).unwrap_or(0)];
    file.read_exact(&mut relative)?;
    Ok(relative)
}

fn failed(error: std::io::Error) -> Error {
    Error::io("note what to delete in", "a temporary file", error)
        .with_help("there must be room in the folder for temporary files (TMPDIR)")
}

/// Nothing is deleted where it would be too much.
pub(super) fn check(count: u64, most: Option<u64>, target: &str) -> Result<()> {
    let Some(most) = most.filter(|most| count > *most) else {
        return Ok(());
    };
    let items = if count == 1 { "item" } else { "items" };
    let why = format!("{count} {items} would be deleted, and at most {most} may be");
    Err(
        Error::new(ErrorKind::LimitReached, "delete below", target, why)
            .with_help("look with `dry_run`; raise `max_delete` if it is right"),
    )
}

async fn delete(shared: &Arc<Shared>, goal: &Goal, batch: Vec<Vec<u8>>) -> Result<()> {
    if shared.settings.is_dry_run {
        for relative in &batch {
            let (shown, _) = goal.target(relative);
            shared.done(Action::Delete, &shown, None, &Ok(None));
        }
        return Ok(());
    }
    match goal {
        Goal::Bucket { store, prefix } => in_bucket(shared, goal, store, prefix, batch).await,
        Goal::Folder(root) => {
            let (root, telling) = (Arc::clone(root), Arc::clone(shared));
            shared
                .on_a_thread(move || {
                    for relative in &batch {
                        let deleted = root.delete(relative).map(|()| None);
                        telling.done(Action::Delete, &root.shown(relative), None, &deleted);
                    }
                    Ok(())
                })
                .await
        }
    }
}

async fn in_bucket(
    shared: &Arc<Shared>,
    goal: &Goal,
    store: &Arc<dyn Store>,
    prefix: &[u8],
    batch: Vec<Vec<u8>>,
) -> Result<()> {
    let writer = super::parts::writes(store)?;
    let keys: Vec<Key> = batch
        .iter()
        .map(|relative| Key::new([prefix, &relative[..]].concat()))
        .collect();
    let mut refused: std::collections::HashMap<Key, Error> = writer
        .delete(&keys)
        .await?
        .into_iter()
        .map(|refused| (refused.key, refused.error))
        .collect();
    for (relative, key) in batch.iter().zip(&keys) {
        let (shown, _) = goal.target(relative);
        let result = match refused.remove(key) {
            Some(error) => Err(error),
            None => Ok(None),
        };
        shared.done(Action::Delete, &shown, None, &result);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_noted_comes_back() {
        let mut doomed = Doomed::new().unwrap();
        for relative in [&b"a/b"[..], b"", b"\xff\n"] {
            doomed.add(relative).unwrap();
        }
        assert_eq!(doomed.count, 3);
        let mut file = doomed.file.into_inner().unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        assert_eq!(read(&mut file).unwrap(), b"a/b");
        assert_eq!(read(&mut file).unwrap(), b"");
        assert_eq!(read(&mut file).unwrap(), b"\xff\n");
    }

    #[test]
    fn too_much_is_refused() {
        assert!(check(3, None, "x").is_ok() && check(3, Some(3), "x").is_ok());
        let error = check(3, Some(2), "x").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LimitReached);
    }
}
