//! A board without hardware behind a pseudo-terminal, which hosts open as they open a serial port. Where the board's link is SPI, the
//! terminal's bytes go through an SPI master to the board's pins.

use std::convert::Infallible;
use std::io;
use std::time::Duration;

use tilewright_driver::link::Pty;
use tilewright_hw::config::HwConfig;
use tilewright_hw::device::DeviceError;
use tilewright_hw::flow::FlowError;
use tilewright_hw::flow::board::{self, Board};
use tilewright_hw::link::ByteStream;
use tilewright_shell::{Host, Memory, ShellConfig, ShellError, TOP};
use tilewright_sim::board::{BoardDesign, Line, VirtualBoard};
use tilewright_sim::rtl::Progress;

use crate::synth;

/// The link where no board says which: with few cycles of a bit, because each takes time.
const FAST: Line = Line::Uart { clocks_per_bit: 4 };
/// Time of the board between two looks at what the host has sent.
const SLICE: Duration = Duration::from_micros(50);
/// Time of the board without a byte after which it stands still until the next one comes.
const MOST_QUIET: Duration = Duration::from_millis(500);
/// How long a board that stands still waits for a byte, and one without a host for a host.
const WAIT: Duration = Duration::from_millis(20);

/// Why there is no such board.
#[derive(Debug, thiserror::Error)]
pub enum VirtualBoardError {
    /// The board and the configuration do not go together.
    #[error(transparent)]
    Flow(#[from] FlowError),
    /// Its shell cannot be made.
    #[error(transparent)]
    Shell(#[from] ShellError),
    /// Its simulator cannot be built.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// There is no pseudo-terminal to be had, or it is gone.
    #[error("the pseudo-terminal: {0}")]
    Pty(#[from] io::Error),
}

/// Builds the shell and core of a configuration, with the board's link and memory where there is a board. A processor's link is a
/// serial line, and its memory the host's.
///
/// # Errors
/// [`VirtualBoardError::Flow`], [`VirtualBoardError::Shell`], [`VirtualBoardError::Device`].
pub fn build(
    config: &HwConfig,
    board: Option<&Board>,
    progress: &dyn Fn(Progress),
) -> Result<VirtualBoard, VirtualBoardError> {
    let line = board.map_or(Ok(FAST), |board| line(board, board.core_mhz))?;
    let host = match line {
        Line::Uart { clocks_per_bit } => Host::Uart { clocks_per_bit },
        Line::Spi { .. } => Host::Spi,
    };
    let memory = match board.filter(|board| board.memory != board::Memory::Processor) {
        Some(board) => synth::memory(board, config, board.core_mhz)?,
        None => Memory::Host,
    };
    let shell = ShellConfig { host, memory, leds: 0 };
    let verilog = tilewright_shell::generate(config, &shell)?;
    let design = BoardDesign::of_shell(config, &verilog, TOP, line);
    let design = match board.map(|board| (&board.memory, board)) {
        Some((board::Memory::Sdram(chip), board)) => {
            design.with_sdram((**chip).clone(), board.clock_mhz(board.core_mhz)?)
        }
        _ => design,
    };
    Ok(VirtualBoard::new(&design, None, progress)?)
}

/// The other end of a board's link where a clock of so many MHz is wanted.
///
/// # Errors
/// [`FlowError::Board`] where the link does not go with the clock that the part makes.
pub fn line(board: &Board, mhz: f64) -> Result<Line, FlowError> {
    let clocks_per_bit = board.clocks_per_bit(mhz)?;
    Ok(match board.host {
        board::Host::Uart { .. } => Line::Uart { clocks_per_bit },
        board::Host::Spi { .. } => Line::Spi { clocks_per_bit },
        board::Host::Processor { .. } => FAST,
    })
}

/// Serves whoever opens the pseudo-terminal, one after the other, for as long as the program runs.
///
/// # Errors
/// [`VirtualBoardError::Pty`] where the simulation fails.
pub fn serve(mut board: VirtualBoard, mut pty: Pty) -> Result<Infallible, VirtualBoardError> {
    let mut bytes = [0; 4096];
    let mut quiet = Duration::ZERO;
    loop {
        let wait = if quiet < MOST_QUIET { Duration::ZERO } else { WAIT };
        match pty.board.receive(&mut bytes, wait) {
            Ok(0) if quiet >= MOST_QUIET => continue,
            Ok(0) => {}
            Ok(count) => {
                board.send(&bytes[..count])?;
                quiet = Duration::ZERO;
            }
            // Nobody has the other end open.
            Err(_) => {
                std::thread::sleep(WAIT);
                continue;
            }
        }
        match board.receive(&mut bytes, SLICE)? {
            0 => quiet += SLICE,
            count => {
                // A host that has gone does not hear it.
                let _ = pty.board.send(&bytes[..count]);
                quiet = Duration::ZERO;
            }
        }
    }
}
