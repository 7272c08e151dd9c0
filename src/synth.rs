//! What of a board's design comes from outside the flow: its shell.

use tilewright_hw::config::HwConfig;
use tilewright_hw::flow::FlowError;
use tilewright_hw::flow::board::{Board, Host, Memory};
use tilewright_shell::ShellConfig;

/// The Verilog of a board's shell around a configuration's core, at a clock in MHz; empty where a processor is the host.
///
/// # Errors
/// [`FlowError::Unfit`] where there is no such shell.
pub fn shell(board: &Board, config: &HwConfig, mhz: f64) -> Result<String, FlowError> {
    let unfit = |reason| FlowError::Unfit { board: board.name.clone(), config: config.name.clone(), reason };
    let host = match board.host {
        Host::Uart { .. } => tilewright_shell::Host::Uart { clocks_per_bit: board.clocks_per_bit(mhz) },
        Host::Spi { .. } => tilewright_shell::Host::Spi,
        Host::Processor { .. } => return Ok(String::new()),
    };
    let memory = match board.memory {
        Memory::Host => tilewright_shell::Memory::Host,
        Memory::Block { kib } => tilewright_shell::Memory::BlockRam { kib },
        Memory::Spram { kib } => tilewright_shell::Memory::Spram { kib },
        Memory::Processor => {
            return Err(unfit("memory.kind is processor, which the part has not; choose host, block or spram".into()));
        }
    };
    let shell = ShellConfig { host, memory, leds: (board.leds.pins.len() as u32).min(tilewright_shell::LEDS) };
    tilewright_shell::generate(config, &shell).map_err(|error| unfit(error.to_string()))
}
