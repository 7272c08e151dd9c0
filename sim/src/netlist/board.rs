//! A netlist of a whole board, with the other end of its serial line as a byte stream and an SDRAM chip at its pins.

use super::circuit::Net;
use super::pads::SdramPads;
use super::{Circuit, NetlistError, Simulation};
use crate::board::SimulatedBoard;
use crate::board::sdram::SdramChip;
use std::collections::VecDeque;
use std::io;
use std::time::Duration;
use tilewright_hw::link::ByteStream;

/// Bits of a byte on the line: start, data and stop.
const FRAME_BITS: u32 = 10;

/// A simulated board whose design is a netlist. As with [`crate::board::VirtualBoard`], time passes only while the
/// caller waits for bytes.
pub struct NetlistBoard {
    simulation: Simulation,
    rx: Net,
    tx: Net,
    clocks: u32,
    clock_hz: f64,
    cycles: u64,
    to_board: VecDeque<u8>,
    from_board: VecDeque<u8>,
    sent: Sent,
    got: Got,
    sdram: Option<SdramPads>,
    /// The first error at the SDRAM's pins that is not reported yet.
    wrong: Option<String>,
}

/// The byte being sent to the board: its bits with the next one lowest, the bits left, and the cycles left of the
/// current bit.
#[derive(Default)]
struct Sent {
    bits: u32,
    left: u32,
    cycles: u32,
}

/// The byte being received from the board: its bits so far, the bits to read, the cycles until the next one, and
/// whether the line has been high since the last byte.
#[derive(Default)]
struct Got {
    bits: u32,
    left: u32,
    cycles: u32,
    rested: bool,
}

impl NetlistBoard {
    /// Powers on a design whose link takes `clocks_per_bit` cycles per bit. `clock_hz` converts timeouts into cycles.
    /// The top module must have the ports `clk`, `uart_rx` and `uart_tx`, and those of the SDRAM if there is a chip.
    ///
    /// # Errors
    /// [`NetlistError::Missing`] if it lacks one of these ports.
    pub fn new(
        circuit: Circuit,
        clocks_per_bit: u32,
        clock_hz: f64,
        chip: Option<SdramChip>,
    ) -> Result<NetlistBoard, NetlistError> {
        let one = |name: &str| match circuit.port(name) {
            Some([net]) => Ok(*net),
            _ => Err(NetlistError::Missing(format!("1-bit port {name}"))),
        };
        let (rx, tx) = (one("uart_rx")?, one("uart_tx")?);
        let mut sdram = chip.map(|chip| SdramPads::new(&circuit, chip)).transpose()?;
        let mut simulation = Simulation::new(circuit);
        // An idle line is high.
        simulation.set(rx, true);
        simulation.settle();
        let wrong = sdram.as_mut().and_then(|sdram| sdram.follow(&mut simulation).err());
        Ok(NetlistBoard {
            simulation,
            rx,
            tx,
            clocks: clocks_per_bit.max(1),
            clock_hz,
            cycles: 0,
            to_board: VecDeque::new(),
            from_board: VecDeque::new(),
            sent: Sent::default(),
            got: Got::default(),
            sdram,
            wrong,
        })
    }

    /// Returns the clock cycles since power-on.
    pub fn cycles(&self) -> u64 {
        self.cycles
    }

    /// Returns the number on a port, lowest bit first; 0 if there is no such port.
    #[cfg(test)]
    pub(super) fn port(&self, name: &str) -> u64 {
        self.simulation.circuit().port(name).map_or(0, |nets| self.simulation.number(nets))
    }

    /// Drives the line to the board for the next cycle.
    fn drive(&mut self) {
        let sent = &mut self.sent;
        if sent.cycles > 0 {
            sent.cycles -= 1;
            return;
        }
        if sent.left == 0 {
            let Some(byte) = self.to_board.pop_front() else { return };
            *sent = Sent { bits: u32::from(byte) << 1 | 1 << (FRAME_BITS - 1), left: FRAME_BITS, cycles: 0 };
        }
        self.simulation.set(self.rx, sent.bits & 1 == 1);
        *sent = Sent { bits: sent.bits >> 1, left: sent.left - 1, cycles: self.clocks - 1 };
    }

    /// Samples the line from the board, each bit in its middle.
    fn sample(&mut self) {
        let (line, got) = (self.simulation.get(self.tx), &mut self.got);
        if got.left == 0 {
            if line {
                got.rested = true;
            } else if std::mem::take(&mut got.rested) {
                (got.left, got.cycles) = (FRAME_BITS - 1, self.clocks + self.clocks / 2);
            }
            return;
        }
        got.cycles -= 1;
        if got.cycles > 0 {
            return;
        }
        (got.cycles, got.left) = (self.clocks, got.left - 1);
        if got.left > 0 {
            got.bits = got.bits >> 1 | u32::from(line) << 7;
        } else {
            self.from_board.push_back(got.bits as u8);
            *got = Got { rested: line, ..Got::default() };
        }
    }

    fn clock(&mut self, level: bool) {
        self.simulation.clock(level);
        if let Some(Err(wrong)) = self.sdram.as_mut().map(|sdram| sdram.follow(&mut self.simulation)) {
            self.wrong.get_or_insert(wrong);
        }
    }

    fn tick(&mut self) {
        self.drive();
        self.clock(false);
        self.clock(true);
        self.cycles += 1;
        self.sample();
    }
}

impl SimulatedBoard for NetlistBoard {
    fn sdram_mut(&mut self) -> Option<&mut SdramChip> {
        self.sdram.as_mut().map(SdramPads::chip_mut)
    }
}

impl ByteStream for NetlistBoard {
    fn name(&self) -> &str {
        "the netlist"
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.to_board.extend(bytes);
        Ok(())
    }

    fn receive(&mut self, bytes: &mut [u8], timeout: Duration) -> io::Result<usize> {
        let cycles = (timeout.as_secs_f64() * self.clock_hz) as u64;
        let mut quiet = 0;
        while self.from_board.is_empty() && quiet < cycles && self.wrong.is_none() {
            // The timeout starts once the last byte to the board is on the line.
            quiet = if self.to_board.is_empty() { quiet + 1 } else { 0 };
            self.tick();
        }
        if let Some(wrong) = self.wrong.take() {
            return Err(io::Error::other(wrong));
        }
        let count = bytes.len().min(self.from_board.len());
        for (byte, came) in bytes.iter_mut().zip(self.from_board.drain(..count)) {
            *byte = came;
        }
        Ok(count)
    }

    fn now(&self) -> Duration {
        Duration::from_secs_f64(self.cycles as f64 / self.clock_hz)
    }

    fn clear(&mut self) -> io::Result<()> {
        self.from_board.clear();
        Ok(())
    }
}
