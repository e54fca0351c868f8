//! Tar, every dialect that is met in the wild, over slices: members are parts of what the store filled.
//!
//! Hops here: straddle, inflate. May import: buffer, ledger. Absent: keys and samples; a member here is a name with
//! bytes. Damage is told as such; what is done about it is decided in `reader.rs`.

mod bytes;
mod cursor;
mod damage;
mod entry;
mod extended;
mod header;
mod inflate;
mod members;
mod not_a_tar;
mod pax;

pub(super) use damage::{Damage, HELP as DAMAGE_HELP, MISSING_EOF};
pub(super) use entry::{Entry, Passed};
pub(super) use members::Members;
