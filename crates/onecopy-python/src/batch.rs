//! A batch, or a single sample, on its way to Python.

use onecopy::batch::{self, Column};
use onecopy::buffer::Slice;
use onecopy::ledger::{Ledger, OpenHop};
use onecopy::route::Hop;
use onecopy::sync::Arc;
use onecopy::{Error, ErrorKind};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::error::to_py;
use crate::tensor::Tensor;

/// A collated batch, or one sample.
#[pyclass(frozen, module = "onecopy._onecopy")]
pub(crate) struct Batch {
    batch: batch::Batch,
    ledger: Arc<Ledger>,
}

impl Batch {
    pub(crate) fn new(batch: batch::Batch, ledger: &Arc<Ledger>) -> Self {
        Self {
            batch,
            ledger: Arc::clone(ledger),
        }
    }
}

#[pymethods]
impl Batch {
    fn __len__(&self) -> usize {
        self.batch.len
    }

    /// Whether tensors have a batch axis; else this is one sample.
    #[getter]
    fn is_batched(&self) -> bool {
        self.batch.is_batched
    }

    /// The samples' keys.
    #[getter]
    fn keys(&self) -> Vec<&str> {
        self.batch.keys.iter().map(String::as_str).collect()
    }

    /// The shards that the samples come from.
    #[getter]
    fn shards(&self) -> Vec<&str> {
        self.batch.shards.iter().map(AsRef::as_ref).collect()
    }

    /// The columns as `(name, kind, values)`: a `Tensor`, or a list of `bytes` (`"bytes"`, `"json"`) or `str`
    /// (`"text"`).
    ///
    /// # Copies
    ///
    /// None for tensors; bytes, text and JSON are copied into Python objects.
    fn columns<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Vec<(&str, &'static str, Bound<'py, PyAny>)>> {
        let columns = self.batch.columns.iter();
        columns
            .map(|(name, column)| {
                let (kind, values) = self.column(py, name, column)?;
                Ok((name.as_str(), kind, values))
            })
            .collect()
    }
}

impl Batch {
    fn column<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        column: &Column,
    ) -> PyResult<(&'static str, Bound<'py, PyAny>)> {
        let hop = self.ledger.hop(Hop::ToPython);
        Ok(match column {
            Column::Tensor(tensor) => {
                let tensor = Bound::new(py, Tensor::new(tensor))?;
                ("tensor", tensor.into_any())
            }
            Column::Bytes(items) => ("bytes", bytes(py, &hop, items)?),
            Column::Json(items) => ("json", bytes(py, &hop, items)?),
            Column::Text(items) => {
                let texts = items
                    .iter()
                    .map(|item| hop.timed(item.len(), || text(py, name, item)));
                let texts = texts.collect::<PyResult<Vec<_>>>()?;
                ("text", texts.into_pyobject(py)?)
            }
        })
    }
}

fn bytes<'py>(py: Python<'py>, hop: &OpenHop, items: &[Slice]) -> PyResult<Bound<'py, PyAny>> {
    let items: Vec<_> = items
        .iter()
        .map(|item| hop.timed(item.len(), || PyBytes::new(py, item)))
        .collect();
    items.into_pyobject(py)
}

fn text<'py>(py: Python<'py>, name: &str, item: &Slice) -> PyResult<Bound<'py, PyString>> {
    let text = std::str::from_utf8(item).map_err(|error| {
        let target = format!("field {name:?}");
        to_py(
            py,
            Error::new(
                ErrorKind::Corrupt,
                "read as UTF-8",
                target,
                error.to_string(),
            ),
        )
    })?;
    Ok(PyString::new(py, text))
}
