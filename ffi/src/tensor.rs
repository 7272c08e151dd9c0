//! Tensors in C, as DLPack describes them.

use std::ffi::c_void;

use tilewright_runtime::dlpack::{CPU, DLDataType, DLDevice, DLManagedTensorVersioned, DLTensor, DlpackError, View};
use tilewright_runtime::{Tensor, Value};

use crate::error::{Failure, TW_INVALID_ARGUMENT, array, guard, put, tw_status};
use crate::value::{put_value, tw_value};

impl From<DlpackError> for Failure {
    fn from(error: DlpackError) -> Failure {
        Failure::new(TW_INVALID_ARGUMENT, error.to_string())
    }
}

/// Makes a tensor from elements in row-major order, which are copied. `shape` has `axes` lengths, slowest first.
///
/// # Safety
/// `shape` points to so many integers and `data` to all elements; `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_tensor_new(
    data: *const c_void,
    dtype: DLDataType,
    shape: *const i64,
    axes: usize,
    out: *mut tw_value,
) -> tw_status {
    guard(|| {
        // SAFETY: the caller's promise.
        unsafe { array(shape, axes, "shape")? };
        let ndim =
            i32::try_from(axes).map_err(|_| Failure::new(TW_INVALID_ARGUMENT, "the tensor has too many axes"))?;
        let tensor = DLTensor {
            data: data.cast_mut(),
            device: DLDevice { device_type: CPU, device_id: 0 },
            ndim,
            dtype,
            shape: shape.cast_mut(),
            strides: std::ptr::null_mut(),
            byte_offset: 0,
        };
        // SAFETY: the caller's promise.
        let View { dtype, shape, data, len } = unsafe { View::of(&tensor)? };
        let mut bytes = Vec::new();
        let too_large = |_| Failure::new(TW_INVALID_ARGUMENT, format!("no memory has the {len} bytes of the tensor"));
        bytes.try_reserve_exact(len).map_err(too_large)?;
        // SAFETY: the caller's promise; without elements the pointer is dangling and the length 0.
        bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(data, len) });
        // SAFETY: the caller's promise.
        unsafe { put_value(out, || Value::Tensor(Tensor { dtype, shape, bytes: bytes.into() })) }
    })
}

/// Takes a tensor over without copying it; its `deleter` is called when nothing refers to it any more. After an error
/// it still belongs to the caller.
///
/// # Safety
/// `managed` points to a valid structure whose `deleter` any thread can call, and whose elements nobody writes any
/// more; `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_tensor_from_dlpack(
    managed: *mut DLManagedTensorVersioned,
    out: *mut tw_value,
) -> tw_status {
    guard(|| {
        if out.is_null() {
            return Err(Failure::null("out"));
        }
        // SAFETY: the caller's promise.
        let tensor = unsafe { Tensor::from_dlpack(managed)? };
        // SAFETY: the caller's promise.
        unsafe { put_value(out, || Value::Tensor(tensor)) }
    })
}

/// Hands a tensor out without copying it. The caller calls the structure's `deleter` in the end and does not write the
/// elements.
///
/// # Safety
/// `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_tensor_to_dlpack(tensor: tw_value, out: *mut *mut DLManagedTensorVersioned) -> tw_status {
    guard(|| {
        if out.is_null() {
            return Err(Failure::null("out"));
        }
        let held = tensor.held()?;
        let tensor = <&Tensor>::try_from(&held.value)?.clone();
        // SAFETY: the caller's promise.
        unsafe { put(out, "out", tensor.into_dlpack()) }
    })
}

/// A tensor's element type, number of axes, elements and bytes, valid until the value is freed. If `shape` is not null
/// and `*axes` is at least the number of axes, the lengths are stored there. The elements must not be written.
///
/// # Safety
/// `dtype`, `axes`, `data` and `bytes` can be written; `shape` is null or has room for `*axes` integers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_tensor_view(
    tensor: tw_value,
    dtype: *mut DLDataType,
    shape: *mut i64,
    axes: *mut usize,
    data: *mut *const c_void,
    bytes: *mut usize,
) -> tw_status {
    guard(|| {
        let held = tensor.held()?;
        let tensor = <&Tensor>::try_from(&held.value)?;
        if axes.is_null() {
            return Err(Failure::null("axes"));
        }
        // SAFETY: the caller's promise.
        let room = if shape.is_null() { 0 } else { unsafe { axes.read() } };
        if room >= tensor.shape.len() {
            for (place, axis) in tensor.shape.iter().enumerate() {
                // SAFETY: there is room for so many.
                unsafe { shape.add(place).write(*axis as i64) };
            }
        }
        // SAFETY: the caller's promise.
        unsafe {
            put(axes, "axes", tensor.shape.len())?;
            put(dtype, "dtype", tensor.dtype.into())?;
            put(data, "data", tensor.bytes.as_ptr().cast())?;
            put(bytes, "bytes", tensor.bytes.len())
        }
    })
}
