//! Objects on a disk of this machine: what was read once is read from there, past the page cache.
//!
//! Hops here: read_direct, write_direct, cache_part; read and write where a file system takes no O_DIRECT. May import: store,
//! buffer, ledger. Absent: any trust in what lies on the disk. Every piece that is read is held against its checksum, and what does not agree is
//! fetched again.
//!
//! | file | what it holds |
//! |---|---|
//! | `store` | the store in front of a store |
//! | `tee` | what writes beside |
//! | `entry` | one object: its two files, by any number of processes at a time |
//! | `identity` | which object is meant, and where its files lie |
//! | `log` | the form of its map |
//! | `pieces` | which bytes of it are held |
//! | `direct` | a file that is read and written past the page cache |

mod direct;
mod entry;
mod identity;
mod log;
mod pieces;
mod store;
mod tee;

pub use store::Cached;
