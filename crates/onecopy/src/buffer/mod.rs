//! Slabs from a bounded pool, and the one place where the CPU copies payload.
//!
//! ```text
//!  Pool (bounded)                     Recycler (batch memory, reused)
//!   | lease().await                    | lease()
//!   v                                  v
//!  Slab --split_to--> Slab, Slab      Slab          one owner, may write
//!   | freeze                           | freeze
//!   v                                  v
//!  Slice --slice, join--> Slice       Slice         any number of readers
//!   | last one dropped                 | last one dropped
//!   v                                  v
//!  back to the pool                   back to the recycler
//! ```
//!
//! Invariants, which `run.rs` and `slab.rs` keep and everything else relies on:
//!
//! 1. The parts of one run that living [`Slab`]s cover do not overlap each other or any [`Slice`].
//! 2. All memory is zeroed once, by the kernel, before anybody sees it: safe code never sees uninitialised bytes.
//! 3. A run's address never changes while any part of it lives.
//! 4. A run goes back to where it came from when the last part of it is dropped, on whichever thread that is.
//!
//! Hops here: head_rest, tls_copy, straddle, gather, close_gap, through [`copy`]. May import: ledger. Absent: any
//! knowledge of what the bytes mean.

pub mod copy;
mod lock;
mod pool;
mod recycler;
mod region;
mod run;
mod slab;

pub use lock::{Mlock, NoLock, PageLock};
pub use pool::Pool;
pub use recycler::Recycler;
pub use slab::{Slab, Slice};
