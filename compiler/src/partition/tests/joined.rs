//! Operators joined to the product before them, on every configuration.

use super::problems::{int8, layout, qadd, requantize, shape};
use super::{check_joined, configs};
use crate::graph::op::{Conv2d, Lookup};
use crate::graph::{DType, Graph, GraphBuilder, TensorType, ValueId};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// A convolution of the same size, its result under a table or not, added to the network's input on either side; a
/// second such convolution behind it, whose operand is the first's result.
fn network(rng: &mut StdRng) -> Graph {
    let order = layout(rng);
    let (n, c) = (rng.random_range(1..3), rng.random_range(1..40));
    let (h, w) = (rng.random_range(1..20), rng.random_range(1..20));
    let mut b = GraphBuilder::new("joined");
    let mut x = b.input("x", TensorType::new(DType::I8, &shape(order, n, c, h, w)));
    for _ in 0..2 {
        let kernel = *[1, 3].get(rng.random_range(0..2usize)).unwrap_or(&1);
        let weights = int8(rng, &[c, kernel, kernel, c]);
        let weights = b.constant("", weights);
        let op = Conv2d {
            strides: [1, 1],
            pads: [kernel / 2; 4],
            dilations: [1, 1],
            groups: 1,
            layout: order,
            data_zero_point: rng.random_range(-128..128),
            weight_zero_point: 0,
        };
        let acc = b.node("conv", op, &[x, weights]).unwrap();
        let mut y = requantize(rng, &mut b, acc, order.channel_axis(), kernel * kernel * c);
        let looked_up = |rng: &mut StdRng, b: &mut GraphBuilder, y: ValueId| {
            let table = int8(rng, &[256]);
            let table = b.constant("", table);
            b.node("lookup", Lookup {}, &[y, table]).unwrap()
        };
        if rng.random() {
            y = looked_up(rng, &mut b, y);
        }
        if rng.random_bool(0.8) {
            let operands = if rng.random() { [x, y] } else { [y, x] };
            let op = qadd(rng);
            y = b.node("add", op, &operands).unwrap();
        } else {
            y = looked_up(rng, &mut b, y);
        }
        x = y;
    }
    b.output("y", x);
    b.finish().unwrap()
}

#[test]
fn what_is_joined_computes_the_same() {
    for config in configs() {
        let mut joined = 0;
        for seed in 0..15 {
            let mut rng = StdRng::seed_from_u64(seed);
            let graph = network(&mut rng);
            let inputs: Vec<_> = graph.inputs().map(|(_, v)| int8(&mut rng, &graph.ty(v).shape().unwrap())).collect();
            joined += check_joined(&graph, &config, &inputs);
        }
        assert!(joined >= 5, "{}: only {joined} operators were joined", config.name);
    }
}
