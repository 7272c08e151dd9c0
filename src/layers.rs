//! A run cut into the layers of the model: what each took, and what it moved.
//!
//! A layer is what is computed in one go: on the accelerator the nodes of one plan, on the CPU what `--explain` weighs
//! together. Cycles of layers add up to those of their programs: each ends with its last instruction, and what hides behind
//! an earlier one is not counted again. The host's steps add up too: layers of one step share its time, and a step that holds
//! no node of the model, as a layout's transpose that compilation added, is a layer of its own.

use tilewright_hw::isa::{Insn, Op};
use tilewright_runtime::artifact::{Artifact, Manifest, NodeInfo, Place, StepKind};
use tilewright_runtime::session::RunReport;

use crate::clock::part_ends;
use crate::values::place_of;

/// The operator of a step that holds no node of the model.
pub const ADDED: &str = "added";

/// A layer of a compiled model.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// The name of its first node, or of its step where compilation added it.
    pub name: String,
    /// The operators of its nodes, or [`ADDED`].
    pub ops: Vec<String>,
    /// Its nodes, by their places in the manifest; none of what compilation added.
    pub nodes: Vec<usize>,
    /// The step that computes it; none where nothing is left to do.
    pub step: Option<usize>,
    /// Where it runs.
    pub place: Place,
    /// Multiply-accumulates of the network, padding not counted.
    pub macs: u64,
    /// Nanoseconds on the host that the configuration names, by its model, which has the model's own nodes alone.
    pub host_ns: Option<u64>,
    /// What it took on the accelerator, where it ran there.
    pub accel: Option<OnAccel>,
}

/// What a layer took on the accelerator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OnAccel {
    /// Cycle in which it may begin, counted from its program's start: the end of the layer before it.
    pub start: u64,
    /// Cycles to its end, where the device keeps them apart.
    pub cycles: Option<u64>,
    /// Bytes that its loads read.
    pub read: u64,
    /// Bytes that its stores write.
    pub written: u64,
}

impl Layer {
    /// Its name and operators, as people know it.
    pub fn operators(&self) -> String {
        self.ops.join("+")
    }

    /// The share of its step's time that is its own, of all layers of a run: as the model of the configuration's host says.
    pub fn share(&self, all: &[Layer]) -> f64 {
        let weight = |layer: &Layer| layer.host_ns.unwrap_or(1).max(1) as f64;
        let beside = all.iter().filter(|other| other.step == self.step && other.place == self.place);
        weight(self) / beside.map(weight).sum::<f64>()
    }

    /// The share of the array's time that its true multiply-accumulates fill.
    pub fn utilization(&self, macs_per_cycle: u64) -> Option<f64> {
        let cycles = self.accel?.cycles.filter(|cycles| *cycles > 0)?;
        Some(self.macs as f64 / (cycles * macs_per_cycle) as f64)
    }
}

/// The layers of an artifact in the order of their first nodes, those that compilation added before what follows them; with the
/// figures of a run where one is given, whose programs are those of [`crate::trace::programs`].
pub fn layers(artifact: &Artifact, programs: &[Vec<Insn>], report: Option<&RunReport>) -> Vec<Layer> {
    let manifest = &artifact.manifest;
    let mut layers: Vec<Layer> = Vec::new();
    for (index, node) in manifest.nodes.iter().enumerate() {
        let step = node.step.map(|step| step as usize);
        let together = |layer: &&mut Layer| {
            let first = &manifest.nodes[layer.nodes[0]];
            first.place == node.place && layer.step == step && key(first) == key(node)
        };
        match layers.iter_mut().rev().find(together) {
            Some(layer) => {
                layer.nodes.push(index);
                layer.ops.push(node.op.clone());
                layer.macs += node.macs;
            }
            None => layers.push(Layer {
                name: node.name.clone(),
                ops: vec![node.op.clone()],
                nodes: vec![index],
                step,
                place: node.place,
                macs: node.macs,
                host_ns: host_ns(node),
                accel: None,
            }),
        }
    }
    add_steps_without_nodes(manifest, &mut layers);
    for (step, program) in programs.iter().enumerate() {
        if let Some(report) = report {
            time(manifest, &mut layers, step, program, report);
        }
    }
    layers
}

/// Puts in the host's steps that no node of the model stands for.
fn add_steps_without_nodes(manifest: &Manifest, layers: &mut Vec<Layer>) {
    for (number, step) in manifest.steps.iter().enumerate() {
        let place = place_of(step);
        if place == Place::Accel || layers.iter().any(|layer| layer.step == Some(number)) {
            continue;
        }
        let at = layers.iter().position(|layer| layer.step > Some(number)).unwrap_or(layers.len());
        let added = Layer {
            name: step.name.clone(),
            ops: vec![ADDED.to_string()],
            nodes: Vec::new(),
            step: Some(number),
            place,
            macs: 0,
            host_ns: None,
            accel: None,
        };
        layers.insert(at, added);
    }
}

/// What tells a node's layer from others.
fn key(node: &NodeInfo) -> &str {
    node.cost.as_ref().map_or(&node.name, |cost| &cost.layer)
}

fn host_ns(node: &NodeInfo) -> Option<u64> {
    node.cost.as_ref().and_then(|cost| cost.cpu_ns.filter(|_| !cost.cpu_measured))
}

/// Gives the layers of one program their cycles and bytes.
fn time(manifest: &Manifest, layers: &mut [Layer], step: usize, program: &[Insn], report: &RunReport) {
    let (Some(StepKind::Accel(accel)), Some(taken)) =
        (manifest.steps.get(step).map(|s| &s.kind), report.steps.get(step))
    else {
        return;
    };
    let ends: Vec<usize> = accel.layers.iter().map(|layer| layer.end).collect();
    let cycles = part_ends(program, &taken.spans, &ends, taken.cycles);
    let (mut from, mut start) = (0, 0);
    for (place, end) in accel.layers.iter().enumerate() {
        let named = |layer: &&mut Layer| {
            layer.step == Some(step) && layer.nodes.iter().any(|node| manifest.nodes[*node].name == end.name)
        };
        let stop = cycles.as_ref().map_or(start, |cycles| cycles[place]);
        let (read, written) = moved(program.get(from..end.end).unwrap_or_default());
        if let Some(layer) = layers.iter_mut().find(named) {
            let had = layer.accel.unwrap_or(OnAccel { start, ..OnAccel::default() });
            let more = cycles.as_ref().map(|_| had.cycles.unwrap_or(0) + (stop - start));
            layer.accel = Some(OnAccel { cycles: more, read: had.read + read, written: had.written + written, ..had });
        }
        (from, start) = (end.end, stop);
    }
}

/// Bytes that loads read and stores write.
pub fn moved(insns: &[Insn]) -> (u64, u64) {
    let bytes = |counts: [u32; 3]| counts.into_iter().map(u64::from).product::<u64>();
    insns.iter().fold((0, 0), |(read, written), insn| match insn.op {
        Op::Load(x) => (read + bytes([x.row_bytes, x.rows, x.planes]), written),
        Op::Store(x) => (read, written + bytes([x.row_bytes, x.rows, x.planes])),
        Op::Gemm(_) | Op::Vector(_) => (read, written),
    })
}
