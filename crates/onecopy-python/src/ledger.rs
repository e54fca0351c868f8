//! The ledger of a load, running or ended.

use onecopy::ledger::{Ledger, Lost};
use onecopy::setting::spelled;
use onecopy::sync::Arc;
use pyo3::prelude::*;

use crate::words::argument;

/// Holds the account and nothing else: keeping it keeps neither threads nor memory of the load.
#[pyclass(frozen, module = "onecopy._onecopy")]
pub(crate) struct RunningLedger(pub(crate) Arc<Ledger>);

#[pymethods]
impl RunningLedger {
    /// The account as it stands: the JSON form and the map for the eye, of the same moment.
    fn report(&self) -> (String, String) {
        let report = self.0.report();
        (report.to_json(), report.to_string())
    }

    /// Notes a sample that was left out after it was handed over. Where no more may be, it is not noted; then what was left
    /// out before (no text where that is nothing) and what to do are returned.
    fn skipped(&self, cause: &str) -> Option<(String, String)> {
        let before = self.0.leave_out(Lost::Sample, cause).err()?;
        let told = if before.is_empty() {
            String::new()
        } else {
            before.told()
        };
        Some((told, spelled(&before.help(), argument)))
    }

    /// Notes a batch that was put together after its samples were handed over.
    fn batched(&self) {
        self.0.delivered_batch();
    }

    /// How often the shards were begun for what was handed over so far.
    fn passes(&self) -> u64 {
        self.0.passes()
    }

    /// Notes a fact about this run, once.
    fn note(&self, text: &str) {
        self.0.note(text);
    }
}
