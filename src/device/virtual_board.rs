//! A simulated board on a pseudo-terminal, which hosts open like a serial port. If the board's link is SPI, an SPI
//! master carries the terminal's bytes to the board's pins.

use std::convert::Infallible;
use std::io;
use std::thread::JoinHandle;
use std::time::Duration;

use tilewright_driver::link::Pty;
use tilewright_hw::config::HwConfig;
use tilewright_hw::device::DeviceError;
use tilewright_hw::flow::FlowError;
use tilewright_hw::flow::board::Board;
use tilewright_hw::interrupt::{self, Interrupt};
use tilewright_hw::link::{ByteStream, UART_CLOCKS};
use tilewright_shell::{ShellConfig, ShellError, ShellLink, ShellMemory, TOP};
use tilewright_sim::board::{BoardDesign, LinkPins, VirtualBoard};
use tilewright_sim::rtl::Progress;

use crate::flow::synth;

/// Clock cycles per bit of the serial line without a board: few, because each costs simulation time.
const FAST_CLOCKS: u32 = UART_CLOCKS;
/// Simulated time between two reads of what the host has sent.
const SLICE: Duration = Duration::from_micros(50);
/// Simulated time without a byte after which the board stops until the next byte.
const MOST_QUIET: Duration = Duration::from_millis(500);
/// How long a stopped board waits for a byte, and a board without a host for a host.
const WAIT: Duration = Duration::from_millis(20);

/// Why a virtual board cannot be built or served.
#[derive(Debug, thiserror::Error)]
pub enum VirtualBoardError {
    /// The board cannot have this configuration.
    #[error(transparent)]
    Flow(#[from] FlowError),
    /// Its shell cannot be generated.
    #[error(transparent)]
    Shell(#[from] ShellError),
    /// Its simulator cannot be built.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// No pseudo-terminal is available, or it failed.
    #[error("the pseudo-terminal: {0}")]
    Pty(#[from] io::Error),
}

/// Builds the design of a virtual board. With a board and a clock in MHz, it is the whole design that `synth` makes,
/// with pins. Without a board, or if the board's host is a processor, so that it has no shell of its own, it is the
/// shell with a fast serial line.
///
/// # Errors
/// [`VirtualBoardError::Flow`], [`VirtualBoardError::Shell`], [`VirtualBoardError::Device`].
pub fn build(
    config: &HwConfig,
    board: Option<(&Board, f64)>,
    progress: &dyn Fn(Progress),
) -> Result<VirtualBoard, VirtualBoardError> {
    let board = board.filter(|(board, _)| !board.family.has_processor());
    let design = match board {
        Some((board, mhz)) => BoardDesign::of_board(board, config, &synth::shell(board, config, mhz)?, mhz)?,
        None => {
            let host = ShellLink::Uart { clocks_per_bit: FAST_CLOCKS };
            let shell = ShellConfig { host, memory: ShellMemory::Host, leds: 0 };
            let verilog = tilewright_shell::generate(config, &shell)?;
            BoardDesign::of_shell(config, &verilog, TOP, LinkPins::Uart { clocks_per_bit: FAST_CLOCKS })
        }
    };
    Ok(VirtualBoard::new(&design, None, progress)?)
}

/// Serves the hosts that open the pseudo-terminal, one after another, until the process ends.
///
/// # Errors
/// [`VirtualBoardError::Pty`] if the simulation or the pseudo-terminal fails.
pub fn serve(mut board: VirtualBoard, mut pty: Pty) -> Result<Infallible, VirtualBoardError> {
    Ok(exchange(&mut board, &mut pty.board)?)
}

/// A board that a thread of this process serves until this is dropped.
pub struct Served {
    path: String,
    interrupt: Interrupt,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    /// Serves a board at a new pseudo-terminal.
    ///
    /// # Errors
    /// [`VirtualBoardError::Pty`] if there is none.
    pub fn new(board: VirtualBoard) -> Result<Served, VirtualBoardError> {
        let pty = Pty::open()?;
        let (path, interrupt) = (pty.path().to_string(), Interrupt::alone());
        let work = interrupt.clone();
        let builder = std::thread::Builder::new().name("tilewright-board".into());
        // A board that fails is gone for its host, which says so.
        let thread = builder.spawn(move || drop(work.during(|| serve(board, pty))))?;
        Ok(Served { path, interrupt, thread: Some(thread) })
    }

    /// The path of its port, for `serial:PATH`.
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.interrupt.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Copies bytes between a board and the terminal's end, until the work is stopped from outside.
fn exchange(board: &mut impl ByteStream, terminal: &mut impl ByteStream) -> io::Result<Infallible> {
    let mut bytes = [0; 4096];
    let mut quiet = Duration::ZERO;
    loop {
        interrupt::check().map_err(io::Error::other)?;
        let wait = if quiet < MOST_QUIET { Duration::ZERO } else { WAIT };
        match terminal.receive(&mut bytes, wait) {
            Ok(0) if quiet >= MOST_QUIET => continue,
            Ok(0) => {}
            Ok(count) => {
                board.send(&bytes[..count])?;
                quiet = Duration::ZERO;
            }
            Err(error) if is_nobody(&error) => {
                std::thread::sleep(WAIT);
                continue;
            }
            Err(error) => return Err(error),
        }
        match board.receive(&mut bytes, SLICE)? {
            0 => quiet += SLICE,
            count => {
                // A host that has closed the terminal loses these bytes.
                let _ = terminal.send(&bytes[..count]);
                quiet = Duration::ZERO;
            }
        }
    }
}

/// Whether an error means that nobody has the other end open, or that a signal interrupted the call.
fn is_nobody(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof | io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An end that returns the given results in order from the last to the first, then an error, and records what was
    /// sent.
    struct End {
        gives: Vec<io::Result<&'static [u8]>>,
        sent: Vec<u8>,
    }

    impl ByteStream for End {
        fn name(&self) -> &str {
            "end"
        }

        fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
            self.sent.extend_from_slice(bytes);
            Ok(())
        }

        fn receive(&mut self, bytes: &mut [u8], _: Duration) -> io::Result<usize> {
            let given = self.gives.pop().unwrap_or(Err(io::ErrorKind::PermissionDenied.into()))?;
            bytes[..given.len()].copy_from_slice(given);
            Ok(given.len())
        }

        fn clear(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_terminal_that_fails_ends_the_service_and_one_that_nobody_has_open_does_not() {
        let nobody = || Err(io::ErrorKind::BrokenPipe.into());
        let mut terminal = End { gives: vec![Ok(b"cd"), nobody(), Ok(b"ab"), nobody(), nobody()], sent: Vec::new() };
        let mut board = End { gives: vec![Ok(b""), Ok(b"xy")], sent: Vec::new() };
        let Err(error) = exchange(&mut board, &mut terminal);
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert_eq!((&board.sent[..], &terminal.sent[..]), (&b"abcd"[..], &b"xy"[..]));
    }

    #[cfg(unix)]
    #[test]
    fn a_pseudo_terminal_tells_that_nobody_is_there() {
        let mut pty = Pty::open().expect("there is one");
        let error = pty.board.receive(&mut [0], Duration::ZERO).expect_err("nobody has it open");
        assert!(is_nobody(&error), "{error:?}");
    }
}
