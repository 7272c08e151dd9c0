//! Runs NaN, infinities and zeros of both signs through every function of floats.

use super::{Numbers, Problem, ty};
use crate::graph::op::{
    ArgReduce, Binary, BinaryKind, Cast, Clip, Concat, Layout, MaxPool2d, QuantRounding, Quantize, Reduce, ReduceKind,
    Relu, Reshape, Softmax, Unary, UnaryKind,
};
use crate::graph::{DType, GraphBuilder, GraphError, Op, Tensor};

/// Values that code easily mishandles, and ordinary ones in between.
const VALUES: [f32; 10] = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0, 0.5, -0.5, 1.5, -1.5, 40.0];

/// Rows with a NaN at each place, with infinities, and with only infinities.
const ROWS: [[f32; 5]; 10] = {
    let (n, i) = (f32::NAN, f32::INFINITY);
    [
        [n, 1.0, 2.0, -1.0, 0.5],
        [1.0, n, 2.0, -1.0, 0.5],
        [1.0, 2.0, n, -1.0, 0.5],
        [1.0, 2.0, -1.0, n, 0.5],
        [1.0, 2.0, -1.0, 0.5, n],
        [n, n, i, -i, n],
        [1.0, i, 2.0, i, 0.5],
        [-i, 1.0, 0.5, -i, 0.0],
        [-i, -i, -i, -i, -i],
        [i, i, i, i, i],
    ]
};

/// Returns a problem that applies every float function to `VALUES` and pairs of them, and every reduction to
/// `ROWS`, in one graph.
///
/// # Errors
/// [`GraphError`] if an operator rejects its operands.
pub fn special_numbers() -> Result<Problem, GraphError> {
    let (count, [rows, columns]) = (VALUES.len(), [ROWS.len(), ROWS[0].len()]);
    let mut b = GraphBuilder::new("special_numbers");
    let x = b.input("x", ty(DType::F32, &[count, 1]));
    let y = b.input("y", ty(DType::F32, &[1, count]));
    let z = b.input("z", ty(DType::F32, &[rows, columns]));
    let mut results = Vec::new();
    for kind in UnaryKind::ALL.into_iter().filter(|kind| *kind != UnaryKind::Not) {
        results.push(b.node("unary", Unary { kind, alpha: 0.25, beta: 0.5 }, &[x])?);
    }
    let (scale, zero_point, rounding) = (vec![0.5], vec![5], QuantRounding::HalfEven);
    let one: [Op; 5] = [
        Relu {}.into(),
        Clip { lo: -1.0, hi: 1.0 }.into(),
        Clip { lo: f32::NEG_INFINITY, hi: 0.0 }.into(),
        Cast { dtype: DType::I32 }.into(),
        Quantize { scale, zero_point, axis: 0, rounding, dtype: DType::I8 }.into(),
    ];
    for op in one {
        results.push(b.node("one", op, &[x])?);
    }
    for kind in BinaryKind::ALL.into_iter().filter(|kind| kind.operands().contains(&DType::F32)) {
        results.push(b.node("binary", Binary { kind }, &[x, y])?);
    }
    for axes in [vec![0], vec![1], vec![0, 1]] {
        for kind in [ReduceKind::Sum, ReduceKind::Mean, ReduceKind::Max, ReduceKind::Min] {
            results.push(b.node("reduce", Reduce { kind, axes: axes.clone(), keep_dims: false }, &[z])?);
        }
    }
    for (axis, greatest, last) in [(0, true, false), (1, true, true), (1, false, false), (0, false, true)] {
        let op = ArgReduce { axis, keep_dims: false, greatest, last, dtype: DType::I32 };
        results.push(b.node("arg", op, &[z])?);
    }
    results.push(b.node("softmax", Softmax::float(1, 1.0), &[z])?);
    let image = b.node("image", Reshape { shape: vec![1, rows as i64, 1, columns as i64] }, &[z])?;
    for (layout, kernel, pads) in [(Layout::Nhwc, [3, 1], [1, 0, 1, 0]), (Layout::Nchw, [1, 3], [0, 1, 0, 1])] {
        let op = MaxPool2d { kernel, strides: [1, 1], pads, dilations: [1, 1], layout };
        results.push(b.node("pool", op, &[image])?);
    }
    let mut parts = Vec::new();
    for v in results {
        let part = if b.ty(v).dtype == DType::F32 { v } else { b.node("number", Cast { dtype: DType::F32 }, &[v])? };
        parts.push(b.node("part", Reshape { shape: vec![-1] }, &[part])?);
    }
    let all = b.node("all", Concat { axis: 0 }, &parts)?;
    b.output("all", all);
    let values = |shape: &[usize]| Tensor::from_fn(shape, |i| VALUES[i]);
    let table = Tensor::from_fn(&[rows, columns], |i| ROWS[i / columns][i % columns]);
    let inputs = vec![values(&[count, 1]), values(&[1, count]), table];
    Ok(Problem { name: "special numbers".into(), graph: b.finish()?, inputs })
}

impl Numbers {
    /// Replaces some floats of a tensor by NaN, infinities and zeros of both signs: at most three, so that sums of the
    /// other elements are still numbers, or a quarter of the elements.
    pub fn sprinkled(&mut self, t: &Tensor) -> Tensor {
        if !t.dtype().is_float() {
            return t.clone();
        }
        let mut new = t.doubles();
        let count = if self.int(0, 1) == 0 { 3 } else { new.len() / 4 };
        for _ in 0..count.min(new.len()) {
            let at = self.size(0, new.len() - 1);
            new[at] = VALUES[self.size(0, VALUES.len() - 1)].into();
        }
        let new = Tensor::from_fn(t.shape(), |i| new[i]);
        Cast { dtype: t.dtype() }.eval(&[&new]).unwrap_or_else(|_| t.clone())
    }
}
