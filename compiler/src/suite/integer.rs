//! Problems of quantized operators, and of operators that move or interpolate quantized images.

use tilewright_hw::num::{Qadd, QaddOperand, Rounding};

use super::{MadeProblem, Numbers, ProblemMaker, conv, dense, image, ty};
use crate::graph::op::{
    BilinearU8, ConvTranspose2d, HybridConv2d, Layout, Lookup, QMatMul, QMul, QSquaredDifference, Resample,
};
use crate::graph::{DType, Op, Tensor};

pub(super) const KINDS: &[ProblemMaker] = &[
    |n, l| {
        let t = DType::FLOATS[n.size(0, 1)];
        conv_transpose(n, l, t)
    },
    |n, l| conv_transpose(n, l, DType::I8),
    |n, l| wide(n, |n| conv_transpose(n, l, DType::I8)),
    |n, l| wide(n, |n| conv(n, l, DType::I8)),
    |n, _| wide(n, |n| dense(n, DType::I8)),
    |n, _| {
        let (m, k, p) = (n.size(1, 5), n.size(1, 19), n.size(1, 6));
        let (a, b) = (n.size(1, 3), n.size(1, 2));
        let types = vec![ty(DType::I8, &[a, 1, m, k]), ty(DType::I8, &[b, k, p])];
        (QMatMul { a_zero_point: zero(n), b_zero_point: zero(n) }.into(), types, vec![])
    },
    |n, _| {
        let s = [n.size(1, 3), n.size(1, 5), n.size(1, 6)];
        let op = QMul {
            a_zero_point: zero(n),
            b_zero_point: zero(n),
            multiplier: n.int(1 << 30, i32::MAX as i64) as i32,
            shift: n.int(-10, -3) as i8,
            zero_point: zero(n),
            lo: -128,
            hi: n.int(0, 127) as i32,
            mode: Rounding::Double,
        };
        (op.into(), vec![ty(DType::I8, &s), ty(DType::I8, &[s[1], 1])], vec![])
    },
    |n, _| {
        let operand =
            |n: &mut Numbers| QaddOperand { zero_point: zero(n), multiplier: 1 << 30, shift: n.int(-2, 0) as i8 };
        let (a, b) = (operand(n), operand(n));
        let out = QaddOperand { shift: n.int(-20, -15) as i8, ..operand(n) };
        let s = [n.size(1, 3), n.size(1, 5), n.size(1, 6)];
        let params = Qadd { a, b, out, left_shift: 7, lo: -128, hi: 127 };
        (QSquaredDifference { params }.into(), vec![ty(DType::I8, &s), ty(DType::I8, &[s[2]])], vec![])
    },
    |n, _| {
        let (s, axis) = ([n.size(1, 4), n.size(1, 6), n.size(1, 5)], n.size(0, 2));
        let shape = [n.size(1, 9), n.size(1, 3)];
        let indices = Tensor::from_fn(&shape, |_| n.int(0, s[axis] as i64 - 1) as i32);
        let data = if n.int(0, 1) == 0 { DType::I8 } else { DType::I32 };
        let types = vec![ty(data, &s), indices.ty(), ty(DType::I32, &shape)];
        (Resample { axis }.into(), types, vec![(1, indices)])
    },
    |n, _| hybrid_conv(n),
    |n, _| (Lookup {}.into(), vec![ty(DType::I8, &[n.size(1, 90)]), ty(DType::I8, &[256])], vec![]),
    |n, _| {
        let s = [n.size(1, 2), n.size(1, 6), n.size(1, 6), n.size(1, 4)];
        let mut types = vec![ty(DType::I8, &s)];
        let mut fixed = Vec::new();
        for size in [s[1], s[2]] {
            let to = n.size(1, 9);
            // An index outside the image reads the nearest border pixel.
            for _ in 0..2 {
                types.push(ty(DType::I32, &[to]));
                fixed.push((types.len() - 1, Tensor::from_fn(&[to], |_| n.int(-1, size as i64) as i32)));
            }
            types.push(ty(DType::F32, &[to]));
            fixed.push((types.len() - 1, Tensor::from_fn(&[to], |_| n.int(0, 1023) as f32 / 1024.0)));
        }
        let offset = if n.int(0, 1) == 0 { 0.0 } else { 0.5 };
        (BilinearU8 { offset }.into(), types, fixed)
    },
];

fn zero(n: &mut Numbers) -> i32 {
    n.int(-128, 127) as i32
}

/// Changes a product of bytes to i32 weights, which are bytes minus their zero points.
fn wide(n: &mut Numbers, make: impl Fn(&mut Numbers) -> MadeProblem) -> MadeProblem {
    let (mut op, mut types, mut fixed) = make(n);
    match &mut op {
        Op::Conv2d(op) => op.weight_zero_point = 0,
        Op::ConvTranspose2d(op) => op.weight_zero_point = 0,
        Op::Dense(op) => op.weight_zero_point = 0,
        _ => {}
    }
    let shape = types[1].shape().unwrap_or_default();
    fixed.push((1, Tensor::from_fn(&shape, |_| n.int(-255, 255) as i32)));
    types[1] = ty(DType::I32, &shape);
    (op, types, fixed)
}

fn hybrid_conv(n: &mut Numbers) -> MadeProblem {
    let kernel = [n.size(1, 3), n.size(1, 3)];
    let (groups, depth, per_group) = match n.int(0, 2) {
        0 => (n.size(2, 5), 1, 1),
        1 => (2, n.size(1, 3), n.size(1, 3)),
        _ => (1, n.size(1, 9), n.size(1, 5)),
    };
    let op = HybridConv2d {
        strides: [n.size(1, 2), n.size(1, 2)],
        pads: [n.size(0, 1), n.size(0, 1), n.size(0, 1), n.size(0, 1)],
        dilations: [1, 1],
        groups,
        asymmetric: n.int(0, 1) == 1,
    };
    let out = groups * per_group;
    let data = image(Layout::Nhwc, DType::F32, [n.size(1, 2), n.size(3, 7), n.size(3, 7), groups * depth]);
    let vector = ty(DType::F32, &[out]);
    let types = vec![data, ty(DType::I8, &[out, kernel[0], kernel[1], depth]), vector.clone(), vector];
    (op.into(), types, vec![])
}

fn conv_transpose(n: &mut Numbers, layout: Layout, dtype: DType) -> MadeProblem {
    let (kernel, strides) = ([n.size(1, 4), n.size(1, 4)], [n.size(1, 3), n.size(1, 3)]);
    let dilations = [n.size(1, 2), n.size(1, 2)];
    let from = [n.size(1, 5), n.size(1, 5)];
    let pads = [n.size(0, 2), n.size(0, 2)];
    // A result that ends before or after the last window.
    let size = [0, 1].map(|i| {
        let whole = (from[i] - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1;
        (whole + n.size(0, 2)).saturating_sub(pads[i] + n.size(0, 2)).max(1)
    });
    let (groups, depth, per_group) = match n.int(0, 2) {
        0 => (n.size(2, 3), n.size(1, 2), n.size(1, 2)),
        _ => (1, n.size(1, 9), n.size(1, 5)),
    };
    let integer = dtype == DType::I8;
    let zero = |n: &mut Numbers| if integer { zero(n) } else { 0 };
    let (data_zero_point, weight_zero_point) = (zero(n), zero(n));
    let op = ConvTranspose2d { strides, pads, size, dilations, groups, layout, data_zero_point, weight_zero_point };
    let out = groups * per_group;
    let data = image(layout, dtype, [n.size(1, 2), from[0], from[1], groups * depth]);
    let mut types = vec![data, ty(dtype, &[out, kernel[0], kernel[1], depth])];
    if !integer && n.int(0, 1) > 0 {
        types.push(ty(dtype, &[out]));
    }
    (op.into(), types, vec![])
}
