//! Host registers: one table for the RTL, the driver, the shells and the C header.

use crate::isa::Unit;

/// What the host may do with a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reads only; writes are ignored.
    Read,
    /// Reads and writes.
    ReadWrite,
    /// Writing acts; reads give zero.
    Write,
}

/// One 32-bit register.
#[derive(Debug, Clone, Copy)]
pub struct Reg {
    /// Name in the RTL and the C header.
    pub name: &'static str,
    /// Byte address.
    pub addr: u32,
    /// Access.
    pub access: Access,
    /// What it holds.
    pub doc: &'static str,
}

macro_rules! regs {
    ($($name:ident = $addr:literal, $access:ident, $doc:literal;)*) => {
        $(#[doc = $doc] pub const $name: u32 = $addr;)*
        /// Every register, by address.
        pub const REGS: &[Reg] = &[$(Reg { name: stringify!($name), addr: $addr, access: Access::$access, doc: $doc }),*];
    };
}

regs! {
    ID = 0x000, Read, "0x54574c54, the letters TLWT";
    ISA_VERSION = 0x004, Read, "version of the instruction set";
    CONFIG_HASH_LO = 0x008, Read, "configuration hash, low half";
    CONFIG_HASH_HI = 0x00c, Read, "configuration hash, high half";
    CONTROL = 0x010, ReadWrite, "bit 0: soft reset, clears itself; bit 1: interrupt enable";
    STATUS = 0x014, Read, "bit 0: busy; bit 1: trapped; bit 2: interrupt pending; bits 15 to 8: free entries of the command ring";
    STREAM_ADDR_LO = 0x018, ReadWrite, "address of the next command's stream, low half; 32-byte aligned";
    STREAM_ADDR_HI = 0x01c, ReadWrite, "address of the next command's stream, high half";
    STREAM_INSNS = 0x020, ReadWrite, "number of instructions in the next command's stream";
    DOORBELL = 0x024, Write, "any write puts the command into the ring; ignored if the ring is full or the device has trapped";
    COMPLETION = 0x028, Read, "commands completed since the last soft reset";
    IRQ_CLEAR = 0x02c, Write, "any write clears the pending interrupt";
    CYCLES_LO = 0x030, Read, "cycles of the current or last command, low half";
    CYCLES_HI = 0x034, Read, "cycles of the current or last command, high half";
    TRAP_CAUSE = 0x038, Read, "cause of the trap, 0 for none";
    TRAP_UNIT = 0x03c, Read, "unit of the trap: 0 load, 1 gemm, 2 vector, 3 store, 4 fetch";
    TRAP_ORDINAL = 0x040, Read, "ordinal of the trapping instruction in its unit, from 0; for fetch: in the stream";
    TRAP_CYCLE_LO = 0x044, Read, "cycle of the trap, low half";
    TRAP_CYCLE_HI = 0x048, Read, "cycle of the trap, high half";
    RETIRED = 0x050, Read, "instructions retired by load; the next three words are those of gemm, vector and store";
    COUNTER_SELECT = 0x060, ReadWrite, "selects the counter: unit x 16 + state";
    COUNTER = 0x064, Read, "the selected counter";
    BASE = 0x100, ReadWrite, "16 bytes per base register: address low, address high, limit low, limit high; with lean, reads return zero";
}

/// Value of the [`ID`] register.
pub const ID_VALUE: u32 = 0x5457_4c54;
/// Bit of [`CONTROL`]: soft reset.
pub const CONTROL_RESET: u32 = 1;
/// Bit of [`CONTROL`]: the interrupt is shown to the host.
pub const CONTROL_IRQ_ENABLE: u32 = 2;
/// Bit of [`STATUS`]: a command runs or waits, or a reset is under way.
pub const STATUS_BUSY: u32 = 1;
/// Bit of [`STATUS`]: the device has trapped.
pub const STATUS_TRAPPED: u32 = 2;
/// Commands that the ring holds in addition to the running one. A lean device holds fewer, as its status register
/// shows.
pub const RING_ENTRIES: u32 = 4;
/// Bits of a register address.
pub const ADDR_BITS: u32 = 12;

macro_rules! causes {
    ($($name:ident = $code:literal, $text:literal;)*) => {
        /// Why the device stopped.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum TrapCause { $(#[doc = $text] $name = $code,)* }

        impl TrapCause {
            /// All causes.
            pub const ALL: &[TrapCause] = &[$(TrapCause::$name),*];

            /// What happened.
            pub fn text(self) -> &'static str {
                match self { $(TrapCause::$name => $text,)* }
            }

            /// The cause with this code.
            pub fn from_code(code: u32) -> Option<TrapCause> {
                TrapCause::ALL.iter().copied().find(|c| *c as u32 == code)
            }
        }
    };
}

causes! {
    Opcode = 1, "unknown opcode";
    Field = 2, "illegal field value";
    Scratchpad = 3, "index outside a memory";
    Limit = 4, "address outside the base's limit";
    Token = 5, "token counter overflow";
    Collision = 6, "two accesses to one port of a bank in a cycle";
    Bus = 7, "bus error";
    Deadlock = 8, "deadlock";
}

/// A unit as traps and counters name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum TrapUnit {
    /// The load unit.
    Load = 0,
    /// The gemm unit.
    Gemm = 1,
    /// The vector unit.
    Vector = 2,
    /// The store unit.
    Store = 3,
    /// The fetch unit.
    Fetch = 4,
}

impl TrapUnit {
    /// All units.
    pub const ALL: [TrapUnit; 5] = [TrapUnit::Load, TrapUnit::Gemm, TrapUnit::Vector, TrapUnit::Store, TrapUnit::Fetch];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        ["load", "gemm", "vector", "store", "fetch"][self as usize]
    }
}

impl From<Unit> for TrapUnit {
    fn from(unit: Unit) -> TrapUnit {
        TrapUnit::ALL[unit as usize]
    }
}

macro_rules! states {
    ($($name:ident = $code:literal, $short:literal $(of $unit:ident)?, $doc:literal;)*) => {
        /// What a unit does in a cycle; the counters of a unit sum to the run's cycles.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum UnitState { $(#[doc = $doc] $name = $code,)* }

        impl UnitState {
            /// All states in code order.
            pub const ALL: &[UnitState] = &[$(UnitState::$name),*];

            /// What it means.
            pub fn doc(self) -> &'static str {
                match self { $(UnitState::$name => $doc,)* }
            }

            /// The name in reports. For a stall, what the unit waits for.
            pub fn name(self) -> &'static str {
                match self { $(UnitState::$name => $short,)* }
            }

            /// The unit whose token is missing in this state.
            pub fn token_of(self) -> Option<Unit> {
                match self { $(UnitState::$name => None$(.or(Some(Unit::$unit)))?,)* }
            }
        }
    };
}

states! {
    Empty = 0, "empty", "has no instruction";
    TokenLoad = 1, "token of load" of Load, "waits for a token of load";
    TokenGemm = 2, "token of gemm" of Gemm, "waits for a token of gemm";
    TokenVector = 3, "token of vector" of Vector, "waits for a token of vector";
    TokenStore = 4, "token of store" of Store, "waits for a token of store";
    Space = 5, "space", "waits for space in a buffer or queue, or for an outstanding slot";
    Request = 6, "bus", "waits for the bus";
    Data = 7, "data", "waits for data or acknowledgement";
    Busy = 8, "busy", "is working";
}

impl UnitState {
    /// Whether an instruction is stalled in this state.
    pub fn is_stall(self) -> bool {
        !matches!(self, UnitState::Empty | UnitState::Busy)
    }
}
