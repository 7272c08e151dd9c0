//! Writes the sources of a board's design: the core's SystemVerilog with its configuration, the shell, the clock, the
//! top module, the constraints, and the script for Yosys.

mod constraints;
mod names;
mod sdram;
mod sources;
mod top;

use super::board::{Board, CoreMemory};
use super::{FlowError, FlowRequest, multipliers, zynq};
use crate::config::HwConfig;
use crate::isa::config_package;
use crate::rtl::{PART, SOURCES, part_package};
use names::BOARD_CELLS;
use sdram::{Form, pins_module};
use top::top;

pub(super) use constraints::constraints;
pub use names::{CLOCK, NETLIST, NETLIST_VERILOG, ROUTE_REPORT, ROUTED_NETLIST, SCRIPT, SDRAM_PINS, SHELL, TOP};
pub(super) use names::{CONFIG, SHELL_FILE};
pub use sources::{SourceFile, Sources};

/// Writes the files of a board's design.
///
/// # Errors
/// [`FlowError::Unfit`] if the part cannot make the clock.
pub fn sources(request: &FlowRequest) -> Result<Sources, FlowError> {
    let FlowRequest { board, config, .. } = request;
    let mut files = core(board, config);
    for file in &mut files {
        if let Some(own) = board.family.own_modules().iter().find(|own| own.name == file.name) {
            file.text = own.text.to_string();
        }
        // All files are in one folder, so that headers are found.
        file.name = file.name.rsplit('/').next().unwrap_or_default().to_string();
    }
    let around = around(board, config, request.shell, request.mhz, Form::Part)?;
    files.extend(around.files);
    if board.family.has_processor() {
        files.push(SourceFile::new(format!("{TOP}.v"), zynq::top(request)));
    } else {
        files.push(SourceFile::new(board.family.definition().files.constraints, constraints(board)));
    }
    files.extend(board.family.synthesis_files().iter().map(|file| SourceFile::new(file.name, file.text)));
    let mut sources = Sources { files, mhz: around.mhz };
    let script = script(request, &sources);
    sources.files.push(SourceFile::new(SCRIPT, script));
    let scripts = zynq::files(request, &sources);
    sources.files.extend(scripts);
    Ok(sources)
}

/// Returns the option of a flow's script that names the top module. A script with this option is a flow's.
pub(super) fn top_option() -> String {
    format!("--top {TOP}")
}

/// Writes the files of a board's design for a simulator of its sources.
///
/// The top module is [`TOP`] too. The part's cells are replaced by models; the model of the phase-locked loop passes
/// the clock through, so that the core runs at the pin's clock. A bidirectional pin `P` becomes the ports `P_i`, `P_o`
/// and `P_oe`. `shell` is the shell's Verilog, `mhz` the clock that is asked for.
///
/// # Errors
/// [`FlowError::Unfit`] if the part cannot make the clock, or a processor is the host.
pub fn simulated(board: &Board, config: &HwConfig, shell: &str, mhz: f64) -> Result<Sources, FlowError> {
    if board.family.has_processor() {
        let reason = "the core is a processor's peripheral, which cannot be simulated with its board";
        return Err(unfit(board, config, reason.into()));
    }
    let mut files = core(board, config);
    let around = around(board, config, shell, mhz, Form::Simulated)?;
    files.extend(around.files);
    files.extend(board.family.board_cells().map(|text| SourceFile::new(BOARD_CELLS, text)));
    Ok(Sources { files, mhz: around.mhz })
}

fn unfit(board: &Board, config: &HwConfig, reason: String) -> FlowError {
    FlowError::Unfit { board: board.name.clone(), config: config.name.clone(), reason }
}

/// Returns the core's files with the configuration, for the board's part.
fn core(board: &Board, config: &HwConfig) -> Vec<SourceFile> {
    let own = part_package(multipliers::gemm_table_lanes(board, config));
    let mut files = vec![SourceFile::new(CONFIG, config_package(config))];
    files.extend(SOURCES.iter().map(|&(path, text)| {
        let text = if path == PART { own.as_str() } else { text };
        SourceFile::new(path, text)
    }));
    files
}

/// Returns the files of shell, clock, pins and top module, and the core's clock. If a processor is the host, there are
/// no files.
fn around(board: &Board, config: &HwConfig, shell: &str, mhz: f64, form: Form) -> Result<Sources, FlowError> {
    let clock = board.family.clock(board.clock.mhz, mhz).map_err(|reason| unfit(board, config, reason))?;
    if board.family.has_processor() {
        return Ok(Sources { files: Vec::new(), mhz: clock.mhz });
    }
    let mut files = vec![SourceFile::new(SHELL_FILE, shell), SourceFile::new(CLOCK, clock.source)];
    if let CoreMemory::Sdram(chip) = &board.memory {
        files.extend(pins_module(board.family, chip, form).map(|text| SourceFile::new(SDRAM_PINS, text)));
    }
    files.push(SourceFile::new(format!("{TOP}.v"), top(board, form)));
    Ok(Sources { files, mhz: clock.mhz })
}

/// Writes the script for Yosys.
fn script(request: &FlowRequest, sources: &Sources) -> String {
    // The clock and the SDRAM's pins instantiate cells of the family. Yosys's own reader accepts them without
    // declarations.
    let (cells, files): (Vec<&str>, Vec<&str>) = sources.verilog().partition(|name| [CLOCK, SDRAM_PINS].contains(name));
    // By default, Yosys treats a net with two drivers as undefined, and goes on.
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
