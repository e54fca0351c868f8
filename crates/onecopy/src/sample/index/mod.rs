//! Indexes: how many samples each shard of a dataset has, and where each of them begins.
//!
//! | file | what it holds |
//! |---|---|
//! | `dataset` | the counts of a dataset, and how they are held against the shards as they are now |
//! | `offsets` | where the samples of one shard begin |
//! | `dali` | the index of one shard as DALI has it (`wds2idx`): text, v1.1 and v1.2; read and written |
//! | `wids` | the index of a dataset as wids has it: JSON; read and written |
//! | `energon` | both as Megatron-Energon has them (`.nv-meta/.info.json`, `.tar.idx`); read |
//! | `energon_yaml` | its older `.info.yaml` |
//! | `scan` | the headers of a shard, to samples |
//!
//! Hops here: none. May import: store (names and ETags only). Absent: reading and writing of files.

mod dali;
mod dataset;
mod energon;
mod energon_yaml;
#[cfg(test)]
mod fuzz;
mod offsets;
mod scan;
mod wids;

pub use dali::IndexText;
pub(crate) use dataset::file_name;
pub use dataset::{DatasetIndex, IndexedShard, beside};
pub use offsets::Offsets;
pub use scan::{Scan, Scanned};

use crate::error::{Error, ErrorKind, Result};

/// The longest index taken. A million shards come to some 200 MB, a shard of ten million samples to 600 MB.
pub const MOST_INDEX_BYTES: u64 = 1 << 30;

fn check_len(bytes: &[u8], doing: &str, name: &str) -> Result<()> {
    if bytes.len() as u64 <= MOST_INDEX_BYTES {
        return Ok(());
    }
    let why = format!("it has {} bytes, where {MOST_INDEX_BYTES} fit", bytes.len());
    Err(Error::new(ErrorKind::LimitReached, doing, name, why)
        .with_help("this is another file than is meant; or make smaller shards"))
}

/// An index that is not what it claims to be.
fn corrupt(doing: &str, name: &str, why: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, doing, name, why)
        .with_help("index the shards again: onecopy index")
}
