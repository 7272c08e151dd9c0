//! Names that several steps share: modules of a design, and files that one step writes and another reads.

/// The top module.
pub const TOP: &str = "tw_top";
/// The package of the configuration.
pub(in crate::flow) const CONFIG: &str = "tw_cfg_pkg.sv";
/// The shell's source.
pub(in crate::flow) const SHELL_FILE: &str = "tw_shell.v";
/// The shell's module.
pub const SHELL: &str = "tw_shell";
/// The netlist that synthesis writes for the router and the report.
pub const NETLIST: &str = "board.json";
/// The same netlist as Verilog, for simulation.
pub const NETLIST_VERILOG: &str = "synthesized.v";
/// The netlist that the router writes.
pub const ROUTED_NETLIST: &str = "routed.json";
/// The router's report.
pub const ROUTE_REPORT: &str = "route.json";
/// The clock's source.
pub const CLOCK: &str = "tw_clock.v";
/// The source of the SDRAM's clock and data pins.
pub const SDRAM_PINS: &str = "tw_sdram_pins.v";
/// The models of the cells that a design instantiates, for simulators.
pub(super) const BOARD_CELLS: &str = "tw_board_cells.v";
/// The script that synthesis runs.
pub const SCRIPT: &str = "synth.ys";
