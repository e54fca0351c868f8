//! What was left out, and how much may be.

use std::collections::BTreeMap;

use serde::Serialize;

/// What an error costs that is passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// One sample.
    Sample,
    /// A shard, or the rest of one: nobody knows how many samples.
    Shard,
}

/// What was left out.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Skipped {
    /// Samples that are known to be lost.
    pub samples: u64,
    /// Shards of which all or the rest was given up: nobody knows how many samples that holds.
    pub shards: u64,
    /// Samples and shards together, by cause.
    pub by_cause: BTreeMap<String, u64>,
    /// How many samples and shards may be left out, together, where there is a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_skipped: Option<u64>,
}

impl Skipped {
    /// Whether nothing was left out.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.samples == 0 && self.shards == 0
    }

    /// Adds one, unless no more may be: then it is told what there is.
    pub(super) fn add(&mut self, lost: Lost, cause: &str) -> Result<(), Box<Self>> {
        if self
            .max_skipped
            .is_some_and(|max| self.samples + self.shards >= max)
        {
            return Err(Box::new(self.clone()));
        }
        match lost {
            Lost::Sample => self.samples += 1,
            Lost::Shard => self.shards += 1,
        }
        match self.by_cause.get_mut(cause) {
            Some(count) => *count += 1,
            None => {
                self.by_cause.insert(cause.to_owned(), 1);
            }
        }
        Ok(())
    }

    /// Adds what was left out elsewhere, whatever may be.
    pub(super) fn take_over(&mut self, more: Self) {
        self.samples += more.samples;
        self.shards += more.shards;
        add_counts(&mut self.by_cause, more.by_cause);
    }

    /// How many, in words: `3 samples, the rest of 1 shards`.
    pub(super) fn counts(&self) -> String {
        let samples = format!("{} samples", self.samples);
        let shards = format!("the rest of {} shards", self.shards);
        match (self.samples, self.shards) {
            (_, 0) => samples,
            (0, _) => shards,
            _ => format!("{samples}, {shards}"),
        }
    }

    /// The causes, in words: `corrupt 2, not_found 1`.
    pub(super) fn causes(&self) -> String {
        super::map::causes(&self.by_cause)
    }

    /// What an error says of all that was left out before it.
    #[must_use]
    pub fn told(&self) -> String {
        format!("left out before it: {} ({})", self.counts(), self.causes())
    }

    /// What an error gives as help where no more may be left out, with settings named as [`crate::setting`] says.
    #[must_use]
    pub fn help(&self) -> String {
        let max = self.max_skipped.unwrap_or_default();
        format!(
            "`max_skipped={max}` is spent: see what is wrong with the data by `on_error=warn`; where that much may be lost, \
             raise it"
        )
    }
}

/// Adds counts to counts, name by name.
pub(super) fn add_counts(counts: &mut BTreeMap<String, u64>, more: BTreeMap<String, u64>) {
    for (name, count) in more {
        *counts.entry(name).or_default() += count;
    }
}

#[cfg(test)]
mod tests {
    use super::super::Ledger;
    use super::*;
    use crate::sync::{Arc, spawn};

    #[test]
    fn samples_and_shards_that_were_left_out_add_up_by_cause() {
        let ledger = Ledger::unread();
        assert!(ledger.report().skipped.is_empty());
        for (lost, cause) in [
            (Lost::Sample, "truncated"),
            (Lost::Sample, "truncated"),
            (Lost::Shard, "truncated"),
            (Lost::Shard, "denied"),
        ] {
            ledger.leave_out(lost, cause).unwrap();
        }
        let report = ledger.report();
        let skipped = serde_json::to_string(&report.skipped).unwrap();
        assert_eq!(
            skipped,
            r#"{"samples":2,"shards":2,"by_cause":{"denied":1,"truncated":3}}"#
        );
        let line = "  skipped           2 samples, the rest of 2 shards (denied 1, truncated 3)\n";
        assert!(report.to_string().contains(line), "{report}");
    }

    #[test]
    fn a_limit_is_told_and_shown_and_stands_in_the_json() {
        let ledger = Ledger::unread();
        ledger.allow_skips(Some(2));
        ledger.leave_out(Lost::Sample, "corrupt").unwrap();
        ledger.leave_out(Lost::Shard, "denied").unwrap();
        let spent = ledger.leave_out(Lost::Sample, "corrupt").unwrap_err();
        assert_eq!(
            spent.told(),
            "left out before it: 1 samples, the rest of 1 shards (corrupt 1, denied 1)"
        );
        assert!(spent.help().starts_with("`max_skipped=2` is spent"));
        let report = ledger.report();
        assert_eq!(
            serde_json::to_string(&report.skipped).unwrap(),
            r#"{"samples":1,"shards":1,"by_cause":{"corrupt":1,"denied":1},"max_skipped":2}"#
        );
        let line = "  skipped           1 samples, the rest of 1 shards, of 2 that may be (corrupt 1, denied 1)\n";
        assert!(report.to_string().contains(line), "{report}");
    }

    #[test]
    fn as_many_as_may_be_are_counted_and_no_more_however_many_threads_count() {
        let ledger = Ledger::unread();
        ledger.allow_skips(Some(1000));
        let threads: Vec<_> = (0..8)
            .map(|number| {
                let ledger = Arc::clone(&ledger);
                let (lost, cause) = match number % 2 {
                    0 => (Lost::Sample, "corrupt"),
                    _ => (Lost::Shard, "not_found"),
                };
                let count = move || {
                    (0..200)
                        .filter(|_| ledger.leave_out(lost, cause).is_ok())
                        .count()
                };
                spawn("count", count).unwrap()
            })
            .collect();
        let counted: usize = threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum();
        let skipped = ledger.report().skipped;
        assert_eq!(counted, 1000);
        assert_eq!(skipped.samples + skipped.shards, 1000);
        assert_eq!(skipped.by_cause.values().sum::<u64>(), 1000);
    }
}
