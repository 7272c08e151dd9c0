//! `virtual-board`: simulates a board without hardware.

use anyhow::Result;
use tilewright::device::virtual_board::{build, serve};
use tilewright_driver::link::Pty;

use super::{Hw, Verdict, progress, write_or_print};

/// Arguments of `virtual-board`.
#[derive(clap::Args)]
pub struct VirtualBoard {
    /// Board to simulate, with the design that `synth` makes: a name, or a folder with a board.toml [default: a core
    /// with a fast serial line]
    #[arg(long, value_name = "NAME|FOLDER")]
    board: Option<String>,
    /// The link to use, if the board has several: uart or spi [default: the board's first]
    #[arg(long, value_name = "KIND", requires = "board")]
    host: Option<String>,
    /// Clock of shell and core in MHz [default: the board's own]
    #[arg(long, value_name = "MHZ", requires = "board", value_parser = super::synth::mhz, allow_negative_numbers = true)]
    mhz: Option<f64>,
    #[command(flatten)]
    hw: Hw,
}

impl VirtualBoard {
    /// Prints the path of the pseudo-terminal, then serves until the process ends.
    pub fn run(self) -> Result<Verdict> {
        let board =
            self.board.as_deref().map(|name| super::synth::load_board(name, self.host.as_deref())).transpose()?;
        let config = match &board {
            Some(board) if self.hw.is_default() => board.default_config()?,
            _ => self.hw.load()?,
        };
        let board = board.as_ref().map(|board| (board, self.mhz.unwrap_or(board.core_mhz)));
        let design = build(&config, board, &|at| tilewright::device::tell_build(at, &progress::tell))?;
        let pty = Pty::open()?;
        write_or_print(None, format!("{}\n", pty.path()).as_bytes())?;
        match serve(design, pty)? {}
    }
}
