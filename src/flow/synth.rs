//! What of a board's design comes from outside the flow: its shell.

use tilewright_hw::config::HwConfig;
use tilewright_hw::flow::FlowError;
use tilewright_hw::flow::board::{Board, Host, Memory};
use tilewright_shell::ShellConfig;

/// The Verilog of a board's shell around a configuration's core at a clock of `mhz`; empty if a processor is the host.
///
/// # Errors
/// [`FlowError::Unfit`] if there is no such shell, [`FlowError::Board`] if the link does not support the clock.
pub fn shell(board: &Board, config: &HwConfig, mhz: f64) -> Result<String, FlowError> {
    let host = match board.host {
        Host::Uart { .. } => tilewright_shell::Host::Uart { clocks_per_bit: board.clocks_per_bit(mhz)? },
        Host::Spi { .. } => tilewright_shell::Host::Spi,
        Host::Processor { .. } => return Ok(String::new()),
    };
    let memory = memory(board, config, mhz)?;
    let shell = ShellConfig { host, memory, leds: board.leds.pins.len() as u32 };
    tilewright_shell::generate(config, &shell).map_err(|error| unfit(board, config, error.to_string()))
}

/// The memory of a board's shell at a clock of `mhz`.
///
/// # Errors
/// [`FlowError::Unfit`] if the part does not have this memory, or the memory does not support the clock.
fn memory(board: &Board, config: &HwConfig, mhz: f64) -> Result<tilewright_shell::Memory, FlowError> {
    Ok(match &board.memory {
        Memory::Host {} => tilewright_shell::Memory::Host,
        Memory::Block { kib } => tilewright_shell::Memory::BlockRam { kib: *kib },
        Memory::Spram { kib } => tilewright_shell::Memory::Spram { kib: *kib },
        Memory::Sdram(chip) => {
            // Uses the clock that the part really generates: the time between two refreshes must not grow.
            let cycles = chip.cycles(board.clock_mhz(mhz)?).map_err(|reason| unfit(board, config, reason))?;
            tilewright_shell::Memory::Sdram { geometry: chip.geometry(), cycles }
        }
        Memory::Processor {} => {
            let reason = "memory.kind is processor, but this part has no processor; choose host, block, spram or sdram";
            return Err(unfit(board, config, reason.into()));
        }
    })
}

fn unfit(board: &Board, config: &HwConfig, reason: String) -> FlowError {
    FlowError::Unfit { board: board.name.clone(), config: config.name.clone(), reason }
}
