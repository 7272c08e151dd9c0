//! Tests placement by cost.

use super::fused::network;
use super::problems::{int8, requantize};
use super::{check_split, configs, fsim};
use crate::codegen::accel::{Layer, Planned};
use crate::cost::{Analytic, CostOracle, CpuTime};
use crate::graph::op::{Conv2d, Lookup};
use crate::graph::{DType, Graph, GraphBuilder, NodeId, TensorType, ValueId};
use crate::partition::auto::Problem;
use crate::partition::place::place;
use crate::partition::{Explanation, Offload, Options, Partition, partition, partition_by};
use rand::SeedableRng;
use rand::rngs::StdRng;
use std::collections::HashMap;
use tilewright_hw::HwConfig;
use tilewright_runtime::artifact::Place;

const AUTO: Options = Options {
    offload: Offload::Auto,
    keep_values: false,
    fuse: false,
    chain: false,
    keep_on_chip: false,
    join: true,
    reorder: true,
    search_tiles: true,
};

fn conv(rng: &mut StdRng, b: &mut GraphBuilder, name: &str, x: ValueId, [from, to, kernel]: [usize; 3]) -> ValueId {
    let order = crate::graph::op::Layout::Nhwc;
    let weights = int8(rng, &[to, kernel, kernel, from]);
    let weights = b.constant("", weights);
    let op = Conv2d {
        strides: [1, 1],
        pads: [kernel / 2; 4],
        dilations: [1, 1],
        groups: 1,
        layout: order,
        data_zero_point: 3,
        weight_zero_point: 0,
    };
    let sums = b.node(name, op, &[x, weights]).unwrap();
    requantize(rng, b, sums, order.channel_axis(), kernel * kernel * from)
}

fn image(b: &mut GraphBuilder, name: &str, [h, w, c]: [usize; 3]) -> ValueId {
    b.input(name, TensorType::new(DType::I8, &[1, h, w, c]))
}

fn named<'p>(parts: &'p Partition, name: &str) -> &'p Explanation {
    parts.explanations.iter().find(|e| e.name == name).unwrap()
}

/// A large convolution and an independent tiny one.
fn large_and_tiny() -> Graph {
    let rng = &mut StdRng::seed_from_u64(1);
    let mut b = GraphBuilder::new("two");
    let (x, t) = (image(&mut b, "x", [28, 28, 32]), image(&mut b, "t", [2, 2, 4]));
    let large = conv(rng, &mut b, "large", x, [32, 32, 3]);
    let tiny = conv(rng, &mut b, "tiny", t, [4, 4, 1]);
    b.output("y", large);
    b.output("z", tiny);
    b.finish().unwrap()
}

#[test]
fn small_work_stays_on_the_cpu_and_large_work_does_not() {
    let (graph, config) = (large_and_tiny(), HwConfig::default());
    let parts = partition(&graph, &config, AUTO);
    assert_eq!(named(&parts, "large").place, Place::Accel);
    assert_eq!(named(&parts, "tiny").place, Place::Cpu);
    let why = &named(&parts, "tiny").why;
    assert!(
        why.starts_with("by cost: ") && why.contains("(modeled) here") && why.contains("on the accelerator"),
        "{why}"
    );
    let all = partition(&graph, &config, Offload::All);
    assert!(all.explanations.iter().all(|e| e.place == Place::Accel));
    // The explanation gives the cost in the other place too, even if cost does not decide.
    assert_eq!(named(&all, "tiny").cost.as_ref().unwrap().cpu_ns, named(&parts, "tiny").cost.as_ref().unwrap().cpu_ns);
    let none = partition(&graph, &config, Offload::None);
    let cost = named(&none, "large").cost.clone().unwrap();
    assert!(cost.accel_ns < cost.cpu_ns && !cost.cpu_measured, "{cost:?}");
}

#[test]
fn the_host_decides() {
    let graph = large_and_tiny();
    let with = |cpu_clock_mhz: f64, call_us: f64| {
        let mut config = HwConfig::default();
        config.host.cpu_clock_mhz = cpu_clock_mhz;
        config.host.call_us = call_us;
        let parts = partition(&graph, &config, AUTO);
        ["large", "tiny"].map(|n| named(&parts, n).place)
    };
    assert_eq!(with(20000.0, 0.1), [Place::Cpu, Place::Cpu]);
    assert_eq!(with(650.0, 1.0), [Place::Accel, Place::Cpu]);
    assert_eq!(with(10.0, 10000.0), [Place::Accel, Place::Accel]);
}

/// A lookup between two convolutions is faster on the CPU, but not if changes of layout count.
#[test]
fn layouts_keep_a_cheap_operator_where_its_neighbors_are() {
    let rng = &mut StdRng::seed_from_u64(2);
    let mut b = GraphBuilder::new("chain");
    let x = image(&mut b, "x", [16, 16, 32]);
    let y = conv(rng, &mut b, "first", x, [32, 32, 3]);
    let table = int8(rng, &[256]);
    let table = b.constant("", table);
    let y = b.node("table", Lookup {}, &[y, table]).unwrap();
    let y = conv(rng, &mut b, "second", y, [32, 32, 3]);
    b.output("y", y);
    let graph = b.finish().unwrap();
    let mut config = HwConfig::default();
    (config.host.ops_per_cycle, config.host.bytes_per_cycle, config.host.call_us) = (16.0, 16.0, 0.1);
    let parts = partition(&graph, &config, AUTO);
    let found = named(&parts, "table");
    let cost = found.cost.as_ref().unwrap();
    assert!(cost.cpu_ns < cost.accel_ns, "{cost:?}");
    assert_eq!(found.place, Place::Accel, "{}", found.why);
    assert!(cost.accel_ns.unwrap() as i64 <= cost.cpu_ns.unwrap() as i64 + cost.moving_ns.unwrap(), "{cost:?}");
    // Without the cost of layout changes, it goes to the CPU.
    (config.host.convert_bytes_per_cycle, config.host.transfer_mb_per_s) = (65536.0, 1e6);
    config.host.launch_us = 0.0;
    assert_eq!(named(&partition(&graph, &config, AUTO), "table").place, Place::Cpu);
}

/// Compares the cut with every assignment of small networks.
#[test]
fn no_assignment_of_units_is_cheaper() {
    let mut split = 0;
    for seed in 0..40 {
        let graph = network(&mut StdRng::seed_from_u64(seed));
        let mut config = HwConfig::default();
        let host = &mut config.host;
        (host.launch_us, host.call_us) = ([0.0, 2.0, 10.0][seed as usize % 3], [0.1, 3.0][seed as usize % 2]);
        host.cpu_clock_mhz = [400.0, 2000.0, 9000.0][seed as usize / 3 % 3];
        let options = Options { join: seed % 5 > 0, ..AUTO };
        let oracle = Analytic { config: &config };
        let all = Options { offload: Offload::All, ..options };
        let placed = place(&graph, &config, &all, &HashMap::new(), &oracle);
        let problem = Problem::new(&graph, &placed, &options, &config, &oracle);
        let sides = problem.sides();
        let all = (0..1u32 << sides.len()).map(|mask| (0..sides.len()).map(|u| mask >> u & 1 == 1).collect::<Vec<_>>());
        let least = all.filter_map(|sides| problem.objective(&sides)).min().unwrap();
        assert_eq!(problem.objective(&sides), Some(least), "seed {seed}");
        split += usize::from(sides.iter().any(|s| *s) && sides.iter().any(|s| !*s));
    }
    assert!(split >= 5, "only {split} networks are split");
}

/// Random costs, so that the network uses both places.
struct Mixed<'c>(Analytic<'c>, u64);

impl CostOracle for Mixed<'_> {
    fn accel_cycles(&self, layer: &Layer, planned: &Planned) -> u64 {
        self.0.accel_cycles(layer, planned)
    }

    fn accel_ns(&self, cycles: u64) -> u64 {
        self.0.accel_ns(cycles)
    }

    fn cpu(&self, _: &Graph, nodes: &[NodeId]) -> Option<CpuTime> {
        let mixed = (nodes[0].0 as u64 + 1).wrapping_mul(self.1 | 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 49;
        Some(CpuTime { ns: mixed, measured: true })
    }

    fn border_ns(&self, dense_bytes: u64, _: u64) -> u64 {
        dense_bytes / 4
    }

    fn launch_ns(&self) -> u64 {
        100
    }
}

#[test]
fn mixed_places_compute_the_same() {
    let (mut mixed, mut all) = (0, 0);
    for config in configs() {
        for seed in 0..6 {
            let mut rng = StdRng::seed_from_u64(seed);
            let graph = network(&mut rng);
            let inputs: Vec<_> = graph.inputs().map(|(_, v)| int8(&mut rng, &graph.ty(v).shape().unwrap())).collect();
            let oracle = Mixed(Analytic { config: &config }, seed);
            let options = Options { fuse: seed % 2 == 1, keep_on_chip: seed % 3 > 0, ..AUTO };
            let parts = partition_by(&graph, &config, options, &oracle);
            assert_eq!(parts, partition_by(&graph, &config, options, &oracle));
            let expected = crate::graph::eval_all(&graph, &inputs).unwrap();
            super::run(&graph, &config, &parts, &inputs, &expected, &fsim);
            let on_accel = parts.explanations.iter().filter(|e| e.place == Place::Accel).count();
            mixed += usize::from(on_accel > 0 && on_accel < parts.explanations.len());
            assert!(parts.explanations.iter().filter_map(|e| e.cost.as_ref()).all(|c| c.cpu_measured));
            check_split(&graph, &config, &inputs, (options, &fsim));
            all += 1;
        }
    }
    assert!(mixed * 5 > all, "only {mixed} of {all} partitions are mixed");
}
