//! A lane: shards, or parts of them, one after the other, and the order in which their samples leave.

use std::collections::VecDeque;

use super::feed::{Feed, ShardBytes};
use super::stretch::{LaneWork, NOTHING, Spot, Stretch, Take};
use crate::buffer::copy;
use crate::config::OnError;
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::{Ledger, OpenHop};
use crate::sample::order::Windows;
use crate::sample::{Sample, SampleOptions, SampleReader};
use crate::size::to_usize;
use crate::sync::{Arc, AtomicU64, Ordering};

/// What all lanes have in common.
#[derive(Debug, Clone)]
pub(super) struct Reading {
    /// How shards are read; of each source.
    pub(super) options: Arc<[SampleOptions]>,
    /// How far back in its stream a lane may reach for a window.
    pub(super) span_bytes: u64,
    /// Whether a window may be cut short where memory has no room for it.
    pub(super) may_shorten: bool,
    /// `hold`.
    pub(super) hold: OpenHop,
    pub(super) ledger: Arc<Ledger>,
}

impl Reading {
    fn options_of(&self, source: usize) -> SampleOptions {
        self.options.get(source).cloned().unwrap_or_default()
    }

    /// Copies a sample out of the pool.
    ///
    /// # Copies
    ///
    /// One in user space, on `hold`.
    fn detach(&self, sample: &mut Sample) {
        if std::mem::replace(&mut sample.is_detached, true) {
            return;
        }
        self.ledger.note(
            "windows of the shuffle take more than their part of the memory, so samples were copied out of the way: raise `memory`, or shuffle among fewer",
        );
        for field in &mut sample.fields {
            field.bytes = copy::assemble(&self.hold, std::slice::from_ref(&field.bytes));
        }
    }
}

/// A lane that runs.
#[derive(Debug)]
pub(super) struct Lane {
    bytes: ShardBytes,
    /// See [`Feed::leased`].
    leased: Arc<AtomicU64>,
    stretches: std::vec::IntoIter<Stretch>,
    again: Arc<[Stretch]>,
    /// So many stretches were begun, those included that came before what is to be done here.
    begun: u64,
    open: Option<OpenStretch>,
    windows: Windows,
    reading: Reading,
    /// How its shards are read.
    options: SampleOptions,
    /// Samples of the window, in the order in which they leave.
    ready: VecDeque<Sample>,
    spot: Spot,
    /// Where the next window begins.
    next_at: Spot,
    /// See [`Lane::limited_to`].
    limited_to: Option<u64>,
    is_over: bool,
}

#[derive(Debug)]
struct OpenStretch {
    reader: SampleReader<ShardBytes>,
    url: Arc<str>,
    /// What is still to be passed over and taken, and what follows that.
    now: Take,
    then: std::vec::IntoIter<Take>,
    is_last: bool,
    /// Samples of the shard that were read, those passed over included.
    read: u64,
}

impl Lane {
    pub(super) fn new(feed: Feed, work: LaneWork, reading: &Reading) -> Self {
        let leased = feed.leased();
        Self {
            bytes: ShardBytes::new(feed),
            leased,
            begun: work.spot.stretch,
            stretches: work.stretches.into_iter(),
            again: work.again,
            open: None,
            windows: work.windows,
            options: reading.options_of(work.source),
            reading: reading.clone(),
            ready: VecDeque::new(),
            spot: work.spot,
            next_at: work.spot,
            limited_to: None,
            is_over: false,
        }
    }

    /// Where the lane stands behind the sample that was given last.
    pub(super) fn spot(&self) -> Spot {
        if self.ready.is_empty() {
            self.next_at
        } else {
            self.spot
        }
    }

    /// How many samples the smallest window had that memory cut short; none where all had what was asked for.
    pub(super) fn limited_to(&self) -> Option<u64> {
        self.limited_to
    }

    /// Begins the next pass, behind the end of the one before.
    pub(super) fn begin_again(&mut self) {
        let again: Vec<Stretch> = self.again.iter().cloned().collect();
        self.stretches = again.into_iter();
        self.is_over = false;
        self.bytes.allow_pass();
    }

    /// The next sample that leaves. None at the end of the lane, or of its pass.
    ///
    /// Where memory has no room for a window, it is cut short if it may; else its samples are copied out of the pool.
    pub(super) fn next(&mut self) -> Result<Option<Sample>> {
        if self.windows.is_none() {
            let sample = self.read()?;
            if let Some(sample) = &sample {
                self.next_at = self.behind(sample, 0);
            }
            return Ok(sample);
        }
        if self.ready.is_empty() {
            self.fill()?;
        }
        let sample = self.ready.pop_front();
        if sample.is_some() {
            self.spot.given += 1;
        }
        Ok(sample)
    }

    /// Reads the next window whole, and puts it into the order in which it leaves.
    fn fill(&mut self) -> Result<()> {
        self.spot = self.next_at;
        let Spot {
            window, len, given, ..
        } = self.spot;
        let wanted = if len > 0 {
            len
        } else {
            self.windows.len_of(window)
        };
        let mut samples: Vec<Option<Sample>> = Vec::new();
        // From before the first sample, whose own length counts as well.
        let mut first = self.leased.load(Ordering::Relaxed);
        while (samples.len() as u64) < wanted {
            let Some(sample) = self.read()? else { break };
            self.next_at = self.behind(&sample, window + 1);
            samples.push(Some(sample));
            // Measured in memory leased by the time the sample is whole: see `Feed::leased`.
            let leased = self.leased.load(Ordering::Relaxed);
            if leased - first <= self.reading.span_bytes {
                continue;
            }
            if len > 0 || !self.reading.may_shorten {
                // It holds what it is said to hold; what has no room in the lane's memory is copied out of it.
                samples
                    .iter_mut()
                    .flatten()
                    .for_each(|sample| self.reading.detach(sample));
                first = leased;
                continue;
            }
            let now = samples.len() as u64;
            self.limited_to = Some(self.limited_to.map_or(now, |before| before.min(now)));
            break;
        }
        self.spot.len = samples.len() as u64;
        let order = self.windows.order(window, self.spot.len);
        self.ready = order
            .into_iter()
            .skip(to_usize(given))
            .filter_map(|place| samples.get_mut(place as usize).and_then(Option::take))
            .collect();
        Ok(())
    }

    /// The spot where the window `number` begins, right behind `sample`, which was read last.
    fn behind(&self, sample: &Sample, number: u64) -> Spot {
        let (offset, skip) = match &self.open {
            Some(open) if open.reader.is_inflated() => (0, open.read),
            _ => (sample.end_offset, 0),
        };
        Spot {
            stretch: self.begun - 1,
            offset,
            skip,
            window: number,
            len: 0,
            given: 0,
        }
    }

    /// The next sample in the order of the shards. None at the end of the lane.
    fn read(&mut self) -> Result<Option<Sample>> {
        loop {
            if self.open.is_none() && !self.begin()? {
                return Ok(None);
            }
            let Some(open) = &mut self.open else {
                return Ok(None);
            };
            while open.now.take == Some(0)
                && let Some(next) = open.then.next()
            {
                open.now = next;
            }
            let is_done = open.now.take == Some(0);
            let next = if is_done && !open.is_last {
                None
            } else {
                open.reader.next()
            };
            match next {
                Some(Ok(_)) if is_done => return Err(stale(&open.url, "more")),
                Some(Ok(sample)) => {
                    open.read += 1;
                    if open.now.skip > 0 {
                        open.now.skip -= 1;
                        continue;
                    }
                    if let Some(take) = &mut open.now.take {
                        *take -= 1;
                    }
                    return Ok(Some(sample));
                }
                Some(Err(error)) => return Err(error),
                None => self.end()?,
            }
        }
    }

    /// Begins the next stretch; says whether there is one.
    fn begin(&mut self) -> Result<bool> {
        if self.is_over {
            return Ok(false);
        }
        let stretch = self.stretches.next();
        // Behind the end of a pass the bytes of the next one follow, and not their end.
        let is_last = stretch.is_none() && self.again.is_empty();
        let object = if stretch.is_some() || is_last {
            self.bytes.begin()?
        } else {
            None
        };
        let (Some(object), Some(stretch)) = (object, stretch) else {
            self.is_over = true;
            self.next_at = Spot {
                stretch: self.begun,
                window: self.next_at.window,
                ..Spot::default()
            };
            return Ok(false);
        };
        self.begun += 1;
        let reader = SampleReader::within(
            Arc::clone(&object.url),
            stretch.extent,
            object.len_bytes,
            self.bytes.clone(),
            self.options.clone(),
            &self.reading.ledger,
        );
        self.open = Some(OpenStretch {
            reader,
            url: object.url,
            now: NOTHING,
            then: stretch.takes.into_iter(),
            is_last: stretch.is_last,
            read: 0,
        });
        Ok(true)
    }

    /// Ends the open stretch.
    fn end(&mut self) -> Result<()> {
        let Some(open) = self.open.take() else {
            return Ok(());
        };
        self.bytes.finish()?;
        let mut missing = std::iter::once(open.now).chain(open.then);
        let is_missing = missing.any(|of| of.skip > 0 || of.take.is_some_and(|take| take > 0));
        if is_missing && self.options.on_error == OnError::Raise {
            return Err(stale(&open.url, "fewer"));
        }
        Ok(())
    }
}

/// A shard is not what its index says.
fn stale(url: &str, how: &str) -> Error {
    Error::new(
        ErrorKind::Changed,
        "read",
        url,
        format!("it has {how} samples than its index says"),
    )
    .with_help("the index is of another version of the shard, or was made with another key rule: make it anew with `onecopy index`")
}
