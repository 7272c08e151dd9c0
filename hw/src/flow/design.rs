//! The sources of a board's design: the core's SystemVerilog with its configuration, the shell, the clock, the top module and
//! the pins.

use super::board::{Board, Host, Memory};
use super::sdram::{Pins, Sdram};
use super::{FlowError, Request, multipliers, zynq};
use crate::config::HwConfig;
use crate::isa::config_package;
use crate::rtl::{PART, SOURCES, part_package};
use std::fmt::Write as _;

/// The top module.
pub const TOP: &str = "tw_top";
/// The package of the configuration.
pub(super) const CONFIG: &str = "tw_cfg_pkg.sv";
/// The shell's source.
pub(super) const SHELL_FILE: &str = "tw_shell.v";
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
/// The source of the SDRAM's clock and data pins.
pub const SDRAM_PINS: &str = "tw_sdram_pins.v";
/// The source of the models of the cells that a design names itself, for simulators.
const BOARD_CELLS: &str = "tw_board_cells.v";
/// What synthesis makes of carry chains' first cells, where the family's router wants them otherwise.
pub const CARRIES: &str = "carries.map";
/// The script that synthesis runs.
pub const SCRIPT: &str = "synth.ys";

/// How a design's pins of both directions are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As cells of the part.
    Part,
    /// Each as three ports, for a simulator that knows no levels but high and low: what comes in, what goes out, and whether it does.
    Simulated,
}

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
    let Request { board, config, .. } = request;
    let mut files = core(board, config);
    for (path, text) in &mut files {
        if let Some((_, own)) = board.family.own_modules().iter().find(|(module, _)| module == path) {
            *text = own.to_string();
        }
        // In one folder, so that headers are found.
        *path = path.rsplit('/').next().unwrap_or(path).to_string();
    }
    let (around, mhz) = around((board, config), request.shell, request.mhz, Form::Part)?;
    files.extend(around);
    if board.family.has_processor() {
        files.push((format!("{TOP}.v"), zynq::top(request)));
    } else {
        files.push((board.family.constraints_file().into(), board.family.constraints(board)));
    }
    files.extend(board.family.synthesis_files().iter().map(|(name, text)| (name.to_string(), text.to_string())));
    let mut sources = Sources { files, mhz };
    let script = script(request, &sources);
    sources.files.push((SCRIPT.into(), script));
    let scripts = zynq::files(request, &sources);
    sources.files.extend(scripts);
    Ok(sources)
}

/// The words of a flow's script that name the design, by which the script is known.
pub(super) fn top_option() -> String {
    format!("--top {TOP}")
}

/// The files of the same design for a simulator of sources, whose top module is [`TOP`] too: the part's cells are their models, and a pin
/// `P` of both directions is the ports `P_i`, `P_o` and `P_oe`. The loop passes the clock on, so that the pin's is the core's. `shell` is
/// the shell's Verilog, `mhz` the clock that is asked for.
///
/// # Errors
/// [`FlowError::Unfit`] where the part cannot make the clock, or a processor is the host.
pub fn simulated(board: &Board, config: &HwConfig, shell: &str, mhz: f64) -> Result<Sources, FlowError> {
    if board.family.has_processor() {
        let reason = "the core is a processor's peripheral, and there is no simulation of that";
        return Err(unfit(board, config, reason.into()));
    }
    let mut files = core(board, config);
    let (around, mhz) = around((board, config), shell, mhz, Form::Simulated)?;
    files.extend(around);
    files.extend(board.family.board_cells().map(|text| (BOARD_CELLS.to_string(), text.to_string())));
    Ok(Sources { files, mhz })
}

fn unfit(board: &Board, config: &HwConfig, reason: String) -> FlowError {
    FlowError::Unfit { board: board.name.clone(), config: config.name.clone(), reason }
}

/// The core with its configuration, for the board's part.
fn core(board: &Board, config: &HwConfig) -> Vec<(String, String)> {
    let own = part_package(multipliers::gemm_table_lanes(board, config));
    let mut files = vec![(CONFIG.to_string(), config_package(config))];
    files.extend(SOURCES.iter().map(|&(path, text)| {
        let text = if path == PART { own.as_str() } else { text };
        (path.to_string(), text.to_string())
    }));
    files
}

/// The shell, the clock, the pins and the top module, where no processor is the host, and the core's clock, MHz.
fn around(
    (board, config): (&Board, &HwConfig),
    shell: &str,
    mhz: f64,
    form: Form,
) -> Result<(Vec<(String, String)>, f64), FlowError> {
    let (clock, mhz) = board.family.clock(board, mhz).map_err(|reason| unfit(board, config, reason))?;
    if board.family.has_processor() {
        return Ok((Vec::new(), mhz));
    }
    let mut files = vec![(SHELL_FILE.to_string(), shell.to_string()), (CLOCK.into(), clock)];
    if let Memory::Sdram(chip) = &board.memory {
        files.extend(board.family.sdram_pins(chip, form).map(|text| (SDRAM_PINS.to_string(), text)));
    }
    files.push((format!("{TOP}.v"), top(board, form)));
    Ok((files, mhz))
}

/// The top module: the pins, the clock and the shell.
fn top(board: &Board, form: Form) -> String {
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
    let sdram = match &board.memory {
        Memory::Sdram(chip) => Some(SdramPorts::new(chip, form)),
        _ => None,
    };
    text.extend(sdram.iter().map(|sdram| sdram.ports.as_str()));
    text.push_str("\n);\n\n  wire core_clk;\n  tw_clock u_clock (.clk_i(clk), .clk_o(core_clk));\n\n");
    if leds > 0 {
        let _ = writeln!(text, "  wire [{}:0] lamps;", leds - 1);
    }
    text.extend(sdram.iter().map(|sdram| sdram.wires.as_str()));
    let _ = write!(text, "  {SHELL} u_shell (\n    .clk(core_clk)");
    for (_, pin) in pins {
        let _ = write!(text, ", .{pin}({pin})");
    }
    text.extend(sdram.iter().map(|sdram| sdram.joins.as_str()));
    let not = if board.leds.active_low { "~" } else { "" };
    if leds > 0 {
        let _ = write!(text, ", .leds(lamps)\n  );\n  assign led = {not}lamps;\n");
    } else {
        text.push_str("\n  );\n");
    }
    text.extend(sdram.iter().map(|sdram| sdram.body.as_str()));
    text.push_str("\nendmodule\n");
    text
}

/// The top module's part of an SDRAM.
struct SdramPorts {
    /// Its ports.
    ports: String,
    /// What is between them and the shell's.
    wires: String,
    /// How the shell's are joined.
    joins: String,
    /// What drives the pins.
    body: String,
}

impl SdramPorts {
    fn new(chip: &Sdram, form: Form) -> SdramPorts {
        let Pins { cke, cs, a, ba, dqm, dq, .. } = &chip.pins;
        let (mut ports, mut joins) = (String::from(",\n  output wire sdram_clk"), String::new());
        let mut body = String::new();
        for (port, pin, level) in [("sdram_cke", cke, 1), ("sdram_cs_n", cs, 0)] {
            if pin.is_some() {
                let _ = write!(ports, ",\n  output wire {port}");
                let _ = writeln!(body, "  assign {port} = 1'b{level};");
            }
        }
        let one = ["sdram_ras_n", "sdram_cas_n", "sdram_we_n"].map(|port| (port, None));
        let many = [("sdram_a", a), ("sdram_ba", ba), ("sdram_dqm", dqm)].map(|(port, pins)| (port, Some(pins.len())));
        for (port, pins) in one.into_iter().chain(many).filter(|(_, pins)| *pins != Some(0)) {
            let range = pins.map_or(String::new(), |pins| format!("[{}:0] ", pins - 1));
            let _ = write!(ports, ",\n  output wire {range}{port}");
            let _ = write!(joins, ",\n    .{port}({port})");
        }
        let top = dq.len().saturating_sub(1);
        let both: &[(&str, &str)] = match form {
            Form::Part => &[("inout ", "")],
            Form::Simulated => &[("input ", "_i"), ("output", "_o"), ("output", "_oe")],
        };
        let mut pins = String::new();
        for (direction, side) in both {
            let _ = write!(ports, ",\n  {direction} wire [{top}:0] sdram_dq{side}");
            let _ = write!(pins, ", .dq_io{side}(sdram_dq{side})");
        }
        joins.push_str(",\n    .sdram_dq_i(dq_in), .sdram_dq_o(dq_out), .sdram_dq_oe(dq_drive)");
        let _ = write!(
            body,
            "\n  tw_sdram_pins u_sdram_pins (\n    .clk_i(core_clk), .clk_o(sdram_clk), .drive_i(dq_drive), .dq_i(dq_out), \
             .dq_o(dq_in){pins}\n  );\n"
        );
        let wires = format!("  wire dq_drive;\n  wire [{top}:0] dq_out;\n  wire [{top}:0] dq_in;\n");
        SdramPorts { ports, wires, joins, body }
    }
}

/// What Yosys does.
fn script(request: &Request, sources: &Sources) -> String {
    // The clock and the SDRAM's pins are cells of the family, which Yosys's own reader takes as they come.
    let (cells, files): (Vec<&str>, Vec<&str>) = sources.verilog().partition(|name| [CLOCK, SDRAM_PINS].contains(name));
    // Yosys goes on with a net that two drive as if it were undefined.
    let mut lines = vec!["logger -werror Driver-driver.conflict".to_string()];
    lines.extend(cells.iter().map(|name| format!("read_verilog {name}")));
    lines.push(format!("read_slang --extern-modules {} -I . {}", top_option(), files.join(" ")));
    lines.extend(request.board.family.own_times("."));
    lines.extend(request.board.family.synthesis(request.board, TOP));
    lines.push("check -assert".into());
    lines.push(format!("write_json {NETLIST}"));
    lines.push(format!("write_verilog -noattr {NETLIST_VERILOG}"));
    lines.join("\n") + "\n"
}
