//! Whole objects and files from one place to another.
#![expect(clippy::unwrap_used, reason = "test helpers")]

mod choice;
mod deleting;
mod download;
mod relay;
mod sync;
mod upload;
mod world;
