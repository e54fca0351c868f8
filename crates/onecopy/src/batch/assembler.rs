//! Blocks to batches: as they are where every sample is good, repacked where some were left out.

use std::collections::VecDeque;

use super::column::Batch;
use super::filled::{Filled, Memory, Row, column};
use super::form::{ColumnPlan, Layout};
use crate::buffer::{Recycler, copy};
use crate::error::Result;
use crate::ledger::OpenHop;
use crate::sync::Arc;

/// Hands out batches of equal size, in order, whatever was skipped.
///
/// Without a skip no byte moves. After one, samples of the following blocks are copied up until a short block has made up
/// for the gap; from then on blocks are batches again.
#[derive(Debug)]
pub struct Assembler {
    size: usize,
    is_batched: bool,
    is_dropping_last: bool,
    /// Blocks of which some good samples are not handed out yet; the first `taken` rows of the front one are.
    waiting: VecDeque<Filled>,
    taken: usize,
    recycler: Recycler,
}

impl Assembler {
    /// For batches of `size`; none hands out single samples.
    #[must_use]
    pub fn new(size: Option<usize>, is_dropping_last: bool, recycler: Recycler) -> Self {
        Self {
            size: size.unwrap_or(1),
            is_batched: size.is_some(),
            is_dropping_last,
            waiting: VecDeque::new(),
            taken: 0,
            recycler,
        }
    }

    /// Takes the next block, in order.
    pub fn push(&mut self, block: Filled) {
        if !block.is_empty() {
            self.waiting.push_back(block);
        }
    }

    fn good(&self) -> usize {
        self.waiting.iter().map(Filled::len).sum::<usize>() - self.taken
    }

    /// The next batch, if one is complete. At the end of the stream (`is_end`) what is left is a batch, too, unless it
    /// is to be dropped.
    ///
    /// `hop` is `close_gap`.
    ///
    /// # Errors
    ///
    /// `LimitReached` where there is no memory to repack.
    pub fn pop(&mut self, hop: &OpenHop, is_end: bool) -> Result<Option<Batch>> {
        let good = self.good();
        if good == 0 {
            return Ok(None);
        }
        if let Some(batch) = self.pop_whole(is_end) {
            return Ok(Some(batch));
        }
        let uniform = self.uniform();
        let is_cut = uniform < good && uniform < self.size;
        if good < self.size && !is_end && !is_cut {
            return Ok(None);
        }
        if uniform < self.size && !is_cut && self.is_dropping_last {
            return Ok(None);
        }
        self.repack(hop, uniform.min(self.size)).map(Some)
    }

    /// The front block as it is, where that is a batch.
    fn pop_whole(&mut self, is_end: bool) -> Option<Batch> {
        let front = self.waiting.front()?;
        let is_only = self.waiting.len() == 1;
        let is_last = is_end && is_only && !self.is_dropping_last;
        let is_batch = front.len() == self.size || is_last;
        if self.taken > 0 || !front.is_whole() || !is_batch {
            return None;
        }
        self.waiting
            .pop_front()
            .map(|block| block.into_batch(self.is_batched))
    }

    /// How many of the waiting samples, from the front, have the front block's layout: pictures of another size, where
    /// none was asked for, end a batch early rather than get lost.
    fn uniform(&self) -> usize {
        let Some(front) = self.waiting.front() else {
            return 0;
        };
        let same = |block: &&Filled| {
            block.columns.len() == front.columns.len()
                && block
                    .columns
                    .iter()
                    .zip(front.columns.iter())
                    .all(|(one, other)| one.name == other.name && one.layout == other.layout)
        };
        self.waiting
            .iter()
            .take_while(same)
            .map(Filled::len)
            .sum::<usize>()
            - self.taken
    }

    fn repack(&mut self, hop: &OpenHop, len: usize) -> Result<Batch> {
        let columns = match self.waiting.front() {
            Some(front) => Arc::clone(&front.columns),
            None => Arc::new(Vec::new()),
        };
        let mut packers = columns
            .iter()
            .map(|plan| Packer::start(plan, len, &self.recycler))
            .collect::<Result<Vec<_>>>()?;
        let (mut keys, mut shards, mut sources, mut end) = (Vec::new(), Vec::new(), Vec::new(), 0);
        while keys.len() < len {
            let Some(front) = self.waiting.front() else {
                break;
            };
            if let Some(row) = front.rows.get(self.taken) {
                for (packer, memory) in packers.iter_mut().zip(&front.memory) {
                    packer.take(hop, memory, row);
                }
                keys.push(row.key.clone());
                shards.push(Arc::clone(&row.shard));
                sources.push(row.source);
                end = row.number + 1;
                self.taken += 1;
            }
            if self.taken >= front.rows.len() {
                self.waiting.pop_front();
                self.taken = 0;
            }
        }
        let len = keys.len();
        let columns = columns
            .iter()
            .zip(packers)
            .map(|(plan, packer)| {
                (
                    plan.name.clone(),
                    column(plan, packer.end(), len, self.is_batched),
                )
            })
            .collect();
        Ok(Batch {
            len,
            is_batched: self.is_batched,
            keys,
            shards,
            sources,
            end,
            columns,
        })
    }

    /// Samples per batch.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }
}

/// One column of a batch that is repacked.
struct Packer {
    slot_len: usize,
    at: usize,
    slots: Option<crate::buffer::Slab>,
    items: Vec<crate::buffer::Slice>,
}

impl Packer {
    fn start(plan: &ColumnPlan, len: usize, recycler: &Recycler) -> Result<Self> {
        let (slot_len, slots) = match &plan.layout {
            Layout::Tensor(layout) => (
                layout.len_bytes(),
                Some(recycler.lease(layout.len_bytes() * len)?),
            ),
            Layout::Items(_) => (0, None),
        };
        Ok(Self {
            slot_len,
            at: 0,
            slots,
            items: Vec::new(),
        })
    }

    fn take(&mut self, hop: &OpenHop, memory: &Memory, row: &Row) {
        match (memory, &mut self.slots) {
            (Memory::Slots(from), Some(to)) => {
                let from = &from[row.slot * self.slot_len..][..self.slot_len];
                copy::lay(hop, from, &mut to[self.at..]);
                self.at += self.slot_len;
            }
            (Memory::Items(items), _) => self.items.push(items[row.slot].clone()),
            (Memory::Slots(_), None) => {}
        }
    }

    fn end(self) -> Memory {
        match self.slots {
            Some(mut slab) => {
                slab.truncate(self.at);
                Memory::Slots(slab.freeze())
            }
            None => Memory::Items(self.items),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BatchPlan, BlockBuilder, Column, Picked, Scratch};
    use super::*;
    use crate::buffer::{NoLock, Slice};
    use crate::ledger::Ledger;
    use crate::route::Hop;
    use crate::sample::{Field, Sample};

    fn sample(number: usize, label: &str) -> Sample {
        let field = |name: &str, text: &str| Field {
            name: name.to_owned(),
            bytes: Slice::from_vec(text.to_owned().into_bytes()),
            offset: 512,
        };
        Sample {
            key: number.to_string(),
            shard: Arc::from("a.tar"),
            offset: 0,
            end_offset: 1024,
            number: number as u64,
            source: 0,
            is_detached: false,
            fields: vec![field("cls", label), field("txt", &format!("text {number}"))],
        }
    }

    /// Runs labels through blocks of `block` into batches of `size`; labels that are no number fail.
    fn run(labels: &[&str], block: usize, size: usize, drops: bool) -> (Vec<Batch>, Arc<Ledger>) {
        let ledger = Ledger::unread();
        let recycler = Recycler::new(1 << 20, Arc::new(NoLock), &ledger);
        let plan = BatchPlan {
            size: Some(size),
            is_decoding: true,
            ..BatchPlan::default()
        };
        let mut assembler = Assembler::new(Some(size), drops, recycler.clone());
        let (hop, gap) = (ledger.hop(Hop::Decode), ledger.hop(Hop::Close));
        let mut batches = Vec::new();
        for (number, chunk) in labels.chunks(block).enumerate() {
            let samples: Vec<Picked> = chunk
                .iter()
                .enumerate()
                .map(|(at, label)| sample(number * block + at, label))
                .map(|sample| Picked::new(&hop, &plan, sample).unwrap())
                .collect();
            let form = samples[0].form().unwrap();
            let (mut builder, filling) =
                BlockBuilder::start(&plan, form, block, &recycler).unwrap();
            let jobs: Vec<_> = samples
                .into_iter()
                .map(|picked| builder.push(picked).unwrap())
                .collect();
            drop(builder);
            // The last first: blocks put slots in order, whichever decoder ends first.
            jobs.into_iter()
                .rev()
                .for_each(|job| job.run(&hop, &mut Scratch::default()));
            let done = filling.reports().iter().collect();
            let (filled, _failures) = filling.finish(done).unwrap();
            assembler.push(filled);
            while let Some(batch) = assembler.pop(&gap, false).unwrap() {
                batches.push(batch);
            }
        }
        while let Some(batch) = assembler.pop(&gap, true).unwrap() {
            batches.push(batch);
        }
        (batches, ledger)
    }

    fn labels_of(batch: &Batch) -> Vec<i64> {
        let Some(Column::Tensor(tensor)) = batch.column("cls") else {
            return Vec::new();
        };
        tensor
            .bytes
            .chunks_exact(8)
            .map(|bytes| i64::from_ne_bytes(bytes.try_into().unwrap()))
            .collect()
    }

    fn texts_of(batch: &Batch) -> Vec<String> {
        let Some(Column::Text(items)) = batch.column("txt") else {
            return Vec::new();
        };
        items
            .iter()
            .map(|item| String::from_utf8_lossy(item).into_owned())
            .collect()
    }

    #[test]
    fn a_block_without_a_gap_is_a_batch_without_a_copy() {
        let (batches, ledger) = run(&["10", "11", "12", "13"], 2, 2, false);
        assert_eq!(
            batches.iter().map(labels_of).collect::<Vec<_>>(),
            [[10, 11], [12, 13]]
        );
        assert!(
            ledger
                .report()
                .hops
                .iter()
                .all(|hop| hop.hop != "close_gap")
        );
    }

    #[test]
    fn gaps_are_closed_in_order_and_batches_stay_full() {
        let (batches, _) = run(&["10", "cat", "12", "13", "dog", "15", "16"], 3, 2, false);
        let labels: Vec<Vec<i64>> = batches.iter().map(labels_of).collect();
        assert_eq!(labels, [vec![10, 12], vec![13, 15], vec![16]]);
        assert_eq!(texts_of(&batches[1]), ["text 3", "text 5"]);
        assert_eq!(batches[1].keys, ["3", "5"]);
        let ends: Vec<u64> = batches.iter().map(|batch| batch.end).collect();
        assert_eq!(ends, [3, 6, 7]);
    }

    #[test]
    fn a_last_batch_that_is_not_full_is_kept_or_dropped_as_asked() {
        let lens = |drops| {
            let (batches, _) = run(&["1", "2", "3"], 2, 2, drops);
            batches.iter().map(|batch| batch.len).collect::<Vec<_>>()
        };
        assert_eq!(lens(false), [2, 1]);
        assert_eq!(lens(true), [2]);
    }

    #[test]
    fn a_block_with_nothing_but_gaps_gives_nothing() {
        let (batches, _) = run(&["1", "2", "x", "y", "5", "6"], 2, 2, false);
        assert_eq!(
            batches.iter().map(labels_of).collect::<Vec<_>>(),
            [[1, 2], [5, 6]]
        );
    }
}
