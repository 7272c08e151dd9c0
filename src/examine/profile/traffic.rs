//! Bytes over the memory bus, by tensor.

use std::collections::BTreeMap;

use tilewright_driver::Role;
use tilewright_hw::isa::{Insn, Op};
use tilewright_runtime::artifact::{AccelStep, Artifact, StepKind};
use tilewright_runtime::session::RunReport;

use crate::examine::layers::moved;

/// Memory traffic of one tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// Its name.
    pub name: String,
    /// Its kind: weights, parameters, micro-ops, constants, tensor or instructions.
    pub kind: &'static str,
    /// Bytes read.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
}

/// Tensors sorted by the bytes that they move, the largest first. If the device counts bus traffic, the rest beyond
/// loads and stores is listed as instructions and parts of beats.
pub(super) fn tensors(artifact: &Artifact, programs: &[Vec<Insn>], report: &RunReport) -> Vec<Moved> {
    let mut sums: BTreeMap<(String, &'static str), (u64, u64)> = BTreeMap::new();
    let (mut bus, mut known) = (Some((0u64, 0u64)), (0, 0));
    for ((step, taken), program) in artifact.manifest.steps.iter().zip(&report.steps).zip(programs) {
        let StepKind::Accel(accel) = &step.kind else { continue };
        let layers = accel.insn_layers();
        for (place, insn) in program.iter().enumerate() {
            let (base, offset) = match &insn.op {
                Op::Load(x) => (x.base, x.offset),
                Op::Store(x) => (x.base, x.offset),
                Op::Gemm(_) | Op::Vector(_) => continue,
            };
            let layer = layers.of(place).unwrap_or(layers.layers());
            let (read, written) = moved(insn);
            let sum = sums.entry(owner(accel, base, offset, layer)).or_default();
            *sum = (sum.0 + read, sum.1 + written);
            known = (known.0 + read, known.1 + written);
        }
        bus = bus.zip(taken.bytes).map(|(sum, b)| (sum.0 + b.0, sum.1 + b.1));
    }
    if let Some((read, written)) = bus {
        let rest = (read.saturating_sub(known.0), written.saturating_sub(known.1));
        if rest != (0, 0) {
            sums.insert(("instructions and parts of beats".into(), "instructions"), rest);
        }
    }
    let mut all: Vec<Moved> =
        sums.into_iter().map(|((name, kind), (read, written))| Moved { name, kind, read, written }).collect();
    all.sort_by_key(|moved| std::cmp::Reverse(moved.read + moved.written));
    all
}

/// Name and kind of the data at an offset from a base register while a layer runs.
fn owner(accel: &AccelStep, base: u32, offset: u64, layer: usize) -> (String, &'static str) {
    let program = &accel.program;
    if base == 0 {
        let inside = |at: u64, bytes: u64| (at..at + bytes.max(1)).contains(&offset);
        let section = program.sections.iter().find(|section| inside(section.offset, section.bytes));
        return match section {
            Some(section) => (section.name.clone(), kind(section.role)),
            None => ("other constants".into(), "constants"),
        };
    }
    let lives = |buffer: &tilewright_runtime::placement::Buffer| (buffer.first..=buffer.last).contains(&layer);
    let mut tensors = accel.tensors.iter().filter(|tensor| {
        (tensor.offset..tensor.offset + tensor.buffer.bytes.max(1)).contains(&offset) && lives(&tensor.buffer)
    });
    if let Some(tensor) = tensors.next() {
        return (tensor.name.clone(), "tensor");
    }
    let bindings = program.inputs.iter().chain(&program.outputs);
    let mut bound = bindings.filter(|b| b.region.0 == base && (b.offset..b.offset + b.bytes).contains(&offset));
    let name = || program.regions.get(base as usize).map_or("memory", |region| &region.name).to_string();
    (bound.next().map_or_else(name, |binding| binding.name.clone()), "tensor")
}

fn kind(role: Role) -> &'static str {
    match role {
        Role::Weights => "weights",
        Role::Params => "parameters",
        Role::Uops => "micro-ops",
        Role::Constants => "constants",
        Role::Input | Role::Output | Role::Scratch => "tensor",
    }
}
