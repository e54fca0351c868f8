//! An engine error as an exception: one class per kind, all below `onecopy.Error`.

use std::error::Error as _;

use onecopy::Error;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::words::argument;

/// The exception for `error`: its class by kind, its text with causes and help in the words of Python, its parts as
/// attributes. What a function of Python's raised is itself.
pub(crate) fn to_py(py: Python<'_>, error: Error) -> PyErr {
    if let Some(raised) = error
        .source()
        .and_then(|source| source.downcast_ref::<PyErr>())
    {
        return raised.clone_ref(py);
    }
    match exception(py, &error) {
        Ok(value) => PyErr::from_value(value),
        Err(broken) => broken,
    }
}

/// The exception as an object.
pub(crate) fn exception<'py>(py: Python<'py>, error: &Error) -> PyResult<Bound<'py, PyAny>> {
    static FROM_ENGINE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let from_engine = FROM_ENGINE.import(py, "onecopy.errors", "from_engine")?;
    let (text, help) = error.worded(argument);
    from_engine.call1((
        error.kind().name(),
        text,
        error.doing(),
        error.target(),
        error.why(),
        help,
        error.shard(),
        error.key(),
    ))
}
