//! Errors between a program and a device.

use tilewright_hw::config::Mem;
use tilewright_hw::device::{DeviceError, Trap};
use tilewright_hw::isa::EncodeError;

/// Why a program could not be built, placed or run.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// The regions do not fit the device's memory.
    #[error(
        "the program needs {needed} bytes, but only {free} of the device's {size} bytes are free: {}; use a device \
         with more memory (with uio, a larger buffer in its device tree) or a smaller batch",
        list(regions)
    )]
    DoesNotFit {
        /// Bytes of all regions, alignment included.
        needed: u64,
        /// Bytes free.
        free: u64,
        /// Bytes of the device.
        size: u64,
        /// Name and bytes of each region.
        regions: Vec<(String, u64)>,
    },
    /// The parts of a program contradict each other.
    #[error("the program is damaged: {what}; compile the model again")]
    Damaged {
        /// The contradiction.
        what: String,
    },
    /// The configuration has too few base registers.
    #[error(
        "the program has {regions} regions, but the configuration has only {bases} base registers; put tensors into \
         common regions or raise bases"
    )]
    TooManyRegions {
        /// Regions.
        regions: usize,
        /// Base registers.
        bases: u32,
    },
    /// The order of a program's instructions is not legal.
    #[error("the order of instructions is not legal: {what}; use an order that was made for this program")]
    Order {
        /// The contradiction.
        what: String,
    },
    /// A field is too wide for the configuration.
    #[error("instruction {index}: {source}")]
    Encode {
        /// Place in the stream, from 0.
        index: usize,
        /// The field.
        source: EncodeError,
    },
    /// The configuration does not accept the instruction.
    #[error("instruction {index}: {}", tilewright_hw::list::first(reasons, "; "))]
    Illegal {
        /// Place in the stream, from 0.
        index: usize,
        /// Every reason.
        reasons: Vec<String>,
    },
    /// An instruction reaches past the end of a memory.
    #[error("instruction {index}: entry {entry} is outside {}, which has {entries} entries; make the tile smaller", mem.name())]
    Scratchpad {
        /// Place in the stream, from 0.
        index: usize,
        /// Memory.
        mem: Mem,
        /// Greatest entry touched.
        entry: u64,
        /// Entries of the memory.
        entries: u32,
    },
    /// An instruction reaches past the end of its region.
    #[error("instruction {index}: byte {byte:#x} passes the end of region {region} ({size:#x} bytes)")]
    Region {
        /// Place in the stream, from 0.
        index: usize,
        /// Region.
        region: String,
        /// Greatest byte touched.
        byte: u64,
        /// Bytes of the region.
        size: u64,
    },
    /// An instruction breaks a rule that the hardware does not check or traps on.
    #[error("instruction {index}: {what}")]
    Rule {
        /// Place in the stream, from 0.
        index: usize,
        /// The rule and how it is broken.
        what: String,
    },
    /// More micro-ops than their memory holds.
    #[error("a kernel of {uops} micro-ops does not fit into {}, which holds {depth}; split it", mem.name())]
    KernelTooLong {
        /// Memory.
        mem: Mem,
        /// Micro-ops of the kernel.
        uops: usize,
        /// Micro-ops that the memory holds.
        depth: u32,
    },
    /// The token counters are too narrow.
    #[error(
        "token counters of {token_bits} bits are too narrow for queues of {queue_depth} instructions; raise token_bits or lower queue_depth"
    )]
    Tokens {
        /// Width of a counter.
        token_bits: u32,
        /// Instructions in a queue.
        queue_depth: u32,
    },
    /// A program was built for other hardware.
    #[error(
        "the program was built for configuration {built:016x} (instruction set {built_isa}), but the device has \
         {device:016x} (instruction set {isa}); compile it again for this device"
    )]
    OtherHardware {
        /// The program's configuration hash.
        built: u64,
        /// The program's instruction set version.
        built_isa: u32,
        /// The device's configuration hash.
        device: u64,
        /// The device's instruction set version.
        isa: u32,
    },
    /// An input of the wrong size, or a wrong number of inputs.
    #[error("input {name} has {given} bytes, but the program expects {expected}")]
    Input {
        /// Input.
        name: String,
        /// Bytes given.
        given: usize,
        /// Bytes expected.
        expected: usize,
    },
    /// The run ended in a trap.
    #[error("the device stopped: {0}")]
    Trapped(Trap),
    /// The device's own error.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

fn list(regions: &[(String, u64)]) -> String {
    regions.iter().map(|(name, bytes)| format!("{name} {bytes}")).collect::<Vec<_>>().join(", ")
}
