//! What keeps the processor's caches and a buffer the same where the hardware does not: u-dma-buf's files `sync_for_cpu` and
//! `sync_for_device`.
//!
//! Bytes that the host writes go to memory at once, so that no line of the buffer is ever newer in a cache than in memory; what
//! it reads it reads anew. So whole lines can be thrown away and written back at any time while no command writes to them.

use super::error::Fault;
use super::find::Buffer;
use super::uio::open;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::ops::Range;

/// The longest line of a cache; ranges are of whole ones.
const LINE_BYTES: u64 = 64;
/// The bit of a command that asks for it; beside it the range's place (bits 63 to 32) and size (bits 31 to 4) and the direction
/// of the transfer (bits 3 and 2), of which 0 is both.
const COMMAND: u64 = 1;
/// The longest range of a command.
const MOST_BYTES: u64 = 1 << 31;

/// The caches' side of a buffer.
#[derive(Debug)]
pub(super) enum Cache {
    /// The hardware looks after it.
    Coherent,
    /// The system does what it is told.
    Told {
        /// Lets the processor read memory anew.
        for_cpu: File,
        /// Writes what the processor wrote to memory.
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

    /// The processor is going to read or write bytes of the buffer.
    pub fn for_cpu(&mut self, bytes: Range<u64>) -> io::Result<()> {
        match self {
            Cache::Coherent => Ok(()),
            Cache::Told { for_cpu, .. } => tell(for_cpu, bytes),
        }
    }

    /// The processor has written bytes of the buffer.
    pub fn for_device(&mut self, bytes: Range<u64>) -> io::Result<()> {
        match self {
            Cache::Coherent => Ok(()),
            Cache::Told { for_device, .. } => tell(for_device, bytes),
        }
    }
}

/// Tells of a range; the buffer's size is a whole number of pages, so that whole lines are inside it.
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
