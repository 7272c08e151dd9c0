//! Draws plans from the spaces of operators: each is refused with a reason, or computes what the evaluator computes.

use super::problems::{MAKERS, int8};
use super::{Code, chained, configs, csim, fused, kept, partition, run};
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

/// Returns a drawn plan, or `None` if none fits. Counts reasons for which plans are refused.
fn draw(
    rng: &mut StdRng,
    (layer, planned): (&Layer, &Planned),
    config: &HwConfig,
    refused: &mut BTreeMap<String, usize>,
) -> Option<Planned> {
    let space = planned.space(layer, config);
    for _ in 0..TRIES {
        let decisions = random(&space, rng)?;
        match planned.with(&decisions, layer, config) {
            Ok(drawn) => {
                assert_eq!(drawn.decisions(), decisions);
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

/// What came of drawn plans.
#[derive(Debug, Default)]
struct Outcomes {
    /// Plans that ran by operator and form.
    ran: BTreeMap<String, usize>,
    /// Reasons for which plans are refused.
    refused: BTreeMap<String, usize>,
    /// Number of plans that ran.
    drawn: usize,
    /// Programs that are wrong.
    wrong: Vec<String>,
}

/// Gives every layer a drawn plan, and runs the programs on the cycle model in strict mode.
fn check(rng: &mut StdRng, graph: &Graph, (config, options): (&HwConfig, Options), outcomes: &mut Outcomes) {
    let inputs: Vec<_> = graph.inputs().map(|(_, v)| int8(rng, &graph.ty(v).shape().unwrap())).collect();
    let mut parts: Partition = partition(graph, config, options);
    let expected = eval_all(graph, &inputs).unwrap();
    let (mut all, mut names) = (Vec::new(), Vec::new());
    for region in &mut parts.regions {
        let Code::Accel(accel) = &mut region.code else { continue };
        let mut source = accel.source.clone();
        let mut plans = Vec::new();
        for (layer, planned) in &mut source.layers {
            if let Some(other) = draw(rng, (layer, planned), config, &mut outcomes.refused) {
                let operator = planned.workload().split(' ').next().unwrap().to_string();
                let form = other.decisions().0.get("form").map_or(String::new(), |form| format!(" {form}"));
                names.push(operator + &form);
                plans.push(format!("{} {}", planned.workload(), other.decisions()));
                *planned = other;
            }
        }
        match source.build(graph, config) {
            Ok(built) => **accel = built,
            // Operators refuse plans that do not fit when they read the decisions.
            Err(error) => return outcomes.wrong.push(format!("{} with {plans:?}: {error}", config.name)),
        }
        if accel.program.insn_count() < 3000
            && let [fault, ..] = race::check(&accel.program, config).as_slice()
        {
            outcomes.wrong.push(format!("{} with {plans:?}: {fault}", config.name));
        }
        all.extend(plans);
    }
    outcomes.drawn += all.len();
    let run = || run(graph, config, &parts, &inputs, &expected, &csim);
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(_) => names.into_iter().for_each(|name| *outcomes.ran.entry(name).or_default() += 1),
        Err(failed) => {
            let error = failed.downcast_ref::<String>().cloned().unwrap_or_default();
            outcomes.wrong.push(format!("{} with {all:?}: {error}", config.name));
        }
    }
}

#[test]
fn every_plan_in_the_space_is_refused_or_right() {
    let configs = configs();
    let mut outcomes = Outcomes::default();
    let mut round = 0;
    while outcomes.drawn < 2000 {
        let mut rng = StdRng::seed_from_u64(round);
        let config = &configs[round as usize % configs.len()];
        let kind = rng.random_range(0..MAKERS.len() + 8);
        let (graph, options) = match kind.checked_sub(MAKERS.len()) {
            None => (MAKERS[kind](&mut rng), Options::default()),
            Some(0 | 1) => (Some(fused::network(&mut rng)), Options { fuse: true, ..Options::default() }),
            Some(2 | 3) => (Some(chained::network(&mut rng)), Options { fuse: true, ..Options::default() }),
            Some(_) => {
                let graph = kept::network(&mut rng);
                (Some(graph), Options { keep_on_chip: true, fuse: rng.random(), ..Options::default() })
            }
        };
        round += 1;
        if let Some(graph) = graph {
            check(&mut rng, &graph, (config, options), &mut outcomes);
        }
    }
    let Outcomes { ran, refused, drawn, wrong } = outcomes;
    println!("{drawn} plans; {ran:#?} {refused:#?}");
    assert!(wrong.is_empty(), "{} of {round} programs are wrong: {wrong:#?}", wrong.len());
    for name in [
        "Conv tiles",
        "Conv depthwise",
        "Conv packed",
        "ConvTranspose",
        "Pool",
        "MatMul",
        "Pairwise",
        "Lookup",
        "Copy",
        "Chain",
    ] {
        assert!(ran.get(name).is_some_and(|n| *n >= 10), "{name}: {ran:?}");
    }
}
