//! A load that runs: its threads and tasks, and its end.

use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::budget::Budget;
use super::crew::Crew;
use super::decode_pool;
use super::feed::Feed;
use super::fetch::{Fetcher, Wanted};
use super::lane::Reading;
use super::passes::{Passes, Steps};
use super::plain::{Buffers, Samples};
use super::sample_stage::{BlockSink, Limited, SampleSink, Sink, Stage, Ticket};
use super::spots::{Mark, Spots};
use super::stretch::{LaneWork, Stretch};
use super::turns::Turns;
use super::watch::Watch;
use crate::batch::{Assembler, Batch, BatchPlan, Done, Opening};
use crate::buffer::{Pool, Recycler};
use crate::config::OnError;
use crate::error::{Error, Result};
use crate::ledger::{Ledger, OpenHop, Wait};
use crate::route::Hop;
use crate::sample::{SampleOptions, note_skip};
use crate::size::to_usize;
use crate::sync::{Arc, channel};

/// Samples that wait for a consumer who takes them as they are.
const SAMPLE_QUEUE: usize = 64;

/// Blocks in flight at most, whatever their size: enough that no decoder idles where blocks are single samples.
const BLOCKS_PER_DECODER: usize = 4;

/// Everything a load needs.
#[derive(Debug)]
pub struct Work {
    /// What to read: lanes, each with memory for its ranges.
    pub lanes: Vec<(LaneWork, Pool)>,
    /// Which lane gives the next sample.
    pub turns: Turns,
    /// How far back in its stream a lane may reach for a shuffle.
    pub span_bytes: u64,
    /// Memory for batches.
    pub recycler: Recycler,
    /// Batch memory in flight.
    pub batch_bytes: usize,
    /// The length of a range.
    pub range_bytes: usize,
    /// Whether several ranges may be asked for in one request.
    pub is_joining: bool,
    /// Decoder threads.
    pub decode_threads: usize,
    /// How shards are read; of each source.
    pub options: Vec<SampleOptions>,
    /// Samples to read at most.
    pub limit: Option<u64>,
    /// Steps to make, whatever is left out; none ends with the data.
    pub steps: Option<Steps>,
    /// For how long nothing may move while the consumer waits; none is for ever.
    pub wait_limit: Option<Duration>,
    /// The hop that the store's reads count on.
    pub hop: OpenHop,
    /// Where it all is counted.
    pub ledger: Arc<Ledger>,
}

impl Work {
    /// Begins to read: of each lane what comes in, and what is to be done with it.
    fn fetch(&mut self, runtime: &Handle) -> (Vec<(Feed, LaneWork)>, Crew) {
        let mut lanes = Vec::with_capacity(self.lanes.len());
        let mut wanted = Vec::with_capacity(self.lanes.len());
        for (work, pool) in self.lanes.drain(..) {
            let (announce, announced) = mpsc::unbounded_channel();
            let (allow, passes) = mpsc::unbounded_channel();
            wanted.push(Wanted {
                parts: work.stretches.iter().map(Stretch::part).collect(),
                again: Arc::clone(&work.again),
                passes,
                pool,
                announce,
            });
            lanes.push((Feed::new(announced, allow, &self.ledger, work.source), work));
        }
        let fetcher = Fetcher {
            range_bytes: self.range_bytes,
            is_joining: self.is_joining,
            hop: self.hop.clone(),
            lanes: wanted,
        };
        let task = runtime.spawn(fetcher.run());
        let budget = Budget::new(self.batch_bytes, self.decode_threads * BLOCKS_PER_DECODER);
        let crew = Crew::new(task.abort_handle(), budget, self.wait_limit, &self.ledger);
        (lanes, crew)
    }

    fn watch(&self) -> Watch {
        Watch::new(&self.ledger, self.wait_limit)
    }

    /// Runs as far as memory: shards' bytes, in order. There is one lane.
    ///
    /// # Errors
    ///
    /// None, but for a fault of ours.
    pub fn buffers(mut self, runtime: &Handle) -> Result<Buffers> {
        let (mut lanes, crew) = self.fetch(runtime);
        match (lanes.pop(), lanes.is_empty()) {
            (Some((feed, _)), true) => Ok(Buffers {
                feed: feed.watched(self.watch(), runtime),
                _crew: crew,
            }),
            _ => Err(Error::bug("read bytes in order", "there is not one lane")),
        }
    }

    /// Runs as far as samples, whose fields are slices of the pool's slabs. Whoever keeps them keeps the slabs from
    /// being filled again.
    ///
    /// # Errors
    ///
    /// `LimitReached` where no thread can be started.
    pub fn samples(mut self, runtime: &Handle) -> Result<Samples> {
        let (lanes, mut crew) = self.fetch(runtime);
        let (sender, samples) = channel::bounded(SAMPLE_QUEUE);
        let sink = SampleSink {
            samples: sender,
            ledger: Arc::clone(&self.ledger),
        };
        self.limit_to(self.steps);
        let passes = self.stage(&mut crew, lanes, None, Box::new(sink))?;
        Ok(Samples {
            watch: self.watch(),
            passes,
            samples,
            is_over: false,
            ledger: self.ledger,
            crew,
        })
    }

    /// Runs as far as batches.
    ///
    /// # Errors
    ///
    /// `LimitReached` where no thread can be started.
    pub fn batches(
        mut self,
        runtime: &Handle,
        plan: BatchPlan,
        on_error: OnError,
    ) -> Result<Batches> {
        let (lanes, mut crew) = self.fetch(runtime);
        let hop = self.ledger.hop(Hop::Decode);
        let jobs = decode_pool::start(&mut crew, self.decode_threads, &hop)?;
        let (sender, tickets) = channel::unbounded();
        if on_error == OnError::Raise {
            // Nothing is left out, so what is to be read is known.
            self.limit_to(self.steps);
        }
        let steps = self.steps.filter(|steps| !steps.is_outside);
        let left = steps.map(|steps| steps.left);
        let assembler = Assembler::new(plan.size, plan.is_dropping_last, self.recycler.clone());
        let is_choosing = on_error != OnError::Raise && plan.block_len() > 1;
        // As much as one sample may take of the pool.
        let held_bytes = to_usize(self.options.first().map_or(0, |of| of.max_sample_bytes));
        let sink = BlockSink {
            hop,
            plan: Arc::new(plan),
            on_error: on_error.clone(),
            recycler: self.recycler.clone(),
            budget: crew.budget.clone(),
            jobs,
            tickets: sender,
            ledger: Arc::clone(&self.ledger),
            open: None,
            usual_bytes: 0,
            taken: 0,
            opening: is_choosing.then(|| Opening::new(held_bytes)),
            hold: self.ledger.hop(Hop::Hold),
        };
        let (marks, spots) = Spots::new(&lanes, &self.turns);
        let passes = self.stage(&mut crew, lanes, marks, Box::new(sink))?;
        Ok(Batches {
            watch: self.watch(),
            spots,
            passes,
            left,
            tickets,
            open: None,
            assembler,
            on_error,
            is_at_end: false,
            has_failed: false,
            gap_hop: self.ledger.hop(Hop::Close),
            ledger: self.ledger,
            crew,
        })
    }

    /// Reads no more than the samples of `steps`.
    fn limit_to(&mut self, steps: Option<Steps>) {
        let both = self.limit.into_iter().chain(steps.map(Steps::samples));
        self.limit = both.min();
    }

    /// Starts the sample thread; tells where its passes end.
    fn stage(
        &mut self,
        crew: &mut Crew,
        lanes: Vec<(Feed, LaneWork)>,
        marks: Option<channel::Sender<Mark>>,
        sink: Box<dyn Sink>,
    ) -> Result<Passes> {
        let (ends, passes) = channel::unbounded();
        let sink = match self.limit {
            Some(left) => Box::new(Limited { sink, left }),
            None => sink,
        };
        let stage = Stage {
            lanes,
            turns: self.turns.clone(),
            reading: Reading {
                options: self.options.clone().into(),
                span_bytes: self.span_bytes,
                hold: self.ledger.hop(Hop::Hold),
                // Where the order is counted out, a window is as long as it is said to be.
                may_shorten: matches!(self.turns, Turns::Rounds(_)),
                ledger: Arc::clone(&self.ledger),
            },
            marks,
            ends,
            is_stopped: Arc::clone(&crew.is_stopped),
            is_complete: Arc::clone(&crew.is_complete),
            sink,
        };
        crew.start("sample", move || stage.run())?;
        Ok(Passes::new(passes, &self.ledger))
    }
}

/// What [`Batches::next_within`] gives.
#[derive(Debug)]
pub enum Next {
    /// A batch.
    Batch(Batch),
    /// There are no more.
    End,
    /// None was ready in time; ask again.
    NotYet,
}

/// Batches, in order.
#[derive(Debug)]
pub struct Batches {
    watch: Watch,
    spots: Option<Spots>,
    passes: Passes,
    /// Batches that are still to come, where their number is given out.
    left: Option<u64>,
    tickets: channel::Receiver<Result<Ticket>>,
    /// The block whose jobs are being waited for, with what they have reported.
    open: Option<(Ticket, Vec<Done>)>,
    assembler: Assembler,
    on_error: OnError,
    is_at_end: bool,
    has_failed: bool,
    gap_hop: OpenHop,
    ledger: Arc<Ledger>,
    crew: Crew,
}

impl Batches {
    /// Waits for the next batch, but no longer than `limit`. After an error there are no more.
    ///
    /// # Errors
    ///
    /// What stopped the load: anything but `Cancelled`.
    pub fn next_within(&mut self, limit: Duration) -> Result<Next> {
        let start = Instant::now();
        let next = self.step(start + limit);
        self.ledger.waited(Wait::Consumer, start.elapsed());
        match &next {
            Ok(Next::Batch(batch)) => {
                if let Some(spots) = &self.spots {
                    spots.pass(batch.end);
                }
                self.passes.hand_over(batch.end);
                self.left = self.left.map(|left| left.saturating_sub(1));
                self.ledger.delivered_samples(batch.len as u64);
                self.ledger.delivered_of(&batch.sources);
                if batch.is_batched {
                    self.ledger.delivered_batch();
                } else {
                    self.ledger.mark_first();
                }
            }
            Ok(Next::End) => {
                // Where steps are counted, the stages would go on.
                self.crew.stop();
                self.ledger.finish();
            }
            Ok(Next::NotYet) => {}
            Err(_) => {
                self.has_failed = true;
                self.ledger.finish();
            }
        }
        next
    }

    /// Where it is all counted.
    #[must_use]
    pub fn ledger(&self) -> &Arc<Ledger> {
        &self.ledger
    }

    /// Where lanes stand behind the batch that was given last; none where the turns of a grid tell it.
    #[must_use]
    pub fn spots(&self) -> Option<&Spots> {
        self.spots.as_ref()
    }

    fn step(&mut self, deadline: Instant) -> Result<Next> {
        if self.has_failed || self.left == Some(0) {
            return Ok(Next::End);
        }
        loop {
            if let Some(batch) = self.assembler.pop(&self.gap_hop, self.is_at_end)? {
                return Ok(Next::Batch(batch));
            }
            if self.is_at_end {
                return Ok(Next::End);
            }
            if self.open.is_none() {
                match self.watch.recv(&self.tickets, Some(deadline))? {
                    Some(Some(ticket)) => {
                        let ticket = ticket?;
                        self.passes.check(ticket.from)?;
                        self.open = Some((ticket, Vec::new()));
                    }
                    None => return Ok(Next::NotYet),
                    Some(None) => {
                        self.crew.check_end()?;
                        self.is_at_end = true;
                        continue;
                    }
                }
            }
            if !self.collect(deadline)? {
                return Ok(Next::NotYet);
            }
        }
    }

    /// Collects the reports of the open block. Says whether it is complete.
    fn collect(&mut self, deadline: Instant) -> Result<bool> {
        let Some((ticket, done)) = &mut self.open else {
            return Ok(true);
        };
        loop {
            match self.watch.recv(ticket.block.reports(), Some(deadline))? {
                Some(Some(report)) => done.push(report),
                None => return Ok(false),
                Some(None) => break,
            }
        }
        let Some((ticket, done)) = self.open.take() else {
            return Ok(true);
        };
        let (filled, failures) = ticket.block.finish(done)?;
        for error in failures {
            note_skip(&self.ledger, &self.on_error, error)?;
        }
        if let Some(end) = filled.end() {
            self.passes.found_good(end);
        }
        self.assembler.push(filled);
        Ok(true)
    }
}
