//! Host-side access to the device's registers, independent of the transport that carries it.

use crate::config::{Counters, HwConfig};
use crate::device::{Base, Command, RunReport, Trap, UnitCounters};
use crate::isa::{Decoder, INSN_BYTES, ISA_VERSION, Op};
use crate::regs::{self, TrapCause, TrapUnit, UnitState};

/// Identity that hardware reports in its registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Instruction set version.
    pub isa_version: u32,
    /// Configuration hash.
    pub config_hash: u64,
}

impl Identity {
    /// Checks that the hardware was built for `config`.
    ///
    /// # Errors
    /// [`WrongHardware`] if the instruction set version or the configuration hash differs.
    pub fn check(&self, config: &HwConfig) -> Result<(), WrongHardware> {
        if self.isa_version != ISA_VERSION {
            return Err(WrongHardware::Isa { found: self.isa_version, known: ISA_VERSION });
        }
        let asked = config.hash();
        if self.config_hash != asked {
            return Err(WrongHardware::Config { found: self.config_hash, asked, name: config.name.clone() });
        }
        Ok(())
    }
}

/// Hardware that does not match the program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WrongHardware {
    /// The ID register does not hold an accelerator's ID.
    #[error("the register ID is {found:#010x}, which is not a Tilewright accelerator's")]
    NoAccelerator {
        /// Value of the ID register.
        found: u32,
    },
    /// Another version of the instruction set.
    #[error("the board has version {found} of the instruction set, but this program needs version {known}")]
    Isa {
        /// The board's version.
        found: u32,
        /// The program's version.
        known: u32,
    },
    /// Another configuration.
    #[error("the board has configuration {found:016x}, but {name} is {asked:016x}")]
    Config {
        /// The board's hash.
        found: u64,
        /// The hash of the configuration that was given.
        asked: u64,
        /// Name of that configuration.
        name: String,
    },
}

impl WrongHardware {
    /// What the user can do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            WrongHardware::NoAccelerator { .. } => "synthesize and flash the board again",
            WrongHardware::Isa { .. } => "synthesize and flash the board with this version",
            WrongHardware::Config { .. } => {
                "pass the configuration of its bitstream with --hw, or flash a bitstream of this configuration"
            }
        }
    }
}

/// Access to the registers of a device.
pub trait Registers {
    /// Why an access failed.
    type Error;

    /// Reads a register.
    ///
    /// # Errors
    /// The transport's error if the access fails; all methods below fail likewise.
    fn read_reg(&mut self, addr: u32) -> Result<u32, Self::Error>;

    /// Writes a register.
    ///
    /// # Errors
    /// As [`Registers::read_reg`].
    fn write_reg(&mut self, addr: u32, value: u32) -> Result<(), Self::Error>;

    /// Reads two adjacent registers, low half first. Their values must not change between the two reads.
    ///
    /// # Errors
    /// As [`Registers::read_reg`].
    fn read_wide(&mut self, addr: u32) -> Result<u64, Self::Error> {
        Ok(u64::from(self.read_reg(addr)?) | u64::from(self.read_reg(addr + 4)?) << 32)
    }

    /// Reads the hardware's identity. The inner error means that these are not an accelerator's registers.
    ///
    /// # Errors
    /// As [`Registers::read_reg`].
    fn identity(&mut self) -> Result<Result<Identity, WrongHardware>, Self::Error> {
        let found = self.read_reg(regs::ID)?;
        if found != regs::ID_VALUE {
            return Ok(Err(WrongHardware::NoAccelerator { found }));
        }
        let isa_version = self.read_reg(regs::ISA_VERSION)?;
        Ok(Ok(Identity { isa_version, config_hash: self.read_wide(regs::CONFIG_HASH_LO)? }))
    }

    /// Soft-resets the core, which keeps the base registers. Every burst in flight completes first. Returns whether the
    /// core became idle within `looks` reads of its status.
    ///
    /// # Errors
    /// As [`Registers::read_reg`].
    fn soft_reset(&mut self, looks: usize) -> Result<bool, Self::Error> {
        self.write_reg(regs::CONTROL, regs::CONTROL_RESET)?;
        for _ in 0..looks {
            if self.read_reg(regs::STATUS)? & regs::STATUS_BUSY == 0 {
                self.write_reg(regs::CONTROL, regs::CONTROL_IRQ_ENABLE)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Writes a base register.
    ///
    /// # Errors
    /// As [`Registers::read_reg`].
    fn write_base(&mut self, index: usize, base: Base) -> Result<(), Self::Error> {
        let at = regs::BASE + 16 * index as u32;
        for (word, value) in [base.addr, base.addr >> 32, base.limit, base.limit >> 32].into_iter().enumerate() {
            self.write_reg(at + 4 * word as u32, value as u32)?;
        }
        Ok(())
    }

    /// Starts a command whose bases are already written. The doorbell write is the last access.
    ///
    /// # Errors
    /// As [`Registers::read_reg`].
    fn start(&mut self, command: &Command) -> Result<(), Self::Error> {
        self.write_reg(regs::STREAM_ADDR_LO, command.stream_addr as u32)?;
        self.write_reg(regs::STREAM_ADDR_HI, (command.stream_addr >> 32) as u32)?;
        self.write_reg(regs::STREAM_INSNS, command.insns)?;
        self.write_reg(regs::IRQ_CLEAR, 1)?;
        self.write_reg(regs::DOORBELL, 1)
    }

    /// Reads the report of a finished command. The caller fills in multiply-accumulates and bytes.
    ///
    /// # Errors
    /// As [`Registers::read_reg`].
    fn report(&mut self, config: &HwConfig) -> Result<RunReport, Self::Error> {
        let mut report = RunReport { trap: self.trap()?, ..RunReport::default() };
        for (unit, retired) in report.retired.iter_mut().enumerate() {
            *retired = self.read_reg(regs::RETIRED + 4 * unit as u32)?;
        }
        report.cycles = Some(self.read_wide(regs::CYCLES_LO)?);
        if config.counters != Counters::None {
            report.counters = Some(self.counters()?);
        }
        Ok(report)
    }

    /// Reads the trap, if there is one.
    ///
    /// # Errors
    /// As [`Registers::read_reg`].
    fn trap(&mut self) -> Result<Option<Trap>, Self::Error> {
        if self.read_reg(regs::STATUS)? & regs::STATUS_TRAPPED == 0 {
            return Ok(None);
        }
        let cause = TrapCause::from_code(self.read_reg(regs::TRAP_CAUSE)?);
        let unit = TrapUnit::ALL.get(self.read_reg(regs::TRAP_UNIT)? as usize).copied();
        let (Some(cause), Some(unit)) = (cause, unit) else { return Ok(None) };
        let ordinal = self.read_reg(regs::TRAP_ORDINAL)?;
        Ok(Some(Trap { unit, cause, ordinal, cycle: Some(self.read_wide(regs::TRAP_CYCLE_LO)?) }))
    }

    /// Reads the cycles that each unit spent in each state.
    ///
    /// # Errors
    /// As [`Registers::read_reg`].
    fn counters(&mut self) -> Result<UnitCounters, Self::Error> {
        let mut counters = UnitCounters::default();
        for unit in TrapUnit::ALL {
            for state in UnitState::ALL {
                self.write_reg(regs::COUNTER_SELECT, unit as u32 * 16 + *state as u32)?;
                counters.0[unit as usize][*state as usize] = self.read_reg(regs::COUNTER)?.into();
            }
        }
        Ok(counters)
    }
}

/// Copy of what the base registers hold, so that a command writes only the bases that it changes.
#[derive(Debug, Clone)]
pub struct BaseRegisters(Vec<Base>);

impl BaseRegisters {
    /// Base registers of a configuration. Call [`BaseRegisters::clear`] first: the hardware's contents are unknown
    /// until then.
    pub fn new(config: &HwConfig) -> BaseRegisters {
        BaseRegisters(vec![Base::default(); config.bases as usize])
    }

    /// Writes an empty base, which no access fits, to every register.
    ///
    /// # Errors
    /// As [`Registers::read_reg`].
    pub fn clear<R: Registers>(&mut self, registers: &mut R) -> Result<(), R::Error> {
        for (index, held) in self.0.iter_mut().enumerate() {
            registers.write_base(index, Base::default())?;
            *held = Base::default();
        }
        Ok(())
    }

    /// Writes a command's bases, and empty bases to the remaining registers.
    ///
    /// # Errors
    /// As [`Registers::read_reg`].
    pub fn set<R: Registers>(&mut self, registers: &mut R, bases: &[Base]) -> Result<(), R::Error> {
        for (index, held) in self.0.iter_mut().enumerate() {
            let base = bases.get(index).copied().unwrap_or_default();
            if *held != base {
                registers.write_base(index, base)?;
                *held = base;
            }
        }
        Ok(())
    }
}

/// Multiply-accumulates of the first `retired` gemm instructions of a stream. Counting stops at the first instruction
/// that does not decode.
pub fn retired_macs(stream: &[u8], retired: u32, config: &HwConfig) -> u64 {
    let (insns, _) = stream.as_chunks::<INSN_BYTES>();
    let decoder = Decoder::new(config);
    let gemms = insns.iter().map_while(|bytes| decoder.decode(bytes).ok()).filter_map(|insn| match insn.op {
        Op::Gemm(x) => Some(x.micro_ops()),
        _ => None,
    });
    gemms.take(retired as usize).map(|micro_ops| micro_ops * config.macs_per_cycle()).sum()
}
