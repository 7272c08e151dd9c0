//! Tests operators that are fused into the tiles of the product before them, on every configuration.

use super::problems::{int8, layout, qadd, requantize, shape};
use super::{Code, check_fused, configs, fsim, on_cpu, run, settle};
use crate::codegen::accel::{self, BuildError};
use crate::graph::eval_all;
use crate::graph::op::{Conv2d, Lookup};
use crate::graph::{DType, Graph, GraphBuilder, TensorType, ValueId};
use crate::partition::{Options, partition, regions};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tilewright_driver::DriverError;
use tilewright_hw::HwConfig;

/// A convolution that keeps the size, with or without a lookup of its result, added to the network's input as either
/// operand. A second such convolution follows and reads the first's result.
pub(super) fn network(rng: &mut StdRng) -> Graph {
    let order = layout(rng);
    let (n, c) = (rng.random_range(1..3), rng.random_range(1..40));
    let (h, w) = (rng.random_range(1..20), rng.random_range(1..20));
    let mut b = GraphBuilder::new("fused");
    let mut x = b.input("x", TensorType::new(DType::I8, &shape(order, n, c, h, w)));
    for i in 0..2 {
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
        let acc = b.node(&format!("conv{i}"), op, &[x, weights]).unwrap();
        let mut y = requantize(rng, &mut b, acc, order.channel_axis(), kernel * kernel * c);
        let looked_up = |rng: &mut StdRng, b: &mut GraphBuilder, y: ValueId| {
            let table = int8(rng, &[256]);
            let table = b.constant("", table);
            b.node(&format!("lookup{i}"), Lookup {}, &[y, table]).unwrap()
        };
        if rng.random() {
            y = looked_up(rng, &mut b, y);
        }
        if rng.random_bool(0.8) {
            let operands = if rng.random() { [x, y] } else { [y, x] };
            let op = qadd(rng);
            y = b.node(&format!("add{i}"), op, &operands).unwrap();
        } else {
            y = looked_up(rng, &mut b, y);
        }
        x = y;
    }
    b.output("y", x);
    b.finish().unwrap()
}

#[test]
fn what_is_fused_computes_the_same() {
    for config in configs() {
        let mut fused = 0;
        for seed in 0..15 {
            let mut rng = StdRng::seed_from_u64(seed);
            let graph = network(&mut rng);
            let inputs: Vec<_> = graph.inputs().map(|(_, v)| int8(&mut rng, &graph.ty(v).shape().unwrap())).collect();
            fused += check_fused(&graph, &config, &inputs);
        }
        assert!(fused >= 5, "{}: only {fused} operators were fused", config.name);
    }
}

/// If the driver rejects products with more than a number of fused operators, only these operators are separated.
#[test]
fn a_product_that_is_refused_with_what_is_behind_it_is_tried_without() {
    let config = HwConfig::default();
    let options = Options { fuse: true, ..Options::default() };
    let mut refusals = 0;
    for (seed, most) in (0..8).flat_map(|seed| [(seed, 0), (seed, 1)]) {
        let mut rng = StdRng::seed_from_u64(seed);
        let graph = network(&mut rng);
        let plain = partition(&graph, &config, Options::default());
        let refused = std::cell::Cell::new(0);
        let parts = settle(&graph, &config, options, &|placed| {
            if let Some(l) = placed.layers.iter().find(|l| accel::fused(&l.planned) > most) {
                refused.set(refused.get() + 1);
                let source = DriverError::Rule { index: 0, what: "planted".into() };
                return Err(BuildError { layer: l.layer.name.clone(), source });
            }
            assert!(placed.layers.iter().all(|l| accel::fused(&l.planned) <= most));
            regions(&graph, &config, placed, &options, None)
        });
        refusals += refused.get();
        assert_eq!(on_cpu(&parts), on_cpu(&plain), "seed {seed}, {most} at most");
        if most == 0 {
            // Besides the reason why the operator is not fused.
            let mut explanations = parts.explanations.clone();
            for e in &mut explanations {
                e.why = e.why.split("; not fused").next().unwrap_or_default().into();
            }
            assert_eq!(explanations, plain.explanations, "seed {seed}");
        }
        let inputs: Vec<_> = graph.inputs().map(|(_, v)| int8(&mut rng, &graph.ty(v).shape().unwrap())).collect();
        run(&graph, &config, &parts, &inputs, &eval_all(&graph, &inputs).unwrap(), &fsim);
        assert!(parts.regions.iter().any(|region| matches!(region.code, Code::Accel(_))));
    }
    assert!(refusals >= 8, "only {refusals} refusals");
    // A layer that is rejected even by itself goes to the CPU.
    let graph = network(&mut StdRng::seed_from_u64(1));
    let parts = settle(&graph, &config, options, &|placed| match placed.layers.first() {
        Some(l) => {
            let source = DriverError::Rule { index: 0, what: "planted".into() };
            Err(BuildError { layer: l.layer.name.clone(), source })
        }
        None => regions(&graph, &config, placed, &options, None),
    });
    assert!(parts.regions.iter().all(|region| region.code == Code::Cpu));
    assert!(on_cpu(&parts).iter().any(|line| line.contains("planted")));
}
