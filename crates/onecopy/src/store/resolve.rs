//! From what people write to the objects they mean.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};

use super::file::FileStore;
use super::stores::Stores;
use super::url::{Place, shown};
use super::{Key, ListRequest, Object, Source, Store, braces};
use crate::config::StoreConfig;
use crate::error::{Error, ErrorKind, Result};
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

/// A file with a list longer than this is refused: 64 MiB are a million URLs.
const MAX_LIST_FILE: u64 = 64 << 20;

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
/// `InvalidInput` for what is no URL, a bucket or profile that cannot be; `Unsupported` for schemes of later versions.
pub fn open_store(url: &str, config: &StoreConfig) -> Result<(Arc<dyn Store>, Named)> {
    let place = Place::read(url)?;
    let (store, object) = Stores::new(config).open(&place)?;
    let named = match &place {
        Place::S3 { key, .. } if key.is_empty() || key.ends_with('/') => Named::Prefix(object.key),
        Place::File(path) if is_folder_name(path) => Named::Prefix(object.key),
        Place::File(path) if path.is_dir() => {
            let slash = [path.as_os_str().as_bytes(), b"/"].concat();
            Named::Prefix(Key::new(slash))
        }
        _ => Named::Object(object),
    };
    Ok((store, named))
}

/// Finds the objects that `urls` name, in their order.
///
/// Each may be
///
/// - `s3://bucket/key`, `http(s)://host/path`, `file:///path` or a bare path;
/// - any of them with braces: `train-{000..999}.tar`, `{train,val}-{0..9}.tar`, expanded in the order written;
/// - for S3 and files, a glob: `*` and `?` within one folder, `**` over folders, `[a-z]`; in byte order. An object
///   that bears the very name is taken too;
/// - for S3 and files, a prefix that ends in `/` (or a bare bucket): everything below that is named like a shard
///   (`.tar`, `.tar.gz`, `.tgz`, `.tar.zst`, `.tzst`), in byte order. Use a glob to take other names;
/// - a file with a list, one URL a line, `#` at the start of a line for remarks: `@path`, or a path that ends in
///   `.txt` or `.list`.
///
/// Objects in S3 and on web servers that are named outright are not looked up: reading tells whether they exist.
///
/// # Errors
///
/// `NotFound` where a pattern, prefix or file matches nothing; `InvalidInput`, `Unsupported` for what cannot be a URL;
/// and whatever a listing can meet.
pub async fn resolve(urls: &[String], config: &StoreConfig) -> Result<Vec<Source>> {
    if urls.is_empty() {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            "find",
            "the data",
            "no URL was given",
        ));
    }
    let mut stores = Stores::new(config);
    let mut sources = Vec::new();
    for url in urls {
        match list_file(url) {
            Some(path) => {
                for line in read_list(path)? {
                    if list_file(&line).is_some() {
                        let why = "a list cannot contain another list";
                        return Err(Error::new(ErrorKind::InvalidInput, "read", path, why));
                    }
                    add(&mut stores, &line, &mut sources).await?;
                }
            }
            None => add(&mut stores, url, &mut sources).await?,
        }
    }
    Ok(sources)
}

/// Adds everything that one URL stands for.
async fn add(stores: &mut Stores, url: &str, sources: &mut Vec<Source>) -> Result<()> {
    // A file that bears the very name is meant, whatever characters are in it.
    let is_literal = matches!(Place::read(url)?, Place::File(path) if path.is_file());
    let names = if is_literal {
        vec![url.to_owned()]
    } else {
        braces::expand(url)?
    };
    for name in names {
        let place = Place::read(&name)?;
        let (store, object) = stores.open(&place)?;
        match &place {
            Place::Http(_) => sources.push(Source { store, object }),
            Place::S3 { key, .. } => {
                let is_prefix = key.is_empty() || key.ends_with('/');
                if is_prefix || has_glob(key) {
                    add_listed(&store, object.key, is_prefix, &name, sources).await?;
                } else {
                    sources.push(Source { store, object });
                }
            }
            Place::File(path) => {
                let text = path.as_os_str().to_string_lossy();
                let is_prefix = is_folder_name(path);
                if !is_literal && (is_prefix || has_glob(&text)) {
                    add_listed(&store, object.key, is_prefix, &name, sources).await?;
                } else {
                    let object = FileStore::look_up(path)?;
                    sources.push(Source { store, object });
                }
            }
        }
    }
    Ok(())
}

/// Adds what a listing finds for a prefix or a glob.
async fn add_listed(
    store: &Arc<dyn Store>,
    pattern: Key,
    is_prefix: bool,
    name: &str,
    sources: &mut Vec<Source>,
) -> Result<()> {
    let glob = if is_prefix {
        None
    } else {
        Some(Glob::new(&pattern, name)?)
    };
    let prefix = glob.as_ref().map_or(pattern, Glob::prefix);
    let listed = list_all(store, prefix, name).await?;
    let seen = listed.len();
    let is_meant = |object: &Object| match &glob {
        Some(glob) => glob.is_match(&object.key),
        None => is_shard_name(&object.key),
    };
    let mut meant: Vec<Object> = listed.into_iter().filter(is_meant).collect();
    if meant.is_empty() {
        let why = match (is_prefix, seen) {
            (true, 0) => "there is nothing below it".to_owned(),
            (true, _) => format!("{seen} objects are below it, but none is named like a shard"),
            (false, 0) => "nothing matches".to_owned(),
            (false, _) => format!("none of the {seen} objects that begin like it match"),
        };
        return Err(Error::new(ErrorKind::NotFound, "find", shown(name), why).with_help(
            if is_prefix {
                "shards end in .tar, .tar.gz, .tgz, .tar.zst; for other names use a glob, such as **"
            } else {
                "* and ? stay within a folder, ** goes below; see what is there with onecopy ls"
            },
        ));
    }
    meant.sort_by(|a, b| a.key.cmp(&b.key));
    sources.extend(meant.into_iter().map(|object| Source {
        store: Arc::clone(store),
        object,
    }));
    Ok(())
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
    loop {
        let page = store.list(&request).await?;
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

/// A pattern over whole keys.
struct Glob {
    matcher: GlobMatcher,
    pattern: Key,
}

impl Glob {
    fn new(pattern: &Key, name: &str) -> Result<Self> {
        let text = String::from_utf8_lossy(pattern.as_bytes());
        // Braces are expanded by now: what is left of them is meant as it stands.
        let text = text.replace('{', "[{]").replace('}', "[}]");
        let built = GlobBuilder::new(&text)
            .literal_separator(true)
            .backslash_escape(true)
            .build();
        let glob = built.map_err(|error| {
            Error::new(
                ErrorKind::InvalidInput,
                "read the pattern",
                shown(name),
                error.to_string(),
            )
        })?;
        Ok(Self {
            matcher: glob.compile_matcher(),
            pattern: pattern.clone(),
        })
    }

    /// What every match begins with.
    fn prefix(&self) -> Key {
        let bytes = self.pattern.as_bytes();
        let end = bytes
            .iter()
            .position(|byte| b"*?[\\".contains(byte))
            .unwrap_or(bytes.len());
        Key::new(&bytes[..end])
    }

    fn is_match(&self, key: &Key) -> bool {
        *key == self.pattern || self.matcher.is_match(OsStr::from_bytes(key.as_bytes()))
    }
}

fn has_glob(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

fn is_folder_name(path: &Path) -> bool {
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

/// The path of a file with a list, where `url` names one.
fn list_file(url: &str) -> Option<&str> {
    if let Some(path) = url.strip_prefix('@') {
        return Some(path);
    }
    let is_list = url.ends_with(".txt") || url.ends_with(".list");
    let path = url.strip_prefix("file://").unwrap_or(url);
    (is_list && !path.contains("://")).then_some(path)
}

fn read_list(path: &str) -> Result<Vec<String>> {
    let failed = |error| {
        Error::io("read the list", path, error).with_help("one URL a line; # begins a remark")
    };
    let len = fs::metadata(path).map_err(failed)?.len();
    if len > MAX_LIST_FILE {
        let why = format!("{len} bytes are more than {MAX_LIST_FILE}");
        return Err(Error::new(
            ErrorKind::LimitReached,
            "read the list",
            path,
            why,
        ));
    }
    let text = fs::read_to_string(path).map_err(failed)?;
    let lines: Vec<String> = text
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect();
    if lines.is_empty() {
        return Err(Error::new(
            ErrorKind::NotFound,
            "read the list",
            path,
            "it names nothing",
        ));
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_stay_within_a_folder_unless_told_otherwise() {
        let matches = |pattern: &str, key: &str| {
            Glob::new(&Key::new(pattern), pattern)
                .unwrap()
                .is_match(&Key::new(key))
        };
        assert!(matches("a/*.tar", "a/b.tar"));
        assert!(!matches("a/*.tar", "a/b/c.tar"));
        assert!(matches("a/**/*.tar", "a/b/c.tar"));
        assert!(matches("a/b?[0-9].tar", "a/bx7.tar"));
        assert!(matches("a/[x].tar", "a/[x].tar"), "the very name");
        assert!(matches("a/{x*", "a/{xy"));
        let prefix = |pattern: &str| Glob::new(&Key::new(pattern), pattern).unwrap().prefix();
        assert_eq!(prefix("a/b-[0-9]*.tar").as_bytes(), b"a/b-");
        assert!(Glob::new(&Key::new("a/[b"), "a/[b").is_err());
    }

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
    fn lists_are_files_of_this_machine() {
        assert_eq!(list_file("@urls"), Some("urls"));
        assert_eq!(list_file("file:///a/urls.txt"), Some("/a/urls.txt"));
        assert_eq!(list_file("s3://b/urls.txt"), None);
        assert_eq!(list_file("a.tar"), None);
    }
}
