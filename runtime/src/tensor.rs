//! Values at the runtime's interface: an element type, a shape and the bytes.

mod borrowed;
mod narrow;

use std::fmt;

use bytes::Bytes;
use half::f16;
use serde::{Deserialize, Serialize};

pub(crate) use borrowed::refs;
pub use borrowed::{TensorMut, TensorRef};
pub use narrow::NarrowFloat;

/// An element of a tensor, exactly: 64-bit integers are not rounded to floats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// Of an integer type or bool.
    Whole(i128),
    /// Of a float type.
    Float(f64),
}

impl Number {
    /// Distance between two numbers; infinite if one of two floats is NaN.
    pub fn distance(self, other: Number) -> f64 {
        let distance = match (self, other) {
            (Number::Whole(x), Number::Whole(y)) => x.abs_diff(y) as f64,
            (x, y) => (x.to_f64() - y.to_f64()).abs(),
        };
        if distance.is_nan() { f64::INFINITY } else { distance }
    }

    /// The nearest float.
    pub fn to_f64(self) -> f64 {
        match self {
            Number::Whole(x) => x as f64,
            Number::Float(x) => x,
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Number::Whole(x) => write!(f, "{x}"),
            Number::Float(x) => write!(f, "{x}"),
        }
    }
}

impl Serialize for Number {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Number::Whole(x) => match (i64::try_from(*x), u64::try_from(*x)) {
                (Ok(x), _) => serializer.serialize_i64(x),
                (_, Ok(x)) => serializer.serialize_u64(x),
                _ => serializer.serialize_i128(*x),
            },
            Number::Float(x) => serializer.serialize_f64(*x),
        }
    }
}

/// Element type of a tensor. Multi-byte elements are little endian in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)] // the names are the types' own
pub enum DType {
    Bool,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F16,
    F32,
    F64,
}

/// All types in one table: type, name, NumPy's kind and size.
const TABLE: &[(DType, &str, char, usize)] = &[
    (DType::Bool, "bool", 'b', 1),
    (DType::I8, "i8", 'i', 1),
    (DType::U8, "u8", 'u', 1),
    (DType::I16, "i16", 'i', 2),
    (DType::U16, "u16", 'u', 2),
    (DType::I32, "i32", 'i', 4),
    (DType::U32, "u32", 'u', 4),
    (DType::I64, "i64", 'i', 8),
    (DType::U64, "u64", 'u', 8),
    (DType::F16, "f16", 'f', 2),
    (DType::F32, "f32", 'f', 4),
    (DType::F64, "f64", 'f', 8),
];

impl DType {
    fn row(self) -> &'static (DType, &'static str, char, usize) {
        // The table lists the types in the order of the enum; a test checks that.
        &TABLE[self as usize]
    }

    /// Every type.
    pub fn all() -> impl Iterator<Item = DType> {
        TABLE.iter().map(|row| row.0)
    }

    /// Bytes of one element.
    pub fn size(self) -> usize {
        self.row().3
    }

    /// Whether its elements are floats.
    pub fn is_float(self) -> bool {
        self.kind() == 'f'
    }

    /// The name used in messages and files, for example `f32`.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// NumPy's kind letter.
    pub(crate) fn kind(self) -> char {
        self.row().2
    }

    /// The type with this name.
    pub fn from_name(name: &str) -> Option<DType> {
        TABLE.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    /// NumPy's text for it, for example `<f4`.
    pub fn to_npy(self) -> String {
        format!("{}{}{}", if self.size() == 1 { '|' } else { '<' }, self.kind(), self.size())
    }

    /// The type with this text of NumPy's; `None` if its elements are no numbers, or big-endian.
    pub fn from_npy(text: &str) -> Option<DType> {
        DType::all().find(|dtype| dtype.to_npy() == text)
    }

    /// The type with NumPy's kind letter and size in bytes.
    pub(crate) fn from_kind(kind: char, size: usize) -> Option<DType> {
        TABLE.iter().find(|row| row.2 == kind && row.3 == size).map(|row| row.0)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A dense tensor in row-major order. Copies share the elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Element type.
    pub dtype: DType,
    /// Lengths of the axes, slowest first; empty for a scalar.
    pub shape: Vec<usize>,
    /// The elements, `shape.product() * dtype.size()` bytes.
    pub bytes: Bytes,
}

impl Tensor {
    /// A tensor over `bytes`, or `None` if their number does not fit the shape.
    pub fn new(dtype: DType, shape: Vec<usize>, bytes: Vec<u8>) -> Option<Tensor> {
        (byte_len(dtype, &shape)? == bytes.len()).then(|| Tensor { dtype, shape, bytes: bytes.into() })
    }

    /// A tensor of `f32`, or `None` if the number of values does not fit the shape.
    pub fn from_f32(shape: Vec<usize>, values: &[f32]) -> Option<Tensor> {
        Tensor::new(DType::F32, shape, values.iter().flat_map(|v| v.to_le_bytes()).collect())
    }

    /// A tensor of `i8`, or `None` if the number of values does not fit the shape.
    pub fn from_i8(shape: Vec<usize>, values: &[i8]) -> Option<Tensor> {
        Tensor::new(DType::I8, shape, values.iter().map(|v| *v as u8).collect())
    }

    /// Tensors one after the other along their first axis, scalars as a vector; `None` without tensors, or if their
    /// types or their other axes differ.
    pub fn concat(parts: &[Tensor]) -> Option<Tensor> {
        let [first, others @ ..] = parts else { return None };
        if others.is_empty() {
            return Some(first.clone());
        }
        let rows_and_rest =
            |part: &Tensor| part.shape.split_first().map_or((1, vec![]), |(n, rest)| (*n, rest.to_vec()));
        let (rows, rest) = rows_and_rest(first);
        let rows = others.iter().try_fold(rows, |rows, part| {
            let (more, others) = rows_and_rest(part);
            let same = part.dtype == first.dtype && part.shape.len() == first.shape.len() && others == rest;
            same.then(|| rows + more)
        })?;
        let shape = [vec![rows], rest].concat();
        let bytes: Vec<&[u8]> = parts.iter().map(|part| &part.bytes[..]).collect();
        Some(Tensor { dtype: first.dtype, shape, bytes: bytes.concat().into() })
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.dtype.size()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Element `index` in row-major order, as a number. Integers past 2^53 are rounded.
    ///
    /// # Panics
    /// If `index` is not below [`Tensor::len`].
    pub fn get_f64(&self, index: usize) -> f64 {
        let size = self.dtype.size();
        let b = &self.bytes[index * size..][..size];
        match self.dtype {
            DType::Bool | DType::U8 => f64::from(b[0]),
            DType::I8 => f64::from(b[0] as i8),
            DType::I16 => f64::from(i16::from_le_bytes([b[0], b[1]])),
            DType::U16 => f64::from(u16::from_le_bytes([b[0], b[1]])),
            DType::I32 => f64::from(i32::from_le_bytes(four(b))),
            DType::U32 => f64::from(u32::from_le_bytes(four(b))),
            DType::I64 => i64::from_le_bytes(eight(b)) as f64,
            DType::U64 => u64::from_le_bytes(eight(b)) as f64,
            DType::F16 => f16::from_le_bytes([b[0], b[1]]).to_f64(),
            DType::F32 => f64::from(f32::from_le_bytes(four(b))),
            DType::F64 => f64::from_le_bytes(eight(b)),
        }
    }

    /// Element `index` in row-major order, exactly.
    ///
    /// # Panics
    /// If `index` is not below [`Tensor::len`].
    pub fn number(&self, index: usize) -> Number {
        let size = self.dtype.size();
        let b = &self.bytes[index * size..][..size];
        match self.dtype {
            DType::I64 => Number::Whole(i64::from_le_bytes(eight(b)).into()),
            DType::U64 => Number::Whole(u64::from_le_bytes(eight(b)).into()),
            dtype if dtype.is_float() => Number::Float(self.get_f64(index)),
            _ => Number::Whole(self.get_f64(index) as i128),
        }
    }

    /// All elements as numbers.
    pub fn to_f64(&self) -> Vec<f64> {
        (0..self.len()).map(|index| self.get_f64(index)).collect()
    }

    /// Converts floats to another width, rounding to nearest; `None` if either type is not a float type.
    pub fn to_floats(&self, dtype: DType) -> Option<Tensor> {
        if !self.dtype.is_float() || !dtype.is_float() {
            return None;
        }
        if self.dtype == dtype {
            return Some(self.clone());
        }
        let numbers = (0..self.len()).map(|index| self.get_f64(index));
        let bytes: Vec<u8> = match dtype {
            DType::F16 => numbers.flat_map(|x| f16::from_f64(x).to_le_bytes()).collect(),
            DType::F32 => numbers.flat_map(|x| (x as f32).to_le_bytes()).collect(),
            _ => numbers.flat_map(f64::to_le_bytes).collect(),
        };
        Some(Tensor { dtype, shape: self.shape.clone(), bytes: bytes.into() })
    }

    /// For each row along the last axis, the index of its greatest element, the first of equal ones.
    pub fn argmax_last(&self) -> Vec<usize> {
        let width = self.shape.last().copied().unwrap_or(1).max(1);
        let values = self.to_f64();
        values
            .chunks(width)
            .map(|row| {
                let mut best = 0;
                for (index, value) in row.iter().enumerate() {
                    if *value > row[best] {
                        best = index;
                    }
                }
                best
            })
            .collect()
    }
}

fn four(b: &[u8]) -> [u8; 4] {
    [b[0], b[1], b[2], b[3]]
}

fn eight(b: &[u8]) -> [u8; 8] {
    [b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]
}

/// The greatest distance of numbers at the same index: 0 for equal values and for two NaN, infinite if only one of them
/// is NaN, and if one side has more numbers than the other.
pub fn largest_distance(found: impl IntoIterator<Item = f64>, wanted: impl IntoIterator<Item = f64>) -> f64 {
    let (mut found, mut wanted) = (found.into_iter(), wanted.into_iter());
    let mut most = 0f64;
    loop {
        let distance = match (found.next(), wanted.next()) {
            (None, None) => return most,
            (Some(x), Some(y)) if x == y || x.is_nan() && y.is_nan() => 0.0,
            (Some(x), Some(y)) => (x - y).abs(),
            _ => f64::INFINITY,
        };
        // `f64::max` would ignore a NaN.
        most = if distance.is_nan() { f64::INFINITY } else { most.max(distance) };
    }
}

/// True for equal numbers, for two NaN, and for finite numbers at most `most` apart, times the magnitude of the wanted
/// one if that is above 1.
pub fn near(found: f64, wanted: f64, most: f64) -> bool {
    let same = found == wanted || found.is_nan() && wanted.is_nan();
    same || wanted.is_finite() && (found - wanted).abs() <= most * wanted.abs().max(1.0)
}

/// Bytes of a tensor, or `None` if the number overflows.
pub fn byte_len(dtype: DType, shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(dtype.size(), |len, axis| len.checked_mul(*axis))
}

/// A shape as text, for example `1x32x32x3`; `scalar` without axes.
pub fn shape_text(shape: &[usize]) -> String {
    if shape.is_empty() {
        return "scalar".to_string();
    }
    shape.iter().map(usize::to_string).collect::<Vec<_>>().join("x")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_follows_the_enum() {
        for (index, row) in TABLE.iter().enumerate() {
            assert_eq!(row.0 as usize, index);
            assert_eq!(DType::from_name(row.1), Some(row.0));
            assert_eq!(DType::from_kind(row.2, row.3), Some(row.0));
        }
    }

    #[test]
    fn floats_of_each_width_become_those_of_another() {
        let halves: Vec<u8> =
            [0x3c00u16, 0xc000, 0x0001, 0x7bff, 0x7e00].iter().flat_map(|h| h.to_le_bytes()).collect();
        let half = Tensor::new(DType::F16, vec![5], halves.clone()).unwrap();
        let single = half.to_floats(DType::F32).unwrap();
        assert_eq!(single.to_f64()[..4], [1.0, -2.0, 2f64.powi(-24), 65504.0]);
        assert!(single.get_f64(4).is_nan());
        assert_eq!(single.to_floats(DType::F64).unwrap().to_floats(DType::F16).unwrap().bytes, halves);
        // To the nearest, ties to even, and past the greatest to infinity.
        let numbers = Tensor::from_f32(vec![3], &[1.0 + 1.0 / 2048.0, 1.0 + 3.0 / 2048.0, 65520.0]).unwrap();
        assert_eq!(numbers.to_floats(DType::F16).unwrap().to_f64(), [1.0, 1.0 + 1.0 / 512.0, f64::INFINITY]);
        assert_eq!(Tensor::from_i8(vec![1], &[1]).unwrap().to_floats(DType::F32), None);
    }

    #[test]
    fn bytes_must_fit_the_shape() {
        assert!(Tensor::new(DType::I32, vec![2, 3], vec![0; 24]).is_some());
        assert!(Tensor::new(DType::I32, vec![2, 3], vec![0; 23]).is_none());
        assert!(Tensor::new(DType::I32, vec![usize::MAX, 3], vec![]).is_none());
    }

    #[test]
    fn what_is_no_number_is_infinitely_far_wherever_it_stands() {
        let nan = f64::NAN;
        for found in [[nan, 1.0, 2.0], [1.0, nan, 2.0], [1.0, 1.0, nan]] {
            assert_eq!(largest_distance(found, [1.0, 1.0, 2.0]), f64::INFINITY);
            assert_eq!(largest_distance([1.0, 1.0, 2.0], found), f64::INFINITY);
            assert_eq!(largest_distance(found, found), 0.0);
        }
        let far = f64::INFINITY;
        assert_eq!(largest_distance([far, 3.0], [far, 1.0]), 2.0);
        assert_eq!(largest_distance([1.0, far], [1.0, -far]), far);
        assert_eq!(largest_distance([1.0], [1.0, 1.0]), far);
        assert_eq!(largest_distance([1.0, 1.0], [1.0]), far);
        assert_eq!(largest_distance([], []), 0.0);
    }

    #[test]
    fn integers_of_64_bits_keep_every_digit() {
        let wide = |values: [u64; 2], dtype| {
            let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            Tensor::new(dtype, vec![2], bytes).unwrap()
        };
        let signed = wide([1_234_567_890_123_456_789, (-9_007_199_254_740_993i64) as u64], DType::I64);
        let text = |t: &Tensor| (0..2).map(|i| t.number(i).to_string()).collect::<Vec<_>>();
        assert_eq!(text(&signed), ["1234567890123456789", "-9007199254740993"]);
        let unsigned = wide([u64::MAX, u64::MAX - 1], DType::U64);
        assert_eq!(text(&unsigned), ["18446744073709551615", "18446744073709551614"]);
        assert_eq!(unsigned.number(0).distance(unsigned.number(1)), 1.0);
        let bytes = Tensor::from_i8(vec![2], &[-128, 127]).unwrap();
        assert_eq!(text(&bytes), ["-128", "127"]);
        let floats = Tensor::from_f32(vec![2], &[-0.0, 0.5]).unwrap();
        assert_eq!(text(&floats), ["-0", "0.5"]);
    }

    #[test]
    fn only_an_infinity_is_near_an_infinity_and_only_a_nan_near_a_nan() {
        let numbers = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.0, 3.0];
        for (i, x) in numbers.into_iter().enumerate() {
            for (k, y) in numbers.into_iter().enumerate() {
                assert_eq!(near(x, y, 0.1), i == k, "{x} and {y}");
            }
        }
        assert!(near(0.05, 0.0, 0.1) && near(105.0, 100.0, 0.1) && !near(115.0, 100.0, 0.1));
    }

    #[test]
    fn tensors_are_joined_along_their_first_axis() {
        let of = |shape: &[usize], first: i8| {
            let count: usize = shape.iter().product();
            Tensor::from_i8(shape.to_vec(), &(first..).take(count).collect::<Vec<i8>>()).unwrap()
        };
        assert_eq!(Tensor::concat(&[of(&[1, 2], 0), of(&[2, 2], 2)]), Some(of(&[3, 2], 0)));
        assert_eq!(Tensor::concat(&[of(&[], 0), of(&[], 1)]), Some(of(&[2], 0)));
        assert_eq!(Tensor::concat(&[of(&[], 7)]), Some(of(&[], 7)));
        assert_eq!(Tensor::concat(&[]), None);
        assert_eq!(Tensor::concat(&[of(&[1, 2], 0), of(&[1, 3], 0)]), None);
        assert_eq!(Tensor::concat(&[of(&[], 0), of(&[1], 0)]), None);
        assert_eq!(Tensor::concat(&[of(&[1], 0), Tensor::from_f32(vec![1], &[0.0]).unwrap()]), None);
    }

    #[test]
    fn argmax_takes_the_first_of_equals() {
        let t = Tensor::from_i8(vec![2, 3], &[1, 5, 5, -1, -2, -3]).unwrap();
        assert_eq!(t.argmax_last(), [1, 0]);
    }
}
