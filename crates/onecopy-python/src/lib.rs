//! The Python module `onecopy._onecopy`: the engine's loads, batches, ledgers and the command, as Python sees them.
//!
//! A skin without logic: what a chain of calls means is decided in `python/onecopy`, what happens in the engine.

mod batch;
mod catalog;
mod command;
mod dlpack;
mod error;
mod ledger;
mod load;
mod log;
mod order;
mod policy;
mod settings;
mod tensor;
mod wait;
mod words;

use pyo3::prelude::*;

/// What is exported.
#[pymodule]
fn _onecopy(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("IS_DEBUG_BUILD", cfg!(debug_assertions))?;
    module.add_class::<load::Load>()?;
    module.add_class::<batch::Batch>()?;
    module.add_class::<catalog::Catalog>()?;
    module.add_class::<tensor::Tensor>()?;
    module.add_class::<ledger::RunningLedger>()?;
    module.add_class::<order::Order>()?;
    module.add_class::<order::Spots>()?;
    module.add_function(wrap_pyfunction!(settings::check, module)?)?;
    module.add_function(wrap_pyfunction!(settings::plan, module)?)?;
    module.add_function(wrap_pyfunction!(settings::parse_size, module)?)?;
    module.add_function(wrap_pyfunction!(command::run_command, module)?)?;
    module.add_function(wrap_pyfunction!(policy::check_not_asking, module)?)?;
    module.add_function(wrap_pyfunction!(log::drain_log, module)?)
}
