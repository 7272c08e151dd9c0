//! Keeps the processor's caches and a buffer coherent if the hardware does not, through u-dma-buf's files
//! `sync_for_cpu` and `sync_for_device`.
//!
//! Bytes that the host writes go to memory at once, so no cache line of the buffer is ever newer than memory. Bytes
//! that it reads are read from memory again. So whole lines can be discarded and written back at any time while no
//! command writes to them.

use super::error::Fault;
use super::find::Buffer;
use super::uio::open;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::ops::Range;

/// Length of the longest cache line; ranges consist of whole lines.
const LINE_BYTES: u64 = 64;
/// Bit that starts the operation. The same number holds the range's offset (bits 63 to 32) and size (bits 31 to 4) and
/// the direction of the transfer (bits 3 and 2, 0 for both).
const COMMAND: u64 = 1;
/// Longest range of one operation.
const MOST_BYTES: u64 = 1 << 31;

/// Cache maintenance of a buffer.
#[derive(Debug)]
pub(super) enum Cache {
    /// The hardware keeps the caches coherent.
    Coherent,
    /// The system does it on request.
    Told {
        /// Discards lines, so that the processor reads memory again.
        for_cpu: File,
        /// Writes the processor's changes to memory.
        for_device: File,
    },
}

impl Cache {
    pub fn of(buffer: &Buffer) -> Result<Cache, Fault> {
        if buffer.coherent {
            return Ok(Cache::Coherent);
        }
        let attribute = |name| open(&buffer.folder.join(name), OpenOptions::new().write(true));
        Ok(Cache::Told { for_cpu: attribute("sync_for_cpu")?, for_device: attribute("sync_for_device")? })
    }

    /// Prepares the caches for the processor to read or write bytes of the buffer.
    pub fn for_cpu(&mut self, bytes: Range<u64>) -> io::Result<()> {
        match self {
            Cache::Coherent => Ok(()),
            Cache::Told { for_cpu, .. } => tell(for_cpu, bytes),
        }
    }

    /// Writes bytes of the buffer that the processor has written to memory.
    pub fn for_device(&mut self, bytes: Range<u64>) -> io::Result<()> {
        match self {
            Cache::Coherent => Ok(()),
            Cache::Told { for_device, .. } => tell(for_device, bytes),
        }
    }
}

/// Starts the operation on a range. The buffer's size is a whole number of pages, so whole lines are inside it.
fn tell(file: &mut File, bytes: Range<u64>) -> io::Result<()> {
    let end = bytes.end.next_multiple_of(LINE_BYTES);
    let mut at = bytes.start / LINE_BYTES * LINE_BYTES;
    while at < end {
        let size = (end - at).min(MOST_BYTES);
        // One write is one command.
        file.write_all(format!("{:#x}\n", at << 32 | size | COMMAND).as_bytes())?;
        at += size;
    }
    Ok(())
}
