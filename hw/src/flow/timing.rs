//! Estimates the clock of a synthesized netlist after routing from its longest path, in seconds.
//!
//! Cells have typical delays from the router's database. All wires have the same delay, plus some for each doubling of
//! their sinks, which was measured on routed designs of this accelerator (`docs/synthesize.md` has the accuracy). A
//! family's delays are in its file, `family/NAME.rs`.

use super::board::Board;
use super::family::{CellDelay, Delays, PortDelay};
use super::netlist::{Cell, Netlist, PortNet};
use super::report::PathStep;

/// Returns the delays of a board's part, and the factor of its speed grade; `None` if they are unknown.
fn delays(board: &Board) -> Option<(&'static Delays, f64)> {
    let (family, chip) = (board.family.definition(), board.chip()?);
    let delays = (family.delays)(chip.part)?;
    if family.speeds.is_empty() {
        return Some((delays, 1.0));
    }
    let speed = family.speeds.iter().find(|speed| speed.name == chip.speed)?;
    Some((delays, speed.slower))
}

fn fits(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |begin| name.starts_with(begin))
}

fn port(delays: &[PortDelay], name: &str) -> Option<f64> {
    delays.iter().find(|delay| fits(delay.port, name)).map(|delay| delay.ns)
}

/// Returns whether a port is a clock input. The clock is taken to arrive at all registers at once.
fn is_clock(port: &str) -> bool {
    port.starts_with("CLK") || matches!(port, "C" | "WCK" | "RCLK" | "WCLK" | "CLOCK")
}

/// The longest path of a netlist.
#[derive(Debug, Clone, PartialEq)]
pub struct Longest {
    /// Its delay, ns.
    pub ns: f64,
    /// Its segments, as signals of the sources.
    pub path: Vec<PathStep>,
}

/// Estimates the longest path from register to register that a netlist will have on a board; `None` if the family's
/// delays are unknown, or the netlist has no registers.
pub fn longest_path(netlist: &Netlist, board: &Board) -> Option<Longest> {
    let (delays, slower) = delays(board)?;
    let found = Paths::of(netlist, delays).longest()?;
    let scaled = |hop: Hop| PathStep { signal: netlist.net_names()[hop.net].clone(), ns: hop.ns * slower };
    let mut path: Vec<PathStep> = Vec::new();
    for PathStep { signal, ns } in found.hops.into_iter().map(scaled) {
        match path.last_mut() {
            Some(last) if last.signal == signal || signal.is_empty() => last.ns += ns,
            _ => path.push(PathStep { signal, ns }),
        }
    }
    Some(Longest { ns: found.ns * slower, path })
}

/// A path through a cell, from a net at its input to one at its output.
#[derive(Clone, Copy)]
struct Arc {
    from: usize,
    to: usize,
    ns: f64,
}

/// The arcs of a netlist, and the begins and ends of its paths.
struct Paths {
    arcs: Vec<Arc>,
    /// For each net, its delay after the clock's edge if a register drives it.
    launched: Vec<Option<f64>>,
    /// Nets at the inputs of registers.
    captured: Vec<Captured>,
}

/// A net at the input of a register.
struct Captured {
    net: usize,
    /// The delay of its wire and the setup time, ns.
    ns: f64,
}

/// A path.
struct TimingPath {
    /// Its delay, ns.
    ns: f64,
    hops: Vec<Hop>,
}

/// A net on a path.
struct Hop {
    net: usize,
    /// The delay to the next net, ns.
    ns: f64,
}

impl Paths {
    fn of(netlist: &Netlist, delays: &Delays) -> Paths {
        let nets = netlist.net_names().len();
        let mut sinks = vec![0u32; nets];
        let mut driver: Vec<Option<&Cell>> = vec![None; nets];
        for cell in netlist.cells() {
            cell.inputs.iter().for_each(|at| sinks[at.net] += 1);
            cell.outputs.iter().for_each(|at| driver[at.net] = Some(cell));
        }
        let wire = |net: usize| delays.wire + delays.doubling * f64::from(sinks[net].max(1)).log2();
        let beside = |net: usize| {
            sinks[net] == 1
                && driver[net].is_some_and(|cell| delays.before_register.iter().any(|kind| fits(kind, &cell.kind)))
        };
        let mut paths = Paths { arcs: Vec::new(), launched: vec![None; nets], captured: Vec::new() };
        for cell in netlist.cells() {
            let of = |delay: &&CellDelay| fits(delay.kind, &cell.kind) && delay.kept <= cell.kept;
            let Some(delay) = delays.cells.iter().find(of) else { continue };
            for PortNet { port: name, net } in &cell.outputs {
                if let Some(ns) = port(delay.launch, name) {
                    paths.launched[*net] = Some(ns);
                }
            }
            let inputs = cell.inputs.iter().filter(|at| !is_clock(&at.port) || delay.setup.is_empty());
            for PortNet { port: name, net } in inputs {
                let direct = delay.direct.contains(&name.as_str());
                let wire = if direct { 0.0 } else { wire(*net) };
                if let Some(ns) = port(delay.setup, name) {
                    let data = matches!(name.as_str(), "DI" | "D") && !delay.launch.is_empty() && beside(*net);
                    paths.captured.push(Captured { net: *net, ns: if data { ns } else { ns + wire } });
                }
                for PortNet { port: to_name, net: to } in &cell.outputs {
                    let through = delay.through.iter().find(|delay| fits(delay.from, name) && fits(delay.to, to_name));
                    if let Some(through) = through {
                        paths.arcs.push(Arc { from: *net, to: *to, ns: through.ns + wire });
                    }
                }
            }
        }
        paths
    }

    /// Finds the longest path; `None` if no path begins and ends at a register.
    fn longest(&self) -> Option<TimingPath> {
        let nets = self.launched.len();
        let mut begins = vec![0usize; nets + 1];
        let mut waits = vec![0u32; nets];
        for arc in &self.arcs {
            begins[arc.from + 1] += 1;
            waits[arc.to] += 1;
        }
        for net in 0..nets {
            begins[net + 1] += begins[net];
        }
        let mut next = begins.clone();
        let mut by_from = vec![0usize; self.arcs.len()];
        for (at, arc) in self.arcs.iter().enumerate() {
            by_from[next[arc.from]] = at;
            next[arc.from] += 1;
        }
        // The latest arrival at each net, in topological order. Nets on a loop are left out.
        let mut arrives: Vec<Option<f64>> = self.launched.clone();
        let mut before: Vec<Option<usize>> = vec![None; nets];
        let mut ready: Vec<usize> = (0..nets).filter(|net| waits[*net] == 0).collect();
        while let Some(net) = ready.pop() {
            for &at in &by_from[begins[net]..begins[net + 1]] {
                let arc = self.arcs[at];
                if let Some(there) = arrives[net].map(|time| time + arc.ns)
                    && arrives[arc.to].is_none_or(|latest| there > latest)
                {
                    arrives[arc.to] = Some(there);
                    before[arc.to] = Some(at);
                }
                waits[arc.to] -= 1;
                if waits[arc.to] == 0 {
                    ready.push(arc.to);
                }
            }
        }
        let ends = self.captured.iter().filter(|end| waits[end.net] == 0);
        let ends = ends.filter_map(|end| Some((end, arrives[end.net]? + end.ns)));
        let (last, ns) = ends.max_by(|(_, a), (_, b)| a.total_cmp(b))?;
        let mut hops = vec![Hop { net: last.net, ns: last.ns }];
        let mut net = last.net;
        while let Some(at) = before[net] {
            let arc = self.arcs[at];
            hops.push(Hop { net: arc.from, ns: arc.ns });
            net = arc.from;
        }
        hops.push(Hop { net, ns: self.launched[net].unwrap_or_default() });
        hops.reverse();
        Some(TimingPath { ns, hops })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn board(name: &str) -> Board {
        Board::load(name).expect("boards load")
    }

    fn register(clock: usize, data: usize, q: usize) -> Value {
        json!({
            "type": "TRELLIS_FF",
            "port_directions": { "CLK": "input", "DI": "input", "Q": "output" },
            "connections": { "CLK": [clock], "DI": [data], "Q": [q] },
        })
    }

    fn table(a: usize, z: usize) -> Value {
        json!({
            "type": "LUT4",
            "port_directions": { "A": "input", "B": "input", "Z": "output" },
            "connections": { "A": [a], "B": ["1"], "Z": [z] },
        })
    }

    /// Register, two tables, register: the second table is next to its register.
    #[test]
    fn a_path_is_its_cells_and_wires() {
        let names = json!({ "u.from_q": { "bits": [3] }, "u.between": { "bits": [4] }, "$abc$5": { "bits": [5] }, "u.to_q": { "bits": [6] } });
        let cells = json!({ "a": register(2, 6, 3), "b": table(3, 4), "c": table(4, 5), "d": register(2, 5, 6) });
        let netlist = Netlist::of_json(json!({ "cells": cells, "netnames": names }));
        let longest = longest_path(&netlist, &board("ecp5-evn")).expect("there is a path");
        // Launch, twice a wire and a table, setup. There is no third wire.
        let (delays, _) = delays(&board("ecp5-evn")).expect("they are known");
        let ns = 0.40 + 2.0 * (delays.wire + 0.22) + 0.1;
        assert!((longest.ns - ns).abs() < 1e-9, "{}", longest.ns);
        let signals: Vec<&str> = longest.path.iter().map(|step| step.signal.as_str()).collect();
        assert_eq!(signals, ["u.from_q", "u.between"]);
        let sum: f64 = longest.path.iter().map(|step| step.ns).sum();
        assert!((sum - longest.ns).abs() < 1e-9, "{sum}");
        let slower = longest_path(&netlist, &board("ulx3s-85f")).expect("there is a path");
        assert!(slower.ns > longest.ns, "a slower grade");
    }

    #[test]
    fn many_sinks_make_a_wire_longer() {
        let mut cells = json!({ "a": register(2, 4, 3), "b": table(3, 4) });
        let few =
            longest_path(&Netlist::of_json(json!({ "cells": cells.clone() })), &board("ecp5-evn")).expect("a path");
        for at in 10..24 {
            cells[format!("t{at}")] = table(3, at);
        }
        let many = longest_path(&Netlist::of_json(json!({ "cells": cells })), &board("ecp5-evn")).expect("a path");
        assert!(many.ns > few.ns);
    }

    /// Nets on a loop have no longest path; other nets have one.
    #[test]
    fn loops_end_nothing() {
        let cells = json!({
            "a": register(2, 4, 3), "b": table(3, 4),
            "x": table(8, 9), "y": table(9, 8), "z": register(2, 9, 10),
        });
        let longest = longest_path(&Netlist::of_json(json!({ "cells": cells })), &board("ecp5-evn")).expect("a path");
        assert!(longest.ns < 2.0, "{}", longest.ns);
    }

    #[test]
    fn families_without_delays_have_no_estimate() {
        let netlist = Netlist::of_json(json!({ "cells": {} }));
        assert_eq!(longest_path(&netlist, &board("pynq-z1")), None);
        assert_eq!(longest_path(&netlist, &board("ecp5-evn")), None);
    }
}
