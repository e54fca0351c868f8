//! A dataset for tests and benchmarks: WebDataset tars, the same for the same seed.
//!
//! Sample `n` depends on the seed, on `n` and on the fields, not on how many shards there are, so
//! that a test can cut the same samples differently. Pictures are real JPEGs of the size and
//! weight of ImageNet's; a pool of them is drawn once and told apart by a comment segment, which
//! makes every member unique at the speed of a copy.

mod fields;
mod maker;
mod picture;

pub use fields::{Dtype, Field};
pub use maker::{Member, Shard, ShardMaker};
