//! What a host does with the registers, whatever carries their accesses.

use crate::config::{Counters, HwConfig};
use crate::device::{Base, Command, RunReport, Trap, UnitCounters};
use crate::isa::{Decoder, INSN_BYTES, Op};
use crate::regs::{self, TrapCause, TrapUnit, UnitState};

/// Access to the registers of a device.
pub trait Registers {
    /// Why an access failed.
    type Error;

    /// Reads a register.
    ///
    /// # Errors
    /// The access failed; so for all that follow.
    fn read_reg(&mut self, addr: u32) -> Result<u32, Self::Error>;

    /// Writes a register.
    ///
    /// # Errors
    /// As [`Registers::read_reg`].
    fn write_reg(&mut self, addr: u32, value: u32) -> Result<(), Self::Error>;

    /// Reads two registers that follow each other, the low half first, and that do not change meanwhile.
    ///
    /// # Errors
    /// As [`Registers::read_reg`].
    fn read_wide(&mut self, addr: u32) -> Result<u64, Self::Error> {
        Ok(u64::from(self.read_reg(addr)?) | u64::from(self.read_reg(addr + 4)?) << 32)
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

    /// Starts a command, whose bases are written already. The last access is the doorbell's.
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

    /// What the registers tell of a command that has ended; multiply-accumulates and bytes are left to the caller.
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

    /// The trap, where there is one.
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

    /// Cycles of each unit in each state.
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

/// Multiply-accumulates of the first `retired` gemm instructions of a stream, as far as it can be decoded.
pub fn retired_macs(stream: &[u8], retired: u32, config: &HwConfig) -> u64 {
    let (insns, _) = stream.as_chunks::<INSN_BYTES>();
    let decoder = Decoder::new(config);
    let gemms = insns.iter().map_while(|bytes| decoder.decode(bytes).ok()).filter_map(|insn| match insn.op {
        Op::Gemm(x) => Some(x.micro_ops()),
        _ => None,
    });
    gemms.take(retired as usize).map(|micro_ops| micro_ops * config.macs_per_cycle()).sum()
}
