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

/// The end of a pass over a source.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    /// So many samples came before it.
    number: u64,
    source: usize,
    /// Whether all sources were read whole since the last one that says so.
    is_of_all: bool,
}

/// The passes as the sample thread sees them.
#[derive(Debug)]
pub(super) struct Begun {
    /// Whether the pass over each source that is read has given a sample, as far as is known.
    has_given: Vec<bool>,
    /// How many passes over each source ended since all were read whole.
    since: Vec<u32>,
    /// Samples that went on to be decoded until then.
    taken: u64,
    /// How often all sources were read whole without any such, one after the other.
    barren: u32,
    /// Tells where passes end.
    ends: channel::Sender<End>,
}

impl Begun {
    /// `is_begun`: which sources have given samples in their first pass, to the run that this one goes on from.
    pub(super) fn new(is_begun: Vec<bool>, ends: channel::Sender<End>) -> Self {
        Self {
            since: vec![0; is_begun.len()],
            has_given: is_begun,
            taken: 0,
            barren: 0,
            ends,
        }
    }

    pub(super) fn give(&mut self, source: usize) {
        if let Some(has_given) = self.has_given.get_mut(source) {
            *has_given = true;
        }
    }

    /// Notes the end of a pass over `source` behind `number` samples, of which `taken` went on, if anybody counts them.
    ///
    /// # Errors
    ///
    /// `NotFound` where it gave none: it would be so for ever.
    pub(super) fn end(&mut self, source: usize, number: u64, taken: Option<u64>) -> Result<()> {
        let has_given = self.has_given.get_mut(source).map(std::mem::take);
        if has_given != Some(true) {
            return Err(barren(&self.name(source), "none came"));
        }
        self.since[source] += 1;
        // Of several sources the first end may be that of a pass which was begun before.
        let needed = if self.since.len() > 1 { 2 } else { 1 };
        let is_of_all = self.since.iter().all(|since| *since >= needed);
        if is_of_all {
            self.since.fill(0);
            self.check_taken(taken)?;
        }
        // Nobody wants to know where samples are handed out as they are.
        let _unheard = self.ends.send(End {
            number,
            source,
            is_of_all,
        });
        Ok(())
    }

    fn check_taken(&mut self, taken: Option<u64>) -> Result<()> {
        let Some(taken) = taken else {
            return Ok(());
        };
        let is_barren = std::mem::replace(&mut self.taken, taken) == taken;
        self.barren = if is_barren { self.barren + 1 } else { 0 };
        // What waits for one of its form has another pass to meet one.
        if self.barren > 1 {
            return Err(barren(ALL, "all of them were left out"));
        }
        Ok(())
    }

    fn name(&self, source: usize) -> String {
        if self.has_given.len() > 1 {
            return format!("the shards of source {source} of the mixture (counted from 0)");
        }
        ALL.to_owned()
    }
}

/// What there is, to a process.
const ALL: &str = "all shards that this process reads";

/// The passes as whoever takes from the load sees them.
#[derive(Debug)]
pub(super) struct Passes {
    ends: channel::Receiver<End>,
    /// Where passes end that are not all handed over.
    waiting: VecDeque<End>,
    /// Where the first of those begins at whose end all sources were read whole.
    begun_at: u64,
    /// Behind the last sample that was good.
    good_end: u64,
    ledger: Arc<Ledger>,
}

impl Passes {
    pub(super) fn new(ends: channel::Receiver<End>, ledger: &Arc<Ledger>) -> Self {
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

    /// Makes sure that nothing was read whole before number `from` without a good sample, where all before it are known.
    ///
    /// # Errors
    ///
    /// `NotFound` where it was: it would be so for ever.
    pub(super) fn check(&mut self, from: u64) -> Result<()> {
        self.waiting.extend(self.ends.try_iter());
        let mut begun_at = self.begun_at;
        let ended = self.waiting.iter().take_while(|end| end.number <= from);
        for end in ended.filter(|end| end.is_of_all) {
            if self.good_end <= begun_at && begun_at < end.number {
                return Err(barren(ALL, "all of them were left out"));
            }
            begun_at = end.number;
        }
        Ok(())
    }

    /// Notes that the sample before number `end` was handed over.
    pub(super) fn hand_over(&mut self, end: u64) {
        self.waiting.extend(self.ends.try_iter());
        while let Some(&ended) = self.waiting.front()
            && ended.number < end
        {
            self.waiting.pop_front();
            if ended.is_of_all {
                self.begun_at = ended.number;
            }
            self.ledger.passed(ended.source);
        }
    }
}

fn barren(what: &str, why: &str) -> Error {
    Error::new(
        ErrorKind::NotFound,
        "find samples in",
        what,
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
        assert!(
            Begun::new(vec![false], ends.clone())
                .end(0, 0, None)
                .is_err()
        );
        let mut begun = Begun::new(vec![true, false], ends);
        begun.end(0, 0, None).unwrap();
        begun.give(0);
        begun.end(0, 1, None).unwrap();
        let error = begun.end(1, 1, None).unwrap_err();
        assert!(error.to_string().contains("source 1"), "{error}");
        assert!(begun.end(0, 1, None).is_err());
    }

    #[test]
    fn two_passes_of_which_nothing_went_on_are_an_error() {
        let (ends, _heard) = channel::unbounded();
        let mut begun = Begun::new(vec![false], ends);
        let mut pass = |taken| {
            begun.give(0);
            begun.end(0, 9, Some(taken))
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
        let (mut begun, mut passes) = (Begun::new(vec![false], ends), Passes::new(heard, &ledger));
        for end in [3, 6, 9, 12] {
            begun.give(0);
            begun.end(0, end, None).unwrap();
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

    #[test]
    fn several_sources_have_all_to_be_read_whole_before_nothing_good_is_an_error() {
        let (ends, heard) = channel::unbounded();
        let ledger = Ledger::unread();
        ledger.mixes(["a".to_owned(), "b".to_owned()]);
        let (mut begun, mut passes) = (
            Begun::new(vec![false, false], ends),
            Passes::new(heard, &ledger),
        );
        let mut end = |source, number| {
            begun.give(source);
            begun.end(source, number, None).unwrap();
        };
        // One is a single sample that is never good, the other comes rarely.
        (1..9).for_each(|number| end(0, number));
        passes.check(9).unwrap();
        end(1, 9);
        passes.check(10).unwrap();
        end(1, 10);
        assert!(passes.check(10).is_err());
        passes.found_good(11);
        passes.check(11).unwrap();
        passes.hand_over(11);
        let report = ledger.report();
        assert_eq!(
            report
                .sources
                .iter()
                .map(|of| of.passes)
                .collect::<Vec<_>>(),
            [9, 3]
        );
        assert_eq!(report.passes, 3);
    }
}
