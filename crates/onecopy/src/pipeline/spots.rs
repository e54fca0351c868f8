//! Where lanes stand behind what the consumer has received, and not behind what was read ahead of it.

use std::collections::VecDeque;

use super::feed::Feed;
use super::stretch::{LaneWork, Spot};
use super::turns::Turns;
use crate::sync::{Arc, Mutex, channel};

/// Where a lane stands behind a sample.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    /// See [`crate::sample::Sample::number`].
    pub(super) number: u64,
    pub(super) lane: usize,
    pub(super) spot: Spot,
}

/// Where lanes stand behind the batch that was given last. Clones are handles on the same; they outlive the load.
#[derive(Debug, Clone)]
pub struct Spots(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    marks: channel::Receiver<Mark>,
    /// Of samples that were not given yet.
    waiting: VecDeque<Mark>,
    spots: Vec<Spot>,
    next: usize,
    /// All samples before this number were handed over.
    passed: u64,
}

impl Spots {
    /// Where the lanes stand before they begin, and where the sample thread tells how they go on; nothing for a grid, where the
    /// number of samples tells it.
    pub(super) fn new(
        lanes: &[(Feed, LaneWork)],
        turns: Turns,
    ) -> (Option<channel::Sender<Mark>>, Option<Self>) {
        let Turns::Round { next, .. } = turns else {
            return (None, None);
        };
        let (sender, marks) = channel::unbounded();
        let state = State {
            marks,
            waiting: VecDeque::new(),
            spots: lanes.iter().map(|(_, work)| work.spot).collect(),
            next,
            passed: 0,
        };
        (Some(sender), Some(Self(Arc::new(Mutex::new(state)))))
    }

    /// Notes that all samples before number `end` were handed over, or left out.
    pub(super) fn pass(&self, end: u64) {
        self.0.lock().passed = end;
    }

    /// Takes what was handed over for received. Until then the lanes stand where they stood: what lies between may still fail.
    pub fn receive(&self) {
        let mut state = self.0.lock();
        let State {
            marks,
            waiting,
            spots,
            next,
            passed,
        } = &mut *state;
        waiting.extend(marks.try_iter());
        while let Some(mark) = waiting.front().copied()
            && mark.number < *passed
        {
            waiting.pop_front();
            if let Some(spot) = spots.get_mut(mark.lane) {
                *spot = mark.spot;
            }
            *next = (mark.lane + 1) % spots.len().max(1);
        }
    }

    /// Where each lane stands behind what was received, and whose turn is next.
    #[must_use]
    pub fn now(&self) -> (Vec<Spot>, usize) {
        let state = self.0.lock();
        (state.spots.clone(), state.next)
    }
}
