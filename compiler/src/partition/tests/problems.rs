//! Tests random single operators on every configuration.

mod moves;

use super::{Options, check, configs, on_cpu, partition, presets, small_part};
use crate::graph::op::{
    AvgPool2d, Binary, BinaryKind, Clip, Conv2d, ConvTranspose2d, Dense, GlobalAvgPool, Layout, MaxPool2d, Pad, QAdd,
    QAvgPool2d, QMatMul, Requantize, Rescale, Reshape, SumPool2d,
};
use crate::graph::{DType, Graph, GraphBuilder, Op, Tensor, TensorType, ValueId};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tilewright_hw::HwConfig;
use tilewright_hw::num::{Qadd, QaddOperand, Rounding, quantize_multiplier};

pub(super) fn int8(rng: &mut StdRng, shape: &[usize]) -> Tensor {
    Tensor::from_fn(shape, |_| rng.random::<i8>())
}

pub(super) fn layout(rng: &mut StdRng) -> Layout {
    if rng.random() { Layout::Nhwc } else { Layout::Nchw }
}

pub(super) fn shape(layout: Layout, n: usize, c: usize, h: usize, w: usize) -> Vec<usize> {
    match layout {
        Layout::Nhwc => vec![n, h, w, c],
        Layout::Nchw => vec![n, c, h, w],
    }
}

/// A random size below `end`, often 1.
pub(super) fn size(rng: &mut StdRng, end: usize) -> usize {
    if rng.random_bool(0.15) { 1 } else { rng.random_range(1..end) }
}

/// Random rows and columns below `end`. Often a single pixel, whose order in memory does not imply its readers' order.
pub(super) fn pixels(rng: &mut StdRng, end: usize) -> [usize; 2] {
    if rng.random_bool(0.2) { [1, 1] } else { [rng.random_range(1..end), rng.random_range(1..end)] }
}

/// Appends a requantization of sums of this many products, with channels along an axis.
type Finish = fn(&mut StdRng, &mut GraphBuilder, ValueId, usize, usize) -> ValueId;

/// Multiplier and shift with which the results of sums of `terms` products use most of their range.
fn factor(rng: &mut StdRng, terms: usize, mode: Rounding) -> (i32, i32) {
    let real = rng.random_range(0.2..1.5) * 100.0 / (5000.0 * (terms as f64).sqrt());
    let (m, s) = quantize_multiplier(real);
    // *Single* counts the right shift beyond 31 bits; with a scale below 1 there always is one.
    (m, if mode == Rounding::Double { i32::from(s) } else { -i32::from(s).min(0) })
}

fn mode(rng: &mut StdRng) -> Rounding {
    if rng.random() { Rounding::Double } else { Rounding::Single }
}

/// Requantization of sums of `terms` products whose results use most of their range.
pub(super) fn requantize(rng: &mut StdRng, b: &mut GraphBuilder, acc: ValueId, axis: usize, terms: usize) -> ValueId {
    let channels = b.ty(acc).dims[axis].known().unwrap();
    let mode = mode(rng);
    let mut bias = Vec::new();
    let (mut multiplier, mut shift) = (Vec::new(), Vec::new());
    for _ in 0..channels {
        let (m, s) = factor(rng, terms, mode);
        bias.push(rng.random_range(-3000..3000));
        multiplier.push(m);
        shift.push(s);
    }
    let constants = [bias, multiplier, shift].map(|v| b.constant("", Tensor::vector(v)));
    let zero_point = rng.random_range(-20..20);
    let lo = if rng.random() { -128 } else { zero_point };
    let op = Requantize { axis, zero_point, lo, hi: rng.random_range(90..=127), mode };
    b.node("requantize", op, &[acc, constants[0], constants[1], constants[2]]).unwrap()
}

/// The maximum or minimum of two requantizations that differ only in biases, factors and rounding.
pub(super) fn sloped(rng: &mut StdRng, b: &mut GraphBuilder, acc: ValueId, axis: usize, terms: usize) -> ValueId {
    let first = requantize(rng, b, acc, axis, terms);
    let node = b.def(first).unwrap().clone();
    let Op::Requantize(op) = node.op else { unreachable!("it is one") };
    let mode = mode(rng);
    let channels = b.ty(node.inputs[1]).dims[0].known().unwrap();
    let (multiplier, shift): (Vec<_>, Vec<_>) = (0..channels).map(|_| factor(rng, terms, mode)).unzip();
    let bias: Vec<i32> = (0..channels).map(|_| rng.random_range(-3000..3000)).collect();
    let constants = [bias, multiplier, shift].map(|v| b.constant("", Tensor::vector(v)));
    let second = Requantize { mode, ..op };
    let second = b.node("second", second, &[acc, constants[0], constants[1], constants[2]]).unwrap();
    let kind = if rng.random() { BinaryKind::Max } else { BinaryKind::Min };
    b.node("choice", Binary { kind }, &[first, second]).unwrap()
}

fn conv(rng: &mut StdRng) -> Option<Graph> {
    finished_conv(rng, requantize)
}

fn finished_conv(rng: &mut StdRng, finish: Finish) -> Option<Graph> {
    let layout = layout(rng);
    let n = if rng.random_bool(0.2) { 2 } else { 1 };
    let groups = *[1, 1, 1, 2, 4].get(rng.random_range(0..5usize))?;
    let depth = size(rng, 40 / groups);
    let depthwise = rng.random_bool(0.15);
    let (groups, depth) = if depthwise { (rng.random_range(2..40), 1) } else { (groups, depth) };
    let outputs = groups * if depthwise { rng.random_range(1..3) } else { size(rng, 40 / groups) };
    let [h, w] = pixels(rng, 20);
    let kernel = [rng.random_range(1..5), rng.random_range(1..5)];
    let mut pads: [usize; 4] = std::array::from_fn(|i| rng.random_range(0..kernel[i % 2]));
    if h * w == 1 {
        // With smaller pads the window reaches past the single pixel.
        pads = [kernel[0] - 1, kernel[1] - 1, kernel[0] - 1, kernel[1] - 1];
    }
    let mut b = GraphBuilder::new("conv");
    let x = b.input("x", TensorType::new(DType::I8, &shape(layout, n, groups * depth, h, w)));
    let weights = int8(rng, &[outputs, kernel[0], kernel[1], depth]);
    let weights = b.constant("w", weights);
    let op = Conv2d {
        strides: [rng.random_range(1..4), rng.random_range(1..4)],
        pads,
        dilations: [rng.random_range(1..3), rng.random_range(1..3)],
        groups,
        layout,
        data_zero_point: rng.random_range(-128..128),
        weight_zero_point: if rng.random() { rng.random_range(-128..128) } else { 0 },
    };
    let acc = b.node("conv", op, &[x, weights]).ok()?;
    let mut y = finish(rng, &mut b, acc, layout.channel_axis(), kernel[0] * kernel[1] * depth);
    if rng.random_bool(0.3) {
        y = b.node("clip", Clip { lo: -30.0, hi: 50.0 }, &[y]).unwrap();
    }
    b.output("y", y);
    Some(b.finish().unwrap())
}

fn dense(rng: &mut StdRng) -> Option<Graph> {
    finished_dense(rng, requantize)
}

fn finished_dense(rng: &mut StdRng, finish: Finish) -> Option<Graph> {
    let (m, k, n) = (rng.random_range(1..6), size(rng, 300), size(rng, 70));
    let mut b = GraphBuilder::new("dense");
    let x = b.input("x", TensorType::new(DType::I8, &[m, k]));
    let w = int8(rng, &[n, k]);
    let w = b.constant("w", w);
    let acc = b
        .node(
            "dense",
            Dense { data_zero_point: rng.random_range(-128..128), weight_zero_point: rng.random_range(-20..20) },
            &[x, w],
        )
        .ok()?;
    let y = finish(rng, &mut b, acc, 1, k);
    b.output("y", y);
    Some(b.finish().unwrap())
}

pub(super) fn qadd(rng: &mut StdRng) -> QAdd {
    let mut operand = |real: f64| {
        let (multiplier, shift) = quantize_multiplier(real);
        QaddOperand { zero_point: rng.random_range(-128..128), multiplier, shift }
    };
    let params = Qadd {
        a: operand(0.5),
        b: operand(0.37),
        out: operand(0.9 / 1024.0 / 512.0),
        left_shift: 20,
        lo: -128,
        hi: 127,
    };
    QAdd { params }
}

fn add(rng: &mut StdRng) -> Option<Graph> {
    let rank = rng.random_range(1..5);
    let dims: Vec<usize> = (0..rank).map(|_| rng.random_range(1..24)).collect();
    let mut b = GraphBuilder::new("add");
    let ty = TensorType::new(DType::I8, &dims);
    let (x, z) = (b.input("x", ty.clone()), b.input("z", ty));
    let op = qadd(rng);
    let mut y = b.node("add", op, &[x, z]).ok()?;
    if rng.random() {
        y = b.node("clip", Clip { lo: -100.0, hi: 20.0 }, &[y]).unwrap();
    }
    b.output("y", y);
    Some(b.finish().unwrap())
}

fn pool(rng: &mut StdRng) -> Option<Graph> {
    let layout = layout(rng);
    let mut b = GraphBuilder::new("pool");
    let (c, [h, w]) = (size(rng, 40), pixels(rng, 20));
    let dims = shape(layout, 1, c, h, w);
    let x = b.input("x", TensorType::new(DType::I8, &dims));
    let y = pooling(rng, &mut b, layout, x)?;
    b.output("y", y);
    Some(b.finish().unwrap())
}

/// A random operator that the accelerator computes as a pooling; `None` if the window does not fit.
pub(super) fn pooling(rng: &mut StdRng, b: &mut GraphBuilder, layout: Layout, x: ValueId) -> Option<ValueId> {
    let kernel = [rng.random_range(1..5), rng.random_range(1..5)];
    let strides = [rng.random_range(1..4), rng.random_range(1..4)];
    let pads = std::array::from_fn(|i| rng.random_range(0..kernel[i % 2]));
    Some(match rng.random_range(0..6) {
        0 => {
            let dilations = [rng.random_range(1..3), rng.random_range(1..3)];
            b.node("max", MaxPool2d { kernel, strides, pads, dilations, layout }, &[x]).ok()?
        }
        1 => {
            let count_include_pad = rng.random();
            let unsigned = rng.random();
            let op = AvgPool2d { kernel, strides, pads, count_include_pad, layout, lo: -128, hi: 127, unsigned };
            b.node("avg", op, &[x]).ok()?
        }
        2 => b.node("mean", GlobalAvgPool { layout, lo: -100, hi: 127 }, &[x]).ok()?,
        3 => {
            let op = SumPool2d { kernel, strides, pads, layout, data_zero_point: rng.random_range(-128..128) };
            let acc = b.node("sum", op, &[x]).ok()?;
            requantize(rng, b, acc, layout.channel_axis(), kernel[0] * kernel[1])
        }
        4 => padding(b, layout, x, pads)?,
        _ => {
            let (multiplier, shift) = quantize_multiplier(rng.random_range(0.1..3.0));
            let op = Rescale {
                data_zero_point: rng.random_range(-128..128),
                multiplier,
                shift,
                zero_point: 5,
                lo: -128,
                hi: 127,
                mode: Rounding::Double,
            };
            b.node("rescale", op, &[x]).ok()?
        }
    })
}

/// Pads an image with one value: rows above, columns left, rows below, columns right.
fn padding(b: &mut GraphBuilder, layout: Layout, x: ValueId, pads: [usize; 4]) -> Option<ValueId> {
    let flat = |[y, x]: [usize; 2]| match layout {
        Layout::Nhwc => vec![0, y, x, 0],
        Layout::Nchw => vec![0, 0, y, x],
    };
    let op = Pad { before: flat([pads[0], pads[1]]), after: flat([pads[2], pads[3]]), value: -7.0 };
    b.node("pad", op, &[x]).ok()
}

fn padded(rng: &mut StdRng) -> Option<Graph> {
    let layout = layout(rng);
    let mut b = GraphBuilder::new("pad");
    let (c, [h, w]) = (size(rng, 40), pixels(rng, 12));
    let x = b.input("x", TensorType::new(DType::I8, &shape(layout, 1, c, h, w)));
    let pads = std::array::from_fn(|_| rng.random_range(0..4));
    let y = padding(&mut b, layout, x, pads)?;
    b.output("y", y);
    Some(b.finish().unwrap())
}

/// A mean of the elements inside the image, with another scale for the result.
fn scaled_mean(rng: &mut StdRng) -> Option<Graph> {
    let layout = layout(rng);
    let mut b = GraphBuilder::new("mean");
    let (c, [h, w]) = (size(rng, 40), pixels(rng, 20));
    let dims = shape(layout, 1, c, h, w);
    let x = b.input("x", TensorType::new(DType::I8, &dims));
    let y = mean_of_inside(rng, &mut b, layout, x)?;
    b.output("y", y);
    Some(b.finish().unwrap())
}

pub(super) fn mean_of_inside(rng: &mut StdRng, b: &mut GraphBuilder, layout: Layout, x: ValueId) -> Option<ValueId> {
    let kernel = [rng.random_range(1..5), rng.random_range(1..5)];
    let strides = [rng.random_range(1..4), rng.random_range(1..4)];
    let pads = std::array::from_fn(|i| rng.random_range(0..kernel[i % 2]));
    let mode = mode(rng);
    // A different scale for each number of elements, so that a mix-up changes the results.
    let (multiplier, shift) = (0..kernel[0] * kernel[1]).map(|_| factor(rng, 1, mode)).unzip();
    let op = QAvgPool2d {
        kernel,
        strides,
        pads,
        layout,
        data_zero_point: rng.random_range(-128..128),
        multiplier,
        shift,
        zero_point: rng.random_range(-20..20),
        lo: rng.random_range(-128..-90),
        hi: 127,
        mode,
    };
    b.node("mean", op, &[x]).ok()
}

/// An image flattened into a fully connected layer, like the end of a classifier.
fn flatten(rng: &mut StdRng) -> Option<Graph> {
    let layout = layout(rng);
    let (c, [h, w]) = (size(rng, 40), pixels(rng, 6));
    let mut b = GraphBuilder::new("flatten");
    let x = b.input("x", TensorType::new(DType::I8, &shape(layout, 1, c, h, w)));
    let window = MaxPool2d { kernel: [1, 1], strides: [1, 1], pads: [0; 4], dilations: [1, 1], layout };
    let y = b.node("max", window, &[x]).ok()?;
    let y = b.node("flat", Reshape { shape: vec![1, -1] }, &[y]).ok()?;
    let outputs = rng.random_range(1..30);
    let weights = int8(rng, &[outputs, c * h * w]);
    let weights = b.constant("w", weights);
    let acc = b.node("dense", Dense { data_zero_point: 3, weight_zero_point: 0 }, &[y, weights]).ok()?;
    let y = requantize(rng, &mut b, acc, 1, c * h * w);
    b.output("y", y);
    Some(b.finish().unwrap())
}

/// Random products of two activations, with batches and zero points of all kinds.
fn matmul(rng: &mut StdRng) -> Option<Graph> {
    let (m, k, n) = (size(rng, 70), size(rng, 80), size(rng, 70));
    let batch = rng.random_range(1..4);
    let mut b = GraphBuilder::new("matmul");
    let x = b.input("x", TensorType::new(DType::I8, &[batch, m, k]));
    let z = b.input("z", TensorType::new(DType::I8, &[if rng.random() { batch } else { 1 }, k, n]));
    let zero = |rng: &mut StdRng| match rng.random_range(0..4) {
        0 => 0,
        1 => -128,
        _ => rng.random_range(-128..128),
    };
    let op = QMatMul { a_zero_point: zero(rng), b_zero_point: zero(rng) };
    let acc = b.node("matmul", op, &[x, z]).ok()?;
    let y = requantize(rng, &mut b, acc, 2, 2 * k);
    b.output("y", y);
    Some(b.finish().unwrap())
}

/// Weight tiles of the second operand must be whole blocks, so with blocks of other sizes the product goes to the CPU.
#[test]
fn products_of_activations() {
    for config in configs() {
        let mut reasons = Vec::new();
        for seed in 0..12 {
            let mut rng = StdRng::seed_from_u64(seed);
            let graph = matmul(&mut rng).unwrap();
            let inputs: Vec<Tensor> =
                graph.inputs().map(|(_, v)| int8(&mut rng, &graph.ty(v).shape().unwrap())).collect();
            reasons.extend(on_cpu(&check(&graph, &config, &inputs)));
        }
        let possible = config.block_in >= config.block_out;
        assert_eq!(reasons.is_empty(), possible, "{}: {reasons:#?}", config.name);
        assert!(possible || reasons[0].contains("block_in must be at least block_out"), "{}", reasons[0]);
    }
}

/// Weights as far from their zero point as bytes can be: `[O, KH, KW, I]` of a dense, depthwise or transposed
/// convolution.
///
/// With `own`, channels have their own zero points up to this one, and the weights are those minus their zero points.
fn far_weights(rng: &mut StdRng, kind: usize, own: Option<i32>) -> Graph {
    let mut b = GraphBuilder::new(["conv", "depthwise", "transposed"][kind]);
    let c = rng.random_range(2..40);
    let x = b.input("x", TensorType::new(DType::I8, &[1, 6, 7, c]));
    let (groups, outputs) = if kind == 1 { (c, c) } else { (1, rng.random_range(1..40)) };
    let ends = [-128, 127, 127, rng.random::<i8>()];
    let weights = Tensor::from_fn(&[outputs, 3, 3, c / groups], |_| ends[rng.random_range(0..4usize)]);
    let less = |most| {
        let weights = weights.as_slice::<i8>().unwrap();
        let ends = [-255, most, rng.random_range(-255..most)];
        Tensor::from_fn(&[outputs, 3, 3, c / groups], |i| ends[weights[i] as usize % 3])
    };
    let weights = b.constant("w", own.map_or(weights.clone(), less));
    let weight_zero_point = if own.is_some() { 0 } else { -128 };
    let (layout, data_zero_point) = (Layout::Nhwc, rng.random_range(-128..128));
    let (strides, pads, dilations) = ([1, 1], [1; 4], [1, 1]);
    let acc = if kind == 2 {
        let op = ConvTranspose2d {
            strides: [2, 2],
            pads: [1, 1],
            dilations,
            size: [12, 14],
            groups,
            layout,
            data_zero_point,
            weight_zero_point,
        };
        b.node("conv", op, &[x, weights])
    } else {
        let op = Conv2d { strides, pads, dilations, groups, layout, data_zero_point, weight_zero_point };
        b.node("conv", op, &[x, weights])
    };
    let y = requantize(rng, &mut b, acc.unwrap(), 3, 36 * c / groups);
    b.output("y", y);
    b.finish().unwrap()
}

/// The array subtracts 255 like any other difference. Without `wgt_zp`, two weight tiles do not reach it.
#[test]
fn weights_255_above_their_zero_point() {
    for config in configs() {
        for seed in 0..6 {
            let mut rng = StdRng::seed_from_u64(seed);
            let graph = far_weights(&mut rng, seed as usize % 3, None);
            let inputs = [int8(&mut rng, &[1, 6, 7, graph.ty(graph.inputs().next().unwrap().1).shape().unwrap()[3]])];
            let cpu = on_cpu(&check(&graph, &config, &inputs));
            let why = "a weight is 255 above its zero point, but two weight tiles reach only 254, and the \
                       configuration is built without wgt_zp";
            assert_eq!(config.wgt_zp, cpu.is_empty(), "{}: {cpu:?}", config.name);
            assert!(config.wgt_zp || cpu[0].ends_with(why), "{}: {cpu:?}", config.name);
        }
    }
}

/// Weights that two weight tiles reach are offloaded, whatever the zero points of channels are.
#[test]
fn weights_less_zero_points_of_their_own() {
    for config in configs() {
        for (seed, most) in (0..6).flat_map(|seed| [254, 255].map(|most| (seed, most))) {
            let mut rng = StdRng::seed_from_u64(seed);
            let graph = far_weights(&mut rng, seed as usize % 3, Some(most));
            let inputs = [int8(&mut rng, &[1, 6, 7, graph.ty(graph.inputs().next().unwrap().1).shape().unwrap()[3]])];
            let cpu = on_cpu(&check(&graph, &config, &inputs));
            let why = "two weight tiles reach only 254, and channels have their own zero points";
            assert_eq!(most == 254, cpu.is_empty(), "{}: {cpu:?}", config.name);
            assert!(most == 254 || cpu[0].ends_with(why), "{}: {cpu:?}", config.name);
        }
    }
}

pub(super) type Make = fn(&mut StdRng) -> Option<Graph>;

/// Makers of random operators of every kind.
pub(super) const MAKERS: &[Make] = &[
    conv,
    dense,
    |rng| finished_conv(rng, sloped),
    add,
    pool,
    padded,
    scaled_mean,
    matmul,
    moves::concat,
    moves::slice,
    moves::resize,
    moves::pair,
    moves::transposed,
    moves::greatest,
    moves::lookup,
];

/// Runs problems of one kind on every configuration. At least `least` of 100 must be offloaded completely.
pub(super) fn problems(make: Make, count: u64, least: usize) {
    for config in configs() {
        let (mut run, mut offloaded) = (0, 0);
        let mut reasons = Vec::new();
        for seed in 0..count {
            let mut rng = StdRng::seed_from_u64(seed);
            let Some(graph) = make(&mut rng) else { continue };
            let inputs: Vec<Tensor> =
                graph.inputs().map(|(_, v)| int8(&mut rng, &graph.ty(v).shape().unwrap())).collect();
            let parts = check(&graph, &config, &inputs);
            let cpu = on_cpu(&parts);
            run += 1;
            offloaded += usize::from(cpu.is_empty());
            reasons.extend(cpu);
        }
        assert!(run * 2 > count as usize, "only {run} of {count} problems are sound");
        assert!(offloaded * 100 >= run * least, "{}: {offloaded} of {run} offloaded; {reasons:#?}", config.name);
    }
}

#[test]
fn convolutions() {
    problems(conv, 60, 75);
}

#[test]
fn fully_connected_layers() {
    problems(dense, 20, 90);
}

#[test]
fn products_of_two_slopes() {
    problems(|rng| finished_conv(rng, sloped), 40, 75);
    problems(|rng| finished_dense(rng, sloped), 15, 90);
}

#[test]
fn additions() {
    problems(add, 20, 100);
}

#[test]
fn poolings() {
    problems(pool, 60, 80);
}

#[test]
fn paddings() {
    problems(padded, 40, 80);
}

#[test]
fn means_at_other_scales() {
    problems(scaled_mean, 30, 80);
}

#[test]
fn flattened_images() {
    problems(flatten, 15, 90);
}

/// Configurations without features that most programs use: results are still right, and nodes on the CPU have a reason.
#[test]
fn odd_configurations_leave_to_the_cpu_what_they_cannot_do() {
    let base = HwConfig::default();
    let odd = [
        (
            "a small part",
            HwConfig {
                wgt_zp: false,
                vector_mac: false,
                vector_lut: false,
                vector_qadd: false,
                vector_mul: false,
                vector_shift: false,
                ..small_part(base.clone())
            },
            "vector_qadd",
        ),
        (
            "aligned",
            HwConfig { dma_align: 8, block_in: 4, block_out: 4, vector_lanes: 4, requant_lanes: 4, ..base.clone() },
            "",
        ),
        ("no additions", HwConfig { vector_qadd: false, ..base.clone() }, "vector_qadd"),
        ("short offsets", HwConfig { offset_bits: 20, stride_bits: 12, ..base.clone() }, "stride_bits"),
        ("one bank", HwConfig { block_in: 8, out_banks: 1, ..base }, "bank"),
    ];
    for (name, config, reason) in odd {
        assert_eq!(config.violations(), [], "{name}");
        let mut reasons = String::new();
        for make in [conv as Make, dense, add, pool, flatten] {
            for seed in 0..30 {
                let mut rng = StdRng::seed_from_u64(seed);
                let Some(graph) = make(&mut rng) else { continue };
                let inputs: Vec<Tensor> =
                    graph.inputs().map(|(_, v)| int8(&mut rng, &graph.ty(v).shape().unwrap())).collect();
                reasons += &on_cpu(&check(&graph, &config, &inputs)).join("\n");
            }
        }
        assert!(reasons.contains(reason), "{name}: {reasons}");
    }
}

/// If loads cannot pad, padding is loaded from constants: no more nodes go to the CPU.
#[test]
fn padding_needs_no_loads_that_pad() {
    for config in presets() {
        let plain = HwConfig { dma_pad: false, ..config.clone() };
        for (make, seed) in [conv as Make, pool, padded].into_iter().flat_map(|make| (0..30).map(move |s| (make, s))) {
            let mut rng = StdRng::seed_from_u64(seed);
            let Some(graph) = make(&mut rng) else { continue };
            let [with, without] = [&config, &plain].map(|c| on_cpu(&partition(&graph, c, Options::default())));
            assert_eq!(without, with, "{}", config.name);
        }
    }
}

/// The suite's operators, which every backend must pass: some stay on the CPU, and all values are right.
#[test]
fn the_suite() {
    for config in configs() {
        let mut offloaded = 0;
        for problem in crate::suite::problems(7, 6).unwrap() {
            let parts = check(&problem.graph, &config, &problem.inputs);
            offloaded += usize::from(on_cpu(&parts).is_empty());
        }
        assert!(offloaded >= 12, "{}: only {offloaded} problems are offloaded", config.name);
    }
}
