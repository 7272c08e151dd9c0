//! Differences between processors: relocations, jumps to far places, and what must be done before new code runs.
//!
//! All of it is data and arithmetic, so that every machine compiles and tests all of it.

mod aarch64;
mod armv7;
mod riscv64;
mod site;
#[cfg(test)]
mod tests;
mod x86_64;

use object::{Architecture, elf};

pub use site::{Need, Refused, STUB, Site};

/// A kind of processor that objects are loaded for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Machine {
    /// x86-64.
    X86,
    /// 64-bit Arm.
    Arm,
    /// 32-bit Arm.
    Arm32,
    /// 64-bit RISC-V.
    RiscV,
}

impl Machine {
    /// The processor that this runs on, if objects can be loaded for it.
    pub fn here() -> Option<Machine> {
        match cfg!(unix) {
            true if cfg!(target_arch = "x86_64") => Some(Machine::X86),
            true if cfg!(target_arch = "aarch64") => Some(Machine::Arm),
            true if cfg!(target_arch = "arm") => Some(Machine::Arm32),
            true if cfg!(target_arch = "riscv64") => Some(Machine::RiscV),
            _ => None,
        }
    }

    pub(super) fn of(architecture: Architecture) -> Option<Machine> {
        match architecture {
            Architecture::X86_64 => Some(Machine::X86),
            Architecture::Aarch64 => Some(Machine::Arm),
            Architecture::Arm => Some(Machine::Arm32),
            Architecture::Riscv64 => Some(Machine::RiscV),
            _ => None,
        }
    }

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Machine::X86 => "x86-64",
            Machine::Arm => "aarch64",
            Machine::Arm32 => "armv7",
            Machine::RiscV => "riscv64",
        }
    }

    /// Size of the pages that protection is set for, the largest that systems have.
    pub(super) fn page(self) -> usize {
        match self {
            Machine::X86 | Machine::Arm32 | Machine::RiscV => 4096,
            Machine::Arm => 1 << 16,
        }
    }

    /// Whether a relocation needs no work if nothing is relaxed.
    pub(super) fn passes(self, kind: elf::RelocationType) -> bool {
        match self {
            Machine::X86 | Machine::Arm => false,
            Machine::Arm32 => armv7::passes(kind),
            Machine::RiscV => riscv64::passes(kind),
        }
    }

    /// What a relocation needs.
    pub(super) fn need(self, kind: elf::RelocationType) -> Need {
        match self {
            Machine::X86 => x86_64::need(kind),
            Machine::Arm => aarch64::need(kind),
            Machine::Arm32 => armv7::need(kind),
            Machine::RiscV => riscv64::need(kind),
        }
    }

    /// Instructions that jump to an address.
    pub(super) fn jump(self, to: u64) -> [u8; STUB] {
        match self {
            Machine::X86 => x86_64::jump(to),
            Machine::Arm => aarch64::jump(to),
            Machine::Arm32 => armv7::jump(to),
            Machine::RiscV => riscv64::jump(to),
        }
    }

    /// The distance whose upper part is at this place, if another place has its lower part and refers to this one.
    pub(super) fn distance(self, site: &Site<'_>) -> Result<Option<i64>, Refused> {
        match self {
            Machine::RiscV => riscv64::distance(site),
            Machine::X86 | Machine::Arm | Machine::Arm32 => Ok(None),
        }
    }

    /// Applies a relocation.
    pub(super) fn relocate(self, site: &mut Site<'_>) -> Result<(), Refused> {
        match self {
            Machine::X86 => x86_64::relocate(site),
            Machine::Arm => aarch64::relocate(site),
            Machine::Arm32 => armv7::relocate(site),
            Machine::RiscV => riscv64::relocate(site),
        }
    }
}
