//! Tests random operators that move elements, and operators of two tensors.

use super::super::{check_on, rtl};
use super::{int8, layout, pixels, problems, qadd, requantize, shape, size, sloped};
use crate::codegen::accel::elementwise;
use crate::graph::op::{
    Binary, BinaryKind, Concat, ConvTranspose2d, Gather, Layout, Lookup, Op, QMul, Reduce, ReduceKind, Slice,
};
use crate::graph::{DType, Graph, GraphBuilder, Tensor, TensorType, ValueId};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tilewright_hw::HwConfig;
use tilewright_hw::num::{Rounding, quantize_multiplier};

fn image(b: &mut GraphBuilder, name: &str, layout: Layout, [n, c, h, w]: [usize; 4]) -> ValueId {
    b.input(name, TensorType::new(DType::I8, &shape(layout, n, c, h, w)))
}

pub(super) fn concat(rng: &mut StdRng) -> Option<Graph> {
    let layout = layout(rng);
    let mut b = GraphBuilder::new("concat");
    let (c, [h, w]) = (size(rng, 40), pixels(rng, 9));
    let mut sizes = [1, c, h, w];
    let along = rng.random_range(1..4);
    let aligned = rng.random_bool(0.3);
    let mut parts = Vec::new();
    for i in 0..rng.random_range(1..4) {
        sizes[along] = rng.random_range(1..40);
        if along == 1 && aligned {
            sizes[along] = 32 * rng.random_range(1..3);
        }
        parts.push(image(&mut b, &format!("x{i}"), layout, sizes));
    }
    let [rows, columns] = layout.spatial_axes();
    let axis = [0, layout.channel_axis(), rows, columns][along];
    let y = b.node("concat", Concat { axis }, &parts).ok()?;
    b.output("y", y);
    Some(b.finish().unwrap())
}

pub(super) fn slice(rng: &mut StdRng) -> Option<Graph> {
    let rank = if rng.random_bool(0.3) { rng.random_range(2..4) } else { 4 };
    let mut dims: Vec<usize> = (0..rank).map(|_| rng.random_range(1..33)).collect();
    if rank > 2 {
        dims[0] = 1;
    }
    let mut b = GraphBuilder::new("slice");
    let x = b.input("x", TensorType::new(DType::I8, &dims));
    let (mut starts, mut sizes, mut steps) = (vec![0; rank], dims.clone(), vec![1; rank]);
    for _ in 0..rng.random_range(1..3) {
        let d = rng.random_range(usize::from(rank > 2)..rank);
        steps[d] = if rng.random_bool(0.4) { rng.random_range(1..4) } else { 1 };
        starts[d] = rng.random_range(0..dims[d]);
        sizes[d] = rng.random_range(1..=(dims[d] - starts[d]).div_ceil(steps[d] as usize));
        if rng.random_bool(0.1) {
            (starts[d], steps[d]) = (starts[d] + (sizes[d] - 1) * steps[d] as usize, -steps[d]);
        }
    }
    let y = b.node("slice", Slice { starts, sizes, steps }, &[x]).ok()?;
    b.output("y", y);
    Some(b.finish().unwrap())
}

/// Nearest resizing by whole and fractional factors.
pub(super) fn resize(rng: &mut StdRng) -> Option<Graph> {
    let layout = layout(rng);
    let (n, c, [h, w]) = (rng.random_range(1..3), size(rng, 40), pixels(rng, 9));
    let sizes = [n, c, h, w];
    let mut b = GraphBuilder::new("resize");
    let mut y = image(&mut b, "x", layout, sizes);
    for (i, axis) in layout.spatial_axes().into_iter().enumerate() {
        let from = sizes[2 + i];
        let to = if rng.random() { from * rng.random_range(1..4) } else { rng.random_range(1..20) };
        let places = Tensor::from_fn(&[to], |o| (o * from / to) as i32);
        let places = b.constant("places", places);
        y = b.node(["rows", "columns"][i], Gather { axis }, &[y, places]).ok()?;
    }
    b.output("y", y);
    Some(b.finish().unwrap())
}

/// An operator of two tensors. One of them can be a constant, or have one value per channel.
pub(super) fn pair(rng: &mut StdRng) -> Option<Graph> {
    let mut b = GraphBuilder::new("pair");
    let n = if rng.random_bool(0.2) { 2 } else { 1 };
    let ([h, w], c) = (pixels(rng, 9), size(rng, 40));
    let dims = [n, h, w, c];
    let x = b.input("x", TensorType::new(DType::I8, &dims));
    let other = match rng.random_range(0..5) {
        0 => vec![1, 1, 1, dims[3]],
        1 => vec![dims[3]],
        2 => vec![dims[1], 1, 1],
        _ => dims.to_vec(),
    };
    let y = match rng.random() {
        false => b.input("y", TensorType::new(DType::I8, &other)),
        true => {
            let one = rng.random_bool(0.3);
            let value = int8(rng, if one { &[1] } else { &other });
            b.constant("y", value)
        }
    };
    let (multiplier, shift) = quantize_multiplier(rng.random_range(0.0005..0.02));
    let mode = if rng.random() { Rounding::Double } else { Rounding::Single };
    let zero = |rng: &mut StdRng| rng.random_range(-128..128);
    // All functions for which there is a vector operation.
    let plain: Vec<BinaryKind> = BinaryKind::ALL.into_iter().filter(|kind| elementwise(*kind).is_some()).collect();
    let op: Op = match rng.random_range(0..2 + plain.len()) {
        0 => qadd(rng).into(),
        1 => QMul {
            a_zero_point: zero(rng),
            b_zero_point: zero(rng),
            multiplier,
            shift: if mode == Rounding::Double { shift } else { -shift },
            zero_point: zero(rng),
            lo: -128,
            hi: 120,
            mode,
        }
        .into(),
        i => Binary { kind: plain[i - 2] }.into(),
    };
    let operands = if rng.random() { [x, y] } else { [y, x] };
    let v = b.node("pair", op, &operands).ok()?;
    b.output("v", v);
    Some(b.finish().unwrap())
}

pub(super) fn transposed(rng: &mut StdRng) -> Option<Graph> {
    let layout = layout(rng);
    let (groups, depth, per_group) = match rng.random_range(0..4) {
        0 => (rng.random_range(2..20), 1, 1),
        1 => (2, rng.random_range(1..9), rng.random_range(1..9)),
        _ => (1, size(rng, 40), size(rng, 40)),
    };
    let strides = [rng.random_range(1..4), rng.random_range(1..4)];
    let from = pixels(rng, 7);
    // Mostly sizes as in networks; otherwise also kernels smaller than the strides, dilations, and any pads and sizes.
    let odd = rng.random_bool(0.4);
    let dilations = [0, 1].map(|_: usize| if odd { rng.random_range(1..4) } else { 1 });
    let kernel = strides.map(|s: usize| if odd { rng.random_range(1..5) } else { s + rng.random_range(0..3) });
    let pads = [0, 1].map(|i| rng.random_range(0..=if odd { 5 } else { (kernel[i] - strides[i]) / 2 }));
    let size = [0, 1].map(|i| {
        let whole = ((from[i] - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1) as i64 - 2 * pads[i] as i64;
        (whole.max(1) + if odd { rng.random_range(0..3) } else { 0 }) as usize
    });
    let op = ConvTranspose2d {
        strides,
        pads,
        size,
        dilations,
        groups,
        layout,
        data_zero_point: rng.random_range(-128..128),
        weight_zero_point: if rng.random() { rng.random_range(-30..30) } else { 0 },
    };
    let mut b = GraphBuilder::new("transposed");
    let x = image(&mut b, "x", layout, [1, groups * depth, from[0], from[1]]);
    let weights = int8(rng, &[groups * per_group, kernel[0], kernel[1], depth]);
    let weights = b.constant("w", weights);
    let acc = b.node("conv", op, &[x, weights]).ok()?;
    let finish = if rng.random_bool(0.3) { sloped } else { requantize };
    let y = finish(rng, &mut b, acc, layout.channel_axis(), depth * 4);
    b.output("y", y);
    Some(b.finish().unwrap())
}

pub(super) fn greatest(rng: &mut StdRng) -> Option<Graph> {
    let layout = layout(rng);
    let mut b = GraphBuilder::new("greatest");
    let sizes = [1, rng.random_range(1..40), rng.random_range(1..9), rng.random_range(1..9)];
    let x = image(&mut b, "x", layout, sizes);
    let axes = layout.spatial_axes().to_vec();
    let y = b.node("max", Reduce { kind: ReduceKind::Max, axes, keep_dims: rng.random() }, &[x]).ok()?;
    b.output("y", y);
    Some(b.finish().unwrap())
}

#[test]
fn transposed_convolutions() {
    problems(transposed, 40, 80);
}

#[test]
fn greatest_elements() {
    problems(greatest, 10, 90);
}

pub(super) fn lookup(rng: &mut StdRng) -> Option<Graph> {
    let dims: Vec<usize> = (0..rng.random_range(1..5)).map(|_| rng.random_range(1..20)).collect();
    let mut b = GraphBuilder::new("lookup");
    let x = b.input("x", TensorType::new(DType::I8, &dims));
    let table = int8(rng, &[256]);
    let table = b.constant("table", table);
    let y = b.node("lookup", Lookup {}, &[x, table]).ok()?;
    b.output("y", y);
    Some(b.finish().unwrap())
}

#[test]
fn functions_of_a_byte() {
    problems(lookup, 10, 100);
}

#[test]
fn pairs() {
    problems(pair, 60, 95);
}

/// Runs such programs on the Verilated design.
#[test]
fn pairs_on_the_rtl() {
    if !tilewright_testing::has_program("verilator") {
        return;
    }
    let config = HwConfig::load("1x4x4").unwrap();
    for seed in 0..24 {
        let mut rng = StdRng::seed_from_u64(seed);
        let graph = pair(&mut rng).unwrap();
        let inputs: Vec<Tensor> = graph.inputs().map(|(_, v)| int8(&mut rng, &graph.ty(v).shape().unwrap())).collect();
        check_on(&graph, &config, &inputs, &rtl);
    }
}

#[test]
fn concatenations() {
    problems(concat, 40, 80);
}

#[test]
fn slices() {
    problems(slice, 60, 70);
}

#[test]
fn nearest_resizing() {
    problems(resize, 40, 90);
}
