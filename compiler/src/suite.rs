//! The test suite of operator problems. Every way of running an operator is compared with the graph's reference
//! evaluation on all problems.
//!
//! Problems have random sizes, attributes and data from a seed, so that a runner can take as many as it has time for.
//! Each call of [`problems`] covers every operator that backends can get.

mod integer;
mod listings;
mod special;

pub use listings::check_listings;
pub use special::special_numbers;

use tilewright_hw::num::{Qadd, QaddOperand, Rounding};

use tilewright_runtime::tensor::NarrowFloat;

use crate::graph::op::{
    Add, ArgReduce, AvgPool2d, Binary, BinaryKind, Bitcast, Cast, Clip, Compute, Concat, Conv2d, Dense, Dequantize,
    Expand, Gather, GatherElements, GlobalAvgPool, HybridDense, LayerNorm, Layout, MatMul, MaxPool2d, Narrow, Pad,
    QAdd, QAvgPool2d, QuantRounding, Quantize, Reduce, ReduceKind, Relu, Requantize, Resample, Rescale, Reshape,
    Select, ShiftSign, Slice, Softmax, SumPool2d, Transpose, Unary, UnaryKind,
};
use crate::graph::{DType, Graph, GraphBuilder, GraphError, Op, Tensor, TensorType};

/// A test problem: one operator with data.
#[derive(Debug, Clone)]
pub struct Problem {
    /// The operator's name and the round.
    pub name: String,
    /// A graph of only the operator. All its operands are inputs.
    pub graph: Graph,
    /// Data for the inputs.
    pub inputs: Vec<Tensor>,
}

/// A small generator of random numbers, so that problems are the same on every machine.
#[derive(Debug, Clone)]
pub struct Numbers(u64);

impl Numbers {
    /// Creates a generator with a seed.
    pub fn new(seed: u64) -> Numbers {
        Numbers(seed.wrapping_mul(2).wrapping_add(1))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) ^ (self.0 >> 48)
    }

    /// Returns a number from `lo` to `hi`, both included.
    pub fn int(&mut self, lo: i64, hi: i64) -> i64 {
        lo + (self.next() % (hi - lo + 1) as u64) as i64
    }

    /// Returns a size from `lo` to `hi`, both included.
    pub fn size(&mut self, lo: usize, hi: usize) -> usize {
        self.int(lo as i64, hi as i64) as usize
    }

    /// Returns a number from -2 to 2.
    pub fn float(&mut self) -> f32 {
        (self.next() % 4_000_001) as f32 / 1e6 - 2.0
    }

    /// Returns a tensor of random numbers over the type's range. Magnitudes are at most 2^20 for i32 and 2^40 for i64.
    pub fn tensor(&mut self, ty: &TensorType) -> Tensor {
        let shape = ty.shape().unwrap_or_default();
        match ty.dtype {
            DType::F32 => Tensor::from_fn(&shape, |_| self.float()),
            DType::I8 => Tensor::from_fn(&shape, |_| self.int(-128, 127) as i8),
            DType::U8 => Tensor::from_fn(&shape, |_| self.int(0, 255) as u8),
            DType::I32 => Tensor::from_fn(&shape, |_| self.int(-(1 << 20), 1 << 20) as i32),
            DType::I64 => Tensor::from_fn(&shape, |_| self.int(-(1 << 40), 1 << 40)),
            DType::Bool => Tensor::from_fn(&shape, |_| self.int(0, 1) == 1),
            DType::F64 => Tensor::from_fn(&shape, |_| f64::from(self.float())),
            DType::I16 => Tensor::from_fn(&shape, |_| self.int(-(1 << 15), (1 << 15) - 1) as i16),
            DType::U16 => Tensor::from_fn(&shape, |_| self.int(0, (1 << 16) - 1) as u16),
            DType::U32 => Tensor::from_fn(&shape, |_| self.int(0, (1 << 32) - 1) as u32),
            // Half of them are above 2^63.
            DType::U64 => Tensor::from_fn(&shape, |_| self.int(-(1 << 40), 1 << 40) as u64),
        }
    }
}

/// Returns problems for all operators, `rounds` of each kind.
///
/// # Errors
/// If an operator rejects the problem generated for it, which is a bug in this module.
pub fn problems(seed: u64, rounds: usize) -> Result<Vec<Problem>, GraphError> {
    let mut list = Vec::new();
    for round in 0..rounds {
        for (kind, make) in KINDS.iter().chain(integer::KINDS).enumerate() {
            let mut n = Numbers::new(seed.wrapping_add((round * 1000 + kind) as u64));
            let layout = if round % 2 == 0 { Layout::Nhwc } else { Layout::Nchw };
            let (op, types, fixed) = make(&mut n, layout);
            let name = format!("{} {round}", op.name());
            // The tensor expression of a transposed convolution multiplies inserted zeros with weights. With NaN or
            // infinite weights that gives NaN, unlike the reference, so only the data get special numbers.
            let sprinkled = if matches!(op, Op::ConvTranspose2d(_)) { 1 } else { types.len() };
            let mut b = GraphBuilder::new(op.name());
            let inputs: Vec<_> = types.iter().enumerate().map(|(i, t)| b.input(&format!("x{i}"), t.clone())).collect();
            let out = b.node("op", op, &inputs)?;
            b.output("y", out);
            let mut data: Vec<Tensor> = types.iter().map(|t| n.tensor(t)).collect();
            for (i, t) in fixed {
                data[i] = t;
            }
            // In a third of the problems, some floats are NaN or infinite.
            let mut special = Numbers::new(seed ^ (round * 1000 + kind) as u64 ^ 0x4e61_4e00);
            if special.int(0, 2) == 0 {
                data.iter_mut().take(sprinkled).for_each(|t| *t = special.sprinkled(t));
            }
            list.push(Problem { name, graph: b.finish()?, inputs: data });
        }
    }
    Ok(list)
}

/// Returns the greatest difference between two tensors: absolute for integers, and for floats relative to the greatest
/// magnitude in `want`. Infinite if type or shape differ, or if only one of two elements is NaN.
pub fn difference(got: &Tensor, want: &Tensor) -> f64 {
    if got.ty() != want.ty() {
        return f64::INFINITY;
    }
    let (dtype, got, want) = (want.dtype(), got.doubles(), want.doubles());
    let scale = match dtype {
        t if t.is_float() => want.iter().filter(|v| v.is_finite()).fold(f64::MIN_POSITIVE, |m, v| m.max(v.abs())),
        _ => 1.0,
    };
    tilewright_runtime::tensor::largest_distance(got, want) / scale
}

/// The most that [`difference`] may be for code that computes sums and functions of floats in its own order and way.
pub fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F32 => 1e-5,
        DType::F64 => 1e-13,
        _ => 0.0,
    }
}

/// An operator, the types of its operands, and the operands that cannot have arbitrary data.
type MadeProblem = (Op, Vec<TensorType>, Vec<(usize, Tensor)>);

type ProblemMaker = fn(&mut Numbers, Layout) -> MadeProblem;

fn any(n: &mut Numbers, types: &[DType]) -> DType {
    types[n.size(0, types.len() - 1)]
}

const KINDS: &[ProblemMaker] = &[
    |n, l| conv(n, l, DType::F32),
    |n, l| conv(n, l, DType::F64),
    |n, l| conv(n, l, DType::I8),
    |n, l| conv(n, l, DType::I8),
    |n, _| dense(n, DType::F32),
    |n, _| dense(n, DType::F64),
    |n, _| dense(n, DType::I8),
    |n, _| hybrid_dense(n, false),
    |n, _| hybrid_dense(n, true),
    |n, _| matmul(n, DType::F32),
    |n, _| matmul(n, DType::F64),
    |n, _| {
        let s = [n.size(1, 3), n.size(1, 5), n.size(1, 6)];
        (Add {}.into(), vec![ty(DType::F32, &s), ty(DType::F32, &[s[1], 1])], vec![])
    },
    |n, _| {
        let s = [n.size(1, 3), n.size(1, 5)];
        let t = any(n, DType::NUMBERS);
        (Add {}.into(), vec![ty(t, &s), ty(t, &s)], vec![])
    },
    |n, _| {
        let kind = UnaryKind::ALL[n.size(0, UnaryKind::ALL.len() - 1)];
        let dtype = if kind == UnaryKind::Not { DType::Bool } else { any(n, DType::FLOATS) };
        (Unary { kind, alpha: 0.2, beta: 0.5 }.into(), vec![ty(dtype, &[n.size(1, 40), 3])], vec![])
    },
    |n, _| {
        let kind = [UnaryKind::Abs, UnaryKind::Neg, UnaryKind::Sign, UnaryKind::Not][n.size(0, 3)];
        (Unary::new(kind).into(), vec![ty(any(n, DType::INTEGERS), &[n.size(1, 40)])], vec![])
    },
    |n, _| {
        let kind = BinaryKind::ALL[n.size(0, BinaryKind::ALL.len() - 1)];
        let all = kind.operands();
        let t = any(n, all);
        let s = [n.size(1, 3), n.size(1, 5), n.size(1, 6)];
        (Binary { kind }.into(), vec![ty(t, &s), ty(t, &[s[1], 1])], vec![])
    },
    |n, _| {
        let kind = [BinaryKind::Sub, BinaryKind::Mul, BinaryKind::Div, BinaryKind::Pow][n.size(0, 3)];
        let s = [n.size(1, 3), n.size(1, 5), n.size(1, 6)];
        (Binary { kind }.into(), vec![ty(DType::F32, &s[1..]), ty(DType::F32, &s)], vec![])
    },
    |n, _| {
        let (from, dtype) = (any(n, &DType::ALL), any(n, &DType::ALL));
        (Cast { dtype }.into(), vec![ty(from, &[n.size(1, 40), 3])], vec![])
    },
    |n, _| {
        let (t, s) = (any(n, &DType::ALL), [n.size(1, 3), n.size(1, 5), n.size(1, 6)]);
        (Select {}.into(), vec![ty(DType::Bool, &[s[1], 1]), ty(t, &s), ty(t, &[s[2]])], vec![])
    },
    |n, _| {
        let shape = vec![n.size(1, 3), n.size(1, 5), n.size(1, 6)];
        let data = ty(any(n, &DType::ALL), &[shape[1], 1]);
        (Expand { shape }.into(), vec![data], vec![])
    },
    |n, _| {
        let kind = [ReduceKind::Sum, ReduceKind::Mean, ReduceKind::Max, ReduceKind::Min][n.size(0, 3)];
        let axes = [vec![0], vec![1, 2], vec![0, 2], vec![0, 1, 2]][n.size(0, 3)].clone();
        let t = match kind {
            ReduceKind::Mean => any(n, DType::FLOATS),
            _ => any(n, DType::NUMBERS),
        };
        let s = [n.size(1, 5), n.size(1, 6), n.size(1, 9)];
        (Reduce { kind, axes, keep_dims: n.int(0, 1) == 0 }.into(), vec![ty(t, &s)], vec![])
    },
    |n, _| {
        let t = any(n, DType::NUMBERS);
        let (axis, s) = (n.size(0, 2), [n.size(1, 5), n.size(1, 6), n.size(1, 9)]);
        let (dtype, flag) =
            (if n.int(0, 1) == 0 { DType::I32 } else { DType::I64 }, |n: &mut Numbers| n.int(0, 1) == 0);
        let op = ArgReduce { axis, keep_dims: flag(n), greatest: flag(n), last: flag(n), dtype };
        (op.into(), vec![ty(t, &s)], vec![])
    },
    |n, _| {
        let (axis, t) = (n.size(0, 2), any(n, &DType::ALL));
        let s = [n.size(1, 4), n.size(1, 4), n.size(1, 4)];
        let part = |n: &mut Numbers| {
            let mut s = s;
            s[axis] = n.size(1, 4);
            ty(t, &s)
        };
        (Concat { axis }.into(), vec![part(n), part(n), part(n)], vec![])
    },
    |n, _| {
        let s = [n.size(1, 6), n.size(1, 7), n.size(1, 8)];
        let (mut starts, mut sizes, mut steps) = (vec![], vec![], vec![]);
        for &d in &s {
            let (step, start) = (n.size(1, 3), n.size(0, d - 1));
            let back = n.int(0, 1) == 0;
            sizes.push(n.size(1, (if back { start } else { d - 1 - start }) / step + 1));
            steps.push(if back { -(step as i64) } else { step as i64 });
            starts.push(start);
        }
        (Slice { starts, sizes, steps }.into(), vec![ty(any(n, &DType::ALL), &s)], vec![])
    },
    |n, _| {
        let (axis, s) = (n.size(0, 2), [n.size(1, 5), n.size(1, 6), n.size(1, 4)]);
        let rows = n.size(1, 4);
        let elements = n.int(0, 1) == 0;
        let mut shape = if elements { s.to_vec() } else { vec![rows, 2] };
        if elements {
            shape[axis] = rows;
        }
        let most = s[axis] as i64;
        let indices = Tensor::from_fn(&shape, |_| n.int(-most, most - 1));
        let op: Op = if elements { GatherElements { axis }.into() } else { Gather { axis }.into() };
        (op, vec![ty(DType::F32, &s), indices.ty()], vec![(1, indices)])
    },
    |n, _| {
        let (axis, s) = (n.size(0, 2), [n.size(1, 5), n.size(1, 6), n.size(1, 4)]);
        let shape = [n.size(1, 8), n.size(1, 4)];
        let indices = Tensor::from_fn(&shape, |_| n.int(0, s[axis] as i64 - 1) as i32);
        let t = any(n, DType::FLOATS);
        (Resample { axis }.into(), vec![ty(t, &s), indices.ty(), ty(t, &shape)], vec![(1, indices)])
    },
    |n, _| {
        let float = NarrowFloat::ALL[n.size(0, 7)];
        let saturate = n.int(0, 1) == 0;
        // Ones that are too large for some types, and too small.
        let data = Tensor::from_fn(&[n.size(40, 90)], |_| n.float() * 2f32.powi(n.int(-30, 24) as i32));
        (Narrow { float, saturate }.into(), vec![data.ty()], vec![(0, data)])
    },
    |n, _| (Relu {}.into(), vec![ty(any(n, DType::NUMBERS), &[n.size(1, 40), 3])], vec![]),
    |n, _| {
        let (from, to) = (any(n, DType::NUMBERS), n.size(0, DType::NUMBERS.len() - 1));
        let to = DType::NUMBERS.iter().cycle().skip(to).find(|t| t.size_bytes() == from.size_bytes());
        (Bitcast { dtype: *to.unwrap_or(&from) }.into(), vec![ty(from, &[n.size(1, 40), 3])], vec![])
    },
    |n, _| {
        let t = ty(any(n, DType::FLOATS), &[n.size(1, 40)]);
        (Clip { lo: -0.5, hi: 1.25 }.into(), vec![t], vec![])
    },
    |n, _| (Clip { lo: -100.0, hi: 3.0 }.into(), vec![ty(DType::I8, &[n.size(1, 70)])], vec![]),
    |n, l| {
        let t = any(n, DType::FLOATS);
        max_pool(n, l, t)
    },
    |n, l| max_pool(n, l, DType::I8),
    |n, l| {
        let t = any(n, DType::FLOATS);
        avg_pool(n, l, t, false)
    },
    |n, l| avg_pool(n, l, DType::I8, false),
    |n, l| avg_pool(n, l, DType::I8, true),
    |n, l| {
        let (data, kernel, strides, pads) = pool(n, l, DType::I8);
        let op = SumPool2d { kernel, strides, pads, layout: l, data_zero_point: n.int(-128, 127) as i32 };
        (op.into(), vec![data], vec![])
    },
    qavg_pool,
    |n, l| {
        let t = any(n, DType::FLOATS);
        (GlobalAvgPool { layout: l, lo: -128, hi: 127 }.into(), vec![pool(n, l, t).0], vec![])
    },
    |n, l| (GlobalAvgPool { layout: l, lo: -100, hi: 90 }.into(), vec![pool(n, l, DType::I8).0], vec![]),
    |n, _| {
        // More elements than division by a multiplier supports.
        let s = [1, n.size(54, 58), n.size(55, 60), 2];
        (GlobalAvgPool { layout: Layout::Nhwc, lo: -128, hi: 127 }.into(), vec![ty(DType::I8, &s)], vec![])
    },
    |n, _| {
        let v = |n: &mut Numbers| (0..3).map(|_| n.size(0, 2)).collect::<Vec<_>>();
        let t = any(n, DType::NUMBERS);
        let value = if t.is_unsigned() { n.int(0, 255) } else { n.int(-128, 127) } as f32;
        let op = Pad { before: v(n), after: v(n), value };
        (op.into(), vec![ty(t, &[n.size(1, 4), n.size(1, 4), n.size(1, 4)])], vec![])
    },
    |n, _| {
        let (a, b, c) = (n.size(1, 4), n.size(1, 5), n.size(1, 6));
        let shape = [vec![a as i64, -1], vec![(c * a) as i64, b as i64], vec![1, 1, -1, c as i64]];
        (Reshape { shape: shape[n.size(0, 2)].clone() }.into(), vec![ty(DType::I8, &[a, b, c])], vec![])
    },
    |n, _| {
        let perms = [[0, 2, 3, 1], [0, 3, 1, 2], [3, 2, 1, 0], [1, 0, 3, 2]];
        let perm = perms[n.size(0, 3)].to_vec();
        let s = [n.size(1, 3), n.size(1, 4), n.size(1, 5), n.size(1, 6)];
        (Transpose { perm }.into(), vec![ty(DType::F32, &s)], vec![])
    },
    |n, _| {
        let axis = n.size(0, 2);
        let s = [n.size(1, 4), n.size(1, 12), n.size(1, 5)];
        (Softmax::float(axis, 1.0).into(), vec![ty(any(n, DType::FLOATS), &s)], vec![])
    },
    |n, _| {
        // Rows with and without partial sums for lanes, and with elements that fill no whole vector.
        let op = Softmax::float(1, 0.5);
        (op.into(), vec![ty(DType::F32, &[n.size(1, 4), n.size(30, 70)])], vec![])
    },
    |n, _| {
        let (s, axis) = ([n.size(1, 3), n.size(1, 4), n.size(1, 60)], n.size(0, 2));
        let parameters = n.size(0, 2);
        let t = any(n, DType::FLOATS);
        let types = std::iter::once(ty(t, &s)).chain((0..parameters).map(|_| ty(t, &s[axis..])));
        (LayerNorm { axis, epsilon: 1e-5 }.into(), types.collect(), vec![])
    },
    |n, _| {
        let (output_scale, output_zero_point) = (1.0 / 256.0, -128);
        let op = Softmax { axis: 1, beta: 1.0, input_scale: 0.07, output_scale, output_zero_point };
        (op.into(), vec![ty(DType::I8, &[n.size(1, 4), n.size(1, 70)])], vec![])
    },
    |n, _| {
        let rounding = if n.int(0, 1) == 0 { QuantRounding::HalfEven } else { QuantRounding::HalfAway };
        let (scale, zero_point) = (vec![0.015_625], vec![n.int(-128, 127) as i32]);
        let op = Quantize { scale, zero_point, axis: 0, rounding, dtype: DType::I8 };
        (op.into(), vec![ty(DType::F32, &[n.size(1, 60)])], vec![])
    },
    |n, _| {
        let c = n.size(2, 5);
        let scale = (0..c).map(|i| 0.01 + i as f32 * 0.003).collect();
        let zero_point = (0..c).map(|_| n.int(0, 255) as i32).collect();
        let op = Quantize { scale, zero_point, axis: 1, rounding: QuantRounding::HalfEven, dtype: DType::U8 };
        (op.into(), vec![ty(DType::F32, &[n.size(1, 6), c])], vec![])
    },
    |n, _| {
        let c = n.size(1, 4);
        let scale = (0..c).map(|i| 0.02 + i as f32 * 0.01).collect();
        let signed: Vec<i32> = (0..c).map(|_| n.int(-128, 127) as i32).collect();
        let dtype = [DType::I8, DType::U8, DType::I32][n.size(0, 2)];
        // A zero point must fit the tensor's type.
        let zero_point = signed.iter().map(|zero| if dtype == DType::U8 { zero + 128 } else { *zero }).collect();
        (Dequantize { scale, zero_point, axis: 0 }.into(), vec![ty(dtype, &[c, n.size(1, 9)])], vec![])
    },
    requantize,
    |n, _| {
        let operand = |n: &mut Numbers| QaddOperand {
            zero_point: n.int(-128, 127) as i32,
            multiplier: n.int(1 << 30, i32::MAX as i64) as i32,
            shift: n.int(-4, 0) as i8,
        };
        let (a, b) = (operand(n), operand(n));
        let out = QaddOperand { shift: n.int(-20, -17) as i8, ..operand(n) };
        let s = [n.size(1, 3), n.size(1, 5), n.size(1, 6)];
        let params = Qadd { a, b, out, left_shift: 20, lo: -128, hi: n.int(0, 127) as i32 };
        (QAdd { params }.into(), vec![ty(DType::I8, &s), ty(DType::I8, &s[1..])], vec![])
    },
    |n, _| {
        let t = ty(if n.int(0, 1) == 0 { DType::I8 } else { DType::U8 }, &[n.size(1, 50)]);
        if n.int(0, 1) == 0 || t.dtype == DType::U8 {
            return (ShiftSign {}.into(), vec![t], vec![]);
        }
        let op = Rescale {
            data_zero_point: n.int(-128, 127) as i32,
            multiplier: n.int(1 << 30, i32::MAX as i64) as i32,
            shift: n.int(-2, 2) as i8,
            zero_point: n.int(-128, 127) as i32,
            lo: -128,
            hi: 127,
            mode: Rounding::Double,
        };
        (op.into(), vec![t], vec![])
    },
    compute,
];

/// Sums of a window, which begins before the first element and ends behind the last one. Then indices pick rows of the
/// sums; some indices are out of range.
fn compute(n: &mut Numbers, _: Layout) -> MadeProblem {
    let [rows, columns, taps, picked] = [n.size(1, 5), n.size(1, 20), n.size(1, 4), n.size(1, 6)];
    let (dtype, zero) = if n.int(0, 1) == 0 { (DType::F32, "0.0f32") } else { (DType::I32, "0i32") };
    let text = format!(
        "te own {{
           input x: {dtype}[{rows}, {columns}]
           input w: {dtype}[{taps}]
           input which: i64[{picked}]
           sums: {dtype}[i in {rows}, j in {columns}] = sum(k in {taps}) x[i, j + k - 1] * w[k]
           output y: {dtype}[i in {picked}, j in {columns}] = max(sums[which[i], j], {zero}) + x[0, j / 2]
         }}"
    );
    let which = Tensor::from_fn(&[picked], |_| n.int(-2, rows as i64 + 1));
    let types = vec![ty(dtype, &[rows, columns]), ty(dtype, &[taps]), ty(DType::I64, &[picked])];
    (Compute { expression: text.parse().expect("it is an expression") }.into(), types, vec![(2, which)])
}

fn ty(dtype: DType, shape: &[usize]) -> TensorType {
    TensorType::new(dtype, shape)
}

fn image(layout: Layout, dtype: DType, [n, h, w, c]: [usize; 4]) -> TensorType {
    match layout {
        Layout::Nhwc => ty(dtype, &[n, h, w, c]),
        Layout::Nchw => ty(dtype, &[n, c, h, w]),
    }
}

fn conv(n: &mut Numbers, layout: Layout, dtype: DType) -> MadeProblem {
    let dilations = [n.size(1, 2), n.size(1, 2)];
    let kernel = [n.size(1, 3), n.size(1, 4)];
    let reach = |i: usize| (kernel[i] - 1) * dilations[i] + 1;
    let (h, w) = (n.size(reach(0), 9), n.size(reach(1), 11));
    let (groups, depth, per_group) = match n.int(0, 3) {
        0 => (n.size(2, 5), 1, 1),
        1 => (n.size(2, 3), n.size(1, 3), n.size(1, 3)),
        _ => (1, n.size(1, 19), n.size(1, 9)),
    };
    let pads = [n.size(0, 2), n.size(0, 2), n.size(0, 2), n.size(0, 2)];
    let strides = [n.size(1, 3), n.size(1, 2)];
    let data_zero_point = if dtype == DType::I8 { n.int(-128, 127) as i32 } else { 0 };
    let weight_zero_point = weight_zero_point(n, dtype);
    let op = Conv2d { strides, pads, dilations, groups, layout, data_zero_point, weight_zero_point };
    let out = groups * per_group;
    let data = image(layout, dtype, [n.size(1, 2), h, w, groups * depth]);
    let mut types = vec![data, ty(dtype, &[out, kernel[0], kernel[1], depth])];
    if dtype.is_float() && n.int(0, 2) > 0 {
        types.push(ty(dtype, &[out]));
    }
    (op.into(), types, vec![])
}

/// Returns a random weight zero point. 0 for floats and half of the time.
fn weight_zero_point(n: &mut Numbers, dtype: DType) -> i32 {
    if dtype == DType::I8 && n.int(0, 1) == 1 { n.int(-128, 127) as i32 } else { 0 }
}

fn hybrid_dense(n: &mut Numbers, asymmetric: bool) -> MadeProblem {
    let (m, k, o) = (n.size(1, 3), n.size(1, 24), n.size(1, 7));
    let vector = ty(DType::F32, &[o]);
    let types = vec![ty(DType::F32, &[m, k]), ty(DType::I8, &[o, k]), vector.clone(), vector];
    (HybridDense { asymmetric }.into(), types, vec![])
}

fn dense(n: &mut Numbers, dtype: DType) -> MadeProblem {
    let (m, k, p) = (n.size(1, 3), n.size(1, 70), n.size(1, 20));
    let mut types = vec![ty(dtype, &[m, k]), ty(dtype, &[p, k])];
    let mut data_zero_point = 0;
    if dtype.is_float() {
        types.push(ty(dtype, &[p]));
    } else {
        data_zero_point = n.int(-128, 127) as i32;
    }
    let weight_zero_point = weight_zero_point(n, dtype);
    (Dense { data_zero_point, weight_zero_point }.into(), types, vec![])
}

fn matmul(n: &mut Numbers, t: DType) -> MadeProblem {
    let (m, k, p) = (n.size(1, 5), n.size(1, 9), n.size(1, 6));
    let (a, b) = (n.size(1, 3), n.size(1, 2));
    (MatMul {}.into(), vec![ty(t, &[a, 1, m, k]), ty(t, &[b, k, p])], vec![])
}

/// Returns an image, and a kernel, strides and pads that fit it.
fn pool(n: &mut Numbers, layout: Layout, dtype: DType) -> (TensorType, [usize; 2], [usize; 2], [usize; 4]) {
    let kernel = [n.size(1, 4), n.size(1, 4)];
    let data = image(layout, dtype, [n.size(1, 2), n.size(4, 9), n.size(4, 9), n.size(1, 7)]);
    let mut pad = |i: usize| n.size(0, (kernel[i] - 1).min(2));
    let pads = [pad(0), pad(1), pad(0), pad(1)];
    (data, kernel, [n.size(1, 3), n.size(1, 3)], pads)
}

fn max_pool(n: &mut Numbers, layout: Layout, dtype: DType) -> MadeProblem {
    let (data, kernel, strides, pads) = pool(n, layout, dtype);
    (MaxPool2d { kernel, strides, pads, dilations: [1, 1], layout }.into(), vec![data], vec![])
}

fn avg_pool(n: &mut Numbers, layout: Layout, dtype: DType, all: bool) -> MadeProblem {
    let (data, kernel, strides, pads) = pool(n, layout, dtype);
    let op = AvgPool2d {
        kernel,
        strides,
        pads,
        count_include_pad: all,
        layout,
        lo: -120,
        hi: 127,
        unsigned: n.int(0, 1) == 1,
    };
    (op.into(), vec![data], vec![])
}

fn qavg_pool(n: &mut Numbers, layout: Layout) -> MadeProblem {
    let (data, kernel, strides, pads) = pool(n, layout, DType::I8);
    let mode = if n.int(0, 1) == 0 { Rounding::Double } else { Rounding::Single };
    let all = kernel[0] * kernel[1];
    let op = QAvgPool2d {
        kernel,
        strides,
        pads,
        layout,
        data_zero_point: n.int(-128, 127) as i32,
        multiplier: (0..all).map(|_| n.int(1 << 30, i32::MAX as i64) as i32).collect(),
        shift: (0..all).map(|_| if mode == Rounding::Double { n.int(-4, 1) } else { n.int(0, 4) } as i32).collect(),
        zero_point: n.int(-20, 20) as i32,
        lo: n.int(-128, -100) as i32,
        hi: 127,
        mode,
    };
    (op.into(), vec![data], vec![])
}

fn requantize(n: &mut Numbers, layout: Layout) -> MadeProblem {
    let s = [n.size(1, 2), n.size(1, 4), n.size(1, 4), n.size(1, 9)];
    let (axis, mode) = (layout.channel_axis(), if n.int(0, 1) == 0 { Rounding::Double } else { Rounding::Single });
    let zero_point = n.int(-128, 127) as i32;
    let op = Requantize { axis, zero_point, lo: n.int(-128, 0) as i32, hi: n.int(1, 127) as i32, mode };
    let (c, acc) = (ty(DType::I32, &[s[axis]]), ty(DType::I32, &s));
    let multipliers = Tensor::from_fn(&[s[axis]], |_| n.int(1 << 30, i32::MAX as i64) as i32);
    let (lo, hi) = if mode == Rounding::Double { (-15, 2) } else { (0, 15) };
    let shifts = Tensor::from_fn(&[s[axis]], |_| n.int(lo, hi) as i32);
    (op.into(), vec![acc, c.clone(), c.clone(), c], vec![(2, multipliers), (3, shifts)])
}
