//! The commands: arguments in, exit code out. 0: success; 1: a check failed; 2: the command could not run.

mod bench;
mod bisect;
mod call;
mod common;
mod compilation;
mod compile;
mod completions;
mod configs;
mod diff;
mod doctor;
mod flash;
mod inspect;
mod parameters;
mod profile;
mod program;
mod progress;
mod quantize;
mod run;
mod schedule;
mod serve;
mod synth;
mod tracker;
mod tune;
mod tuned;
mod virtual_board;
mod workload;
mod zoo;

pub use common::{Hw, Verdict, read_file, write_or_print};
pub use parameters::ParamsOption;
pub use progress::{Progress, note, say};

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use tilewright::message::in_one_line;

#[derive(Parser)]
#[command(name = "tilewright", version, about = "Co-design toolkit for deep-learning accelerators")]
struct Arguments {
    /// Print only results and errors: no progress, no notes
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
    /// Compare a model's values on two devices, or with arrays, and report the first difference
    Diff(Box<diff::Diff>),
    /// Compare a model's time on several devices, end to end and layer by layer
    Bench(Box<bench::Bench>),
    /// Profile a run and write an offline HTML report, or compare two profiles
    Profile(Box<profile::Profile>),
    /// Find the first rewrite of a model's graph that changes its result
    Bisect(bisect::Bisect),
    /// Run a tensor expression as its schedule says, and check the result
    Schedule(schedule::ScheduleArguments),
    /// Search for faster tiles of a model's layers, with the cycle model or by measured times, and log them
    Tune(Box<tune::Tune>),
    /// Print the median nanoseconds of an artifact's steps on the CPU; `tune --device cpu` runs this
    #[command(hide = true)]
    MeasureArtifact(tune::MeasureArtifact),
    /// Quantize a float model to int8, calibrated with samples of its data
    Quantize(quantize::Quantize),
    /// Describe an artifact or a model
    Inspect(inspect::Inspect),
    /// Assemble a program's text into an instruction stream
    Asm(program::Asm),
    /// Disassemble an instruction stream or an artifact's programs
    Disasm(program::Disasm),
    /// Build a board's bitstream from a hardware configuration
    Synth(synth::Synth),
    /// Load the bitstream that synth made onto its board with openFPGALoader
    Flash(flash::Flash),
    /// List, print and check hardware configurations
    Configs(configs::Configs),
    /// List the built-in networks, or write one of a well-known shape
    Zoo(zoo::Zoo),
    /// Check for the tools that Tilewright uses, or check a board
    Doctor(doctor::Doctor),
    /// Print a completion script for a shell
    Completions(completions::Completions),
    /// Write man pages to a folder
    Manual(completions::Manual),
    /// Simulate a board on a pseudo-terminal, which other commands open as a serial port
    VirtualBoard(virtual_board::VirtualBoard),
    /// Run CPU code of a client of `serve --allow-native`, which starts this
    #[command(hide = true)]
    RunNative,
    /// Lend this machine's device to others, which open it as remote:HOST:PORT
    Serve(serve::Serve),
    /// Hand out the devices of several servers by kind; others open them as tracker:HOST:PORT/KIND
    Tracker(tracker::Tracker),
    /// Call a function of a server, or list its functions
    Call(call::Call),
}

/// Parses the command line, runs the command and prints its error if it fails.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    tilewright_hw::process::end_children_by_signals();
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
        Command::Schedule(command) => command.run(),
        Command::Tune(command) => command.run(),
        Command::MeasureArtifact(command) => command.run(),
        Command::Quantize(command) => command.run(),
        Command::Inspect(command) => command.run(),
        Command::Asm(command) => command.run(),
        Command::Disasm(command) => command.run(),
        Command::Synth(command) => command.run(),
        Command::Flash(command) => command.run(),
        Command::Configs(command) => command.run(),
        Command::Zoo(command) => command.run(),
        Command::Doctor(command) => command.run(),
        Command::Completions(command) => command.run(Arguments::command()),
        Command::Manual(command) => command.run(&Arguments::command()),
        Command::VirtualBoard(command) => command.run(),
        Command::Serve(command) => command.run(),
        Command::Tracker(command) => command.run(),
        Command::Call(command) => command.run(),
        Command::RunNative => serve::run_native(),
    };
    match outcome {
        Ok(Verdict::Fine) => ExitCode::SUCCESS,
        Ok(Verdict::No) => ExitCode::from(1),
        Err(error) => {
            // Colored only on a terminal, and not if NO_COLOR is set.
            let red = anstyle::AnsiColor::Red.on_default().bold();
            anstream::eprintln!("{red}error:{red:#} {}", in_one_line(&error));
            ExitCode::from(2)
        }
    }
}
