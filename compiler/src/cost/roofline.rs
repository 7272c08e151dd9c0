//! A lower bound on the accelerator's cycles for a network, from shapes and rates alone.
//!
//! The bound knows no plan, tile or schedule. For each unit it adds up the least cycles of all nodes, by the rates of
//! `hw/TIMING.md`. Units work side by side, across layers too, so the busiest unit determines the bound. It assumes
//! what every program has in common: the graph's operators as they are, and tensors whose entries hold the channels of
//! one pixel.
//!
//! - **Array**: a micro-op multiplies `block_in` elements with the weights of `block_out` channels, for `batch` rows. An
//!   output entry takes as many micro-ops as its operands fill entries. Taps on padding do not count.
//! - **Vector**: a row takes `row_elements / requant_lanes` cycles for requantization and products, three times as many
//!   for quantized sums, and `row_elements / vector_lanes` for simple operations.
//! - **Array or vector**: taps of depthwise convolutions and of average pooling, divided so that the busier unit has as
//!   little as possible.
//! - **Bus**: weights and other constant operands once, and each tensor that passes between host and accelerator once.
//!   All other tensors could stay on the chip.

use std::collections::{BTreeMap, BTreeSet};

use crate::graph::op::window::Window;
use crate::graph::op::{BinaryKind, Conv2d, Layout};
use crate::graph::{Graph, Node, NodeId, Op, ValueId};
use tilewright_hw::HwConfig;
use tilewright_hw::isa::VecOp;

/// Least cycles of each unit. The program takes at least as many as the busiest one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Roofline {
    /// Cycles of the multiply-accumulate array.
    pub array: u64,
    /// Cycles of the vector unit.
    pub vector: u64,
    /// Cycles of the memory bus.
    pub bus: u64,
}

impl Roofline {
    /// The bound.
    pub fn cycles(&self) -> u64 {
        self.array.max(self.vector).max(self.bus)
    }

    /// The unit that determines the bound.
    pub fn unit(&self) -> &'static str {
        let units = [(self.array, "array"), (self.vector, "vector"), (self.bus, "bus")];
        units.into_iter().find(|(cycles, _)| *cycles == self.cycles()).map_or("array", |(_, unit)| unit)
    }
}

/// Cycles of a node's parts.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Work {
    array: f64,
    vector: f64,
    /// Work that either unit can do: cycles if the array does all of it, and if the vector unit does.
    either: Option<[f64; 2]>,
}

/// Returns the bound for the nodes in `offloaded`, or `None` if the size of one of their tensors is symbolic.
pub fn roofline(graph: &Graph, offloaded: &BTreeSet<NodeId>, config: &HwConfig) -> Option<Roofline> {
    let (mut array, mut vector, mut either) = (0.0, 0.0, Vec::new());
    let mut computing = BTreeSet::new();
    for &id in offloaded {
        let work = work(graph, graph.node(id), config)?;
        if work != Work::default() {
            computing.insert(id);
        }
        array += work.array;
        vector += work.vector;
        either.extend(work.either);
    }
    let [array, vector] = divided([array, vector], either);
    let bytes = bytes(graph, offloaded, &computing)?;
    let bus = bytes as f64 / config.dram.bytes_per_cycle(config.bus_bytes()).min(f64::from(config.bus_bytes()));
    Some(Roofline { array: array as u64, vector: vector as u64, bus: bus as u64 })
}

/// Divides work that either unit can do so that the busier unit is done as early as possible. What is cheapest for the
/// vector unit, relative to the array, moves to it first.
fn divided([mut array, mut vector]: [f64; 2], mut either: Vec<[f64; 2]>) -> [f64; 2] {
    array += either.iter().map(|[on_array, _]| on_array).sum::<f64>();
    either.sort_by(|a, b| (a[1] * b[0]).total_cmp(&(b[1] * a[0])));
    for [on_array, on_vector] in either {
        let share = ((array - vector) / (on_array + on_vector)).clamp(0.0, 1.0);
        array -= share * on_array;
        vector += share * on_vector;
    }
    [array, vector]
}

/// Cycles per element of operations on the vector unit.
struct Rates {
    simple: f64,
    deep: f64,
    sum: f64,
}

impl Rates {
    fn of(config: &HwConfig) -> Rates {
        let row = f64::from(config.row_elements());
        let simple = match config.vector_serial() {
            true => f64::from(config.serial_element_cycles(VecOp::Max)),
            false => f64::from(config.row_elements().div_ceil(config.vector_lanes)) / row,
        };
        let deep = |op: VecOp| f64::from(config.deep_row_cycles(op.passes())) / row;
        Rates { simple, deep: deep(VecOp::Requant), sum: deep(VecOp::Qadd) }
    }
}

fn work(graph: &Graph, node: &Node, config: &HwConfig) -> Option<Work> {
    let rates = Rates::of(config);
    let elements = graph.ty(node.output()).element_count()? as f64;
    let vector = |per_element: f64| Some(Work { vector: per_element * elements, ..Work::default() });
    match &node.op {
        Op::Conv2d(op) => convolution(graph, node, op, config),
        Op::Dense(_) => {
            let weight = graph.ty(node.inputs[1]).shape()?;
            Some(on_array(product(config, elements as usize / weight[0].max(1), weight[0], weight[1])))
        }
        Op::QMatMul(_) => {
            let (a, out) = (graph.ty(node.inputs[0]).shape()?, graph.ty(node.output()).shape()?);
            let [rows, columns] = [out[out.len() - 2], out[out.len() - 1]];
            let matrices: usize = out[..out.len() - 2].iter().product();
            let depth = a[a.len() - 1];
            // Either operand can be the weights.
            let ways = [(rows, columns), (columns, rows)].map(|(m, n)| product(config, m, n, depth));
            Some(on_array(ways[0].min(ways[1]) * matrices as f64))
        }
        Op::ConvTranspose2d(op) => {
            let (data, weight) = (graph.ty(node.inputs[0]).shape()?, graph.ty(node.inputs[1]).shape()?);
            let axes = op.layout.spatial_axes();
            let taps = |i: usize| {
                let inside = |(o, k): (usize, usize)| {
                    let at = (o * op.strides[i] + k * op.dilations[i]).checked_sub(op.pads[i]);
                    at.is_some_and(|at| at < op.size[i])
                };
                let all = (0..data[axes[i]]).flat_map(|o| (0..weight[i + 1]).map(move |k| (o, k)));
                all.filter(|tap| inside(*tap)).count() as f64
            };
            let channels = (data[0] * weight[0] * weight[3]) as f64;
            Some(on_array(taps(0) * taps(1) * channels / config.macs_per_cycle() as f64))
        }
        Op::MaxPool2d(op) => {
            let window = Window { kernel: op.kernel, strides: op.strides, pads: &op.pads, dilations: op.dilations };
            let pairs = pairs(graph, node, &window, op.layout)?;
            Some(Work { vector: pairs * rates.simple, ..Work::default() })
        }
        Op::SumPool2d(op) => {
            let window = Window { kernel: op.kernel, strides: op.strides, pads: &op.pads, dilations: [1; 2] };
            Some(sums(pairs(graph, node, &window, op.layout)?, 0.0, config))
        }
        Op::QAvgPool2d(op) => {
            let window = Window { kernel: op.kernel, strides: op.strides, pads: &op.pads, dilations: [1; 2] };
            Some(sums(pairs(graph, node, &window, op.layout)?, elements * rates.deep, config))
        }
        Op::GlobalAvgPool(op) => {
            let data = graph.ty(node.inputs[0]).shape()?;
            let kernel = op.layout.spatial_axes().map(|axis| data[axis]);
            let window = Window { kernel, strides: [1; 2], pads: &[0; 4], dilations: [1; 2] };
            Some(sums(pairs(graph, node, &window, op.layout)?, elements * rates.deep, config))
        }
        Op::Requantize(_) | Op::QMul(_) | Op::Rescale(_) => vector(rates.deep),
        Op::QAdd(_) => vector(rates.sum),
        Op::Lookup(_) => vector(rates.simple),
        Op::Binary(op) if matches!(op.kind, BinaryKind::Min | BinaryKind::Max) => vector(rates.simple),
        _ => Some(Work::default()),
    }
}

fn on_array(cycles: f64) -> Work {
    Work { array: cycles, ..Work::default() }
}

/// Micro-ops of a product of `rows` pixels with the weights of `channels` channels, `depth` deep.
fn product(config: &HwConfig, rows: usize, channels: usize, depth: usize) -> f64 {
    let entries = rows.div_ceil(config.batch as usize) * channels.div_ceil(config.block_out as usize);
    (entries * depth.div_ceil(config.block_in as usize)) as f64
}

/// Micro-ops of a convolution: of each pixel, for each block of output channels, as many as the elements that it reads
/// fill entries. If each channel has a window of its own, the vector unit can add taps too.
fn convolution(graph: &Graph, node: &Node, op: &Conv2d, config: &HwConfig) -> Option<Work> {
    let (data, weight) = (graph.ty(node.inputs[0]).shape()?, graph.ty(node.inputs[1]).shape()?);
    let out = graph.ty(node.output()).shape()?;
    let (axes, groups) = (op.layout.spatial_axes(), op.groups.max(1));
    let window =
        Window { kernel: [weight[1], weight[2]], strides: op.strides, pads: &op.pads, dilations: op.dilations };
    let [rows, columns] = [0, 1].map(|i| tap_counts(&window, i, out[axes[i]], data[axes[i]]));
    let (per_group, depth) = ((weight[0] / groups).max(1), weight[3]);
    let block = config.block_out as usize;
    let (mut micro_ops, mut taps) = (0, 0);
    for first in (0..weight[0]).step_by(block) {
        let last = (first + block).min(weight[0]) - 1;
        let read = (last / per_group - first / per_group + 1) * depth;
        for (r, rows) in &rows {
            for (c, columns) in &columns {
                micro_ops += rows * columns * (r * c * read).div_ceil(config.block_in as usize);
                taps += rows * columns * r * c;
            }
        }
    }
    let per_row = data[0] as f64 / f64::from(config.batch);
    let array = micro_ops as f64 * per_row;
    if depth == 1 && per_group == 1 && VecOp::Mac.is_built(config) {
        let simple = f64::from(config.row_elements().div_ceil(config.vector_lanes));
        return Some(Work { either: Some([array, taps as f64 * per_row * simple]), ..Work::default() });
    }
    Some(on_array(array))
}

/// Maps each number of taps inside the image, in one dimension, to the number of output positions that have it.
fn tap_counts(window: &Window, i: usize, out: usize, size: usize) -> BTreeMap<usize, usize> {
    let mut counts = BTreeMap::new();
    for o in 0..out {
        *counts.entry(window.taps(i, o, size).len()).or_default() += 1;
    }
    counts
}

/// Work of adding up pairs of elements on either unit, and more cycles on the vector unit.
fn sums(pairs: f64, vector: f64, config: &HwConfig) -> Work {
    let on_array = pairs / f64::from(config.batch * config.block_in);
    let either = (pairs > 0.0).then(|| [on_array, pairs * Rates::of(config).simple]);
    Work { vector, either, ..Work::default() }
}

/// Least number of elements that operations of two operands compute for a pooling. Each operation has one result, each
/// output is one, and each element inside a window must be an operand. So for n elements and m outputs, there are at
/// least n - m operations and at least m.
fn pairs(graph: &Graph, node: &Node, window: &Window, layout: Layout) -> Option<f64> {
    let (data, out) = (graph.ty(node.inputs[0]).shape()?, graph.ty(node.output()).shape()?);
    let axes = layout.spatial_axes();
    let read = [0, 1].map(|i| {
        let taps = (0..out[axes[i]]).flat_map(|o| window.taps(i, o, data[axes[i]]));
        taps.map(|(_, at)| at).collect::<BTreeSet<_>>().len()
    });
    let planes = data[0] * data[layout.channel_axis()];
    let [elements, outputs] = [read[0] * read[1] * planes, out.iter().product()];
    let least = if window.kernel == [1, 1] { 0 } else { outputs };
    Some(elements.saturating_sub(outputs).max(least) as f64)
}

/// Bytes that must cross the bus: constant operands, and tensors between host and accelerator.
fn bytes(graph: &Graph, offloaded: &BTreeSet<NodeId>, computing: &BTreeSet<NodeId>) -> Option<u64> {
    let mut values = BTreeSet::new();
    // The value that an offloaded view or move of elements passes on.
    let source = |mut v: ValueId| {
        while let Some((id, node)) = graph.def_node(v) {
            match node.op {
                Op::Reshape(_) | Op::Transpose(_) if offloaded.contains(&id) => v = node.inputs[0],
                _ => break,
            }
        }
        v
    };
    let by = |v: ValueId, nodes: &BTreeSet<NodeId>| graph.def_node(v).is_some_and(|(id, _)| nodes.contains(&id));
    for (id, node) in graph.nodes() {
        // Biases, factors and tables are few; they do not count.
        let operands = match node.op {
            Op::Requantize(_) | Op::Lookup(_) => &node.inputs[..1],
            _ => &node.inputs[..],
        };
        for v in operands.iter().map(|v| source(*v)) {
            let crosses = match computing.contains(&id) {
                true => !by(v, offloaded),
                false => !offloaded.contains(&id) && by(v, computing),
            };
            if crosses {
                values.insert(v);
            }
        }
    }
    values.extend(graph.outputs().iter().map(|(_, v)| source(*v)).filter(|v| by(*v, computing)));
    // All operands of the accelerator are bytes, whatever the type of a constant in the graph.
    values.into_iter().map(|v| graph.ty(v).element_count().map(|count| count as u64)).sum()
}

#[cfg(test)]
mod tests;
