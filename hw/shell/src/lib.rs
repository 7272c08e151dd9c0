//! Board shells and host bridges in rust-hdl around the SystemVerilog core.
//!
//! [`generate`] returns the Verilog of a shell, whose top module is [`TOP`]. It contains a power-on reset, a link to
//! the host, the bridge between the link's frames ([`tilewright_hw::link`]) and the core's registers, and the memory on
//! the core's bus. The shell instantiates the core as the module `tw_core`: compile its sources
//! ([`tilewright_hw::rtl::SOURCES`]) and the configuration's package ([`tilewright_hw::isa::config_package`]) together
//! with the shell.
//!
//! Sizes are const generics in rust-hdl, so the blocks that carry beats are compiled for every bus width, and the
//! matching one is used. Divisors, memory sizes and run lengths are constants of the instances.

// rust-hdl translates `update` functions literally, and supports neither guards nor `else` with an `if` in braces.
#![allow(clippy::collapsible_match, clippy::collapsible_if, clippy::collapsible_else_if)]

#[cfg(test)]
mod bench;
mod block_ram;
mod board_memory;
mod bridge;
mod bytes;
mod core;
mod crc;
mod host_memory;
mod receiver;
mod reset;
mod sdram;
mod sender;
mod spi;
mod status;
mod top;
mod uart;

use rust_hdl::prelude::{Block, ModuleDefines, check_all};
use tilewright_hw::config::{HwConfig, PAGE_BYTES};
use tilewright_hw::flow::sdram::{Cycles, Geometry};
use tilewright_hw::link::MemorySide;

/// Most LEDs of a shell.
pub use tilewright_hw::flow::board::LEDS;

/// The top module. Its ports are `clk`, those of the link, those of the memory, and `leds` if there are any.
pub const TOP: &str = "tw_shell";

/// Connection between the host and the board.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShellLink {
    /// A UART, ports `uart_rx` and `uart_tx`.
    Uart {
        /// Clock cycles per bit, 4 to 65,536.
        clocks_per_bit: u32,
    },
    /// An SPI slave, mode 0, with `sck` at up to an eighth of the clock; ports `spi_cs_n`, `spi_sck`, `spi_mosi` and
    /// `spi_miso`.
    Spi,
}

/// Where the memory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShellMemory {
    /// At the host, reached over the link.
    Host,
    /// Block RAM on the board.
    BlockRam {
        /// Size in KiB, a power of two of at least 4, within the configuration's addresses.
        kib: u32,
    },
    /// An iCE40's single-port RAM, inferred by `synth_ice40 -spram`; otherwise like block RAM.
    Spram {
        /// Size in KiB.
        kib: u32,
    },
    /// An SDRAM chip; ports `sdram_ras_n`, `sdram_cas_n`, `sdram_we_n`, `sdram_a`, `sdram_ba`, `sdram_dqm` if it has
    /// masks, `sdram_dq_o`, `sdram_dq_oe` and `sdram_dq_i`. The chip's clock rises when the shell's falls.
    Sdram {
        /// Its size.
        geometry: Geometry,
        /// Its timing in cycles of the shell's clock.
        cycles: Cycles,
    },
}

impl ShellMemory {
    /// The side of the link that the memory is on, as the frames encode it.
    pub fn side(self) -> MemorySide {
        match self {
            ShellMemory::Host => MemorySide::Host,
            ShellMemory::BlockRam { kib } | ShellMemory::Spram { kib } => MemorySide::on_board(u64::from(kib) << 10),
            ShellMemory::Sdram { geometry, .. } => MemorySide::on_board(geometry.bytes()),
        }
    }
}

/// The properties of a board that its shell depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct ShellConfig {
    /// The link to the host.
    pub host: ShellLink,
    /// The memory.
    pub memory: ShellMemory,
    /// LEDs, at most [`LEDS`], active high: a command runs, the core trapped, a frame was refused, a slow blink.
    pub leds: u32,
}

/// Why a shell cannot be generated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ShellError {
    /// The divisor is out of range.
    #[error("{clocks} clock cycles per bit; the UART supports {} to {}", uart::FEWEST_CLOCKS, uart::MOST_CLOCKS)]
    ClocksPerBit {
        /// Cycles per bit.
        clocks: u32,
    },
    /// The RAM size is not supported.
    #[error("{kib} KiB of RAM is not supported; use a power of two from {} to {most}", PAGE_BYTES >> 10)]
    RamSize {
        /// Requested KiB.
        kib: u32,
        /// Most KiB that the configuration can address.
        most: u64,
    },
    /// The bus is narrower than the chip's words.
    #[error(
        "the bus has {bus_bits} bits, but the SDRAM's words have {data_bits}; use a configuration whose bus_bits is {data_bits} or more"
    )]
    NarrowBus {
        /// Bits of the bus.
        bus_bits: u32,
        /// Bits of the chip's words.
        data_bits: u32,
    },
    /// A beat of the SDRAM can be too late for the link.
    #[error(
        "a beat of the SDRAM can take {cycles} cycles, but the link waits at most {most}; use a configuration with a narrower \
         bus, or a lower clock"
    )]
    SlowSdram {
        /// Cycles that a beat can take.
        cycles: u32,
        /// Cycles that are available.
        most: u32,
    },
    /// More LEDs than a shell can drive.
    #[error("{leds} LEDs are too many; a shell has at most {LEDS}")]
    Leds {
        /// Requested LEDs.
        leds: u32,
    },
    /// The shell's blocks are not connected as rust-hdl requires; a bug of this crate.
    #[error("rust-hdl rejects the shell: {reason}")]
    Check {
        /// What rust-hdl found.
        reason: String,
    },
}

/// Generates the Verilog of a shell for a configuration; equal arguments give equal text.
///
/// # Errors
/// [`ShellError`] if a value of `shell` is out of range.
pub fn generate(config: &HwConfig, shell: &ShellConfig) -> Result<String, ShellError> {
    if let ShellLink::Uart { clocks_per_bit: clocks } = shell.host
        && !(uart::FEWEST_CLOCKS..=uart::MOST_CLOCKS).contains(&clocks)
    {
        return Err(ShellError::ClocksPerBit { clocks });
    }
    if let ShellMemory::BlockRam { kib } | ShellMemory::Spram { kib } = shell.memory {
        // No part has more RAM, and more could not be simulated.
        let most = (1u64 << config.offset_bits.min(30)) >> 10;
        if !kib.is_power_of_two() || kib < PAGE_BYTES >> 10 || u64::from(kib) > most {
            return Err(ShellError::RamSize { kib, most });
        }
    }
    if let ShellMemory::Sdram { geometry, cycles } = shell.memory {
        if config.bus_bits < geometry.data_bits {
            return Err(ShellError::NarrowBus { bus_bits: config.bus_bits, data_bits: geometry.data_bits });
        }
        let [read, write] = sdram::most_beat_cycles(config.bus_bits, geometry, cycles);
        // The host's beat is written while the next one comes. SPI cannot wait between the bytes of a frame: a byte
        // that is not ready would be sent as a zero.
        let checked = match shell.host {
            ShellLink::Uart { .. } => [(write, uart::FEWEST_CLOCKS * uart::BITS_OF_BYTE * config.bus_bytes())].to_vec(),
            ShellLink::Spi => {
                [(write, spi::FEWEST_CLOCKS * 8 * config.bus_bytes()), (read, spi::CYCLES_TO_NEXT_BYTE)].to_vec()
            }
        };
        if let Some((cycles, most)) = checked.into_iter().find(|(cycles, most)| cycles > most) {
            return Err(ShellError::SlowSdram { cycles, most });
        }
    }
    if shell.leds > LEDS {
        return Err(ShellError::Leds { leds: shell.leds });
    }
    let board = match config.bus_bits {
        16 => top::board::<16, 2, 1>(config, shell),
        32 => top::board::<32, 4, 2>(config, shell),
        64 => top::board::<64, 8, 3>(config, shell),
        128 => top::board::<128, 16, 4>(config, shell),
        256 => top::board::<256, 32, 5>(config, shell),
        512 => top::board::<512, 64, 6>(config, shell),
        bits => unreachable!("a bus has a power of two of bits from 16 to 512, not {bits}"),
    }?;
    Ok(format!("{}{board}", top::ports(shell)))
}

/// The Verilog of a block as the module `name`.
fn verilog<B: Block>(name: &str, mut block: B) -> Result<String, ShellError> {
    block.connect_all();
    check_all(&block).map_err(|error| ShellError::Check { reason: format!("{error:?}") })?;
    let mut defines = ModuleDefines::default();
    block.accept(name, &mut defines);
    // Trailing blanks are removed, so that the text can be kept in a repository.
    Ok(defines.defines().lines().map(|line| format!("{}\n", line.trim_end())).collect())
}
