//! From what people write to the places that are copied from and to.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::entry::Place;
use super::folder::Root;
use super::job::{Goal, Origin};
use super::pattern::versioned;
use super::settings::Settings;
use super::sync::Sides;
use super::walk::Walk;
use crate::config::StoreConfig;
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::Ledger;
use crate::store::{
    Key, Named, Object, OneKind, Store, behind_listed, check_url, open_store_counted, shown_url,
    split_bucket,
};
use crate::sync::Arc;

/// What a URL or path names.
#[derive(Debug, Clone)]
pub(super) enum Spot {
    /// A bucket's store, and a key or prefix in it.
    Bucket { store: Arc<dyn Store>, key: Vec<u8> },
    /// An object on a web server.
    Web {
        store: Arc<dyn Store>,
        object: Object,
    },
    /// A path of this machine.
    Path(PathBuf),
    /// `-`.
    Standard,
}

/// Opens stores, each bucket once, so that all that is read from it shares its connections.
#[derive(Debug)]
pub(super) struct Opener {
    config: StoreConfig,
    ledger: Arc<Ledger>,
    kind: OneKind,
    buckets: HashMap<String, Arc<dyn Store>>,
    roots: HashMap<PathBuf, Arc<Root>>,
}

impl Opener {
    pub(super) fn new(config: &StoreConfig, ledger: &Arc<Ledger>) -> Self {
        Self {
            config: config.clone(),
            ledger: Arc::clone(ledger),
            kind: OneKind::new(config),
            buckets: HashMap::new(),
            roots: HashMap::new(),
        }
    }

    /// The folder at `path`, so that all that is written below it shares the folders that are held open.
    pub(super) fn root(&mut self, path: PathBuf) -> Arc<Root> {
        let root = self.roots.entry(path);
        Arc::clone(root.or_insert_with_key(|path| Arc::new(Root::new(path))))
    }

    fn store(&self, url: &str) -> Result<(Arc<dyn Store>, Named)> {
        open_store_counted(url, &self.config, &self.ledger)
    }

    pub(super) fn open(&mut self, url: &str) -> Result<Spot> {
        if url == "-" {
            return Ok(Spot::Standard);
        }
        let scheme = url
            .split_once("://")
            .map(|(scheme, _)| scheme.to_ascii_lowercase());
        if let (Some(scheme), Some(rest)) = (&scheme, behind_listed(url)) {
            return self.bucket(url, scheme, rest);
        }
        match scheme.as_deref() {
            None => {
                if url.is_empty() {
                    self.store(url)?;
                }
                Ok(Spot::Path(PathBuf::from(url)))
            }
            Some("file") => match self.store(url)?.1 {
                Named::Object(object) => Ok(Spot::Path(path(&object.key))),
                Named::Prefix(key) => Ok(Spot::Path(path(&key))),
            },
            Some(_) => match self.store(url)? {
                (store, Named::Object(object)) => Ok(Spot::Web { store, object }),
                (_, Named::Prefix(_)) => {
                    let why = "it names no object";
                    Err(Error::new(
                        ErrorKind::InvalidInput,
                        "use",
                        shown_url(url),
                        why,
                    ))
                }
            },
        }
    }

    /// A bucket's store, and what `url` names in it: `rest` is what stands behind the scheme.
    fn bucket(&mut self, url: &str, scheme: &str, rest: &str) -> Result<Spot> {
        if scheme != "s3" {
            check_url(url)?;
        }
        let (bucket, key) = split_bucket(rest);
        let name = format!("{scheme}://{bucket}");
        let store = match self.buckets.get(&name) {
            Some(store) => Arc::clone(store),
            None => {
                self.kind.take(scheme)?;
                let store = self.store(&name)?.0;
                self.buckets.insert(name, Arc::clone(&store));
                store
            }
        };
        let key = key.as_bytes().into();
        Ok(Spot::Bucket { store, key })
    }
}

fn path(key: &Key) -> PathBuf {
    PathBuf::from(std::ffi::OsStr::from_bytes(key.as_bytes()))
}

/// A prefix or path as a folder: with a slash at its end, unless it is empty.
pub(super) fn as_folder(key: &[u8]) -> Vec<u8> {
    let mut key: Vec<u8> = key.into();
    if !key.is_empty() && !key.ends_with(b"/") {
        key.push(b'/');
    }
    key
}

/// Both sides of a sync.
pub(super) fn sides(
    source: &str,
    target: &str,
    settings: &Settings,
    ledger: &Arc<Ledger>,
) -> Result<Sides> {
    for url in [source, target] {
        if versioned(url).is_some() {
            let why = "a sync takes objects as they are now, and none of their versions";
            return Err(Error::new(ErrorKind::Unsupported, "sync", url, why)
                .with_help("copy a version by its name with onecopy cp"));
        }
    }
    let mut opener = Opener::new(&settings.store, ledger);
    let (from, to) = (opener.open(source)?, opener.open(target)?);
    if let (Spot::Path(_), Spot::Path(_)) = (&from, &to) {
        return Err(both_here(source, target));
    }
    let (source_place, origin) = listed(from, source, settings, false)?;
    let (target_place, goal) = match to {
        Spot::Path(ref path) => {
            let root = Arc::new(Root::new(path));
            let (place, _) = listed(to, target, settings, true)?;
            (place, Goal::Folder(root))
        }
        Spot::Bucket { ref store, .. } if store.writer().is_none() => {
            return Err(no_target(target));
        }
        Spot::Bucket { ref store, ref key } => {
            let goal = Goal::Bucket {
                store: Arc::clone(store),
                prefix: as_folder(key),
            };
            if let Place::Bucket { store, prefix, .. } = &source_place {
                apart((&**store, prefix.as_bytes(), source), &goal, target)?;
            }
            (listed(to, target, settings, true)?.0, goal)
        }
        Spot::Web { .. } | Spot::Standard => return Err(no_target(target)),
    };
    Ok(Sides {
        source: source_place,
        origin,
        target: target_place,
        goal,
        shown: target.to_owned(),
    })
}

pub(super) fn both_here(source: &str, target: &str) -> Error {
    let why = "both are on this machine";
    let what = format!("{source} and {target}");
    Error::new(ErrorKind::InvalidInput, "copy between", what, why)
        .with_help("name s3://, gs:// or az:// on one side; for files there are cp and rsync")
}

/// Refuses to copy what begins with a prefix to where some of it would be read again, or written over.
pub(super) fn apart(
    (store, prefix, source): (&dyn Store, &[u8], &str),
    goal: &Goal,
    target: &str,
) -> Result<()> {
    let Goal::Bucket {
        store: to,
        prefix: below,
    } = goal
    else {
        return Ok(());
    };
    // All stores of one transfer have one endpoint.
    let bucket = |store: &dyn Store| store.writer().map(|writer| writer.bucket().to_owned());
    if bucket(store) != bucket(&**to) {
        return Ok(());
    }
    let why = if below == prefix {
        "both are the same place"
    } else if below.starts_with(prefix) {
        "the target lies within the source"
    } else if prefix.starts_with(below) {
        "the source lies within the target"
    } else {
        return Ok(());
    };
    let what = format!("{source} to {target}");
    Err(Error::new(ErrorKind::InvalidInput, "copy", what, why)
        .with_help("choose a target beside the source, or in another bucket"))
}

pub(super) fn no_target(target: &str) -> Error {
    let why = "this kind of place cannot be written to";
    Error::new(ErrorKind::Unsupported, "write to", shown_url(target), why)
        .with_help("write to s3:// or to a folder; gs:// and az:// can be read only")
}

/// What is below a spot, as a listing and as where things come from.
pub(super) fn listed(
    spot: Spot,
    url: &str,
    settings: &Settings,
    is_target: bool,
) -> Result<(Place, Origin)> {
    match spot {
        Spot::Bucket { store, key } => {
            let origin = Origin::Store(Arc::clone(&store));
            let place = Place::Bucket {
                store,
                prefix: Key::new(as_folder(&key)),
                beginning: Vec::new(),
                url: url.to_owned(),
            };
            Ok((place, origin))
        }
        Spot::Path(path) => {
            if path.exists() && !path.is_dir() {
                let why = "it is a file where a folder is needed";
                return Err(Error::new(ErrorKind::InvalidInput, "list", url, why)
                    .with_help("copy single files with onecopy cp"));
            }
            let how = Walk {
                // At a target nothing is followed: links there are left alone.
                is_following_links: settings.is_following_links && !is_target,
                is_target,
                filter: settings.filter.clone(),
            };
            let origin = Origin::Folder(path.clone());
            Ok((Place::Folder { path, how }, origin))
        }
        Spot::Web { .. } | Spot::Standard => {
            let why = "what is there cannot be listed";
            Err(
                Error::new(ErrorKind::Unsupported, "list", shown_url(url), why)
                    .with_help("use s3://, gs://, az:// or a folder"),
            )
        }
    }
}
