//! Tests chains of convolutions around a depthwise one, on every configuration.

use super::problems::{int8, layout, requantize, shape};
use super::{check_split, configs, csim};
use crate::graph::op::Conv2d;
use crate::graph::{DType, Graph, GraphBuilder, TensorType, ValueId};
use crate::partition::Options;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// A product, a depthwise convolution of its results, and often a pointwise product of the results of that.
pub(super) fn network(rng: &mut StdRng) -> Graph {
    let order = layout(rng);
    let n = if rng.random_bool(0.2) { 2 } else { 1 };
    let (narrow, wide) = (rng.random_range(1..20), rng.random_range(17..100));
    let (h, w) = (rng.random_range(6..24), rng.random_range(6..24));
    let mut b = GraphBuilder::new("chain");
    let x = b.input("x", TensorType::new(DType::I8, &shape(order, n, narrow, h, w)));
    let conv =
        |rng: &mut StdRng, b: &mut GraphBuilder, x: ValueId, [inputs, outputs, groups]: [usize; 3], most: usize| {
            let kernel = [rng.random_range(1..=most), rng.random_range(1..=most)];
            let weights = int8(rng, &[outputs, kernel[0], kernel[1], inputs / groups]);
            let weights = b.constant("", weights);
            let step = if most == 1 { 1 } else { 2 };
            let op = Conv2d {
                strides: std::array::from_fn(|k| rng.random_range(1..=step.min(kernel[k]))),
                pads: std::array::from_fn(|i| rng.random_range(0..kernel[i % 2])),
                dilations: [1, if most > 3 { rng.random_range(1..=2) } else { 1 }],
                groups,
                layout: order,
                data_zero_point: rng.random_range(-128..128),
                weight_zero_point: if rng.random() { rng.random_range(-128..128) } else { 0 },
            };
            let acc = b.node("conv", op, &[x, weights]).ok()?;
            let terms = kernel[0] * kernel[1] * inputs / groups;
            Some(requantize(rng, b, acc, order.channel_axis(), terms))
        };
    let most = if rng.random_bool(0.7) { 1 } else { 3 };
    let mut y = conv(rng, &mut b, x, [narrow, wide, 1], most).unwrap_or(x);
    if let Some(depth) = conv(rng, &mut b, y, [wide, wide, wide], 4) {
        y = depth;
    }
    if rng.random_bool(0.6) {
        let outputs = rng.random_range(1..40);
        y = conv(rng, &mut b, y, [wide, outputs, 1], 1).unwrap_or(y);
    }
    b.output("y", y);
    b.finish().unwrap()
}

#[test]
fn strips_compute_the_same_as_layers() {
    let options = Options { fuse: true, ..Options::default() };
    let mut chains = 0;
    for config in configs() {
        for seed in 0..12 {
            let mut rng = StdRng::seed_from_u64(seed);
            let graph = network(&mut rng);
            let inputs: Vec<_> = graph.inputs().map(|(_, v)| int8(&mut rng, &graph.ty(v).shape().unwrap())).collect();
            let parts = check_split(&graph, &config, &inputs, (options, &csim));
            chains += usize::from(parts.explanations.iter().any(|e| e.why.contains("strips of")));
        }
    }
    assert!(chains >= 10, "only {chains} chains");
}
