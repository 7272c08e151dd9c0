//! The DRAM model of a board's memory: the values of [`DramSection`] that come nearest to its shell.
//!
//! The model has one server, and bursts and rows of one size; a shell has a state machine for each kind of memory.
//! `docs/compare.md` has the difference between model and shell on a network.

use super::{Board, CoreMemory, HostLink};
use crate::config::{DramSection, HwConfig};
use crate::flow::sdram::{PIPELINE_CYCLES, Sdram};
use crate::link::{ADDR_BYTES, CRC_BYTES, UART_BYTE_BITS, UART_MOST_CLOCKS};

const SIXTEENTHS: u32 = DramSection::SIXTEENTHS;

/// Cycles of a burst in block RAM in addition to its beats: arbitration, reading the RAM, ending the burst.
const BLOCK_BURST_CYCLES: u32 = 3;

impl Board {
    /// Returns the DRAM model of the board's memory at a clock. For a processor's memory it is the configuration's.
    ///
    /// # Errors
    /// If the memory does not work at this clock. The text begins with a key of the board's file.
    pub(super) fn dram(&self, config: &HwConfig, mhz: f64) -> Result<DramSection, String> {
        match &self.memory {
            CoreMemory::Host {} => self.behind_the_link(config, mhz),
            CoreMemory::Block { .. } | CoreMemory::Spram { .. } => Ok(DramSection {
                latency: 0,
                beat_sixteenths: SIXTEENTHS,
                shared: true,
                row_open_sixteenths: 0,
                burst_sixteenths: BLOCK_BURST_CYCLES * SIXTEENTHS,
            }),
            CoreMemory::Sdram(chip) => in_a_chip(chip, config, mhz).map_err(|what| format!("memory: {what}")),
            CoreMemory::Processor {} => Ok(config.dram),
        }
    }

    /// Models memory in the host: the time that the frames of a request and its answer take on the line. The host
    /// answers at once.
    ///
    /// Data of reads and writes go in different directions. The overhead of an answer to a read is used for both, as
    /// most bursts are reads.
    fn behind_the_link(&self, config: &HwConfig, mhz: f64) -> Result<DramSection, String> {
        let clocks = self.host.clocks_per_bit(mhz).map_err(|what| format!("host.{what}"))?;
        if clocks > UART_MOST_CLOCKS {
            return Err(format!(
                "host.baud: a bit takes {clocks} clock cycles, more than {UART_MOST_CLOCKS}; use a higher baud rate"
            ));
        }
        let bits = if matches!(self.host, HostLink::Uart { .. }) { UART_BYTE_BITS } else { 8 };
        let cycles = |bytes: u32| bits * clocks * bytes;
        // A request has kind, client, address and beats; an answer has kind, client, beats and status.
        let request = 1 + 1 + ADDR_BYTES + 1 + CRC_BYTES;
        let answer = 1 + 1 + 1 + 1 + CRC_BYTES;
        Ok(DramSection {
            latency: cycles(request as u32),
            beat_sixteenths: cycles(config.bus_bytes()) * SIXTEENTHS,
            shared: false,
            row_open_sixteenths: 0,
            burst_sixteenths: cycles(answer as u32) * SIXTEENTHS,
        })
    }
}

/// Models an SDRAM chip with one open row: a beat takes several of its words, and refreshes take their share of the
/// time.
fn in_a_chip(chip: &Sdram, config: &HwConfig, mhz: f64) -> Result<DramSection, String> {
    let cycles = chip.cycles(mhz)?;
    let geometry = chip.geometry();
    let words = (config.bus_bytes() / geometry.data_bytes()).max(1);
    let refresh = f64::from(cycles.rp + cycles.rfc + cycles.rcd) / f64::from(cycles.refresh);
    let rows = f64::from(DramSection::ROW_BYTES) / f64::from(geometry.columns * geometry.data_bytes());
    let open = f64::from(cycles.rp + cycles.rcd) * rows.max(1.0);
    Ok(DramSection {
        // A beat is complete when its words are.
        latency: words,
        beat_sixteenths: (f64::from(words * SIXTEENTHS) / (1.0 - refresh.min(0.5))).round() as u32,
        shared: true,
        row_open_sixteenths: (open * f64::from(SIXTEENTHS)).round() as u32,
        burst_sixteenths: (cycles.cas + PIPELINE_CYCLES) * SIXTEENTHS,
    })
}
