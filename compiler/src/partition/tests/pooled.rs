//! Tests poolings that are fused into the tiles of the product before them, on every configuration.

use super::problems::{int8, layout, mean_of_inside, pooling, requantize, shape, sloped};
use super::{NewDevice, check_split, configs, csim, fsim, rtl};
use crate::graph::op::{Conv2d, Layout, MaxPool2d};
use crate::graph::{DType, Graph, GraphBuilder, TensorType};
use crate::partition::{Options, Partition, partition};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tilewright_hw::HwConfig;

/// A random convolution followed by a random pooling.
fn network(rng: &mut StdRng) -> Option<Graph> {
    let order = layout(rng);
    let n = if rng.random_bool(0.2) { rng.random_range(2..4) } else { 1 };
    let depthwise = rng.random_bool(0.15);
    let (c, outputs) = (rng.random_range(1..40), rng.random_range(1..40));
    let (depth, outputs) = if depthwise { (1, c) } else { (c, outputs) };
    let (h, w) = (rng.random_range(1..20), rng.random_range(1..20));
    let mut b = GraphBuilder::new("pooled");
    let x = b.input("x", TensorType::new(DType::I8, &shape(order, n, c, h, w)));
    let kernel = [rng.random_range(1..4), rng.random_range(1..4)];
    let weights = int8(rng, &[outputs, kernel[0], kernel[1], depth]);
    let weights = b.constant("", weights);
    let op = Conv2d {
        strides: [rng.random_range(1..3), rng.random_range(1..3)],
        pads: std::array::from_fn(|i| rng.random_range(0..kernel[i % 2])),
        dilations: [1, 1],
        groups: c / depth,
        layout: order,
        data_zero_point: rng.random_range(-128..128),
        weight_zero_point: if rng.random_bool(0.2) { rng.random_range(-128..128) } else { 0 },
    };
    let acc = b.node("conv", op, &[x, weights]).ok()?;
    let finish = if rng.random_bool(0.2) { sloped } else { requantize };
    let y = finish(rng, &mut b, acc, order.channel_axis(), kernel[0] * kernel[1] * depth);
    let y = match rng.random_range(0..3) {
        0 => {
            let size = rng.random_range(2..4);
            let op = MaxPool2d { kernel: [size; 2], strides: [2; 2], pads: [0; 4], dilations: [1, 1], layout: order };
            b.node("max", op, &[y]).ok()?
        }
        1 if rng.random() => mean_of_inside(rng, &mut b, order, y)?,
        _ => pooling(rng, &mut b, order, y)?,
    };
    b.output("y", y);
    Some(b.finish().unwrap())
}

/// Runs a network with fusion; returns whether its pooling is fused.
fn fused(rng: &mut StdRng, graph: &Graph, config: &HwConfig, device: NewDevice) -> bool {
    let inputs: Vec<_> = graph.inputs().map(|(_, v)| int8(rng, &graph.ty(v).shape().unwrap())).collect();
    let search_tiles = rng.random_bool(0.7);
    let options = Options { fuse: true, keep_on_chip: rng.random(), search_tiles, ..Options::default() };
    is_fused(&check_split(graph, config, &inputs, (options, device)))
}

fn is_fused(parts: &Partition) -> bool {
    parts.explanations.iter().any(|e| e.why.contains("the pooling of its results"))
}

/// Runs networks; returns the number of fused poolings and the number of networks.
fn check_all(config: &HwConfig, seeds: std::ops::Range<u64>, device: NewDevice) -> (usize, usize) {
    let (mut found, mut all) = (0, 0);
    for seed in seeds {
        let mut rng = StdRng::seed_from_u64(seed);
        let Some(graph) = network(&mut rng) else { continue };
        found += usize::from(fused(&mut rng, &graph, config, device));
        all += 1;
    }
    (found, all)
}

#[test]
fn pooled_tiles_compute_the_same() {
    for config in configs() {
        let (found, all) = check_all(&config, 0..50, &fsim);
        assert!(found >= 10, "{}: only {found} of {all} poolings are fused", config.name);
    }
}

#[test]
fn pooled_tiles_compute_the_same_in_the_strict_cycle_model() {
    for config in configs() {
        let (found, all) = check_all(&config, 100..120, &csim);
        assert!(found >= 3, "{}: only {found} of {all} poolings are fused", config.name);
    }
}

#[test]
fn pooled_tiles_compute_the_same_in_the_design() {
    let (found, all) = check_all(&HwConfig::default(), 200..220, &rtl);
    assert!(found >= 5, "only {found} of {all} poolings are fused");
}

/// A convolution followed by a 2x2 pooling. The convolution's results can also be an output of the network.
fn plain(leaves: bool) -> Graph {
    let mut rng = StdRng::seed_from_u64(1);
    let mut b = GraphBuilder::new("plain");
    let x = b.input("x", TensorType::new(DType::I8, &[1, 16, 16, 16]));
    let weights = int8(&mut rng, &[16, 3, 3, 16]);
    let weights = b.constant("", weights);
    let op = Conv2d {
        strides: [1, 1],
        pads: [1; 4],
        dilations: [1, 1],
        groups: 1,
        layout: Layout::Nhwc,
        data_zero_point: 3,
        weight_zero_point: 0,
    };
    let acc = b.node("conv", op, &[x, weights]).unwrap();
    let y = requantize(&mut rng, &mut b, acc, 3, 144);
    let op = MaxPool2d { kernel: [2; 2], strides: [2; 2], pads: [0; 4], dilations: [1, 1], layout: Layout::Nhwc };
    let z = b.node("max", op, &[y]).unwrap();
    b.output("z", z);
    if leaves {
        b.output("y", y);
    }
    b.finish().unwrap()
}

#[test]
fn a_pooling_that_stands_alone_says_why() {
    let config = HwConfig::default();
    let options = Options { fuse: true, ..Options::default() };
    let why = |parts: &Partition| parts.explanations.iter().find(|e| e.op == "max_pool2d").unwrap().why.clone();
    assert!(is_fused(&partition(&plain(false), &config, options)));
    let parts = partition(&plain(true), &config, options);
    let note = "; not fused into the product before it: the product's results are also read elsewhere";
    assert!(why(&parts).ends_with(note), "{}", why(&parts));
}
