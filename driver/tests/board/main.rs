//! Boards connected by a link, compared with the functional simulator: the Verilated design of a shell and its core,
//! whose serial line or SPI is the link's stream.

mod faults;
mod on_board;
mod on_sdram;
mod over_spi;
mod programs;

use std::time::Duration;
use tilewright_driver::link::{LinkDevice, LinkOptions};
use tilewright_hw::HwConfig;
use tilewright_hw::link::{ByteStream, UART_CLOCKS};
use tilewright_shell::{ShellConfig, ShellLink, ShellMemory, TOP};
use tilewright_sim::board::{BoardDesign, LinkPins, VirtualBoard};
use tilewright_sim::random::MEMORY_BYTES;

/// Cycles per bit on a serial line: the fewest that the shell supports.
const CLOCKS: u32 = UART_CLOCKS;
/// The line with this speed.
const LINE: LinkPins = LinkPins::Uart { clocks_per_bit: CLOCKS };

/// Timeouts for a board that answers at once.
const OPTIONS: LinkOptions =
    LinkOptions { answer: Duration::from_millis(10), poll: Duration::from_millis(5), memory_bytes: Some(MEMORY_BYTES) };

/// A small configuration, whose programs send little over the line.
fn config() -> HwConfig {
    HwConfig::parse("small", include_str!("small.toml")).expect("is a configuration")
}

/// A simulated board, or `None` without Verilator. The other end of its line has `line` cycles per bit.
fn board(config: &HwConfig, line: u32) -> Option<VirtualBoard> {
    with_memory(config, LinkPins::Uart { clocks_per_bit: line }, ShellMemory::Host)
}

/// The same with any link and any place of the memory.
fn with_memory(config: &HwConfig, link: LinkPins, memory: ShellMemory) -> Option<VirtualBoard> {
    if !tilewright_testing::has_program("verilator") {
        return None;
    }
    let host = match link {
        LinkPins::Uart { .. } => ShellLink::Uart { clocks_per_bit: CLOCKS },
        LinkPins::Spi { .. } => ShellLink::Spi,
    };
    let verilog = tilewright_shell::generate(config, &ShellConfig { host, memory, leds: 0 }).expect("a shell");
    let design = BoardDesign { link, ..BoardDesign::of_shell(config, &verilog, TOP, LINE) };
    Some(VirtualBoard::new(&design, None, &|_| {}).expect("the design builds"))
}

/// Opens the board through `stream`, which wraps it.
fn device<S: ByteStream>(stream: S, config: &HwConfig) -> LinkDevice<S> {
    LinkDevice::open(stream, config.clone(), OPTIONS).expect("the board answers")
}
