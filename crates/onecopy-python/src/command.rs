//! The `onecopy` command, run from Python.

use std::ffi::OsString;

use pyo3::prelude::*;

use crate::wait::interruptible;

/// Runs the command with `args` (the first is its name) and returns its exit code. Ctrl-C raises `KeyboardInterrupt`
/// where the command does not see to it itself.
#[pyfunction]
pub(crate) fn run_command(py: Python<'_>, args: Vec<OsString>) -> PyResult<u8> {
    interruptible(py, "command", move || onecopy_cli::run(args))
}
