//! SDR SDRAM chips on boards: geometry and timing from the chip's data sheet, pins from the board's schematic.
//!
//! A byte address consists of row, bank, column and byte of the word, from its highest bits down, so that consecutive
//! addresses stay in the open row.

mod check;

use super::port_pin::PortPin;
use serde::{Deserialize, Serialize};

/// Number of refreshes before the mode is set. It is JEDEC's number; some data sheets require fewer.
pub const START_REFRESHES: u32 = 8;
/// Cycles from setting the mode to the next command.
pub const MODE_CYCLES: u32 = 2;
/// The fewest cycles from the last word of a write to the precharge. Some data sheets give tWR in cycles.
pub const WRITE_CYCLES: u32 = 2;

/// Cycles from the register of a read's command to the register of its data, in addition to the chip's latency: one on
/// the way to the pins, whose clock rises in the middle of a cycle, and one on the way back.
pub const PIPELINE_CYCLES: u32 = 2;

/// The fastest clock of a shell with an SDRAM, MHz. Data are sampled a cycle after the chip's clock edge. The chip
/// takes up to 6 ns of that cycle, and the part's output and input pins up to 6.5 ns.
const MOST_MHZ: f64 = 80.0;
/// The most cycles of a timing, as the shell's counters limit it.
const MOST_CYCLES: u32 = 15;
/// The most cycles of the wait at power-up and between two refreshes.
const MOST_WAIT_CYCLES: u32 = u16::MAX as u32;
/// The fewest cycles between two refreshes, so that a burst in progress ends well before the next refresh.
const FEWEST_REFRESH_CYCLES: u32 = 100;

/// An SDRAM chip.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sdram {
    /// Rows of a bank: 2048, 4096 or 8192.
    pub rows: u32,
    /// Words of a row: 256, 512 or 1024.
    pub columns: u32,
    /// Banks: 2 or 4.
    pub banks: u32,
    /// Its timing.
    pub timing: Timing,
    /// Its pins.
    pub pins: Pins,
}

/// The timing of a chip's data sheet.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timing {
    /// Cycles from a read to its data, 2 or 3.
    pub cas_latency: u32,
    /// The fastest clock at that latency, MHz.
    pub most_mhz: f64,
    /// tRCD: from the activation of a row to a read or write.
    pub rcd_ns: f64,
    /// tRP: from a precharge to the activation of a row, or a refresh.
    pub rp_ns: f64,
    /// tRAS: from the activation of a row to the precharge.
    pub ras_ns: f64,
    /// tRC: from the activation of a row to that of another of the bank.
    pub rc_ns: f64,
    /// tRFC (tRC or tRRC in some data sheets): from a refresh to the next command.
    pub rfc_ns: f64,
    /// tWR (tRDL, tDPL): from the last word of a write to the precharge; the shell waits at least two cycles.
    pub wr_ns: f64,
    /// tREFI: the average time between two refreshes, which is the refresh period divided by the number of rows.
    pub refresh_us: f64,
    /// The time for which clock and power must be stable before the first command.
    pub power_up_us: f64,
}

/// The part's pins that a chip is connected to.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pins {
    /// The clock.
    pub clk: String,
    /// The clock enable; `None` if the board ties it high.
    pub cke: Option<String>,
    /// The chip select; `None` if the board ties it low.
    pub cs: Option<String>,
    /// RAS#.
    pub ras: String,
    /// CAS#.
    pub cas: String,
    /// WE#.
    pub we: String,
    /// The address, lowest bit first.
    pub a: Vec<String>,
    /// The bank, lowest bit first.
    pub ba: Vec<String>,
    /// The byte masks of a word, lowest byte first; empty if the board ties them low.
    #[serde(default)]
    pub dqm: Vec<String>,
    /// The data, lowest bit first: 8, 16 or 32.
    pub dq: Vec<String>,
}

/// The size of a chip, and whether bytes can be masked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Geometry {
    /// Rows of a bank.
    pub rows: u32,
    /// Words of a row.
    pub columns: u32,
    /// Banks.
    pub banks: u32,
    /// Bits of a word.
    pub data_bits: u32,
    /// Whether a write can mask bytes of a word.
    pub has_masks: bool,
}

impl Geometry {
    /// Bytes of a word.
    pub fn data_bytes(self) -> u32 {
        self.data_bits / 8
    }

    /// Bytes of the chip.
    pub fn bytes(self) -> u64 {
        u64::from(self.rows) * u64::from(self.columns) * u64::from(self.banks) * u64::from(self.data_bytes())
    }
}

/// A chip's timing in clock cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Cycles {
    /// From a read to its data.
    pub cas: u32,
    /// From an activation to a read or write.
    pub rcd: u32,
    /// From a precharge to an activation or a refresh.
    pub rp: u32,
    /// From an activation to the precharge, long enough for tRC too.
    pub ras: u32,
    /// From a refresh to the next command.
    pub rfc: u32,
    /// From the last word of a write to the precharge.
    pub wr: u32,
    /// Between two refreshes.
    pub refresh: u32,
    /// Before the first command.
    pub power_up: u32,
}

impl Sdram {
    /// Returns the geometry.
    pub fn geometry(&self) -> Geometry {
        Geometry {
            rows: self.rows,
            columns: self.columns,
            banks: self.banks,
            data_bits: self.pins.dq.len() as u32,
            has_masks: !self.pins.dqm.is_empty(),
        }
    }

    /// Converts the timing to cycles of a clock in MHz. A millionth of rounding error is tolerated.
    ///
    /// # Errors
    /// If the chip does not work at this clock. The text says why, with numbers.
    pub fn cycles(&self, mhz: f64) -> Result<Cycles, String> {
        let t = &self.timing;
        if mhz > t.most_mhz * (1.0 + 1e-6) {
            return Err(format!(
                "the SDRAM runs at {} MHz at most with a CAS latency of {}, but the core's clock is {mhz} MHz; lower it (--mhz), or use \
                 another latency",
                t.most_mhz, t.cas_latency
            ));
        }
        if mhz > MOST_MHZ {
            return Err(format!(
                "the shell can read an SDRAM up to {MOST_MHZ} MHz, but the core's clock is {mhz} MHz; lower it (--mhz)"
            ));
        }
        let at_least = |ns: f64| ((ns * mhz / 1000.0) * (1.0 - 1e-6)).ceil().max(1.0) as u32;
        let at_most = |us: f64| ((us * mhz) * (1.0 + 1e-6)).floor() as u32;
        let rp = at_least(t.rp_ns);
        let cycles = Cycles {
            cas: t.cas_latency,
            rcd: at_least(t.rcd_ns),
            rp,
            ras: at_least(t.ras_ns).max(at_least(t.rc_ns).saturating_sub(rp)),
            rfc: at_least(t.rfc_ns),
            wr: at_least(t.wr_ns).max(WRITE_CYCLES),
            refresh: at_most(t.refresh_us),
            power_up: at_least(t.power_up_us * 1000.0),
        };
        let counted = [
            ("rcd_ns", cycles.rcd),
            ("rp_ns", cycles.rp),
            ("ras_ns and rc_ns", cycles.ras),
            ("rfc_ns", cycles.rfc),
            ("wr_ns", cycles.wr),
        ];
        if let Some((key, n)) = counted.into_iter().find(|(_, n)| *n > MOST_CYCLES) {
            return Err(format!(
                "the SDRAM's {key} takes {n} cycles of {mhz} MHz, but the shell counts only to {MOST_CYCLES}; lower the clock (--mhz)"
            ));
        }
        if cycles.refresh < FEWEST_REFRESH_CYCLES {
            return Err(format!(
                "the SDRAM needs a refresh every {} us, which is {} cycles of {mhz} MHz, but the shell needs at least \
                 {FEWEST_REFRESH_CYCLES}; raise the clock (--mhz)",
                t.refresh_us, cycles.refresh
            ));
        }
        if cycles.power_up.max(cycles.refresh) > MOST_WAIT_CYCLES {
            return Err(format!(
                "the SDRAM's power_up_us or refresh_us takes more than {MOST_WAIT_CYCLES} cycles of {mhz} MHz; lower the clock (--mhz)"
            ));
        }
        Ok(cycles)
    }
}

impl Pins {
    /// Returns the top module's ports for the chip, with their pins.
    pub(super) fn ports(&self) -> Vec<PortPin> {
        let mut ports = vec![PortPin::new("sdram_clk", &self.clk)];
        ports.extend(self.cke.iter().map(|pin| PortPin::new("sdram_cke", pin)));
        ports.extend(self.cs.iter().map(|pin| PortPin::new("sdram_cs_n", pin)));
        ports.extend([
            PortPin::new("sdram_ras_n", &self.ras),
            PortPin::new("sdram_cas_n", &self.cas),
            PortPin::new("sdram_we_n", &self.we),
        ]);
        ports.extend(PortPin::bits("sdram_a", &self.a));
        ports.extend(PortPin::bits("sdram_ba", &self.ba));
        ports.extend(PortPin::bits("sdram_dqm", &self.dqm));
        ports.extend(PortPin::bits("sdram_dq", &self.dq));
        ports
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::board::{Board, CoreMemory};

    fn chip() -> Sdram {
        match Board::load("ulx3s-85f").expect("it is there").memory {
            CoreMemory::Sdram(chip) => *chip,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn times_become_whole_cycles_that_hold_them() {
        let mut chip = chip();
        chip.timing = Timing {
            cas_latency: 2,
            most_mhz: 100.0,
            rcd_ns: 20.0,
            rp_ns: 21.0,
            ras_ns: 42.0,
            rc_ns: 81.0,
            rfc_ns: 66.0,
            wr_ns: 15.0,
            refresh_us: 7.8,
            power_up_us: 200.0,
        };
        let expected = Cycles { cas: 2, rcd: 1, rp: 2, ras: 3, rfc: 4, wr: 2, refresh: 390, power_up: 10_000 };
        assert_eq!(chip.cycles(50.0), Ok(expected));
        for mhz in [13.0, 33.3, 48.0, 66.7, 79.9] {
            let (cycles, t) = (chip.cycles(mhz).expect("they go together"), chip.timing);
            let ns = |cycles: u32| f64::from(cycles) * 1000.0 / mhz + 1e-3;
            for (n, least) in [
                (cycles.rcd, t.rcd_ns),
                (cycles.rp, t.rp_ns),
                (cycles.ras, t.ras_ns),
                (cycles.ras + cycles.rp, t.rc_ns),
            ] {
                assert!(ns(n) >= least && n > 0, "{mhz}: {n} cycles for {least} ns");
            }
            assert!(
                ns(cycles.refresh) <= t.refresh_us * 1000.0 + 1e-2 && ns(cycles.refresh + 1) > t.refresh_us * 1000.0
            );
        }
    }

    #[test]
    fn clocks_that_a_chip_cannot_have_are_refused_with_numbers() {
        let chip = chip();
        for (mhz, said) in [(120.0, "100 MHz at most"), (90.0, "up to 80 MHz"), (5.0, "39 cycles of 5 MHz")] {
            let error = chip.cycles(mhz).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
        let slow = Sdram { timing: Timing { rfc_ns: 400.0, ..chip.timing }, ..chip };
        let error = slow.cycles(50.0).unwrap_err();
        assert!(error.contains("rfc_ns takes 20 cycles"), "{error}");
    }
}
