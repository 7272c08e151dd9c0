//! Clears what a session leaves on a device that the next session gets too.

use std::ops::Range;

use tilewright_hw::config::Mem;
use tilewright_hw::device::{Base, Command, Device, DeviceError};
use tilewright_hw::isa::{INSN_BYTES, Insn, Load, encode};

/// Bytes of the zeros that scratchpads are loaded with.
const ZEROS: u32 = 1024;
/// Where the stream is, after the zeros.
const STREAM: u64 = ZEROS as u64;
/// Instructions in memory at a time, so that they fit the smallest memory of a board, 4 KiB.
const INSNS: usize = 64;
/// Most ranges that are kept apart.
const RANGES: usize = 64;

/// Ranges of device memory that a session wrote, or that its commands could write.
#[derive(Debug, Default)]
pub(super) struct Touched(Vec<Range<u64>>);

impl Touched {
    /// Adds a range.
    pub fn add(&mut self, addr: u64, len: u64) {
        let mut range = addr..addr.saturating_add(len);
        // Programs are loaded piece by piece, so most ranges touch one that is there.
        self.0.retain(|other| {
            let apart = other.end < range.start || range.end < other.start;
            if !apart {
                range = range.start.min(other.start)..range.end.max(other.end);
            }
            apart
        });
        self.0.push(range);
        if self.0.len() > RANGES {
            let start = self.0.iter().map(|range| range.start).min().unwrap_or_default();
            let end = self.0.iter().map(|range| range.end).max().unwrap_or_default();
            self.0.clear();
            self.0.push(start..end);
        }
    }

    /// Adds what a command can write.
    pub fn add_command(&mut self, command: &Command) {
        command.bases.iter().for_each(|base| self.add(base.addr, base.limit));
    }
}

/// Writes zeros to the ranges and to all scratchpads.
///
/// # Errors
/// The device's, or a text if it traps.
pub(super) fn scrub(device: &mut dyn Device, touched: &Touched) -> Result<(), DeviceError> {
    let size = device.memory_bytes();
    for range in &touched.0 {
        clear(device, range.start.min(size)..range.end.min(size))?;
    }
    let stream = scratchpad_loads(device)?;
    let bases = vec![Base { addr: 0, limit: STREAM }];
    clear(device, 0..STREAM)?;
    for insns in stream.chunks(INSNS) {
        let bytes = insns.concat();
        device.write(STREAM, &bytes)?;
        device.clean_cache(0, STREAM + bytes.len() as u64)?;
        let command =
            Command { stream_addr: STREAM, insns: insns.len() as u32, bases: bases.clone(), cycle_limit: None };
        if let Some(trap) = device.run(&command)?.trap {
            return Err(failed(device, format!("the program that clears its scratchpads trapped: {trap}")));
        }
    }
    clear(device, STREAM..STREAM + (INSNS * INSN_BYTES) as u64)
}

fn clear(device: &mut dyn Device, range: Range<u64>) -> Result<(), DeviceError> {
    let zeros = vec![0; (range.end - range.start).min(crate::PIECE as u64) as usize];
    let mut addr = range.start;
    while addr < range.end {
        let len = (range.end - addr).min(zeros.len() as u64);
        device.write(addr, &zeros[..len as usize])?;
        device.clean_cache(addr, len)?;
        addr += len;
    }
    Ok(())
}

/// The instructions that load zeros into every entry of every scratchpad.
fn scratchpad_loads(device: &dyn Device) -> Result<Vec<Vec<u8>>, DeviceError> {
    let config = device.config();
    let mut stream = Vec::new();
    for mem in Mem::ALL {
        let entry_bytes = config.entry_bytes(mem);
        let step = (ZEROS / entry_bytes).max(1);
        for entry in (0..config.entries(mem)).step_by(step as usize) {
            let entries = step.min(config.entries(mem) - entry);
            let load = Load { mem, entry, row_bytes: entries * entry_bytes, ..Load::default() };
            let bytes = encode(&Insn::new(load), config);
            stream.push(bytes.map_err(|error| failed(device, error.to_string()))?.to_vec());
        }
    }
    Ok(stream)
}

fn failed(device: &dyn Device, reason: String) -> DeviceError {
    DeviceError::Tool {
        tool: device.name().into(),
        reason,
        remedy: "reset the board and start the server again".into(),
    }
}
