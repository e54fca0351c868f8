//! What a run will be.

use super::memory::Memory;
use super::order::{Order, Plan};
use crate::pipeline::Stretch;

/// What is known of a run of one process before the first byte of the data is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outlook {
    /// How the epoch is ordered, and how many steps it has where samples are counted.
    pub order: Order,
    /// Lanes that this process reads.
    pub lanes_here: u64,
    /// Bytes that it reads, as far as lengths are known.
    pub bytes: u64,
    /// Ranges into which these fall: requests at most, but for what is asked for again.
    pub ranges: u64,
    /// The length of a range.
    pub range_bytes: u64,
    /// Memory for ranges.
    pub pool_bytes: u64,
    /// Memory for batches on their way.
    pub batch_bytes: u64,
}

impl Outlook {
    pub(super) fn of(plan: &Plan, memory: &Memory) -> Self {
        let stretches = plan.lanes.iter().flat_map(|lane| &lane.stretches);
        let lens = stretches.filter_map(Stretch::len_bytes);
        let range_bytes = memory.range_bytes as u64;
        Self {
            order: plan.order.clone(),
            lanes_here: plan.lanes.len() as u64,
            bytes: lens.clone().sum(),
            ranges: lens.map(|len| len.div_ceil(range_bytes)).sum(),
            range_bytes,
            pool_bytes: memory.pool_bytes as u64,
            batch_bytes: memory.batch_bytes as u64,
        }
    }
}
