//! Tests the choice of plans by a clock that gives the cycles of programs.

use super::fused::network;
use super::problems::int8;
use super::{configs, fsim, run};
use crate::codegen::accel::{Layer, Planned};
use crate::cost::{Analytic, Clock, CostOracle, CpuTime};
use crate::graph::{Graph, NodeId, eval_all};
use crate::partition::{Code, Offload, Options, Partition, partition, partition_by};
use rand::SeedableRng;
use rand::rngs::StdRng;
use std::collections::BTreeMap;
use tilewright_driver::{AccelProgram, race};
use tilewright_hw::HwConfig;
use tilewright_hw::isa::INSN_BYTES;

/// A clock.
type Time<'a> = dyn Fn(&AccelProgram, &[usize]) -> Option<Vec<u64>> + 'a;

/// The estimates, with a made-up clock.
pub(super) struct MadeUp<'a> {
    pub costs: Analytic<'a>,
    pub clock: &'a Time<'a>,
}

impl Clock for MadeUp<'_> {
    fn cycles(&self, program: &AccelProgram, ends: &[usize]) -> Option<Vec<u64>> {
        (self.clock)(program, ends)
    }
}

impl CostOracle for MadeUp<'_> {
    fn accel_cycles(&self, layer: &Layer, planned: &Planned) -> u64 {
        self.costs.accel_cycles(layer, planned)
    }

    fn accel_ns(&self, cycles: u64) -> u64 {
        self.costs.accel_ns(cycles)
    }

    fn cpu(&self, graph: &Graph, nodes: &[NodeId]) -> Option<CpuTime> {
        self.costs.cpu(graph, nodes)
    }

    fn border_ns(&self, dense_bytes: u64, device_bytes: u64) -> u64 {
        self.costs.border_ns(dense_bytes, device_bytes)
    }

    fn launch_ns(&self) -> u64 {
        self.costs.launch_ns()
    }

    fn clock(&self) -> Option<&dyn Clock> {
        Some(self)
    }
}

/// A clock by which each instruction takes one cycle.
fn counting(program: &AccelProgram, ends: &[usize]) -> Option<Vec<u64>> {
    let mut parts: Vec<u64> = ends.iter().map(|end| *end as u64).collect();
    *parts.last_mut()? = (program.stream.len() / INSN_BYTES) as u64;
    Some(parts)
}

fn instructions(parts: &Partition) -> u64 {
    let programs = parts.regions.iter().filter_map(|region| match &region.code {
        Code::Accel(accel) => Some(accel.program.insn_count() as u64),
        Code::Cpu => None,
    });
    programs.sum()
}

/// The layers' cycles from the explanations.
fn told(parts: &Partition) -> u64 {
    let costs = parts.explanations.iter().filter_map(|e| e.cost.as_ref());
    let layers: BTreeMap<&str, u64> = costs.map(|c| (c.layer.as_str(), c.accel_cycles.unwrap_or(0))).collect();
    layers.values().sum()
}

#[test]
fn what_takes_less_is_built_and_computes_the_same() {
    let (mut fewer, mut all) = (0, 0);
    for config in configs() {
        for seed in 0..8 {
            let mut rng = StdRng::seed_from_u64(seed);
            let graph = network(&mut rng);
            let inputs: Vec<_> = graph.inputs().map(|(_, v)| int8(&mut rng, &graph.ty(v).shape().unwrap())).collect();
            let kept = seed % 2 == 1;
            let options = Options { fuse: kept, keep_on_chip: kept, ..Options::default() };
            let oracle = MadeUp { costs: Analytic { config: &config }, clock: &counting };
            let tuned = partition_by(&graph, &config, options, &oracle);
            for region in &tuned.regions {
                let Code::Accel(accel) = &region.code else { continue };
                assert!(accel.program.insn_count() > 3000 || race::check(&accel.program, &config).is_empty());
            }
            run(&graph, &config, &tuned, &inputs, &eval_all(&graph, &inputs).unwrap(), &fsim);
            let below = [true, false].map(|search_tiles| {
                instructions(&partition(&graph, &config, Options { search_tiles, ..Options::default() }))
            });
            let least = instructions(&partition(&graph, &config, options)).min(below[0]).min(below[1]);
            assert!(instructions(&tuned) <= least, "{} seed {seed}", config.name);
            assert_eq!(told(&tuned), instructions(&tuned), "{} seed {seed}", config.name);
            assert_eq!(tuned, partition_by(&graph, &config, options, &oracle));
            fewer += usize::from(instructions(&tuned) < least);
            all += 1;
        }
    }
    assert!(fewer >= 5, "only {fewer} of {all} networks take less");
}

#[test]
fn places_by_cost_weigh_whole_programs() {
    let config = HwConfig::default();
    let graph = network(&mut StdRng::seed_from_u64(3));
    let oracle = MadeUp { costs: Analytic { config: &config }, clock: &counting };
    let parts = partition_by(&graph, &config, Offload::Auto, &oracle);
    let told: Vec<_> = parts.explanations.iter().filter_map(|e| e.cost.as_ref()?.accel_cycles).collect();
    assert!(!told.is_empty() && told.iter().all(|cycles| *cycles < 3000), "{told:?}");
}
