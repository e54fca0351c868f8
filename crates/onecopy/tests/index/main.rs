//! Indexes of shards: what is counted, what is read, and what is left behind.
#![expect(clippy::unwrap_used, reason = "test helpers")]

mod counts;
mod damage;
mod reading;
mod resuming;
mod world;
