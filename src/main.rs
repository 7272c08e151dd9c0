//! The command line.

mod cli;

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// The compiler allocates many small objects, which this takes less time for than the C library.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    cli::main()
}
