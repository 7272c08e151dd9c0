//! Tensors in the form of DLPack, in which programs and languages hand tensors to each other without copying them.
//!
//! The structures are those of DLPack 1.0 (`dlpack.h`, <https://dmlc.github.io/dlpack>).

use std::ffi::c_void;
use std::ptr::null_mut;

use bytes::Bytes;

use crate::tensor::{DType, Tensor, byte_len, shape_text};

/// Version of the structures.
pub const VERSION: DLPackVersion = DLPackVersion { major: 1, minor: 0 };
/// The host's memory, a device type.
pub const CPU: i32 = 1;
/// Bit of [`DLManagedTensorVersioned::flags`]: the elements must not be written.
pub const READ_ONLY: u64 = 1;

/// Version of DLPack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct DLPackVersion {
    /// Structures of another major version are laid out differently.
    pub major: u32,
    /// Additions that do not change what exists.
    pub minor: u32,
}

/// Where the elements are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct DLDevice {
    /// Its type: 1 is the host's memory.
    pub device_type: i32,
    /// Its number among those of its type.
    pub device_id: i32,
}

/// An element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct DLDataType {
    /// 0 signed integer, 1 unsigned integer, 2 float, 6 bool.
    pub code: u8,
    /// Bits of one element.
    pub bits: u8,
    /// Elements of a vector; 1.
    pub lanes: u16,
}

/// A tensor in memory that somebody else owns.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct DLTensor {
    /// The memory.
    pub data: *mut c_void,
    /// Where the memory is.
    pub device: DLDevice,
    /// Number of axes.
    pub ndim: i32,
    /// Element type.
    pub dtype: DLDataType,
    /// Lengths of the axes, slowest first; `ndim` of them.
    pub shape: *mut i64,
    /// Elements from one index of an axis to the next, `ndim` of them; null for row-major order without gaps.
    pub strides: *mut i64,
    /// Bytes from `data` to the first element.
    pub byte_offset: u64,
}

/// A tensor with what its memory needs to be given back.
#[derive(Debug)]
#[repr(C)]
pub struct DLManagedTensorVersioned {
    /// Version of this structure.
    pub version: DLPackVersion,
    /// The owner's.
    pub manager_ctx: *mut c_void,
    /// Gives the tensor back; null if nothing is to be done.
    pub deleter: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned)>,
    /// [`READ_ONLY`] and others.
    pub flags: u64,
    /// The tensor.
    pub dl_tensor: DLTensor,
}

/// Why a tensor of another program cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DlpackError {
    /// The structure itself.
    #[error("the tensor has version {major} of DLPack, but this program knows version {}", VERSION.major)]
    Version {
        /// Its major version.
        major: u32,
    },
    /// A pointer that must not be null.
    #[error("the tensor's {field} is a null pointer")]
    Null {
        /// The field.
        field: &'static str,
    },
    /// Elements of a type that no model has.
    #[error("the tensor's elements have type code {code}, {bits} bits and {lanes} lanes, which no model has")]
    DType {
        /// DLPack's code.
        code: u8,
        /// Bits.
        bits: u8,
        /// Lanes.
        lanes: u16,
    },
    /// Elements on a GPU or another device.
    #[error("the tensor is on a device of type {device_type}; copy it to the host's memory")]
    Device {
        /// DLPack's type.
        device_type: i32,
    },
    /// A shape that cannot be.
    #[error("the tensor's shape {shape:?} is negative or too large")]
    Shape {
        /// The shape.
        shape: Vec<i64>,
    },
    /// Elements with gaps or in another order.
    #[error(
        "the tensor of shape {} has strides {strides:?}; make it contiguous (in NumPy with ascontiguousarray)",
        shape_text(shape)
    )]
    Strided {
        /// The shape.
        shape: Vec<usize>,
        /// The strides in elements.
        strides: Vec<i64>,
    },
}

/// Most axes of a tensor.
const MOST_AXES: usize = 64;

const INT: u8 = 0;
const UINT: u8 = 1;
const FLOAT: u8 = 2;
const BOOL: u8 = 6;

impl From<DType> for DLDataType {
    fn from(dtype: DType) -> DLDataType {
        let code = match dtype.kind() {
            'i' => INT,
            'u' => UINT,
            'f' => FLOAT,
            _ => BOOL,
        };
        DLDataType { code, bits: 8 * dtype.size() as u8, lanes: 1 }
    }
}

impl TryFrom<DLDataType> for DType {
    type Error = DlpackError;

    fn try_from(found: DLDataType) -> Result<DType, DlpackError> {
        let DLDataType { code, bits, lanes } = found;
        let known = DType::all().find(|dtype| DLDataType::from(*dtype) == found);
        known.ok_or(DlpackError::DType { code, bits, lanes })
    }
}

/// What a [`DLTensor`] describes: element type, shape, and the first of its bytes.
pub struct View {
    /// Element type.
    pub dtype: DType,
    /// Lengths of the axes.
    pub shape: Vec<usize>,
    /// The elements; dangling if there are none.
    pub data: *mut u8,
    /// Bytes of the elements.
    pub len: usize,
}

impl View {
    /// Checks a tensor that another program describes.
    ///
    /// # Errors
    /// [`DlpackError`].
    ///
    /// # Safety
    /// `shape` and `strides` of the tensor are null or point to `ndim` integers.
    pub unsafe fn of(tensor: &DLTensor) -> Result<View, DlpackError> {
        let dtype = DType::try_from(tensor.dtype)?;
        if tensor.device.device_type != CPU {
            return Err(DlpackError::Device { device_type: tensor.device.device_type });
        }
        let axes = usize::try_from(tensor.ndim).ok().filter(|axes| *axes <= MOST_AXES);
        let axes = axes.ok_or_else(|| DlpackError::Shape { shape: Vec::new() })?;
        let integers = |at: *const i64| match axes {
            0 => Some(&[][..]),
            _ if at.is_null() => None,
            // SAFETY: the caller's promise.
            _ => Some(unsafe { std::slice::from_raw_parts(at, axes) }),
        };
        let given = integers(tensor.shape).ok_or(DlpackError::Null { field: "shape" })?;
        let wrong = || DlpackError::Shape { shape: given.to_vec() };
        let shape: Vec<usize> =
            given.iter().map(|axis| usize::try_from(*axis)).collect::<Result<_, _>>().map_err(|_| wrong())?;
        let len = byte_len(dtype, &shape).filter(|len| isize::try_from(*len).is_ok()).ok_or_else(wrong)?;
        if let Some(strides) = integers(tensor.strides).filter(|_| len > 0) {
            let mut dense = 1i64;
            for (axis, stride) in given.iter().zip(strides).rev() {
                // The stride of an axis of length 1 is never used.
                if *axis != 1 && *stride != dense {
                    return Err(DlpackError::Strided { shape, strides: strides.to_vec() });
                }
                dense *= axis;
            }
        }
        if len == 0 {
            return Ok(View { dtype, shape, data: std::ptr::dangling_mut(), len });
        }
        if tensor.data.is_null() {
            return Err(DlpackError::Null { field: "data" });
        }
        let data = tensor.data.cast::<u8>().wrapping_add(tensor.byte_offset as usize);
        Ok(View { dtype, shape, data, len })
    }
}

/// Another program's tensor, given back when it is dropped.
struct Foreign {
    managed: *mut DLManagedTensorVersioned,
    data: *const u8,
    len: usize,
}

// SAFETY: DLPack's tensors can be read and given back by any thread.
unsafe impl Send for Foreign {}

impl AsRef<[u8]> for Foreign {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `View::of` computed the length, and the memory exists until the tensor is given back.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        // SAFETY: the structure exists until its own deleter has been called, once.
        unsafe {
            if let Some(deleter) = (*self.managed).deleter {
                deleter(self.managed);
            }
        }
    }
}

/// A tensor that was handed out, with what its structure points to.
struct Lent {
    managed: DLManagedTensorVersioned,
    shape: Vec<i64>,
    strides: Vec<i64>,
    _bytes: Bytes,
}

unsafe extern "C" fn give_back(managed: *mut DLManagedTensorVersioned) {
    if !managed.is_null() {
        // SAFETY: the context is the box that `Tensor::into_dlpack` leaked, and owners call this once.
        drop(unsafe { Box::from_raw((*managed).manager_ctx.cast::<Lent>()) });
    }
}

impl Tensor {
    /// Takes a tensor over from another program, without copying it. The other program must not write its elements
    /// while this tensor or a copy of it exists. If it cannot be used, it is not taken.
    ///
    /// # Errors
    /// [`DlpackError`].
    ///
    /// # Safety
    /// `managed` is null or points to a valid structure whose `deleter` can be called from any thread.
    pub unsafe fn from_dlpack(managed: *mut DLManagedTensorVersioned) -> Result<Tensor, DlpackError> {
        if managed.is_null() {
            return Err(DlpackError::Null { field: "structure" });
        }
        // SAFETY: the caller's promise; the version is at the same place in every version.
        let version = unsafe { (*managed).version };
        if version.major != VERSION.major {
            return Err(DlpackError::Version { major: version.major });
        }
        // SAFETY: the caller's promise.
        let View { dtype, shape, data, len } = unsafe { View::of(&(*managed).dl_tensor)? };
        Ok(Tensor { dtype, shape, bytes: Bytes::from_owner(Foreign { managed, data, len }) })
    }

    /// Hands the tensor to another program, without copying it. The other program calls the structure's `deleter` when
    /// it no longer needs the tensor, and must not write its elements.
    pub fn into_dlpack(self) -> *mut DLManagedTensorVersioned {
        let shape: Vec<i64> = self.shape.iter().map(|axis| *axis as i64).collect();
        let mut strides = vec![1i64; shape.len()];
        for axis in (1..shape.len()).rev() {
            // Without elements, the strides are never used, and the product of the lengths can be too large.
            strides[axis - 1] = strides[axis].saturating_mul(shape[axis]);
        }
        let tensor = DLTensor {
            data: self.bytes.as_ptr().cast_mut().cast(),
            device: DLDevice { device_type: CPU, device_id: 0 },
            ndim: shape.len() as i32,
            dtype: self.dtype.into(),
            shape: null_mut(),
            strides: null_mut(),
            byte_offset: 0,
        };
        let managed = DLManagedTensorVersioned {
            version: VERSION,
            manager_ctx: null_mut(),
            deleter: Some(give_back),
            flags: READ_ONLY,
            dl_tensor: tensor,
        };
        let lent = Box::into_raw(Box::new(Lent { managed, shape, strides, _bytes: self.bytes }));
        // SAFETY: the box was just made, and nobody else has its address.
        unsafe {
            (*lent).managed.manager_ctx = lent.cast();
            (*lent).managed.dl_tensor.shape = (*lent).shape.as_mut_ptr();
            (*lent).managed.dl_tensor.strides = (*lent).strides.as_mut_ptr();
            &raw mut (*lent).managed
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_goes_out_and_comes_back_without_a_copy() {
        for dtype in DType::all() {
            for shape in [vec![], vec![3], vec![2, 0], vec![0, usize::MAX / 2, usize::MAX / 2], vec![2, 3, 4]] {
                let len = byte_len(dtype, &shape).unwrap();
                let tensor = Tensor::new(dtype, shape, (0..len).map(|i| i as u8).collect::<Vec<u8>>()).unwrap();
                let managed = tensor.clone().into_dlpack();
                // SAFETY: the structure was just made.
                let back = unsafe { Tensor::from_dlpack(managed) }.unwrap();
                assert_eq!(back, tensor);
                assert!(len == 0 || back.bytes.as_ptr() == tensor.bytes.as_ptr());
            }
        }
    }

    #[test]
    fn what_cannot_be_used_is_refused_and_not_taken() {
        let refused = |change: &dyn Fn(&mut DLManagedTensorVersioned)| {
            let mut shape = [2i64, 3];
            let mut strides = [3i64, 1];
            let mut data = [0f32; 6];
            let mut managed = DLManagedTensorVersioned {
                version: VERSION,
                manager_ctx: null_mut(),
                deleter: None,
                flags: 0,
                dl_tensor: DLTensor {
                    data: data.as_mut_ptr().cast(),
                    device: DLDevice { device_type: CPU, device_id: 0 },
                    ndim: 2,
                    dtype: DType::F32.into(),
                    shape: shape.as_mut_ptr(),
                    strides: strides.as_mut_ptr(),
                    byte_offset: 0,
                },
            };
            change(&mut managed);
            // SAFETY: all that it points to is alive.
            unsafe { Tensor::from_dlpack(&mut managed) }.map(|tensor| tensor.shape).map_err(|e| e.to_string())
        };
        assert_eq!(refused(&|_| ()), Ok(vec![2, 3]));
        // SAFETY: null is allowed.
        let null = unsafe { Tensor::from_dlpack(null_mut()) }.unwrap_err().to_string();
        assert_eq!(null, "the tensor's structure is a null pointer");
        let refused = |change: &dyn Fn(&mut DLManagedTensorVersioned)| refused(change).unwrap_err();
        assert!(refused(&|m| m.version.major = 2).contains("version 2 of DLPack"));
        assert!(refused(&|m| m.dl_tensor.data = null_mut()).contains("data is a null pointer"));
        assert!(refused(&|m| m.dl_tensor.shape = null_mut()).contains("shape is a null pointer"));
        assert!(refused(&|m| m.dl_tensor.dtype.lanes = 4).contains("32 bits and 4 lanes"));
        assert!(refused(&|m| m.dl_tensor.dtype.code = 4).contains("type code 4"));
        assert!(refused(&|m| m.dl_tensor.device.device_type = 2).contains("copy it to the host's memory"));
        // SAFETY: the shape has two axes.
        let axis = |m: &mut DLManagedTensorVersioned, n: i64| unsafe { *m.dl_tensor.shape = n };
        assert!(refused(&|m| axis(m, -1)).contains("[-1, 3]"));
        assert!(refused(&|m| axis(m, i64::MAX)).contains("too large"));
        // SAFETY: as above.
        let turned = |m: &mut DLManagedTensorVersioned| unsafe { *m.dl_tensor.strides.add(1) = 2 };
        assert!(refused(&turned).contains("2x3 has strides [3, 2]; make it contiguous"));
    }
}
