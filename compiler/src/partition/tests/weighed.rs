//! Tests the separation of poolings in whole partitions, by a made-up clock.

use super::problems::{int8, requantize};
use super::tuned::MadeUp;
use super::{fsim, run};
use crate::cost::{Analytic, CostOracle};
use crate::graph::op::{Conv2d, Layout, MaxPool2d};
use crate::graph::{DType, Graph, GraphBuilder, TensorType, eval_all};
use crate::partition::{Options, Partition, partition, regions, settle::settle};
use rand::SeedableRng;
use rand::rngs::StdRng;
use tilewright_driver::AccelProgram;
use tilewright_hw::HwConfig;
use tilewright_runtime::artifact::InsnLayers;

/// Two convolutions, each followed by a 2x2 pooling. By the estimate, both poolings are fused.
fn network() -> Graph {
    network_of(16)
}

/// The same for pictures of `size` x `size` pixels.
pub(super) fn network_of(size: usize) -> Graph {
    let mut rng = StdRng::seed_from_u64(1);
    let mut b = GraphBuilder::new("weighed");
    let mut x = b.input("x", TensorType::new(DType::I8, &[1, size, size, 16]));
    for i in 0..2 {
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
        let acc = b.node(&format!("conv{i}"), op, &[x, weights]).unwrap();
        let y = requantize(&mut rng, &mut b, acc, 3, 144);
        let op = MaxPool2d { kernel: [2; 2], strides: [2; 2], pads: [0; 4], dilations: [1, 1], layout: Layout::Nhwc };
        x = b.node(&format!("max{i}"), op, &[y]).unwrap();
    }
    b.output("y", x);
    b.finish().unwrap()
}

/// The partition where all takes these cycles with its two, three and four layers: with none, one and both of the
/// poolings by themselves.
fn weighed(cycles: [u64; 3]) -> Partition {
    let (graph, config) = (network(), HwConfig::default());
    let cycles = [&[0, 0], &cycles[..]].concat();
    let clock = |_: &AccelProgram, layers: &InsnLayers| {
        let mut done = vec![0; layers.layers()];
        *done.last_mut()? = *cycles.get(layers.layers())?;
        Some(done)
    };
    let oracle = MadeUp { costs: Analytic { config: &config }, clock: &clock, others: None };
    let options = Options { fuse: true, search_tiles: false, ..Options::default() };
    let build = |placed: &_| regions(&graph, &config, placed, &options, oracle.clock());
    let settled = settle(&graph, &config, options, &oracle, &build);
    let inputs = [int8(&mut StdRng::seed_from_u64(2), &[1, 16, 16, 16])];
    run(&graph, &config, &settled.partition, &inputs, &eval_all(&graph, &inputs).unwrap(), &fsim);
    settled.partition
}

/// Returns the reason for each separate pooling.
fn alone(parts: &Partition) -> Vec<&str> {
    let poolings = parts.explanations.iter().filter(|e| e.op == "max_pool2d");
    poolings.filter_map(|e| e.why.split_once("not fused into the product before it: ")).map(|(_, why)| why).collect()
}

#[test]
fn poolings_stand_by_themselves_where_all_takes_fewer_cycles_then() {
    assert!(alone(&weighed([100, 101, 90])).is_empty());
    assert!(alone(&weighed([100, 100, 100])).is_empty());
    assert_eq!(alone(&weighed([100, 99, 99])), ["fused, all programs take 100 cycles, otherwise 99"]);
    let both =
        ["fused, all programs take 100 cycles, otherwise 99", "fused, all programs take 99 cycles, otherwise 98"];
    assert_eq!(alone(&weighed([100, 99, 98])), both);
}

#[test]
fn what_nobody_times_is_fused_by_the_estimate() {
    let options = Options { fuse: true, ..Options::default() };
    let parts = partition(&network(), &HwConfig::default(), options);
    assert!(alone(&parts).is_empty());
    assert_eq!(parts.explanations.iter().filter(|e| e.why.contains("the pooling of its results")).count(), 6);
}
