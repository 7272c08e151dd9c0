//! Netlists as synthesis leaves them: cells of a family and the nets between them.

use super::board::Board;
use super::family::{CellKind, CellKinds, Family};
use super::files::read_json;
use super::resources::Resource;
use super::{FlowError, design};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

pub use super::resources::Cells;

impl Cells {
    fn add(&mut self, kind: &str, family: Family) {
        let CellKinds { luts, registers, brams, dsps, sprams } = &family.definition().cells;
        let count = |kinds: &[CellKind]| {
            let named = |name: &str| name.strip_suffix('*').map_or(name == kind, |begin| kind.starts_with(begin));
            kinds.iter().find(|kind| named(kind.name)).map_or(0, |kind| kind.units)
        };
        self.luts += count(luts);
        self.registers += count(registers);
        self.brams += count(brams);
        self.dsps += count(dsps);
        self.sprams += count(sprams);
    }
}

/// The instance of the core, wherever it stands.
const CORE: &str = "u_core";
/// Levels of the shell by which cells are listed: board, shell, part.
const SHELL_LEVELS: usize = 3;

/// Which values a cell keeps in registers of its own, as multiplier blocks may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kept {
    Nothing,
    Result,
    /// The operands too.
    Operands,
}

/// A cell: its kind, its name after the signal that it makes, and the nets at its ports.
#[derive(Debug, Clone)]
pub(super) struct Cell {
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) kept: Kept,
    /// Ports without the numbers of their bits, with their net.
    pub(super) inputs: Vec<(String, usize)>,
    pub(super) outputs: Vec<(String, usize)>,
}

/// The cells of a synthesized design, and the nets between them.
#[derive(Debug, Clone)]
pub struct Netlist {
    cells: Vec<Cell>,
    /// Of each net the signal of the sources that it is, if it has a name.
    nets: Vec<String>,
}

#[derive(Deserialize)]
struct Design {
    modules: HashMap<String, Module>,
}

#[derive(Deserialize)]
struct Module {
    #[serde(default)]
    cells: BTreeMap<String, RawCell>,
    #[serde(default)]
    netnames: BTreeMap<String, NetName>,
}

#[derive(Deserialize)]
struct RawCell {
    r#type: String,
    #[serde(default)]
    parameters: Parameters,
    #[serde(default)]
    port_directions: HashMap<String, String>,
    #[serde(default)]
    connections: BTreeMap<String, Vec<Bit>>,
}

#[derive(Default, Deserialize)]
struct Parameters {
    /// The clock of the register of one of an ECP5's factors; the other's is the same.
    #[serde(rename = "REG_INPUTA_CLK")]
    operand_clock: Option<String>,
    /// The clock of the register behind an ECP5's product.
    #[serde(rename = "REG_OUTPUT_CLK")]
    output_clock: Option<String>,
}

#[derive(Deserialize)]
struct NetName {
    bits: Vec<Bit>,
}

/// A net's number, or a constant.
#[derive(Deserialize)]
#[serde(untagged)]
enum Bit {
    Net(usize),
    Constant(#[allow(dead_code, reason = "only nets are looked at")] String),
}

fn nets(bits: &[Bit]) -> impl Iterator<Item = usize> {
    bits.iter().filter_map(|bit| match bit {
        Bit::Net(net) => Some(*net),
        Bit::Constant(_) => None,
    })
}

impl Netlist {
    /// Reads what synthesis wrote.
    ///
    /// # Errors
    /// [`FlowError::Io`], [`FlowError::Output`].
    pub fn read(path: &Path) -> Result<Netlist, FlowError> {
        let mut design: Design = read_json(path, "a netlist of Yosys")?;
        // One module is the design, the others are the family's cells.
        let module = design.modules.remove(design::TOP).ok_or_else(|| FlowError::Output {
            file: path.display().to_string(),
            what: "a netlist of Yosys",
            reason: format!("it has no module {}", design::TOP),
        })?;
        Ok(Netlist::of(module))
    }

    fn of(module: Module) -> Netlist {
        let mut names: HashMap<usize, &str> = HashMap::new();
        for (name, bits) in &module.netnames {
            for net in nets(&bits.bits) {
                // Names that the sources gave are better than Yosys's, and those of outer modules better than of inner ones.
                let rank = |name: &str| (name.contains('$'), name.matches('.').count(), name.len());
                let best = names.entry(net).or_insert(name);
                if rank(name) < rank(best) {
                    *best = name;
                }
            }
        }
        // Numbers of nets count from 0 here, whatever the file has.
        let mut numbers: HashMap<usize, usize> = HashMap::new();
        let mut texts = Vec::new();
        let mut number = |net: usize| {
            *numbers.entry(net).or_insert_with(|| {
                texts.push(names.get(&net).map_or(String::new(), |name| signal(name).to_string()));
                texts.len() - 1
            })
        };
        let mut cells = Vec::with_capacity(module.cells.len());
        for (name, raw) in module.cells {
            let clocked = |clock: Option<String>| clock.is_some_and(|clock| clock != "NONE");
            let kept = match (clocked(raw.parameters.operand_clock), clocked(raw.parameters.output_clock)) {
                (true, true) => Kept::Operands,
                (_, true) => Kept::Result,
                (_, false) => Kept::Nothing,
            };
            let mut cell = Cell { kind: raw.r#type, name, kept, inputs: Vec::new(), outputs: Vec::new() };
            for (port, bits) in &raw.connections {
                let is_input = raw.port_directions.get(port).is_some_and(|direction| direction == "input");
                let side = if is_input { &mut cell.inputs } else { &mut cell.outputs };
                let port = port.trim_end_matches(|c: char| c.is_ascii_digit());
                side.extend(nets(bits).map(|net| (port.to_string(), number(net))));
            }
            cells.push(cell);
        }
        Netlist { cells, nets: texts }
    }

    pub(super) fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// The signal of each net.
    pub(super) fn net_names(&self) -> &[String] {
        &self.nets
    }

    /// All cells.
    pub fn total(&self, family: Family) -> Cells {
        let mut total = Cells::default();
        self.cells.iter().for_each(|cell| total.add(&cell.kind, family));
        total
    }

    /// What the cells take of a board's part, by kind of resource.
    pub(super) fn resources(&self, board: &Board) -> Vec<Resource> {
        let Some(part) = board.family.part(&board.device) else { return Vec::new() };
        let Cells { luts, registers, brams, dsps, sprams } = self.total(board.family);
        let resource = |name: &str, used, available| Resource { name: name.into(), used, available };
        let mut resources = vec![
            resource("block RAMs", brams, part.brams),
            resource("multiplier blocks", dsps, part.dsps),
            resource("single-port RAMs", sprams, part.sprams),
        ];
        if board.family == Family::Ice40 {
            resources.insert(0, resource("logic cells", self.ice40_logic_cells(), part.luts));
        } else {
            let ends = if board.family == Family::Ecp5 { self.ecp5_chain_ends() } else { 0 };
            resources.insert(0, resource("look-up tables", luts + ends, part.luts));
            resources.insert(1, resource("registers", registers, part.registers));
        }
        resources.retain(|resource| resource.available > 0 || resource.used > 0);
        resources
    }

    /// Tables of an ECP5 that the router puts at the ends of carry chains: two that bring the first carry in, constants too, and
    /// two for each carry that goes elsewhere than along its chain.
    fn ecp5_chain_ends(&self) -> u64 {
        const CHAIN: &str = "CCU2C";
        let of = |cell: &Cell, port: &str, nets: &[(String, usize)]| -> Vec<usize> {
            let there = |(name, net): &(String, usize)| (cell.kind == CHAIN && name == port).then_some(*net);
            nets.iter().filter_map(there).collect()
        };
        let carries: HashSet<usize> = self.cells.iter().flat_map(|cell| of(cell, "COUT", &cell.outputs)).collect();
        let begins =
            |cell: &&Cell| cell.kind == CHAIN && !of(cell, "CIN", &cell.inputs).iter().any(|net| carries.contains(net));
        let elsewhere = |cell: &Cell| -> Vec<usize> {
            let along = of(cell, "CIN", &cell.inputs);
            cell.inputs
                .iter()
                .map(|(_, net)| *net)
                .filter(|net| carries.contains(net) && !along.contains(net))
                .collect()
        };
        let left: HashSet<usize> = self.cells.iter().flat_map(elsewhere).collect();
        2 * (self.cells.iter().filter(begins).count() + left.len()) as u64
    }

    /// Logic cells of an iCE40: each has a table, a carry and a register. A register shares the cell of the table that makes its
    /// data alone, a carry that of a table that adds the same two nets to the carry before.
    fn ice40_logic_cells(&self) -> u64 {
        let ports = |cell: &Cell, port: &str| -> Vec<usize> {
            cell.inputs.iter().filter(|(name, _)| name == port).map(|(_, net)| *net).collect()
        };
        let mut sinks: HashMap<usize, u32> = HashMap::new();
        for (_, net) in self.cells.iter().flat_map(|cell| &cell.inputs) {
            *sinks.entry(*net).or_default() += 1;
        }
        let (mut tables, mut adders, mut cells) = (HashSet::new(), HashSet::new(), 0);
        for table in self.cells.iter().filter(|cell| cell.kind == "SB_LUT4") {
            cells += 1;
            tables.extend(table.outputs.iter().map(|(_, net)| *net).filter(|net| sinks.get(net) == Some(&1)));
            let inputs: BTreeSet<usize> = ports(table, "I").into_iter().collect();
            adders.insert(inputs);
        }
        for cell in &self.cells {
            if cell.kind.starts_with("SB_DFF") && !ports(cell, "D").iter().any(|net| tables.contains(net)) {
                cells += 1;
            }
            if cell.kind == "SB_CARRY" {
                let inputs = ports(cell, "I").into_iter().chain(ports(cell, "CI")).collect();
                cells += u64::from(!adders.contains(&inputs));
            }
        }
        cells
    }

    /// Cells by the module whose signals they make: the units of the core, and the parts of the shell.
    pub(super) fn by_module(&self, family: Family) -> BTreeMap<String, Cells> {
        let mut modules: BTreeMap<String, Cells> = BTreeMap::new();
        for cell in &self.cells {
            let signal = signal(&cell.name);
            let path: Vec<&str> = signal.split('.').collect();
            let path = &path[..path.len() - 1];
            let levels = path.iter().position(|part| *part == CORE).map_or(SHELL_LEVELS, |core| core + 2);
            let module = path.iter().take(levels).copied().collect::<Vec<_>>().join(".");
            modules.entry(module).or_default().add(&cell.kind, family);
        }
        modules.retain(|_, cells| *cells != Cells::default());
        modules
    }
}

/// The signal of the sources after which a cell or net of a netlist is named: Yosys appends the cells on the way to it, whose kinds are
/// in capitals, as no name of the sources is.
pub(super) fn signal(name: &str) -> &str {
    let bytes = name.as_bytes();
    let is_kind = |at: usize| bytes[at] == b'_' && bytes.get(at + 1).is_some_and(u8::is_ascii_uppercase);
    let end = (0..bytes.len()).find(|at| bytes[*at] == b'$' || is_kind(*at)).unwrap_or(bytes.len());
    &name[..end]
}

#[cfg(test)]
impl Netlist {
    /// Of a module as Yosys writes it.
    pub(super) fn of_json(module: serde_json::Value) -> Netlist {
        Netlist::of(serde_json::from_value(module).expect("a module"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn cell(kind: &str, inputs: &[(&str, usize)], output: (&str, usize)) -> serde_json::Value {
        let directions: serde_json::Map<_, _> = inputs
            .iter()
            .map(|(port, _)| (port.to_string(), json!("input")))
            .chain([(output.0.to_string(), json!("output"))])
            .collect();
        let connections: serde_json::Map<_, _> =
            inputs.iter().chain([&output]).map(|(port, net)| (port.to_string(), json!([net]))).collect();
        json!({ "type": kind, "port_directions": directions, "connections": connections })
    }

    /// A counter's bit: table and carry and register in one cell; a register behind a table with two sinks in another; a carry
    /// that no table shares.
    #[test]
    fn tables_carries_and_registers_share_logic_cells() {
        let netlist = Netlist::of_json(json!({ "cells": {
            "add": cell("SB_LUT4", &[("I1", 2), ("I2", 3), ("I3", 4)], ("O", 5)),
            "carry": cell("SB_CARRY", &[("I0", 2), ("I1", 3), ("CI", 4)], ("CO", 6)),
            "register": cell("SB_DFFSR", &[("C", 1), ("D", 5), ("R", 9)], ("Q", 2)),
            "shared": cell("SB_LUT4", &[("I0", 2)], ("O", 7)),
            "alone": cell("SB_DFF", &[("C", 1), ("D", 7)], ("Q", 3)),
            "other": cell("SB_DFF", &[("C", 1), ("D", 7)], ("Q", 4)),
            "bare": cell("SB_CARRY", &[("I0", 3), ("I1", 4), ("CI", 6)], ("CO", 8)),
        } }));
        // add with carry and register, shared, alone, other, bare.
        assert_eq!(netlist.ice40_logic_cells(), 5);
    }

    #[test]
    fn single_port_rams_are_counted_where_the_part_has_them() {
        let netlist = Netlist::of_json(json!({ "cells": {
            "a": cell("SB_SPRAM256KA", &[("CLOCK", 1)], ("DATAOUT", 2)),
            "b": cell("SB_SPRAM256KA", &[("CLOCK", 1)], ("DATAOUT", 3)),
        } }));
        let of = |board: &str| {
            let found = netlist.resources(&Board::load(board).unwrap());
            found
                .into_iter()
                .find(|resource| resource.name == "single-port RAMs")
                .map(|found| (found.used, found.available))
        };
        assert_eq!([of("upduino"), of("hx8k-evn")], [Some((2, 4)), Some((2, 0))]);
    }

    /// Two chains, of which one is of two cells, and a carry that a table looks at.
    #[test]
    fn carry_chains_have_ends() {
        let netlist = Netlist::of_json(json!({ "cells": {
            "first": cell("CCU2C", &[("A0", 1), ("B0", 2)], ("COUT", 3)),
            "second": cell("CCU2C", &[("A0", 1), ("CIN", 3)], ("COUT", 4)),
            "alone": cell("CCU2C", &[("A0", 1), ("CIN", 2)], ("S0", 5)),
            "table": cell("LUT4", &[("A", 4), ("B", 5)], ("Z", 6)),
        } }));
        assert_eq!(netlist.ecp5_chain_ends(), 6);
    }

    #[test]
    fn cells_are_named_after_signals_of_the_sources() {
        assert_eq!(
            signal("u_shell.u_core.u_load.u_rows.left_q_SB_DFFE_Q_3_D_SB_LUT4_O"),
            "u_shell.u_core.u_load.u_rows.left_q"
        );
        assert_eq!(signal("u_core.u_gemm.sum_q_TRELLIS_FF_Q_1"), "u_core.u_gemm.sum_q");
        assert_eq!(signal("u_core.u_regs.traps_q_DFF_Q_D_LUT3_F_I1_MUX2_LUT8_O"), "u_core.u_regs.traps_q");
        assert_eq!(signal("u_core.u_wgt.raddr_i_FD1P3IX_Q_D_CCU2_S0"), "u_core.u_wgt.raddr_i");
        assert_eq!(signal("$abc$1234$auto$blifparse.cc:1"), "");
        assert_eq!(signal("clk"), "clk");
    }
}
