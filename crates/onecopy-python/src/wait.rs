//! Waiting without holding the interpreter, and without missing Ctrl-C.

use std::time::Duration;

use onecopy::Error;
use onecopy::sync::{channel, spawn};
use pyo3::prelude::*;

use crate::error::to_py;

/// How long a wait lasts before signals are looked at: Ctrl-C must end everything within a second, and a wake-up costs
/// some microseconds.
pub(crate) const TICK: Duration = Duration::from_millis(50);

/// Runs `work` on a thread of its own and waits for it, other Python threads running meanwhile. A signal whose handler
/// raises ends the wait at once; `work` then ends unheard.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (sender, receiver) = channel::bounded(1);
    spawn(name, move || {
        // Nobody listens any more where a signal ended the wait.
        let _unheard = sender.send(work());
    })
    .map_err(|error| to_py(py, error))?;
    loop {
        py.check_signals()?;
        match py.detach(|| receiver.recv_timeout(TICK)) {
            Ok(value) => return Ok(value),
            Err(channel::RecvTimeoutError::Timeout) => {}
            Err(channel::RecvTimeoutError::Disconnected) => {
                return Err(to_py(py, Error::bug(name, "its thread panicked")));
            }
        }
    }
}
