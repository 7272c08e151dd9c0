//! Tests results that stay in inp between layers, on every configuration.

use super::problems::{int8, layout, qadd, requantize, shape};
use super::{Code, check_split, configs, fsim, on_cpu, rtl, run, settle};
use crate::codegen::accel::BuildError;
use crate::graph::eval_all;
use crate::graph::op::{AvgPool2d, Conv2d, Dense, GlobalAvgPool, Layout, MaxPool2d, Reshape};
use crate::graph::{DType, Graph, GraphBuilder, TensorType, ValueId};
use crate::partition::place::PlacedLayer;
use crate::partition::{Options, Partition, partition, regions};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tilewright_driver::DriverError;
use tilewright_hw::HwConfig;

/// A random convolution; `None` if the window does not fit.
fn conv(rng: &mut StdRng, b: &mut GraphBuilder, order: Layout, x: ValueId) -> Option<ValueId> {
    let c = b.ty(x).dims[order.channel_axis()].known()?;
    let depthwise = rng.random_bool(0.2);
    let outputs = if depthwise { c } else { rng.random_range(1..50) };
    let depth = if depthwise { 1 } else { c };
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
        weight_zero_point: 0,
    };
    let acc = b.node("conv", op, &[x, weights]).ok()?;
    Some(requantize(rng, b, acc, order.channel_axis(), kernel[0] * kernel[1] * depth))
}

fn pool(rng: &mut StdRng, b: &mut GraphBuilder, layout: Layout, x: ValueId) -> Option<ValueId> {
    let kernel = [rng.random_range(1..4), rng.random_range(1..4)];
    let strides = [rng.random_range(1..3), rng.random_range(1..3)];
    let pads = std::array::from_fn(|i| if rng.random_bool(0.3) { rng.random_range(0..kernel[i % 2]) } else { 0 });
    match rng.random_range(0..5) {
        0 => {
            let op = AvgPool2d {
                kernel,
                strides,
                pads,
                count_include_pad: rng.random(),
                layout,
                lo: -128,
                hi: 127,
                unsigned: false,
            };
            b.node("avg", op, &[x]).ok()
        }
        1 => b.node("mean", GlobalAvgPool { layout, lo: -128, hi: 127 }, &[x]).ok(),
        _ => b.node("max", MaxPool2d { kernel, strides, pads, dilations: [1, 1], layout }, &[x]).ok(),
    }
}

/// A chain of four to eight operators with sums of earlier values of the same shape, often ending with a fully
/// connected layer. Sometimes a value in between is also an output of the network.
pub(super) fn network(rng: &mut StdRng) -> Graph {
    let order = layout(rng);
    let n = if rng.random_bool(0.1) { 2 } else { 1 };
    let size = [rng.random_range(1..40), rng.random_range(3..20), rng.random_range(3..20)];
    let mut b = GraphBuilder::new("kept");
    let mut values = vec![b.input("x", TensorType::new(DType::I8, &shape(order, n, size[0], size[1], size[2])))];
    let count = rng.random_range(4..9);
    for _ in 0..count {
        let last = values[values.len() - 1];
        let alike = |v: &&ValueId| **v != last && b.ty(**v).dims == b.ty(last).dims;
        let other = values.iter().find(alike).copied();
        let next = match (rng.random_range(0..4), other) {
            (0, _) => pool(rng, &mut b, order, last),
            (1, Some(other)) => {
                let op = qadd(rng);
                b.node("add", op, &[last, other]).ok()
            }
            _ => conv(rng, &mut b, order, last),
        };
        values.extend(next);
    }
    let mut last = values[values.len() - 1];
    if n == 1 && rng.random() {
        let inputs: usize = b.ty(last).dims.iter().filter_map(|d| d.known()).product();
        let outputs = rng.random_range(1..30);
        last = b.node("flat", Reshape { shape: vec![1, -1] }, &[last]).unwrap();
        for inputs in [inputs, outputs] {
            let weights = int8(rng, &[outputs, inputs]);
            let weights = b.constant("", weights);
            let op = Dense { data_zero_point: rng.random_range(-128..128), weight_zero_point: 0 };
            let acc = b.node("dense", op, &[last, weights]).unwrap();
            last = requantize(rng, &mut b, acc, 1, inputs);
        }
    }
    b.output("y", last);
    if rng.random_bool(0.2) {
        b.output("z", values[values.len() / 2]);
    }
    b.finish().unwrap()
}

fn options(rng: &mut StdRng) -> Options {
    Options { keep_on_chip: true, fuse: rng.random(), search_tiles: rng.random(), ..Options::default() }
}

/// Number of layers whose results stay on the chip.
fn kept(parts: &Partition) -> usize {
    let why: Vec<&str> = parts.explanations.iter().map(|e| e.why.as_str()).collect();
    why.iter().filter(|why| why.contains("results stay on the chip")).count()
}

#[test]
fn what_stays_on_the_chip_is_the_same() {
    for config in configs() {
        let mut found = 0;
        for seed in 0..25 {
            let mut rng = StdRng::seed_from_u64(seed);
            let graph = network(&mut rng);
            let inputs: Vec<_> = graph.inputs().map(|(_, v)| int8(&mut rng, &graph.ty(v).shape().unwrap())).collect();
            let options = options(&mut rng);
            found += kept(&check_split(&graph, &config, &inputs, (options, &fsim)));
        }
        let possible = config.batch == 1 && config.block_in == config.block_out;
        assert!(if possible { found >= 30 } else { found == 0 }, "{}: {found} results stay on the chip", config.name);
    }
}

#[test]
fn what_stays_on_the_chip_is_the_same_in_the_design() {
    let config = HwConfig::default();
    let mut found = 0;
    for seed in 100..112 {
        let mut rng = StdRng::seed_from_u64(seed);
        let graph = network(&mut rng);
        let inputs: Vec<_> = graph.inputs().map(|(_, v)| int8(&mut rng, &graph.ty(v).shape().unwrap())).collect();
        let options = options(&mut rng);
        found += kept(&check_split(&graph, &config, &inputs, (options, &rtl)));
    }
    assert!(found >= 15, "{found} results stay on the chip");
}

/// Programs that are rejected whenever they keep a result are built without kept results, and no node goes to the CPU.
#[test]
fn a_refused_program_is_tried_with_less_kept() {
    let config = HwConfig::default();
    let mut refusals = 0;
    for seed in 0..8 {
        let mut rng = StdRng::seed_from_u64(seed);
        let graph = network(&mut rng);
        let options = Options { keep_on_chip: true, ..Options::default() };
        let plain = partition(&graph, &config, Options::default());
        let refused = std::cell::Cell::new(0);
        let parts = settle(&graph, &config, options, &|placed| {
            if let Some(l) = placed.layers.iter().find(|l| l.layer.on_chip.output.is_some()) {
                refused.set(refused.get() + 1);
                let source = DriverError::Rule { index: 0, what: "planted".into() };
                return Err(BuildError { layer: l.layer.name.clone(), source });
            }
            regions(&graph, &config, placed, &options, None)
        });
        refusals += refused.get();
        assert_eq!(on_cpu(&parts), on_cpu(&plain), "seed {seed}");
        // The explanation says which results are not kept; nothing else differs.
        let mut told = 0;
        for (found, plain) in parts.explanations.iter().zip(&plain.explanations) {
            let (why, reason) =
                found.why.split_once("; its results do not stay on the chip: ").unwrap_or((&found.why, ""));
            assert_eq!((why, &found.cost), (plain.why.as_str(), &plain.cost), "seed {seed}");
            assert!(reason.is_empty() || reason.starts_with("layer ") && reason.contains("planted"), "{reason}");
            told += usize::from(!reason.is_empty());
        }
        assert!(told >= refused.get(), "seed {seed}: {told} reasons of {} refusals", refused.get());
        let inputs: Vec<_> = graph.inputs().map(|(_, v)| int8(&mut rng, &graph.ty(v).shape().unwrap())).collect();
        run(&graph, &config, &parts, &inputs, &eval_all(&graph, &inputs).unwrap(), &fsim);
        assert!(parts.regions.iter().any(|region| matches!(region.code, Code::Accel(_))));
    }
    assert!(refusals >= 5, "only {refusals} refusals");
}

/// One convolution's kept result is rejected: only this result goes through device memory, and its explanation says
/// why.
#[test]
fn what_others_keep_stays_where_one_is_refused() {
    let config = HwConfig::default();
    let mut found = 0;
    for seed in 0..8 {
        let graph = network(&mut StdRng::seed_from_u64(seed));
        let options = Options { keep_on_chip: true, ..Options::default() };
        let free = partition(&graph, &config, options);
        let mut writers = free.explanations.iter().filter(|e| e.why.contains("results stay on the chip"));
        let Some(node) = writers.next().map(|e| e.node).filter(|_| kept(&free) > 2) else { continue };
        let parts = settle(&graph, &config, options, &|placed| {
            let wrong = |l: &&PlacedLayer| {
                let first = l.layer.nodes.contains(&node);
                first && l.layer.on_chip.output.is_some()
            };
            if let Some(l) = placed.layers.iter().find(wrong) {
                let source = DriverError::Rule { index: 0, what: "planted".into() };
                return Err(BuildError { layer: l.layer.name.clone(), source });
            }
            regions(&graph, &config, placed, &options, None)
        });
        let why = &parts.explanations.iter().find(|e| e.node == node).unwrap().why;
        assert!(why.contains("its results do not stay on the chip: layer ") && why.ends_with("planted"), "{why}");
        assert!(kept(&parts) > 0, "seed {seed}: nothing is kept");
        found += 1;
    }
    assert!(found >= 3, "only {found} networks keep enough");
}

/// If every program is rejected, all nodes go to the CPU, with the reason.
#[test]
fn what_is_refused_without_end_says_why() {
    let config = HwConfig::default();
    let graph = network(&mut StdRng::seed_from_u64(1));
    let options = Options { keep_on_chip: true, ..Options::default() };
    let parts = settle(&graph, &config, options, &|placed| {
        let source = DriverError::Rule { index: 0, what: "planted".into() };
        if placed.layers.is_empty() {
            return regions(&graph, &config, placed, &options, None);
        }
        Err(BuildError { layer: "nobody".into(), source })
    });
    assert!(parts.regions.iter().all(|region| matches!(region.code, Code::Cpu)));
    assert!(
        parts.explanations.iter().all(|e| e.op == "reshape" || e.why.contains("planted")),
        "{:?}",
        parts.explanations
    );
}

/// The estimate of a pooling omits the loads and stores that are saved if its operands and results are kept.
#[test]
fn estimates_know_what_stays_on_the_chip() {
    let config = HwConfig::default();
    let mut b = GraphBuilder::new("pools");
    let x = b.input("x", TensorType::new(DType::I8, &[1, 16, 16, 16]));
    let op = MaxPool2d { kernel: [3, 3], strides: [1, 1], pads: [1; 4], dilations: [1, 1], layout: Layout::Nhwc };
    let names = ["first", "second", "third"];
    let last = names.iter().fold(x, |v, name| b.node(name, op.clone(), &[v]).unwrap());
    b.output("y", last);
    let graph = b.finish().unwrap();
    let cycles = |keep_on_chip| {
        let options = Options { keep_on_chip, ..Options::default() };
        let parts = partition(&graph, &config, options);
        let of = |name: &&str| {
            let e = parts.explanations.iter().find(|e| e.name == **name).unwrap();
            (e.cost.as_ref().unwrap().accel_cycles.unwrap(), e.why.clone())
        };
        names.iter().map(of).collect::<Vec<_>>()
    };
    let (plain, kept) = (cycles(false), cycles(true));
    assert!(kept[1].1.ends_with("its data and its results stay on the chip"), "{}", kept[1].1);
    for (plain, kept) in plain.iter().zip(&kept) {
        assert!(kept.0 < plain.0, "{kept:?} against {plain:?}");
    }
}
