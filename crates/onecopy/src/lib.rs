//! onecopy: training data from object storage into memory of the device, in as few copies as the machine allows.
//!
//! ```text
//!  store --ranges--> buffer --slices--> sample --fields--> batch --> device
//!    |                  |                  |                  |         |
//!    +------------------+--- every move is a hop of the ledger ----------+
//! ```
//!
//! | room | what it does |
//! |---|---|
//! | [`route`] | the words: places, hops, routes |
//! | [`ledger`] | what really happened |
//! | [`buffer`] | slabs from a bounded pool; the one place where the CPU copies payload |
//! | [`store`] | objects to buffers: URLs, listing, signing, ranged reads |
//! | [`cache`] | a store in front of a store, on a disk of this machine |
//! | [`sample`] | bytes to samples: tar members as slices, grouping, shuffle, decoders |
//! | [`batch`] | samples to batches: layout, collation |
//! | [`device`] | batches to device memory |
//! | [`pipeline`] | runs it all: stages, bounded queues, stop and join |
//! | [`loader`] | the front door |
//! | [`transfer`] | beside the flow: whole objects and files, from one place to another |
//! | [`pack`] | beside the flow: indexes of shards |
//!
//! `docs/ARCHITECTURE.md` says which room may import which; a test holds the code against it.

pub mod batch;
pub mod buffer;
pub mod cache;
pub mod config;
pub mod device;
pub mod error;
#[cfg(test)]
mod fuzzing;
pub mod ledger;
pub mod loader;
pub mod pack;
pub mod pipeline;
pub mod route;
pub mod sample;
pub mod setting;
pub mod size;
pub mod store;
pub mod sync;
pub mod transfer;

pub use error::{Error, ErrorKind, Result};
pub use loader::{Load, Loader, Mix, mix, open};
