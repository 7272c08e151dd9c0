//! The C interface to a board's bench in `shim.cpp`.

use super::sdram::{Levels, SdramChip, Socket};
use libloading::Library;
use std::ffi::{CStr, c_char};
use std::path::Path;

/// The bench, opaque to Rust.
#[repr(C)]
struct Opaque {
    _private: [u8; 0],
}

/// Flag that the design used the SDRAM chip incorrectly.
const WRONG: u64 = 1 << 32;

/// An SDRAM chip, and the first error in its use that is not reported yet.
pub(super) struct Chip {
    pub(super) socket: Socket,
    wrong: Option<String>,
}

/// Called when the levels at the SDRAM's pins can have changed. Returns the levels on the data pins.
type SdramFollow = extern "C" fn(chip: *mut Chip, levels: *const Levels) -> u64;

extern "C" fn sdram_follow(chip: *mut Chip, levels: *const Levels) -> u64 {
    // SAFETY: the bench passes the chip that it was given, from within a call that borrows the bench exclusively, so
    // there is no other reference to the chip. The levels are the bench's own, with the layout of `Levels` and each
    // `bool` 0 or 1.
    let (chip, levels) = unsafe { (&mut *chip, *levels) };
    let (dq, outcome) = chip.socket.follow(levels);
    match outcome {
        Ok(()) => dq.into(),
        Err(what) => {
            chip.wrong.get_or_insert(what);
            u64::from(dq) | WRONG
        }
    }
}

/// A running board.
pub(super) struct Bench {
    raw: *mut Opaque,
    /// The SDRAM. The bench holds its address.
    pub(super) chip: Option<Box<Chip>>,
    free: unsafe extern "C" fn(*mut Opaque),
    send: unsafe extern "C" fn(*mut Opaque, *const u8, u64),
    run: unsafe extern "C" fn(*mut Opaque, u64, *mut u8, u64) -> u64,
    exchange: unsafe extern "C" fn(*mut Opaque, *mut u8, u64),
    clear: unsafe extern "C" fn(*mut Opaque),
    cycles: unsafe extern "C" fn(*const Opaque) -> u64,
    failure: unsafe extern "C" fn(*const Opaque) -> *const c_char,
    _library: Library,
}

// SAFETY: the bench keeps no thread-local data between calls, and all calls that change it need `&mut self`.
unsafe impl Send for Bench {}

impl Bench {
    /// Loads the library and powers on the board.
    pub(super) fn new(library: &Path, clocks_per_bit: u32, chip: Option<SdramChip>) -> Result<Bench, String> {
        let mut chip = chip.map(|chip| Box::new(Chip { socket: Socket::new(chip), wrong: None }));
        let address = chip.as_deref_mut().map_or(std::ptr::null_mut(), std::ptr::from_mut);
        // SAFETY: the library is our own build of `shim.cpp`. Its static initializers have no side effects outside the
        // library. The function types match the source, whose hash is part of the library's name.
        unsafe {
            let library = Library::new(library).map_err(|e| e.to_string())?;
            macro_rules! symbol {
                ($name:literal) => {
                    *library.get($name).map_err(|e| e.to_string())?
                };
            }
            let new: unsafe extern "C" fn(u32, *mut Chip, SdramFollow) -> *mut Opaque = symbol!(b"tw_board_new");
            Ok(Bench {
                free: symbol!(b"tw_board_free"),
                send: symbol!(b"tw_board_send"),
                run: symbol!(b"tw_board_run"),
                exchange: symbol!(b"tw_board_exchange"),
                clear: symbol!(b"tw_board_clear"),
                cycles: symbol!(b"tw_board_cycles"),
                failure: symbol!(b"tw_board_failure"),
                raw: new(clocks_per_bit.max(1), address, sdram_follow),
                chip,
                _library: library,
            })
        }
    }

    /// Queues bytes on the serial line to the board, without running a cycle.
    pub(super) fn send(&mut self, bytes: &[u8]) {
        // SAFETY: `raw` is valid until `drop`, also for the calls below; `bytes` are only read during the call.
        unsafe { (self.send)(self.raw, bytes.as_ptr(), bytes.len() as u64) }
    }

    /// Runs until a byte arrives, or for `cycles` after the last byte to the board is sent. Returns the number of bytes
    /// received.
    pub(super) fn run(&mut self, cycles: u64, bytes: &mut [u8]) -> Result<usize, String> {
        // SAFETY: see `send`; it writes at most as many bytes as the slice holds.
        let count = unsafe { (self.run)(self.raw, cycles, bytes.as_mut_ptr(), bytes.len() as u64) };
        self.check().map(|()| count as usize)
    }

    /// Exchanges bytes over SPI with the board selected. Received bytes replace those sent.
    pub(super) fn exchange(&mut self, bytes: &mut [u8]) -> Result<(), String> {
        // SAFETY: see `send`; it reads and writes exactly the bytes of the slice.
        unsafe { (self.exchange)(self.raw, bytes.as_mut_ptr(), bytes.len() as u64) }
        self.check()
    }

    /// Returns an error if something went wrong in the last call that ran the design.
    fn check(&mut self) -> Result<(), String> {
        if let Some(wrong) = self.chip.as_mut().and_then(|chip| chip.wrong.take()) {
            return Err(wrong);
        }
        // SAFETY: see `send`; the message is a C string of the bench, valid until the next call.
        let failure = unsafe { CStr::from_ptr((self.failure)(self.raw)) }.to_string_lossy();
        if failure.is_empty() { Ok(()) } else { Err(failure.into_owned()) }
    }

    /// Discards the bytes received over the serial line.
    pub(super) fn clear(&mut self) {
        // SAFETY: see `send`.
        unsafe { (self.clear)(self.raw) }
    }

    /// Returns the cycles since power-on.
    pub(super) fn cycles(&self) -> u64 {
        // SAFETY: see `send`; the call changes nothing.
        unsafe { (self.cycles)(self.raw) }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // SAFETY: we own the bench and free it once.
        unsafe { (self.free)(self.raw) }
    }
}
