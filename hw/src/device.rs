//! The contract between programs and whatever runs them: a simulator, a board, a remote machine.

pub mod queue;

use crate::config::{HwConfig, Mem};
use crate::isa::{INSN_BYTES, Unit};
use crate::regs::{TrapCause, TrapUnit, UnitState};
use std::ops::Range;

/// A base register: where a region begins in device memory and how many bytes it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Base {
    /// Address of the region's first byte.
    pub addr: u64,
    /// Bytes of the region; offsets at or past it trap.
    pub limit: u64,
}

/// A stream to run, with the bases that it addresses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Command {
    /// Address of the stream in device memory, 32-byte aligned.
    pub stream_addr: u64,
    /// Instructions of the stream.
    pub insns: u32,
    /// Base registers, from 0; the rest are empty regions.
    pub bases: Vec<Base>,
    /// The run ends with [`DeviceError::CycleLimit`] after so many cycles, or on simulators without time with
    /// [`DeviceError::InsnLimit`] after so many instructions, or micro-ops or rows of a unit; `None` for the device's own default.
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

/// Names a submitted command.
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
    /// The cycle, where the device knows time.
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

/// Cycles that each unit spent in each state, modulo 2^32 as the hardware counts: `[unit][state]`, units in [`TrapUnit`]'s order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UnitCounters(pub [[u64; UnitState::ALL.len()]; TrapUnit::ALL.len()]);

/// The cycles of one instruction. Cycle 0 is the one whose edge takes the doorbell's write; an instruction that starts or
/// retires in t does so in the registers' state of t, so that others see it in t+1 (`hw/TIMING.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Span {
    /// The unit.
    pub unit: Unit,
    /// The instruction's place among its unit's, from 0.
    pub ordinal: u32,
    /// The cycle in which it leaves its queue and takes its tokens.
    pub start: u64,
    /// The cycle in which it retires and gives its tokens; `None` where a trap came first.
    pub end: Option<u64>,
    /// Cycles of its unit that were its own, by [`UnitState`]: those in which it worked, and those in which the unit waited
    /// for what it needs. `hw/TIMING.md` says whose a cycle is; cycles without an instruction are nobody's. Those of load and
    /// store are zero where the run ended in a trap other than a deadlock, which cuts off what they have on the bus.
    pub states: [u64; UnitState::ALL.len()],
}

impl Span {
    /// Cycles in which the unit waited on the instruction's behalf.
    pub fn stalled(&self) -> u64 {
        UnitState::ALL.iter().filter(|state| state.is_stall()).map(|state| self.states[*state as usize]).sum()
    }
}

/// What a run left behind.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunReport {
    /// Cycles from the doorbell to the completion, where the device knows time.
    pub cycles: Option<u64>,
    /// The trap that ended the run, or none.
    pub trap: Option<Trap>,
    /// What a simulator knows of the trap beyond its place: who waits for whom, whose tokens are too many.
    pub trap_text: Option<String>,
    /// Instructions retired by load, gemm, vector and store.
    pub retired: [u32; 4],
    /// Multiply-accumulates of the gemm instructions that retired, padding included.
    pub macs: u64,
    /// Bytes that the memory bus carried: whole beats read, instructions included, and bytes written. `None` where the
    /// device has no bus.
    pub bytes: Option<(u64, u64)>,
    /// Cycles by unit and state, where the device counts them.
    pub counters: Option<UnitCounters>,
    /// When each instruction started and retired, by unit, then ordinal; empty unless the device was asked to keep them.
    pub spans: Vec<Span>,
}

/// Why a device could not do as asked. A trap is no such error: it is the outcome of a run.
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
    /// The stream lies wrongly.
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
    #[error("the command has {given} bases, the configuration {available}")]
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
    /// The run had more instructions than its limit, or more micro-ops or rows of one unit, on a simulator that knows no cycles.
    #[error(
        "the run did not end within {limit} instructions, or micro-ops or rows of one unit; raise the limit (run --max-cycles), \
         which counts them here"
    )]
    InsnLimit {
        /// The limit.
        limit: u64,
    },
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

/// Whatever runs instruction streams.
///
/// Memory is one flat space from address 0. Commands run in the order of their submission; memory written between a
/// submission and its report is visible to the command or not, as the device pleases, so callers do not.
pub trait Device: Send {
    /// The hardware's configuration.
    fn config(&self) -> &HwConfig;

    /// The device's name, as `--device` takes it.
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

    /// Makes what the host wrote visible to the device. Nothing to do where memory is coherent.
    ///
    /// # Errors
    /// The transport's.
    fn clean_cache(&mut self, _addr: u64, _len: u64) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Makes the host see what the device wrote. Nothing to do where memory is coherent.
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

    /// Waits for a command's end and takes its report. After a trap the device is reset before the next command.
    ///
    /// # Errors
    /// [`DeviceError::UnknownTicket`], [`DeviceError::CycleLimit`], [`DeviceError::Program`], or the transport's.
    fn wait(&mut self, ticket: Ticket) -> Result<RunReport, DeviceError>;

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

/// The bytes from `addr` on, where a memory of `size` bytes has `len` of them.
///
/// # Errors
/// [`DeviceError::OutOfMemory`].
pub fn memory_range(addr: u64, len: u64, size: u64) -> Result<std::ops::Range<usize>, DeviceError> {
    match addr.checked_add(len) {
        Some(end) if end <= size => Ok(addr as usize..end as usize),
        _ => Err(DeviceError::OutOfMemory { addr, len, size }),
    }
}

/// Checks what every device checks of a command.
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
