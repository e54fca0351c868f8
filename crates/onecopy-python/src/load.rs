//! A load that runs: its start, its batches, its end.

use std::mem::{self, ManuallyDrop};
use std::process;
use std::time::{Duration, Instant};

use onecopy::Error;
use onecopy::ErrorKind;
use onecopy::config::Answer;
use onecopy::ledger::Ledger;
use onecopy::pipeline::{Batches, Next};
use onecopy::sync::{Arc, Condvar, Mutex, spawn};
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};

use crate::batch::Batch;
use crate::catalog::Catalog;
use crate::error::to_py;
use crate::ledger::RunningLedger;
use crate::log;
use crate::order::{Order, Spots};
use crate::policy::{Policy, is_asking};
use crate::settings::Settings;
use crate::wait::{TICK, interruptible};

/// How long whoever closes a load waits for another thread that has it: one which is in a function of the caller's may never
/// come back. What it has is then ended by itself, once it does.
const PATIENCE: Duration = Duration::from_secs(10);

/// A load that runs, until `close` or until nobody holds it.
#[pyclass(frozen, module = "onecopy._onecopy")]
pub(crate) struct Load {
    /// Guards where the load is. Never held while anything is waited for: whoever takes a batch has taken the load out.
    running: Mutex<Running>,
    /// The load was put back, or is closed.
    freed: Condvar,
    policy: Policy,
    order: Order,
    spots: Option<Spots>,
    ledger: Arc<Ledger>,
    process_id: u32,
}

type Inner = Box<onecopy::Load<Batches>>;

enum Running {
    Idle(Inner),
    /// Somebody has it, to take a batch.
    Busy,
    /// Somebody has it, and ends it once done.
    Closing,
    Closed,
}

#[pymethods]
impl Load {
    /// Starts what `settings` ask for.
    #[new]
    #[pyo3(signature = (settings, catalog=None))]
    fn new(
        py: Python<'_>,
        settings: Settings,
        catalog: Option<&Bound<'_, Catalog>>,
    ) -> PyResult<Self> {
        log::start();
        let (loader, policy) = settings.loader().map_err(|error| to_py(py, error))?;
        let loader = loader.within(Catalog::of(catalog));
        let load =
            interruptible(py, "start", move || loader.run())?.map_err(|error| to_py(py, error))?;
        Ok(Self {
            order: Order(load.order().clone()),
            spots: load.spots().cloned().map(Spots),
            ledger: Arc::clone(load.ledger()),
            running: Mutex::new(Running::Idle(Box::new(load))),
            freed: Condvar::new(),
            policy,
            process_id: process::id(),
        })
    }

    /// Waits for the next batch; none at the end.
    fn next(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        self.check_process().map_err(|error| to_py(py, error))?;
        loop {
            py.check_signals()?;
            match py
                .detach(|| self.step())
                .map_err(|error| to_py(py, error))?
            {
                Next::Batch(batch) => return Ok(Some(Batch::new(batch, &self.ledger))),
                Next::End => return Ok(None),
                Next::NotYet => {}
            }
        }
    }

    /// Stops everything and waits for its threads. Batches that were handed out stay valid.
    fn close(&self, py: Python<'_>) {
        if self.check_process().is_ok() {
            py.detach(|| self.stop());
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

    /// What is to be done about an exception that costs a sample.
    fn ask(&self, error: &Bound<'_, PyAny>) -> PyResult<&'static str> {
        Ok(match self.policy.answer(error)? {
            Answer::Raise => "raise",
            Answer::Warn => "warn",
            Answer::Skip => "skip",
        })
    }

    /// What happens, as it is counted.
    #[getter]
    fn ledger(&self) -> RunningLedger {
        RunningLedger(Arc::clone(&self.ledger))
    }

    /// A function that is asked may hold whatever holds this.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.policy.traverse(&visit)
    }
}

/// The load, while somebody takes a batch from it; back in its place on drop.
struct Stepping<'a> {
    of: &'a Load,
    load: Option<Inner>,
}

impl Load {
    fn step(&self) -> Result<Next, Error> {
        let mut running = self.running.lock();
        match mem::replace(&mut *running, Running::Busy) {
            Running::Idle(load) => {
                drop(running);
                let mut stepping = Stepping {
                    of: self,
                    load: Some(load),
                };
                stepping
                    .load
                    .as_mut()
                    .map_or(Ok(Next::End), |load| load.next_within(TICK))
            }
            Running::Busy => {
                // Another thread's turn.
                self.freed.wait_for(&mut running, TICK);
                Ok(Next::NotYet)
            }
            ending @ (Running::Closing | Running::Closed) => {
                *running = ending;
                Ok(Next::End)
            }
        }
    }

    fn stop(&self) {
        let end_of_patience = Instant::now() + PATIENCE;
        let mut running = self.running.lock();
        loop {
            match mem::replace(&mut *running, Running::Closing) {
                Running::Idle(load) => {
                    drop(running);
                    end(load);
                    *self.running.lock() = Running::Closed;
                    self.freed.notify_all();
                    return;
                }
                Running::Closed => {
                    *running = Running::Closed;
                    return;
                }
                // It may be this thread that has it, or one that waits for this thread's answer.
                Running::Busy | Running::Closing if is_asking() => return,
                Running::Busy | Running::Closing => {
                    let waited = self.freed.wait_until(&mut running, end_of_patience);
                    if waited.timed_out() {
                        let note = "closed while another thread took from it and did not come back";
                        self.ledger.note(note);
                        return;
                    }
                }
            }
        }
    }

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

impl Drop for Stepping<'_> {
    fn drop(&mut self) {
        let mut running = self.of.running.lock();
        let Some(load) = self.load.take() else {
            return;
        };
        *running = match *running {
            Running::Closing | Running::Closed => {
                drop(running);
                end(load);
                running = self.of.running.lock();
                Running::Closed
            }
            Running::Idle(_) | Running::Busy => Running::Idle(load),
        };
        self.of.freed.notify_all();
    }
}

/// Stops a load and waits for its threads; where this may be one of them, another thread waits.
fn end(load: Inner) {
    if !is_asking() {
        return;
    }
    // Where no thread can be started, the load is left as it is: to wait for oneself would be for ever.
    let load = ManuallyDrop::new(load);
    let _left = spawn("close", move || drop(ManuallyDrop::into_inner(load)));
}

impl Drop for Load {
    fn drop(&mut self) {
        let Running::Idle(load) = mem::replace(self.running.get_mut(), Running::Closed) else {
            return;
        };
        if self.check_process().is_err() {
            // A forked child has none of the threads that a join would wait for.
            let _forgotten = ManuallyDrop::new(load);
            return;
        }
        // Other Python threads run on while we join; where Python is ending there is nobody to let run.
        Python::try_attach(|py| py.detach(|| end(load)));
    }
}
