//! A block whose jobs have all run.

use super::column::{Batch, Column, Tensor};
use super::form::{ColumnPlan, Items, Layout};
use super::job::Slot;
use crate::buffer::{Slab, Slice};
use crate::error::{Error, Result};
use crate::sync::Arc;

/// The memory of one column.
#[derive(Debug)]
pub(super) enum Memory {
    /// The slots of all samples in one piece, those of failed ones included.
    Slots(Slice),
    /// One value for each sample, those of failed ones included.
    Items(Vec<Slice>),
}

/// A sample that made it, and the slot it lies in.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) slot: usize,
    pub(super) key: String,
    pub(super) shard: Arc<str>,
    /// See [`crate::sample::Sample::number`].
    pub(super) number: u64,
    /// See [`crate::sample::Sample::source`].
    pub(super) source: usize,
}

/// A block after its jobs: its columns, and which slots are good.
#[derive(Debug)]
pub struct Filled {
    pub(super) columns: Arc<Vec<ColumnPlan>>,
    pub(super) memory: Vec<Memory>,
    pub(super) rows: Vec<Row>,
    /// Slots, good or not.
    pub(super) slots: usize,
}

impl Filled {
    /// How many samples are good.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Behind the number of the last good sample; none where none is.
    #[must_use]
    pub fn end(&self) -> Option<u64> {
        self.rows.last().map(|row| row.number + 1)
    }

    /// Whether every slot is good, so that the memory is the batch as it stands.
    pub(super) fn is_whole(&self) -> bool {
        self.rows.len() == self.slots
    }

    /// The memory as a batch, without moving a byte. Only for a block that is whole.
    pub(super) fn into_batch(self, is_batched: bool) -> Batch {
        let sources = self.rows.iter().map(|row| row.source).collect();
        let (len, end) = (self.rows.len(), self.end().unwrap_or(0));
        let columns = self
            .columns
            .iter()
            .zip(self.memory)
            .map(|(plan, memory)| (plan.name.clone(), column(plan, memory, len, is_batched)))
            .collect();
        let (keys, shards) = self
            .rows
            .into_iter()
            .map(|row| (row.key, row.shard))
            .unzip();
        Batch {
            len,
            is_batched,
            keys,
            shards,
            sources,
            end,
            columns,
        }
    }
}

/// Puts the slots of one column into one piece again, in the order of the slots.
pub(super) fn join(plan: &ColumnPlan, slots: Vec<Slot>) -> Result<Memory> {
    if let Layout::Items(_) = plan.layout {
        let items = slots.into_iter().map(|slot| match slot {
            Slot::Own(slab) => slab.freeze(),
            Slot::InPlace(slice) => slice,
        });
        return Ok(Memory::Items(items.collect()));
    }
    let mut whole: Option<Slab> = None;
    for slot in slots {
        let apart = || Error::bug("put a batch together", "its slots are not neighbours");
        let Slot::Own(slot) = slot else {
            return Err(apart());
        };
        whole = Some(match whole {
            None => slot,
            Some(before) => before.join(slot).map_err(|_slots| apart())?,
        });
    }
    Ok(Memory::Slots(whole.map_or_else(Slice::empty, Slab::freeze)))
}

/// A column of `len` samples over `memory`.
pub(super) fn column(plan: &ColumnPlan, memory: Memory, len: usize, is_batched: bool) -> Column {
    match (&plan.layout, memory) {
        (Layout::Tensor(layout), Memory::Slots(bytes)) => {
            Column::Tensor(Tensor::new(layout, is_batched.then_some(len), bytes))
        }
        (Layout::Items(Items::Text), Memory::Items(items)) => Column::Text(items),
        (Layout::Items(Items::Json), Memory::Items(items)) => Column::Json(items),
        (_, Memory::Items(items)) => Column::Bytes(items),
        (Layout::Items(_), Memory::Slots(bytes)) => Column::Bytes(vec![bytes]),
    }
}
