//! A layer and its neighbors, which are timed together: neighbors hide each other's beginnings and ends.

use crate::codegen::accel::{self, Aliases, BuildError, Built, Constants, Layer, OnChip, Planned, View};
use crate::cost::Clock;
use crate::graph::{Graph, ValueId};
use crate::records::Workload;
use std::collections::HashMap;
use tilewright_driver::{Order, Search};
use tilewright_hw::HwConfig;

/// Number of layers before and after the one whose plans are compared.
const AROUND: usize = 1;

/// A layer with its plan.
pub type PlannedLayer = (Layer, Planned);

/// A layer and its neighbors in a program.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// The layers with their plans.
    pub layers: Vec<PlannedLayer>,
    /// Index of the layer among them.
    pub own: usize,
}

/// What layers refer to.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// The configuration.
    pub config: &'a HwConfig,
    /// For each alias, the value whose storage it shares.
    pub roots: &'a HashMap<ValueId, ValueId>,
    /// Views of aliases that differ from those of their roots.
    pub seen: &'a HashMap<ValueId, View>,
}

impl Surroundings<'_> {
    /// Builds the program of layers for its cycles alone, with zeros for weights. `outputs` are the values that the
    /// host reads.
    ///
    /// # Errors
    /// The layer whose instructions or constants the driver refuses.
    pub fn build(&self, layers: &[PlannedLayer], outputs: &[ValueId]) -> Result<Built, BuildError> {
        let root = |v: ValueId| self.root(v);
        let view = |v: ValueId| self.seen.get(&v).copied();
        let aliases = Aliases { root: &root, view: &view };
        accel::build(self.graph, self.config, layers, outputs, aliases, Constants::Zeros)
    }

    fn root(&self, value: ValueId) -> ValueId {
        self.roots.get(&value).copied().unwrap_or(value)
    }
}

impl Window {
    /// The window around layer `at` of a program of `count` layers.
    pub fn around(at: usize, count: usize, layer: impl Fn(usize) -> PlannedLayer) -> Window {
        let first = at.saturating_sub(AROUND);
        Window { layers: (first..(at + AROUND + 1).min(count)).map(layer).collect(), own: at - first }
    }

    /// The layer whose plans are compared.
    pub fn own(&self) -> &PlannedLayer {
        &self.layers[self.own]
    }

    /// Returns the window with another plan of its layer.
    pub fn with(&self, planned: Planned) -> Window {
        let mut window = self.clone();
        window.layers[self.own].1 = planned;
        window
    }

    /// Returns a window of the layer with another plan, without its neighbors.
    pub fn alone(&self, planned: Planned) -> Window {
        Window { layers: vec![(self.own().0.clone(), planned)], own: 0 }
    }

    /// Returns the cycles of the window as a separate program, in the program's own order; `None` if it cannot be built
    /// or run.
    pub fn cycles_in_order(&self, at: &Surroundings, clock: &dyn Clock) -> Option<u64> {
        least_cycles(&self.build(at).ok()?, clock, &[])
    }

    /// Returns the cycles of the window as a separate program, in the better one of two orders; `None` if it cannot be
    /// built or run.
    pub fn least_cycles(&self, at: &Surroundings, clock: &dyn Clock) -> Option<u64> {
        least_cycles(&self.build(at).ok()?, clock, &[Search::FIRST])
    }

    /// Builds the window's layers as a separate program.
    ///
    /// # Errors
    /// The layer whose instructions or constants the driver refuses.
    pub fn build(&self, at: &Surroundings) -> Result<Built, BuildError> {
        let outputs: Vec<ValueId> = self.layers.last().map(|(layer, _)| layer.output.0).into_iter().collect();
        at.build(&self.layers, &outputs)
    }

    /// What determines the layer's own cycles.
    pub fn layer(&self, at: &Surroundings) -> Workload {
        Workload::new(&text(std::slice::from_ref(self.own()), at, &|_| false))
    }

    /// What determines the cycles of all layers, apart from their plans.
    pub fn near(&self, at: &Surroundings) -> Workload {
        Workload::new(&format!("{} of {}", self.own, text(&self.layers, at, &|_| false)))
    }

    /// What determines the cycles of all layers, apart from the plan of the layer itself.
    pub fn context(&self, at: &Surroundings) -> Workload {
        Workload::new(&format!("{} of {}", self.own, text(&self.layers, at, &|i| i != self.own)))
    }

    /// A text with all that determines the cycles of all layers.
    pub fn key(&self, at: &Surroundings) -> String {
        text(&self.layers, at, &|_| true)
    }
}

/// Returns the cycles of a program in its own order and in the order that is most often the best one, as far as they are
/// wanted and known.
pub fn times(built: &Built, clock: &dyn Clock, wanted: [bool; 2]) -> [Option<u64>; 2] {
    let timed = |order: Order| clock.total(&built.recording, &order);
    let [own, searched] = wanted;
    [
        own.then(|| timed(Order::of_program(built.recording.len()))).flatten(),
        searched.then(|| timed(built.recording.search(Search::FIRST))).flatten(),
    ]
}

/// Returns the fewest cycles of a program, of those in its own order and in the orders that `searches` find; `None` if
/// they are unknown.
pub fn least_cycles(built: &Built, clock: &dyn Clock, searches: &[Search]) -> Option<u64> {
    let found = searches.iter().map(|&search| built.recording.search(search));
    let orders = std::iter::once(Order::of_program(built.recording.len())).chain(found);
    orders.filter_map(|order| clock.total(&built.recording, &order)).min()
}

/// Returns what determines the time of some layers: shapes, the plans that `with_plan` selects, and which layer reads
/// which result, but no values.
fn text(layers: &[PlannedLayer], at: &Surroundings, with_plan: &dyn Fn(usize) -> bool) -> String {
    let mut ids: HashMap<ValueId, usize> = HashMap::new();
    let mut number = |v: ValueId| {
        let next = ids.len();
        *ids.entry(at.root(v)).or_insert(next)
    };
    let mut text = String::new();
    for (i, (layer, planned)) in layers.iter().enumerate() {
        let inputs: Vec<String> =
            layer.inputs.iter().map(|(v, view)| format!("#{} {}", number(*v), view.without_values())).collect();
        let output = format!("#{} {}", number(layer.output.0), layer.output.1.without_values());
        text += &format!("{} {} -> {output};", planned.workload(), inputs.join(", "));
        let OnChip { input, output, stored, room } = layer.on_chip;
        for (what, kept) in [("reads", input), ("writes", output)] {
            text += &kept.map_or_else(String::new, |k| {
                format!(" {what} inp at {} {}x{:?} border {:?};", k.entry, k.blocks, k.image, k.border)
            });
        }
        text += &room.map_or_else(String::new, |(first, count)| format!(" loads to {count} at {first};"));
        text += if stored { " stored;" } else { "" };
        if with_plan(i) {
            text += &format!(" plan {};", planned.decisions());
        }
        text += "\n";
    }
    text
}
