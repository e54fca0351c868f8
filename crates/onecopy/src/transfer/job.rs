//! Items, and how many of them are under way at a time.

use std::path::PathBuf;

use tokio::task::JoinSet;

use super::entry::Entry;
use super::folder::Root;
use super::settings::Action;
use super::shared::{Shared, cancelled};
use super::{download, names, relay, upload};
use crate::error::{Error, ErrorKind, Result};
use crate::size::to_usize;
use crate::store::{Object, Source, Store, stdin};
use crate::sync::Arc;

/// Where bytes come from.
#[derive(Debug, Clone)]
pub(super) enum From {
    Object(Source),
    File(PathBuf),
    Stdin,
}

/// Where bytes go.
#[derive(Debug, Clone)]
pub(super) enum To {
    Object {
        store: Arc<dyn Store>,
        object: Object,
    },
    File {
        root: Arc<Root>,
        relative: Vec<u8>,
    },
}

/// A place below which sources lie.
#[derive(Debug, Clone)]
pub(super) enum Origin {
    Store(Arc<dyn Store>),
    Folder(PathBuf),
}

/// A place below which targets lie.
#[derive(Debug, Clone)]
pub(super) enum Goal {
    Bucket {
        store: Arc<dyn Store>,
        prefix: Vec<u8>,
    },
    Folder(Arc<Root>),
}

impl Origin {
    /// The source that `entry` stands for, and how it is called.
    pub(super) fn source(&self, entry: &Entry) -> Result<(From, String)> {
        match (self, &entry.object) {
            (Self::Store(store), Some(object)) => {
                let shown = url(&**store, object);
                let (store, object) = (Arc::clone(store), object.clone());
                Ok((From::Object(Source { store, object }), shown))
            }
            (Self::Folder(path), _) => {
                use std::os::unix::ffi::OsStrExt;
                let path = path.join(std::ffi::OsStr::from_bytes(&entry.relative));
                let shown = names::shown(path.as_os_str().as_bytes());
                Ok((From::File(path), shown))
            }
            (Self::Store(_), None) => Err(Error::bug("copy an entry", "it is no object")),
        }
    }

    /// How what lies at `relative` is called.
    pub(super) fn shown(&self, relative: &[u8]) -> String {
        match self {
            Self::Store(_) => names::shown(relative),
            Self::Folder(path) => Root::new(path).shown(relative),
        }
    }
}

impl Goal {
    /// The target at `relative`, and how it is called; an error where there can be none.
    pub(super) fn target(&self, relative: &[u8]) -> (String, Result<To>) {
        match self {
            Self::Bucket { store, prefix } => {
                let key = [&prefix[..], relative].concat();
                let Some(writer) = store.writer() else {
                    let bug = Error::bug("write to a store", "it cannot be written to");
                    return (names::shown(&key), Err(bug));
                };
                let object = writer.object(&key);
                let shown = url(&**store, &object);
                let to = match names::no_key(&key) {
                    None => Ok(To::Object {
                        store: Arc::clone(store),
                        object,
                    }),
                    Some(why) => Err(refusal(&shown, why)),
                };
                (shown, to)
            }
            Self::Folder(root) => {
                let shown = root.shown(relative);
                let to = match names::no_file(relative) {
                    None => Ok(To::File {
                        root: Arc::clone(root),
                        relative: relative.into(),
                    }),
                    Some(why) => Err(refusal(&shown, why)),
                };
                (shown, to)
            }
        }
    }

    pub(super) const fn is_folder(&self) -> bool {
        matches!(self, Self::Folder(_))
    }
}

/// How an object is called in a line that somebody may copy into a command: its key as it is, but for control characters.
fn url(store: &dyn Store, object: &Object) -> String {
    match store.writer() {
        Some(writer) => {
            let key = names::shown(object.key.as_bytes());
            match &object.version {
                Some(version) => format!("s3://{}/{key}?versionId={version}", writer.bucket()),
                None => format!("s3://{}/{key}", writer.bucket()),
            }
        }
        None => object.url.to_string(),
    }
}

fn refusal(target: &str, why: String) -> Error {
    Error::new(ErrorKind::InvalidInput, "write", target, why)
        .with_help("copy it alone, under another name")
}

/// One item to copy.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) from: From,
    pub(super) to: To,
    pub(super) source: String,
    pub(super) target: String,
    /// As the listing told, for a dry run.
    pub(super) len_bytes: Option<u64>,
}

impl Job {
    async fn run(&self, shared: &Arc<Shared>) -> Result<u64> {
        match (&self.from, &self.to) {
            (From::Object(source), To::File { root, relative }) => {
                let work = download::run(shared, source.clone(), root, relative);
                shared.until_stopped(work).await
            }
            (From::Object(source), To::Object { store, object }) => {
                relay::run(shared, source.clone(), store, object).await
            }
            (From::File(path), To::Object { store, object }) => {
                upload::file(shared, path, store, object).await
            }
            (From::Stdin, To::Object { store, object }) => {
                upload::stream(shared, stdin()?, store, object).await
            }
            (From::File(_) | From::Stdin, To::File { .. }) => {
                Err(Error::bug("copy", "neither side is a store"))
            }
        }
    }
}

/// Runs jobs side by side.
#[derive(Debug)]
pub(super) struct Runner {
    shared: Arc<Shared>,
    /// Each gives its weight at its end.
    tasks: JoinSet<usize>,
    /// Ranges that the items under way have in all.
    weight: usize,
}

impl Runner {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self {
            shared: Arc::clone(shared),
            tasks: JoinSet::new(),
            weight: 0,
        }
    }

    /// Takes a job, once no more are under way than keep all ranges busy while some begin and others end. Of large items
    /// that are a few: begun all at once, all of them would be done last.
    pub(super) async fn submit(&mut self, job: Job) -> Result<()> {
        if self.shared.settings.is_dry_run {
            let (source, target) = (&job.source, Some(job.target.as_str()));
            self.shared
                .done(Action::Copy, source, target, &Ok(job.len_bytes));
            return Ok(());
        }
        let most = self.shared.most_flights();
        while self.weight >= most * 2 {
            self.wait().await?;
        }
        if self.shared.is_stopped() {
            return Err(cancelled());
        }
        let shared = Arc::clone(&self.shared);
        let ranges = job.len_bytes.unwrap_or(0) / shared.settings.range_bytes as u64;
        let weight = to_usize(ranges).clamp(1, most);
        self.weight += weight;
        self.tasks.spawn(async move {
            let result = job.run(&shared).await;
            // Told once, for all that was under way.
            if !(shared.is_stopped() && result.is_err()) {
                let target = Some(job.target.as_str());
                shared.done(Action::Copy, &job.source, target, &result.map(Some));
            }
            weight
        });
        Ok(())
    }

    async fn wait(&mut self) -> Result<()> {
        match self.tasks.join_next().await {
            Some(Err(error)) => Err(Error::bug("copy an item", error.to_string())),
            Some(Ok(weight)) => {
                self.weight -= weight;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Waits for all that is under way; `Cancelled` where the transfer was stopped.
    pub(super) async fn finish(mut self) -> Result<()> {
        while !self.tasks.is_empty() {
            self.wait().await?;
        }
        if self.shared.is_stopped() {
            return Err(cancelled());
        }
        Ok(())
    }
}
