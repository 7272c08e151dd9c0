//! Draws plans from the spaces of operators: each is refused with a reason, or computes what the evaluator computes.

use super::problems::{MAKERS, int8};
use super::{Code, configs, csim, fsim, fused, kept, partition, run};
use crate::codegen::accel::Layer;
use crate::codegen::accel::Planned;
use crate::graph::{Graph, eval_all};
use crate::partition::{Options, Partition};
use crate::tune::random;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tilewright_driver::race;
use tilewright_hw::HwConfig;

/// Number of plans to draw for a layer before one fits.
const TRIES: usize = 12;

/// Returns a drawn plan, or `None` if none fits. Counts plans by operator, and reasons for which plans are refused.
fn draw(
    rng: &mut StdRng,
    (layer, planned): (&Layer, &Planned),
    config: &HwConfig,
    counts: &mut [BTreeMap<String, usize>; 2],
) -> Option<Planned> {
    let space = planned.space(layer, config);
    let [fitting, refused] = counts;
    for _ in 0..TRIES {
        let decisions = random(&space, rng)?;
        match planned.with(&decisions, layer, config) {
            Ok(drawn) => {
                assert_eq!(drawn.decisions(), decisions);
                let name = planned.workload().split(' ').next().unwrap().to_string();
                *fitting.entry(name).or_default() += 1;
                return Some(drawn);
            }
            Err(reason) => {
                assert!(!reason.is_empty() && reason.starts_with(|c: char| !c.is_uppercase()), "{reason}");
                *refused.entry(reason).or_default() += 1;
            }
        }
    }
    None
}

/// Gives every layer a drawn plan, and runs the programs on the cycle model in strict mode.
fn check(
    rng: &mut StdRng,
    graph: &Graph,
    (config, options): (&HwConfig, Options),
    counts: &mut [BTreeMap<String, usize>; 2],
) -> (usize, bool) {
    let inputs: Vec<_> = graph.inputs().map(|(_, v)| int8(rng, &graph.ty(v).shape().unwrap())).collect();
    let mut parts: Partition = partition(graph, config, options);
    let expected = eval_all(graph, &inputs).unwrap();
    // Strict mode also refuses some programs of the compiler's own plans, for example stores of entries in which all
    // channels are padding.
    let own = AssertUnwindSafe(|| run(graph, config, &parts, &inputs, &expected, &csim));
    let is_strict = catch_unwind(own).is_ok();
    let mut drawn = 0;
    for region in &mut parts.regions {
        let Code::Accel(accel) = &mut region.code else { continue };
        let mut source = accel.source.clone();
        for (layer, planned) in &mut source.layers {
            if let Some(other) = draw(rng, (layer, planned), config, counts) {
                *planned = other;
                drawn += 1;
            }
        }
        let plans: Vec<String> = source.layers.iter().map(|(_, planned)| planned.decisions().to_string()).collect();
        match source.build(graph, config) {
            Ok(built) => **accel = built,
            Err(error) => panic!("{} on {} with {plans:?}: {error}", graph.name(), config.name),
        }
        if accel.program.insn_count() < 3000 {
            let faults = race::check(&accel.program, config);
            assert!(faults.is_empty(), "{} on {} with {plans:?}: {}", graph.name(), config.name, faults[0]);
        }
    }
    run(graph, config, &parts, &inputs, &expected, if is_strict { &csim } else { &fsim });
    (drawn, is_strict)
}

#[test]
fn every_plan_in_the_space_is_refused_or_right() {
    let configs = configs();
    let mut counts = [BTreeMap::new(), BTreeMap::new()];
    let (mut drawn, mut strict, mut round) = (0, 0, 0);
    while drawn < 2000 {
        let mut rng = StdRng::seed_from_u64(round);
        let config = &configs[round as usize % configs.len()];
        let kind = rng.random_range(0..MAKERS.len() + 6);
        let (graph, options) = match kind.checked_sub(MAKERS.len()) {
            None => (MAKERS[kind](&mut rng), Options::default()),
            Some(0 | 1) => (Some(fused::network(&mut rng)), Options { fuse: true, ..Options::default() }),
            Some(_) => {
                let graph = kept::network(&mut rng);
                (Some(graph), Options { keep_on_chip: true, fuse: rng.random(), ..Options::default() })
            }
        };
        round += 1;
        let Some(graph) = graph else { continue };
        let (count, is_strict) = check(&mut rng, &graph, (config, options), &mut counts);
        drawn += count;
        strict += if is_strict { count } else { 0 };
    }
    let [fitting, refused] = counts;
    println!("{drawn} plans, {strict} in strict mode; {fitting:#?} {refused:#?}");
    assert!(10 * strict >= 7 * drawn, "only {strict} of {drawn} plans ran in strict mode");
    let every = ["Conv", "ConvTranspose", "Pool", "MatMul", "Pairwise", "Lookup", "Copy"];
    for name in every {
        assert!(fitting.get(name).is_some_and(|n| *n >= 20), "{name}: {fitting:?}");
    }
}
