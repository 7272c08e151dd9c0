//! A chip of SDR SDRAM, edge by edge, as data sheets describe it (Micron MT48LC16M16A2, Etron EM638325, ESMT M12L64322A).
//!
//! It checks what a controller may do: the sequence at power-up, each command in the state of its bank, every time of the chip's
//! [`Timing`](tilewright_hw::flow::sdram::Timing), the rate of refreshes, and who drives the data pins. The first thing that is
//! wrong ends it with a sentence.
//!
//! Bursts have one word: the mode that sets anything else is refused, as are automatic precharge and the burst's end.

mod socket;

pub use socket::{Levels, Socket};

use tilewright_hw::flow::sdram::{MODE_CYCLES, START_REFRESHES, Sdram, WRITE_CYCLES};

/// The longest time that a row may be open: tRAS's upper limit in the strictest of the data sheets.
const MOST_OPEN_PS: u64 = 100_000_000;
/// The fewest cycles between activations of two banks.
const TWO_BANKS_CYCLES: u64 = 2;
/// Refreshes by which a controller may be late.
const LATE_REFRESHES: u64 = 2;
/// The address bit that says «all banks» to a precharge.
const ALL_BANKS: u32 = 1 << 10;

/// What a chip sees at a rising edge of its clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pins {
    /// RAS#, CAS# and WE#, from the highest bit.
    pub command: u8,
    /// The address.
    pub a: u32,
    /// The bank.
    pub ba: u32,
    /// A bit for each byte of the word that is masked.
    pub dqm: u32,
    /// The data, where the controller drives them.
    pub dq: Option<u32>,
}

/// No command, nothing driven.
pub const IDLE: Pins = Pins { command: NOP, a: 0, ba: 0, dqm: 0, dq: None };

/// RAS#, CAS# and WE# of each command.
pub const NOP: u8 = 0b111;
/// Opens a row.
pub const ACTIVATE: u8 = 0b011;
/// Reads a word.
pub const READ: u8 = 0b101;
/// Writes a word.
pub const WRITE: u8 = 0b100;
/// Closes a row.
pub const PRECHARGE: u8 = 0b010;
/// Refreshes the next row.
pub const REFRESH: u8 = 0b001;
/// Sets the mode.
pub const MODE: u8 = 0b000;

/// A row that is open.
#[derive(Debug, Clone, Copy)]
struct Open {
    row: u32,
    since: u64,
}

/// A bank.
#[derive(Debug, Clone, Copy, Default)]
struct Bank {
    open: Option<Open>,
    activated: Option<u64>,
    precharged: Option<u64>,
    read: Option<u64>,
    written: Option<u64>,
}

/// How far the sequence at power-up is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Waiting,
    Precharged,
    Refreshed(u32),
    /// The mode was set in this cycle.
    Up(u64),
}

/// The chip.
#[derive(Debug)]
pub struct SdramChip {
    chip: Sdram,
    clock_ps: u64,
    /// Edges so far.
    edge: u64,
    stage: Stage,
    banks: Vec<Bank>,
    refreshed: Option<u64>,
    refreshes: u64,
    cells: Vec<u8>,
    /// Words on their way out: the edge after which each stands on the pins.
    coming: [Option<(u64, u32)>; 4],
    /// What stands on the pins since the last edge.
    out: Option<u32>,
    /// Masks of the last edge: of words that are read they are for the one which is taken two edges behind them.
    mask: u32,
}

impl SdramChip {
    /// A chip at power-up, with a clock of so many MHz; what it holds is noise.
    pub fn new(chip: &Sdram, mhz: f64) -> SdramChip {
        let mut noise = 0x9e37_79b9_u32;
        let cells = std::iter::repeat_with(|| {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (noise >> 24) as u8
        });
        SdramChip {
            chip: chip.clone(),
            clock_ps: (1e6 / mhz).round() as u64,
            edge: 0,
            stage: Stage::Waiting,
            banks: vec![Bank::default(); chip.banks as usize],
            refreshed: None,
            refreshes: 0,
            cells: cells.take(chip.geometry().bytes() as usize).collect(),
            coming: [None; 4],
            out: None,
            mask: 0,
        }
    }

    /// What it is, as its data sheet and its board say.
    pub fn chip(&self) -> &Sdram {
        &self.chip
    }

    /// What it holds, by address.
    pub fn bytes(&self) -> &[u8] {
        &self.cells
    }

    /// What it holds, to be changed from outside.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.cells
    }

    /// Refreshes since the mode was set.
    pub fn refreshes(&self) -> u64 {
        self.refreshes
    }

    /// What it drives from the last edge to the next, where it does. It is there in the second half of that time.
    pub fn out(&self) -> Option<u32> {
        self.out
    }

    /// A rising edge of its clock.
    ///
    /// # Errors
    /// What the controller does wrong, with the edge and the times.
    pub fn clock(&mut self, pins: Pins) -> Result<(), String> {
        let outcome = self.step(pins);
        self.edge += 1;
        outcome.map_err(|what| format!("SDRAM, edge {}: {what}", self.edge - 1))
    }

    fn step(&mut self, pins: Pins) -> Result<(), String> {
        // What stood on the pins is taken at this edge; what comes now stands until the next.
        let stood = self.out.take();
        for slot in &mut self.coming {
            if slot.is_some_and(|(edge, _)| edge == self.edge) {
                self.out = slot.take().map(|(_, word)| word);
            }
        }
        if self.mask != 0 && self.out.is_some() {
            return Err("a word that is read is masked".into());
        }
        if pins.dq.is_some() && (stood.is_some() || self.out.is_some()) {
            return Err("chip and controller drive the data pins at once".into());
        }
        self.mask = pins.dqm;
        if let Stage::Up(since) = self.stage {
            let due = (self.edge - since) * self.clock_ps / self.ps(self.chip.timing.refresh_us * 1000.0);
            if due > self.refreshes + LATE_REFRESHES {
                return Err(format!("{} refreshes are done, {due} were due", self.refreshes));
            }
        }
        match pins.command {
            NOP => Ok(()),
            ACTIVATE => self.activate(pins),
            READ | WRITE => self.access(pins),
            PRECHARGE => self.precharge(pins),
            REFRESH => self.refresh(),
            MODE => self.set_mode(pins),
            other => Err(format!("command {other:#05b} is not used here")),
        }
    }

    fn ps(&self, ns: f64) -> u64 {
        (ns * 1000.0).round() as u64
    }

    /// Refuses what comes less than so long after an earlier edge.
    fn after(&self, earlier: Option<u64>, ns: f64, name: &str, what: &str) -> Result<(), String> {
        let Some(earlier) = earlier else { return Ok(()) };
        let since = (self.edge - earlier) * self.clock_ps;
        if since >= self.ps(ns) {
            return Ok(());
        }
        Err(format!("{what} after {:.1} ns, and {name} is {ns} ns", since as f64 / 1000.0))
    }

    fn after_cycles(&self, earlier: Option<u64>, cycles: u64, what: &str) -> Result<(), String> {
        match earlier {
            Some(earlier) if self.edge - earlier < cycles => {
                Err(format!("{what} after {} cycles of {cycles}", self.edge - earlier))
            }
            _ => Ok(()),
        }
    }

    /// Refuses what needs a chip that is up and not busy with a refresh or its mode.
    fn up(&self, what: &str) -> Result<(), String> {
        let Stage::Up(since) = self.stage else { return Err(format!("{what} before the mode is set")) };
        self.after_cycles(Some(since), u64::from(MODE_CYCLES), &format!("{what} behind the mode"))?;
        self.after(self.refreshed, self.chip.timing.rfc_ns, "tRFC", &format!("{what} behind a refresh"))
    }

    fn bank(&self, pins: Pins) -> Result<usize, String> {
        match pins.ba {
            ba if ba < self.chip.banks => Ok(ba as usize),
            ba => Err(format!("bank {ba} is addressed, and there are {}", self.chip.banks)),
        }
    }

    fn activate(&mut self, pins: Pins) -> Result<(), String> {
        self.up("a row is opened")?;
        let (t, at) = (self.chip.timing, self.bank(pins)?);
        let bank = self.banks[at];
        if bank.open.is_some() {
            return Err(format!("a row of bank {at} is opened, where another is open"));
        }
        if pins.a >= self.chip.rows {
            return Err(format!("row {} is opened, and there are {}", pins.a, self.chip.rows));
        }
        self.after(bank.precharged, t.rp_ns, "tRP", "a row is opened behind a precharge")?;
        self.after(bank.activated, t.rc_ns, "tRC", "a row is opened behind another of its bank")?;
        for other in &self.banks {
            self.after_cycles(other.activated, TWO_BANKS_CYCLES, "a row is opened behind another bank's")?;
        }
        let open = Some(Open { row: pins.a, since: self.edge });
        self.banks[at] = Bank { open, activated: Some(self.edge), read: None, written: None, ..bank };
        Ok(())
    }

    fn access(&mut self, pins: Pins) -> Result<(), String> {
        self.up("a word is accessed")?;
        let (t, at, geometry) = (self.chip.timing, self.bank(pins)?, self.chip.geometry());
        let Some(open) = self.banks[at].open else { return Err(format!("no row of bank {at} is open")) };
        self.after(Some(open.since), t.rcd_ns, "tRCD", "a word is accessed behind the opening of its row")?;
        if pins.a & ALL_BANKS != 0 {
            return Err("automatic precharge is asked for, which is not used here".into());
        }
        if pins.a >= self.chip.columns {
            return Err(format!("column {} is accessed, and there are {}", pins.a, self.chip.columns));
        }
        let word = (u64::from(open.row) * u64::from(self.chip.banks) + at as u64) * u64::from(self.chip.columns)
            + u64::from(pins.a);
        let size = geometry.data_bytes() as usize;
        let cells = word as usize * size;
        if pins.command == READ {
            let read = self.cells[cells..cells + size].iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
            let from = self.edge + u64::from(t.cas_latency) - 1;
            let free = self.coming.iter_mut().find(|slot| slot.is_none());
            *free.ok_or("more words are read than can be on their way")? = Some((from, read));
            self.banks[at].read = Some(self.edge);
            return Ok(());
        }
        let Some(data) = pins.dq else { return Err("a word is written, and nobody drives it".into()) };
        if self.coming.iter().any(Option::is_some) {
            return Err("a word is written while one that was read is on its way".into());
        }
        for byte in 0..size {
            if pins.dqm >> byte & 1 == 0 {
                self.cells[cells + byte] = (data >> (8 * byte)) as u8;
            }
        }
        self.banks[at].written = Some(self.edge);
        Ok(())
    }

    fn precharge(&mut self, pins: Pins) -> Result<(), String> {
        let t = self.chip.timing;
        match self.stage {
            Stage::Waiting => {
                let waited = self.edge * self.clock_ps;
                if waited < self.ps(t.power_up_us * 1000.0) {
                    return Err(format!("the first command comes {} us after power-up", waited as f64 / 1e6));
                }
                if pins.a & ALL_BANKS == 0 {
                    return Err("the first command is no precharge of all banks".into());
                }
                self.stage = Stage::Precharged;
            }
            Stage::Up(_) => self.up("a precharge")?,
            Stage::Precharged | Stage::Refreshed(_) => {
                self.after(self.refreshed, t.rfc_ns, "tRFC", "a precharge behind a refresh")?;
            }
        }
        let one = self.bank(pins)?;
        for at in 0..self.banks.len() {
            if pins.a & ALL_BANKS == 0 && at != one {
                continue;
            }
            let bank = self.banks[at];
            if let Some(open) = bank.open {
                self.after(Some(open.since), t.ras_ns, "tRAS", "a precharge behind the opening of the row")?;
                if (self.edge - open.since) * self.clock_ps > MOST_OPEN_PS {
                    return Err(format!("a row of bank {at} was open for more than {} us", MOST_OPEN_PS / 1_000_000));
                }
                self.after(bank.written, t.wr_ns, "tWR", "a precharge behind a written word")?;
                self.after_cycles(bank.written, WRITE_CYCLES.into(), "a precharge behind a written word")?;
                // Earlier, it would cut off the word.
                let least = u64::from(t.cas_latency) - 1;
                self.after_cycles(bank.read, least, "a precharge behind a word that is read")?;
            }
            self.banks[at] = Bank { open: None, precharged: Some(self.edge), ..bank };
        }
        Ok(())
    }

    /// Refuses what needs all rows closed for long enough.
    fn all_closed(&self, what: &str) -> Result<(), String> {
        for (at, bank) in self.banks.iter().enumerate() {
            if bank.open.is_some() {
                return Err(format!("{what} while a row of bank {at} is open"));
            }
            self.after(bank.precharged, self.chip.timing.rp_ns, "tRP", &format!("{what} behind a precharge"))?;
        }
        Ok(())
    }

    fn refresh(&mut self) -> Result<(), String> {
        self.all_closed("a refresh")?;
        self.after(self.refreshed, self.chip.timing.rfc_ns, "tRFC", "a refresh behind another")?;
        for bank in &self.banks {
            self.after(bank.activated, self.chip.timing.rc_ns, "tRC", "a refresh behind the opening of a row")?;
        }
        match self.stage {
            Stage::Waiting => return Err("the first command is no precharge of all banks".into()),
            Stage::Precharged => self.stage = Stage::Refreshed(1),
            Stage::Refreshed(n) => self.stage = Stage::Refreshed(n + 1),
            Stage::Up(_) => {
                self.up("a refresh")?;
                self.refreshes += 1;
            }
        }
        self.refreshed = Some(self.edge);
        Ok(())
    }

    fn set_mode(&mut self, pins: Pins) -> Result<(), String> {
        let Stage::Refreshed(refreshes) = self.stage else {
            return Err("the mode is set elsewhere than behind the refreshes at power-up".into());
        };
        if refreshes < START_REFRESHES {
            return Err(format!("the mode is set after {refreshes} refreshes of {START_REFRESHES}"));
        }
        self.all_closed("the mode is set")?;
        self.after(self.refreshed, self.chip.timing.rfc_ns, "tRFC", "the mode is set behind a refresh")?;
        let wanted = self.chip.timing.cas_latency << 4;
        if pins.a != wanted || pins.ba != 0 {
            return Err(format!("the mode is {:#x}, and words one by one at this latency are {wanted:#x}", pins.a));
        }
        self.stage = Stage::Up(self.edge);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
