//! Registers, interrupt and buffer through Linux's user-space interfaces.

use super::cache::Cache;
use super::error::{Fault, PeripheralError};
use super::find::{FoundCore, Names, find};
use super::interrupt::Interrupt;
use memmap2::{MmapOptions, MmapRaw};
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};
use tilewright_hw::device::memory_range;
use tilewright_hw::host::Registers;
use tilewright_hw::peripheral::{Peripheral, WINDOW_BYTES};

/// A core accessed through UIO, with a u-dma-buf buffer.
#[derive(Debug)]
pub struct Uio {
    found: FoundCore,
    name: String,
    registers: MmapRaw,
    buffer: MmapRaw,
    /// Held open and locked, so that no other program uses the buffer.
    _buffer_file: File,
    cache: Cache,
    interrupt: Interrupt,
    begun: Instant,
}

impl Uio {
    /// Finds a core by the names of its registers and its buffer, and opens both for this program only. System files
    /// are those below `root`, which is `/` except in tests.
    ///
    /// # Errors
    /// What is missing or cannot be opened, and what to do.
    pub fn open(root: &Path, names: &Names) -> Result<Uio, PeripheralError> {
        let found = find(root, names)?;
        let opened = open_alone(&found.file).and_then(|file| {
            // A second handle to the same file, which stays open.
            let interrupt = file.try_clone().map_err(|error| cannot_open(&found.file, &error))?;
            Uio::of_files(found, &file, interrupt)
        });
        opened.map_err(|fault| PeripheralError { device: names.to_string(), fault })
    }

    /// Like [`Uio::open`], with open files: the one that is mapped, and the one that delivers interrupts.
    pub(super) fn of_files(found: FoundCore, file: &File, interrupt: File) -> Result<Uio, Fault> {
        let buffer_file = open_alone(&found.buffer.file)?;
        Ok(Uio {
            name: found.names.to_string(),
            registers: map(&found.file, file, found.offset + WINDOW_BYTES)?,
            buffer: map(&found.buffer.file, &buffer_file, found.buffer.block.bytes)?,
            _buffer_file: buffer_file,
            cache: Cache::of(&found.buffer)?,
            interrupt: Interrupt(interrupt),
            begun: Instant::now(),
            found,
        })
    }

    /// What the system reports about it.
    pub fn found(&self) -> &FoundCore {
        &self.found
    }

    /// Pointer to a register.
    fn register(&self, addr: u32) -> io::Result<*mut u32> {
        let at = self.found.offset + u64::from(addr);
        if !addr.is_multiple_of(4) || u64::from(addr) >= WINDOW_BYTES || !at.is_multiple_of(4) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("there is no register at {addr:#x}")));
        }
        Ok(self.registers.as_mut_ptr().wrapping_add(at as usize).cast())
    }

    /// Pointer to some bytes of the buffer.
    fn place(&self, at: u64, len: usize) -> io::Result<*mut u8> {
        let range = memory_range(at, len as u64, self.found.buffer.block.bytes)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error.to_string()))?;
        Ok(self.buffer.as_mut_ptr().wrapping_add(range.start))
    }
}

/// Opens a file for this program only, as long as it stays open here.
pub(super) fn open_alone(path: &Path) -> Result<File, Fault> {
    let file = open(path, OpenOptions::new().read(true).write(true))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Fault::InUse { path: path.display().to_string() }),
        Err(TryLockError::Error(error)) => Err(cannot_open(path, &error)),
    }
}

pub(super) fn open(path: &Path, options: &OpenOptions) -> Result<File, Fault> {
    options.open(path).map_err(|error| cannot_open(path, &error))
}

pub(super) fn cannot_open(path: &Path, error: &io::Error) -> Fault {
    let path = path.display().to_string();
    match error.kind() {
        io::ErrorKind::PermissionDenied => Fault::Denied { path },
        _ => Fault::Open { path, reason: error.to_string() },
    }
}

fn map(path: &Path, file: &File, bytes: u64) -> Result<MmapRaw, Fault> {
    MmapOptions::new().len(bytes as usize).map_raw(file).map_err(|error| cannot_open(path, &error))
}

impl Registers for Uio {
    type Error = io::Error;

    fn read_reg(&mut self, addr: u32) -> io::Result<u32> {
        let place = self.register(addr)?;
        // SAFETY: the place is aligned and inside the registers' map, which lives as long as `self`.
        let value = unsafe { place.read_volatile() };
        // Later accesses stay after this read.
        fence(Ordering::SeqCst);
        Ok(value)
    }

    fn write_reg(&mut self, addr: u32, value: u32) -> io::Result<()> {
        let place = self.register(addr)?;
        // Earlier writes become visible to the core first.
        fence(Ordering::SeqCst);
        // SAFETY: as for reading; registers are not memory of this program.
        unsafe { place.write_volatile(value) };
        Ok(())
    }
}

impl Peripheral for Uio {
    fn name(&self) -> &str {
        &self.name
    }

    fn buffer_addr(&self) -> u64 {
        self.found.buffer.block.addr
    }

    fn buffer_bytes(&self) -> u64 {
        self.found.buffer.block.bytes
    }

    fn read_buffer(&mut self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        let place = self.place(at, bytes.len())?;
        self.cache.for_cpu(at..at + bytes.len() as u64)?;
        // SAFETY: so many bytes from `place` on are inside the buffer's map, which lives as long as `self`. The map is
        // not memory of this program's own, as `bytes` is, so the two do not overlap.
        unsafe { place.copy_to_nonoverlapping(bytes.as_mut_ptr(), bytes.len()) };
        Ok(())
    }

    fn write_buffer(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let place = self.place(at, bytes.len())?;
        let range = at..at + bytes.len() as u64;
        // The lines at the ends also hold other bytes, which the core may have written.
        self.cache.for_cpu(range.clone())?;
        // SAFETY: as for reading.
        unsafe { place.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        self.cache.for_device(range)
    }

    fn enable_interrupt(&mut self) -> io::Result<()> {
        self.interrupt.enable()
    }

    fn wait_for_interrupt(&mut self, timeout: Duration) -> io::Result<bool> {
        self.interrupt.wait(timeout)
    }

    fn now(&self) -> Duration {
        self.begun.elapsed()
    }
}
