//! A load that runs: its start, its batches, its end.

use std::mem::ManuallyDrop;
use std::process;

use onecopy::Error;
use onecopy::ErrorKind;
use onecopy::ledger::Ledger;
use onecopy::pipeline::{Batches, Next};
use onecopy::sync::{Arc, Mutex};
use pyo3::prelude::*;

use crate::batch::Batch;
use crate::error::to_py;
use crate::ledger::RunningLedger;
use crate::log;
use crate::order::{Order, Spots};
use crate::settings::Settings;
use crate::wait::{TICK, interruptible};

/// A load that runs, until `close` or until nobody holds it.
#[pyclass(frozen, module = "onecopy._onecopy")]
pub(crate) struct Load {
    /// Guards the running load; none once it is closed. Held for one [`TICK`] at most.
    running: Mutex<Option<onecopy::Load<Batches>>>,
    order: Order,
    spots: Option<Spots>,
    ledger: Arc<Ledger>,
    process_id: u32,
}

#[pymethods]
impl Load {
    /// Starts what `settings` ask for.
    #[new]
    fn new(py: Python<'_>, settings: Settings) -> PyResult<Self> {
        log::start();
        let loader = settings.loader().map_err(|error| to_py(py, error))?;
        let load =
            interruptible(py, "start", move || loader.run())?.map_err(|error| to_py(py, error))?;
        Ok(Self {
            order: Order(load.order().clone()),
            spots: load.spots().cloned().map(Spots),
            ledger: Arc::clone(load.ledger()),
            running: Mutex::new(Some(load)),
            process_id: process::id(),
        })
    }

    /// Waits for the next batch; none at the end.
    fn next(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        self.check_process().map_err(|error| to_py(py, error))?;
        loop {
            py.check_signals()?;
            let next = py.detach(|| match self.running.lock().as_mut() {
                Some(load) => load.next_within(TICK),
                None => Ok(Next::End),
            });
            match next.map_err(|error| to_py(py, error))? {
                Next::Batch(batch) => return Ok(Some(Batch::new(batch, &self.ledger))),
                Next::End => return Ok(None),
                Next::NotYet => {}
            }
        }
    }

    /// Stops everything and waits for its threads. Batches that were handed out stay valid.
    fn close(&self, py: Python<'_>) {
        if self.check_process().is_ok() {
            py.detach(|| drop(self.running.lock().take()));
        }
    }

    /// How the epoch is ordered.
    #[getter]
    fn order(&self) -> Order {
        self.order.clone()
    }

    /// Where lanes stand behind the batch that was given last; none where samples are counted.
    #[getter]
    fn spots(&self) -> Option<Spots> {
        self.spots.clone()
    }

    /// What happens, as it is counted.
    #[getter]
    fn ledger(&self) -> RunningLedger {
        RunningLedger(Arc::clone(&self.ledger))
    }
}

impl Load {
    fn check_process(&self) -> Result<(), Error> {
        if process::id() == self.process_id {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::InvalidInput,
            "go on with",
            "an iteration that was begun before fork()",
            "its threads are in the other process",
        )
        .with_help("begin an iteration of its own in each process: iter(loader)"))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let Some(load) = self.running.get_mut().take() else {
            return;
        };
        if self.check_process().is_err() {
            // A forked child has none of the threads that a join would wait for.
            let _forgotten = ManuallyDrop::new(load);
            return;
        }
        // Other Python threads run on while we join; where Python is ending there is nobody to let run.
        Python::try_attach(|py| py.detach(|| drop(load)));
    }
}
