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

/// Where all lanes of a load stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Each lane, source by source.
    pub lanes: Vec<Spot>,
    /// Whose turn it is among the lanes of each source.
    pub next: Vec<usize>,
    /// How many samples were given, those that were left out included, where that says which source is drawn next.
    pub given: Option<u64>,
}

/// Where lanes stand behind the batch that was given last. Clones are handles on the same; they outlive the load.
#[derive(Debug, Clone)]
pub struct Spots(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    marks: channel::Receiver<Mark>,
    /// Of samples that were not given yet.
    waiting: VecDeque<Mark>,
    standing: Standing,
    /// All samples before this number were handed over.
    passed: u64,
    /// So many were given before this load.
    before: u64,
}

impl Spots {
    /// Where the lanes stand before they begin, and where the sample thread tells how they go on; nothing for a grid, where the
    /// number of samples tells it.
    pub(super) fn new(
        lanes: &[(Feed, LaneWork)],
        turns: &Turns,
    ) -> (Option<channel::Sender<Mark>>, Option<Self>) {
        let Turns::Rounds(rounds) = turns else {
            return (None, None);
        };
        let given = rounds.draws.as_ref().map(|draws| draws.given);
        let (sender, marks) = channel::unbounded();
        let state = State {
            marks,
            waiting: VecDeque::new(),
            standing: Standing {
                lanes: lanes.iter().map(|(_, work)| work.spot).collect(),
                next: rounds.next.clone(),
                given,
            },
            passed: 0,
            before: given.unwrap_or(0),
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
            standing,
            passed,
            before,
        } = &mut *state;
        waiting.extend(marks.try_iter());
        let each = (standing.lanes.len() / standing.next.len().max(1)).max(1);
        while let Some(mark) = waiting.front().copied()
            && mark.number < *passed
        {
            waiting.pop_front();
            if let Some(spot) = standing.lanes.get_mut(mark.lane) {
                *spot = mark.spot;
            }
            if let Some(next) = standing.next.get_mut(mark.lane / each) {
                *next = (mark.lane % each + 1) % each;
            }
            standing.given = standing.given.map(|_| *before + mark.number + 1);
        }
    }

    /// Where each lane stands behind what was received, and whose turn is next.
    #[must_use]
    pub fn now(&self) -> Standing {
        self.0.lock().standing.clone()
    }
}
