//! How many samples each shard of a dataset has.

use std::collections::HashMap;

use crate::error::{Error, ErrorKind, Result};
use crate::sample::KeyRule;
use crate::store::{ETag, Object};

/// What an index tells of the shards of a dataset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DatasetIndex {
    /// The shards, in the order of the index.
    pub shards: Vec<IndexedShard>,
    /// By which rule samples were told apart, where the index tells.
    pub key_rule: Option<KeyRule>,
}

/// What an index tells of one shard.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndexedShard {
    /// Its URL or path, absolute or as from the folder of the dataset.
    pub name: String,
    /// How many samples it has.
    pub samples: u64,
    /// Its length in bytes.
    pub len_bytes: Option<u64>,
    /// Its ETag, with quotes or without.
    pub etag: Option<String>,
    /// The name of the index with its offsets, absolute or as from the folder of this index: see [`beside`].
    pub offsets: Option<String>,
}

impl DatasetIndex {
    /// Finds what the index tells of each of `objects`, in their order: by its URL, else by the end of its path, else by its
    /// file name where nothing else bears it.
    ///
    /// ETags of stores and of files cannot be compared with each other, so a copy of a dataset on a disk matches the index
    /// that was made in a bucket by its lengths alone.
    ///
    /// # Errors
    ///
    /// `Changed` where the index does not tell of an object, or tells of another length or ETag.
    pub fn matched(&self, objects: &[Object]) -> Result<Vec<&IndexedShard>> {
        let mut by_file: HashMap<&str, Vec<&IndexedShard>> = HashMap::new();
        for shard in &self.shards {
            by_file
                .entry(file_name(&shard.name))
                .or_default()
                .push(shard);
        }
        let mut bearers: HashMap<&str, usize> = HashMap::new();
        for object in objects {
            *bearers.entry(file_name(&object.url)).or_default() += 1;
        }
        let find = |object: &Object| {
            let file = file_name(&object.url);
            let known = by_file.get(file).map_or(&[][..], Vec::as_slice);
            let is_alone = known.len() == 1 && bearers.get(file) == Some(&1);
            let shard = one(known, |shard| *shard.name == *object.url)
                .or_else(|| one(known, |shard| is_end_of(&shard.name, &object.url)))
                .or_else(|| known.first().copied().filter(|_| is_alone));
            let Some(shard) = shard else {
                let why = if known.is_empty() {
                    "it is not in the index".to_owned()
                } else {
                    format!(
                        "{} shards in the index have its file name, and none its path",
                        known.len()
                    )
                };
                return Err(stale(object, why));
            };
            shard.check(object).map(|()| shard)
        };
        objects.iter().map(find).collect()
    }
}

impl IndexedShard {
    /// Holds what is known of the object against what the index tells of it.
    fn check(&self, object: &Object) -> Result<()> {
        // Compressed or not, a sample takes more than a byte. Whatever the index says, memory is set aside for what there can be.
        if object.len_bytes.is_some_and(|len| self.samples > len) {
            let why = format!("it cannot have the {} samples of the index", self.samples);
            return Err(stale(object, why));
        }
        if let (Some(then), Some(now)) = (self.len_bytes, object.len_bytes)
            && then != now
        {
            return Err(stale(
                object,
                format!("it has {now} bytes, in the index {then}"),
            ));
        }
        if let (Some(then), Some(now)) = (self.etag(), &object.etag)
            && then.is_of_file() == now.is_of_file()
            && then != *now
        {
            let why = format!("its ETag is {}, in the index {}", now.0, then.0);
            return Err(stale(object, why));
        }
        Ok(())
    }

    fn etag(&self) -> Option<ETag> {
        self.etag.as_deref().map(|etag| ETag(etag.into()))
    }
}

fn stale(object: &Object, why: String) -> Error {
    let doing = "find in the index the shard";
    Error::new(ErrorKind::Changed, doing, &*object.url, why)
        .with_help("the index is older than the shards: index them again, onecopy index")
}

/// The only one for which `is_meant` holds.
fn one<'a>(
    shards: &[&'a IndexedShard],
    is_meant: impl Fn(&IndexedShard) -> bool,
) -> Option<&'a IndexedShard> {
    let mut meant = shards.iter().copied().filter(|shard| is_meant(shard));
    let first = meant.next()?;
    meant.next().is_none().then_some(first)
}

pub(crate) fn file_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Whether `name` is a path from some folder above what `url` names.
fn is_end_of(name: &str, url: &str) -> bool {
    if is_absolute(name) {
        return false;
    }
    let mut name = name;
    while let Some(rest) = name.strip_prefix("./").or_else(|| name.strip_prefix("../")) {
        name = rest;
    }
    url == name
        || url
            .strip_suffix(name)
            .is_some_and(|above| above.ends_with('/'))
}

fn is_absolute(name: &str) -> bool {
    name.starts_with('/') || name.contains("://")
}

/// What `name` means in the index at `url`: itself where it is absolute, else what it names as from the folder of `url`.
#[must_use]
pub fn beside(url: &str, name: &str) -> String {
    if is_absolute(name) {
        return name.to_owned();
    }
    let mut folder = url
        .rfind('/')
        .and_then(|slash| url.get(..=slash))
        .unwrap_or_default();
    let mut rest = name;
    loop {
        if let Some(more) = rest.strip_prefix("./") {
            rest = more;
            continue;
        }
        let above = folder.strip_suffix('/').and_then(|inner| {
            let slash = inner.rfind('/')?;
            // Not beyond the bucket or host.
            (!inner.get(..slash)?.ends_with(":/")).then_some(inner.get(..=slash)?)
        });
        match (rest.strip_prefix("../"), above) {
            (Some(more), Some(above)) => (rest, folder) = (more, above),
            // A path from the folder that the process is in may have one folder only.
            (Some(more), None) if !folder.is_empty() && !is_absolute(folder) => {
                (rest, folder) = (more, "");
            }
            _ => return format!("{folder}{rest}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Key;

    fn object(url: &str, len_bytes: Option<u64>, etag: Option<&str>) -> Object {
        Object {
            url: url.into(),
            key: Key::new(url),
            version: None,
            len_bytes,
            etag: etag.map(|etag| ETag(etag.into())),
            modified_unix: None,
        }
    }

    fn index(shards: &[(&str, u64)]) -> DatasetIndex {
        let shards = shards.iter().map(|&(name, samples)| IndexedShard {
            name: name.to_owned(),
            samples,
            len_bytes: Some(1024),
            etag: Some("aa".to_owned()),
            offsets: None,
        });
        DatasetIndex {
            shards: shards.collect(),
            key_rule: None,
        }
    }

    #[test]
    fn shards_are_found_by_url_by_path_and_by_file_name() {
        let index = index(&[
            ("s3://b/x/a.tar", 1),
            ("s3://b/y/a.tar", 2),
            ("x/b.tar", 3),
            ("y/b.tar", 4),
            ("../c.tar", 5),
            ("s3://elsewhere/d.tar", 6),
        ]);
        let urls = [
            "s3://b/y/a.tar",
            "s3://b/x/a.tar",
            "s3://b/t/y/b.tar",
            "x/b.tar",
            "/data/c.tar",
            "/data/d.tar",
        ];
        let objects = urls.map(|url| object(url, Some(1024), None));
        let found = index.matched(&objects).unwrap();
        let samples: Vec<u64> = found.iter().map(|shard| shard.samples).collect();
        assert_eq!(samples, [2, 1, 4, 3, 5, 6]);
        for (urls, told) in [
            (&["s3://b/e.tar"][..], "not in the index"),
            (&["s3://c/a.tar"], "2 shards in the index"),
            (&["s3://b/zx/b.tar"], "none its path"),
            (&["/1/d.tar", "/2/d.tar"], "none its path"),
        ] {
            let objects: Vec<Object> = urls.iter().map(|url| object(url, None, None)).collect();
            let error = index.matched(&objects).unwrap_err();
            assert_eq!(
                (error.kind(), error.target()),
                (ErrorKind::Changed, urls[0])
            );
            assert!(error.why().contains(told), "{error}");
        }
    }

    #[test]
    fn another_length_or_etag_makes_an_index_stale() {
        let index = index(&[("a.tar", 1)]);
        let file = "\"1f-400-6a.000000001\"";
        for (len_bytes, etag, told) in [
            (Some(1024), Some("\"aa\""), None),
            (Some(1024), Some("aa"), None),
            (None, None, None),
            (Some(1024), Some(file), None),
            (
                Some(512),
                Some("aa"),
                Some("it has 512 bytes, in the index 1024"),
            ),
            (
                None,
                Some("\"bb\""),
                Some("its ETag is \"bb\", in the index aa"),
            ),
        ] {
            let objects = [object("s3://b/a.tar", len_bytes, etag)];
            match (index.matched(&objects), told) {
                (Ok(found), None) => assert_eq!(found[0].samples, 1),
                (Err(error), Some(told)) => {
                    assert_eq!((error.kind(), error.why()), (ErrorKind::Changed, told));
                    assert!(error.help().unwrap().contains("onecopy index"));
                }
                (found, told) => panic!("{found:?} {told:?}"),
            }
        }
    }

    #[test]
    fn names_are_taken_as_from_the_folder_of_the_index() {
        for (url, name, wanted) in [
            ("s3://b/t/index.json", "a.idx", "s3://b/t/a.idx"),
            ("s3://b/t/index.json", "./x/a.idx", "s3://b/t/x/a.idx"),
            (
                "s3://b/t/.nv-meta/.info.json",
                "../a.tar.idx",
                "s3://b/t/a.tar.idx",
            ),
            ("s3://b/index.json", "../a", "s3://b/../a"),
            ("s3://b/index.json", "s3://c/a", "s3://c/a"),
            ("/d/index.json", "/e/a", "/e/a"),
            ("/d/m/index.json", "../a", "/d/a"),
            (".nv-meta/.info.json", "../a", "a"),
            ("index.json", "a", "a"),
            ("index.json", "../a", "../a"),
        ] {
            assert_eq!(beside(url, name), wanted, "{url} {name}");
        }
    }
}
