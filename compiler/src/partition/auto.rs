//! Places operators by cost: where each takes the least time, including transfers of operands and results.
//!
//! A unit is a group of nodes that can only move together: a layer of the accelerator, a node that only changes a
//! shape, or a node that the accelerator cannot compute. Each unit costs its time in its place. If a value's producer
//! and a reader are in different places, the value costs a change of layout and a transfer, only once for all readers,
//! and a launch if it goes to the accelerator. This is a minimum cut of a network ([`super::cut`]), which is solved
//! exactly.
//!
//! The network ignores two things: it counts a launch per value that enters instead of per program, and a layer can
//! have another plan if its neighbors move. So the proposed placement is planned and costed again with its own
//! programs, and only used if it is cheaper than both everything and nothing on the accelerator.

use super::Options;
use super::cut::{NEVER, Network, SINK, SOURCE};
use super::place::{NodePlace, Placed};
use crate::codegen::accel::View;
use crate::cost::{CostOracle, CpuTime};
use crate::graph::{Graph, NodeId, Op, ValueId};
use std::collections::{BTreeMap, HashMap, HashSet};
use tilewright_hw::HwConfig;
use tilewright_runtime::artifact::{NodeCost, Place};

/// Maximum number of rounds of cutting and placing again.
const TURNS: usize = 4;

/// Nodes that can only move together.
struct PlacementUnit {
    nodes: Vec<NodeId>,
    /// Cycles and nanoseconds on the accelerator, if it can compute the unit.
    accel: Option<(u64, u64)>,
    cpu: Option<CpuTime>,
    /// Another unit that must be on the accelerator if this one is.
    with: Option<usize>,
}

/// A value that passes between units, or between a unit and the host.
struct Border {
    /// The unit that produces it; `None` for inputs of the graph.
    from: Option<usize>,
    /// Units that read it in the form in which it is, in ascending order.
    to: Vec<usize>,
    /// Units that, on the accelerator, read it in another form, so that it goes through the host; in ascending order.
    again: Vec<usize>,
    /// Whether the host reads it.
    leaves: bool,
    /// Nanoseconds to bring it from the accelerator to the host.
    out_ns: u64,
    /// Nanoseconds to bring it from the host to the accelerator.
    in_ns: u64,
}

/// All units of a placement, with their costs.
pub(super) struct Problem {
    units: Vec<PlacementUnit>,
    unit_of: HashMap<NodeId, usize>,
    borders: Vec<Border>,
    /// Indices of each unit's borders.
    borders_of: Vec<Vec<usize>>,
    launch_ns: u64,
}

impl Problem {
    /// Finds the units of a placement and their costs.
    pub fn new(
        graph: &Graph,
        placed: &Placed,
        options: &Options,
        config: &HwConfig,
        oracle: &dyn CostOracle,
    ) -> Problem {
        let mut units = Vec::new();
        let mut unit_of = HashMap::new();
        for l in &placed.layers {
            let cycles = l.cycles.unwrap_or_else(|| oracle.accel_cycles(&l.layer, &l.planned));
            let (nodes, cpu) = (l.layer.nodes.clone(), oracle.cpu(graph, &l.layer.nodes));
            unit_of.extend(nodes.iter().map(|n| (*n, units.len())));
            units.push(PlacementUnit { nodes, accel: Some((cycles, oracle.accel_ns(cycles))), cpu, with: None });
        }
        for (&id, at) in &placed.nodes {
            if unit_of.contains_key(&id) {
                continue;
            }
            let maker = graph
                .node(id)
                .inputs
                .first()
                .and_then(|v| graph.def_node(*v))
                .and_then(|(n, _)| unit_of.get(&n).copied());
            let alias = at.place == Place::Accel;
            unit_of.insert(id, units.len());
            let (accel, with) = if alias { (Some((0, 0)), maker) } else { (None, None) };
            units.push(PlacementUnit { nodes: vec![id], accel, cpu: oracle.cpu(graph, &[id]), with });
        }
        let mut problem =
            Problem { units, unit_of, borders: Vec::new(), borders_of: Vec::new(), launch_ns: oracle.launch_ns() };
        problem.find_borders(graph, placed, options, config, oracle);
        problem
    }

    fn find_borders(
        &mut self,
        graph: &Graph,
        placed: &Placed,
        options: &Options,
        config: &HwConfig,
        oracle: &dyn CostOracle,
    ) {
        let made: HashMap<ValueId, View> = placed.layers.iter().map(|l| l.layer.output).collect();
        let read: HashMap<(ValueId, usize), View> = placed
            .layers
            .iter()
            .flat_map(|l| l.layer.inputs.iter().map(|i| ((i.0, self.unit_of[&l.layer.nodes[0]]), i.1)))
            .collect();
        let users = graph.users();
        for v in (0..graph.value_count()).map(ValueId) {
            let maker = graph.def_node(v);
            if maker.is_some_and(|(_, n)| matches!(n.op, Op::Constant(_))) {
                continue;
            }
            let from = maker.and_then(|(n, _)| self.unit_of.get(&n).copied());
            let mut readers: Vec<usize> = users[v.0].iter().filter_map(|n| self.unit_of.get(n).copied()).collect();
            readers.sort_unstable();
            readers.dedup();
            readers.retain(|r| Some(*r) != from);
            let leaves = graph.is_output(v);
            if readers.is_empty() && !leaves {
                continue;
            }
            let view = placed.seen.get(&v).or_else(|| made.get(placed.roots.get(&v).unwrap_or(&v))).copied();
            let view_of = |unit: &usize| read.get(&(v, *unit)).copied().or(view);
            let on_accel = |unit: &usize| self.units[*unit].accel.is_some();
            let (again, to) = readers.into_iter().partition(|r| {
                let changes = !options.join || view_of(r) != view;
                view.is_some() && on_accel(r) && changes && self.units[*r].with != from
            });
            let ty = graph.ty(v);
            let dense = ty.element_count().unwrap_or(0) as u64 * ty.dtype.size_bytes() as u64;
            let device = |view: Option<View>| view.map_or(dense, |view| view.layout(config).bytes() as u64);
            let readers: &Vec<usize> = &to;
            let widest = readers.iter().chain(&again).map(|r: &usize| device(view_of(r))).max();
            let border = Border {
                from,
                out_ns: oracle.border_ns(dense, device(view)),
                in_ns: oracle.border_ns(dense, widest.unwrap_or(dense)),
                to,
                again,
                leaves,
            };
            self.borders.push(border);
        }
        self.borders_of = vec![Vec::new(); self.units.len()];
        for (i, b) in self.borders.iter().enumerate() {
            for unit in b.from.iter().chain(&b.to).chain(&b.again) {
                self.borders_of[*unit].push(i);
            }
        }
    }

    /// Returns for every unit whether the cheapest assignment puts it on the accelerator.
    pub(super) fn sides(&self) -> Vec<bool> {
        let mut network = Network::new();
        let nodes: Vec<usize> = self.units.iter().map(|_| network.node()).collect();
        for (unit, &at) in self.units.iter().zip(&nodes) {
            network.edge(at, SINK, unit.accel.map_or(NEVER, |(_, ns)| ns));
            // A unit without a known time on the CPU is not sent there.
            let known = unit.cpu.map_or(if unit.accel.is_some() { NEVER } else { 0 }, |t| t.ns);
            network.edge(SOURCE, at, known);
            if let Some(with) = unit.with {
                network.edge(at, nodes[with], NEVER);
            }
        }
        for b in &self.borders {
            let maker = b.from.map_or(SINK, |u| nodes[u]);
            // Out: the producer is on the accelerator and a reader is not.
            let anyone = if b.leaves || !b.again.is_empty() {
                SINK
            } else {
                let anyone = network.node();
                b.to.iter().for_each(|u| network.edge(anyone, nodes[*u], NEVER));
                anyone
            };
            network.edge(maker, anyone, b.out_ns);
            // In: a reader is on the accelerator, and the producer is not or has the value in another form.
            let inside = b.in_ns + self.launch_ns;
            if !b.again.is_empty() {
                let someone = network.node();
                b.again.iter().for_each(|u| network.edge(nodes[*u], someone, NEVER));
                network.edge(someone, SINK, inside);
            }
            if !b.to.is_empty() {
                let someone = network.node();
                b.to.iter().for_each(|u| network.edge(nodes[*u], someone, NEVER));
                network.edge(someone, maker, inside);
            }
        }
        let near = network.near();
        nodes.iter().map(|n| near[*n]).collect()
    }

    /// Nanoseconds of a border. With `launch`, a value that goes to the accelerator also costs a launch.
    fn border_ns(&self, b: &Border, ends: Ends, launch: bool) -> u64 {
        let (made_there, again) = (ends.made, ends.again > 0);
        let away = b.leaves || again || ends.to < b.to.len() || ends.again < b.again.len();
        let inside = again || (!made_there && ends.to > 0);
        let launch = if launch { self.launch_ns } else { 0 };
        (if made_there && away { b.out_ns } else { 0 }) + if inside { b.in_ns + launch } else { 0 }
    }

    /// The function that the cut minimizes: nanoseconds of an assignment, or `None` if it is not allowed.
    #[cfg(test)]
    pub(super) fn objective(&self, sides: &[bool]) -> Option<u64> {
        let mut sum: u64 = self.borders.iter().map(|b| self.border_ns(b, b.ends(&|u| sides[u]), true)).sum();
        for (unit, on_accel) in self.units.iter().zip(sides) {
            sum += unit.ns(*on_accel)?;
            if *on_accel && unit.with.is_some_and(|with| !sides[with]) {
                return None;
            }
        }
        Some(sum)
    }

    /// Nanoseconds of the placement for which the problem was created.
    fn total(&self, placed: &Placed) -> u64 {
        let sides: Vec<bool> = self.units.iter().map(|u| u.accel.is_some()).collect();
        let own = self.units.iter().zip(&sides).map(|(unit, on_accel)| unit.ns(*on_accel).unwrap_or(0));
        let borders = self.borders.iter().map(|b| self.border_ns(b, b.ends(&|u| sides[u]), false));
        let programs: HashSet<usize> = placed.layers.iter().map(|l| l.depth).collect();
        own.sum::<u64>() + borders.sum::<u64>() + self.launch_ns * programs.len() as u64
    }

    /// Whether a unit is on the accelerator in `placed`.
    fn there(&self, placed: &Placed, unit: usize) -> bool {
        let place = self.units[unit].nodes.first().and_then(|n| placed.nodes.get(n));
        place.is_some_and(|at| at.place == Place::Accel)
    }

    /// The ends of all borders in the placement `placed`.
    fn ends(&self, placed: &Placed) -> Vec<Ends> {
        self.borders.iter().map(|b| b.ends(&|u| self.there(placed, u))).collect()
    }

    /// The cost of a unit in each place if all others stay where `placed` has them. `ends` are the borders' ends in
    /// `placed`.
    fn cost(&self, graph: &Graph, placed: &Placed, ends: &[Ends], index: usize) -> NodeCost {
        let (unit, there) = (&self.units[index], self.there(placed, index));
        let sum = |ends_of: &dyn Fn(usize) -> Ends| -> u64 {
            self.borders_of[index].iter().map(|&b| self.border_ns(&self.borders[b], ends_of(b), true)).sum()
        };
        let [here, moved] = [sum(&|b| ends[b]), sum(&|b| self.borders[b].ends_moved(ends[b], index, there))];
        NodeCost {
            layer: unit.nodes.first().map(|n| graph.node(*n).name.clone()).unwrap_or_default(),
            accel_cycles: unit.accel.map(|(cycles, _)| cycles),
            accel_ns: unit.accel.map(|(_, ns)| ns),
            cpu_ns: unit.cpu.map(|t| t.ns),
            cpu_measured: unit.cpu.is_some_and(|t| t.measured),
            moving_ns: unit.accel.map(|_| moved as i64 - here as i64),
        }
    }
}

/// Which ends of a border are on the accelerator: whether the producer is, and how many readers of both kinds are.
#[derive(Clone, Copy)]
struct Ends {
    made: bool,
    to: usize,
    again: usize,
}

impl Border {
    fn ends(&self, on_accel: &dyn Fn(usize) -> bool) -> Ends {
        let count = |readers: &[usize]| readers.iter().filter(|u| on_accel(**u)).count();
        Ends { made: self.from.is_some_and(on_accel), to: count(&self.to), again: count(&self.again) }
    }

    /// The same after a unit moved from the accelerator (`from_accel`) or to it.
    fn ends_moved(&self, ends: Ends, unit: usize, from_accel: bool) -> Ends {
        let moved = |count: usize, readers: &[usize]| match (readers.binary_search(&unit), from_accel) {
            (Ok(_), true) => count - 1,
            (Ok(_), false) => count + 1,
            (Err(_), _) => count,
        };
        let made = if self.from == Some(unit) { !from_accel } else { ends.made };
        Ends { made, to: moved(ends.to, &self.to), again: moved(ends.again, &self.again) }
    }
}

impl PlacementUnit {
    fn ns(&self, on_accel: bool) -> Option<u64> {
        if on_accel { self.accel.map(|(_, ns)| ns) } else { self.cpu.map(|t| t.ns) }
    }
}

/// Returns the cheapest placement, or `None` if none is cheaper than `offered`, where the accelerator has all nodes
/// that it can compute.
///
/// `place` returns the placement in which the accelerator does not get some nodes: each with a reason, or with an empty
/// text if cost decides.
pub(super) fn choose(
    graph: &Graph,
    offered: &Placed,
    problem: &Problem,
    problem_of: &dyn Fn(&Placed) -> Problem,
    place: &dyn Fn(&HashMap<NodeId, String>) -> Placed,
) -> Option<Placed> {
    let mut best: Option<(u64, Placed)> = None;
    let all = problem.total(offered);
    let mut consider = |total: u64, placed: Placed| {
        if total < best.as_ref().map_or(all, |b| b.0) {
            best = Some((total, placed));
        }
    };
    let why = |(id, at): (&NodeId, &NodePlace)| (at.place == Place::Cpu).then(|| (*id, at.why.clone()));
    let mut kept: HashMap<NodeId, String> = offered.nodes.iter().filter_map(why).collect();
    let mut sides = problem.sides();
    let mut turn = None;
    for _ in 0..TURNS {
        let moved = turn.as_ref().unwrap_or(problem).units.iter().zip(&sides);
        let moved = moved.filter(|(unit, near)| unit.accel.is_some() && !**near).flat_map(|(unit, _)| &unit.nodes);
        let before = kept.len();
        kept.extend(moved.map(|n| (*n, String::new())));
        if kept.len() == before {
            break;
        }
        let placed = place(&kept);
        let next = problem_of(&placed);
        sides = next.sides();
        consider(next.total(&placed), placed);
        turn = Some(next);
    }
    for (id, _) in graph.nodes() {
        kept.entry(id).or_default();
    }
    let nothing = place(&kept);
    consider(problem_of(&nothing).total(&nothing), nothing);
    best.map(|b| b.1)
}

/// Returns the cost of every node in each place; the nodes of a layer count together.
///
/// `offered` is the problem in which the accelerator has all nodes that it can compute. The figures of nodes that are
/// not on the accelerator come from it.
pub(super) fn costs(graph: &Graph, placed: &Placed, offered: &Problem, chosen: &Problem) -> BTreeMap<NodeId, NodeCost> {
    let [chosen, offered] = [chosen, offered].map(|problem| (problem, problem.ends(placed)));
    let cost = |(&id, at): (&NodeId, &NodePlace)| {
        let (problem, ends) = if at.place == Place::Accel { &chosen } else { &offered };
        let unit = problem.unit_of.get(&id)?;
        Some((id, problem.cost(graph, placed, ends, *unit)))
    };
    placed.nodes.iter().filter_map(cost).collect()
}

/// Says why cost put a node in its place; `None` if a cost is unknown.
pub(super) fn reason(cost: &NodeCost, place: Place) -> Option<String> {
    let (accel, cpu, moving): (u64, u64, i64) = (cost.accel_ns?, cost.cpu_ns?, cost.moving_ns?);
    let kind = if cost.cpu_measured { "measured" } else { "modeled" };
    let us = |ns: u64| format!("{:.1} us", ns as f64 / 1e3);
    let change = match moving {
        0 => "no change of layout or transfer".to_string(),
        n if n > 0 => format!("{} more for layouts, transfers and launches", us(n as u64)),
        n => format!("{} less for layouts, transfers and launches", us(n.unsigned_abs())),
    };
    let (here, there, other) = match place {
        // A GPU gets nodes from those that are left to the host.
        Place::Cpu | Place::Cuda => (format!("{} ({kind})", us(cpu)), us(accel), "the accelerator"),
        Place::Accel => (us(accel), format!("{} ({kind})", us(cpu)), "the CPU"),
    };
    Some(format!("{here} here, {there} on {other} with {change}"))
}
