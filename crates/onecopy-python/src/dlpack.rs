//! Tensors as DLPack capsules: the C structs, who frees them, and when.
//!
//! A capsule owns one [`Exported`]: the C struct, the shape and strides it points to, and a share in the memory. A
//! consumer that takes the struct renames the capsule and calls the struct's deleter when it is done, on any thread,
//! with or without the interpreter's lock; a capsule that nobody took calls it when it is collected. So it is called
//! exactly once.
#![expect(
    unsafe_code,
    reason = "DLPack hands raw pointers over the capsule interface of C"
)]

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

use onecopy::Error;
use onecopy::sync::Arc;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::error::to_py;
use crate::tensor::{Memory, Tensor};

/// `kDLCPU`, device 0.
pub(crate) const CPU: (i32, i32) = (1, 0);

/// `DLDevice` of dlpack.h.
#[repr(C)]
struct Device {
    device_type: i32,
    device_id: i32,
}

/// `DLDataType` of dlpack.h.
#[repr(C)]
struct DataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

/// `DLTensor` of dlpack.h.
#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device: Device,
    ndim: i32,
    dtype: DataType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// `DLManagedTensor` of dlpack.h, for consumers older than DLPack 1.0.
#[repr(C)]
struct Unversioned {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Self)>,
}

/// `DLManagedTensorVersioned` of dlpack.h.
#[repr(C)]
struct Versioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Self)>,
    flags: u64,
    tensor: DlTensor,
}

/// One of the two C structs.
trait Managed: Sized {
    /// The capsule's name while nobody has taken the struct.
    const NAME: &'static CStr;

    fn new(tensor: DlTensor) -> Self;
}

impl Managed for Unversioned {
    const NAME: &'static CStr = c"dltensor";

    fn new(tensor: DlTensor) -> Self {
        Self {
            tensor,
            context: std::ptr::null_mut(),
            deleter: Some(delete::<Self>),
        }
    }
}

impl Managed for Versioned {
    const NAME: &'static CStr = c"dltensor_versioned";

    fn new(tensor: DlTensor) -> Self {
        Self {
            major: 1,
            minor: 0,
            context: std::ptr::null_mut(),
            deleter: Some(delete::<Self>),
            // Neither read-only (bit 0) nor a copy (bit 1).
            flags: 0,
            tensor,
        }
    }
}

/// The C struct and everything that it points to. The struct comes first, so that a pointer to it is one to the whole.
#[repr(C)]
struct Exported<M> {
    managed: M,
    _shape: Vec<i64>,
    _strides: Vec<i64>,
    _memory: Arc<Memory>,
}

/// A capsule that shares `tensor`'s memory.
pub(crate) fn export<'py>(
    py: Python<'py>,
    tensor: &Tensor,
    is_versioned: bool,
) -> PyResult<Bound<'py, PyAny>> {
    if is_versioned {
        capsule::<Versioned>(py, tensor)
    } else {
        capsule::<Unversioned>(py, tensor)
    }
}

fn capsule<'py, M: Managed>(py: Python<'py>, tensor: &Tensor) -> PyResult<Bound<'py, PyAny>> {
    let exported = Box::new(exported::<M>(tensor).map_err(|error| to_py(py, error))?);
    let owned = Box::into_raw(exported);
    // SAFETY: the name is static and the destructor fits it. The pointer stays valid until `delete`, which the
    // destructor or the consumer calls. We hold the interpreter's lock (`py`).
    let object = unsafe { ffi::PyCapsule_New(owned.cast(), M::NAME.as_ptr(), Some(collect::<M>)) };
    if object.is_null() {
        // SAFETY: no capsule was made, so nobody else has the pointer that `Box::into_raw` gave.
        drop(unsafe { Box::from_raw(owned) });
    }
    // SAFETY: a new reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(py, object) }
}

fn exported<M: Managed>(tensor: &Tensor) -> Result<Exported<M>, Error> {
    check_extent(tensor)?;
    let mut shape = signed(&tensor.shape)?;
    let mut strides = signed(&tensor.strides)?;
    let memory = Arc::clone(&tensor.memory);
    let ndim = i32::try_from(shape.len()).map_err(|_error| too_large())?;
    let managed = M::new(DlTensor {
        // The pointer may be written through: the tensor is the only holder of its memory in this process (a batch
        // shares no slot), and the engine never looks at delivered memory until its last holder gave it back.
        data: memory.bytes().as_ptr().cast_mut().cast(),
        device: Device {
            device_type: CPU.0,
            device_id: CPU.1,
        },
        ndim,
        dtype: data_type(tensor)?,
        // Moving a vector leaves its elements where they are.
        shape: shape.as_mut_ptr(),
        strides: strides.as_mut_ptr(),
        byte_offset: 0,
    });
    Ok(Exported {
        managed,
        _shape: shape,
        _strides: strides,
        _memory: memory,
    })
}

/// Refuses a tensor whose last element would lie outside its memory: C would read it all the same.
fn check_extent(tensor: &Tensor) -> Result<(), Error> {
    if tensor.shape.contains(&0) {
        return Ok(());
    }
    let outside = || Error::bug("hand out a tensor", "its shape reaches past its memory");
    if tensor.shape.len() != tensor.strides.len() {
        return Err(outside());
    }
    let mut last = 0_usize;
    for (len, stride) in tensor.shape.iter().zip(&tensor.strides) {
        last = (len - 1)
            .checked_mul(*stride)
            .and_then(|step| last.checked_add(step))
            .ok_or_else(outside)?;
    }
    let len_bytes = (last + 1).checked_mul(tensor.dtype.size_bytes());
    if len_bytes.is_some_and(|len_bytes| len_bytes <= tensor.memory.bytes().len()) {
        Ok(())
    } else {
        Err(outside())
    }
}

fn signed(sizes: &[usize]) -> Result<Vec<i64>, Error> {
    sizes
        .iter()
        .map(|size| i64::try_from(*size).map_err(|_error| too_large()))
        .collect()
}

fn too_large() -> Error {
    Error::bug("hand out a tensor", "an axis does not fit 63 bits")
}

/// `DLDataTypeCode` and width, from the name that numpy has for the type.
fn data_type(tensor: &Tensor) -> Result<DataType, Error> {
    let name = tensor.dtype.name();
    let code = match name.trim_end_matches(|c: char| c.is_ascii_digit()) {
        "int" => 0,
        "uint" => 1,
        "float" => 2,
        "bfloat" => 4,
        "complex" => 5,
        "bool" => 6,
        _ => {
            return Err(Error::bug(
                "hand out a tensor",
                format!("DLPack has no code for {name}"),
            ));
        }
    };
    let bits = u8::try_from(tensor.dtype.size_bytes() * 8).map_err(|_error| too_large())?;
    Ok(DataType {
        code,
        bits,
        lanes: 1,
    })
}

/// The deleter: gives the share in the memory back. Needs no interpreter.
///
/// # Safety
///
/// `managed` is what a capsule of `M` held, and is not used again.
unsafe extern "C" fn delete<M>(managed: *mut M) {
    if let Some(managed) = NonNull::new(managed) {
        // SAFETY: the struct is the first field of an `Exported` from `Box::into_raw`, and the caller gives it up.
        drop(unsafe { Box::from_raw(managed.cast::<Exported<M>>().as_ptr()) });
    }
}

/// The capsule's destructor: deletes what nobody took. A consumer renames a capsule whose struct it takes.
///
/// # Safety
///
/// Python calls it, once, with the capsule that it collects.
unsafe extern "C" fn collect<M: Managed>(capsule: *mut ffi::PyObject) {
    // SAFETY: any object may be asked; no exception is set.
    let is_untaken = unsafe { ffi::PyCapsule_IsValid(capsule, M::NAME.as_ptr()) } == 1;
    if is_untaken {
        // SAFETY: it is a capsule of this name, as was just asked.
        let managed = unsafe { ffi::PyCapsule_GetPointer(capsule, M::NAME.as_ptr()) };
        // SAFETY: the pointer that `capsule` put in, and nobody else took it.
        unsafe { delete::<M>(managed.cast()) };
    }
}
