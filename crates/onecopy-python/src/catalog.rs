//! What is there to load, looked up once for many loads.

use std::mem::ManuallyDrop;
use std::process;

use onecopy::loader;
use onecopy::sync::Arc;
use pyo3::prelude::*;

use crate::error::to_py;
use crate::settings::Settings;
use crate::wait::interruptible;

/// What is there to load. Of use in the process that made it only.
#[pyclass(frozen, module = "onecopy._onecopy")]
pub(crate) struct Catalog {
    /// Taken out when this is dropped.
    of: Option<Arc<loader::Catalog>>,
    process_id: u32,
}

#[pymethods]
impl Catalog {
    /// Looks up what is there of what `settings` name.
    #[new]
    fn new(py: Python<'_>, settings: Settings) -> PyResult<Self> {
        let (loader, _) = settings.loader().map_err(|error| to_py(py, error))?;
        let of = interruptible(py, "look", move || loader.catalog())?;
        Ok(Self {
            of: Some(of.map_err(|error| to_py(py, error))?),
            process_id: process::id(),
        })
    }
}

impl Catalog {
    /// The engine's own.
    pub(crate) fn of(catalog: Option<&Bound<'_, Self>>) -> Option<Arc<loader::Catalog>> {
        catalog.and_then(|catalog| catalog.get().of.clone())
    }
}

impl Drop for Catalog {
    fn drop(&mut self) {
        if process::id() != self.process_id {
            // A forked child has none of the threads that would have to end.
            let _left = ManuallyDrop::new(self.of.take());
        }
    }
}
