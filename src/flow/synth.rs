//! What of a board's design comes from outside the flow: its shell.

use tilewright_hw::config::HwConfig;
use tilewright_hw::flow::FlowError;
use tilewright_hw::flow::board::{Board, CoreMemory, HostLink};
use tilewright_shell::ShellConfig;

/// The Verilog of a board's shell around a configuration's core at a clock of `mhz`; empty if a processor is the host.
///
/// # Errors
/// [`FlowError::Unfit`] if there is no such shell, [`FlowError::Board`] if the link does not support the clock.
pub fn shell(board: &Board, config: &HwConfig, mhz: f64) -> Result<String, FlowError> {
    let host = match board.host {
        HostLink::Uart { .. } => tilewright_shell::ShellLink::Uart { clocks_per_bit: board.clocks_per_bit(mhz)? },
        HostLink::Spi { .. } => tilewright_shell::ShellLink::Spi,
        HostLink::Processor { .. } => return Ok(String::new()),
    };
    let memory = memory(board, config, mhz)?;
    let shell = ShellConfig { host, memory, leds: board.leds.pins.len() as u32 };
    tilewright_shell::generate(config, &shell).map_err(|error| unfit(board, config, error.to_string()))
}

/// The memory of a board's shell at a clock of `mhz`.
///
/// # Errors
/// [`FlowError::Unfit`] if the part does not have this memory, or the memory does not support the clock.
fn memory(board: &Board, config: &HwConfig, mhz: f64) -> Result<tilewright_shell::ShellMemory, FlowError> {
    Ok(match &board.memory {
        CoreMemory::Host {} => tilewright_shell::ShellMemory::Host,
        CoreMemory::Block { kib } => tilewright_shell::ShellMemory::BlockRam { kib: *kib },
        CoreMemory::Spram { kib } => tilewright_shell::ShellMemory::Spram { kib: *kib },
        CoreMemory::Sdram(chip) => {
            // Uses the clock that the part really generates: the time between two refreshes must not grow.
            let cycles = chip.cycles(board.clock_mhz(mhz)?).map_err(|reason| unfit(board, config, reason))?;
            tilewright_shell::ShellMemory::Sdram { geometry: chip.geometry(), cycles }
        }
        CoreMemory::Processor {} => {
            let reason = "memory.kind is processor, but this part has no processor; choose host, block, spram or sdram";
            return Err(unfit(board, config, reason.into()));
        }
    })
}

fn unfit(board: &Board, config: &HwConfig, reason: String) -> FlowError {
    FlowError::Unfit { board: board.name.clone(), config: config.name.clone(), reason }
}
