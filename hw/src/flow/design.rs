//! The sources of a board's design: the core's SystemVerilog with its configuration, the shell, the clock, the top module and
//! the pins.

use super::board::Host;
use super::{FlowError, Request, zynq};
use crate::isa::config_package;
use crate::rtl::{CELLS, PERIPHERAL, SOURCES};
use std::fmt::Write as _;

/// The top module.
pub const TOP: &str = "tw_top";
/// The shell's module.
pub const SHELL: &str = "tw_shell";
/// The netlist that synthesis writes, for the router and for reports.
pub const NETLIST: &str = "board.json";
/// The same as Verilog, for simulation.
pub const NETLIST_VERILOG: &str = "synthesized.v";
/// The netlist that the router writes.
pub const ROUTED_NETLIST: &str = "routed.json";
/// The router's report.
pub const ROUTE_REPORT: &str = "route.json";
/// The clock's source.
pub const CLOCK: &str = "tw_clock.v";
/// The script that synthesis runs.
pub const SCRIPT: &str = "synth.ys";

/// A design's files by name, and the clock that its core has.
#[derive(Debug, Clone)]
pub struct Sources {
    /// Name and text, SystemVerilog packages first.
    pub files: Vec<(String, String)>,
    /// The core's clock, MHz.
    pub mhz: f64,
}

impl Sources {
    /// The names of the files that tools read as SystemVerilog, packages first.
    pub fn verilog(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|(name, _)| name.as_str()).filter(|name| name.ends_with(".sv") || name.ends_with(".v"))
    }
}

/// The files of a board's design.
///
/// # Errors
/// [`FlowError::Unfit`] where the part cannot make the clock.
pub fn sources(request: &Request) -> Result<Sources, FlowError> {
    let Request { board, config, shell, .. } = request;
    let unfit = |reason| FlowError::Unfit { board: board.name.clone(), config: config.name.clone(), reason };
    let (clock, mhz) = board.family.clock(board, request.mhz).map_err(unfit)?;
    let mut files = vec![("tw_cfg_pkg.sv".to_string(), config_package(config))];
    // In one folder, so that headers are found.
    let kind = board.family.cells_kind(board);
    files.extend(SOURCES.iter().map(|(path, text)| {
        let name = path.rsplit('/').next().unwrap_or(path);
        let own = kind.map(|kind| format!("cells/{kind}/{name}"));
        let text = CELLS.iter().find(|(path, _)| Some(*path) == own.as_deref()).map_or(*text, |(_, text)| text);
        (name.to_string(), text.to_string())
    }));
    if !board.family.has_processor() {
        files.push(("tw_shell.v".into(), shell.to_string()));
        files.push((CLOCK.into(), clock));
        files.push((format!("{TOP}.v"), top(request)));
        files.push((board.family.constraints_file().into(), board.family.constraints(board)));
    }
    let mut sources = Sources { files, mhz };
    let script = script(request, &sources);
    sources.files.push((SCRIPT.into(), script));
    let scripts = zynq::files(request, &sources);
    sources.files.extend(scripts);
    Ok(sources)
}

/// The top module: the pins, the clock and the shell.
fn top(request: &Request) -> String {
    let board = request.board;
    let leds = board.leds.pins.len();
    let pins: &[(&str, &str)] = match board.host {
        Host::Uart { .. } => &[("input ", "uart_rx"), ("output", "uart_tx")],
        Host::Spi { .. } => {
            &[("input ", "spi_cs_n"), ("input ", "spi_sck"), ("input ", "spi_mosi"), ("output", "spi_miso")]
        }
        Host::Processor { .. } => &[],
    };
    let mut text = format!("// {}: its pins, its clock and the shell.\nmodule {TOP} (\n  input  wire clk", board.title);
    for (direction, pin) in pins {
        let _ = write!(text, ",\n  {direction} wire {pin}");
    }
    if leds > 0 {
        let _ = write!(text, ",\n  output wire [{}:0] led", leds - 1);
    }
    text.push_str("\n);\n\n  wire core_clk;\n  tw_clock u_clock (.clk_i(clk), .clk_o(core_clk));\n\n");
    if leds > 0 {
        let _ = writeln!(text, "  wire [{}:0] lamps;", leds - 1);
    }
    let _ = write!(text, "  {SHELL} u_shell (\n    .clk(core_clk)");
    for (_, pin) in pins {
        let _ = write!(text, ", .{pin}({pin})");
    }
    let not = if board.leds.active_low { "~" } else { "" };
    if leds > 0 {
        let _ = write!(text, ", .leds(lamps)\n  );\n  assign led = {not}lamps;\n");
    } else {
        text.push_str("\n  );\n");
    }
    text.push_str("\nendmodule\n");
    text
}

/// What Yosys does.
fn script(request: &Request, sources: &Sources) -> String {
    // The clock is made by cells of the family, which Yosys's own reader takes as they come.
    let (clocks, files): (Vec<&str>, Vec<&str>) = sources.verilog().partition(|name| *name == CLOCK);
    let top = if request.board.family.has_processor() { PERIPHERAL } else { TOP };
    let mut lines: Vec<String> = clocks.iter().map(|name| format!("read_verilog {name}")).collect();
    lines.push(format!("read_slang --extern-modules --top {top} -I . {}", files.join(" ")));
    lines.extend(request.board.family.synthesis(request.board, top));
    lines.push("check -assert".into());
    lines.push(format!("write_json {NETLIST}"));
    lines.push(format!("write_verilog -noattr {NETLIST_VERILOG}"));
    lines.join("\n") + "\n"
}
