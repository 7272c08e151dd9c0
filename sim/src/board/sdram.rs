//! An SDR SDRAM chip, edge by edge, as data sheets describe it (Micron MT48LC16M16A2, Etron EM638325, ESMT M12L64322A).
//!
//! It checks the controller: the power-up sequence, each command in the state of its bank, all times of the chip's
//! [`Timing`](tilewright_hw::flow::sdram::Timing), the refresh rate, and who drives the data pins. The first violation
//! is returned as an error message.
//!
//! Bursts have one word. Any other mode is rejected, and so are automatic precharge and burst terminate.

mod socket;

pub use socket::{Levels, Socket};

use tilewright_hw::flow::sdram::{MODE_CYCLES, START_REFRESHES, Sdram, WRITE_CYCLES};

/// The longest time a row can be open: the upper limit of tRAS in the strictest of the data sheets.
const MOST_OPEN_PS: u64 = 100_000_000;
/// The fewest cycles between activations of two banks (tRRD).
const TWO_BANKS_CYCLES: u64 = 2;
/// Number of refreshes by which a controller can be late.
const LATE_REFRESHES: u64 = 2;
/// The address bit that makes a precharge apply to all banks.
const ALL_BANKS: u32 = 1 << 10;

/// The pins that a chip samples at a rising edge of its clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pins {
    /// RAS#, CAS# and WE#, from the highest bit.
    pub command: u8,
    /// The address.
    pub a: u32,
    /// The bank.
    pub ba: u32,
    /// Mask: one bit for each byte of the word.
    pub dqm: u32,
    /// The data, if the controller drives them.
    pub dq: Option<u32>,
}

/// No command, and the data pins are not driven.
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

/// An open row.
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

/// Progress of the power-up sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Waiting,
    Precharged,
    Refreshed(u32),
    /// Done; the mode was set at this edge.
    Up(u64),
}

/// The SDRAM chip.
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
    /// Words being read: for each, the edge after which it is on the pins.
    coming: [Option<(u64, u32)>; 4],
    /// The word on the pins since the last edge.
    out: Option<u32>,
    /// The masks at the last edge. For reads, they apply to the word that is sampled two edges after them.
    mask: u32,
}

impl SdramChip {
    /// Creates a chip at power-up, with a clock of `mhz` and noise in its cells.
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

    /// Returns the chip's parameters, as in its data sheet and its board's description.
    pub fn chip(&self) -> &Sdram {
        &self.chip
    }

    /// Returns the contents, by address.
    pub fn bytes(&self) -> &[u8] {
        &self.cells
    }

    /// Returns the contents for changes from outside.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.cells
    }

    /// Returns the number of refreshes since the mode was set.
    pub fn refreshes(&self) -> u64 {
        self.refreshes
    }

    /// Returns the word that the chip drives between the last edge and the next, if any. It is valid in the second half
    /// of that time.
    pub fn out(&self) -> Option<u32> {
        self.out
    }

    /// Simulates a rising edge of the chip's clock.
    ///
    /// # Errors
    /// Describes what the controller does wrong, with the edge and the times.
    pub fn clock(&mut self, pins: Pins) -> Result<(), String> {
        let outcome = self.step(pins);
        self.edge += 1;
        outcome.map_err(|what| format!("SDRAM, edge {}: {what}", self.edge - 1))
    }

    fn step(&mut self, pins: Pins) -> Result<(), String> {
        // The old word on the pins is sampled at this edge. The new one stays until the next edge.
        let stood = self.out.take();
        for slot in &mut self.coming {
            if slot.is_some_and(|(edge, _)| edge == self.edge) {
                self.out = slot.take().map(|(_, word)| word);
            }
        }
        if self.mask != 0 && self.out.is_some() {
            return Err("a word is masked while it is read".into());
        }
        if pins.dq.is_some() && (stood.is_some() || self.out.is_some()) {
            return Err("chip and controller drive the data pins at the same time".into());
        }
        self.mask = pins.dqm;
        if let Stage::Up(since) = self.stage {
            let due = (self.edge - since) * self.clock_ps / self.ps(self.chip.timing.refresh_us * 1000.0);
            if due > self.refreshes + LATE_REFRESHES {
                return Err(format!("{} refreshes are done, but {due} are due", self.refreshes));
            }
        }
        match pins.command {
            NOP => Ok(()),
            ACTIVATE => self.activate(pins),
            READ | WRITE => self.access(pins),
            PRECHARGE => self.precharge(pins),
            REFRESH => self.refresh(),
            MODE => self.set_mode(pins),
            other => Err(format!("command {other:#05b} is not supported")),
        }
    }

    fn ps(&self, ns: f64) -> u64 {
        (ns * 1000.0).round() as u64
    }

    /// Rejects `what` if it comes less than `ns` after an earlier edge.
    fn after(&self, earlier: Option<u64>, ns: f64, name: &str, what: &str) -> Result<(), String> {
        let Some(earlier) = earlier else { return Ok(()) };
        let since = (self.edge - earlier) * self.clock_ps;
        if since >= self.ps(ns) {
            return Ok(());
        }
        Err(format!("{what}: {:.1} ns, but {name} is {ns} ns", since as f64 / 1000.0))
    }

    fn after_cycles(&self, earlier: Option<u64>, cycles: u64, what: &str) -> Result<(), String> {
        match earlier {
            Some(earlier) if self.edge - earlier < cycles => {
                Err(format!("{what}: {} cycles, but {cycles} are needed", self.edge - earlier))
            }
            _ => Ok(()),
        }
    }

    /// Rejects `what` unless the chip is up and not busy with a refresh or with setting its mode.
    fn up(&self, what: &str) -> Result<(), String> {
        let Stage::Up(since) = self.stage else { return Err(format!("{what} before the mode is set")) };
        self.after_cycles(Some(since), u64::from(MODE_CYCLES), &format!("{what} too soon after the mode is set"))?;
        self.after(self.refreshed, self.chip.timing.rfc_ns, "tRFC", &format!("{what} too soon after a refresh"))
    }

    fn bank(&self, pins: Pins) -> Result<usize, String> {
        match pins.ba {
            ba if ba < self.chip.banks => Ok(ba as usize),
            ba => Err(format!("bank {ba} is addressed, but the chip has only {}", self.chip.banks)),
        }
    }

    fn activate(&mut self, pins: Pins) -> Result<(), String> {
        self.up("row opened")?;
        let (t, at) = (self.chip.timing, self.bank(pins)?);
        let bank = self.banks[at];
        if bank.open.is_some() {
            return Err(format!("row opened in bank {at}, which already has an open row"));
        }
        if pins.a >= self.chip.rows {
            return Err(format!("row {} is opened, but the chip has only {}", pins.a, self.chip.rows));
        }
        self.after(bank.precharged, t.rp_ns, "tRP", "row opened too soon after a precharge")?;
        self.after(bank.activated, t.rc_ns, "tRC", "row opened too soon after another row of its bank")?;
        for other in &self.banks {
            self.after_cycles(other.activated, TWO_BANKS_CYCLES, "row opened too soon after one of another bank")?;
        }
        let open = Some(Open { row: pins.a, since: self.edge });
        self.banks[at] = Bank { open, activated: Some(self.edge), read: None, written: None, ..bank };
        Ok(())
    }

    fn access(&mut self, pins: Pins) -> Result<(), String> {
        self.up("word accessed")?;
        let (t, at, geometry) = (self.chip.timing, self.bank(pins)?, self.chip.geometry());
        let Some(open) = self.banks[at].open else { return Err(format!("no row of bank {at} is open")) };
        self.after(Some(open.since), t.rcd_ns, "tRCD", "word accessed too soon after its row was opened")?;
        if pins.a & ALL_BANKS != 0 {
            return Err("automatic precharge is not supported".into());
        }
        if pins.a >= self.chip.columns {
            return Err(format!("column {} is accessed, but the chip has only {}", pins.a, self.chip.columns));
        }
        let word = (u64::from(open.row) * u64::from(self.chip.banks) + at as u64) * u64::from(self.chip.columns)
            + u64::from(pins.a);
        let size = geometry.data_bytes() as usize;
        let cells = word as usize * size;
        if pins.command == READ {
            let read = self.cells[cells..cells + size].iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
            let from = self.edge + u64::from(t.cas_latency) - 1;
            let free = self.coming.iter_mut().find(|slot| slot.is_none());
            *free.ok_or("too many reads are in flight")? = Some((from, read));
            self.banks[at].read = Some(self.edge);
            return Ok(());
        }
        let Some(data) = pins.dq else { return Err("word written while nothing drives the data pins".into()) };
        if self.coming.iter().any(Option::is_some) {
            return Err("word written while a read is in flight".into());
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
                    let (waited, needed) = (waited as f64 / 1e6, t.power_up_us);
                    return Err(format!(
                        "the first command comes {waited} us after power-up, but {needed} us are needed"
                    ));
                }
                if pins.a & ALL_BANKS == 0 {
                    return Err("the first command is not a precharge of all banks".into());
                }
                self.stage = Stage::Precharged;
            }
            Stage::Up(_) => self.up("precharge")?,
            Stage::Precharged | Stage::Refreshed(_) => {
                self.after(self.refreshed, t.rfc_ns, "tRFC", "precharge too soon after a refresh")?;
            }
        }
        let one = self.bank(pins)?;
        for at in 0..self.banks.len() {
            if pins.a & ALL_BANKS == 0 && at != one {
                continue;
            }
            let bank = self.banks[at];
            if let Some(open) = bank.open {
                self.after(Some(open.since), t.ras_ns, "tRAS", "precharge too soon after its row was opened")?;
                if (self.edge - open.since) * self.clock_ps > MOST_OPEN_PS {
                    return Err(format!("a row of bank {at} was open for more than {} us", MOST_OPEN_PS / 1_000_000));
                }
                self.after(bank.written, t.wr_ns, "tWR", "precharge too soon after a write")?;
                self.after_cycles(bank.written, WRITE_CYCLES.into(), "precharge too soon after a write")?;
                // Any earlier, it would cut off the word.
                let least = u64::from(t.cas_latency) - 1;
                self.after_cycles(bank.read, least, "precharge too soon after a read")?;
            }
            self.banks[at] = Bank { open: None, precharged: Some(self.edge), ..bank };
        }
        Ok(())
    }

    /// Rejects `what` unless all rows have been closed for long enough.
    fn all_closed(&self, what: &str) -> Result<(), String> {
        for (at, bank) in self.banks.iter().enumerate() {
            if bank.open.is_some() {
                return Err(format!("{what} while a row of bank {at} is open"));
            }
            self.after(bank.precharged, self.chip.timing.rp_ns, "tRP", &format!("{what} too soon after a precharge"))?;
        }
        Ok(())
    }

    fn refresh(&mut self) -> Result<(), String> {
        self.all_closed("refresh")?;
        self.after(self.refreshed, self.chip.timing.rfc_ns, "tRFC", "refresh too soon after another")?;
        for bank in &self.banks {
            self.after(bank.activated, self.chip.timing.rc_ns, "tRC", "refresh too soon after a row was opened")?;
        }
        match self.stage {
            Stage::Waiting => return Err("the first command is not a precharge of all banks".into()),
            Stage::Precharged => self.stage = Stage::Refreshed(1),
            Stage::Refreshed(n) => self.stage = Stage::Refreshed(n + 1),
            Stage::Up(_) => {
                self.up("refresh")?;
                self.refreshes += 1;
            }
        }
        self.refreshed = Some(self.edge);
        Ok(())
    }

    fn set_mode(&mut self, pins: Pins) -> Result<(), String> {
        let Stage::Refreshed(refreshes) = self.stage else {
            return Err("mode set outside the power-up sequence".into());
        };
        if refreshes < START_REFRESHES {
            return Err(format!("mode set after only {refreshes} of {START_REFRESHES} refreshes"));
        }
        self.all_closed("mode set")?;
        self.after(self.refreshed, self.chip.timing.rfc_ns, "tRFC", "mode set too soon after a refresh")?;
        let wanted = self.chip.timing.cas_latency << 4;
        if pins.a != wanted || pins.ba != 0 {
            return Err(format!("the mode is {:#x}, but single-word bursts at this latency need {wanted:#x}", pins.a));
        }
        self.stage = Stage::Up(self.edge);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
