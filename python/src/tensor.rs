//! Arrays of Python: in and out of the library without copies, by DLPack or NumPy's array interface.

use std::ffi::{CStr, c_void};
use std::ptr::{NonNull, null_mut};

use bytes::Bytes;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCapsule, PyDict, PyTuple};
use pyo3::{IntoPyObjectExt, intern};
use tilewright_runtime::dlpack::{self, DLDataType, DLDevice, DLManagedTensorVersioned, DLTensor, View};
use tilewright_runtime::session::TensorMut;
use tilewright_runtime::tensor::shape_text;
use tilewright_runtime::{DType, Tensor};

use crate::error::Class;

const VERSIONED: &CStr = c"dltensor_versioned";
const UNVERSIONED: &CStr = c"dltensor";

/// DLPack's structure before version 1.0.
#[repr(C)]
struct Unversioned {
    dl_tensor: DLTensor,
    manager_ctx: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Unversioned)>,
}

/// An array's memory, and what keeps it.
pub struct Lent {
    /// Type, shape and memory.
    pub view: View,
    /// Whether the memory must not be written.
    pub read_only: bool,
    _keep: Py<PyAny>,
}

// SAFETY: arrays can be read from any thread while `_keep` refers to them.
unsafe impl Send for Lent {}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `View::of` computed the length, and the memory exists as long as `_keep`.
        unsafe { std::slice::from_raw_parts(self.view.data, self.view.len) }
    }
}

impl Lent {
    /// The memory of an array.
    ///
    /// # Errors
    /// A text that says why it cannot be used.
    pub fn of(array: &Bound<'_, PyAny>) -> Result<Lent, String> {
        if let Ok(tensor) = array.cast_exact::<PyTensor>() {
            let Tensor { dtype, shape, bytes } = &tensor.get().0;
            let data = bytes.as_ptr().cast_mut();
            let view = View { dtype: *dtype, shape: shape.clone(), data, len: bytes.len() };
            return Ok(Lent { view, read_only: true, _keep: array.clone().unbind() });
        }
        match capsule(array) {
            Ok(Some(capsule)) => Lent::of_capsule(&capsule),
            // What cannot be handed out by DLPack, such as memory that must not be written, can have the other form.
            Ok(None) => Lent::of_interface(array, None),
            Err(error) => Lent::of_interface(array, Some(error.to_string())),
        }
        .map_err(|reason| format!("{}{reason}", about(array)))
    }

    fn of_capsule(capsule: &Bound<'_, PyCapsule>) -> Result<Lent, String> {
        let text = |error: PyErr| error.to_string();
        let (tensor, read_only) = if capsule.is_valid_checked(Some(VERSIONED)) {
            let at = capsule.pointer_checked(Some(VERSIONED)).map_err(text)?.cast::<DLManagedTensorVersioned>();
            // SAFETY: a capsule of this name points to this structure, whose version is at the same place in all versions.
            let version = unsafe { (*at.as_ptr()).version };
            if version.major != dlpack::VERSION.major {
                return Err(dlpack::DlpackError::Version { major: version.major }.to_string());
            }
            // SAFETY: as above, and the version is ours.
            let managed = unsafe { at.as_ref() };
            (managed.dl_tensor, managed.flags & dlpack::READ_ONLY != 0)
        } else {
            let at = capsule.pointer_checked(Some(UNVERSIONED)).map_err(text)?.cast::<DLTensor>();
            // SAFETY: a capsule of this name points to a structure that begins with the tensor.
            (unsafe { *at.as_ptr() }, false)
        };
        // SAFETY: the structure is valid while the capsule exists.
        let view = unsafe { View::of(&tensor) }.map_err(|error| error.to_string())?;
        Ok(Lent { view, read_only, _keep: capsule.clone().into_any().unbind() })
    }

    /// The memory by NumPy's array interface; `refused` is why DLPack did not give it.
    fn of_interface(array: &Bound<'_, PyAny>, refused: Option<String>) -> Result<Lent, String> {
        let none = || match &refused {
            Some(reason) => format!("it cannot be read: {reason}"),
            None => "this is no array; convert it with numpy.asarray".to_string(),
        };
        let wrong = |error: PyErr| error.to_string();
        let found = array.getattr(intern!(array.py(), "__array_interface__")).map_err(|_| none())?;
        let found = found.cast::<PyDict>().map_err(|_| none())?;
        let item = |name: &str| found.get_item(name).ok().flatten().ok_or_else(none);
        let kind: String = item("typestr")?.extract().map_err(wrong)?;
        let mut shape: Vec<i64> = item("shape")?.extract().map_err(wrong)?;
        let (data, read_only): (usize, bool) = item("data")?.extract().map_err(wrong)?;
        let strides: Option<Vec<i64>> = match found.get_item("strides") {
            Ok(Some(strides)) if !strides.is_none() => Some(strides.extract().map_err(wrong)?),
            _ => None,
        };
        if let Some(strides) = strides.as_ref().filter(|strides| strides.len() != shape.len()) {
            let (axes, given) = (shape.len(), strides.len());
            return Err(format!("its __array_interface__ has {axes} axes in shape, but {given} strides"));
        }
        let swapped = kind.starts_with('>');
        let dtype = DType::from_npy(&kind).ok_or_else(|| match swapped {
            true => "its elements are big-endian; convert it with .astype".to_string(),
            false => format!("its elements are {kind}, which no model has; convert it with .astype"),
        })?;
        let size = dtype.size() as i64;
        if let Some(bytes) = strides.iter().flatten().find(|bytes| **bytes % size != 0) {
            return Err(format!(
                "it has a stride of {bytes} bytes, which is not a whole number of elements; copy it with \
                 numpy.ascontiguousarray"
            ));
        }
        let mut strides: Option<Vec<i64>> = strides.map(|list| list.iter().map(|bytes| bytes / size).collect());
        let tensor = DLTensor {
            data: data as *mut c_void,
            device: DLDevice { device_type: dlpack::CPU, device_id: 0 },
            ndim: shape.len() as i32,
            dtype: DLDataType::from(dtype),
            shape: shape.as_mut_ptr(),
            strides: strides.as_mut().map_or(null_mut(), |list| list.as_mut_ptr()),
            byte_offset: 0,
        };
        // SAFETY: shape and strides are the lists above, of the same length.
        let view = unsafe { View::of(&tensor) }.map_err(|error| error.to_string())?;
        Ok(Lent { view, read_only, _keep: array.clone().unbind() })
    }

    /// The memory for an output, which nobody else uses meanwhile.
    pub fn as_output(&mut self) -> TensorMut<'_> {
        // SAFETY: as in `as_ref`; the caller has seen that the memory can be written and that no other array shares it.
        let bytes = unsafe { std::slice::from_raw_parts_mut(self.view.data, self.view.len) };
        TensorMut { dtype: self.view.dtype, shape: &self.view.shape, bytes }
    }

    /// A tensor of the same memory.
    pub fn into_tensor(self) -> Tensor {
        let (dtype, shape) = (self.view.dtype, self.view.shape.clone());
        Tensor { dtype, shape, bytes: Bytes::from_owner(self) }
    }
}

/// Element type and shape of an array for messages, as the array itself says them.
fn about(array: &Bound<'_, PyAny>) -> String {
    let text = |name: &str| array.getattr(name).and_then(|found| found.str()).map(|text| text.to_string());
    match (text("dtype"), array.getattr("shape").and_then(|shape| shape.extract::<Vec<usize>>())) {
        (Ok(dtype), Ok(shape)) => format!("the array is {dtype} {}: ", shape_text(&shape)),
        _ => array.get_type().name().map(|name| format!("{name}: ")).unwrap_or_default(),
    }
}

/// Whether an object hands out its memory as an array.
pub fn is_array(object: &Bound<'_, PyAny>) -> bool {
    let py = object.py();
    let has = |name| object.hasattr(name).unwrap_or(false);
    has(intern!(py, "__dlpack__")) || has(intern!(py, "__array_interface__"))
}

/// An array's DLPack capsule, or none if it has no `__dlpack__`.
fn capsule<'py>(array: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyCapsule>>> {
    static VERSION: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    let py = array.py();
    let Some(method) = array.getattr_opt(intern!(py, "__dlpack__"))? else { return Ok(None) };
    let version = VERSION.get_or_try_init(py, || {
        let version = PyDict::new(py);
        version.set_item("max_version", (dlpack::VERSION.major, dlpack::VERSION.minor))?;
        PyResult::Ok(version.unbind())
    })?;
    let made = match method.call((), Some(version.bind(py))) {
        // The protocol before version 1.0 has no such argument.
        Err(error) if error.is_instance_of::<PyTypeError>(py) => method.call0()?,
        made => made?,
    };
    Ok(Some(made.cast_into::<PyCapsule>()?))
}

/// A tensor in the library's memory, which Python reads by DLPack (`__dlpack__`) or as a NumPy array
/// (`numpy.asarray`), without a copy. Its elements cannot be written.
#[pyclass(frozen, name = "Tensor", module = "tilewright")]
pub struct PyTensor(pub Tensor);

#[pymethods]
impl PyTensor {
    /// Element type, for example `f32`.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.0.dtype.name()
    }

    /// Lengths of the axes, slowest first.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.0.shape)
    }

    /// The same memory as a NumPy array that cannot be written.
    fn numpy<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        as_array(slf)
    }

    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let found = PyDict::new(py);
        found.set_item("version", 3)?;
        found.set_item("typestr", self.0.dtype.to_npy())?;
        found.set_item("shape", PyTuple::new(py, &self.0.shape)?)?;
        found.set_item("data", (self.0.bytes.as_ptr() as usize, true))?;
        Ok(found)
    }

    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<Py<PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = stream;
        if dl_device.is_some_and(|(kind, _)| kind != dlpack::CPU) {
            return Err(PyBufferError::new_err(
                "the tensor is in the host's memory and is not copied to other devices",
            ));
        }
        if max_version.is_none_or(|(major, _)| major < dlpack::VERSION.major) {
            // The structure before version 1.0 cannot say that elements must not be written.
            return unversioned(py, &self.0);
        }
        let tensor = match copy {
            Some(true) => Tensor { bytes: Bytes::copy_from_slice(&self.0.bytes), ..self.0.clone() },
            _ => self.0.clone(),
        };
        let managed = NonNull::new(tensor.into_dlpack()).ok_or_else(|| PyBufferError::new_err("no memory"))?;
        // SAFETY: the structure was just made, and the destructor gives it back unless a consumer renamed the capsule.
        unsafe { PyCapsule::new_with_pointer_and_destructor(py, managed.cast(), VERSIONED, Some(give_back)) }
    }

    fn __dlpack_device__(&self) -> (i32, i32) {
        (dlpack::CPU, 0)
    }

    fn __repr__(&self) -> String {
        format!("tilewright.Tensor({} {})", self.0.dtype, shape_text(&self.0.shape))
    }
}

/// Gives a structure back whose capsule nobody consumed.
unsafe extern "C" fn give_back(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls it with a capsule. One that was consumed has another name.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) == 1 {
            let managed = ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast::<DLManagedTensorVersioned>();
            if let Some(deleter) = (*managed).deleter {
                deleter(managed);
            }
        }
    }
}

/// A copy of a tensor in the structure before version 1.0, with what the structure points to.
struct Copied {
    managed: Unversioned,
    shape: Vec<i64>,
    bytes: Vec<u8>,
}

fn unversioned<'py>(py: Python<'py>, tensor: &Tensor) -> PyResult<Bound<'py, PyCapsule>> {
    unsafe extern "C" fn delete(managed: *mut Unversioned) {
        // SAFETY: the context is the box that was leaked below, and owners call this once.
        drop(unsafe { Box::from_raw((*managed).manager_ctx.cast::<Copied>()) });
    }
    unsafe extern "C" fn give_back(capsule: *mut ffi::PyObject) {
        // SAFETY: as in `give_back` above.
        unsafe {
            if ffi::PyCapsule_IsValid(capsule, UNVERSIONED.as_ptr()) == 1 {
                delete(ffi::PyCapsule_GetPointer(capsule, UNVERSIONED.as_ptr()).cast());
            }
        }
    }
    let dl_tensor = DLTensor {
        data: null_mut(),
        device: DLDevice { device_type: dlpack::CPU, device_id: 0 },
        ndim: tensor.shape.len() as i32,
        dtype: tensor.dtype.into(),
        shape: null_mut(),
        strides: null_mut(),
        byte_offset: 0,
    };
    let managed = Unversioned { dl_tensor, manager_ctx: null_mut(), deleter: Some(delete) };
    let shape = tensor.shape.iter().map(|axis| *axis as i64).collect();
    let copied = Box::into_raw(Box::new(Copied { managed, shape, bytes: tensor.bytes.to_vec() }));
    // SAFETY: the box was just made, and nobody else has its address.
    unsafe {
        (*copied).managed.manager_ctx = copied.cast();
        (*copied).managed.dl_tensor.shape = (*copied).shape.as_mut_ptr();
        (*copied).managed.dl_tensor.data = (*copied).bytes.as_mut_ptr().cast();
        let managed = NonNull::new_unchecked(&raw mut (*copied).managed);
        PyCapsule::new_with_pointer_and_destructor(py, managed.cast(), UNVERSIONED, Some(give_back))
    }
}

fn as_array<'py>(tensor: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
    static AS_ARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = tensor.py();
    AS_ARRAY.import(py, "numpy", "asarray")?.call1((tensor,))
}

/// A tensor as a NumPy array of the same memory.
pub fn to_numpy(py: Python<'_>, tensor: Tensor) -> PyResult<Bound<'_, PyAny>> {
    as_array(&Bound::new(py, PyTensor(tensor))?)
}

/// A new NumPy array; `shape` and `dtype` are what `numpy.empty` takes.
pub fn empty<'py>(py: Python<'py>, shape: &Py<PyAny>, dtype: &Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
    static EMPTY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    EMPTY.import(py, "numpy", "empty")?.call1((shape, dtype))
}

/// Copies an array's elements to another array of the same type and shape.
///
/// # Errors
/// What NumPy raises.
pub fn copy(py: Python<'_>, to: &Bound<'_, PyAny>, from: &Bound<'_, PyAny>) -> PyResult<()> {
    static COPYTO: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let [wanted, found] = [from, to].map(|array| array.getattr(intern!(py, "shape")));
    let (wanted, found) = (wanted?, found?);
    if !wanted.eq(&found)? {
        return Err(pyo3::exceptions::PyValueError::new_err(format!(
            "its shape is {found}, but the output's is {wanted}"
        )));
    }
    COPYTO.import(py, "numpy", "copyto")?.call1((to, from, "no")).map(drop)
}

/// NumPy's object for an element type.
pub fn numpy_dtype(py: Python<'_>, dtype: DType) -> PyResult<Py<PyAny>> {
    static OF_NAME: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    Ok(OF_NAME.import(py, "numpy", "dtype")?.call1((dtype.to_npy(),))?.unbind())
}

/// The tensor of an array.
///
/// # Errors
/// `InputError`.
pub fn from_array(array: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    Lent::of(array).map(Lent::into_tensor).map_err(|reason| Class::Input.err(array.py(), reason))
}

/// A shape as Python's tuple.
pub fn shape_tuple(py: Python<'_>, shape: &[usize]) -> PyResult<Py<PyAny>> {
    PyTuple::new(py, shape)?.into_py_any(py)
}
