//! A load that runs.

use std::time::Duration;

use super::{Catalog, Order};
use crate::batch::Batch;
use crate::error::Result;
use crate::ledger::{Ledger, Report};
use crate::pipeline::{Batches, Next, Samples, Spots};
use crate::sample::Sample;
use crate::sync::Arc;

/// A load that runs. Dropping it stops everything and waits for its threads.
#[derive(Debug)]
pub struct Load<T> {
    // Before the catalog, whose network stages need until they are stopped and joined.
    pub(super) output: T,
    pub(super) order: Order,
    pub(super) ledger: Arc<Ledger>,
    pub(super) _catalogs: Vec<Arc<Catalog>>,
}

impl<T> Load<T> {
    /// The account as it stands.
    #[must_use]
    pub fn report(&self) -> Report {
        self.ledger.report()
    }

    /// The running account.
    #[must_use]
    pub fn ledger(&self) -> &Arc<Ledger> {
        &self.ledger
    }

    /// How the epoch is ordered.
    #[must_use]
    pub fn order(&self) -> &Order {
        &self.order
    }

    /// What the load gives: its buffers, samples or batches.
    pub fn output(&mut self) -> &mut T {
        &mut self.output
    }
}

impl Load<Batches> {
    /// Waits for the next batch, but no longer than `limit`.
    ///
    /// # Errors
    ///
    /// What stopped the load.
    pub fn next_within(&mut self, limit: Duration) -> Result<Next> {
        self.output.next_within(limit)
    }

    /// Where each lane stands behind the batch that was given last; none where samples are counted, so that their number tells.
    #[must_use]
    pub fn spots(&self) -> Option<&Spots> {
        self.output.spots()
    }
}

impl Iterator for Load<Batches> {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Result<Batch>> {
        loop {
            match self.output.next_within(Duration::from_secs(3600)) {
                Ok(Next::Batch(batch)) => return Some(Ok(batch)),
                Ok(Next::End) => return None,
                Ok(Next::NotYet) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl Iterator for Load<Samples> {
    type Item = Result<Sample>;

    fn next(&mut self) -> Option<Self::Item> {
        self.output.next()
    }
}
