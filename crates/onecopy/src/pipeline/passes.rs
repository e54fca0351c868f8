//! Passes over the shards of a process, which are begun again until the steps of the epoch are made.

use std::collections::VecDeque;

use crate::error::{Error, ErrorKind, Result};
use crate::ledger::Ledger;
use crate::sync::{Arc, channel};

/// How many steps a run makes, where that is given out and not found at the end of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steps {
    /// Steps that are left of the epoch.
    pub left: u64,
    /// Samples of each.
    pub samples: u64,
    /// Whether only the consumer knows when they are made.
    pub is_outside: bool,
}

impl Steps {
    /// The samples of all of them.
    pub(super) fn samples(self) -> u64 {
        self.left.saturating_mul(self.samples)
    }
}

/// The passes as the sample thread sees them.
#[derive(Debug)]
pub(super) struct Begun {
    /// Whether the pass that is read has given a sample, as far as is known.
    has_given: bool,
    /// Samples that went on to be decoded before this pass.
    taken: u64,
    /// Passes without any such, one after the other.
    barren: u32,
    /// Tells where passes end, as the number of samples before that.
    ends: channel::Sender<u64>,
}

impl Begun {
    /// `is_begun`: the first pass has given samples before, to the run that this one goes on from.
    pub(super) fn new(is_begun: bool, ends: channel::Sender<u64>) -> Self {
        Self {
            has_given: is_begun,
            taken: 0,
            barren: 0,
            ends,
        }
    }

    pub(super) fn give(&mut self) {
        self.has_given = true;
    }

    /// Notes the end of a pass behind `number` samples, of which `taken` went on, if anybody counts them.
    ///
    /// # Errors
    ///
    /// `NotFound` where it gave none: it would be so for ever.
    pub(super) fn end(&mut self, number: u64, taken: Option<u64>) -> Result<()> {
        if !std::mem::replace(&mut self.has_given, false) {
            return Err(barren("none came"));
        }
        if let Some(taken) = taken {
            let is_barren = std::mem::replace(&mut self.taken, taken) == taken;
            self.barren = if is_barren { self.barren + 1 } else { 0 };
            // What waits for one of its form has another pass to meet one.
            if self.barren > 1 {
                return Err(barren("all of them were left out"));
            }
        }
        // Nobody wants to know where samples are handed out as they are.
        let _unheard = self.ends.send(number);
        Ok(())
    }
}

/// The passes as whoever takes from the load sees them.
#[derive(Debug)]
pub(super) struct Passes {
    ends: channel::Receiver<u64>,
    /// Where passes end that are not all handed over.
    waiting: VecDeque<u64>,
    /// Where the first of these begins.
    begun_at: u64,
    /// Behind the last sample that was good.
    good_end: u64,
    ledger: Arc<Ledger>,
}

impl Passes {
    pub(super) fn new(ends: channel::Receiver<u64>, ledger: &Arc<Ledger>) -> Self {
        Self {
            ends,
            waiting: VecDeque::new(),
            begun_at: 0,
            good_end: 0,
            ledger: Arc::clone(ledger),
        }
    }

    /// Notes that all samples before number `end` are known, and the last of them is good.
    pub(super) fn found_good(&mut self, end: u64) {
        self.good_end = end;
    }

    /// Makes sure that no pass ended before number `from` without a good sample, where all before it are known.
    ///
    /// # Errors
    ///
    /// `NotFound` where one did: it would be so for ever.
    pub(super) fn check(&mut self, from: u64) -> Result<()> {
        self.waiting.extend(self.ends.try_iter());
        let mut begun_at = self.begun_at;
        for &end in self.waiting.iter().take_while(|end| **end <= from) {
            if self.good_end <= begun_at && begun_at < end {
                return Err(barren("all of them were left out"));
            }
            begun_at = end;
        }
        Ok(())
    }

    /// Notes that the sample before number `end` was handed over.
    pub(super) fn hand_over(&mut self, end: u64) {
        self.waiting.extend(self.ends.try_iter());
        while let Some(&ended) = self.waiting.front()
            && ended < end
        {
            self.waiting.pop_front();
            self.begun_at = ended;
            self.ledger.passed();
        }
    }
}

fn barren(why: &str) -> Error {
    Error::new(
        ErrorKind::NotFound,
        "find samples in",
        "all shards that this process reads",
        format!("{why}, and reading them again would give none"),
    )
    .with_help(
        "look at what the ledger says was left out; end at the first error with `on_error=raise`",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_that_gives_nothing_is_an_error_and_one_that_was_begun_before_is_not() {
        let (ends, _heard) = channel::unbounded();
        assert!(Begun::new(false, ends.clone()).end(0, None).is_err());
        let mut begun = Begun::new(true, ends);
        begun.end(0, None).unwrap();
        begun.give();
        begun.end(1, None).unwrap();
        assert!(begun.end(1, None).is_err());
    }

    #[test]
    fn two_passes_of_which_nothing_went_on_are_an_error() {
        let (ends, _heard) = channel::unbounded();
        let mut begun = Begun::new(false, ends);
        let mut pass = |taken| {
            begun.give();
            begun.end(9, Some(taken))
        };
        pass(0).unwrap();
        pass(4).unwrap();
        pass(4).unwrap();
        assert!(pass(4).is_err());
    }

    #[test]
    fn a_pass_whose_samples_all_failed_is_an_error_once_all_of_them_are_known() {
        let (ends, heard) = channel::unbounded();
        let ledger = Ledger::unread();
        let mut passes = Passes::new(heard, &ledger);
        for end in [3, 6, 9, 12] {
            ends.send(end).unwrap();
        }
        // Samples 1 and 7 are good, of a block of nine.
        passes.found_good(2);
        passes.check(2).unwrap();
        passes.hand_over(2);
        passes.found_good(8);
        passes.check(9).unwrap();
        passes.hand_over(8);
        assert_eq!(ledger.report().passes, 3);
        passes.check(11).unwrap();
        assert!(passes.check(12).is_err());
    }
}
