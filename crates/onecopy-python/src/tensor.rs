//! Numbers of one shape and type, in memory of the engine.

use std::mem::ManuallyDrop;
use std::process;

use onecopy::batch;
use onecopy::buffer::Slice;
use onecopy::sync::Arc;
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::dlpack::{self, CPU};

/// Memory that goes back to the engine with its last holder, in the process that it was leased in.
///
/// A forked child has a copy of the lease, but the locks of the recycler may be held by threads that it does not have:
/// there the lease is forgotten.
pub(crate) struct Memory {
    bytes: Option<Slice>,
    process_id: u32,
}

impl Memory {
    pub(crate) fn new(bytes: Slice) -> Self {
        Self {
            bytes: Some(bytes),
            process_id: process::id(),
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.as_deref().unwrap_or(&[])
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if process::id() != self.process_id {
            let _forgotten = ManuallyDrop::new(self.bytes.take());
        }
    }
}

/// A tensor of a batch. Torch, numpy and jax take it by DLPack, without a copy; the memory lives as long as any of
/// their views.
#[pyclass(frozen, module = "onecopy._onecopy")]
pub(crate) struct Tensor {
    pub(crate) dtype: onecopy::sample::decode::DType,
    pub(crate) shape: Vec<usize>,
    pub(crate) strides: Vec<usize>,
    pub(crate) memory: Arc<Memory>,
}

impl Tensor {
    pub(crate) fn new(tensor: &batch::Tensor) -> Self {
        Self {
            dtype: tensor.dtype,
            shape: tensor.shape.clone(),
            strides: tensor.strides.clone(),
            memory: Arc::new(Memory::new(tensor.bytes.clone())),
        }
    }
}

#[pymethods]
impl Tensor {
    /// The element type, as numpy calls it.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.dtype.name()
    }

    /// Elements along each axis.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyTuple>> {
        pyo3::types::PyTuple::new(py, &self.shape)
    }

    /// Elements from one index to the next along each axis.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyTuple>> {
        pyo3::types::PyTuple::new(py, &self.strides)
    }

    /// Bytes of memory.
    #[getter]
    fn nbytes(&self) -> usize {
        self.memory.bytes().len()
    }

    /// The address of the first element.
    #[getter]
    fn data_ptr(&self) -> usize {
        self.memory.bytes().as_ptr() as usize
    }

    /// The value of a tensor without axes that holds an int64.
    fn __index__(&self) -> PyResult<i64> {
        let bytes = <[u8; 8]>::try_from(self.memory.bytes());
        match bytes {
            Ok(bytes) if self.shape.is_empty() && self.dtype.name() == "int64" => {
                Ok(i64::from_ne_bytes(bytes))
            }
            _ => Err(PyTypeError::new_err(format!(
                "a tensor of {} {:?} is no integer",
                self.dtype.name(),
                self.shape
            ))),
        }
    }

    fn __dlpack_device__(&self) -> (i32, i32) {
        CPU
    }

    /// A capsule that shares the memory, by the Python array API standard.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if stream.is_some() {
            return Err(PyValueError::new_err(
                "stream must be None: this tensor is in host memory, which has no streams",
            ));
        }
        if dl_device.is_some_and(|device| device != CPU) {
            return Err(PyBufferError::new_err(
                "this tensor is in host memory (dl_device (1, 0)); move it with its new owner",
            ));
        }
        if copy == Some(true) {
            return Err(PyBufferError::new_err(
                "this tensor is shared, never copied; copy the array that shares it",
            ));
        }
        let is_versioned = max_version.is_some_and(|(major, _)| major >= 1);
        dlpack::export(py, self, is_versioned)
    }

    fn __repr__(&self) -> String {
        format!("Tensor({} {:?})", self.dtype.name(), self.shape)
    }
}
