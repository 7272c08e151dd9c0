//! The C interface to the peripheral's bench in `shim.cpp`.

use super::Traffic;
use libloading::Library;
use std::path::Path;

/// The bench, opaque to Rust.
#[repr(C)]
struct Opaque {
    _private: [u8; 0],
}

/// A running peripheral with its buffer.
pub(super) struct Bench {
    raw: *mut Opaque,
    free: unsafe extern "C" fn(*mut Opaque),
    write_reg: unsafe extern "C" fn(*mut Opaque, u32, u32),
    read_reg: unsafe extern "C" fn(*mut Opaque, u32) -> u32,
    run: unsafe extern "C" fn(*mut Opaque, u64) -> bool,
    set_pressure: unsafe extern "C" fn(*mut Opaque, u32),
    cycles: unsafe extern "C" fn(*const Opaque) -> u64,
    idle: unsafe extern "C" fn(*const Opaque) -> bool,
    traffic: unsafe extern "C" fn(*const Opaque, *mut Traffic),
    failure: unsafe extern "C" fn(*mut u8, u64) -> u64,
    buffer: *mut [u8],
    _library: Library,
}

// SAFETY: the bench keeps no thread-local data between calls, and all calls that change it need `&mut self`.
unsafe impl Send for Bench {}

/// Parameters of the bench.
pub(super) struct Setting {
    pub from: u64,
    pub bytes: u64,
    pub answering: u64,
    pub pressure: u32,
    pub seed: u64,
}

impl Bench {
    /// Loads the library and resets the core.
    pub(super) fn new(library: &Path, setting: &Setting) -> Result<Bench, String> {
        // SAFETY: the library is our own build of `shim.cpp`. Its static initializers have no side effects outside the
        // library. The function types match the source, whose hash is part of the library's name.
        unsafe {
            let library = Library::new(library).map_err(|e| e.to_string())?;
            macro_rules! symbol {
                ($name:literal) => {
                    *library.get($name).map_err(|e| e.to_string())?
                };
            }
            let new: unsafe extern "C" fn(*mut u8, u64, u64, u64, u32, u64) -> *mut Opaque = symbol!(b"tw_axi_new");
            let mut bench = Bench {
                raw: std::ptr::null_mut(),
                free: symbol!(b"tw_axi_free"),
                write_reg: symbol!(b"tw_axi_write_reg"),
                read_reg: symbol!(b"tw_axi_read_reg"),
                run: symbol!(b"tw_axi_run"),
                set_pressure: symbol!(b"tw_axi_set_pressure"),
                cycles: symbol!(b"tw_axi_cycles"),
                idle: symbol!(b"tw_axi_idle"),
                traffic: symbol!(b"tw_axi_traffic"),
                failure: symbol!(b"tw_axi_failure"),
                buffer: Box::into_raw(vec![0u8; setting.bytes as usize].into_boxed_slice()),
                _library: library,
            };
            let Setting { from, bytes, answering, pressure, seed } = *setting;
            bench.raw = new(bench.buffer.cast(), from, bytes, answering, pressure, seed);
            bench.checked(()).map(|()| bench)
        }
    }

    /// Returns a call's result, or an error if the core violated the protocol during the call.
    fn checked<T>(&self, value: T) -> Result<T, String> {
        let mut text = [0; 256];
        // SAFETY: it writes at most as many bytes as the buffer holds.
        let count = unsafe { (self.failure)(text.as_mut_ptr(), text.len() as u64) };
        match count {
            0 => Ok(value),
            count => Err(String::from_utf8_lossy(&text[..count as usize]).into_owned()),
        }
    }

    /// Writes a register over the bus.
    pub(super) fn write_reg(&mut self, addr: u32, value: u32) -> Result<(), String> {
        // SAFETY: `raw` is valid until `drop`. The same holds for the calls below.
        unsafe { (self.write_reg)(self.raw, addr, value) }
        self.checked(())
    }

    /// Reads a register over the bus.
    pub(super) fn read_reg(&mut self, addr: u32) -> Result<u32, String> {
        // SAFETY: see `write_reg`.
        let value = unsafe { (self.read_reg)(self.raw, addr) };
        self.checked(value)
    }

    /// Runs until the interrupt is high, for at most `cycles`. Returns whether it is high.
    pub(super) fn run(&mut self, cycles: u64) -> Result<bool, String> {
        // SAFETY: see `write_reg`.
        let high = unsafe { (self.run)(self.raw, cycles) };
        self.checked(high)
    }

    /// Sets in how many of sixteen cycles a possible transfer is held back.
    pub(super) fn set_pressure(&mut self, pressure: u32) {
        // SAFETY: see `write_reg`.
        unsafe { (self.set_pressure)(self.raw, pressure) }
    }

    /// Returns the cycles since the reset.
    pub(super) fn cycles(&self) -> u64 {
        // SAFETY: see `write_reg`; the call changes nothing.
        unsafe { (self.cycles)(self.raw) }
    }

    /// Returns whether nothing is in flight on the memory bus.
    pub(super) fn is_idle(&self) -> bool {
        // SAFETY: see `write_reg`; the call changes nothing.
        unsafe { (self.idle)(self.raw) }
    }

    /// Returns what passed since the reset.
    pub(super) fn traffic(&self) -> Traffic {
        let mut traffic = Traffic::default();
        // SAFETY: see `write_reg`; `traffic` is a valid destination.
        unsafe { (self.traffic)(self.raw, &mut traffic) }
        traffic
    }

    /// Returns the size of the buffer in bytes.
    pub(super) fn buffer_bytes(&self) -> u64 {
        self.buffer.len() as u64
    }

    /// Returns the buffer.
    pub(super) fn buffer(&mut self) -> &mut [u8] {
        // SAFETY: we own the buffer, and the bench accesses it only in calls that need `&mut self`.
        unsafe { &mut *self.buffer }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // SAFETY: we own both and free them once, the bench first because it points to the buffer.
        unsafe {
            if !self.raw.is_null() {
                (self.free)(self.raw);
            }
            drop(Box::from_raw(self.buffer));
        }
    }
}
