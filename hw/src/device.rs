//! The contract between programs and the devices that run them: simulators, boards, remote machines.

pub mod queue;

use crate::config::{HwConfig, Mem};
use crate::interrupt::Interrupted;
use crate::isa::{INSN_BYTES, Unit};
use crate::regs::{TrapCause, TrapUnit, UnitState};
use std::ops::Range;
use std::time::Duration;

/// A base register: address and size of a region in device memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Base {
    /// Address of the region's first byte.
    pub addr: u64,
    /// Bytes of the region; offsets at or past it trap.
    pub limit: u64,
}

/// A stream to run, with the bases that it addresses.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Command {
    /// Address of the stream in device memory, 32-byte aligned.
    pub stream_addr: u64,
    /// Instructions of the stream.
    pub insns: u32,
    /// Base registers, from 0; the rest are empty regions.
    pub bases: Vec<Base>,
    /// Limit of the run; `None` for the device's own default. A device that counts cycles ends with
    /// [`DeviceError::CycleLimit`] after so many cycles. An untimed simulator ends with [`DeviceError::InsnLimit`]
    /// after so many instructions, or micro-ops or rows of one unit.
    pub cycle_limit: Option<u64>,
}

impl Command {
    /// The address of an instruction of the stream.
    pub fn insn_addr(&self, place: u32) -> u64 {
        self.stream_addr.saturating_add(u64::from(place) * INSN_BYTES as u64)
    }

    /// The stream's bytes in device memory.
    pub fn stream(&self) -> Range<u64> {
        self.stream_addr..self.insn_addr(self.insns)
    }
}

/// Identifies a submitted command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// Where and why a device stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Trap {
    /// The unit.
    pub unit: TrapUnit,
    /// The cause.
    pub cause: TrapCause,
    /// The instruction's ordinal in its unit, from 0; its place in the stream for fetch.
    pub ordinal: u32,
    /// The cycle, if the device counts cycles.
    pub cycle: Option<u64>,
}

impl std::fmt::Display for Trap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at instruction {} of {}", self.cause.text(), self.ordinal, self.unit.name())?;
        match self.cycle {
            Some(cycle) => write!(f, " in cycle {cycle}"),
            None => Ok(()),
        }
    }
}

/// Cycles that each unit spent in each state, modulo 2^32 as the hardware counts: `[unit][state]`, units in
/// [`TrapUnit`]'s order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UnitCounters(pub [[u64; UnitState::ALL.len()]; TrapUnit::ALL.len()]);

/// When an instruction started and retired. Cycle 0 is the cycle whose clock edge takes the doorbell's write. An
/// instruction that starts or retires in cycle t does so in the register state of t, so other units see it in t+1
/// (`hw/TIMING.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Span {
    /// The unit.
    pub unit: Unit,
    /// The instruction's place among those of its unit, from 0.
    pub ordinal: u32,
    /// The cycle in which the instruction leaves its queue and takes its tokens.
    pub start: u64,
    /// The cycle in which it retires and gives its tokens; `None` if a trap came first.
    pub end: Option<u64>,
    /// Cycles that its unit spent on it, by [`UnitState`]: working, or waiting for what the instruction needs.
    /// `hw/TIMING.md` defines which instruction a cycle belongs to; cycles without an instruction belong to none. For
    /// load and store all are zero if the run ended in a trap other than a deadlock, because the trap cuts off their
    /// bus accesses.
    pub states: [u64; UnitState::ALL.len()],
}

impl Span {
    /// Cycles in which the unit was stalled on this instruction.
    pub fn stalled(&self) -> u64 {
        UnitState::ALL.iter().filter(|state| state.is_stall()).map(|state| self.states[*state as usize]).sum()
    }
}

/// Result of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunReport {
    /// Cycles from the doorbell to the completion, if the device counts cycles.
    pub cycles: Option<u64>,
    /// The trap that ended the run, if any.
    pub trap: Option<Trap>,
    /// A simulator's further description of the trap: who waits for whom, whose token counter overflows.
    pub trap_text: Option<String>,
    /// Instructions retired by load, gemm, vector and store.
    pub retired: [u32; 4],
    /// Multiply-accumulates of the gemm instructions that retired, padding included.
    pub macs: u64,
    /// Bytes that the memory bus carried: (read, written). Reads are whole beats and include instructions. `None` if
    /// the device has no bus.
    pub bytes: Option<(u64, u64)>,
    /// Cycles by unit and state, if the device counts them.
    pub counters: Option<UnitCounters>,
    /// Start and retirement of each instruction, by unit, then ordinal; empty unless the device was asked to record
    /// them.
    pub spans: Vec<Span>,
}

/// Error of a device. A trap is not an error but an outcome of a run.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// An access outside device memory.
    #[error("{len} bytes at address {addr:#x} pass the end of device memory ({size:#x} bytes)")]
    OutOfMemory {
        /// First byte.
        addr: u64,
        /// Bytes.
        len: u64,
        /// Bytes of the memory.
        size: u64,
    },
    /// The stream is not aligned.
    #[error("the stream at {addr:#x} is not aligned to 32 bytes")]
    Misaligned {
        /// Address of the stream.
        addr: u64,
    },
    /// A stream or base that the address width cannot express.
    #[error("{what} is {value:#x}, but addresses and limits of this configuration end at {last:#x}")]
    Unaddressable {
        /// The stream's end, or a base's address or limit.
        what: String,
        /// Its value.
        value: u64,
        /// The greatest address.
        last: u64,
    },
    /// More bases than the configuration has.
    #[error("the command has {given} bases, but the configuration has only {available}")]
    TooManyBases {
        /// Bases of the command.
        given: usize,
        /// Base registers.
        available: u32,
    },
    /// The run took longer than its limit.
    #[error("the run did not end within {limit} cycles; raise the limit (run --max-cycles)")]
    CycleLimit {
        /// The limit.
        limit: u64,
    },
    /// The run exceeded its limit of instructions, or of micro-ops or rows of one unit, on an untimed simulator.
    #[error(
        "the run did not end within {limit} instructions, or micro-ops or rows of one unit; raise the limit (run --max-cycles), \
         which counts them here"
    )]
    InsnLimit {
        /// The limit.
        limit: u64,
    },
    /// The run was stopped from outside.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// No such command, or its report was taken before.
    #[error("no command has ticket {0:?}")]
    UnknownTicket(Ticket),
    /// The device cannot do this.
    #[error("{device} cannot {what}")]
    Unsupported {
        /// Device.
        device: String,
        /// The request.
        what: String,
    },
    /// A program broke a rule that a simulator checks beyond the hardware's traps.
    #[error("instruction {index} of the stream: {what}")]
    Program {
        /// Place in the stream, from 0.
        index: u32,
        /// The rule and how it was broken.
        what: String,
    },
    /// A tool that the device needs failed or is missing.
    #[error("{tool}: {reason}; {remedy}")]
    Tool {
        /// Program.
        tool: String,
        /// What it said.
        reason: String,
        /// What to do.
        remedy: String,
    },
}

/// A device that runs instruction streams.
///
/// Memory is one flat space from address 0. Commands run in the order of their submission. Do not write memory that a
/// command uses between its submission and its report: whether the command sees such a write depends on the device.
pub trait Device: Send {
    /// The hardware's configuration.
    fn config(&self) -> &HwConfig;

    /// The device's name, as `--device` accepts it.
    fn name(&self) -> &str;

    /// Bytes of device memory.
    fn memory_bytes(&self) -> u64;

    /// Copies `bytes` to device memory.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`], or the transport's.
    fn write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Copies device memory to `bytes`.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`], or the transport's.
    fn read(&mut self, addr: u64, bytes: &mut [u8]) -> Result<(), DeviceError>;

    /// Makes the host's writes visible to the device. Does nothing if memory is coherent.
    ///
    /// # Errors
    /// The transport's.
    fn clean_cache(&mut self, _addr: u64, _len: u64) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Makes the device's writes visible to the host. Does nothing if memory is coherent.
    ///
    /// # Errors
    /// The transport's.
    fn invalidate_cache(&mut self, _addr: u64, _len: u64) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Queues a command.
    ///
    /// # Errors
    /// [`DeviceError::Misaligned`], [`DeviceError::TooManyBases`], or the transport's.
    fn submit(&mut self, command: &Command) -> Result<Ticket, DeviceError>;

    /// Waits for a command to end and takes its report. After a trap the device is reset before the next command.
    ///
    /// # Errors
    /// [`DeviceError::UnknownTicket`], [`DeviceError::CycleLimit`], [`DeviceError::Program`], or the transport's.
    fn wait(&mut self, ticket: Ticket) -> Result<RunReport, DeviceError>;

    /// Like [`Device::wait`], but returns `None` if the command has not ended after about `at_most`. A device that
    /// cannot be asked waits for the end.
    ///
    /// # Errors
    /// As [`Device::wait`].
    fn poll(&mut self, ticket: Ticket, _at_most: Duration) -> Result<Option<RunReport>, DeviceError> {
        self.wait(ticket).map(Some)
    }

    /// Submits and waits.
    ///
    /// # Errors
    /// As [`Device::submit`] and [`Device::wait`].
    fn run(&mut self, command: &Command) -> Result<RunReport, DeviceError> {
        let ticket = self.submit(command)?;
        self.wait(ticket)
    }

    /// The bytes of `count` entries of a scratchpad, as loads address them.
    ///
    /// # Errors
    /// [`DeviceError::Unsupported`] on hardware.
    fn scratchpad(&mut self, _mem: Mem, _entry: u32, _count: u32) -> Result<Vec<u8>, DeviceError> {
        Err(DeviceError::Unsupported { device: self.name().into(), what: "show its scratchpads".into() })
    }
}

/// The range of `len` bytes from `addr`, checked against a memory of `size` bytes.
///
/// # Errors
/// [`DeviceError::OutOfMemory`].
pub fn memory_range(addr: u64, len: u64, size: u64) -> Result<std::ops::Range<usize>, DeviceError> {
    match addr.checked_add(len) {
        Some(end) if end <= size => Ok(addr as usize..end as usize),
        _ => Err(DeviceError::OutOfMemory { addr, len, size }),
    }
}

/// Checks a command against the rules that all devices share.
///
/// # Errors
/// [`DeviceError::Misaligned`], [`DeviceError::TooManyBases`], [`DeviceError::Unaddressable`].
pub fn check_command(command: &Command, config: &HwConfig) -> Result<(), DeviceError> {
    if !command.stream_addr.is_multiple_of(crate::isa::INSN_BYTES as u64) {
        return Err(DeviceError::Misaligned { addr: command.stream_addr });
    }
    if command.bases.len() > config.bases as usize {
        return Err(DeviceError::TooManyBases { given: command.bases.len(), available: config.bases });
    }
    let last = config.last_address();
    let need = |what: String, value: u64| {
        if value > last { Err(DeviceError::Unaddressable { what, value, last }) } else { Ok(()) }
    };
    let stream_bytes = u64::from(command.insns) * crate::isa::INSN_BYTES as u64;
    need("the stream's end".into(), command.stream_addr.saturating_add(stream_bytes))?;
    for (i, base) in command.bases.iter().enumerate() {
        need(format!("the limit of base {i}"), base.limit)?;
        need(format!("the end of base {i}"), base.addr.saturating_add(base.limit))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_stay_inside_the_address_width() {
        let config = HwConfig { offset_bits: 24, ..HwConfig::default() };
        let last = config.last_address();
        let ok = Command { bases: vec![Base { addr: 0, limit: last }], insns: 1, ..Command::default() };
        assert!(check_command(&ok, &config).is_ok());
        for bases in
            [Base { addr: 0, limit: last + 1 }, Base { addr: 16, limit: last }, Base { addr: u64::MAX, limit: 2 }]
        {
            let bad = Command { bases: vec![bases], ..ok.clone() };
            assert!(matches!(check_command(&bad, &config), Err(DeviceError::Unaddressable { .. })), "{bases:?}");
        }
        let bad = Command { stream_addr: last & !31, insns: 2, ..ok };
        assert!(matches!(check_command(&bad, &config), Err(DeviceError::Unaddressable { .. })));
    }
}
