//! What a load gives that ends before batches.

use std::time::Instant;

use super::crew::Crew;
use super::feed::Feed;
use super::passes::Passes;
use super::watch::Watch;
use crate::error::Result;
use crate::ledger::{Ledger, Wait};
use crate::sample::Sample;
use crate::sync::{Arc, channel};

/// Shards' bytes, in order.
#[derive(Debug)]
pub struct Buffers {
    pub(super) feed: Feed,
    pub(super) _crew: Crew,
}

impl Buffers {
    /// The next pieces.
    pub fn feed(&mut self) -> &mut Feed {
        &mut self.feed
    }
}

/// Samples, in order.
#[derive(Debug)]
pub struct Samples {
    pub(super) watch: Watch,
    pub(super) passes: Passes,
    pub(super) samples: channel::Receiver<Result<Sample>>,
    pub(super) is_over: bool,
    pub(super) ledger: Arc<Ledger>,
    pub(super) crew: Crew,
}

impl Iterator for Samples {
    type Item = Result<Sample>;

    fn next(&mut self) -> Option<Result<Sample>> {
        let start = Instant::now();
        let next = if self.is_over {
            None
        } else {
            let next = self.watch.recv(&self.samples, None);
            next.map_or_else(|error| Some(Err(error)), Option::flatten)
        };
        self.ledger.waited(Wait::Consumer, start.elapsed());
        match next {
            Some(Ok(sample)) => {
                self.ledger.delivered_samples(1);
                self.ledger.delivered_of(&[sample.source]);
                self.passes.hand_over(sample.number + 1);
                return Some(Ok(sample));
            }
            Some(Err(error)) => {
                self.is_over = true;
                self.ledger.finish();
                return Some(Err(error));
            }
            None => {}
        }
        self.ledger.finish();
        let is_told = std::mem::replace(&mut self.is_over, true);
        if is_told {
            None
        } else {
            self.crew.check_end().err().map(Err)
        }
    }
}
