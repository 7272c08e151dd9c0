//! Compares two tensors of the same type.

use tilewright_runtime::tensor::{DType, Number, Tensor};

use super::tolerance::Tolerance;

/// How two tensors differ.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Index of the first element that differs, in row-major order.
    pub first: usize,
    /// Its index along each dimension.
    pub index: Vec<usize>,
    /// Its values.
    pub values: [Number; 2],
    /// Number of elements that differ.
    pub differing: usize,
    /// Number of elements.
    pub elements: usize,
    /// The greatest distance; infinite if one of two values is NaN.
    pub largest: f64,
}

/// Compares tensors with the same type and shape; none if all elements are within the tolerance.
pub fn compare(a: &Tensor, b: &Tensor, tolerance: &Tolerance) -> Option<Difference> {
    let float = matches!(a.dtype, DType::F16 | DType::F32 | DType::F64);
    let reach = if float { tolerance.relative * magnitude(a).max(magnitude(b)) } else { tolerance.steps as f64 };
    let (size, mut found) = (a.dtype.size(), None::<Difference>);
    for (i, (x, y)) in a.bytes.chunks_exact(size).zip(b.bytes.chunks_exact(size)).enumerate() {
        if x == y {
            continue;
        }
        let [x, y] = [a.number(i), b.number(i)];
        if float && (x == y || (x.to_f64().is_nan() && y.to_f64().is_nan())) {
            continue;
        }
        let distance = x.distance(y);
        if distance <= reach && reach > 0.0 {
            continue;
        }
        let place = found.get_or_insert_with(|| Difference {
            first: i,
            index: unravel(i, &a.shape),
            values: [x, y],
            differing: 0,
            elements: a.len(),
            largest: 0.0,
        });
        place.differing += 1;
        place.largest = place.largest.max(distance);
    }
    found
}

fn magnitude(tensor: &Tensor) -> f64 {
    (0..tensor.len()).map(|i| tensor.get_f64(i).abs()).filter(|x| x.is_finite()).fold(0.0, f64::max)
}

/// Converts a row-major index to an index along each dimension.
pub fn unravel(flat: usize, shape: &[usize]) -> Vec<usize> {
    let mut rest = flat;
    let mut index: Vec<usize> = shape
        .iter()
        .rev()
        .map(|&size| {
            let at = rest % size.max(1);
            rest /= size.max(1);
            at
        })
        .collect();
    index.reverse();
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(values: &[f32]) -> Tensor {
        Tensor::from_f32(vec![2, values.len() / 2], values).unwrap()
    }

    #[test]
    fn the_first_element_is_named_and_the_others_are_counted() {
        let a = Tensor::from_i8(vec![2, 3], &[1, 2, 3, 4, 5, 6]).unwrap();
        let b = Tensor::from_i8(vec![2, 3], &[1, 2, 3, 5, 5, -6]).unwrap();
        assert_eq!(compare(&a, &a, &Tolerance::default()), None);
        let found = compare(&a, &b, &Tolerance::default()).unwrap();
        assert_eq!((found.first, found.index.as_slice(), found.values), (3, &[1, 0][..], [4, 5].map(Number::Whole)));
        assert_eq!((found.differing, found.elements, found.largest), (2, 6, 12.0));
        let found = compare(&a, &b, &Tolerance { steps: 1, relative: 0.0 }).unwrap();
        assert_eq!((found.first, found.differing), (5, 1));
        assert_eq!(compare(&a, &b, &Tolerance { steps: 12, relative: 0.0 }), None);
    }

    #[test]
    fn integers_of_64_bits_are_compared_exactly() {
        let wide = |value: i64| Tensor::new(DType::I64, vec![1], value.to_le_bytes().to_vec()).unwrap();
        let (a, b) = (wide(i64::MAX), wide(i64::MAX - 2));
        let found = compare(&a, &b, &Tolerance { steps: 1, relative: 0.0 }).unwrap();
        assert_eq!(found.values.map(|v| v.to_string()), ["9223372036854775807", "9223372036854775805"]);
        assert_eq!(found.largest, 2.0);
        assert_eq!(compare(&a, &b, &Tolerance { steps: 2, relative: 0.0 }), None);
    }

    #[test]
    fn floats_are_measured_by_the_greatest_and_what_is_no_number_differs() {
        let (a, b) = (floats(&[0.0, 1.0, 100.0, 3.0]), floats(&[-0.0, 1.005, 100.0, 3.0]));
        assert_eq!(compare(&a, &b, &Tolerance::default()).unwrap().first, 1);
        assert_eq!(compare(&a, &b, &Tolerance { steps: 0, relative: 1e-4 }), None);
        let nan = floats(&[0.0, f32::NAN, 100.0, f32::INFINITY]);
        assert_eq!(compare(&nan, &nan, &Tolerance::default()), None);
        let found = compare(&a, &nan, &Tolerance { steps: 0, relative: 1.0 }).unwrap();
        assert_eq!((found.differing, found.largest), (2, f64::INFINITY));
    }
}
