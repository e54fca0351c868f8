//! One sample's way into its slots.

use super::form::{ColumnPlan, Layout, layout_of, unequal};
use super::select;
use crate::buffer::{Slab, Slice};
use crate::error::{Error, Result};
use crate::ledger::OpenHop;
use crate::sample::Sample;
use crate::sync::{Arc, channel};

pub use crate::sample::decode::Scratch;

/// One sample on its way into its slots.
#[derive(Debug)]
pub struct Job {
    pub(super) slot: usize,
    pub(super) sample: Sample,
    pub(super) parts: Vec<(Slice, Slot)>,
    pub(super) columns: Arc<Vec<ColumnPlan>>,
    pub(super) done: channel::Sender<Done>,
}

/// Where a value goes.
#[derive(Debug)]
pub(super) enum Slot {
    /// Into memory of the block.
    Own(Slab),
    /// Nowhere: it stays where the network put it.
    InPlace(Slice),
}

/// A job's end.
#[derive(Debug)]
pub struct Done {
    pub(super) slot: usize,
    pub(super) key: String,
    pub(super) shard: Arc<str>,
    pub(super) number: u64,
    pub(super) source: usize,
    pub(super) slots: Vec<Slot>,
    pub(super) result: Result<()>,
}

impl Job {
    /// The sample.
    #[must_use]
    pub fn sample(&self) -> &Sample {
        &self.sample
    }

    /// Decodes or lays every field into its slot, and reports to the block. Never panics on what the bytes are.
    ///
    /// # Copies
    ///
    /// None for what is decoded; one in user space (`gather`) for arrays and bytes that are kept as they are.
    pub fn run(self, hop: &OpenHop, scratch: &mut Scratch) {
        let Self {
            slot,
            sample,
            parts,
            columns,
            done,
        } = self;
        let mut slots = Vec::with_capacity(parts.len());
        let mut result = Ok(());
        for (column, (bytes, mut slot)) in columns.iter().zip(parts) {
            if let (Slot::Own(out), true) = (&mut slot, result.is_ok()) {
                result = fill(hop, column, &bytes, out, scratch)
                    .map_err(|error| select::of_field(&sample, &column.name, &error));
            }
            slots.push(slot);
        }
        let Sample {
            key,
            shard,
            number,
            source,
            ..
        } = sample;
        // Nobody listens any more where the load was stopped.
        let _stopped = done.send(Done {
            slot,
            key,
            shard,
            number,
            source,
            slots,
            result,
        });
    }
}

fn fill(
    hop: &OpenHop,
    column: &ColumnPlan,
    bytes: &Slice,
    out: &mut Slab,
    scratch: &mut Scratch,
) -> Result<()> {
    if let Layout::Tensor(wanted) = &column.layout {
        match layout_of(column.decoder.probe(bytes)?) {
            Layout::Tensor(found) if found == *wanted => {}
            Layout::Tensor(found) => return Err(unequal(wanted, &found, "its batch has")),
            Layout::Items(_) => {
                return Err(Error::bug(
                    "decode",
                    "a tensor column met another kind of value",
                ));
            }
        }
    }
    column.decoder.decode_into(hop, bytes, out, scratch)
}
