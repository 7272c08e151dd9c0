//! Connects an SDRAM chip to a board's design: follows the levels at its pins and finds the edges of its clock.
//!
//! The simulators of sources and of netlists pass the levels after every change of the design's clock, and put the
//! answer on the data pins. The chip samples the levels in front of an edge. Levels that change together with the edge
//! violate setup or hold, and are rejected.

use super::{NOP, Pins, SdramChip};

/// What undriven data pins read.
const FLOATING: u32 = 0x5a5a_5a5a;

/// Levels at a chip's pins, as the design drives them. Pins that the board ties have their tied level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Levels {
    /// The clock.
    pub clk: bool,
    /// The clock's enable.
    pub cke: bool,
    /// Chip select, active low.
    pub cs_n: bool,
    /// RAS#, CAS# and WE#, from the highest bit.
    pub command: u8,
    /// The address.
    pub a: u32,
    /// The bank.
    pub ba: u32,
    /// Mask: one bit for each byte of the word.
    pub dqm: u32,
    /// The data that the design drives.
    pub dq: u32,
    /// The data pins that the design drives.
    pub driven: u32,
}

/// A chip and the last levels at its pins.
#[derive(Debug)]
pub struct Socket {
    chip: SdramChip,
    /// Mask of all data pins.
    all: u32,
    /// `None` before the first call, which sees no edge.
    before: Option<Levels>,
    /// Levels on the data pins that the design does not drive.
    out: u32,
}

impl Socket {
    /// Connects a chip in its power-up state.
    pub fn new(chip: SdramChip) -> Socket {
        let all = u32::MAX >> (32 - chip.chip.geometry().data_bits.clamp(1, 32));
        Socket { chip, all, before: None, out: FLOATING }
    }

    /// Returns the chip.
    pub fn chip_mut(&mut self) -> &mut SdramChip {
        &mut self.chip
    }

    /// Takes the pins' levels after a change. Returns the levels on the data pins, and an error if the design violates
    /// a rule.
    pub fn follow(&mut self, now: Levels) -> (u32, Result<(), String>) {
        let before = self.before.replace(now).unwrap_or(now);
        let outcome = match (before.clk, now.clk) {
            (false, true) => self.rises(before, now),
            (true, false) => {
                // The chip's data are valid in the second half of the cycle.
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
                // Time passes even if the pins are wrong.
                let _ = self.chip.clock(super::IDLE);
                Err(format!("SDRAM, edge {}: {what}", self.chip.edge - 1))
            }
        };
        self.out = self.chip.out().map_or(FLOATING, |word| !word);
        outcome
    }

    /// Returns the pins that the chip samples at an edge of its clock, from the levels right before and after it.
    fn pins(&self, before: Levels, now: Levels) -> Result<Pins, String> {
        let Levels { cke, cs_n, command, a, ba, dqm, dq, driven, .. } = before;
        if (Levels { clk: true, ..before }) != now {
            return Err("pins change together with the clock edge".into());
        }
        if !cke {
            return Err("the clock is not enabled".into());
        }
        let dq = match driven & self.all {
            0 => None,
            all if all == self.all => Some(dq & self.all),
            some => return Err(format!("only data pins {some:#x} are driven")),
        };
        Ok(Pins { command: if cs_n { NOP } else { command }, a, ba, dqm, dq })
    }
}
