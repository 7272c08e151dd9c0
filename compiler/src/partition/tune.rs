//! Tiles weighed exactly, where someone knows the cycles of a program.
//!
//! The estimate of a layer leaves out what its neighbours hide of it, and what few instructions more or less do to a bus that
//! is full. So of the few plans with the fewest estimated cycles the one is taken with which the layer, between the one
//! before and the one behind it, ends first.

use super::place::Placed;
use super::{Code, Region};
use crate::codegen::accel::{self, Aliases, Constants, Layer, Planned};
use crate::cost::Clock;
use crate::graph::{Graph, ValueId};
use std::collections::HashMap;
use tilewright_hw::HwConfig;
use tilewright_runtime::artifact::LayerEnd;

/// Plans of a layer that are weighed.
const MOST: usize = 8;

/// Instructions of all programs that are weighed for one partition, four times as many where it is thorough: they bound the
/// time to compile, and alike on every machine.
const MOST_INSNS: usize = 100_000;

/// Layers before and behind the one that is weighed.
const AROUND: usize = 1;

/// Who knows cycles, and what was asked before: networks repeat their layers.
pub(super) struct Judge<'a> {
    graph: &'a Graph,
    config: &'a HwConfig,
    clock: &'a dyn Clock,
    known: HashMap<String, Option<u64>>,
    /// Instructions that may still be weighed.
    left: usize,
}

impl<'a> Judge<'a> {
    /// A judge, who weighs more where `thorough`.
    pub fn new(graph: &'a Graph, config: &'a HwConfig, clock: &'a dyn Clock, thorough: bool) -> Judge<'a> {
        let left = if thorough { 4 * MOST_INSNS } else { MOST_INSNS };
        Judge { graph, config, clock, known: HashMap::new(), left }
    }

    /// Takes for each layer the plan with the fewest cycles; whether that changed anything.
    pub fn tune(&mut self, placed: &mut Placed) -> bool {
        let before: Vec<Planned> = placed.layers.iter().map(|l| l.planned.clone()).collect();
        for group in placed.by_depth().into_values() {
            for at in 0..group.len() {
                self.tune_layer(placed, &group, at);
            }
        }
        placed.layers.iter().zip(&before).any(|(l, planned)| l.planned != *planned)
    }

    fn tune_layer(&mut self, placed: &mut Placed, group: &[usize], at: usize) {
        let index = group[at];
        let own = &placed.layers[index];
        let choices = own.planned.alternatives(&own.layer, self.config, MOST);
        if choices.len() < 2 {
            return;
        }
        let near = &group[at.saturating_sub(AROUND)..(at + AROUND + 1).min(group.len())];
        let mut window: Vec<(Layer, Planned)> =
            near.iter().map(|&i| (placed.layers[i].layer.clone(), placed.layers[i].planned.clone())).collect();
        let own = near.iter().position(|&i| i == index).unwrap_or(0);
        let Some(mut best) = self.cycles(placed, &window) else { return };
        let mut planned = window[own].1.clone();
        for choice in choices {
            window[own].1 = choice;
            if let Some(cycles) = self.cycles(placed, &window)
                && cycles < best
            {
                (best, planned) = (cycles, window[own].1.clone());
            }
        }
        if planned != placed.layers[index].planned {
            let why = planned.describe(&placed.layers[index].layer);
            for node in &placed.layers[index].layer.nodes {
                if let Some(at) = placed.nodes.get_mut(node) {
                    at.why.clone_from(&why);
                }
            }
            placed.layers[index].planned = planned;
        }
    }

    /// Cycles of some layers as a program of their own; none where nobody knows, or where it cannot be built, or where
    /// enough was weighed.
    fn cycles(&mut self, placed: &Placed, window: &[(Layer, Planned)]) -> Option<u64> {
        let root = |v: ValueId| placed.roots.get(&v).copied().unwrap_or(v);
        let seen = |v: ValueId| placed.seen.get(&v).copied();
        let key = key(window, &root);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        if self.left == 0 {
            return None;
        }
        let aliases = Aliases { root: &root, view: &seen };
        let outputs: Vec<ValueId> = window.last().map(|(l, _)| l.output.0).into_iter().collect();
        let built = accel::build(self.graph, self.config, window, &outputs, aliases, Constants::Zeros).ok();
        self.left = self.left.saturating_sub(built.as_ref().map_or(0, |b| b.program.insn_count()));
        let cycles = built.and_then(|b| self.clock.cycles(&b.program, &ends(&b.layers))?.last().copied());
        self.known.insert(key, cycles);
        cycles
    }
}

/// Gives each layer its share of its program's cycles, from the end of the layer before it to its own; the sum of all
/// programs. None where a program's are not known.
pub(super) fn share_cycles(placed: &mut Placed, regions: &[Region], clock: &dyn Clock) -> Option<u64> {
    let mut sum = 0;
    let by_depth = placed.by_depth();
    for region in regions {
        let Code::Accel(accel) = &region.code else { continue };
        let depth = region.nodes.first().and_then(|n| placed.nodes.get(n))?.depth;
        let parts = clock.cycles(&accel.program, &ends(&accel.layers))?;
        let mut before = 0;
        for (&layer, &done) in by_depth.get(&depth).into_iter().flatten().zip(&parts) {
            placed.layers[layer].cycles = Some(done.saturating_sub(before));
            before = done;
        }
        sum += before;
    }
    Some(sum)
}

/// Where each layer's instructions end.
fn ends(layers: &[LayerEnd]) -> Vec<usize> {
    layers.iter().map(|layer| layer.end).collect()
}

/// What the time of some layers depends on: their shapes and plans, and who reads whose result, but no values.
fn key(window: &[(Layer, Planned)], root: &dyn Fn(ValueId) -> ValueId) -> String {
    let mut ids: HashMap<ValueId, usize> = HashMap::new();
    let mut number = |v: ValueId| {
        let next = ids.len();
        *ids.entry(root(v)).or_insert(next)
    };
    let mut text = String::new();
    for (layer, planned) in window {
        let inputs: Vec<_> = layer.inputs.iter().map(|(v, view)| (number(*v), *view)).collect();
        let output = (number(layer.output.0), layer.output.1);
        text += &format!("{} {inputs:?} {output:?} {:?} ", planned.timing_key(), layer.on_chip);
    }
    text
}
