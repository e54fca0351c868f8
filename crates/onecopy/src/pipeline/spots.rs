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
    /// Of samples that were not handed over yet: no more than are on their way, whether anybody receives or not.
    waiting: VecDeque<Mark>,
    /// Behind what was handed over.
    handed: Standing,
    /// Behind what was received.
    standing: Standing,
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
        let (sender, spots) = Self::from(Standing {
            lanes: lanes.iter().map(|(_, work)| work.spot).collect(),
            next: rounds.next.clone(),
            given,
        });
        (Some(sender), Some(spots))
    }

    /// Where lanes stand that begin at `standing`.
    fn from(standing: Standing) -> (channel::Sender<Mark>, Self) {
        let (sender, marks) = channel::unbounded();
        let state = State {
            marks,
            waiting: VecDeque::new(),
            before: standing.given.unwrap_or(0),
            handed: standing.clone(),
            standing,
        };
        (sender, Self(Arc::new(Mutex::new(state))))
    }

    /// Notes that all samples before number `end` were handed over, or left out. Their marks were sent before them.
    pub(super) fn pass(&self, end: u64) {
        let mut state = self.0.lock();
        let State {
            marks,
            waiting,
            handed,
            before,
            ..
        } = &mut *state;
        waiting.extend(marks.try_iter());
        let each = (handed.lanes.len() / handed.next.len().max(1)).max(1);
        while let Some(mark) = waiting.front().copied()
            && mark.number < end
        {
            waiting.pop_front();
            if let Some(spot) = handed.lanes.get_mut(mark.lane) {
                *spot = mark.spot;
            }
            if let Some(next) = handed.next.get_mut(mark.lane / each) {
                *next = (mark.lane % each + 1) % each;
            }
            handed.given = handed.given.map(|_| *before + mark.number + 1);
        }
    }

    /// Takes what was handed over for received. Until then the lanes stand where they stood: what lies between may still fail.
    pub fn receive(&self) {
        let mut state = self.0.lock();
        let State {
            handed, standing, ..
        } = &mut *state;
        // Into the memory that is there, for each batch anew.
        standing.lanes.clone_from(&handed.lanes);
        standing.next.clone_from(&handed.next);
        standing.given = handed.given;
    }

    /// Where each lane stands behind what was received, and whose turn is next.
    #[must_use]
    pub fn now(&self) -> Standing {
        self.0.lock().standing.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_that_wait_are_as_few_as_samples_on_their_way_though_nobody_receives() {
        let begin = Standing {
            lanes: vec![Spot::default(); 4],
            next: vec![0, 0],
            given: Some(7),
        };
        let (marks, spots) = Spots::from(begin.clone());
        let spot = |number| Spot {
            stretch: number,
            ..Spot::default()
        };
        // Batches of ten, of which the samples of the next two are on their way.
        for number in 0..1000 {
            let lane = usize::try_from(number % 4).unwrap();
            let spot = spot(number);
            marks.send(Mark { number, lane, spot }).unwrap();
            if number % 10 == 9 {
                spots.pass((number + 1).saturating_sub(20));
                let state = spots.0.lock();
                assert!(state.waiting.len() + state.marks.len() <= 20);
            }
        }
        assert_eq!(spots.now(), begin, "nothing was received");
        spots.receive();
        let there = Standing {
            lanes: [976, 977, 978, 979].map(spot).into(),
            next: vec![0, 0],
            given: Some(7 + 980),
        };
        assert_eq!(spots.now(), there);
        spots.pass(1000);
        assert_eq!(spots.now(), there, "what lies between may still fail");
        spots.receive();
        assert_eq!(spots.now().lanes, [996, 997, 998, 999].map(spot));
    }
}
