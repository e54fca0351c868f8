//! A folder or prefix in which small files are read, written whole and deleted.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use super::job::{Goal, To};
use super::names;
use super::open::{Opener, Spot, as_folder, no_target};
use super::parts::writes;
use crate::buffer::Slice;
use crate::config::StoreConfig;
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::Ledger;
use crate::route::Hop;
use crate::store::{Attributes, read_whole};
use crate::sync::{Arc, Threads};

/// Files that are written to a disk at the same time, at most: each waits for it.
const DISK_THREADS: usize = 16;

/// A place for small files that others read: each appears under its name only once it is whole, on a disk that has it.
#[derive(Debug)]
pub(crate) struct Depot {
    goal: Goal,
    ledger: Arc<Ledger>,
    disk: Threads,
}

impl Depot {
    /// Opens the folder or prefix that `url` names, with a slash at its end or without.
    ///
    /// # Errors
    ///
    /// `Unsupported` where nothing can be written there, and as opening a store.
    pub(crate) fn open(url: &str, config: &StoreConfig, ledger: &Arc<Ledger>) -> Result<Self> {
        let mut opener = Opener::new(config, ledger);
        let goal = match opener.open(url)? {
            Spot::Bucket { store, key } if store.writer().is_some() => Goal::Bucket {
                store,
                prefix: as_folder(&key),
            },
            Spot::Path(path) => Goal::Folder(opener.root(path)),
            Spot::Bucket { .. } | Spot::Web { .. } | Spot::Standard => return Err(no_target(url)),
        };
        Ok(Self {
            goal,
            ledger: Arc::clone(ledger),
            disk: Threads::new("disk", DISK_THREADS),
        })
    }

    /// How the file `name` is called.
    pub(crate) fn url(&self, name: &str) -> String {
        self.goal.target(name.as_bytes()).0
    }

    fn place(&self, name: &str) -> Result<To> {
        self.goal.target(name.as_bytes()).1
    }

    /// The length of the file `name`; none where there is no such file.
    pub(crate) async fn len_of(&self, name: &str) -> Result<Option<u64>> {
        match self.place(name)? {
            To::Object { store, object } => match store.head(&object).await {
                Ok(found) => Ok(Some(found.len_bytes.unwrap_or(0))),
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            },
            To::File { root, relative } => {
                let path = root.path().join(std::ffi::OsStr::from_bytes(&relative));
                let shown = self.url(name);
                self.disk
                    .run(move || match std::fs::metadata(path) {
                        Ok(found) => Ok(Some(found.len())),
                        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                        Err(error) => Err(Error::io("look up", shown, error)),
                    })
                    .await?
            }
        }
    }

    /// The content of the file `name`; none where there is no such file, and an error where it is longer than `most_bytes`.
    pub(crate) async fn read(&self, name: &str, most_bytes: u64) -> Result<Option<Slice>> {
        let Some(len) = self.len_of(name).await? else {
            return Ok(None);
        };
        let shown = self.url(name);
        if len > most_bytes {
            let why = format!("it has {len} bytes, where {most_bytes} fit");
            return Err(Error::new(ErrorKind::LimitReached, "read", shown, why)
                .with_help("this is another file than is meant: move it away"));
        }
        match self.place(name)? {
            To::Object { store, object } => {
                let hop = self.ledger.hop(Hop::Recv);
                let read = read_whole(&*store, &hop, &object, len);
                read.await.map(Some)
            }
            To::File { root, relative } => {
                let path = root.path().join(std::ffi::OsStr::from_bytes(&relative));
                let read = self.disk.run(move || std::fs::read(path)).await?;
                match read {
                    Ok(bytes) => Ok(Some(Slice::from_vec(bytes))),
                    Err(error) => Err(Error::io("read", shown, error)),
                }
            }
        }
    }

    /// Writes the file `name`, in the place of what is there.
    ///
    /// # Errors
    ///
    /// As for writing to a store or folder; what was there is then as it was.
    pub(crate) async fn write(&self, name: &str, text: String, kind: &str) -> Result<()> {
        let body = Slice::from_vec(text.into_bytes());
        match self.place(name)? {
            To::Object { store, object } => {
                let mut attributes = Attributes::default();
                attributes.set("content-type", kind)?;
                let hop = self.ledger.hop(Hop::Send);
                let put = writes(&store)?.put(&hop, &object, body, &attributes);
                put.await.map(drop)
            }
            To::File { root, relative } => {
                let hop = self.ledger.hop(Hop::Write);
                self.disk
                    .run(move || {
                        let (folder, name) = names::split(&relative);
                        let folder = root.enter(folder, true)?;
                        let folder =
                            folder.ok_or_else(|| Error::bug("make a folder", "it was not made"))?;
                        // Written through the page cache: a length tells of room that would be reserved.
                        let draft = folder.draft(name, 0)?;
                        let start = Instant::now();
                        let written = draft.output()?.file.write_all_at(&body, 0);
                        written.map_err(|error| draft.failed(error))?;
                        hop.moved(body.len(), start.elapsed());
                        hop.ledger().disk_written(body.len() as u64);
                        draft.publish(body.len() as u64, None, true)
                    })
                    .await?
            }
        }
    }

    /// Deletes the file `name`; one that is gone is no error.
    pub(crate) async fn delete(&self, name: &str) -> Result<()> {
        match self.place(name)? {
            To::Object { store, object } => {
                let refused = writes(&store)?.delete(&[object.key]).await?;
                refused
                    .into_iter()
                    .next()
                    .map_or(Ok(()), |one| Err(one.error))
            }
            To::File { root, relative } => self.disk.run(move || root.delete(&relative)).await?,
        }
    }
}
