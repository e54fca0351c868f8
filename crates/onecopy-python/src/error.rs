//! An engine error as an exception: one class per kind, all below `onecopy.Error`.

use onecopy::Error;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::words::argument;

/// The exception for `error`: its class by kind, its text with causes and help in the words of Python, its parts as
/// attributes.
pub(crate) fn to_py(py: Python<'_>, error: Error) -> PyErr {
    exception(py, &error.in_words(argument)).unwrap_or_else(|broken| broken)
}

fn exception(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    static FROM_ENGINE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let from_engine = FROM_ENGINE.import(py, "onecopy.errors", "from_engine")?;
    let value = from_engine.call1((
        error.kind().name(),
        format!("{error:#}"),
        error.doing(),
        error.target(),
        error.why(),
        error.help(),
    ))?;
    Ok(PyErr::from_value(value))
}
