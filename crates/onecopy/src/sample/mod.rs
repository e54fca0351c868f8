//! Bytes to samples: tar members as slices of what the network filled, grouped by key, shuffled, decoded.
//!
//! ```text
//!  slices of a shard
//!   | pieces.rs       where the bytes come from, and whether contents are wanted
//!   | tar/bytes.rs    told by magic: plain, gzip, zstd; the whole length must come
//!   | tar/cursor.rs   512-byte blocks and members, as parts of the slices
//!   | tar/members.rs  headers of every dialect; every kind of damage is an error with its offset
//!   | names.rs        member name -> key and field
//!   | reader.rs       members of one key -> Sample; duplicates, keys that come back
//!   | left_out.rs     what is damaged: an error, or counted and passed over, here and in every room behind
//!   v
//!  Sample --order/--> Sample --decode/--> values in the batch
//! ```
//!
//! Beside it, `index/` says how many samples shards have and where each begins, without reading them.
//!
//! Hops here: straddle, inflate, decode, gather. May import: store (trait only), buffer, ledger. Absent: the network,
//! batches, threads, and any copy of a member that lies in one slice.

pub mod decode;
mod extent;
mod hashed;
pub mod index;
mod left_out;
mod names;
mod options;
pub mod order;
mod pieces;
mod places;
mod reader;
mod tar;

pub use extent::Extent;
pub use left_out::{note_lost_shard, note_skip};
pub use options::{Duplicates, KeyRule, SampleOptions};
pub use order::order_shards;
pub use pieces::Pieces;
pub(crate) use places::Places;
pub use reader::SampleReader;

use crate::buffer::Slice;
use crate::sync::Arc;

/// The members of a shard that share a key and stand next to each other.
#[derive(Debug, Clone)]
pub struct Sample {
    /// What the members share: the path up to the dot that [`KeyRule`] names.
    pub key: String,
    /// The shard, as people call it.
    pub shard: Arc<str>,
    /// Where the header of the first member begins, in bytes of the (inflated) tar. Extended headers count.
    pub offset: u64,
    /// Where the padding of the last member ends.
    pub end_offset: u64,
    /// Which of the samples it is that the load gives, counted from 0 and with those that are left out later.
    pub number: u64,
    /// Which of several sources it is from, where a load has several.
    pub source: usize,
    /// Whether it holds nothing of what the store filled.
    pub is_detached: bool,
    /// The members, in the order of the shard.
    pub fields: Vec<Field>,
}

impl Sample {
    /// The field called `name` (in lower case, as all fields are).
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The payload: the bytes of all fields together.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.fields.iter().map(|field| field.bytes.len()).sum()
    }
}

/// One member of a sample.
#[derive(Debug, Clone)]
pub struct Field {
    /// What follows the key in the member's name, in lower case, without the first dot: `jpg`, `left.jpg`.
    pub name: String,
    /// The content: a part of the slice that the store filled, unless it crossed two of them.
    pub bytes: Slice,
    /// Where the member's header begins, in bytes of the (inflated) tar. Extended headers count.
    pub offset: u64,
}
