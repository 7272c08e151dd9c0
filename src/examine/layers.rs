//! Divides a run into the layers of the model, with their time and traffic.
//!
//! A layer is what one plan computes on the accelerator, or what `--explain` lists together on the CPU.
//!
//! Layers overlap on the accelerator: while a layer's last results are stored, the next layer's data is loaded and its
//! products begin. Each cycle still counts for exactly one layer, so that the cycles of all layers add up to those of
//! their programs: a layer ends when the array begins with the next one, or when its last instruction is done,
//! whichever comes first. So all cycles in which the array works for a layer count for this layer, and its utilization
//! cannot exceed 100 %.
//!
//! The host's steps add up too: layers of one step share its time. A step without a node of the model, such as a layout
//! transpose that compilation added, is a layer of its own.

use tilewright_hw::device::Span;
use tilewright_hw::isa::{Insn, Op, Unit};
use tilewright_hw::regs::UnitState;
use tilewright_runtime::artifact::{Artifact, InsnLayers, Manifest, NodeInfo, Place, StepKind};
use tilewright_runtime::session::RunReport;

use crate::model::clock::layer_ends;
use crate::model::values::place_of;

/// The operator of a step without a node of the model.
pub const ADDED: &str = "added";

/// A layer of a compiled model.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// Name of its first node, or of its step if compilation added it.
    pub name: String,
    /// The operators of its nodes, or [`ADDED`].
    pub ops: Vec<String>,
    /// Indices of its nodes in the manifest; none if compilation added it.
    pub nodes: Vec<usize>,
    /// The step that computes it; none if there is nothing to compute.
    pub step: Option<usize>,
    /// Where it runs.
    pub place: Place,
    /// Multiply-accumulates of the network, without padding.
    pub macs: u64,
    /// Modeled nanoseconds on the configuration's host; none for steps that compilation added.
    pub host_ns: Option<u64>,
    /// Its figures on the accelerator, if it ran there.
    pub accel: Option<OnAccel>,
}

/// Figures of a layer on the accelerator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OnAccel {
    /// Cycles that count for the layer, if the device reports spans; those of all layers add up to the program's.
    pub cycles: Option<u64>,
    /// Cycles from the start of its first instruction to the end of its last; other layers can overlap them.
    pub span: Option<u64>,
    /// Cycles in which load, gemm, vector and store worked on its instructions.
    pub busy: [u64; 4],
    /// Bytes that its loads read.
    pub read: u64,
    /// Bytes that its stores write.
    pub written: u64,
}

impl Layer {
    /// Its operators as one text.
    pub fn operators(&self) -> String {
        self.ops.join("+")
    }

    /// Its fraction of its step's time, by the modeled times of all layers of the step.
    pub fn share(&self, all: &[Layer]) -> f64 {
        let weight = |layer: &Layer| layer.host_ns.unwrap_or(1).max(1) as f64;
        let beside = all.iter().filter(|other| other.step == self.step && other.place == self.place);
        weight(self) / beside.map(weight).sum::<f64>()
    }

    /// The fraction of the array's time that its useful multiply-accumulates fill.
    pub fn utilization(&self, macs_per_cycle: u64) -> Option<f64> {
        let cycles = self.accel?.cycles.filter(|cycles| *cycles > 0)?;
        Some(self.macs as f64 / (cycles * macs_per_cycle) as f64)
    }
}

/// The layers of an artifact in the order of their first nodes; steps that compilation added come before the layers
/// that follow them. With a `report`, the layers have the figures of that run. `programs` comes from
/// [`crate::examine::trace::programs`].
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

/// Inserts the host's steps that belong to no node of the model.
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

/// Identifies a node's layer.
fn key(node: &NodeInfo) -> &str {
    node.cost.as_ref().map_or(&node.name, |cost| &cost.layer)
}

fn host_ns(node: &NodeInfo) -> Option<u64> {
    node.cost.as_ref().and_then(|cost| cost.cpu_ns.filter(|_| !cost.cpu_measured))
}

/// Sets cycles and bytes of the layers of one program.
fn time(manifest: &Manifest, layers: &mut [Layer], step: usize, program: &[Insn], report: &RunReport) {
    let (Some(StepKind::Accel(accel)), Some(taken)) =
        (manifest.steps.get(step).map(|s| &s.kind), report.steps.get(step))
    else {
        return;
    };
    let of = accel.insn_layers();
    let parts = parts(program, &taken.spans, &of, taken.cycles);
    let mut bytes = vec![(0, 0); of.layers()];
    for (place, insn) in program.iter().enumerate() {
        if let Some(layer) = of.of(place) {
            let (read, written) = moved(insn);
            bytes[layer] = (bytes[layer].0 + read, bytes[layer].1 + written);
        }
    }
    let mut start = 0;
    for (place, (end, (read, written))) in accel.layers.iter().zip(bytes).enumerate() {
        let named = |layer: &&mut Layer| {
            layer.step == Some(step) && layer.nodes.iter().any(|node| manifest.nodes[*node].name == end.name)
        };
        let part = parts.as_ref().map(|parts| parts[place]);
        if let Some(layer) = layers.iter_mut().find(named) {
            let had = layer.accel.unwrap_or_default();
            let mut now = OnAccel { read: had.read + read, written: had.written + written, ..had };
            if let Some(part) = part {
                now.cycles = Some(had.cycles.unwrap_or(0) + (part.stop - start));
                now.span = Some(had.span.unwrap_or(0) + part.span);
                now.busy.iter_mut().zip(part.busy).for_each(|(sum, cycles)| *sum += cycles);
            }
            layer.accel = Some(now);
        }
        start = part.map_or(start, |part| part.stop);
    }
}

/// A part of a program in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    /// The first cycle, from the program's start, that counts for the next part.
    pub stop: u64,
    /// Cycles from the start of its first instruction to the end of its last.
    pub span: u64,
    /// Cycles in which each unit worked on its instructions.
    pub busy: [u64; 4],
}

/// Divides a program into its layers; the last one ends with the program's `cycles`. None if an instruction did not
/// retire.
pub(crate) fn parts(insns: &[Insn], spans: &[Span], layers: &InsnLayers, cycles: Option<u64>) -> Option<Vec<Part>> {
    let stops = layer_ends(insns, spans, layers, cycles)?;
    let mut of_unit = Unit::ALL.map(|unit| spans.iter().filter(move |span| span.unit == unit));
    let mut parts: Vec<Part> = stops.into_iter().map(|stop| Part { stop, span: 0, busy: [0; 4] }).collect();
    // By layer: the first cycle of any instruction, the last one, and the first cycle of the array.
    let mut times = vec![(u64::MAX, 0, None); parts.len()];
    for (place, insn) in insns.iter().enumerate() {
        let unit = insn.unit();
        let span = of_unit[unit as usize].next()?;
        let Some(layer) = layers.of(place) else { continue };
        let (first, last, on_array) = &mut times[layer];
        (*first, *last) = (span.start.min(*first), span.end?.max(*last));
        parts[layer].busy[unit as usize] += span.states[UnitState::Busy as usize];
        if unit == Unit::Gemm {
            on_array.get_or_insert(span.start);
        }
    }
    // The array computes one layer after the other. Gemm starts an instruction only after it has issued all earlier
    // ones.
    let mut next = u64::MAX;
    for (part, (first, last, on_array)) in parts.iter_mut().zip(times).rev() {
        part.stop = part.stop.min(next);
        part.span = last.saturating_sub(first);
        next = on_array.map_or(next, |begun| next.min(begun));
    }
    Some(parts)
}

/// Bytes that an instruction reads from device memory and that it writes there.
pub fn moved(insn: &Insn) -> (u64, u64) {
    let bytes = |counts: [u32; 3]| counts.into_iter().map(u64::from).product::<u64>();
    match insn.op {
        Op::Load(x) => (bytes([x.row_bytes, x.rows, x.planes]), 0),
        Op::Store(x) => (0, bytes([x.row_bytes, x.rows, x.planes])),
        Op::Gemm(_) | Op::Vector(_) => (0, 0),
    }
}

#[cfg(test)]
mod tests {
    use tilewright_hw::isa::parse_program;

    use tilewright_runtime::artifact::LayerEnd;

    use super::*;

    fn layers(ends: &[usize]) -> Vec<LayerEnd> {
        ends.iter().map(|&end| LayerEnd { name: String::new(), end }).collect()
    }

    fn in_order(ends: &[usize]) -> InsnLayers {
        InsnLayers::new(&layers(ends), &[])
    }

    /// A layer with a load, a product and a store, one with only a vector instruction, and one like the first. Each
    /// instruction has its unit's ordinal, start, end and busy cycles.
    fn run() -> (Vec<Insn>, Vec<Span>) {
        let text = "load mem=inp row_bytes=16\ngemm uops=1\nstore mem=out row_bytes=16\nvector op=add uops=1\n\
                    load mem=inp row_bytes=16\ngemm uops=1\nstore mem=out row_bytes=16";
        let insns = parse_program(text).expect("a program");
        let times = [(0, 10, 8), (10, 40, 28), (41, 90, 20), (50, 60, 9), (9, 30, 20), (38, 80, 40), (91, 100, 9)];
        let mut ordinals = [0; 4];
        let span = |(insn, (start, end, busy)): (&Insn, (u64, u64, u64))| {
            let unit = insn.unit();
            let ordinal = ordinals[unit as usize];
            ordinals[unit as usize] += 1;
            let mut states = [0; UnitState::ALL.len()];
            states[UnitState::Busy as usize] = busy;
            Span { unit, ordinal, start, end: Some(end), states }
        };
        let spans = insns.iter().zip(times).map(span).collect();
        (insns, spans)
    }

    #[test]
    fn a_cycle_counts_for_the_layer_that_has_the_array_and_work_for_its_own() {
        let (insns, spans) = run();
        let found = parts(&insns, &spans, &in_order(&[3, 4, 7]), Some(103)).expect("all retired");
        // The third layer's product begins before the first layer's result is stored and before the second layer is
        // done.
        assert_eq!(found.iter().map(|part| part.stop).collect::<Vec<_>>(), [38, 38, 103]);
        assert_eq!(found.iter().map(|part| part.span).collect::<Vec<_>>(), [90, 10, 91]);
        assert_eq!(
            found.iter().map(|part| part.busy).collect::<Vec<_>>(),
            [[8, 28, 0, 20], [0, 0, 9, 0], [20, 40, 0, 9]]
        );
        // Without a product, each layer ends with its last instruction.
        let stops: Vec<u64> = parts(&insns[..4], &spans[..4], &in_order(&[3, 4]), Some(95))
            .expect("all retired")
            .iter()
            .map(|p| p.stop)
            .collect();
        assert_eq!(stops, [90, 95]);
        let mut trapped = spans;
        trapped[6].end = None;
        assert_eq!(parts(&insns, &trapped, &in_order(&[3, 4, 7]), Some(103)), None);
    }
}
