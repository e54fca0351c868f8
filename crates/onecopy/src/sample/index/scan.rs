//! The headers of a shard to an index of it.

use super::dali::IndexText;
use crate::error::Result;
use crate::ledger::Ledger;
use crate::sample::names::{self, Named};
use crate::sample::tar::Passed;
use crate::sample::{Pieces, Sample, SampleOptions, SampleReader};
use crate::sync::Arc;

/// What a shard was found to hold.
#[derive(Debug)]
pub struct Scanned {
    /// How many samples.
    pub samples: u64,
    /// Where they begin, as DALI has it. None where a reader cannot begin in the middle: in a compressed shard, where a
    /// header at the front gives members their size, and where something was passed over.
    pub offsets: Option<String>,
}

/// Looks for the samples of a shard: those that [`SampleReader`] finds, since it is the one that looks.
#[derive(Debug)]
pub struct Scan<I> {
    reader: SampleReader<I>,
    options: SampleOptions,
    /// What was passed over in this shard.
    ledger: Arc<Ledger>,
    text: IndexText,
    samples: u64,
}

impl<I: Pieces> Scan<I> {
    /// Scans `shard`, as [`SampleReader::new`] reads it. What is passed over is counted on a ledger of the scan's own.
    pub fn new(shard: Arc<str>, len_bytes: Option<u64>, bytes: I, options: SampleOptions) -> Self {
        let ledger = Ledger::unread();
        Self {
            reader: SampleReader::new(shard, len_bytes, bytes, options.clone(), &ledger),
            options,
            ledger,
            text: IndexText::default(),
            samples: 0,
        }
    }

    /// What was warned of and left out in this shard.
    #[must_use]
    pub fn ledger(&self) -> &Arc<Ledger> {
        &self.ledger
    }

    /// Goes through the whole shard.
    ///
    /// # Errors
    ///
    /// As [`SampleReader`] gives them.
    pub fn run(&mut self) -> Result<Scanned> {
        while let Some(sample) = self.reader.next() {
            self.add(&sample?);
        }
        let members = self.reader.members();
        let is_whole = self.ledger.report().skipped.is_empty();
        let text = std::mem::take(&mut self.text);
        Ok(Scanned {
            samples: self.samples,
            offsets: (is_whole && members.may_begin_anywhere()).then(|| text.finish()),
        })
    }

    fn add(&mut self, sample: &Sample) {
        self.samples += 1;
        for Passed { name, offset, size } in self.reader.members().take_passed() {
            // Members of a sample that was left out may stand before.
            if offset < sample.offset {
                continue;
            }
            let name = names::text(&name);
            if let Named::Field { field, .. } = names::split(&name, self.options.key_rule) {
                self.text.member(field, &name, offset, size);
            }
        }
        self.text.end_sample();
    }
}
