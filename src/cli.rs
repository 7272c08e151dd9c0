//! The commands: arguments in, exit code out. 0 is fine, 1 a check that said no, 2 what could not run.

mod bench;
mod bisect;
mod compile;
mod completions;
mod configs;
mod diff;
mod doctor;
mod flash;
mod inspect;
mod model_file;
mod profile;
mod program;
mod progress;
mod quantize;
mod run;
mod synth;
mod virtual_board;
mod workload;
mod zoo;

pub use model_file::ModelFile;
pub use progress::{Progress, note, say};

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use tilewright_hw::config::{ConfigError, HwConfig};
use tilewright_hw::flow::board::Board;

/// What a command found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// All is well.
    Fine,
    /// The check said no.
    No,
}

#[derive(Parser)]
#[command(name = "tilewright", version, about = "Co-design toolkit for deep-learning accelerators")]
struct Arguments {
    /// Print results and errors alone: no progress, no notes
    #[arg(long, global = true)]
    quiet: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a model, an artifact or a program on a device
    Run(Box<run::Run>),
    /// Compile a model to an artifact
    Compile(compile::Compile),
    /// Compare a model's values on two devices, or with arrays, and name the first that differs
    Diff(Box<diff::Diff>),
    /// Compare what a model takes on several devices, end to end and layer by layer
    Bench(Box<bench::Bench>),
    /// Look at a run from all sides, as one page that opens without a network, or compare two
    Profile(Box<profile::Profile>),
    /// Name the first rewrite of a model's graph that changes its answer
    Bisect(bisect::Bisect),
    /// Make an int8 model of a float one, with samples of its data
    Quantize(quantize::Quantize),
    /// Say what is in an artifact or a model
    Inspect(inspect::Inspect),
    /// Assemble a program's text into an instruction stream
    Asm(program::Asm),
    /// Print an instruction stream as text
    Disasm(program::Disasm),
    /// Make a board's bitstream of a hardware configuration
    Synth(synth::Synth),
    /// Bring the bitstream that synth made onto its board, by openFPGALoader
    Flash(flash::Flash),
    /// List, print and check hardware configurations
    Configs(configs::Configs),
    /// List the networks that this program brings along, or run them on their samples
    Zoo(zoo::Zoo),
    /// Look for the tools that Tilewright uses, or at a board
    Doctor(doctor::Doctor),
    /// Print completions for a shell
    Completions(completions::Completions),
    /// Write manual pages to a folder
    Manual(completions::Manual),
    /// Simulate a board behind a pseudo-terminal, which other commands open as a serial port
    VirtualBoard(virtual_board::VirtualBoard),
}

/// Parses the command line, runs the command and prints what went wrong.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.quiet {
        progress::be_quiet();
    }
    let outcome = match arguments.command {
        Command::Run(command) => command.run(),
        Command::Compile(command) => command.run(),
        Command::Diff(command) => command.run(),
        Command::Bench(command) => command.run(),
        Command::Bisect(command) => command.run(),
        Command::Profile(command) => command.run(),
        Command::Quantize(command) => command.run(),
        Command::Inspect(command) => command.run(),
        Command::Asm(command) => command.run(),
        Command::Disasm(command) => command.run(),
        Command::Synth(command) => command.run(),
        Command::Flash(command) => command.run(),
        Command::Configs(command) => command.run(),
        Command::Zoo(command) => command.run(),
        Command::Doctor(command) => command.run(),
        Command::Completions(command) => command.run(),
        Command::Manual(command) => command.run(),
        Command::VirtualBoard(command) => command.run(),
    };
    match outcome {
        Ok(Verdict::Fine) => ExitCode::SUCCESS,
        Ok(Verdict::No) => ExitCode::from(1),
        Err(error) => {
            // Coloured on a terminal alone, and not where NO_COLOR is set.
            let red = anstyle::AnsiColor::Red.on_default().bold();
            anstream::eprintln!("{red}error:{red:#} {}", in_one_line(&error));
            ExitCode::from(2)
        }
    }
}

/// An error with its causes, without those that its own words tell already.
pub fn in_one_line(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |text, cause| match text.as_str() {
        "" => cause,
        told if told.contains(&cause) => text,
        told => format!("{told}: {cause}"),
    })
}

/// The hardware configuration that a command works for.
#[derive(clap::Args)]
pub struct Hw {
    /// Hardware configuration: a preset's name, a board's, or a TOML file [default: 1x16x16, or an artifact's own]
    #[arg(long = "hw", value_name = "NAME|FILE.toml")]
    name: Option<String>,
}

/// The configuration where none is asked for.
const DEFAULT_HW: &str = "1x16x16";

/// Whether a board comes along under this name, or lies in this folder.
fn is_board(name: &str) -> bool {
    Board::names().iter().any(|board| board == name) || Path::new(name).join("board.toml").is_file()
}

/// The configuration of a preset, of a board, with its clock and host, or of a file.
fn load_hw(name: &str) -> Result<HwConfig> {
    match HwConfig::load(name) {
        Err(ConfigError::Unknown { .. }) if is_board(name) => {
            let config = Board::load(name)?.default_config()?;
            // So that boards of one configuration can be told apart.
            Ok(HwConfig { name: name.into(), ..config })
        }
        config => Ok(config?),
    }
}

impl Hw {
    /// Reads and checks it.
    pub fn load(&self) -> Result<HwConfig> {
        load_hw(self.name.as_deref().unwrap_or(DEFAULT_HW))
    }

    /// Whether none was asked for.
    pub fn is_default(&self) -> bool {
        self.name.is_none()
    }
}

/// Reads a file, naming it where that fails.
pub fn read_file(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Writes a file whole, or prints text on standard output where there is no path.
pub fn write_or_print(path: Option<&PathBuf>, bytes: &[u8]) -> Result<()> {
    match path {
        Some(path) => tilewright_runtime::files::write_whole(path, &[bytes])
            .with_context(|| format!("cannot write {}", path.display())),
        None => {
            use std::io::Write;
            match std::io::stdout().lock().write_all(bytes) {
                // A reader that has seen enough, as `head` does, is no failure.
                Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
                outcome => outcome.context("cannot write to standard output"),
            }
        }
    }
}
