//! Places to relocate.

use object::elf;

use crate::loader::LoadError;

/// Bytes of a jump to a far import: as many as the longest jump needs.
pub const STUB: usize = 32;

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

pub const OUTSIDE: &str = "it is outside the section";

impl Site<'_> {
    /// Target of a call of the symbol: an import can be out of reach, the jump to it is not.
    pub fn callee(&self) -> Result<u64, LoadError> {
        match self.jump {
            Some(jump) => Ok(jump),
            None => (self.symbol)(),
        }
    }

    pub fn pointer(&self) -> Result<u64, Refused> {
        self.pointer.ok_or(Refused::Because("its pointer is missing"))
    }

    pub fn put(&mut self, bytes: &[u8]) -> Result<(), Refused> {
        self.bytes.get_mut(..bytes.len()).ok_or(OUTSIDE)?.copy_from_slice(bytes);
        Ok(())
    }

    /// The instruction at this place.
    pub fn word(&self) -> Result<u32, Refused> {
        let bytes = self.bytes.first_chunk::<4>().ok_or(OUTSIDE)?;
        Ok(u32::from_le_bytes(*bytes))
    }
}
