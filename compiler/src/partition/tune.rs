//! Compares tiles by exact cycles, if there is a [`Clock`].
//!
//! The estimate of a layer ignores how it overlaps with its neighbors, and how a few more or fewer instructions affect
//! a busy bus. So the plans with the fewest estimated cycles are each built together with the layers before and after,
//! and the plan with the fewest exact cycles is used.

use super::place::Placed;
use super::{Code, Options, Region};
use crate::codegen::accel::{self, Aliases, Constants, Layer, Planned};
use crate::cost::Clock;
use crate::graph::{Graph, ValueId};
use std::collections::HashMap;
use tilewright_driver::{Order, Search};
use tilewright_hw::HwConfig;

/// Maximum number of plans of a layer that are compared.
const MOST: usize = 8;

/// Maximum number of instructions of all programs that are timed for one partition; four times as many if it is
/// thorough. This limits the compile time, in the same way on every machine.
const MOST_INSNS: usize = 100_000;

/// Number of layers before and after the one whose plans are compared.
const AROUND: usize = 1;

/// Which of a program's orders the judge times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Timing {
    /// The order of the layers.
    Program,
    /// The order that is most often the best one.
    Searched,
}

/// Cycles of a program in its own order and in the searched one, as far as they are known.
type Times = [Option<u64>; 2];

/// A clock with a cache of its answers, because networks repeat their layers.
pub(super) struct Judge<'a> {
    graph: &'a Graph,
    config: &'a HwConfig,
    clock: &'a dyn Clock,
    known: HashMap<String, Times>,
    /// Whether programs are also timed in the order that a search finds.
    reorder: bool,
    /// Number of instructions that can still be timed.
    left: usize,
}

impl<'a> Judge<'a> {
    /// A new judge for the programs that the options allow; its limit is larger if results can stay on the chip.
    pub fn new(graph: &'a Graph, config: &'a HwConfig, clock: &'a dyn Clock, options: &Options) -> Judge<'a> {
        let left = if options.keep_on_chip { 4 * MOST_INSNS } else { MOST_INSNS };
        let reorder = options.reorder && !options.keep_values;
        Judge { graph, config, clock, known: HashMap::new(), reorder, left }
    }

    /// The orders in which plans can be compared.
    pub fn timings(&self) -> &'static [Timing] {
        if self.reorder { &[Timing::Searched, Timing::Program] } else { &[Timing::Program] }
    }

    /// Gives each layer the plan with the fewest cycles. Returns whether that changed a plan.
    pub fn tune(&mut self, placed: &mut Placed, timing: Timing) -> bool {
        let before: Vec<Planned> = placed.layers.iter().map(|l| l.planned.clone()).collect();
        for group in placed.by_depth().into_values() {
            for at in 0..group.len() {
                self.tune_layer(placed, &group, at, timing);
            }
        }
        placed.layers.iter().zip(&before).any(|(l, planned)| l.planned != *planned)
    }

    fn tune_layer(&mut self, placed: &mut Placed, group: &[usize], at: usize, timing: Timing) {
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
        let Some(mut best) = self.cycles(placed, &window, timing) else { return };
        let mut planned = window[own].1.clone();
        for choice in choices {
            window[own].1 = choice;
            if let Some(cycles) = self.cycles(placed, &window, timing)
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

    /// Returns the cycles of some layers as a separate program; `None` if they are unknown, the program cannot be
    /// built, or the limit is reached.
    fn cycles(&mut self, placed: &Placed, window: &[(Layer, Planned)], timing: Timing) -> Option<u64> {
        let root = |v: ValueId| placed.roots.get(&v).copied().unwrap_or(v);
        let seen = |v: ValueId| placed.seen.get(&v).copied();
        let key = key(window, &root);
        if let Some(known) = self.known.get(&key) {
            return known[timing as usize];
        }
        if self.left == 0 {
            return None;
        }
        let aliases = Aliases { root: &root, view: &seen };
        let outputs: Vec<ValueId> = window.last().map(|(l, _)| l.output.0).into_iter().collect();
        let built = accel::build(self.graph, self.config, window, &outputs, aliases, Constants::Zeros).ok();
        self.left = self.left.saturating_sub(built.as_ref().map_or(0, |b| b.recording.len()));
        let times = built.map_or([None; 2], |b| self.time(&b));
        self.known.insert(key, times);
        times[timing as usize]
    }

    /// Times a program in its orders.
    fn time(&self, built: &accel::Built) -> Times {
        let recording = &built.recording;
        let timed = |order: Order| {
            let (program, layers) = accel::ordered(recording, &built.layers, &order).ok()?;
            self.clock.cycles(&program, &layers)?.last().copied()
        };
        let own = timed(Order::of_program(recording.len()));
        [own, own.filter(|_| self.reorder).and_then(|_| timed(recording.search(Search::FIRST)))]
    }
}

/// Gives each layer its share of its program's cycles: from the end of the previous layer to its own end.
///
/// Returns the sum over all programs, or `None` if the cycles of a program are unknown.
pub(super) fn share_cycles(placed: &mut Placed, regions: &[Region], clock: &dyn Clock) -> Option<u64> {
    let mut sum = 0;
    let by_depth = placed.by_depth();
    for region in regions {
        let Code::Accel(accel) = &region.code else { continue };
        let depth = region.nodes.first().and_then(|n| placed.nodes.get(n))?.depth;
        let parts = match &accel.done {
            Some(done) => done.clone(),
            None => clock.cycles(&accel.program, &accel.insn_layers)?,
        };
        let mut before = 0;
        for (&layer, &done) in by_depth.get(&depth).into_iter().flatten().zip(&parts) {
            placed.layers[layer].cycles = Some(done.saturating_sub(before));
            before = done;
        }
        sum += before;
    }
    Some(sum)
}

/// Returns a text with all that determines the time of some layers: shapes, plans, and which layer reads which result,
/// but no values.
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
