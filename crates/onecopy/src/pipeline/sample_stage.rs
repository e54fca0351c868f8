//! The thread that reads samples out of shards and hands them out: to decoders in blocks, or as they are.

use super::budget::{Budget, Share};
use super::feed::{Feed, Piece};
use crate::batch::{BatchPlan, Block, BlockBuilder, Job};
use crate::buffer::Recycler;
use crate::config::OnError;
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::{Ledger, OpenHop};
use crate::sample::{Sample, SampleOptions, SampleReader, Shuffle};
use crate::sync::{Arc, AtomicBool, AtomicUsize, Ordering, channel};

/// A block on its way to the consumer, with its share of the budget.
#[derive(Debug)]
pub(super) struct Ticket {
    pub(super) block: Block,
    /// Held until the consumer has the block.
    pub(super) _share: Share,
}

/// Somebody downstream is gone, or an error ended the load.
pub(super) struct Ended;

/// Where samples go.
pub(super) trait Sink {
    fn take(&mut self, sample: Sample) -> Result<(), Ended>;
    fn fail(&mut self, error: Error) -> Ended;
    fn close(&mut self) {}
}

/// Reads every shard of `feed` to its end.
pub(super) fn run(
    mut feed: Feed,
    options: &SampleOptions,
    mut shuffle: Option<Shuffle>,
    ledger: &Arc<Ledger>,
    is_stopped: &AtomicBool,
    sink: &mut dyn Sink,
) {
    let mut before = 0;
    let finished = loop {
        let object = match feed.next() {
            Some(Piece::Shard(object)) => object,
            Some(_) => continue,
            None => break !is_stopped.load(Ordering::Relaxed),
        };
        let mut bytes = feed.shard();
        let reader = SampleReader::new(
            Arc::clone(&object.url),
            object.len_bytes,
            &mut bytes,
            options.clone(),
            ledger,
        );
        let ended = read_shard(reader, &mut shuffle, &mut before, sink);
        if ended.is_err() || !bytes.finish() {
            break false;
        }
    };
    if finished && let Some(shuffle) = &mut shuffle {
        for sample in shuffle.drain() {
            if sink.take(sample).is_err() {
                return;
            }
        }
    }
    sink.close();
}

fn read_shard(
    reader: impl Iterator<Item = Result<Sample>>,
    shuffle: &mut Option<Shuffle>,
    before: &mut u64,
    sink: &mut dyn Sink,
) -> Result<(), Ended> {
    let mut end = 0;
    for sample in reader {
        let sample = match sample {
            Ok(sample) => sample,
            Err(error) if error.kind() == ErrorKind::Cancelled => return Err(Ended),
            Err(error) => return Err(sink.fail(error)),
        };
        end = sample.end_offset;
        let Some(shuffle) = shuffle else {
            sink.take(sample)?;
            continue;
        };
        let position = *before + sample.offset;
        let mut due = shuffle.push(sample, position);
        while let Some(sample) = due {
            sink.take(sample)?;
            due = shuffle.next_due();
        }
    }
    *before += end;
    Ok(())
}

/// Hands samples out as they are.
pub(super) struct SampleSink {
    pub(super) samples: channel::Sender<Result<Sample>>,
    pub(super) ledger: Arc<Ledger>,
}

impl Sink for SampleSink {
    fn take(&mut self, sample: Sample) -> Result<(), Ended> {
        self.ledger.mark_first();
        self.samples.send(Ok(sample)).map_err(|_gone| Ended)
    }

    fn fail(&mut self, error: Error) -> Ended {
        let _gone = self.samples.send(Err(error));
        Ended
    }
}

/// Lays samples into blocks and hands their jobs to the decoders.
pub(super) struct BlockSink {
    /// `decode`.
    pub(super) hop: OpenHop,
    pub(super) plan: Arc<BatchPlan>,
    pub(super) on_error: OnError,
    pub(super) recycler: Recycler,
    pub(super) budget: Budget,
    pub(super) jobs: channel::Sender<Job>,
    pub(super) tickets: channel::Sender<Result<Ticket>>,
    /// Dispatched samples that turned out to be in no full batch.
    pub(super) gaps: Arc<AtomicUsize>,
    /// Samples dispatched so far.
    pub(super) dispatched: usize,
    pub(super) ledger: Arc<Ledger>,
    pub(super) open: Option<BlockBuilder>,
    /// The open block's share of the budget.
    pub(super) share: Option<Share>,
}

impl BlockSink {
    /// Leaves a sample out, or ends the load with the reason, as the policy says.
    fn refuse(&mut self, error: Error) -> Result<(), Ended> {
        if self.on_error == OnError::Raise {
            return Err(self.fail(error));
        }
        note_skip(&self.ledger, self.on_error, &error);
        Ok(())
    }

    /// Blocks are batches. After a skip one short block makes up for the gap, and they are batches again.
    fn next_block_len(&self) -> usize {
        let size = self.plan.block_len();
        let in_batches = self
            .dispatched
            .saturating_sub(self.gaps.load(Ordering::Relaxed));
        size - in_batches % size
    }

    fn start_block(&mut self, first: &Sample) -> Result<Option<BlockBuilder>, Ended> {
        let share = self.budget.admit().ok_or(Ended)?;
        let len = self.next_block_len();
        match BlockBuilder::start(&self.hop, &self.plan, first, len, &self.recycler) {
            Ok((builder, block)) => {
                share.set(builder.len_bytes());
                let ticket = Ticket {
                    block,
                    _share: share.clone(),
                };
                self.tickets.send(Ok(ticket)).map_err(|_gone| Ended)?;
                self.share = Some(share);
                Ok(Some(builder))
            }
            Err(error) => {
                drop(share);
                self.refuse(error)?;
                Ok(None)
            }
        }
    }
}

impl Sink for BlockSink {
    fn take(&mut self, sample: Sample) -> Result<(), Ended> {
        let mut builder = match self.open.take() {
            Some(builder) => builder,
            None => match self.start_block(&sample)? {
                Some(builder) => builder,
                None => return Ok(()),
            },
        };
        match builder.push(&self.hop, &self.plan, sample) {
            Ok(job) => {
                self.dispatched += 1;
                if let Some(share) = &self.share {
                    share.set(builder.len_bytes());
                }
                self.jobs.send(job).map_err(|_gone| Ended)?;
            }
            Err(error) => self.refuse(error)?,
        }
        if builder.is_full() {
            self.share = None;
        } else {
            self.open = Some(builder);
        }
        Ok(())
    }

    fn fail(&mut self, error: Error) -> Ended {
        let _gone = self.tickets.send(Err(error));
        Ended
    }

    fn close(&mut self) {
        self.open = None;
        self.share = None;
    }
}

/// Counts a sample that is left out, and says so where the policy is to warn.
pub(super) fn note_skip(ledger: &Ledger, on_error: OnError, error: &Error) {
    ledger.skipped(error.kind().name(), 1);
    if on_error == OnError::Warn {
        tracing::warn!(%error, "sample left out");
    }
}
