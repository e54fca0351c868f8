//! The memory of one batch while it fills, and the jobs that fill it.

use crate::buffer::{Recycler, Slab, Slice};
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::OpenHop;
use crate::sample::Sample;
use crate::sample::decode::{DType, Decoder, TensorLayout, Value};
use crate::sync::{Arc, AtomicUsize, Ordering, channel};

use super::filled::{self, Filled, Row};
use super::job::{Done, Job, Slot};
use super::plan::BatchPlan;
use super::select::{self, Chosen};

/// Small values share chunks of this size; a chunk is one lease.
const CHUNK_BYTES: usize = 1 << 20;

/// What one column of a block holds, fixed by its first sample.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Layout {
    /// Slots of equal size.
    Tensor(TensorLayout),
    /// Values of any length.
    Items(Items),
}

/// What values of any length mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Items {
    Bytes,
    Text,
    Json,
}

#[derive(Debug, Clone)]
pub(super) struct ColumnPlan {
    pub(super) name: String,
    pub(super) decoder: Decoder,
    pub(super) layout: Layout,
}

/// Takes samples until a block is full.
#[derive(Debug)]
pub struct BlockBuilder {
    capacity: usize,
    taken: usize,
    columns: Arc<Vec<ColumnPlan>>,
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
    /// A block for up to `capacity` samples, laid out by `first`, which is not taken yet.
    ///
    /// # Errors
    ///
    /// Where a wanted field of `first` is missing or its header does not parse.
    pub fn start(
        hop: &OpenHop,
        plan: &BatchPlan,
        first: &Sample,
        capacity: usize,
        recycler: &Recycler,
    ) -> Result<(Self, Block)> {
        let mut columns = Vec::new();
        let mut rest = Vec::new();
        let mut len_bytes = 0;
        for Chosen {
            column: name,
            decoder,
            bytes,
        } in select::select(hop, plan, first)?
        {
            let value = decoder
                .probe(&bytes)
                .map_err(|error| select::of_field(first, &name, &error))?;
            let layout = layout_of(value);
            let slab = match &layout {
                Layout::Tensor(layout) => {
                    recycler.lease(memory_of(layout.len_bytes(), capacity)?)?
                }
                Layout::Items(_) => Slab::heap(0),
            };
            len_bytes += slab.len();
            rest.push(slab);
            columns.push(ColumnPlan {
                name,
                decoder,
                layout,
            });
        }
        let (sender, receiver) = channel::unbounded();
        let columns = Arc::new(columns);
        let expected = Arc::new(AtomicUsize::new(0));
        let builder = Self {
            capacity,
            taken: 0,
            columns: Arc::clone(&columns),
            rest,
            recycler: recycler.clone(),
            done: sender,
            len_bytes,
            expected: Arc::clone(&expected),
            is_in_place: plan.size.is_none(),
        };
        Ok((
            builder,
            Block {
                columns,
                done: receiver,
                expected,
            },
        ))
    }

    /// Gives `sample` its slots. The job is to be run on any thread.
    ///
    /// # Errors
    ///
    /// Where a wanted field is missing, or the fields are not those of the block's first sample. The block is unchanged.
    pub fn push(&mut self, hop: &OpenHop, plan: &BatchPlan, sample: Sample) -> Result<Job> {
        let chosen = select::select(hop, plan, &sample)?;
        let values = self.in_order(&sample, chosen)?;
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
        let (columns, done) = (Arc::clone(&self.columns), self.done.clone());
        Ok(Job {
            slot,
            sample,
            parts,
            columns,
            done,
        })
    }

    /// How many bytes a value of `len` takes in the column, and none where it stays where it is.
    fn slot_len(&self, index: usize, len: usize) -> Option<usize> {
        let column = &self.columns[index];
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

    /// The values in the order of the columns; a sample with other fields than the block's first is refused.
    fn in_order(&self, sample: &Sample, mut chosen: Vec<Chosen>) -> Result<Vec<Slice>> {
        let found = |plan: &ColumnPlan, chosen: &mut Vec<Chosen>| {
            let at = chosen
                .iter()
                .position(|one| one.column == plan.name && one.decoder == plan.decoder)?;
            Some(chosen.remove(at).bytes)
        };
        if chosen.len() == self.columns.len() {
            let names: Vec<String> = chosen.iter().map(|one| one.column.clone()).collect();
            let values: Vec<Slice> = self
                .columns
                .iter()
                .filter_map(|plan| found(plan, &mut chosen))
                .collect();
            if values.len() == self.columns.len() {
                return Ok(values);
            }
            return Err(self.other_fields(sample, &names));
        }
        let names: Vec<String> = chosen.into_iter().map(|one| one.column).collect();
        Err(self.other_fields(sample, &names))
    }

    fn other_fields(&self, sample: &Sample, names: &[String]) -> Error {
        let began: Vec<&str> = self.columns.iter().map(|plan| plan.name.as_str()).collect();
        Error::new(
            ErrorKind::NotFound,
            "batch",
            select::name_of(sample),
            format!(
                "its fields are {}, where the batch began with {}",
                names.join(", "),
                began.join(", ")
            ),
        )
        .with_help("name the fields you want: to_tuple(\"jpg\", \"cls\")")
    }

    /// Whether it takes no more.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.taken == self.capacity
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

/// How a value lies in its column.
pub(super) fn layout_of(value: Value) -> Layout {
    match value {
        // Decoders write row-major, whatever the file holds.
        Value::Tensor(layout) => Layout::Tensor(TensorLayout {
            is_fortran: false,
            ..layout
        }),
        Value::Int => Layout::Tensor(TensorLayout {
            dtype: DType::I64,
            shape: Vec::new(),
            is_channels_last: false,
            is_fortran: false,
        }),
        Value::Text => Layout::Items(Items::Text),
        Value::Json => Layout::Items(Items::Json),
        Value::Bytes(_) => Layout::Items(Items::Bytes),
    }
}
