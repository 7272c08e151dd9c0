//! Netlists that synthesis writes: cells of a family and the nets between them.

use super::files::read_json;
use super::{FlowError, design};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// The values that a cell keeps in registers of its own, as a multiplier block can.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kept {
    Nothing,
    Result,
    /// The operands and the result.
    Operands,
}

/// A cell.
#[derive(Debug, Clone)]
pub(super) struct Cell {
    pub(super) kind: String,
    /// The name, which Yosys makes from the signal that the cell drives.
    pub(super) name: String,
    pub(super) kept: Kept,
    pub(super) inputs: Vec<PortNet>,
    pub(super) outputs: Vec<PortNet>,
}

/// A net at a cell's port.
#[derive(Debug, Clone)]
pub(super) struct PortNet {
    /// The port, without the number of its bit.
    pub(super) port: String,
    pub(super) net: usize,
}

impl Cell {
    /// Returns the nets at the bits of an input.
    pub(super) fn input(&self, port: &str) -> impl Iterator<Item = usize> {
        nets_at(&self.inputs, port)
    }

    /// Returns the nets at the bits of an output.
    pub(super) fn output(&self, port: &str) -> impl Iterator<Item = usize> {
        nets_at(&self.outputs, port)
    }
}

fn nets_at(ports: &[PortNet], port: &str) -> impl Iterator<Item = usize> {
    ports.iter().filter(move |at| at.port == port).map(|at| at.net)
}

/// The cells of a synthesized design, and the nets between them.
#[derive(Debug, Clone)]
pub struct Netlist {
    cells: Vec<Cell>,
    /// The signal of the sources for each net; empty if it has no name.
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
    /// Clock of the register of an ECP5 multiplier's first operand. The second operand has the same.
    #[serde(rename = "REG_INPUTA_CLK")]
    operand_clock: Option<String>,
    /// Clock of the register of an ECP5 multiplier's result.
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
    /// Reads the JSON netlist that Yosys wrote.
    ///
    /// # Errors
    /// [`FlowError::Io`], [`FlowError::Output`].
    pub fn read(path: &Path) -> Result<Netlist, FlowError> {
        let mut design: Design = read_json(path, "a netlist of Yosys")?;
        // The other modules are the family's cells.
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
                // Prefer names of the sources to those of Yosys, and names of outer modules to those of inner modules.
                let rank = |name: &str| (name.contains('$'), name.matches('.').count(), name.len());
                let best = names.entry(net).or_insert(name);
                if rank(name) < rank(best) {
                    *best = name;
                }
            }
        }
        // Renumber the nets from 0.
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
                side.extend(nets(bits).map(|net| PortNet { port: port.to_string(), net: number(net) }));
            }
            cells.push(cell);
        }
        Netlist { cells, nets: texts }
    }

    pub(super) fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// Returns the signal of each net; empty if it has no name.
    pub(super) fn net_names(&self) -> &[String] {
        &self.nets
    }
}

/// Returns the signal of the sources that a cell or net is named after.
///
/// Yosys appends the kinds of the cells on the way to the signal. They are in capitals, unlike all names of the
/// sources.
pub(super) fn signal(name: &str) -> &str {
    let bytes = name.as_bytes();
    let is_kind = |at: usize| bytes[at] == b'_' && bytes.get(at + 1).is_some_and(u8::is_ascii_uppercase);
    let end = (0..bytes.len()).find(|at| bytes[*at] == b'$' || is_kind(*at)).unwrap_or(bytes.len());
    &name[..end]
}

#[cfg(test)]
impl Netlist {
    /// Reads a module in Yosys's JSON form.
    pub(super) fn of_json(module: serde_json::Value) -> Netlist {
        Netlist::of(serde_json::from_value(module).expect("a module"))
    }
}

/// A cell in Yosys's JSON form.
#[cfg(test)]
pub(super) fn cell(kind: &str, inputs: &[(&str, usize)], output: (&str, usize)) -> serde_json::Value {
    let directions: serde_json::Map<_, _> = inputs
        .iter()
        .map(|(port, _)| (port.to_string(), serde_json::json!("input")))
        .chain([(output.0.to_string(), serde_json::json!("output"))])
        .collect();
    let connections: serde_json::Map<_, _> =
        inputs.iter().chain([&output]).map(|(port, net)| (port.to_string(), serde_json::json!([net]))).collect();
    serde_json::json!({ "type": kind, "port_directions": directions, "connections": connections })
}

#[cfg(test)]
mod tests {
    use super::*;

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
