//! What a listing finds, and listings as streams that hold a bounded number of entries.

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::walk::{Walk, Walker};
use crate::error::{Error, ErrorKind, Result};
use crate::store::{Key, ListRequest, Object, Pages, Store};
use crate::sync::{Arc, Threads};

/// Entries handed over at once.
const CHUNK: usize = 500;

/// Chunks waiting to be taken: one is being compared while the next is on its way.
const CHUNKS_AHEAD: usize = 2;

/// A file or an object below the place that is listed.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// What stands behind the prefix, or the path below the folder.
    pub(super) relative: Vec<u8>,
    pub(super) len_bytes: u64,
    pub(super) modified_unix: Option<i64>,
    /// Where it is an object: all that the listing told of it.
    pub(super) object: Option<Object>,
}

/// One thing that a listing found.
#[derive(Debug)]
pub(super) enum Seen {
    Entry(Entry),
    /// A folder that was not entered, because nothing below it is meant.
    LeftOut,
    /// A file that was there a moment ago: there is nothing to copy, and no reason to delete what it became.
    Gone(Vec<u8>),
    /// Something that can be neither copied nor compared: of what should be there nobody knows.
    Odd {
        /// What is known to be a folder ends in a slash.
        relative: Vec<u8>,
        /// Whether there may be entries below it that nobody saw.
        may_be_folder: bool,
        error: Error,
    },
}

/// What is listed.
#[derive(Debug, Clone)]
pub(super) enum Place {
    Bucket {
        store: Arc<dyn Store>,
        prefix: Key,
        /// What all keys that are meant go on with behind the prefix.
        beginning: Vec<u8>,
        /// How it is called.
        url: String,
    },
    Folder {
        path: std::path::PathBuf,
        how: Walk,
    },
}

/// A listing under way, in byte order of the relative keys.
#[derive(Debug)]
pub(super) struct Entries {
    chunks: mpsc::Receiver<Result<Vec<Seen>>>,
    chunk: std::vec::IntoIter<Seen>,
    /// None once it was seen to end.
    task: Option<JoinHandle<()>>,
}

impl Place {
    /// Begins to list, on a task of its own.
    pub(super) fn entries(&self) -> Entries {
        let (sender, chunks) = mpsc::channel(CHUNKS_AHEAD);
        let task = match self.clone() {
            Self::Bucket {
                store,
                prefix,
                beginning,
                url,
            } => tokio::spawn(async move {
                let listing = Listing {
                    asked: Key::new([prefix.as_bytes(), &beginning].concat()),
                    store,
                    prefix,
                    url,
                    last: None,
                };
                if let Err(error) = listing.run(&sender).await {
                    // Nobody listens once the run was stopped.
                    let _stopped = sender.send(Err(error)).await;
                }
            }),
            Self::Folder { path, how } => tokio::spawn(async move {
                let walking = sender.clone();
                // A thread of its own: it waits for those who take the entries, who may wait for other threads.
                let thread = Threads::new("list", 1);
                let walked = thread.run(move || walk(&path, how, &walking)).await;
                if let Err(error) = walked {
                    // Nobody listens once the run was stopped.
                    let _stopped = sender.send(Err(error)).await;
                }
            }),
        };
        Entries {
            chunks,
            chunk: Vec::new().into_iter(),
            task: Some(task),
        }
    }
}

fn walk(path: &std::path::Path, how: Walk, sender: &mpsc::Sender<Result<Vec<Seen>>>) {
    match Walker::new(path, how.clone()) {
        Ok(walker) => send_all(walker, sender),
        // A target that is not there yet is an empty one.
        Err(error) if how.is_target && error.kind() == ErrorKind::NotFound => {}
        Err(error) => {
            let _stopped = sender.blocking_send(Err(error));
        }
    }
}

fn send_all(mut walker: Walker, sender: &mpsc::Sender<Result<Vec<Seen>>>) {
    loop {
        let chunk: Vec<Seen> = walker.by_ref().take(CHUNK).collect();
        if chunk.is_empty() || sender.blocking_send(Ok(chunk)).is_err() {
            return;
        }
    }
}

impl Entries {
    /// The next thing found; none at the end, which is reached only where the listing was complete.
    pub(super) async fn next(&mut self) -> Result<Option<Seen>> {
        loop {
            if let Some(seen) = self.chunk.next() {
                return Ok(Some(seen));
            }
            match self.chunks.recv().await {
                Some(chunk) => self.chunk = chunk?.into_iter(),
                None => break,
            }
        }
        // A listing that ended by a panic must not look like one that came to its end.
        if let Some(task) = self.task.take() {
            task.await
                .map_err(|error| Error::bug("list", error.to_string()))?;
        }
        Ok(None)
    }
}

impl Drop for Entries {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// The listing of a bucket.
struct Listing {
    store: Arc<dyn Store>,
    prefix: Key,
    asked: Key,
    url: String,
    last: Option<Key>,
}

impl Listing {
    async fn run(mut self, sender: &mpsc::Sender<Result<Vec<Seen>>>) -> Result<()> {
        let mut request = ListRequest {
            prefix: self.asked.clone(),
            is_folded: false,
            page: None,
        };
        let mut pages = Pages::default();
        loop {
            let page = self.store.list(&request).await?;
            pages.next(&page, &self.url)?;
            let seen = self.take(page.objects)?;
            let next = page.next;
            // Nobody listens once the run was stopped.
            if sender.send(Ok(seen)).await.is_err() {
                return Ok(());
            }
            let Some(next) = next else {
                return Ok(());
            };
            request.page = Some(next);
        }
    }

    /// One page. What is compared key by key must come in order; a key that comes twice where pages meet is taken once.
    fn take(&mut self, objects: Vec<Object>) -> Result<Vec<Seen>> {
        let mut seen = Vec::with_capacity(objects.len());
        for object in objects {
            let relative = object.key.as_bytes().strip_prefix(self.prefix.as_bytes());
            let Some(relative) = relative else {
                let why = format!("the store listed {}, which was not asked for", object.key);
                return Err(Error::new(ErrorKind::Corrupt, "list", &self.url, why));
            };
            match self.last.as_ref().map(|last| last.cmp(&object.key)) {
                None | Some(std::cmp::Ordering::Less) => {}
                Some(std::cmp::Ordering::Equal) => continue,
                Some(std::cmp::Ordering::Greater) => {
                    let why = format!("the store does not list in byte order (at {})", object.key);
                    return Err(Error::new(ErrorKind::Unsupported, "list", &self.url, why)
                        .with_help("what lies in this store cannot be synced, only copied"));
                }
            }
            self.last = Some(object.key.clone());
            seen.push(Seen::Entry(Entry {
                relative: relative.into(),
                len_bytes: object.len_bytes.unwrap_or(0),
                modified_unix: object.modified_unix,
                object: Some(object),
            }));
        }
        Ok(seen)
    }
}
