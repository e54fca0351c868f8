//! From what people write to the objects they mean.

use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::braces::Names;
use super::file::FileStore;
use super::glob::Glob;
use super::shown::shown;
use super::stores::Stores;
use super::url::Place;
use super::url_list::{MAX_URL_BYTES, list_file, read_list};
use super::{Key, ListRequest, Object, Source, Store, escape};
use crate::config::StoreConfig;
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::Ledger;
use crate::sync::Arc;

/// What a shard's name ends with, whatever the case.
const SHARD_ENDINGS: [&str; 7] = [
    ".tar",
    ".tar.gz",
    ".tgz",
    ".tar.zst",
    ".tar.zstd",
    ".tzst",
    ".tar.gzip",
];

/// Names that lists and braces may give in one call, at most: a million shards of 1 GB are 1 PB, a misspelt range is
/// found out, and what is kept of a million stays below 1 GB of memory.
pub(super) const MAX_NAMES: u64 = 1_000_000;

/// What becomes of that which is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absent {
    /// A file that is not there, or may not be looked at, is an error; so is a pattern that nothing matches.
    Refused,
    /// Such a file is kept, so that reading it tells; a pattern that nothing matches is an error.
    Kept,
    /// Such a file is kept; a pattern that nothing matches names nothing.
    Ignored,
}

/// Whether `url` may stand for something else than the one object or prefix that it is written like: it has braces, or is
/// a glob. In an HTTP URL `?` begins a query, and there are no globs.
#[must_use]
pub fn is_pattern(url: &str) -> bool {
    let is_http = matches!(Place::read(url), Ok(Place::Http(_)));
    escape::has_braces(url) || !is_http && escape::has_glob(url)
}

/// Everything that the braces in `url` stand for, in the order in which it is written. Backslashes stay.
///
/// # Errors
///
/// `LimitReached` for more than a million names, or braces that are nested too deep.
pub fn expand_braces(url: &str) -> Result<Vec<String>> {
    let names = Names::read(url)?;
    if names.count() > MAX_NAMES {
        let why = format!("it stands for more than {MAX_NAMES} names");
        return Err(
            Error::new(ErrorKind::LimitReached, "expand", shown(url), why)
                .with_help("check the braces; name many objects by a prefix or a glob"),
        );
    }
    Ok(names.iter().collect())
}

/// Finds the objects that `urls` name, in their order.
///
/// Each may be
///
/// - `s3://bucket/key`, `gs://bucket/name`, `az://container/name`, `http(s)://host/path`, `file:///path`, a bare path, or
///   `file+escaped:///path`, in which `%FF` is the byte 255, for files whose names are no UTF-8;
/// - any of them with braces, as in bash: `train-{000..999}.tar`, `{train,val}-{0..9..2}.tar`, `{a..f}`, nested, in the
///   order written;
/// - for all but web servers, a glob: `*` and `?` within one folder, `**` over folders, `[a-z]`; in byte order. An object
///   that bears the very name is taken too;
/// - for all but web servers, a prefix that ends in `/` (or a bare bucket): everything below that is named like a shard
///   (`.tar`, `.tar.gz`, `.tgz`, `.tar.zst`, `.tzst`), in byte order. Use a glob to take other names;
/// - a file with a list, one URL a line, `#` at the start of a line for remarks: `@path`, `@-` for stdin, or a path that
///   ends in `.txt` or `.list`. Blanks around a URL and the ends of lines that Windows writes are no part of it: a key
///   that ends in a blank is named by a glob, `[ ]`.
///
/// A backslash before one of `* ? [ ] { } , \` makes it stand for itself; before anything else it is itself. A file that
/// bears the very name as written is meant, whatever characters are in it.
///
/// Objects in stores and on web servers that are named outright are not looked up: reading tells whether they exist.
///
/// # Errors
///
/// `NotFound` where a pattern, prefix or file matches nothing; `LimitReached` for more than a million names, a list of
/// more than 64 MiB, a URL of more than 64 KiB; `InvalidInput`, `Unsupported` for what cannot be a URL; and whatever a
/// listing can meet.
pub async fn resolve(urls: &[String], config: &StoreConfig) -> Result<Vec<Source>> {
    resolve_with(urls, config, Absent::Refused, &Ledger::unread()).await
}

/// As [`resolve`], with a word on that which is not there; connections, look-ups and listings are counted on `ledger`.
///
/// # Errors
///
/// As [`resolve`], but for what `absent` says.
pub async fn resolve_with(
    urls: &[String],
    config: &StoreConfig,
    absent: Absent,
    ledger: &Arc<Ledger>,
) -> Result<Vec<Source>> {
    let each = resolve_each(&[urls], config, absent, ledger).await?;
    Ok(each.into_iter().flatten().collect())
}

/// As [`resolve_with`] for several lists of URLs, which share connections.
///
/// # Errors
///
/// As [`resolve`].
pub async fn resolve_each(
    lists: &[&[String]],
    config: &StoreConfig,
    absent: Absent,
    ledger: &Arc<Ledger>,
) -> Result<Vec<Vec<Source>>> {
    let mut search = Search {
        stores: Stores::new(config, ledger),
        absent,
        names_left: MAX_NAMES,
        sources: Vec::new(),
    };
    let mut found = Vec::with_capacity(lists.len());
    for urls in lists {
        search.add_all(urls, ledger).await?;
        found.push(std::mem::take(&mut search.sources));
    }
    Ok(found)
}

/// What was found so far.
struct Search {
    stores: Stores,
    absent: Absent,
    names_left: u64,
    sources: Vec<Source>,
}

impl Search {
    /// Adds everything that `urls` stand for.
    async fn add_all(&mut self, urls: &[String], ledger: &Arc<Ledger>) -> Result<()> {
        if urls.is_empty() {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                "find",
                "the data",
                "no URL was given",
            ));
        }
        for url in urls {
            match list_file(url) {
                Some(path) => {
                    for line in read_list(path, self.names_left, ledger)? {
                        if list_file(&line).is_some() {
                            let why = "a list cannot contain another list";
                            return Err(Error::new(ErrorKind::InvalidInput, "read", path, why));
                        }
                        self.add(&line).await?;
                    }
                }
                None => self.add(url).await?,
            }
        }
        Ok(())
    }

    /// Adds everything that one URL stands for.
    async fn add(&mut self, url: &str) -> Result<()> {
        let start = || shown(url).chars().take(200).collect::<String>();
        if url.len() > MAX_URL_BYTES {
            let why = format!("it has {} bytes, where {MAX_URL_BYTES} fit", url.len());
            return Err(
                Error::new(ErrorKind::LimitReached, "use the URL", start(), why)
                    .with_help("write many names into a file, one a line, and name it as @file"),
            );
        }
        // A file that bears the very name is meant, whatever characters are in it.
        if let Place::File(path) = Place::read(url)?
            && self.stores.look_at(&path, Path::is_file)
        {
            self.take_names(1, start)?;
            return self.add_file(&path);
        }
        let names = Names::read(url)?;
        self.take_names(names.count(), start)?;
        for name in names.iter() {
            self.add_name(&name).await?;
        }
        Ok(())
    }

    fn take_names(&mut self, count: u64, pattern: impl Fn() -> String) -> Result<()> {
        let left = self.names_left.checked_sub(count);
        self.names_left = left.ok_or_else(|| {
            let why = if count == u64::MAX {
                format!("it stands for more names than can be counted, where {MAX_NAMES} fit")
            } else {
                format!("with its {count} names, more than {MAX_NAMES} are given")
            };
            Error::new(ErrorKind::LimitReached, "expand", pattern(), why).with_help(
                "check the braces; name many shards by a prefix (s3://b/train/) or a glob",
            )
        })?;
        Ok(())
    }

    /// Adds what a name without braces stands for.
    async fn add_name(&mut self, name: &str) -> Result<()> {
        let place = Place::read(&escape::unescaped(name))?;
        let is_prefix = match &place {
            Place::Http(_) => false,
            Place::File(path) => is_folder_name(path),
            other => other.key().is_some_and(is_prefix),
        };
        // On a web server `?` begins a query, and nothing can be listed. A prefix is meant as it is written.
        let is_glob = !is_prefix && !matches!(place, Place::Http(_)) && escape::has_glob(name);
        if let Place::File(path) = &place
            && !is_prefix
            && !is_glob
        {
            return self.add_file(path);
        }
        let place = if is_glob { Place::read(name)? } else { place };
        let (store, object) = self.stores.open(&place)?;
        if is_prefix || is_glob {
            return self.add_listed(&store, object.key, is_prefix, name).await;
        }
        self.sources.push(Source { store, object });
        Ok(())
    }

    fn add_file(&mut self, path: &Path) -> Result<()> {
        let (store, unknown) = self.stores.open(&Place::File(path.to_owned()))?;
        let object = match self.stores.look_at(path, FileStore::look_up) {
            Err(error) if self.absent == Absent::Refused => return Err(error),
            // Reading will tell.
            Err(_) => unknown,
            Ok(object) => object,
        };
        self.sources.push(Source { store, object });
        Ok(())
    }

    /// Adds what a listing finds for a prefix or a glob.
    async fn add_listed(
        &mut self,
        store: &Arc<dyn Store>,
        pattern: Key,
        is_prefix: bool,
        name: &str,
    ) -> Result<()> {
        let glob = if is_prefix {
            None
        } else {
            Some(Glob::new(&pattern, name)?)
        };
        let prefix = glob.as_ref().map_or(pattern, |glob| glob.prefix().clone());
        let listed = list_all(store, prefix, name).await?;
        let seen = listed.len();
        let is_meant = |object: &Object| match &glob {
            Some(glob) => glob.is_match(&object.key),
            None => is_shard_name(&object.key),
        };
        let mut meant: Vec<Object> = listed.into_iter().filter(is_meant).collect();
        if meant.is_empty() && self.absent != Absent::Ignored {
            return Err(nothing_found(name, is_prefix, seen));
        }
        meant.sort_by(|a, b| a.key.cmp(&b.key));
        self.sources.extend(meant.into_iter().map(|object| Source {
            store: Arc::clone(store),
            object,
        }));
        Ok(())
    }
}

fn nothing_found(name: &str, is_prefix: bool, seen: usize) -> Error {
    let why = match (is_prefix, seen) {
        (true, 0) => "there is nothing below it".to_owned(),
        (true, _) => format!("{seen} objects are below it, but none is named like a shard"),
        (false, 0) => "nothing matches".to_owned(),
        (false, _) => format!("none of the {seen} objects that begin like it match"),
    };
    Error::new(ErrorKind::NotFound, "find", shown(name), why).with_help(if is_prefix {
        "shards end in .tar, .tar.gz, .tgz, .tar.zst; for other names use a glob, such as **"
    } else {
        "* and ? stay within a folder, ** goes below, a backslash makes them stand for themselves; see what is there \
         with onecopy ls"
    })
}

/// Every object whose key begins with `prefix`, each once.
async fn list_all(store: &Arc<dyn Store>, prefix: Key, name: &str) -> Result<Vec<Object>> {
    let mut request = ListRequest {
        prefix,
        is_folded: false,
        page: None,
    };
    let mut objects = Vec::new();
    let mut keys = HashSet::new();
    let mut tokens = HashSet::new();
    let mut pages = super::Pages::default();
    loop {
        let page = store.list(&request).await?;
        pages.next(&page, name)?;
        // Some servers list a key twice where pages meet.
        objects.extend(
            page.objects
                .into_iter()
                .filter(|object| keys.insert(object.key.clone())),
        );
        let Some(next) = page.next else {
            return Ok(objects);
        };
        if !tokens.insert(next.clone()) {
            let why = "the server lists the same page again and again";
            return Err(Error::new(ErrorKind::Corrupt, "list", shown(name), why));
        }
        request.page = Some(next);
    }
}

/// Whether a key is meant as the beginning of others.
pub(super) fn is_prefix(key: &str) -> bool {
    key.is_empty() || key.ends_with('/')
}

pub(super) fn is_folder_name(path: &Path) -> bool {
    path.as_os_str().as_bytes().ends_with(b"/")
}

/// Whether a key ends as shards do.
fn is_shard_name(key: &Key) -> bool {
    let bytes = key.as_bytes();
    SHARD_ENDINGS.iter().any(|ending| {
        bytes.len() > ending.len()
            && bytes[bytes.len() - ending.len()..].eq_ignore_ascii_case(ending.as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_told_by_their_names() {
        for key in ["a.tar", "a/B.TAR.GZ", "x.tgz", "y.tar.zst"] {
            assert!(is_shard_name(&Key::new(key)), "{key}");
        }
        for key in [".tar", "a.tar.idx", "tar", "a.json", "d/"] {
            assert!(!is_shard_name(&Key::new(key)), "{key}");
        }
    }

    #[test]
    fn a_question_mark_is_a_query_in_http_only() {
        for url in ["s3://b/a?.tar", "https://h/{0..3}.tar", "a/*", "[x]"] {
            assert!(is_pattern(url), "{url}");
        }
        for url in ["https://h/a?b", "HTTP://h/a*", "s3://b/a", r"s3://b/\*\{"] {
            assert!(!is_pattern(url), "{url}");
        }
    }
}
