//! Samples to batches: which fields, decoded how, laid out where.
//!
//! ```text
//!  Sample -> Picked --Opening: of which form?--> BlockBuilder::push -> Job --run on a decode thread--> Done
//!                                                 Done --Block::finish--> Filled --Assembler--> Batch
//! ```
//!
//! A block is the memory of one batch while it fills. Its jobs write disjoint slots of that memory on any number of
//! threads. Where samples are skipped, the assembler closes the gaps, so that batches stay full and in order.
//!
//! Hops here: hold, decode, gather, close_gap. May import: sample, buffer, ledger. Absent: threads and queues.

mod assembler;
mod block;
mod column;
mod filled;
mod form;
mod job;
mod opening;
mod picked;
mod plan;
mod select;

pub use assembler::Assembler;
pub use block::{Block, BlockBuilder};
pub use column::{Batch, Column, Tensor};
pub use filled::Filled;
pub use form::Form;
pub use job::{Done, Job, Scratch};
pub use opening::{Opened, Opening};
pub use picked::Picked;
pub use plan::{BatchPlan, Fields};
