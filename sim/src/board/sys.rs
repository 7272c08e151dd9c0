//! The C interface of a board's bench; see `shim.cpp`.

use libloading::Library;
use std::ffi::{CStr, c_char};
use std::path::Path;

/// The bench, known to C++ alone.
#[repr(C)]
struct Opaque {
    _private: [u8; 0],
}

/// A running board.
pub(super) struct Bench {
    raw: *mut Opaque,
    free: unsafe extern "C" fn(*mut Opaque),
    send: unsafe extern "C" fn(*mut Opaque, *const u8, u64),
    run: unsafe extern "C" fn(*mut Opaque, u64, *mut u8, u64) -> u64,
    clear: unsafe extern "C" fn(*mut Opaque),
    cycles: unsafe extern "C" fn(*const Opaque) -> u64,
    failure: unsafe extern "C" fn(*const Opaque) -> *const c_char,
    _library: Library,
}

// SAFETY: the bench holds no thread's own data between two calls, and all calls that change it need `&mut self`.
unsafe impl Send for Bench {}

impl Bench {
    /// Loads the library and powers the board on.
    pub(super) fn new(library: &Path, clocks_per_bit: u32) -> Result<Bench, String> {
        // SAFETY: the library is our own build of `shim.cpp`; its set-up code touches nothing outside, and the types of
        // the functions are those of the shim's text, whose hash is part of the library's name.
        unsafe {
            let library = Library::new(library).map_err(|e| e.to_string())?;
            macro_rules! symbol {
                ($name:literal) => {
                    *library.get($name).map_err(|e| e.to_string())?
                };
            }
            let new: unsafe extern "C" fn(u32) -> *mut Opaque = symbol!(b"tw_board_new");
            Ok(Bench {
                free: symbol!(b"tw_board_free"),
                send: symbol!(b"tw_board_send"),
                run: symbol!(b"tw_board_run"),
                clear: symbol!(b"tw_board_clear"),
                cycles: symbol!(b"tw_board_cycles"),
                failure: symbol!(b"tw_board_failure"),
                raw: new(clocks_per_bit.max(1)),
                _library: library,
            })
        }
    }

    /// Puts bytes on the line to the board, behind those that wait; no cycle.
    pub(super) fn send(&mut self, bytes: &[u8]) {
        // SAFETY: `raw` lives until `drop`, so for the calls below; `bytes` are read during the call.
        unsafe { (self.send)(self.raw, bytes.as_ptr(), bytes.len() as u64) }
    }

    /// Runs until a byte has come, or for so many cycles after the last byte to the board has gone; gives the bytes that came.
    pub(super) fn run(&mut self, cycles: u64, bytes: &mut [u8]) -> Result<usize, String> {
        // SAFETY: see `send`; at most as many bytes are written as there is room for, and the message is a C string of the
        // bench's that lives until the next call.
        unsafe {
            let count = (self.run)(self.raw, cycles, bytes.as_mut_ptr(), bytes.len() as u64);
            let failure = CStr::from_ptr((self.failure)(self.raw)).to_string_lossy();
            if failure.is_empty() { Ok(count as usize) } else { Err(failure.into_owned()) }
        }
    }

    /// Forgets the bytes that have come.
    pub(super) fn clear(&mut self) {
        // SAFETY: see `send`.
        unsafe { (self.clear)(self.raw) }
    }

    /// Cycles since power-on.
    pub(super) fn cycles(&self) -> u64 {
        // SAFETY: see `send`; nothing is changed.
        unsafe { (self.cycles)(self.raw) }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // SAFETY: it is ours and given back once.
        unsafe { (self.free)(self.raw) }
    }
}
