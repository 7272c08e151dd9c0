//! `flash`: loads a bitstream onto a board.

use std::path::PathBuf;

use anyhow::Result;
use tilewright_hw::flow::board::Board;
use tilewright_hw::flow::flash::{self, Onto, Options};
use tilewright_hw::flow::steps;

use super::{Verdict, progress, write_or_print};

/// Arguments of `flash`.
#[derive(clap::Args)]
pub struct Flash {
    /// The board: a name, or the path of a folder with a board.toml
    #[arg(long, value_name = "NAME|DIR")]
    board: String,
    /// The folder that `synth` wrote
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Load the FPGA only until it loses power, and leave the board's flash unchanged
    #[arg(long)]
    volatile: bool,
    /// Flash the bitstream even if `synth --verify` found that its netlists differ from the sources
    #[arg(long)]
    force: bool,
    /// Flash the bitstream even if it is slower than its clock, as `synth --allow-slow` allows
    #[arg(long)]
    allow_slow: bool,
}

impl Flash {
    pub fn run(self) -> Result<Verdict> {
        let board = Board::load(&self.board)?;
        let onto = if self.volatile { Onto::Part } else { Onto::Flash };
        let options = Options { onto, force: self.force, allow_slow: self.allow_slow };
        let done = flash::flash(&board, &self.dir, options, &mut |event| {
            if let steps::Progress::Line(line) = event {
                progress::tell(&line.chars().take(80).collect::<String>());
            }
        });
        progress::tell("");
        let flash::Flashed { device, hw, wiring, doubt } = done?;
        if let Some(doubt) = doubt {
            eprintln!("warning: {doubt}");
        }
        let wiring = wiring.map_or(String::new(), |wiring| format!("connect it to the computer by {wiring}\n"));
        let done = format!(
            "{} has its bitstream; check it with `tilewright doctor --device {device} --hw {hw}`\n",
            board.name
        );
        write_or_print(None, [wiring, done].concat().as_bytes())?;
        Ok(Verdict::Fine)
    }
}
