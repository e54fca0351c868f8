//! The thread that reads samples out of shards and hands them out: to decoders in blocks, or as they are.

use std::time::Instant;

use super::budget::{Budget, Share};
use super::feed::{Feed, Piece};
use crate::batch::{BatchPlan, Block, BlockBuilder, Form, Job, Opened, Opening, Picked};
use crate::buffer::Recycler;
use crate::config::OnError;
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::{Ledger, OpenHop, Wait};
use crate::sample::{Sample, SampleOptions, SampleReader, Shuffle, note_skip};
use crate::sync::{Arc, AtomicBool, AtomicU64, Ordering, channel};

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
pub(super) trait Sink: Send {
    fn take(&mut self, sample: Sample) -> Result<(), Ended>;
    /// Hands the error on that ends the load.
    fn fail(&mut self, error: Error);
    /// Hands on what is not full yet.
    fn close(&mut self) {}
    /// Whether it has all that it wants: its refusal is then a proper end.
    fn is_full(&self) -> bool {
        false
    }
}

/// Takes so many samples and no more.
pub(super) struct Limited {
    pub(super) sink: Box<dyn Sink>,
    pub(super) left: u64,
}

impl Sink for Limited {
    fn take(&mut self, sample: Sample) -> Result<(), Ended> {
        if self.left == 0 {
            return Err(Ended);
        }
        self.sink.take(sample)?;
        self.left -= 1;
        // At once, so that nothing is read for a sample that nobody wants.
        if self.left == 0 { Err(Ended) } else { Ok(()) }
    }

    fn fail(&mut self, error: Error) {
        self.sink.fail(error);
    }

    fn close(&mut self) {
        self.sink.close();
    }

    fn is_full(&self) -> bool {
        self.left == 0
    }
}

/// What the sample thread works with.
pub(super) struct Stage {
    pub(super) feed: Feed,
    pub(super) options: SampleOptions,
    pub(super) shuffle: Option<Shuffle>,
    pub(super) ledger: Arc<Ledger>,
    /// Somebody wants this to end.
    pub(super) is_stopped: Arc<AtomicBool>,
    /// Set at a proper end, an error told included: a queue that ends without it means that this thread died.
    pub(super) is_complete: Arc<AtomicBool>,
    pub(super) sink: Box<dyn Sink>,
}

impl Stage {
    /// Reads every shard to its end.
    pub(super) fn run(mut self) {
        match self.read_shards() {
            Ok(()) => self.sink.close(),
            Err(None) if self.sink.is_full() => self.sink.close(),
            Err(None) => return,
            Err(Some(error)) => self.sink.fail(error),
        }
        self.is_complete.store(true, Ordering::Release);
    }

    /// The error is none where nobody listens any more.
    fn read_shards(&mut self) -> Result<(), Option<Error>> {
        while let Some(piece) = self.feed.next().map_err(|error| self.or_stopped(error))? {
            match piece {
                Piece::Shard(object) => {
                    let leased = self.feed.leased();
                    let mut bytes = self.feed.shard();
                    let reader = SampleReader::new(
                        Arc::clone(&object.url),
                        object.len_bytes,
                        &mut bytes,
                        self.options.clone(),
                        &self.ledger,
                    );
                    let read = read_shard(
                        reader,
                        &mut self.shuffle,
                        &leased,
                        &self.is_stopped,
                        self.sink.as_mut(),
                    );
                    let finished = read.and_then(|()| bytes.finish().map_err(Some));
                    finished.map_err(|error| error.and_then(|error| self.or_stopped(error)))?;
                }
                Piece::Bytes(_) | Piece::End | Piece::Failed(_) => {
                    return Err(Some(Error::bug(
                        "read the shards",
                        "bytes came outside of a shard",
                    )));
                }
            }
        }
        if let Some(mut shuffle) = self.shuffle.take() {
            if let Some(few) = shuffle.limited_to() {
                self.ledger.note(format!(
                    "the shuffle chose from {few} samples where memory was tightest, not from {}: raise `memory`",
                    shuffle.capacity()
                ));
            }
            for sample in shuffle.drain() {
                self.sink.take(sample).map_err(|Ended| None)?;
            }
        }
        Ok(())
    }

    /// An end that somebody asked for is no error; one that nobody asked for is ours.
    fn or_stopped(&self, error: Error) -> Option<Error> {
        if error.kind() != ErrorKind::Cancelled {
            return Some(error);
        }
        (!self.is_stopped.load(Ordering::Relaxed)).then(|| {
            Error::bug("read the shards", "the network task ended early").with_source(error)
        })
    }
}

fn read_shard(
    reader: impl Iterator<Item = Result<Sample>>,
    shuffle: &mut Option<Shuffle>,
    leased: &AtomicU64,
    is_stopped: &AtomicBool,
    sink: &mut dyn Sink,
) -> Result<(), Option<Error>> {
    for sample in reader {
        let sample = sample.map_err(Some)?;
        if is_stopped.load(Ordering::Relaxed) {
            return Err(None);
        }
        let Some(shuffle) = shuffle else {
            sink.take(sample).map_err(|Ended| None)?;
            continue;
        };
        // Measured in memory leased by the time the sample is whole: see `Feed::leased`.
        let mut due = shuffle.push(sample, leased.load(Ordering::Relaxed));
        while let Some(sample) = due {
            sink.take(sample).map_err(|Ended| None)?;
            due = shuffle.next_due();
        }
    }
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

    fn fail(&mut self, error: Error) {
        // Nobody listens any more where the load was stopped.
        let _stopped = self.samples.send(Err(error));
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
    pub(super) ledger: Arc<Ledger>,
    /// The block that takes samples now, and its share of the budget.
    pub(super) open: Option<(BlockBuilder, Share)>,
    /// How much memory the last block took: what the next one will take, about.
    pub(super) usual_bytes: usize,
    /// Decides what the next block is like; none where its first sample does, because samples that differ are an error,
    /// or because each has a block of its own.
    pub(super) opening: Option<Opening>,
    /// `hold`.
    pub(super) hold: OpenHop,
}

impl BlockSink {
    /// Leaves a sample out, or ends the load with the reason, as the policy says.
    fn refuse(&mut self, error: Error) -> Result<(), Ended> {
        match note_skip(&self.ledger, &self.on_error, error) {
            Ok(()) => Ok(()),
            Err(error) => {
                self.fail(error);
                Err(Ended)
            }
        }
    }

    /// Leaves out what is odd, and begins a block where it is known what it is like.
    fn begin(&mut self, opened: Opened) -> Result<(), Ended> {
        for error in opened.odd {
            self.refuse(error)?;
        }
        let Some((form, samples)) = opened.block else {
            return Ok(());
        };
        for picked in samples {
            let started = match self.open.take() {
                Some(open) => Some(open),
                None => self.start_block(form.clone())?,
            };
            if let Some((builder, share)) = started {
                self.push(builder, share, picked)?;
            }
        }
        Ok(())
    }

    fn start_block(&mut self, form: Form) -> Result<Option<(BlockBuilder, Share)>, Ended> {
        let start = Instant::now();
        let share = self.budget.admit(self.usual_bytes).ok_or(Ended)?;
        self.ledger.waited(Wait::Device, start.elapsed());
        match BlockBuilder::start(&self.plan, form, self.plan.block_len(), &self.recycler) {
            Ok((builder, block)) => {
                let ticket = Ticket {
                    block,
                    _share: share.clone(),
                };
                self.tickets.send(Ok(ticket)).map_err(|_gone| Ended)?;
                Ok(Some((builder, share)))
            }
            Err(error) => self.refuse(error).map(|()| None),
        }
    }

    fn push(
        &mut self,
        mut builder: BlockBuilder,
        share: Share,
        picked: Picked,
    ) -> Result<(), Ended> {
        match builder.push(picked) {
            Ok(job) => {
                share.set(builder.len_bytes());
                let start = Instant::now();
                self.jobs.send(job).map_err(|_gone| Ended)?;
                self.ledger.waited(Wait::Decode, start.elapsed());
            }
            Err(error) => self.refuse(error)?,
        }
        if builder.is_full() {
            self.usual_bytes = builder.len_bytes();
        } else {
            self.open = Some((builder, share));
        }
        Ok(())
    }
}

impl Sink for BlockSink {
    fn take(&mut self, sample: Sample) -> Result<(), Ended> {
        let picked = match Picked::new(&self.hop, &self.plan, sample) {
            Ok(picked) => picked,
            Err(error) => return self.refuse(error),
        };
        if let Some((builder, share)) = self.open.take() {
            return self.push(builder, share, picked);
        }
        let form = match picked.form() {
            Ok(form) => form,
            Err(error) => return self.refuse(error),
        };
        let opened = match &mut self.opening {
            Some(opening) => opening.take(&self.hold, picked, form),
            None => Opened::at_once(form, picked),
        };
        self.begin(opened)
    }

    fn fail(&mut self, error: Error) {
        self.open = None;
        // Nobody listens any more where the load was stopped.
        let _stopped = self.tickets.send(Err(error));
    }

    fn close(&mut self) {
        self.open = None;
        if let Some(mut opening) = self.opening.take() {
            // Nobody listens any more, or was told why.
            let _ended = self.begin(opening.end());
        }
        self.open = None;
    }
}
