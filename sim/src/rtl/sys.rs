//! The C interface to the bench in `shim.cpp`.

use crate::dram::{Burst, Direction, Dram};
use libloading::Library;
use std::convert::Infallible;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use tilewright_hw::host::Registers;
use tilewright_hw::interrupt;

/// The bench, opaque to Rust.
#[repr(C)]
struct Opaque {
    _private: [u8; 0],
}

type Request = extern "C" fn(*mut c_void, u64, u64, u32, u32, *mut Burst);
type Beat = extern "C" fn(*const Burst, u64) -> u64;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RunEnd {
    /// The device is idle or trapped.
    Stopped,
    /// The limit came first.
    Limit,
    /// The work of this thread is to stop.
    Interrupted,
    /// An assertion of the design or a check of the bench failed.
    Failed(String),
}

/// A running design with its memory and the timing model of the memory.
pub(super) struct Bench {
    raw: *mut Opaque,
    free: unsafe extern "C" fn(*mut Opaque),
    reset: unsafe extern "C" fn(*mut Opaque),
    write_reg: unsafe extern "C" fn(*mut Opaque, u32, u32),
    read_reg: unsafe extern "C" fn(*mut Opaque, u32) -> u32,
    run: unsafe extern "C" fn(*mut Opaque, u64, Option<GoesOn>) -> c_int,
    record: unsafe extern "C" fn(*mut Opaque, bool),
    events: unsafe extern "C" fn(*mut Opaque, *mut u64) -> *const u64,
    shares: unsafe extern "C" fn(*mut Opaque, u32, *mut u64) -> *const u64,
    failure: unsafe extern "C" fn(*mut Opaque) -> *const c_char,
    take_bytes: unsafe extern "C" fn(*mut Opaque, *mut u64, *mut u64),
    read_entries: unsafe extern "C" fn(*mut Opaque, u32, u32, u32, u32, *mut u8),
    has_direct_edges: unsafe extern "C" fn(*mut Opaque) -> bool,
    dram: *mut Dram,
    memory: *mut [u8],
    library: Library,
}

// SAFETY: the bench keeps no thread-local data between calls, and all calls need `&mut self`.
unsafe impl Send for Bench {}

extern "C" fn request(context: *mut c_void, cycle: u64, addr: u64, beats: u32, write: u32, burst: *mut Burst) {
    let direction = if write != 0 { Direction::Write } else { Direction::Read };
    // SAFETY: `context` is the model that `Bench::new` passed, which nothing else accesses during a call of the bench,
    // and `burst` is a valid destination in the caller.
    unsafe { *burst = (*context.cast::<Dram>()).request(cycle, addr, beats, direction) }
}

/// Whether the work of this thread goes on.
type GoesOn = extern "C" fn() -> c_int;

extern "C" fn goes_on() -> c_int {
    interrupt::check().is_ok().into()
}

extern "C" fn beat(burst: *const Burst, n: u64) -> u64 {
    // SAFETY: the bench passes one of its bursts, which `request` has filled.
    unsafe { (*burst).beat(n) }
}

impl Bench {
    /// Loads the library and resets the design.
    pub(super) fn new(library: &Path, memory_bytes: u64, dram: Dram, waves: Option<&Path>) -> Result<Bench, String> {
        let waves = CString::new(waves.map(|p| p.display().to_string()).unwrap_or_default())
            .map_err(|_| "the path for waves contains a zero byte".to_string())?;
        // SAFETY: the library is our own build of `shim.cpp`. Its static initializers have no side effects outside the
        // library. The function types match the source, whose hash is part of the library's name.
        unsafe {
            let library = Library::new(library).map_err(|e| e.to_string())?;
            macro_rules! symbol {
                ($name:literal) => {
                    *library.get($name).map_err(|e| e.to_string())?
                };
            }
            let new: unsafe extern "C" fn(*mut u8, u64, Request, *mut c_void, Beat, *const c_char) -> *mut Opaque =
                symbol!(b"tw_new");
            let mut bench = Bench {
                raw: std::ptr::null_mut(),
                free: symbol!(b"tw_free"),
                reset: symbol!(b"tw_reset"),
                write_reg: symbol!(b"tw_write_reg"),
                read_reg: symbol!(b"tw_read_reg"),
                run: symbol!(b"tw_run"),
                record: symbol!(b"tw_record"),
                events: symbol!(b"tw_events"),
                shares: symbol!(b"tw_shares"),
                failure: symbol!(b"tw_failure"),
                take_bytes: symbol!(b"tw_take_bytes"),
                read_entries: symbol!(b"tw_read_entries"),
                has_direct_edges: symbol!(b"tw_has_direct_edges"),
                dram: Box::into_raw(Box::new(dram)),
                memory: Box::into_raw(vec![0u8; memory_bytes as usize].into_boxed_slice()),
                library,
            };
            bench.raw = new(bench.memory.cast(), memory_bytes, request, bench.dram.cast(), beat, waves.as_ptr());
            Ok(bench)
        }
    }

    /// Returns device memory.
    pub(super) fn memory(&self) -> &[u8] {
        // SAFETY: we own the buffer, and the bench writes to it only in calls that need `&mut self`.
        unsafe { &*self.memory }
    }

    /// Returns device memory for writing.
    pub(super) fn memory_mut(&mut self) -> &mut [u8] {
        // SAFETY: the same as for `memory`.
        unsafe { &mut *self.memory }
    }

    /// Makes the memory model forget past requests.
    pub(super) fn reset_dram(&mut self) {
        // SAFETY: we own the model; see `request`.
        unsafe { (*self.dram).reset() }
    }

    /// Resets the design.
    pub(super) fn reset(&mut self) {
        self.reset_dram();
        // SAFETY: `raw` is valid until `drop`. The same holds for the calls below.
        unsafe { (self.reset)(self.raw) }
    }

    /// Writes a register. Takes one cycle.
    pub(super) fn write_reg(&mut self, addr: u32, value: u32) {
        // SAFETY: see `reset`.
        unsafe { (self.write_reg)(self.raw, addr, value) }
    }

    /// Reads a register. Takes no cycle.
    pub(super) fn read_reg(&mut self, addr: u32) -> u32 {
        // SAFETY: see `reset`.
        unsafe { (self.read_reg)(self.raw, addr) }
    }

    /// Returns whether a cycle is a single call of the model's function for clock edges.
    pub(super) fn has_direct_edges(&self) -> bool {
        // SAFETY: see `reset`; the model is not evaluated.
        unsafe { (self.has_direct_edges)(self.raw) }
    }

    /// Turns the recording of starts and retirements on or off.
    pub(super) fn record(&mut self, on: bool) {
        // SAFETY: see `reset`.
        unsafe { (self.record)(self.raw, on) }
    }

    /// Returns the starts and retirements of the last run, in order. Each is the cycle shifted left by 3, plus twice
    /// the unit's number, plus 1 for a retirement.
    pub(super) fn events(&mut self) -> &[u64] {
        let mut count = 0;
        // SAFETY: see `reset`; the bench keeps `count` events until the next call that needs `&mut self`.
        unsafe {
            let first = (self.events)(self.raw, &mut count);
            if count == 0 { &[] } else { std::slice::from_raw_parts(first, count as usize) }
        }
    }

    /// Returns the cycles of the last run, by instruction of a unit and by state: sixteen numbers per instruction.
    /// Empty if recording was off.
    pub(super) fn shares(&mut self, unit: u32) -> &[[u64; 16]] {
        let mut count = 0;
        // SAFETY: see `reset`; the bench keeps `count` numbers until the next call that needs `&mut self`.
        unsafe {
            let first = (self.shares)(self.raw, unit, &mut count);
            if count == 0 { &[] } else { std::slice::from_raw_parts(first, count as usize).as_chunks().0 }
        }
    }

    /// Runs until the device raises its interrupt, for at most `limit` cycles, or until the work of this thread is to
    /// stop.
    pub(super) fn run(&mut self, limit: u64) -> RunEnd {
        self.run_while(limit, Some(goes_on))
    }

    /// Runs until the device raises its interrupt, for at most `limit` cycles.
    pub(super) fn run_whole(&mut self, limit: u64) -> RunEnd {
        self.run_while(limit, None)
    }

    fn run_while(&mut self, limit: u64, goes_on: Option<GoesOn>) -> RunEnd {
        // SAFETY: see `reset`; the message is a C string of the bench, valid until the next call.
        unsafe {
            match (self.run)(self.raw, limit, goes_on) {
                0 => RunEnd::Stopped,
                1 => RunEnd::Limit,
                3 => RunEnd::Interrupted,
                _ => RunEnd::Failed(CStr::from_ptr((self.failure)(self.raw)).to_string_lossy().into_owned()),
            }
        }
    }

    /// Returns the bytes of `count` entries of `bytes` bytes each. The caller must check the range.
    pub(super) fn read_entries(&mut self, mem: u32, first: u32, count: u32, bytes: u32) -> Vec<u8> {
        let mut to = vec![0; count as usize * bytes as usize];
        // SAFETY: see `reset`; `to` has room for all requested bytes.
        unsafe { (self.read_entries)(self.raw, mem, first, count, bytes, to.as_mut_ptr()) }
        to
    }

    /// Writes the profile of an instrumented library.
    pub(super) fn dump_profile(&mut self) -> Result<(), String> {
        // SAFETY: the function takes no arguments and returns nothing; see `new` for the library.
        unsafe {
            let dump: unsafe extern "C" fn() = *self.library.get(b"tw_dump_profile").map_err(|e| e.to_string())?;
            dump();
        }
        Ok(())
    }

    /// Returns the bytes read and written since the last call.
    pub(super) fn take_bytes(&mut self) -> (u64, u64) {
        let (mut read, mut written) = (0, 0);
        // SAFETY: see `reset`; both are valid destinations.
        unsafe { (self.take_bytes)(self.raw, &mut read, &mut written) }
        (read, written)
    }
}

impl Registers for Bench {
    type Error = Infallible;

    fn read_reg(&mut self, addr: u32) -> Result<u32, Infallible> {
        Ok(Bench::read_reg(self, addr))
    }

    fn write_reg(&mut self, addr: u32, value: u32) -> Result<(), Infallible> {
        Bench::write_reg(self, addr, value);
        Ok(())
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // SAFETY: we own all three and free them once, the bench first because it points to the others.
        unsafe {
            if !self.raw.is_null() {
                (self.free)(self.raw);
            }
            drop(Box::from_raw(self.dram));
            drop(Box::from_raw(self.memory));
        }
    }
}
