//! A program that both sides run.

use tilewright_hw::device::Command;
use tilewright_sim::random::Program;

/// What runs: what is put into memory, and the command.
pub(super) struct Job {
    /// Its name, and what else there is to say where a netlist differs.
    pub name: String,
    pub text: String,
    pub writes: Vec<(u64, Vec<u8>)>,
    pub command: Command,
    /// Whether it is one of the random programs.
    pub is_program: bool,
}

impl Job {
    /// The job of a random program.
    pub fn of_program(at: usize, program: Program) -> Job {
        // Its own limit is one for memory beside the core, and here all bytes go over the line.
        let command = Command { cycle_limit: None, ..program.command() };
        let (text, stream_addr) = (program.text(), program.stream_addr);
        let stream = program.stream_in_memory().to_vec();
        let writes = vec![(0, program.image), (stream_addr, stream)];
        Job { name: format!("program {}", at + 1), text: format!("\n{text}"), writes, command, is_program: true }
    }
}
