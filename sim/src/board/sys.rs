//! The C interface of a board's bench; see `shim.cpp`.

use super::sdram::{Levels, SdramChip, Socket};
use libloading::Library;
use std::ffi::{CStr, c_char};
use std::path::Path;

/// The bench, known to C++ alone.
#[repr(C)]
struct Opaque {
    _private: [u8; 0],
}

/// The design did something wrong, which the chip's side tells.
const WRONG: u64 = 1 << 32;

/// A chip of SDRAM, and what the design last did wrong with it.
pub(super) struct Chip {
    pub(super) socket: Socket,
    wrong: Option<String>,
}

/// What the bench calls when the levels at an SDRAM's pins may have changed; gives what then stands on the data pins.
type SdramFollow = extern "C" fn(chip: *mut Chip, levels: *const Levels) -> u64;

extern "C" fn sdram_follow(chip: *mut Chip, levels: *const Levels) -> u64 {
    // SAFETY: the bench calls with the chip that it was given, from within a call that has the bench to itself, so that
    // nobody else has a reference to it; the levels are its own, laid out as `Levels` is, each `bool` 0 or 1.
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
    /// The SDRAM, which the bench has the address of.
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

// SAFETY: the bench holds no thread's own data between two calls, and all calls that change it need `&mut self`.
unsafe impl Send for Bench {}

impl Bench {
    /// Loads the library and powers the board on.
    pub(super) fn new(library: &Path, clocks_per_bit: u32, chip: Option<SdramChip>) -> Result<Bench, String> {
        let mut chip = chip.map(|chip| Box::new(Chip { socket: Socket::new(chip), wrong: None }));
        let address = chip.as_deref_mut().map_or(std::ptr::null_mut(), std::ptr::from_mut);
        // SAFETY: the library is our own build of `shim.cpp`; its set-up code touches nothing outside, and the types of
        // the functions are those of the shim's text, whose hash is part of the library's name.
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

    /// Puts bytes on the serial line to the board, behind those that wait; no cycle.
    pub(super) fn send(&mut self, bytes: &[u8]) {
        // SAFETY: `raw` lives until `drop`, so for the calls below; `bytes` are read during the call.
        unsafe { (self.send)(self.raw, bytes.as_ptr(), bytes.len() as u64) }
    }

    /// Runs until a byte has come, or for so many cycles after the last byte to the board has gone; gives the bytes that came.
    pub(super) fn run(&mut self, cycles: u64, bytes: &mut [u8]) -> Result<usize, String> {
        // SAFETY: see `send`; at most as many bytes are written as there is room for.
        let count = unsafe { (self.run)(self.raw, cycles, bytes.as_mut_ptr(), bytes.len() as u64) };
        self.check().map(|()| count as usize)
    }

    /// Sends bytes over SPI, with the board selected meanwhile, and puts those that come into their places.
    pub(super) fn exchange(&mut self, bytes: &mut [u8]) -> Result<(), String> {
        // SAFETY: see `send`; so many bytes are read and written.
        unsafe { (self.exchange)(self.raw, bytes.as_mut_ptr(), bytes.len() as u64) }
        self.check()
    }

    /// What went wrong in the last call that ran the design.
    fn check(&mut self) -> Result<(), String> {
        if let Some(wrong) = self.chip.as_mut().and_then(|chip| chip.wrong.take()) {
            return Err(wrong);
        }
        // SAFETY: see `send`; the message is a C string of the bench's that lives until the next call.
        let failure = unsafe { CStr::from_ptr((self.failure)(self.raw)) }.to_string_lossy();
        if failure.is_empty() { Ok(()) } else { Err(failure.into_owned()) }
    }

    /// Forgets the bytes that have come over the serial line.
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
