//! The link between a host and a board's shell: one table of frames for the shell's bridge and the driver.
//!
//! A link carries bytes both ways at once, over a UART (8 data bits, no parity, one stop bit) or SPI. The bytes form
//! frames: a kind ([`ToBoard`], [`ToHost`]), a body, and a CRC of kind and body ([`crc`]). Numbers and the CRC are
//! little-endian. Bytes of 0x00 and 0xff between frames mean nothing: over SPI the board sends zeros while it has
//! nothing to send, and a host that only listens sends 0xff, because a run of zeros resets the board (see "Resync").
//!
//! **Registers.** The board answers each [`ToBoard::WriteReg`] with [`ToHost::Done`], and each [`ToBoard::ReadReg`]
//! with [`ToHost::Value`]. A host waits for the answer before it sends the next register access. [`ToHost::Interrupt`]
//! reports that the core raised its interrupt.
//!
//! **Memory at the host** ([`MemorySide::Host`]): the board has no memory of its own. The core's bus reads and writes
//! arrive as [`ToHost::ReadRequest`] and [`ToHost::WriteRequest`], in the order in which the core issued them. The host
//! answers each with [`ToBoard::ReadData`] or [`ToBoard::WriteDone`]. Answers to one client's reads keep their order.
//! Requests and answers can come between the frames of register accesses, in both directions.
//!
//! **Memory on the board** ([`MemorySide::Board`]): the host writes it with [`ToBoard::WriteMemory`], answered by
//! [`ToHost::Done`], and reads it with [`ToBoard::ReadMemory`], answered by [`ToHost::MemoryData`]. A host treats these
//! as register accesses and uses them only while no command runs.
//!
//! **Errors.** The shell answers a frame with a wrong CRC or an unknown kind with [`ToHost::Refused`], and from then on
//! ignores everything until a resync. Data of a [`ToBoard::ReadData`] reach the core before the CRC is checked, so a
//! refusal spoils the running command.
//!
//! **Resync.** [`resync_bytes`] zero bytes in a row, more than any frame has, reset the shell and the core like
//! power-on. The shell then sends [`ToHost::Hello`], which can follow part of another frame. A host starts with a
//! resync, whatever state the board is in. A run of zeros twice as long resets twice. Zeros that came before count, so
//! the reset can come early. After the zeros a host sends [`GREETING_PAUSE_BYTES`] bytes of 0xff, which cover the time
//! of the greeting: a frame that arrives while the shell greets would spoil both.

pub mod spi;
pub mod stream;

pub use spi::{SpiBytes, SpiMaster};
pub use stream::ByteStream;

use crate::config::{HwConfig, PAGE_BYTES};

/// Version of the link, which [`ToHost::Hello`] carries.
pub const VERSION: u8 = 2;

/// Fewest cycles of a shell's clock per bit of a UART.
pub const UART_CLOCKS: u32 = 4;

/// Most cycles of a shell's clock per bit of a UART.
pub const UART_MOST_CLOCKS: u32 = 1 << 16;

/// Bits per byte on a UART's line, including start and stop bit.
pub const UART_BYTE_BITS: u32 = 10;

/// Fewest cycles of a shell's clock per cycle of SPI's clock.
pub const SPI_CLOCKS: u32 = 8;

/// Bytes of an address in a frame.
pub const ADDR_BYTES: usize = 5;

/// Bytes of the body of [`ToHost::Hello`].
pub const HELLO_BYTES: usize = 4;

/// Bytes of 0xff after the zeros of a resync: more than [`ToHost::Hello`] takes.
pub const GREETING_PAUSE_BYTES: usize = 16;

/// Bytes of the CRC.
pub const CRC_BYTES: usize = 2;

/// More bytes than a frame of any configuration has; so many zeros resync any board.
pub const MOST_FRAME_BYTES: usize = 1 << 13;

/// Where the memory is that the core reads and writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemorySide {
    /// At the host, reached over the link.
    Host,
    /// On the board.
    Board {
        /// Base-2 logarithm of its size in bytes.
        bytes_log: u8,
    },
}

impl MemorySide {
    /// Memory of `bytes` bytes, a power of two, on the board.
    pub fn on_board(bytes: u64) -> MemorySide {
        MemorySide::Board { bytes_log: bytes.max(1).ilog2() as u8 }
    }

    /// Its size in bytes, if it is on the board.
    pub fn bytes(self) -> Option<u64> {
        match self {
            MemorySide::Host => None,
            MemorySide::Board { bytes_log } => Some(1u64.checked_shl(bytes_log.into()).unwrap_or(u64::MAX)),
        }
    }
}

macro_rules! kinds {
    ($(#[$meta:meta])* $name:ident { $($(#[doc = $doc:literal])* $kind:ident = $code:literal,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $name { $($(#[doc = $doc])* $kind = $code,)* }

        impl $name {
            /// Every kind, by code.
            pub const ALL: &[$name] = &[$($name::$kind),*];

            /// The kind with this code.
            pub fn from_code(code: u8) -> Option<$name> {
                Self::ALL.iter().copied().find(|kind| *kind as u8 == code)
            }

            /// The name in generated sources.
            pub fn name(self) -> &'static str {
                match self { $($name::$kind => stringify!($kind),)* }
            }
        }
    };
}

kinds! {
    /// Kinds of frames from the host to the board.
    ToBoard {
        /// Writes a register. Body: address (2 bytes), value (4).
        WriteReg = 0x01,
        /// Reads a register. Body: address (2).
        ReadReg = 0x02,
        /// Answers a read request. Body: client (1), beats - 1 (1), status (1: 0 fine, 1 a bus error, which each beat
        /// then carries), the beats, each with its bytes in address order.
        ReadData = 0x03,
        /// Answers a write request. Body: status (1: 0 fine, 1 a bus error).
        WriteDone = 0x04,
        /// Writes memory on the board. Body: address (5), a multiple of a beat, beats - 1 (1), the beats.
        WriteMemory = 0x05,
        /// Reads memory on the board. Body: address (5), a multiple of a beat, beats - 1 (1).
        ReadMemory = 0x06,
    }
}

kinds! {
    /// Kinds of frames from the board to the host.
    ToHost {
        /// A register's value. Body: value (4).
        Value = 0x81,
        /// The write to a register, or to memory on the board, is done. No body.
        Done = 0x82,
        /// The core reads. Body: client (1: 0 fetch, 1 load), address (5), a multiple of a beat, beats - 1 (1).
        ReadRequest = 0x83,
        /// The core writes. Body: address (5), a multiple of a beat, beats - 1 (1), the first beat's write strobes, the
        /// beats, the last beat's write strobes. Strobes have a bit for each byte of a beat and take [`strobe_bytes`]
        /// bytes. Beats between the first and the last are written whole; for a single beat both strobes are the same.
        WriteRequest = 0x84,
        /// The core's interrupt rose. No body.
        Interrupt = 0x85,
        /// Memory on the board. Body: the requested beats.
        MemoryData = 0x86,
        /// The shell has reset. Body: [`VERSION`] (1), base-2 logarithm of a beat's bytes (1), where the memory is (1:
        /// 0 at the host, 1 on the board), base-2 logarithm of the bytes of memory on the board (1: 0 if there is
        /// none).
        Hello = 0x87,
        /// A frame was not understood. Body: reason (1: 1 wrong CRC, 2 unknown kind).
        Refused = 0x88,
    }
}

/// The body of a shell's [`ToHost::Hello`].
pub fn hello(config: &HwConfig, memory: MemorySide) -> [u8; HELLO_BYTES] {
    let (place, bytes_log) = match memory {
        MemorySide::Host => (0, 0),
        MemorySide::Board { bytes_log } => (1, bytes_log),
    };
    [VERSION, config.bus_bytes().ilog2() as u8, place, bytes_log]
}

/// Bytes of a beat's write strobes.
pub fn strobe_bytes(config: &HwConfig) -> usize {
    (config.bus_bytes() as usize).div_ceil(8)
}

/// Beats of the longest burst that the core requests.
pub fn longest_burst(config: &HwConfig) -> u32 {
    config.max_burst_beats.max(config.fetch_burst_beats())
}

/// Zero bytes in a row that resync the link: a power of two greater than the bytes of any frame.
pub fn resync_bytes(config: &HwConfig) -> usize {
    let beats = longest_burst(config) * config.bus_bytes();
    let longest = 1 + 1 + ADDR_BYTES + 2 * strobe_bytes(config) + beats.min(PAGE_BYTES) as usize + CRC_BYTES;
    (longest + 1).next_power_of_two()
}

/// Most beats that one [`ToBoard::WriteMemory`] or [`ToBoard::ReadMemory`] can carry.
pub fn memory_beats(config: &HwConfig) -> u32 {
    config.max_burst_beats
}

/// The CRC of a frame's kind and body: 16 bits, polynomial x^16 + x^12 + x^5 + 1, from 0xffff, most significant bit
/// first (CRC-16/IBM-3740).
pub fn crc(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0xffff, |crc, &byte| crc_step(crc, byte))
}

/// The CRC after one more byte.
pub fn crc_step(crc: u16, byte: u8) -> u16 {
    (0..8).fold(crc ^ u16::from(byte) << 8, |crc, _| if crc & 0x8000 != 0 { crc << 1 ^ 0x1021 } else { crc << 1 })
}

/// A frame: kind, body and CRC.
pub fn frame(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1 + body.len() + CRC_BYTES);
    bytes.push(kind);
    bytes.extend_from_slice(body);
    bytes.extend_from_slice(&crc(&bytes).to_le_bytes());
    bytes
}

/// An address as frames carry it.
pub fn addr_bytes(addr: u64) -> [u8; ADDR_BYTES] {
    let bytes = addr.to_le_bytes();
    [bytes[0], bytes[1], bytes[2], bytes[3], bytes[4]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crc_is_the_published_one() {
        // The check value of CRC-16/IBM-3740.
        assert_eq!(crc(b"123456789"), 0x29b1);
    }

    #[test]
    fn no_frame_begins_with_an_idle_byte_and_codes_differ() {
        let codes: Vec<u8> =
            ToBoard::ALL.iter().map(|kind| *kind as u8).chain(ToHost::ALL.iter().map(|kind| *kind as u8)).collect();
        assert!(codes.iter().all(|code| *code != 0 && *code != 0xff));
        assert!((1..codes.len()).all(|at| !codes[..at].contains(&codes[at])));
    }

    #[test]
    fn a_resync_is_longer_than_every_frame() {
        for (preset, _) in crate::config::PRESETS {
            let config = HwConfig::load(preset).expect("presets load");
            assert!(
                resync_bytes(&config) > (config.max_burst_beats * config.bus_bytes()).min(PAGE_BYTES) as usize + 11
            );
            assert!(resync_bytes(&config) <= MOST_FRAME_BYTES);
        }
    }
}
