//! How an epoch is ordered, as Python sees it.

use onecopy::loader::{self, Position};
use onecopy::pipeline;
use pyo3::prelude::*;

/// What is needed again of an epoch to go on with it, and what is known of it before the first byte.
#[pyclass(frozen, module = "onecopy._onecopy")]
#[derive(Debug, Clone)]
pub(crate) struct Order(pub(crate) loader::Order);

#[pymethods]
impl Order {
    /// Lanes; of this process alone where samples are not counted.
    #[getter]
    fn lanes(&self) -> u64 {
        self.0.lanes
    }

    /// Groups of lanes that take turns.
    #[getter]
    fn groups(&self) -> u64 {
        self.0.groups
    }

    /// Samples of a lane's window.
    #[getter]
    fn window(&self) -> u64 {
        self.0.window
    }

    /// Samples of a global batch.
    #[getter]
    fn global_batch(&self) -> u64 {
        self.0.global_batch
    }

    /// The sources, as one number in 16 digits.
    #[getter]
    fn dataset(&self) -> String {
        format!("{:016x}", self.0.dataset)
    }

    /// Whether samples are counted. Else all that follows is 0.
    #[getter]
    fn is_counted(&self) -> bool {
        self.0.counted.is_some()
    }

    /// Steps that are still to be made here, where their number was asked for and samples are not counted.
    #[getter]
    fn steps_here(&self) -> Option<u64> {
        self.0.steps_here
    }

    /// Of each source, where there are several: samples in its shards, and samples of it that all ranks give.
    #[getter]
    fn sources(&self) -> Vec<(u64, u64)> {
        let sources = self.0.counted.iter().flat_map(|of| &of.sources);
        sources.map(|of| (of.dataset_samples, of.samples)).collect()
    }

    /// The samples that come twice, or not at all, where a plan tells: which shard, counted from 0, from which sample on, up to before which.
    #[getter]
    fn odd(&self) -> Vec<(usize, u64, u64)> {
        let totals = self.0.counted.iter();
        let odd = totals.flat_map(|of| &of.odd).flatten();
        odd.map(|of| (of.shard, of.from, of.to)).collect()
    }

    /// Samples in the shards, samples that all ranks give, steps, samples that come twice, samples that do not come.
    #[getter]
    fn totals(&self) -> (u64, u64, u64, u64, u64) {
        self.0.counted.as_ref().map_or((0, 0, 0, 0, 0), |of| {
            (
                of.dataset_samples,
                of.samples,
                of.steps,
                of.padded,
                of.dropped,
            )
        })
    }
}

/// Where the lanes of a load stand behind the batch that was given last. Holds neither threads nor memory of it.
#[pyclass(frozen, module = "onecopy._onecopy")]
#[derive(Debug, Clone)]
pub(crate) struct Spots(pub(crate) pipeline::Spots);

#[pymethods]
impl Spots {
    /// Takes what was handed over for received.
    fn receive(&self) {
        self.0.receive();
    }

    /// As the text that a state holds.
    fn text(&self) -> String {
        Position::from(self.0.now()).to_string()
    }
}
