//! The sources of a board's design: the core's SystemVerilog with its configuration, the shell, the clock, the top module and
//! the pins.

mod constraints;
mod names;
mod sdram;
mod sources;
mod top;

use super::board::{Board, Memory};
use super::{FlowError, Request, multipliers, zynq};
use crate::config::HwConfig;
use crate::isa::config_package;
use crate::rtl::{PART, SOURCES, part_package};
use names::BOARD_CELLS;
use sdram::{Form, pins_module};
use top::top;

pub(super) use constraints::constraints;
pub use names::{CLOCK, NETLIST, NETLIST_VERILOG, ROUTE_REPORT, ROUTED_NETLIST, SCRIPT, SDRAM_PINS, SHELL, TOP};
pub(super) use names::{CONFIG, SHELL_FILE};
pub use sources::Sources;

/// The files of a board's design.
///
/// # Errors
/// [`FlowError::Unfit`] where the part cannot make the clock.
pub fn sources(request: &Request) -> Result<Sources, FlowError> {
    let Request { board, config, .. } = request;
    let mut files = core(board, config);
    for (path, text) in &mut files {
        if let Some(own) = board.family.own_modules().iter().find(|own| own.name == path) {
            *text = own.text.to_string();
        }
        // In one folder, so that headers are found.
        *path = path.rsplit('/').next().unwrap_or(path).to_string();
    }
    let (around, mhz) = around((board, config), request.shell, request.mhz, Form::Part)?;
    files.extend(around);
    if board.family.has_processor() {
        files.push((format!("{TOP}.v"), zynq::top(request)));
    } else {
        files.push((board.family.definition().files.constraints.into(), constraints(board)));
    }
    files.extend(board.family.synthesis_files().iter().map(|file| (file.name.to_string(), file.text.to_string())));
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
    let clock = board.family.clock(board.clock.mhz, mhz).map_err(|reason| unfit(board, config, reason))?;
    if board.family.has_processor() {
        return Ok((Vec::new(), clock.mhz));
    }
    let mut files = vec![(SHELL_FILE.to_string(), shell.to_string()), (CLOCK.into(), clock.source)];
    if let Memory::Sdram(chip) = &board.memory {
        files.extend(pins_module(board.family, chip, form).map(|text| (SDRAM_PINS.to_string(), text)));
    }
    files.push((format!("{TOP}.v"), top(board, form)));
    Ok((files, clock.mhz))
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
    lines.extend(request.board.family.synthesis(&request.board.device, TOP));
    lines.push("check -assert".into());
    lines.push(format!("write_json {NETLIST}"));
    lines.push(format!("write_verilog -noattr {NETLIST_VERILOG}"));
    lines.join("\n") + "\n"
}
