//! Whole objects and files from one place to another.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test helpers")]

mod choice;
mod deleting;
mod download;
mod relay;
#[path = "../store_scripted/mod.rs"]
mod store_scripted;
mod sync;
mod upload;
mod versions;
mod world;
