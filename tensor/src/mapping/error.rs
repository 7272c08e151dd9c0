//! Why a scheduled program cannot become instructions.

use crate::schedule::ScheduleError;
use crate::te::Name;
use crate::tir::TirError;
use tilewright_driver::DriverError;

/// Why a scheduled program cannot become instructions.
#[derive(Debug, thiserror::Error)]
pub enum LowerError {
    /// The tensor expression is not well formed.
    #[error(transparent)]
    Tir(#[from] TirError),
    /// A step does not apply.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// A step of a layer's schedule does not apply.
    #[error("{source}; the loops are: {loops}")]
    Step {
        /// The step and the reason.
        source: Box<ScheduleError>,
        /// The loops before the step.
        loops: String,
    },
    /// The buffers of a scratchpad need more entries than it has.
    #[error(
        "{mem} has {entries} entries{}, and the schedule needs {needed}: {buffers}; split a loop, or compute a buffer \
         further inside and compact it", taken_by(*.taken)
    )]
    Fit {
        /// The scratchpad.
        mem: &'static str,
        /// Its entries.
        entries: u32,
        /// Entries that kept results or descriptors take.
        taken: u32,
        /// Entries that the buffers need.
        needed: u64,
        /// Each buffer with its entries.
        buffers: String,
    },
    /// A block cannot be computed by the accelerator.
    #[error("block {block}: {reason}")]
    Block {
        /// The block.
        block: Name,
        /// Why, and what to do.
        reason: String,
    },
    /// A buffer cannot be in its memory.
    #[error("buffer {buffer}: {reason}")]
    Buffer {
        /// The buffer.
        buffer: Name,
        /// Why, and what to do.
        reason: String,
    },
    /// A given schedule is for another expression than the layer's.
    #[error("the file computes another expression than the layer; write it again with `tilewright schedule --of`")]
    OtherExpression,
    /// The program has too many instructions.
    #[error("the schedule needs more than {most} instructions; make its tiles larger")]
    TooLong {
        /// The limit.
        most: usize,
    },
    /// The loops around instructions have too many iterations.
    #[error(
        "the loops around instructions run more than {most} iterations; make the tiles larger, and factors of splits smaller"
    )]
    TooManyIterations {
        /// The limit.
        most: usize,
    },
    /// The driver refuses an instruction that computes a block.
    #[error("block {block}: {source}")]
    Instruction {
        /// The block.
        block: Name,
        /// Why.
        source: DriverError,
    },
    /// The driver refuses another instruction.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

fn taken_by(entries: u32) -> String {
    if entries == 0 { String::new() } else { format!(", {entries} of them taken by kept results or descriptors") }
}
