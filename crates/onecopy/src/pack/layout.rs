//! Which files an index is made of, and how shards are called in it.

use std::collections::{HashMap, HashSet};

use crate::error::{Error, ErrorKind, Result};
use crate::sample::index::file_name;
use crate::store::{Object, Source, behind_listed};

/// The file with what each shard holds.
pub(super) const INDEX: &str = "index.json";

/// The file in which finished shards are kept until all are.
pub(super) const PART: &str = "index.json.part";

/// One shard, and what the index says of it whatever it holds.
#[derive(Debug, Clone)]
pub(super) struct Planned {
    pub(super) source: Source,
    /// Its name in the index.
    pub(super) name: String,
    /// The name of its offsets, as from the folder of the index.
    pub(super) offsets: String,
}

/// Where an index goes, and what is in it.
#[derive(Debug)]
pub(super) struct Layout {
    /// The folder or prefix.
    pub(super) out: String,
    pub(super) shards: Vec<Planned>,
}

impl Layout {
    /// Lays out the index of `sources`, each of which is taken once.
    pub(super) fn new(sources: Vec<Source>, out: Option<&str>) -> Result<Self> {
        let mut seen = HashSet::new();
        let sources: Vec<Source> = sources
            .into_iter()
            .filter(|source| seen.insert(source.object.url.to_string()))
            .collect();
        let urls: Vec<&str> = sources.iter().map(|source| plain(&source.object)).collect();
        let common = common_folder(&urls);
        let out = match (out, common) {
            (Some(out), _) => out.to_owned(),
            (None, Some("")) => ".".to_owned(),
            (None, Some(common)) => common.to_owned(),
            (None, None) => return Err(nowhere(&urls)),
        };
        let is_beside = common.is_some_and(|common| is_same_folder(common, &out));
        let mut shards = Vec::with_capacity(sources.len());
        let mut taken: HashMap<String, String> = HashMap::new();
        for source in &sources {
            let (object, url) = (&source.object, plain(&source.object));
            check_text(object, url)?;
            let below = common.and_then(|common| url.strip_prefix(common));
            let below = below.unwrap_or_else(|| file_name(url));
            let offsets = offsets_name(below);
            if let Some(other) = taken.insert(offsets.clone(), url.to_owned()) {
                return Err(shared(&offsets, &other, url));
            }
            let name = if is_beside {
                format!("{below}{}", object.url.get(url.len()..).unwrap_or_default())
            } else {
                absolute(&object.url)?
            };
            shards.push(Planned {
                source: source.clone(),
                name,
                offsets,
            });
        }
        Ok(Self { out, shards })
    }
}

/// The URL without the version that it names.
fn plain(object: &Object) -> &str {
    match &object.version {
        Some(_) => object
            .url
            .rsplit_once("?versionId=")
            .map_or(&object.url, |(url, _)| url),
        None => &object.url,
    }
}

/// An index is text: a key that is shown in another form than it has could not be found again.
fn check_text(object: &Object, url: &str) -> Result<()> {
    let is_web = url.contains("://") && behind_listed(url).is_none();
    let key = std::str::from_utf8(object.key.as_bytes());
    if is_web || key.is_ok_and(|key| url.ends_with(key)) {
        return Ok(());
    }
    let why = "its name holds control characters or bytes that are no UTF-8, and an index is text";
    Err(Error::new(ErrorKind::Unsupported, "index", url, why).with_help("give it a plainer name"))
}

/// `a.tar` -> `a.idx`, as `wds2idx` calls it. Not `a.tar.idx`: so Megatron-Energon calls something else.
fn offsets_name(shard: &str) -> String {
    format!("{}.idx", shard.strip_suffix(".tar").unwrap_or(shard))
}

/// The folder that all of `urls` lie below, with its slash; empty for files in the folder of this process. None where
/// they have no bucket, host or root in common.
fn common_folder<'a>(urls: &[&'a str]) -> Option<&'a str> {
    let (first, rest) = urls.split_first()?;
    let folder_of = |url: &'a str| url.get(..url.rfind('/').map_or(0, |slash| slash + 1));
    let mut common = folder_of(first)?;
    for url in rest {
        while !url.starts_with(common) {
            common = folder_of(common.strip_suffix('/')?)?;
        }
        // Beginning with nothing is no common folder of a path from the root, or a URL, and one from here.
        if common.is_empty() && (is_rooted(url) || is_rooted(first)) {
            return None;
        }
    }
    // Not less than a bucket or host.
    let is_whole = match common.split_once("://") {
        Some((_, rest)) => !rest.is_empty(),
        None => !common.ends_with(":/"),
    };
    is_whole.then_some(common)
}

fn is_rooted(url: &str) -> bool {
    url.starts_with('/') || url.contains("://")
}

fn is_same_folder(common: &str, out: &str) -> bool {
    let bare = |folder: &str| -> String {
        let folder = folder.strip_prefix("file://").unwrap_or(folder);
        let folder = folder.trim_end_matches('/');
        let folder = folder.strip_prefix("./").unwrap_or(folder);
        if folder == "." {
            String::new()
        } else {
            folder.to_owned()
        }
    };
    (common == "/") == (out == "/") && bare(common) == bare(out)
}

/// How a shard is called from anywhere.
fn absolute(url: &str) -> Result<String> {
    if url.contains("://") {
        return Ok(url.to_owned());
    }
    let path = std::path::absolute(url).map_err(|error| Error::io("index", url, error))?;
    let path = path.into_os_string().into_string();
    path.map_err(|_no_text| {
        let why = "its path is no UTF-8, and an index is text";
        Error::new(ErrorKind::Unsupported, "index", url, why).with_help("give it a plainer path")
    })
}

fn nowhere(urls: &[&str]) -> Error {
    let (first, last) = (urls.first(), urls.last());
    let what = format!("{} and {}", first.unwrap_or(&""), last.unwrap_or(&""));
    let why = "the shards have no folder in common that the index could go to";
    Error::new(ErrorKind::InvalidInput, "index", what, why)
        .with_help("name a folder or a prefix for it: `out`")
}

fn shared(offsets: &str, one: &str, other: &str) -> Error {
    let why = format!("both would have their offsets in {offsets}");
    let what = format!("{one} and {other}");
    Error::new(ErrorKind::InvalidInput, "index", what, why)
        .with_help("index them apart, each with a folder of its own: `out`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_folder_is_no_less_than_a_bucket() {
        for (urls, wanted) in [
            (&["s3://b/t/a.tar", "s3://b/t/b.tar"][..], Some("s3://b/t/")),
            (&["s3://b/t/x/a.tar", "s3://b/t/y/a.tar"], Some("s3://b/t/")),
            (&["s3://b/ta/a.tar", "s3://b/tb/a.tar"], Some("s3://b/")),
            (&["s3://b/a.tar", "s3://c/a.tar"], None),
            (&["s3://b/a.tar", "gs://b/a.tar"], None),
            (&["s3://b/a.tar", "/a.tar"], None),
            (&["/d/a.tar", "/e/a.tar"], Some("/")),
            (&["/d/a.tar", "d/a.tar"], None),
            (&["d/a.tar", "/d/a.tar"], None),
            (&["d/a.tar", "e/a.tar"], Some("")),
            (&["a.tar", "d/a.tar"], Some("")),
            (&["a.tar"], Some("")),
        ] {
            assert_eq!(common_folder(urls), wanted, "{urls:?}");
        }
    }

    #[test]
    fn folders_are_the_same_however_their_end_is_written() {
        for (common, out, is_same) in [
            ("s3://b/t/", "s3://b/t", true),
            ("", ".", true),
            ("d/", "./d/", true),
            ("/d/", "file:///d", true),
            ("/", "/", true),
            ("", "/", false),
            ("s3://b/t/", "s3://b/", false),
        ] {
            assert_eq!(is_same_folder(common, out), is_same, "{common} {out}");
        }
        assert_eq!(offsets_name("x/a.b.tar"), "x/a.b.idx");
        assert_eq!(offsets_name("a.tar.gz"), "a.tar.gz.idx");
    }
}
