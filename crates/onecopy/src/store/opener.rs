//! Stores by URL, for looking around in them.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::resolve::{is_folder_name, is_prefix};
use super::stores::Stores;
use super::url::Place;
use super::{Key, Object, Store, escape};
use crate::config::StoreConfig;
use crate::error::Result;
use crate::ledger::{Await, Ledger};
use crate::sync::{Arc, Mutex, Threads};

/// Files that are looked at at the same time, at most.
const THREADS: usize = 64;

/// What a URL names, as [`open_store`] tells it.
#[derive(Debug, Clone)]
pub enum Named {
    /// One object. Nothing but its key is known yet; [`Store::head`] looks it up.
    Object(Object),
    /// Everything whose key begins with these bytes: a bucket, or what ends in `/`.
    Prefix(Key),
}

/// Opens the store of one URL, for looking around in it: no braces, globs or lists.
///
/// # Errors
///
/// `InvalidInput` for what is no URL, a bucket or profile that cannot be; `Unsupported` for schemes that are not known.
pub fn open_store(url: &str, config: &StoreConfig) -> Result<(Arc<dyn Store>, Named)> {
    open_store_counted(url, config, &Ledger::unread())
}

/// As [`open_store`]; connections, look-ups and listings are counted on `ledger`.
///
/// # Errors
///
/// As [`open_store`].
pub fn open_store_counted(
    url: &str,
    config: &StoreConfig,
    ledger: &Arc<Ledger>,
) -> Result<(Arc<dyn Store>, Named)> {
    Opener::new(config, ledger).open(url)
}

/// Opens stores as [`open_store`] does. Whatever is read by what one of them opened shares its connections, and credentials
/// that are looked for once.
#[derive(Debug)]
pub struct Opener {
    /// Guards the stores that are open; held to open one.
    stores: Mutex<Stores>,
    /// For tasks: a file system that does not answer must not stop the network.
    threads: Threads,
    ledger: Arc<Ledger>,
}

impl Opener {
    /// Nothing is open yet; connections, look-ups and listings are counted on `ledger`.
    #[must_use]
    pub fn new(config: &StoreConfig, ledger: &Arc<Ledger>) -> Self {
        Self {
            stores: Mutex::new(Stores::new(config, ledger)),
            threads: Threads::new("open", THREADS),
            ledger: Arc::clone(ledger),
        }
    }

    /// Where it is all counted.
    #[must_use]
    pub fn ledger(&self) -> &Arc<Ledger> {
        &self.ledger
    }

    /// Opens the store of one URL, from a task.
    ///
    /// # Errors
    ///
    /// As [`open_store`]; and where there is no thread for it.
    pub(crate) async fn open_aside(self: &Arc<Self>, url: &str) -> Result<(Arc<dyn Store>, Named)> {
        let (opener, url) = (Arc::clone(self), url.to_owned());
        self.threads.run(move || opener.open(&url)).await?
    }

    /// Opens the store of one URL. Where it is a path, this takes as long as its file system likes.
    ///
    /// # Errors
    ///
    /// As [`open_store`].
    pub fn open(&self, url: &str) -> Result<(Arc<dyn Store>, Named)> {
        let place = match Place::read(url)? {
            // A file that bears the very name is meant, whatever characters are in it.
            Place::File(path) if self.look_at(&path, Path::exists) => Place::File(path),
            _ => Place::read(&escape::unescaped(url))?,
        };
        let (store, object) = self.stores.lock().open(&place)?;
        let named = match &place {
            place if place.key().is_some_and(is_prefix) => Named::Prefix(object.key),
            Place::File(path) if is_folder_name(path) => Named::Prefix(object.key),
            Place::File(path) if self.look_at(path, Path::is_dir) => {
                let slash = [path.as_os_str().as_bytes(), b"/"].concat();
                Named::Prefix(Key::new(slash))
            }
            _ => Named::Object(object),
        };
        Ok((store, named))
    }

    /// Looks at a file, and tells so as long as that takes.
    fn look_at<T>(&self, path: &Path, look: impl FnOnce(&Path) -> T) -> T {
        let what = format_args!("a look at {}", path.display());
        let _under_way = self.ledger.awaits(Await::Disk, what);
        look(path)
    }
}
