//! Differences between processors: relocations, jumps to far places, and what must be done before new code runs.
//!
//! All of it is data and arithmetic, so that every machine compiles and tests all of it.

mod aarch64;
mod armv7;
mod riscv64;
#[cfg(test)]
mod tests;
mod x86_64;

use object::{Architecture, elf};

use super::LoadError;

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

/// What a relocation needs in addition to its symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Nothing.
    Nothing,
    /// A pointer to the symbol in the global offset table.
    Pointer,
    /// If the symbol is an import, a jump to it within reach.
    Jump,
}

/// A place to relocate.
pub struct Site<'a> {
    pub kind: elf::RelocationType,
    pub addend: i64,
    /// Its address.
    pub here: u64,
    /// Returns the symbol's address.
    pub symbol: &'a dyn Fn() -> Result<u64, LoadError>,
    /// The jump to the symbol, if there is one.
    pub jump: Option<u64>,
    /// The pointer to the symbol, if there is one.
    pub pointer: Option<u64>,
    /// The address of the global offset table.
    pub table: u64,
    /// Returns the distance whose upper part is at an address.
    pub high: &'a dyn Fn(u64) -> Option<i64>,
    /// The section's bytes from this place on.
    pub bytes: &'a mut [u8],
}

/// Why a place could not be relocated.
pub enum Refused {
    /// It cannot be relocated, for this reason.
    Because(&'static str),
    /// The symbol cannot be resolved.
    Symbol(LoadError),
}

impl From<LoadError> for Refused {
    fn from(error: LoadError) -> Refused {
        Refused::Symbol(error)
    }
}

impl From<&'static str> for Refused {
    fn from(reason: &'static str) -> Refused {
        Refused::Because(reason)
    }
}

const OUTSIDE: &str = "it is outside the section";

impl Site<'_> {
    /// Target of a call of the symbol: an import can be out of reach, the jump to it is not.
    fn callee(&self) -> Result<u64, LoadError> {
        match self.jump {
            Some(jump) => Ok(jump),
            None => (self.symbol)(),
        }
    }

    fn pointer(&self) -> Result<u64, Refused> {
        self.pointer.ok_or(Refused::Because("its pointer is missing"))
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), Refused> {
        self.bytes.get_mut(..bytes.len()).ok_or(OUTSIDE)?.copy_from_slice(bytes);
        Ok(())
    }

    /// The instruction at this place.
    fn word(&self) -> Result<u32, Refused> {
        let bytes = self.bytes.first_chunk::<4>().ok_or(OUTSIDE)?;
        Ok(u32::from_le_bytes(*bytes))
    }
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
    pub(super) fn jump(self, to: u64) -> [u8; super::layout::STUB] {
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
