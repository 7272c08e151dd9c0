//! A program that runs on the sources and on netlists.

use tilewright_hw::device::Command;
use tilewright_sim::random::Program;

/// A program: memory contents and the command.
pub(super) struct Job {
    /// Its name, and further text for the message if a netlist differs.
    pub name: String,
    pub text: String,
    pub writes: Vec<(u64, Vec<u8>)>,
    pub command: Command,
    /// Whether it is one of the random programs.
    pub is_program: bool,
}

impl Job {
    /// Makes the job of a random program.
    pub fn of_program(at: usize, program: Program) -> Job {
        // The program's own cycle limit is for memory next to the core; here all bytes go over the line.
        let command = Command { cycle_limit: None, ..program.command() };
        let (text, stream_addr) = (program.text(), program.stream_addr);
        let stream = program.stream_in_memory().to_vec();
        let writes = vec![(0, program.image), (stream_addr, stream)];
        Job { name: format!("program {}", at + 1), text: format!("\n{text}"), writes, command, is_program: true }
    }
}
