//! The thread that reads samples out of shards and hands them out: to decoders in blocks, or as they are.

use std::time::Instant;

use super::budget::{Budget, Share};
use super::feed::Feed;
use super::lane::{Lane, Reading};
use super::passes::{Begun, End};
use super::spots::Mark;
use super::stretch::{LaneWork, Spot};
use super::turns::{self, Order, Turns};
use crate::batch::{BatchPlan, Block, BlockBuilder, Form, Job, Opened, Opening, Picked};
use crate::buffer::Recycler;
use crate::config::OnError;
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::{Ledger, OpenHop, Wait};
use crate::sample::{Sample, note_skip};
use crate::sync::{Arc, AtomicBool, Ordering, channel};

/// A block on its way to the consumer, with its share of the budget.
#[derive(Debug)]
pub(super) struct Ticket {
    pub(super) block: Block,
    /// The number of its first sample: those before it are in blocks before it, or were left out.
    pub(super) from: u64,
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
    /// How many samples went on to be decoded; none where all do that it takes.
    fn taken(&self) -> Option<u64> {
        None
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

    fn taken(&self) -> Option<u64> {
        self.sink.taken()
    }
}

/// What the sample thread works with.
pub(super) struct Stage {
    pub(super) lanes: Vec<(Feed, LaneWork)>,
    pub(super) turns: Turns,
    pub(super) reading: Reading,
    /// Where it is told where lanes stand, if anybody wants to know.
    pub(super) marks: Option<channel::Sender<Mark>>,
    /// Where it is told where passes end.
    pub(super) ends: channel::Sender<End>,
    /// Somebody wants this to end.
    pub(super) is_stopped: Arc<AtomicBool>,
    /// Set at a proper end, an error told included: a queue that ends without it means that this thread died.
    pub(super) is_complete: Arc<AtomicBool>,
    pub(super) sink: Box<dyn Sink>,
}

impl Stage {
    /// Reads every lane to its end.
    pub(super) fn run(mut self) {
        match self.read_lanes() {
            Ok(()) => self.sink.close(),
            Err(None) if self.sink.is_full() => self.sink.close(),
            Err(None) => return,
            Err(Some(error)) => self.sink.fail(error),
        }
        self.is_complete.store(true, Ordering::Release);
    }

    /// The error is none where nobody listens any more.
    fn read_lanes(&mut self) -> Result<(), Option<Error>> {
        let windows = self.lanes.iter().map(|(_, work)| work.windows.len());
        let asked: u64 = windows.sum();
        let sources: Vec<usize> = self.lanes.iter().map(|(_, work)| work.source).collect();
        let mut lanes: Vec<Lane> = std::mem::take(&mut self.lanes)
            .into_iter()
            .map(|(feed, work)| Lane::new(feed, work, &self.reading))
            .collect();
        let mut order = Order::new(self.turns.clone(), lanes.len());
        let mut passes = Begun::new(begun(&lanes, &sources), self.ends.clone());
        let mut number = 0;
        // Nothing is read for a sample that nobody wants.
        while !self.sink.is_full()
            && let Some((at, is_own)) = order.next()
        {
            if self.is_stopped.load(Ordering::Relaxed) {
                return Err(None);
            }
            let (Some(lane), Some(&source)) = (lanes.get_mut(at), sources.get(at)) else {
                return Err(Some(Error::bug("take turns", "there is no such lane")));
            };
            let next = lane.next().map_err(|error| self.or_stopped(error))?;
            let Some(mut sample) = next else {
                if let Some(ended) = order.is_over(at) {
                    self.end_pass(ended, &mut lanes, &mut passes, number)?;
                }
                continue;
            };
            if !is_own {
                continue;
            }
            (sample.number, sample.source) = (number, source);
            passes.give(source);
            order.gave();
            if let Some(marks) = &self.marks {
                let spot = lane.spot();
                // Nobody listens any more where the load was stopped.
                let _stopped = marks.send(Mark {
                    number,
                    lane: at,
                    spot,
                });
            }
            number += 1;
            self.sink.take(sample).map_err(|Ended| None)?;
        }
        if self.sink.is_full() {
            return Err(None);
        }
        if matches!(self.turns, Turns::Grid { .. }) {
            self.check_ends(&mut lanes)?;
        }
        self.note_limits(&lanes, asked);
        Ok(())
    }

    /// Ends a pass over a source, and begins the next one, if there is one.
    fn end_pass(
        &self,
        ended: turns::Ended,
        lanes: &mut [Lane],
        passes: &mut Begun,
        number: u64,
    ) -> Result<(), Option<Error>> {
        let is_mixed = matches!(&self.turns, Turns::Rounds(rounds) if rounds.draws.is_some());
        // Data without a sample are none, but a source without one would end all the others.
        if ended.again.is_some() || is_mixed {
            let taken = self.sink.taken();
            passes.end(ended.source, number, taken).map_err(Some)?;
        }
        if let Some(again) = ended.again.and_then(|again| lanes.get_mut(again)) {
            again.iter_mut().for_each(Lane::begin_again);
        }
        Ok(())
    }

    /// Makes sure that no lane has more than was counted: what the shards have beyond that would be lost.
    fn check_ends(&self, lanes: &mut [Lane]) -> Result<(), Option<Error>> {
        for lane in lanes {
            let next = lane.next().map_err(|error| self.or_stopped(error))?;
            if next.is_some() {
                return Err(Some(Error::bug("end the epoch", "a lane has more to give")));
            }
        }
        Ok(())
    }

    /// Says so where memory made windows smaller than was asked for.
    fn note_limits(&self, lanes: &[Lane], asked: u64) {
        if let Some(fewest) = lanes.iter().filter_map(Lane::limited_to).min() {
            let few = fewest.saturating_mul(lanes.len() as u64);
            self.reading.ledger.note(format!(
                "the shuffle chose from {few} samples where memory was tightest, not from {asked}: raise `memory`"
            ));
        }
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

/// Which sources have given a sample before.
fn begun(lanes: &[Lane], sources: &[usize]) -> Vec<bool> {
    let many = sources.iter().max().map_or(0, |last| last + 1);
    let mut begun = vec![false; many];
    for (lane, source) in lanes.iter().zip(sources) {
        begun[*source] |= lane.spot() != Spot::default();
    }
    begun
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
    /// Samples that went into blocks.
    pub(super) taken: u64,
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
                None => self.start_block(form.clone(), picked.number())?,
            };
            if let Some((builder, share)) = started {
                self.push(builder, share, picked)?;
            }
        }
        Ok(())
    }

    /// Starts a block whose first sample has the number `from`.
    fn start_block(
        &mut self,
        form: Form,
        from: u64,
    ) -> Result<Option<(BlockBuilder, Share)>, Ended> {
        let start = Instant::now();
        let share = self.budget.admit(self.usual_bytes).ok_or(Ended)?;
        self.ledger.waited(Wait::Device, start.elapsed());
        match BlockBuilder::start(&self.plan, form, self.plan.block_len(), &self.recycler) {
            Ok((builder, block)) => {
                let ticket = Ticket {
                    block,
                    from,
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
                self.taken += 1;
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

    fn taken(&self) -> Option<u64> {
        Some(self.taken)
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
