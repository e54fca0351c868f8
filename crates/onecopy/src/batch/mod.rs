//! Samples to batches: which fields, decoded how, laid out where.
//!
//! ```text
//!  Sample --BlockBuilder::push--> Job --run on a decode thread--> Done --Block::finish--> Filled --Assembler--> Batch
//! ```
//!
//! A block is the memory of one batch while it fills. Its jobs write disjoint slots of that memory on any number of
//! threads. Where samples are skipped, the assembler closes the gaps, so that batches stay full and in order.
//!
//! Hops here: decode, gather, close_gap. May import: sample, buffer, ledger. Absent: threads and queues.

mod assembler;
mod block;
mod column;
mod filled;
mod job;
mod plan;
mod select;

pub use assembler::Assembler;
pub use block::{Block, BlockBuilder};
pub use column::{Batch, Column, Tensor};
pub use filled::Filled;
pub use job::{Done, Job, Scratch};
pub use plan::{BatchPlan, Fields};
