//! Parses a board's frames from a stream of bytes.

use super::error::Fault;
use super::session::Hello;
use tilewright_hw::config::HwConfig;
use tilewright_hw::link::{
    ADDR_BYTES, CRC_BYTES, HELLO_BYTES, MOST_FRAME_BYTES, MemorySide, ToHost, crc, longest_burst, strobe_bytes,
};

/// Idle bytes in a row between frames after which the line counts as broken. There are more than in a frame, because
/// SPI passes on idle bytes that can belong to a frame.
const MOST_IDLE: usize = 2 * MOST_FRAME_BYTES;

/// A frame from a board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// A register's value.
    Value(u32),
    /// A write is done.
    Done,
    /// The core reads.
    Read {
        /// The client, which the answer must name.
        client: u8,
        /// The address.
        addr: u64,
        /// Beats.
        beats: usize,
    },
    /// The core writes.
    Write {
        /// The address.
        addr: u64,
        /// The first beat's strobes, then the last's.
        strobes: [u64; 2],
        /// The beats.
        data: Vec<u8>,
    },
    /// The interrupt rose.
    Interrupt,
    /// Memory on the board.
    Memory(Vec<u8>),
    /// The shell has reset.
    Hello(Hello),
    /// A frame was refused for this reason.
    Refused(u8),
}

impl Frame {
    /// The name in messages.
    pub fn name(&self) -> &'static str {
        let kind = match self {
            Frame::Value(_) => ToHost::Value,
            Frame::Done => ToHost::Done,
            Frame::Read { .. } => ToHost::ReadRequest,
            Frame::Write { .. } => ToHost::WriteRequest,
            Frame::Interrupt => ToHost::Interrupt,
            Frame::Memory(_) => ToHost::MemoryData,
            Frame::Hello(_) => ToHost::Hello,
            Frame::Refused(_) => ToHost::Refused,
        };
        kind.name()
    }
}

/// Received bytes that do not form a whole frame yet.
#[derive(Debug, Clone)]
pub struct Frames {
    beat_bytes: usize,
    strobe_bytes: usize,
    most_beats: usize,
    waiting: Vec<u8>,
    /// Number of bytes of `waiting` that are consumed.
    taken: usize,
    idle: usize,
    /// Requested beats of memory.
    pub(super) memory_beats: Option<usize>,
}

impl Frames {
    /// An empty buffer for a board of this configuration.
    pub fn new(config: &HwConfig) -> Frames {
        Frames {
            beat_bytes: config.bus_bytes() as usize,
            strobe_bytes: strobe_bytes(config),
            most_beats: longest_burst(config) as usize,
            waiting: Vec::new(),
            taken: 0,
            idle: 0,
            memory_beats: None,
        }
    }

    /// Discards everything.
    pub fn clear(&mut self) {
        self.waiting.clear();
        (self.taken, self.idle, self.memory_beats) = (0, 0, None);
    }

    /// Appends received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.waiting.drain(..self.taken);
        self.taken = 0;
        self.waiting.extend_from_slice(bytes);
    }

    /// The next frame, if it is complete.
    ///
    /// # Errors
    /// [`Fault::BadFrame`]; the start of the next frame is then unknown.
    pub fn take(&mut self) -> Result<Option<Frame>, Fault> {
        let rest = &self.waiting[self.taken..];
        let idle = rest.iter().take_while(|byte| matches!(byte, 0 | 0xff)).count();
        self.taken += idle;
        self.idle += idle;
        if self.idle > MOST_IDLE {
            return Err(bad(format!("{} idle bytes (0x00 or 0xff) in a row", self.idle)));
        }
        let rest = &rest[idle..];
        let Some(&code) = rest.first() else { return Ok(None) };
        self.idle = 0;
        let kind = ToHost::from_code(code).ok_or_else(|| bad(format!("its kind {code:#04x} is unknown")))?;
        let Some(body_bytes) = self.body_bytes(kind, &rest[1..])? else { return Ok(None) };
        let Some(sum) = rest.get(1 + body_bytes..1 + body_bytes + CRC_BYTES) else { return Ok(None) };
        if crc(&rest[..1 + body_bytes]).to_le_bytes() != sum {
            return Err(bad(format!("the CRC of {} is wrong", kind.name())));
        }
        let frame = self.frame(kind, &rest[1..1 + body_bytes])?;
        self.taken += 1 + body_bytes + CRC_BYTES;
        if kind == ToHost::MemoryData {
            self.memory_beats = None;
        }
        Ok(Some(frame))
    }

    /// Bytes of a frame's body; `None` if too little of it has arrived to tell.
    fn body_bytes(&self, kind: ToHost, body: &[u8]) -> Result<Option<usize>, Fault> {
        // The number of beats follows the address, and in read requests the client.
        let beats_at = match kind {
            ToHost::Done | ToHost::Interrupt => return Ok(Some(0)),
            ToHost::Refused => return Ok(Some(1)),
            ToHost::Hello => return Ok(Some(HELLO_BYTES)),
            ToHost::Value => return Ok(Some(4)),
            ToHost::MemoryData => {
                let beats = self.memory_beats.ok_or_else(|| bad("it is memory data that was not requested".into()))?;
                return Ok(Some(beats * self.beat_bytes));
            }
            ToHost::ReadRequest => 1 + ADDR_BYTES,
            ToHost::WriteRequest => ADDR_BYTES,
        };
        let Some(&beats) = body.get(beats_at) else { return Ok(None) };
        let beats = usize::from(beats) + 1;
        if beats > self.most_beats {
            return Err(bad(format!("a {} has {beats} beats, more than {}", kind.name(), self.most_beats)));
        }
        let data = if kind == ToHost::WriteRequest { 2 * self.strobe_bytes + beats * self.beat_bytes } else { 0 };
        Ok(Some(beats_at + 1 + data))
    }

    /// Decodes a frame whose body is complete and whose CRC is correct.
    fn frame(&self, kind: ToHost, body: &[u8]) -> Result<Frame, Fault> {
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte));
        let address = |bytes: &[u8]| {
            let addr = number(&bytes[..ADDR_BYTES]);
            let whole = addr.is_multiple_of(self.beat_bytes as u64);
            if whole { Ok(addr) } else { Err(bad(format!("address {addr:#x} is not a multiple of a beat"))) }
        };
        Ok(match kind {
            ToHost::Value => Frame::Value(number(body) as u32),
            ToHost::Done => Frame::Done,
            ToHost::Interrupt => Frame::Interrupt,
            ToHost::MemoryData => Frame::Memory(body.to_vec()),
            ToHost::Refused => Frame::Refused(body[0]),
            ToHost::Hello => Frame::Hello(Hello {
                version: body[0],
                beat_log: body[1],
                memory: if body[2] == 0 { MemorySide::Host } else { MemorySide::Board { bytes_log: body[3] } },
            }),
            ToHost::ReadRequest if body[0] > 1 => return Err(bad(format!("client {} is unknown", body[0]))),
            ToHost::ReadRequest => {
                let beats = usize::from(body[1 + ADDR_BYTES]) + 1;
                Frame::Read { client: body[0], addr: address(&body[1..])?, beats }
            }
            ToHost::WriteRequest => {
                let (head, rest) = body.split_at(ADDR_BYTES + 1);
                let (first, rest) = rest.split_at(self.strobe_bytes);
                let (data, last) = rest.split_at(rest.len() - self.strobe_bytes);
                Frame::Write { addr: address(head)?, strobes: [number(first), number(last)], data: data.to_vec() }
            }
        })
    }
}

fn bad(what: String) -> Fault {
    Fault::BadFrame { what }
}
