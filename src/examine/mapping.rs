//! Compares a network's cycles with the bound that follows from its shapes and the hardware's rates.

use std::collections::BTreeSet;

use tilewright_compiler::cost::{Roofline, roofline};
use tilewright_compiler::graph::{Graph, NodeId};
use tilewright_hw::config::HwConfig;
use tilewright_hw::isa::Unit;
use tilewright_hw::regs::UnitState;
use tilewright_runtime::artifact::Place;
use tilewright_runtime::registry::Registry;
use tilewright_runtime::session::{RunReport, Session, SessionError};
use tilewright_sim::{Csim, CsimOptions};

use super::bench::{Frame, on_target};
use super::layers::layers;
use super::trace::UnknownInsn;
use crate::model::inference::made_up;
use crate::model::shapes::{self, ShapeError};
use crate::model::zoo::{self, ZooError};
use crate::model::{self, Built, ModelError, Offload, Options, Sizes};

/// Why there are no figures.
#[derive(Debug, thiserror::Error)]
pub enum MappingError {
    /// There is no network with this name.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// A network of the zoo cannot be read.
    #[error(transparent)]
    Zoo(#[from] ZooError),
    /// The network does not compile.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// It does not run.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// A program cannot be decoded.
    #[error(transparent)]
    Program(#[from] UnknownInsn),
    /// The accelerator computes nothing, or a size is symbolic.
    #[error("the accelerator computes no operator of {model} with known shapes")]
    Nothing {
        /// The network.
        model: String,
    },
    /// A run took fewer cycles than the bound.
    #[error("{model} takes {cycles} cycles, fewer than the bound of {bound}; this is a bug in the bound")]
    BelowBound {
        /// The network.
        model: String,
        /// Its cycles.
        cycles: u64,
        /// The bound.
        bound: u64,
    },
}

/// Figures of a network on a configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Mapping {
    /// Exact cycles of one run.
    pub cycles: u64,
    /// The accelerator's multiply-accumulates divided by those possible in its cycles.
    pub utilization: f64,
    /// The bound.
    pub roofline: Roofline,
    /// Fractions of the cycles in which load, gemm, vector and store work.
    pub busy: [f64; 4],
    /// Programs of the accelerator.
    pub programs: usize,
    /// One input's latency with the configuration's target host, part by part.
    pub on_target: Option<Frame>,
    /// Multiply-accumulates that the host computes, as a fraction of all.
    pub on_host: f64,
}

impl Mapping {
    /// The bound divided by the cycles, at most 1.
    pub fn share_of_roofline(&self) -> f64 {
        self.roofline.cycles() as f64 / self.cycles.max(1) as f64
    }
}

/// A network of the zoo, or one of a well-known shape.
///
/// # Errors
/// [`MappingError`].
pub fn network(name: &str) -> Result<Graph, MappingError> {
    let Ok(entry) = zoo::find(name) else { return Ok(shapes::quantized(name)?) };
    let cache = tilewright_hw::cache::folder().unwrap_or_else(std::env::temp_dir);
    Ok(model::import(&entry.extract(&cache)?, Sizes::default())?)
}

/// The bound for what the accelerator computes of a compiled network.
pub fn bound(built: &Built, config: &HwConfig) -> Option<Roofline> {
    let placed = built.artifact.manifest.nodes.iter().zip(&built.nodes);
    let there: BTreeSet<NodeId> =
        placed.filter(|(info, _)| info.place == Place::Accel).map(|(_, node)| *node).collect();
    roofline(&built.graph, &there, config).filter(|_| !there.is_empty())
}

/// Compiles a network at the highest level with everything offloaded that the accelerator can compute, and runs it on
/// the cycle model without values.
///
/// # Errors
/// [`MappingError`].
pub fn mapping(graph: Graph, config: &HwConfig) -> Result<Mapping, MappingError> {
    let options = Options { level: 3, offload: Offload::All, ..Options::new(config) };
    let built = model::build_traced(graph, &options, &mut |_, _| {})?;
    let model = built.artifact.manifest.model.clone();
    let nothing = || MappingError::Nothing { model: model.clone() };
    let roofline = bound(&built, config).ok_or_else(nothing)?;
    let artifact = built.artifact;
    let csim = CsimOptions { timing_only: true, spans: true, ..CsimOptions::default() };
    let device = Box::new(Csim::new(config.clone(), config.memory_bytes(), csim));
    let inputs = made_up(&artifact.manifest.input_values());
    let (_, report) = Session::new(artifact.clone(), Registry::global(), Some(device))?.run(&inputs)?;
    let cycles = report.cycles().ok_or_else(nothing)?;
    if cycles < roofline.cycles() {
        return Err(MappingError::BelowBound { model, cycles, bound: roofline.cycles() });
    }
    let programs = super::trace::programs(config, &artifact)?;
    let layers = layers(&artifact, &programs, Some(&report));
    let macs = artifact.manifest.offloaded_macs();
    Ok(Mapping {
        cycles,
        utilization: macs as f64 / (cycles * config.macs_per_cycle()).max(1) as f64,
        roofline,
        busy: Unit::ALL.map(|unit| busy(&report, unit) as f64 / cycles.max(1) as f64),
        programs: programs.iter().filter(|program| !program.is_empty()).count(),
        on_target: on_target(&artifact, &layers, config, Some(&report)).map(|steps| Frame::of(&steps)),
        on_host: 1.0 - artifact.manifest.offloaded_share().unwrap_or(1.0),
    })
}

/// Cycles in which a unit works.
fn busy(report: &RunReport, unit: Unit) -> u64 {
    let counters = report.steps.iter().filter_map(|step| step.counters);
    counters.map(|counters| counters.0[unit as usize][UnitState::Busy as usize]).sum()
}
