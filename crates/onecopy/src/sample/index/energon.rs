//! Indexes as Megatron-Energon has them: `.nv-meta/.info.json` (or `.info.yaml`) with the samples of each shard, and beside
//! each shard a `.tar.idx` with an unsigned integer of eight bytes, little end first, per sample and one for the end.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::dataset::{DatasetIndex, IndexedShard};
use super::offsets::Offsets;
use super::{check_len, corrupt, energon_yaml};
use crate::error::Result;

const DOING: &str = "read the index";

#[derive(Deserialize)]
struct Info {
    shard_counts: BTreeMap<String, u64>,
}

impl DatasetIndex {
    /// Reads `.nv-meta/.info.json` or `.nv-meta/.info.yaml`, called `name`. Shards are named as from the folder above
    /// `.nv-meta`, and in the order of their names.
    ///
    /// # Errors
    ///
    /// `Corrupt` for what is none, `LimitReached` beyond [`super::MOST_INDEX_BYTES`].
    pub fn read_energon(name: &str, bytes: &[u8]) -> Result<Self> {
        check_len(bytes, DOING, name)?;
        let counts = if bytes.trim_ascii_start().starts_with(b"{") {
            let info: Info = serde_json::from_slice(bytes)
                .map_err(|error| corrupt(DOING, name, error.to_string()))?;
            info.shard_counts
        } else {
            energon_yaml::shard_counts(bytes).map_err(|why| corrupt(DOING, name, why))?
        };
        let shards = counts.into_iter().map(|(name, samples)| IndexedShard {
            offsets: Some(format!("../{}", offsets_name(&name))),
            name,
            samples,
            len_bytes: None,
            etag: None,
        });
        Ok(Self {
            shards: shards.collect(),
            key_rule: None,
        })
    }
}

/// The `.tar.idx` of a shard: `.tar.idx` takes the place of the last ending.
fn offsets_name(shard: &str) -> String {
    let base_at = shard.rfind('/').map_or(0, |slash| slash + 1);
    let stem = match shard.get(base_at..).and_then(|base| base.rfind('.')) {
        Some(dot) if dot > 0 => shard.get(..base_at + dot).unwrap_or(shard),
        _ => shard,
    };
    format!("{stem}.tar.idx")
}

impl Offsets {
    /// Reads a `.tar.idx`, called `name`. What it tells as the end may lie behind members that are no part of the last sample.
    ///
    /// # Errors
    ///
    /// `Corrupt` for what is none, `LimitReached` beyond [`super::MOST_INDEX_BYTES`].
    pub fn read_energon(name: &str, bytes: &[u8]) -> Result<Self> {
        check_len(bytes, DOING, name)?;
        let (words, rest) = bytes.as_chunks::<8>();
        if !rest.is_empty() {
            let why = format!("its {} bytes are no whole number of offsets", bytes.len());
            return Err(corrupt(DOING, name, why));
        }
        let bounds = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        Self::new(bounds).map_err(|place| {
            let at = place * 8;
            corrupt(
                DOING,
                name,
                format!("the offset at byte {at} is missing, no multiple of 512, or not behind the one before"),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn told(text: &str) -> String {
        let index = DatasetIndex::read_energon(".nv-meta/.info", text.as_bytes()).unwrap();
        let shards = index.shards.iter();
        let shards = shards.map(|shard| {
            let offsets = shard.offsets.as_deref().unwrap();
            format!("{} {} {offsets}", shard.name, shard.samples)
        });
        shards.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn counts_come_from_json_and_from_yaml() {
        let json =
            r#"{"energon_version": "7.4.1", "shard_counts": {"parts/b.x.tar": 7, "a.tar": 0}}"#;
        assert_eq!(
            told(json),
            "a.tar 0 ../a.tar.idx, parts/b.x.tar 7 ../parts/b.x.tar.idx"
        );
        let yaml = "energon_version: 5.0\nshard_counts:\n  a.tar: 10\n  'b''s: 1.tar': 2\n  \"c\\t.tar\": 3\n";
        assert_eq!(
            told(yaml),
            "a.tar 10 ../a.tar.idx, b's: 1.tar 2 ../b's: 1.tar.idx, c\t.tar 3 ../c\t.tar.idx"
        );
        assert_eq!(told("shard_counts: {}\n"), "");
    }

    #[test]
    fn offsets_are_integers_of_eight_bytes() {
        let bytes: Vec<u8> = [0_u64, 1024, 4096]
            .iter()
            .flat_map(|n| n.to_le_bytes())
            .collect();
        let offsets = Offsets::read_energon("a.tar.idx", &bytes).unwrap();
        assert_eq!(
            (offsets.len(), offsets.start(1), offsets.end()),
            (2, Some(1024), 4096)
        );
        for bad in [&bytes[..23], &[], &[1; 8][..]] {
            let error = Offsets::read_energon("a.tar.idx", bad).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt);
        }
    }

    #[test]
    fn what_is_no_index_is_told_by_its_line() {
        for (text, told) in [
            ("{\"shard_counts\": {\"a\": -1}}", "line 1 column"),
            ("{}", "missing field `shard_counts`"),
            ("", "no shard_counts"),
            ("a: 1\n", "no shard_counts"),
            ("shard_counts:\n  a.tar: x\n", "line 2"),
            ("shard_counts:\n  a.tar\n", "line 2"),
            ("shard_counts:\n  'a.tar: 1\n", "line 2"),
            ("shard_counts:\n  ? a.tar\n  : 1\n", "line 2"),
            ("shard_counts:\n  a: 1\nshard_counts:\n  b: 1\n", "line 3"),
        ] {
            let error = DatasetIndex::read_energon("i", text.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{text:?}");
            assert!(error.why().contains(told), "{text:?}: {error}");
        }
    }
}
