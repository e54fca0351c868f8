//! The index of a dataset as wids has it: JSON with a list of shards, their samples and lengths. What onecopy writes has more
//! of each shard (its ETag, and the name of its offsets), which wids passes over.

use serde::{Deserialize, Serialize};

use super::dataset::{DatasetIndex, IndexedShard, beside};
use super::{check_len, corrupt};
use crate::error::{Error, ErrorKind, Result};
use crate::sample::KeyRule;

const DOING: &str = "read the index";
const KIND: &str = "wids-shard-index-v1";
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Whole {
    #[serde(rename = "__kind__", default)]
    kind: Option<String>,
    wids_version: u32,
    /// Of onecopy's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key_rule: Option<String>,
    #[serde(default, skip_serializing)]
    base: Option<String>,
    #[serde(default)]
    shardlist: Vec<Entry>,
    #[serde(default, skip_serializing)]
    datasets: Vec<Part>,
}

/// A dataset within a dataset.
#[derive(Deserialize)]
struct Part {
    #[serde(default)]
    source_url: Option<String>,
    #[serde(default)]
    base: Option<String>,
    #[serde(default)]
    shardlist: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    url: String,
    nsamples: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    filesize: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    idx: Option<String>,
}

impl Entry {
    fn into_shard(self, base: Option<&str>) -> IndexedShard {
        let name = match base {
            Some(base) => beside(&format!("{}/", base.trim_end_matches('/')), &self.url),
            None => self.url,
        };
        IndexedShard {
            name,
            samples: self.nsamples,
            len_bytes: self.filesize,
            etag: self.etag,
            offsets: self.idx,
        }
    }
}

impl DatasetIndex {
    /// Reads an index of wids's or of onecopy's, called `name`.
    ///
    /// # Errors
    ///
    /// `Corrupt` for what is none, `Unsupported` for another version or one that names other indexes, `LimitReached` beyond
    /// [`super::MOST_INDEX_BYTES`].
    pub fn read_wids(name: &str, bytes: &[u8]) -> Result<Self> {
        check_len(bytes, DOING, name)?;
        let whole: Whole = serde_json::from_slice(bytes)
            .map_err(|error| corrupt(DOING, name, error.to_string()))?;
        let unsupported = |why: &str| {
            Error::new(ErrorKind::Unsupported, DOING, name, why)
                .with_help("index the shards themselves: onecopy index")
        };
        if whole.kind.as_deref().is_some_and(|kind| kind != KIND) || whole.wids_version != VERSION {
            return Err(unsupported(
                "it is of another kind or version than wids-shard-index-v1",
            ));
        }
        let key_rule = whole.key_rule.map(|rule| rule.parse::<KeyRule>());
        let key_rule = key_rule
            .transpose()
            .map_err(|why| corrupt(DOING, name, why))?;
        let base = whole.base.as_deref();
        let shards = whole.shardlist.into_iter();
        let mut shards: Vec<_> = shards.map(|entry| entry.into_shard(base)).collect();
        for part in whole.datasets {
            if part.source_url.is_some() {
                return Err(unsupported("it names other indexes (source_url)"));
            }
            let base = part.base.as_deref();
            shards.extend(
                part.shardlist
                    .into_iter()
                    .map(|entry| entry.into_shard(base)),
            );
        }
        Ok(Self { shards, key_rule })
    }

    /// The text of a file that [`DatasetIndex::read_wids`] and wids itself read.
    #[must_use]
    pub fn to_json(&self) -> String {
        let bare = |etag: &String| {
            let inner = etag
                .strip_prefix('"')
                .and_then(|etag| etag.strip_suffix('"'));
            inner.unwrap_or(etag).to_owned()
        };
        let whole = Whole {
            kind: Some(KIND.to_owned()),
            wids_version: VERSION,
            key_rule: self.key_rule.map(|rule| rule.name().to_owned()),
            base: None,
            shardlist: Vec::new(),
            datasets: Vec::new(),
        };
        let entries = self.shards.iter().map(|shard| Entry {
            url: shard.name.clone(),
            nsamples: shard.samples,
            filesize: shard.len_bytes,
            etag: shard.etag.as_ref().map(bare),
            idx: shard.offsets.clone(),
        });
        // An entry a line: a file that people look at, and that compares well.
        let lines: Vec<String> = entries
            .map(|entry| serde_json::to_string(&entry).unwrap_or_default())
            .collect();
        let head = serde_json::to_string(&whole).unwrap_or_default();
        let head = head.trim_end_matches("[]}");
        let list = lines.join(",\n  ");
        let list = if list.is_empty() {
            list
        } else {
            format!("\n  {list}\n")
        };
        format!("{head}[{list}]}}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_of_wids_is_read() {
        // As wids_index writes it.
        let text = r#"{
  "__kind__": "wids-shard-index-v1",
  "wids_version": 1,
  "shardlist": [
    {"url": "a-0.tar", "md5sum": "d41d", "nsamples": 7, "filesize": 10240},
    {"url": "https://h/a-1.tar", "nsamples": 0}
  ],
  "name": "a",
  "base": "s3://b/train",
  "datasets": [{"name": "part", "shardlist": [{"url": "p.tar", "nsamples": 3}]}]
}"#;
        let index = DatasetIndex::read_wids("index.json", text.as_bytes()).unwrap();
        let told: Vec<_> = index
            .shards
            .iter()
            .map(|shard| (shard.name.as_str(), shard.samples, shard.len_bytes))
            .collect();
        assert_eq!(
            told,
            [
                ("s3://b/train/a-0.tar", 7, Some(10240)),
                ("https://h/a-1.tar", 0, None),
                ("p.tar", 3, None)
            ]
        );
        assert_eq!(index.key_rule, None);
    }

    #[test]
    fn what_was_written_is_read() {
        let mut index = DatasetIndex {
            shards: vec![
                IndexedShard {
                    name: "ä \"b\".tar".to_owned(),
                    samples: u64::MAX,
                    len_bytes: Some(1),
                    etag: Some("ab-2".to_owned()),
                    offsets: Some("ä.idx".to_owned()),
                },
                IndexedShard {
                    name: "s3://b/c.tar".to_owned(),
                    ..IndexedShard::default()
                },
            ],
            key_rule: Some(KeyRule::LastDot),
        };
        let text = index.to_json();
        assert!(text.starts_with(r#"{"__kind__":"wids-shard-index-v1","wids_version":1,"key_rule":"last-dot","shardlist":["#));
        assert_eq!(
            DatasetIndex::read_wids("i", text.as_bytes()).unwrap(),
            index
        );
        index.shards[0].etag = Some("\"ab-2\"".to_owned());
        assert_eq!(index.to_json(), text, "quotes around ETags are left out");
        let none = DatasetIndex::default();
        assert_eq!(
            DatasetIndex::read_wids("i", none.to_json().as_bytes()).unwrap(),
            none
        );
    }

    #[test]
    fn what_is_no_index_is_refused() {
        for (text, kind, told) in [
            ("", ErrorKind::Corrupt, "line 1"),
            ("[]", ErrorKind::Corrupt, "line 1"),
            (
                r#"{"version": 2, "shards": []}"#,
                ErrorKind::Corrupt,
                "wids_version",
            ),
            (
                r#"{"wids_version": 2}"#,
                ErrorKind::Unsupported,
                "another kind",
            ),
            (
                r#"{"__kind__": "x", "wids_version": 1}"#,
                ErrorKind::Unsupported,
                "another kind",
            ),
            (
                "{\"wids_version\": 1,\n\"shardlist\": [{\"url\": \"a\"}]}",
                ErrorKind::Corrupt,
                "line 2",
            ),
            (
                r#"{"wids_version": 1, "datasets": [{"source_url": "x"}]}"#,
                ErrorKind::Unsupported,
                "source_url",
            ),
            (
                r#"{"wids_version": 1, "key_rule": "no-dot"}"#,
                ErrorKind::Corrupt,
                "no-dot",
            ),
        ] {
            let error = DatasetIndex::read_wids("index.json", text.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), kind, "{text}");
            assert!(error.why().contains(told), "{text}: {error}");
        }
    }
}
