//! How fast a synthesized netlist will be once it is routed: its longest path, found in seconds.
//!
//! Cells take what the router's database says of them on the whole, and every wire the same and some more for each doubling of its
//! sinks, which is what routed designs of this accelerator came to (`docs/synthesize.md` says how near).

use super::board::Board;
use super::family::Family;
use super::netlist::{Cell, Kept, Netlist};
use super::report::PathStep;

/// What a kind of cells takes, ns. Ports go by their names without the bits' numbers.
struct CellDelay {
    kind: &'static str,
    /// Ports whose nets arrive at a clock's edge: the time before it. `"*"` is any other port.
    setup: &'static [(&'static str, f64)],
    /// Ports whose nets leave at a clock's edge: the time after it.
    launch: &'static [(&'static str, f64)],
    /// From a port to another without a clock.
    through: &'static [(&'static str, &'static str, f64)],
    /// Ports that cells beside it reach without a wire.
    direct: &'static [&'static str],
    /// Of those of its kind only what keeps at least these values.
    kept: Kept,
}

/// A family's delays, ns, at its fastest.
struct Delays {
    /// A wire to one sink, and what it takes more for each doubling of the sinks.
    wire: f64,
    doubling: f64,
    /// Cells whose one sink is a register's data are beside that register.
    before_register: &'static [&'static str],
    cells: &'static [CellDelay],
}

const fn cell(kind: &'static str) -> CellDelay {
    CellDelay { kind, setup: &[], launch: &[], through: &[], direct: &[], kept: Kept::Nothing }
}

const ECP5: Delays = Delays {
    wire: 0.70,
    doubling: 0.06,
    before_register: &["LUT4", "PFUMX", "L6MUX21", "CCU2C"],
    cells: &[
        CellDelay { through: &[("*", "Z", 0.22)], ..cell("LUT4") },
        CellDelay { through: &[("*", "Z", 0.17)], direct: &["ALUT", "BLUT"], ..cell("PFUMX") },
        CellDelay { through: &[("*", "Z", 0.17)], direct: &["D"], ..cell("L6MUX21") },
        CellDelay {
            through: &[("CIN", "COUT", 0.06), ("CIN", "S", 0.37), ("*", "COUT", 0.40), ("*", "S", 0.40)],
            direct: &["CIN"],
            ..cell("CCU2C")
        },
        CellDelay {
            through: &[("RAD", "DO", 0.25)],
            setup: &[("DI", 0.2), ("WAD", 0.2), ("WRE", 0.2)],
            ..cell("TRELLIS_DPR16X4")
        },
        CellDelay {
            launch: &[("Q", 0.40)],
            setup: &[("DI", 0.1), ("M", 0.1), ("CE", 0.1), ("LSR", 0.2)],
            ..cell("TRELLIS_FF")
        },
        CellDelay { launch: &[("*", 4.60)], setup: &[("*", 0.3)], ..cell("DP16KD") },
        CellDelay { launch: &[("*", 4.60)], setup: &[("*", 0.3)], ..cell("PDPW16KD") },
        CellDelay {
            launch: &[("P", 0.58)],
            setup: &[("A", 0.04), ("B", 0.04), ("CE", 0.3)],
            kept: Kept::Operands,
            ..cell("MULT18X18D")
        },
        CellDelay {
            launch: &[("P", 0.58)],
            setup: &[("A", 2.63), ("B", 2.63), ("CE", 0.3)],
            kept: Kept::Result,
            ..cell("MULT18X18D")
        },
        CellDelay { through: &[("A", "P", 3.07), ("B", "P", 3.07)], ..cell("MULT18X18D") },
    ],
};

const ICE40_HX: Delays = Delays {
    wire: 0.70,
    doubling: 0.15,
    before_register: &["SB_LUT4"],
    cells: &[
        CellDelay { through: &[("*", "O", 0.40)], ..cell("SB_LUT4") },
        CellDelay { through: &[("CI", "CO", 0.13), ("*", "CO", 0.27)], direct: &["CI"], ..cell("SB_CARRY") },
        CellDelay { launch: &[("Q", 0.54)], setup: &[("*", 0.10)], ..cell("SB_DFF*") },
        CellDelay { launch: &[("*", 2.15)], setup: &[("*", 0.25)], ..cell("SB_RAM40_4K*") },
    ],
};

const ICE40_UP: Delays = Delays {
    wire: 1.75,
    doubling: 0.30,
    before_register: &["SB_LUT4"],
    cells: &[
        CellDelay { through: &[("*", "O", 1.22)], ..cell("SB_LUT4") },
        CellDelay { through: &[("CI", "CO", 0.28), ("*", "CO", 0.67)], direct: &["CI"], ..cell("SB_CARRY") },
        CellDelay { launch: &[("Q", 1.39)], setup: &[("*", 0.20)], ..cell("SB_DFF*") },
        CellDelay { launch: &[("*", 4.63)], setup: &[("*", 0.40)], ..cell("SB_RAM40_4K*") },
        CellDelay { launch: &[("*", 4.63)], setup: &[("*", 0.40)], ..cell("SB_SPRAM256KA") },
        CellDelay { through: &[("A", "O", 7.0), ("B", "O", 7.0)], ..cell("SB_MAC16") },
    ],
};

/// The speed grades of ECP5's parts, with by how much each is slower than the fastest.
pub(super) const ECP5_SPEEDS: [(&str, f64); 3] = [("6", 1.20), ("7", 1.10), ("8", 1.0)];

/// A part's delays, and by how much its speed grade is slower than they are.
fn delays(board: &Board) -> Option<(&'static Delays, f64)> {
    match board.family {
        Family::Ecp5 => {
            let (_, slower) = ECP5_SPEEDS.iter().find(|(speed, _)| *speed == board.speed)?;
            Some((&ECP5, *slower))
        }
        Family::Ice40 if board.device == "up5k" => Some((&ICE40_UP, 1.0)),
        Family::Ice40 => Some((&ICE40_HX, 1.0)),
        Family::Gowin | Family::Nexus | Family::Xc7 | Family::Xcup => None,
    }
}

fn fits(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |begin| name.starts_with(begin))
}

fn port<T: Copy>(table: &[(&str, T)], name: &str) -> Option<T> {
    table.iter().find(|(pattern, _)| fits(pattern, name)).map(|(_, value)| *value)
}

/// Clocks arrive everywhere at once.
fn is_clock(port: &str) -> bool {
    port.starts_with("CLK") || matches!(port, "C" | "WCK" | "RCLK" | "WCLK" | "CLOCK")
}

/// A longest path.
#[derive(Debug, Clone, PartialEq)]
pub struct Longest {
    /// What it takes, ns.
    pub ns: f64,
    /// Its parts, by the signals of the sources on it.
    pub path: Vec<PathStep>,
}

/// The longest path from register to register that a netlist will have on a board, as far as it can be said before routing;
/// `None` for families of which no delays are known and for netlists without registers.
pub fn longest_path(netlist: &Netlist, board: &Board) -> Option<Longest> {
    let (delays, slower) = delays(board)?;
    let found = Paths::of(netlist, delays).longest()?;
    let scaled = |(signal, ns): (usize, f64)| (netlist.net_names()[signal].clone(), ns * slower);
    let mut path: Vec<PathStep> = Vec::new();
    for (signal, ns) in found.steps.into_iter().map(scaled) {
        match path.last_mut() {
            Some(last) if last.signal == signal || signal.is_empty() => last.ns += ns,
            _ => path.push(PathStep { signal, ns }),
        }
    }
    Some(Longest { ns: found.ns * slower, path })
}

/// An arc from a net to another.
#[derive(Clone, Copy)]
struct Arc {
    from: usize,
    to: usize,
    ns: f64,
}

/// The arcs of a netlist, where its paths begin and where they end.
struct Paths {
    arcs: Vec<Arc>,
    /// By net, when it leaves a register after the clock's edge.
    launched: Vec<Option<f64>>,
    /// Nets that arrive at registers, with the time before the clock's edge.
    captured: Vec<(usize, f64)>,
}

/// A path: what it takes, and the time from each net on it to the next.
struct Found {
    ns: f64,
    steps: Vec<(usize, f64)>,
}

impl Paths {
    fn of(netlist: &Netlist, delays: &Delays) -> Paths {
        let nets = netlist.net_names().len();
        let mut sinks = vec![0u32; nets];
        let mut driver: Vec<Option<&Cell>> = vec![None; nets];
        for cell in netlist.cells() {
            cell.inputs.iter().for_each(|(_, net)| sinks[*net] += 1);
            cell.outputs.iter().for_each(|(_, net)| driver[*net] = Some(cell));
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
            for (name, net) in &cell.outputs {
                if let Some(ns) = port(delay.launch, name) {
                    paths.launched[*net] = Some(ns);
                }
            }
            for (name, net) in cell.inputs.iter().filter(|(name, _)| !is_clock(name) || delay.setup.is_empty()) {
                let direct = delay.direct.contains(&name.as_str());
                let wire = if direct { 0.0 } else { wire(*net) };
                if let Some(ns) = port(delay.setup, name) {
                    let data = matches!(name.as_str(), "DI" | "D") && !delay.launch.is_empty() && beside(*net);
                    paths.captured.push((*net, if data { ns } else { ns + wire }));
                }
                for (to_name, to) in &cell.outputs {
                    let through = delay.through.iter().find(|(from, into, _)| fits(from, name) && fits(into, to_name));
                    if let Some((_, _, ns)) = through {
                        paths.arcs.push(Arc { from: *net, to: *to, ns: ns + wire });
                    }
                }
            }
        }
        paths
    }

    /// The longest, or `None` where no path begins at a register and ends at one.
    fn longest(&self) -> Option<Found> {
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
        // When each net is there at the latest, in the order of the arcs; what lies on a loop has no such time.
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
        let ends = self.captured.iter().filter(|(net, _)| waits[*net] == 0);
        let ends = ends.filter_map(|(net, setup)| arrives[*net].map(|time| (*net, *setup, time + setup)));
        let (last, setup, ns) = ends.max_by(|a, b| a.2.total_cmp(&b.2))?;
        let mut steps = vec![(last, setup)];
        let mut net = last;
        while let Some(at) = before[net] {
            let arc = self.arcs[at];
            steps.push((arc.from, arc.ns));
            net = arc.from;
        }
        steps.push((net, self.launched[net].unwrap_or_default()));
        steps.reverse();
        Some(Found { ns, steps })
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

    /// The mapping to tables knows the block RAM and the multiplier by the times that the estimate has, but for a product without a
    /// register, which has the slowest grade's there: what lies around it is made shorter.
    #[test]
    fn the_mapping_and_the_estimate_have_the_same_times() {
        let files = Family::Ecp5.synthesis_files().iter().chain(Family::Ecp5.own_modules());
        let text: String = files.map(|file| file.text).collect();
        let times = |module: &str| -> Vec<u64> {
            let declared = format!("(* blackbox *)\nmodule {module} ");
            let boxed = format!("(* abc9_box, blackbox *)\nmodule {module} ");
            let begin = text.find(&declared).or_else(|| text.find(&boxed)).expect("the module is there");
            let module = &text[begin..begin + text[begin..].find("endmodule").expect("it ends")];
            // Times end their line; those that a parameter chooses among follow it.
            fn last(line: &str) -> &str {
                line.rsplit([',', '=']).next().unwrap_or(line)
            }
            let words =
                module.lines().filter(|line| line.ends_with(';')).flat_map(|line| last(line).split([' ', ')', ';']));
            let mut times: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
            times.retain(|time| *time > 1);
            times.sort_unstable();
            times.dedup();
            times
        };
        let ps = |ns: f64| (ns * 1000.0).round() as u64;
        let cell = |kind: &str| ECP5.cells.iter().find(|cell| cell.kind == kind).expect("the cell has times");
        let ram = cell("DP16KD");
        assert_eq!(times("DP16KD"), [ps(ram.setup[0].1), ps(ram.launch[0].1)]);
        let multiplier = |kept: Kept| {
            let of = |cell: &&CellDelay| cell.kind == "MULT18X18D" && cell.kept == kept;
            ECP5.cells.iter().find(of).expect("the cell has times")
        };
        let [mapped] = times("MULT18X18D")[..] else { panic!("one time") };
        let slower = mapped as f64 / ps(multiplier(Kept::Nothing).through[0].2) as f64;
        assert!((1.25..1.30).contains(&slower), "{slower}");
        let (CellDelay { setup, launch, .. }, behind) = (multiplier(Kept::Result), multiplier(Kept::Operands));
        assert_eq!(times("tw_mul"), [ps(behind.setup[0].1), ps(setup[2].1), ps(launch[0].1), ps(setup[0].1)]);
        assert_eq!((behind.launch, behind.setup[2]), (*launch, setup[2]));
    }

    /// Register, two tables, register: the second table is beside its register.
    #[test]
    fn a_path_is_its_cells_and_wires() {
        let names = json!({ "u.from_q": { "bits": [3] }, "u.between": { "bits": [4] }, "$abc$5": { "bits": [5] }, "u.to_q": { "bits": [6] } });
        let cells = json!({ "a": register(2, 6, 3), "b": table(3, 4), "c": table(4, 5), "d": register(2, 5, 6) });
        let netlist = Netlist::of_json(json!({ "cells": cells, "netnames": names }));
        let longest = longest_path(&netlist, &board("ecp5-evn")).expect("there is a path");
        // Launch, wire and table twice, no third wire, setup.
        let ns = 0.40 + 2.0 * (ECP5.wire + 0.22) + 0.1;
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

    /// Loops have no longest path; what does not hang on them has.
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
