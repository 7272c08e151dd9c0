//! Tensors with data, in row-major order.

use super::{DType, OpError, TensorType};

/// A tensor's elements.
#[derive(Debug, Clone, PartialEq)]
pub enum TensorData {
    /// 32-bit floats.
    F32(Vec<f32>),
    /// Signed bytes.
    I8(Vec<i8>),
    /// Unsigned bytes.
    U8(Vec<u8>),
    /// 32-bit integers.
    I32(Vec<i32>),
    /// 64-bit integers.
    I64(Vec<i64>),
    /// Truth values.
    Bool(Vec<bool>),
    /// 64-bit floats.
    F64(Vec<f64>),
    /// 16-bit integers.
    I16(Vec<i16>),
    /// 16-bit integers without a sign.
    U16(Vec<u16>),
    /// 32-bit integers without a sign.
    U32(Vec<u32>),
    /// 64-bit integers without a sign.
    U64(Vec<u64>),
}

/// A Rust type for the elements of a tensor.
pub trait Element: Copy + Default + PartialEq + PartialOrd + Send + Sync + 'static {
    /// The element type.
    const DTYPE: DType;
    /// The elements, or `None` if they have another type.
    fn slice(data: &TensorData) -> Option<&[Self]>;
    /// Wraps elements of this type.
    fn wrap(data: Vec<Self>) -> TensorData;
    /// The element as an integer: a float is truncated and saturated, NaN is 0.
    fn int(self) -> i128;
    /// The element as a float.
    fn double(self) -> f64;
    /// The element for an integer: integers wrap, and a boolean is true for anything but 0.
    fn of_int(value: i128) -> Self;
    /// The element for a float: an integer is truncated and saturated, NaN is 0.
    fn of_double(value: f64) -> Self;
}

/// A Rust type for floats.
pub trait Real: Element + tilewright_tensor::extreme::Float {}

impl Real for f32 {}
impl Real for f64 {}

/// Evaluates an expression in which `$t` is the Rust type of the elements.
macro_rules! with_element {
    ($dtype:expr, $t:ident => $body:expr) => {
        match $dtype {
            $crate::graph::DType::F32 => {
                type $t = f32;
                $body
            }
            $crate::graph::DType::I8 => {
                type $t = i8;
                $body
            }
            $crate::graph::DType::U8 => {
                type $t = u8;
                $body
            }
            $crate::graph::DType::I32 => {
                type $t = i32;
                $body
            }
            $crate::graph::DType::I64 => {
                type $t = i64;
                $body
            }
            $crate::graph::DType::Bool => {
                type $t = bool;
                $body
            }
            $crate::graph::DType::F64 => {
                type $t = f64;
                $body
            }
            $crate::graph::DType::I16 => {
                type $t = i16;
                $body
            }
            $crate::graph::DType::U16 => {
                type $t = u16;
                $body
            }
            $crate::graph::DType::U32 => {
                type $t = u32;
                $body
            }
            $crate::graph::DType::U64 => {
                type $t = u64;
                $body
            }
        }
    };
}
pub(crate) use with_element;

/// Like [`with_element`], for floats.
macro_rules! with_real {
    ($dtype:expr, $t:ident => $body:expr) => {
        match $dtype {
            $crate::graph::DType::F64 => {
                type $t = f64;
                $body
            }
            _ => {
                type $t = f32;
                $body
            }
        }
    };
}
pub(crate) use with_real;

macro_rules! elements {
    ($($variant:ident $ty:ty { $int:expr, $double:expr, $of_int:expr, $of_double:expr })*) => {
        $(impl Element for $ty {
            const DTYPE: DType = DType::$variant;
            fn int(self) -> i128 {
                let f: fn($ty) -> i128 = $int;
                f(self)
            }
            fn double(self) -> f64 {
                let f: fn($ty) -> f64 = $double;
                f(self)
            }
            fn of_int(value: i128) -> $ty {
                let f: fn(i128) -> $ty = $of_int;
                f(value)
            }
            fn of_double(value: f64) -> $ty {
                let f: fn(f64) -> $ty = $of_double;
                f(value)
            }
            fn slice(data: &TensorData) -> Option<&[Self]> {
                if let TensorData::$variant(v) = data { Some(v) } else { None }
            }
            fn wrap(data: Vec<Self>) -> TensorData {
                TensorData::$variant(data)
            }
        })*

        impl TensorData {
            fn len(&self) -> usize {
                match self { $(TensorData::$variant(v) => v.len(),)* }
            }

            fn dtype(&self) -> DType {
                match self { $(TensorData::$variant(_) => DType::$variant,)* }
            }

            /// The elements at `index`, in that order; every index must be in range.
            fn gather(&self, index: &[usize]) -> TensorData {
                match self {
                    $(TensorData::$variant(v) => TensorData::$variant(index.iter().map(|&i| v[i]).collect()),)*
                }
            }
        }
    };
}

elements! {
    F32 f32 { |v| v as i128, f64::from, |i| i as f32, |d| d as f32 }
    I8 i8 { i128::from, f64::from, |i| i as i8, |d| d as i8 }
    U8 u8 { i128::from, f64::from, |i| i as u8, |d| d as u8 }
    I32 i32 { i128::from, f64::from, |i| i as i32, |d| d as i32 }
    I64 i64 { i128::from, |v| v as f64, |i| i as i64, |d| d as i64 }
    Bool bool { i128::from, |v| u8::from(v).into(), |i| i != 0, |d| d != 0.0 }
    F64 f64 { |v| v as i128, |v| v, |i| i as f64, |d| d }
    I16 i16 { i128::from, f64::from, |i| i as i16, |d| d as i16 }
    U16 u16 { i128::from, f64::from, |i| i as u16, |d| d as u16 }
    U32 u32 { i128::from, f64::from, |i| i as u32, |d| d as u32 }
    U64 u64 { i128::from, |v| v as f64, |i| i as u64, |d| d as u64 }
}

/// Elements with a shape, row-major, outermost dimension first.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    shape: Vec<usize>,
    data: TensorData,
}

impl Tensor {
    /// A tensor with these elements; `None` if their number is not the product of the sizes.
    pub fn new<T: Element>(shape: &[usize], data: Vec<T>) -> Option<Tensor> {
        let n = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d))?;
        (n == data.len()).then(|| Tensor { shape: shape.to_vec(), data: T::wrap(data) })
    }

    /// A one-dimensional tensor.
    pub fn vector<T: Element>(data: Vec<T>) -> Tensor {
        Tensor { shape: vec![data.len()], data: T::wrap(data) }
    }

    /// A tensor without dimensions.
    pub fn scalar<T: Element>(value: T) -> Tensor {
        Tensor { shape: vec![], data: T::wrap(vec![value]) }
    }

    /// A tensor whose elements are computed from their row-major index.
    ///
    /// # Panics
    /// If the number of elements overflows.
    pub fn from_fn<T: Element>(shape: &[usize], f: impl FnMut(usize) -> T) -> Tensor {
        let n = shape.iter().product();
        Tensor { shape: shape.to_vec(), data: T::wrap((0..n).map(f).collect()) }
    }

    /// Sizes, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.data.dtype()
    }

    /// Type with known sizes.
    pub fn ty(&self) -> TensorType {
        TensorType::new(self.dtype(), &self.shape)
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// True if it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements.
    pub fn data(&self) -> &TensorData {
        &self.data
    }

    /// The elements as a slice.
    ///
    /// # Errors
    /// If they have another type.
    pub fn as_slice<T: Element>(&self) -> Result<&[T], OpError> {
        T::slice(&self.data).ok_or_else(|| OpError::operand("tensor", T::DTYPE, self.ty()))
    }

    /// The element at an index with one coordinate per dimension; `None` if out of range or of another type.
    pub fn at<T: Element>(&self, index: &[usize]) -> Option<T> {
        if index.len() != self.shape.len() {
            return None;
        }
        let mut flat = 0;
        for (&i, &n) in index.iter().zip(&self.shape) {
            if i >= n {
                return None;
            }
            flat = flat * n + i;
        }
        T::slice(&self.data)?.get(flat).copied()
    }

    /// The same elements with another shape; `None` if the number of elements differs.
    pub fn reshaped(&self, shape: &[usize]) -> Option<Tensor> {
        let n = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d))?;
        (n == self.len()).then(|| Tensor { shape: shape.to_vec(), data: self.data.clone() })
    }

    /// Dimension `i` of the result is dimension `perm[i]` of `self`; `None` if `perm` is not a permutation.
    pub fn transposed(&self, perm: &[usize]) -> Option<Tensor> {
        let mut sorted = perm.to_vec();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..self.shape.len()) {
            return None;
        }
        let strides = strides(&self.shape);
        let shape: Vec<usize> = perm.iter().map(|&p| self.shape[p]).collect();
        let step: Vec<usize> = perm.iter().map(|&p| strides[p]).collect();
        Some(Tensor { data: self.data.gather(&walk(&shape, &step)), shape })
    }

    /// A tensor of the elements at these flat indices, which must be in range, one per element of the shape.
    pub(crate) fn gathered(&self, shape: &[usize], index: &[usize]) -> Tensor {
        Tensor { shape: shape.to_vec(), data: self.data.gather(index) }
    }

    /// Size of the elements in bytes.
    pub fn size_bytes(&self) -> usize {
        self.len() * self.dtype().size_bytes()
    }

    /// The elements as little-endian bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        match &self.data {
            TensorData::F32(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
            TensorData::I8(v) => v.iter().map(|&x| x as u8).collect(),
            TensorData::U8(v) => v.clone(),
            TensorData::I32(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
            TensorData::I64(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
            TensorData::Bool(v) => v.iter().map(|&x| x as u8).collect(),
            TensorData::F64(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
            TensorData::I16(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
            TensorData::U16(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
            TensorData::U32(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
            TensorData::U64(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
        }
    }

    /// The elements as integers; floats are truncated and saturated.
    pub fn ints(&self) -> Vec<i128> {
        with_element!(self.dtype(), T => self.each(<T as Element>::int))
    }

    /// The elements as floats.
    pub fn doubles(&self) -> Vec<f64> {
        with_element!(self.dtype(), T => self.each(<T as Element>::double))
    }

    fn each<T: Element, R>(&self, f: fn(T) -> R) -> Vec<R> {
        T::slice(&self.data).into_iter().flatten().map(|v| f(*v)).collect()
    }

    /// A tensor from little-endian bytes; `None` if their number does not fit. Any byte but 0 is `true`.
    pub fn from_bytes(dtype: DType, shape: &[usize], bytes: &[u8]) -> Option<Tensor> {
        let n = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d))?;
        if n.checked_mul(dtype.size_bytes())? != bytes.len() {
            return None;
        }
        let data = match dtype {
            DType::F32 => TensorData::F32(words(bytes).map(f32::from_le_bytes).collect()),
            DType::I8 => TensorData::I8(bytes.iter().map(|&x| x as i8).collect()),
            DType::U8 => TensorData::U8(bytes.to_vec()),
            DType::I32 => TensorData::I32(words(bytes).map(i32::from_le_bytes).collect()),
            DType::I64 => TensorData::I64(words(bytes).map(i64::from_le_bytes).collect()),
            DType::Bool => TensorData::Bool(bytes.iter().map(|&x| x != 0).collect()),
            DType::F64 => TensorData::F64(words(bytes).map(f64::from_le_bytes).collect()),
            DType::I16 => TensorData::I16(words(bytes).map(i16::from_le_bytes).collect()),
            DType::U16 => TensorData::U16(words(bytes).map(u16::from_le_bytes).collect()),
            DType::U32 => TensorData::U32(words(bytes).map(u32::from_le_bytes).collect()),
            DType::U64 => TensorData::U64(words(bytes).map(u64::from_le_bytes).collect()),
        };
        Some(Tensor { shape: shape.to_vec(), data })
    }
}

/// The runtime's name for an element type.
pub(crate) fn runtime_dtype(dtype: DType) -> tilewright_runtime::DType {
    use tilewright_runtime::DType as R;
    match dtype {
        DType::F32 => R::F32,
        DType::I8 => R::I8,
        DType::U8 => R::U8,
        DType::I32 => R::I32,
        DType::I64 => R::I64,
        DType::Bool => R::Bool,
        DType::F64 => R::F64,
        DType::I16 => R::I16,
        DType::U16 => R::U16,
        DType::U32 => R::U32,
        DType::U64 => R::U64,
    }
}

impl From<&Tensor> for tilewright_runtime::Tensor {
    fn from(t: &Tensor) -> tilewright_runtime::Tensor {
        tilewright_runtime::Tensor {
            dtype: runtime_dtype(t.dtype()),
            shape: t.shape.clone(),
            bytes: t.to_bytes().into(),
        }
    }
}

impl TryFrom<&tilewright_runtime::Tensor> for Tensor {
    type Error = OpError;

    /// Fails if the graph has no such element type.
    fn try_from(t: &tilewright_runtime::Tensor) -> Result<Tensor, OpError> {
        let dtype = DType::from_name(t.dtype.name());
        let tensor = dtype.and_then(|d| Tensor::from_bytes(d, &t.shape, &t.bytes));
        let names = || format!("of type {}", DType::ALL.map(DType::name).join(", "));
        tensor.ok_or_else(|| OpError::operand("tensor", names(), t.dtype.name()))
    }
}

fn words<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = [u8; N]> {
    bytes.chunks_exact(N).map(|c| {
        let mut w = [0; N];
        w.copy_from_slice(c);
        w
    })
}

/// Row-major strides, in elements.
pub(crate) fn strides(shape: &[usize]) -> Vec<usize> {
    let mut out = vec![1usize; shape.len()];
    for i in (1..shape.len()).rev() {
        // A shape with a size of 0 can have other sizes whose product overflows; nothing is indexed then.
        out[i - 1] = out[i].wrapping_mul(shape[i]);
    }
    out
}

/// For each index of `shape`, in row-major order, the sum of its coordinates times `step`.
pub(crate) fn walk(shape: &[usize], step: &[usize]) -> Vec<usize> {
    let mut out = vec![0];
    for (&n, &s) in shape.iter().zip(step) {
        out = out.iter().flat_map(|&base| (0..n).map(move |i| base + i * s)).collect();
    }
    out
}
