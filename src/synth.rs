//! What of a board's design comes from outside the flow: its shell.

use tilewright_hw::config::HwConfig;
use tilewright_hw::flow::FlowError;
use tilewright_hw::flow::board::{Board, Host};
use tilewright_hw::link;
use tilewright_shell::ShellConfig;

/// The Verilog of a board's shell around a configuration's core, at a clock in MHz; empty where a processor is the host.
///
/// # Errors
/// [`FlowError::Unfit`] where there is no such shell.
pub fn shell(board: &Board, config: &HwConfig, mhz: f64) -> Result<String, FlowError> {
    let unfit = |reason| FlowError::Unfit { board: board.name.clone(), config: config.name.clone(), reason };
    let host = match board.host {
        Host::Uart { .. } => tilewright_shell::Host::Uart { clocks_per_bit: board.clocks_per_bit(mhz) },
        Host::Spi { .. } => {
            return Err(unfit("its shell has no SPI bridge yet; choose a board with a serial port".into()));
        }
        Host::Processor { .. } => return Ok(String::new()),
    };
    let memory = match board.memory.kind {
        link::Memory::Host => tilewright_shell::Memory::Host,
        link::Memory::Board => {
            return Err(unfit(
                "its shell has no controller of the board's memory yet; give memory.kind = \"host\"".into(),
            ));
        }
    };
    let shell = ShellConfig { host, memory, leds: board.leds.pins.len() as u32 };
    tilewright_shell::generate(config, &shell).map_err(|error| unfit(error.to_string()))
}
