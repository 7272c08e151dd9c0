//! Tests transposes of tensors in device memory: aliases, reorders of blocks, and transposes on the CPU.

use super::problems::{int8, requantize, shape};
use super::{check, check_on, configs, on_cpu, rtl};
use crate::graph::op::{Conv2d, Dense, Layout, QMatMul, Reshape, Transpose};
use crate::graph::{DType, Graph, GraphBuilder, Tensor, TensorType, ValueId};
use crate::partition::Partition;
use rand::SeedableRng;
use rand::rngs::StdRng;
use tilewright_hw::HwConfig;
use tilewright_runtime::artifact::Place;

fn conv(rng: &mut StdRng, b: &mut GraphBuilder, x: ValueId, [from, to]: [usize; 2], layout: Layout) -> ValueId {
    let weights = int8(rng, &[to, 1, 1, from]);
    let weights = b.constant("", weights);
    let (strides, pads, dilations, groups) = ([1, 1], [0; 4], [1, 1], 1);
    let op = Conv2d { strides, pads, dilations, groups, layout, data_zero_point: 3, weight_zero_point: 0 };
    let sums = b.node("conv", op, &[x, weights]).unwrap();
    requantize(rng, b, sums, layout.channel_axis(), from)
}

fn dense(rng: &mut StdRng, b: &mut GraphBuilder, x: ValueId, [from, to]: [usize; 2]) -> ValueId {
    let weights = int8(rng, &[to, from]);
    let weights = b.constant("", weights);
    let sums = b.node("dense", Dense { data_zero_point: 3, weight_zero_point: 0 }, &[x, weights]).unwrap();
    requantize(rng, b, sums, 1, from)
}

fn reshape(b: &mut GraphBuilder, x: ValueId, shape: &[usize]) -> ValueId {
    let shape = shape.iter().map(|n| *n as i64).collect();
    b.node("reshape", Reshape { shape }, &[x]).unwrap()
}

fn transpose(b: &mut GraphBuilder, name: &str, x: ValueId, perm: &[usize]) -> ValueId {
    b.node(name, Transpose { perm: perm.to_vec() }, &[x]).unwrap()
}

/// A transpose between two convolutions of images of `c` channels.
fn between(perm: [usize; 4], [h, w, c]: [usize; 3], layouts: [Layout; 2]) -> Graph {
    let rng = &mut StdRng::seed_from_u64(5);
    let mut b = GraphBuilder::new("between");
    let before = shape(layouts[0], 1, c, h, w);
    let x = b.input("x", TensorType::new(DType::I8, &before));
    let y = conv(rng, &mut b, x, [c, c], layouts[0]);
    let y = transpose(&mut b, "transpose", y, &perm);
    let after = before[perm[layouts[1].channel_axis()]];
    let y = conv(rng, &mut b, y, [after, 24], layouts[1]);
    b.output("y", y);
    b.finish().unwrap()
}

/// Attention as in transformers, with one head or several.
fn attention([rows, heads, depth]: [usize; 3]) -> Graph {
    let rng = &mut StdRng::seed_from_u64(6);
    let mut b = GraphBuilder::new("attention");
    let width = heads * depth;
    let x = b.input("x", TensorType::new(DType::I8, &[rows, width]));
    let mut head = |name: &str, perm: [usize; 4], b: &mut GraphBuilder| {
        let y = dense(rng, b, x, [width, width]);
        let y = reshape(b, y, &[1, rows, heads, depth]);
        transpose(b, name, y, &perm)
    };
    let q = head("queries", [0, 2, 1, 3], &mut b);
    let k = head("keys", [0, 2, 3, 1], &mut b);
    let v = head("values", [0, 2, 1, 3], &mut b);
    let op = QMatMul { a_zero_point: 2, b_zero_point: -3 };
    let scores = b.node("scores", op.clone(), &[q, k]).unwrap();
    let scores = requantize(rng, &mut b, scores, 3, depth);
    let sums = b.node("sums", op, &[scores, v]).unwrap();
    let sums = requantize(rng, &mut b, sums, 3, rows);
    let y = transpose(&mut b, "joined", sums, &[0, 2, 1, 3]);
    let y = reshape(&mut b, y, &[rows, width]);
    let y = dense(rng, &mut b, y, [width, 10]);
    b.output("y", y);
    b.finish().unwrap()
}

fn inputs(graph: &Graph) -> Vec<Tensor> {
    let rng = &mut StdRng::seed_from_u64(9);
    graph.inputs().map(|(_, v)| int8(rng, &graph.ty(v).shape().unwrap())).collect()
}

#[track_caller]
fn why(parts: &Partition, name: &str) -> (Place, String) {
    let found = parts.explanations.iter().find(|e| e.name == name).unwrap();
    (found.place, found.why.clone())
}

const SAME: &str = "the same bytes in another order of dimensions; nothing to do";

#[test]
fn orders_of_dimensions_are_no_orders_of_bytes() {
    for config in configs() {
        for (perm, layouts) in
            [([0, 3, 1, 2], [Layout::Nhwc, Layout::Nchw]), ([0, 2, 3, 1], [Layout::Nchw, Layout::Nhwc])]
        {
            let graph = between(perm, [5, 7, 19], layouts);
            let parts = check(&graph, &config, &inputs(&graph));
            assert_eq!(why(&parts, "transpose"), (Place::Accel, SAME.into()), "{}", config.name);
            assert_eq!(parts.regions.len(), 1, "{}", config.name);
        }
    }
}

#[test]
fn rows_and_columns_change_by_loads_and_stores() {
    let mut walked = 0;
    for config in configs() {
        for (size, layout, perm) in [
            ([5, 7, 19], Layout::Nhwc, [0, 2, 1, 3]),
            ([9, 1, 40], Layout::Nhwc, [0, 2, 1, 3]),
            ([13, 6, 33], Layout::Nchw, [0, 1, 3, 2]),
        ] {
            let graph = between(perm, size, [layout; 2]);
            let parts = check(&graph, &config, &inputs(&graph));
            let (place, why) = why(&parts, "transpose");
            walked += usize::from(why.contains("whole blocks"));
            // A column becomes a row without a copy.
            let moves = size[1] > 1;
            assert_eq!(why == SAME, !moves, "{}: {why}", config.name);
            assert_eq!(place == Place::Accel, !moves || config.batch == 1, "{}: {why}", config.name);
            assert!(place == Place::Accel || why.contains("several batch rows"), "{}: {why}", config.name);
        }
    }
    assert!(walked >= 12, "only {walked} are walks");
    let config = HwConfig::load("1x8x8").unwrap();
    let graph = between([0, 2, 1, 3], [5, 7, 19], [Layout::Nhwc; 2]);
    check_on(&graph, &config, &inputs(&graph), &rtl);
}

#[test]
fn channels_that_change_places_stay_on_the_cpu() {
    let config = HwConfig::default();
    let graph = between([0, 3, 2, 1], [6, 7, 20], [Layout::Nhwc; 2]);
    let parts = check(&graph, &config, &inputs(&graph));
    let (place, why) = why(&parts, "transpose");
    assert_eq!(place, Place::Cpu);
    assert!(why.contains("elements change their places within blocks of channels"), "{why}");
}

#[test]
fn heads_of_whole_blocks_lie_as_they_are_read() {
    let config = HwConfig::load("1x16x16").unwrap();
    for sizes in [[16, 4, 16], [32, 2, 32], [48, 1, 48]] {
        let graph = attention(sizes);
        let parts = check(&graph, &config, &inputs(&graph));
        for name in ["queries", "keys", "joined"] {
            assert_eq!(why(&parts, name), (Place::Accel, SAME.into()), "{sizes:?} {name}");
        }
        // The channels of the values become rows at the border of a second program.
        assert!(on_cpu(&parts).is_empty(), "{:?}", on_cpu(&parts));
        assert_eq!(parts.regions.len(), 2, "{sizes:?}");
    }
    // Two heads of half a block each share a block.
    let graph = attention([9, 4, 8]);
    let parts = check(&graph, &config, &inputs(&graph));
    let (place, why) = why(&parts, "queries");
    assert!(place == Place::Cpu && why.contains("change their places"), "{why}");
}
