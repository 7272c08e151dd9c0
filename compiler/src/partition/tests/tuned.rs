//! Tests the choice of plans by a clock that gives the cycles of programs.

use super::fused::network;
use super::problems::int8;
use super::weighed::network_of;
use super::{configs, csim, fsim, run};
use crate::codegen::accel::{Layer, Planned};
use crate::cost::{Analytic, Clock, CostOracle, CpuTime};
use crate::graph::{Graph, NodeId, eval_all};
use crate::partition::{Code, Offload, Options, Partition, partition, partition_by};
use crate::records::OtherShapes;
use rand::SeedableRng;
use rand::rngs::StdRng;
use std::cell::Cell;
use std::collections::BTreeMap;
use tilewright_driver::{AccelProgram, race};
use tilewright_hw::HwConfig;
use tilewright_hw::isa::{INSN_BYTES, Unit};
use tilewright_runtime::artifact::InsnLayers;

/// A clock.
type Time<'a> = dyn Fn(&AccelProgram, &InsnLayers) -> Option<Vec<u64>> + 'a;

/// The estimates, with a made-up clock.
pub(super) struct MadeUp<'a> {
    pub costs: Analytic<'a>,
    pub clock: &'a Time<'a>,
    pub others: Option<&'a OtherShapes>,
}

impl Clock for MadeUp<'_> {
    fn cycles(&self, program: &AccelProgram, layers: &InsnLayers) -> Option<Vec<u64>> {
        (self.clock)(program, layers)
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

    fn other_shapes(&self) -> Option<&OtherShapes> {
        self.others
    }
}

/// A clock by which each instruction takes one cycle.
fn counting(program: &AccelProgram, layers: &InsnLayers) -> Option<Vec<u64>> {
    let insns = program.stream.len() / INSN_BYTES;
    let mut done: Vec<u64> = vec![0; layers.layers()];
    for place in 0..insns {
        done[layers.of(place)?..].fill(place as u64 + 1);
    }
    *done.last_mut()? = insns as u64;
    Some(done)
}

fn instructions(parts: &Partition) -> u64 {
    let programs = parts.regions.iter().filter_map(|region| match &region.code {
        Code::Accel(accel) => Some(accel.program.insn_count() as u64),
        Code::Cpu | Code::Own => None,
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
            let oracle = MadeUp { costs: Analytic { config: &config }, clock: &counting, others: None };
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
    let oracle = MadeUp { costs: Analytic { config: &config }, clock: &counting, others: None };
    let parts = partition_by(&graph, &config, Offload::Auto, &oracle);
    let told: Vec<_> = parts.explanations.iter().filter_map(|e| e.cost.as_ref()?.accel_cycles).collect();
    assert!(!told.is_empty() && told.iter().all(|cycles| *cycles < 3000), "{told:?}");
}

#[test]
fn further_shapes_take_plans_over_in_place_of_timing_them() {
    let (config, timed) = (HwConfig::default(), Cell::new(0));
    let clock = |program: &AccelProgram, layers: &InsnLayers| {
        timed.set(timed.get() + 1);
        counting(program, layers)
    };
    let compile = |size: usize, others: Option<&OtherShapes>| {
        timed.set(0);
        let graph = network_of(size);
        let oracle = MadeUp { costs: Analytic { config: &config }, clock: &clock, others };
        let parts = partition_by(&graph, &config, Options::default(), &oracle);
        let inputs = [int8(&mut StdRng::seed_from_u64(7), &[1, size, size, 16])];
        run(&graph, &config, &parts, &inputs, &eval_all(&graph, &inputs).unwrap(), &fsim);
        (parts, timed.get())
    };
    let others = OtherShapes::default();
    assert_eq!(compile(16, Some(&others)).0, compile(16, None).0, "the first shape is compiled as if it were alone");
    assert!(!others.is_empty());
    for size in [16, 24, 40] {
        let (further, times) = compile(size, Some(&others));
        let (_, times_alone) = compile(size, None);
        assert!(times < times_alone, "{size}: {times} programs were timed, alone {times_alone}");
        // Plans are taken over only where that saves cycles.
        let estimated = partition(&network_of(size), &config, Options::default());
        assert!(instructions(&further) <= instructions(&estimated), "{size}");
    }
}

/// A clock by which a program takes less the earlier its loads are in the stream.
fn early_loads(config: &HwConfig, program: &AccelProgram, layers: &InsnLayers) -> Option<Vec<u64>> {
    let insns = program.decode(config).ok()?;
    let loads = insns.iter().enumerate().filter(|(_, insn)| insn.unit() == Unit::Load);
    let mut done = vec![0; layers.layers()];
    *done.last_mut()? = loads.map(|(place, _)| place as u64).sum();
    Some(done)
}

#[test]
fn the_order_that_takes_fewer_cycles_is_used_and_computes_the_same() {
    let (mut mixed, mut all) = (0, 0);
    for config in configs() {
        let clock = |program: &AccelProgram, layers: &InsnLayers| early_loads(&config, program, layers);
        let oracle = MadeUp { costs: Analytic { config: &config }, clock: &clock, others: None };
        for seed in 0..4 {
            let mut rng = StdRng::seed_from_u64(seed);
            let graph = network(&mut rng);
            let inputs: Vec<_> = graph.inputs().map(|(_, v)| int8(&mut rng, &graph.ty(v).shape().unwrap())).collect();
            let plain = Options { search_tiles: false, reorder: false, ..Options::default() };
            let options = Options { reorder: true, ..plain };
            let cycles = |parts: &Partition| {
                let regions = parts.regions.iter().filter_map(|region| match &region.code {
                    Code::Accel(accel) => {
                        Some(early_loads(&config, &accel.program, &accel.insn_layers)?.last().copied())
                    }
                    Code::Cpu | Code::Own => None,
                });
                regions.map(|cycles| cycles.unwrap_or(0)).sum::<u64>()
            };
            let [before, after, kept] = [plain, options, Options { keep_values: true, ..options }]
                .map(|options| partition_by(&graph, &config, options, &oracle));
            assert!(cycles(&after) <= cycles(&before), "{} seed {seed}", config.name);
            for region in &after.regions {
                let Code::Accel(accel) = &region.code else { continue };
                assert!(accel.program.insn_count() > 3000 || race::check(&accel.program, &config).is_empty());
                // Each layer has as many instructions as before.
                let mut counts = vec![0; accel.layers.len()];
                (0..accel.program.insn_count()).filter_map(|at| accel.insn_layers.of(at)).for_each(|l| counts[l] += 1);
                let begins = std::iter::once(0).chain(accel.layers.iter().map(|layer| layer.end));
                let expected: Vec<usize> = accel.layers.iter().zip(begins).map(|(l, begin)| l.end - begin).collect();
                assert_eq!(counts, expected);
                mixed += usize::from(!accel.insn_layers.runs().is_empty());
                all += 1;
            }
            for region in &kept.regions {
                let Code::Accel(accel) = &region.code else { continue };
                assert!(accel.insn_layers.runs().is_empty());
            }
            run(&graph, &config, &after, &inputs, &eval_all(&graph, &inputs).unwrap(), &csim);
        }
    }
    assert!(mixed * 4 > all, "layers overlap in only {mixed} of {all} programs");
}
