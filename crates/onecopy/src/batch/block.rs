//! The memory of one batch while it fills, and the jobs that fill it.

use crate::buffer::{Recycler, Slab, Slice};
use crate::error::{Error, ErrorKind, Result};
use crate::sample::decode::Decoder;
use crate::sync::{Arc, AtomicUsize, Ordering, channel};

use super::filled::{self, Filled, Row};
use super::form::{ColumnPlan, Form, Layout};
use super::job::{Done, Job, Slot};
use super::picked::Picked;
use super::plan::BatchPlan;

/// Small values share chunks of this size; a chunk is one lease.
const CHUNK_BYTES: usize = 1 << 20;

/// Takes samples until a block is full.
#[derive(Debug)]
pub struct BlockBuilder {
    capacity: usize,
    taken: usize,
    /// Samples that came while it was open and had other fields.
    refused: usize,
    form: Form,
    /// Per column: what is left of the slots, or of the chunk.
    rest: Vec<Slab>,
    recycler: Recycler,
    done: channel::Sender<Done>,
    len_bytes: usize,
    /// Samples taken, for the block to hold its reports against.
    expected: Arc<AtomicUsize>,
    /// Whether bytes that nobody decodes stay where they are: for single samples, which are taken out at once.
    is_in_place: bool,
}

/// The receiving end of a block: everything its jobs report.
#[derive(Debug)]
pub struct Block {
    columns: Arc<Vec<ColumnPlan>>,
    done: channel::Receiver<Done>,
    expected: Arc<AtomicUsize>,
}

impl BlockBuilder {
    /// A block for up to `capacity` samples of the form `form`.
    ///
    /// # Errors
    ///
    /// `LimitReached` where there is no memory for it.
    pub fn start(
        plan: &BatchPlan,
        form: Form,
        capacity: usize,
        recycler: &Recycler,
    ) -> Result<(Self, Block)> {
        let mut rest = Vec::with_capacity(form.columns().len());
        let mut len_bytes = 0;
        for column in &**form.columns() {
            let slab = match &column.layout {
                Layout::Tensor(layout) => {
                    recycler.lease(memory_of(layout.len_bytes(), capacity)?)?
                }
                Layout::Items(_) => Slab::heap(0),
            };
            len_bytes += slab.len();
            rest.push(slab);
        }
        let (sender, receiver) = channel::unbounded();
        let expected = Arc::new(AtomicUsize::new(0));
        let block = Block {
            columns: Arc::clone(form.columns()),
            done: receiver,
            expected: Arc::clone(&expected),
        };
        let builder = Self {
            capacity,
            taken: 0,
            refused: 0,
            form,
            rest,
            recycler: recycler.clone(),
            done: sender,
            len_bytes,
            expected,
            is_in_place: plan.size.is_none(),
        };
        Ok((builder, block))
    }

    /// Gives a sample its slots. The job is to be run on any thread.
    ///
    /// # Errors
    ///
    /// `NotFound` where its fields are not those of the block: it gets no slots, and the block one sample less, so that
    /// data that change their fields for good get a block of their own soon. `LimitReached` where there is no memory; the
    /// block is then unchanged.
    pub fn push(&mut self, picked: Picked) -> Result<Job> {
        let Picked { sample, chosen } = picked;
        let values = self.form.in_order(chosen).map_err(|chosen| {
            self.refused += 1;
            let names = chosen.iter().map(|one| &*one.column);
            self.form
                .other_fields(&sample, names, "the batch began with")
        })?;
        // All memory first: a slot cut off for a sample that is then refused would be a hole.
        for (index, bytes) in values.iter().enumerate() {
            self.make_room(index, bytes.len())?;
        }
        let parts = values
            .into_iter()
            .enumerate()
            .map(|(index, bytes)| {
                let slot = self.slot(index, &bytes);
                (bytes, slot)
            })
            .collect();
        let slot = self.taken;
        self.taken += 1;
        self.expected.store(self.taken, Ordering::Release);
        Ok(Job {
            slot,
            sample,
            parts,
            columns: Arc::clone(self.form.columns()),
            done: self.done.clone(),
        })
    }

    /// How many bytes a value of `len` takes in the column, and none where it stays where it is.
    fn slot_len(&self, index: usize, len: usize) -> Option<usize> {
        let column = &self.form.columns()[index];
        if self.is_in_place && matches!(column.decoder, Decoder::Raw) {
            return None;
        }
        Some(match &column.layout {
            Layout::Tensor(layout) => layout.len_bytes(),
            Layout::Items(_) => len,
        })
    }

    fn make_room(&mut self, index: usize, len: usize) -> Result<()> {
        let Some(len) = self.slot_len(index, len) else {
            return Ok(());
        };
        if self.rest[index].len() < len {
            let chunk_len = len.max(CHUNK_BYTES.min(len.saturating_mul(self.capacity)));
            let chunk = self.recycler.lease(chunk_len)?;
            self.len_bytes += chunk.len();
            self.rest[index] = chunk;
        }
        Ok(())
    }

    fn slot(&mut self, index: usize, bytes: &Slice) -> Slot {
        match self.slot_len(index, bytes.len()) {
            None => Slot::InPlace(bytes.clone()),
            Some(len) => Slot::Own(self.rest[index].split_to(len)),
        }
    }

    /// Whether it takes no more.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.taken + self.refused >= self.capacity
    }

    /// Memory leased so far.
    #[must_use]
    pub fn len_bytes(&self) -> usize {
        self.len_bytes
    }
}

impl Block {
    /// What the jobs report: disconnected once the builder is dropped and the last job has run.
    #[must_use]
    pub fn reports(&self) -> &channel::Receiver<Done> {
        &self.done
    }

    /// Puts the slots together. `done` are all reports of this block, in any order. Returns the failures beside it.
    ///
    /// # Errors
    ///
    /// `Bug` where the reports are not this block's.
    pub fn finish(self, mut done: Vec<Done>) -> Result<(Filled, Vec<Error>)> {
        done.sort_unstable_by_key(|done| done.slot);
        let slots = done.len();
        if slots != self.expected.load(Ordering::Acquire) {
            return Err(Error::bug("decode a batch", "a decoder thread died"));
        }
        let mut failures = Vec::new();
        let mut rows = Vec::with_capacity(slots);
        let mut columns: Vec<Vec<Slot>> = self
            .columns
            .iter()
            .map(|_| Vec::with_capacity(slots))
            .collect();
        for report in done {
            for (column, slot) in columns.iter_mut().zip(report.slots) {
                column.push(slot);
            }
            match report.result {
                Ok(()) => {
                    rows.push(Row {
                        slot: report.slot,
                        key: report.key,
                        shard: report.shard,
                        number: report.number,
                        source: report.source,
                    });
                }
                Err(error) => failures.push(error),
            }
        }
        let memory = self
            .columns
            .iter()
            .zip(columns)
            .map(|(plan, slots)| filled::join(plan, slots))
            .collect::<Result<Vec<_>>>()?;
        Ok((
            Filled {
                columns: self.columns,
                memory,
                rows,
                slots,
            },
            failures,
        ))
    }
}

/// The memory of `capacity` slots.
fn memory_of(slot_len: usize, capacity: usize) -> Result<usize> {
    let len = slot_len
        .checked_mul(capacity)
        .filter(|len| isize::try_from(*len).is_ok());
    len.ok_or_else(|| {
        Error::new(
            ErrorKind::LimitReached,
            "make a batch of",
            format!("{capacity} samples of {slot_len} bytes each"),
            "no memory is as large as that",
        )
        .with_help("make smaller batches")
    })
}
