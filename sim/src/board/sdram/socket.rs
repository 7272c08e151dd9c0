//! A chip of SDRAM in its socket: it follows the levels that a board's design gives its pins, and finds its clock's edges among them.
//!
//! The simulators of the sources and of netlists give the levels after every change of the design's clock, and put what the socket
//! answers onto the data pins. A chip sees the levels before an edge; what changes with it breaks set-up or hold, and is refused.

use super::{NOP, Pins, SdramChip};

/// What floating data pins read.
const FLOATING: u32 = 0x5a5a_5a5a;

/// Levels at a chip's pins, as the design drives them. What the board ties is as it ties it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Levels {
    /// The clock.
    pub clk: bool,
    /// The clock's enable.
    pub cke: bool,
    /// The chip select, low where the chip listens.
    pub cs_n: bool,
    /// RAS#, CAS# and WE#, from the highest bit.
    pub command: u8,
    /// The address.
    pub a: u32,
    /// The bank.
    pub ba: u32,
    /// A bit for each byte of the word that is masked.
    pub dqm: u32,
    /// The data that the design drives.
    pub dq: u32,
    /// The data pins that it drives.
    pub driven: u32,
}

/// A chip and the levels that it saw last.
#[derive(Debug)]
pub struct Socket {
    chip: SdramChip,
    /// All data pins.
    all: u32,
    /// None before the first look at the pins, which sees no edge.
    before: Option<Levels>,
    /// What stands on the data pins where the design does not drive them.
    out: u32,
}

impl Socket {
    /// Puts a chip at power-up into a socket.
    pub fn new(chip: SdramChip) -> Socket {
        let all = u32::MAX >> (32 - chip.chip.geometry().data_bits.clamp(1, 32));
        Socket { chip, all, before: None, out: FLOATING }
    }

    /// The chip.
    pub fn chip_mut(&mut self) -> &mut SdramChip {
        &mut self.chip
    }

    /// Takes the pins' levels after a change; gives what then stands on the data pins, and what the design did wrong, if anything.
    pub fn follow(&mut self, now: Levels) -> (u32, Result<(), String>) {
        let before = self.before.replace(now).unwrap_or(now);
        let outcome = match (before.clk, now.clk) {
            (false, true) => self.rises(before, now),
            (true, false) => {
                // What the chip drives is there in the second half of its time.
                self.out = self.chip.out().unwrap_or(FLOATING);
                Ok(())
            }
            _ => Ok(()),
        };
        ((now.dq & now.driven | self.out & !now.driven) & self.all, outcome)
    }

    fn rises(&mut self, before: Levels, now: Levels) -> Result<(), String> {
        let outcome = match self.pins(before, now) {
            Ok(pins) => self.chip.clock(pins),
            Err(what) => {
                // Whatever the pins mean, time goes on.
                let _ = self.chip.clock(super::IDLE);
                Err(format!("SDRAM, edge {}: {what}", self.chip.edge - 1))
            }
        };
        self.out = self.chip.out().map_or(FLOATING, |word| !word);
        outcome
    }

    /// What the chip takes at an edge of its clock, from the levels before it and behind it.
    fn pins(&self, before: Levels, now: Levels) -> Result<Pins, String> {
        let Levels { cke, cs_n, command, a, ba, dqm, dq, driven, .. } = before;
        if (Levels { clk: true, ..before }) != now {
            return Err("pins change with the edge of its clock".into());
        }
        if !cke {
            return Err("its clock is not enabled".into());
        }
        let dq = match driven & self.all {
            0 => None,
            all if all == self.all => Some(dq & self.all),
            some => return Err(format!("of the data pins {some:#x} alone are driven")),
        };
        Ok(Pins { command: if cs_n { NOP } else { command }, a, ba, dqm, dq })
    }
}
