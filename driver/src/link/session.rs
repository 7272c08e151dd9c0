//! An open link: resyncs, accesses registers, and serves the core's memory in between.

use super::error::{Fault, LinkError};
use super::frames::{Frame, Frames};
use super::memory::HostMemory;
use std::io;
use std::time::Duration;
use tilewright_hw::config::HwConfig;
use tilewright_hw::host::{self, Registers};
use tilewright_hw::link::{self, ByteStream, MemorySide, ToBoard, ToHost, addr_bytes, frame, resync_bytes};

/// Bytes without a greeting after which the search for one fails.
const MOST_GARBAGE: usize = 1 << 16;
/// Frames of the core's memory that can come before the answer to a register access.
const MOST_BETWEEN: usize = 1 << 16;

/// Options of a link: timeouts and size of memory.
#[derive(Debug, Clone, Copy)]
pub struct LinkOptions {
    /// Time without a byte after which an answer counts as missing.
    pub answer: Duration,
    /// Time without a byte after which a running command's state is polled.
    pub poll: Duration,
    /// Bytes of device memory at the host; the configuration's if `None`. A board with memory of its own reports its
    /// size.
    pub memory_bytes: Option<u64>,
}

impl Default for LinkOptions {
    fn default() -> LinkOptions {
        LinkOptions { answer: Duration::from_secs(3), poll: Duration::from_millis(500), memory_bytes: None }
    }
}

/// What a board reports when the link starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    /// Version of the link.
    pub version: u8,
    /// Base-2 logarithm of a beat's bytes.
    pub beat_log: u8,
    /// Where the core's memory is.
    pub memory: MemorySide,
}

/// Identity of a board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// What it reported when the link started.
    pub hello: Hello,
    /// Identity of its core.
    pub core: host::Identity,
}

impl Identity {
    /// Checks that the board was built for `config`.
    ///
    /// # Errors
    /// [`Fault::Wrong`] or [`Fault::OtherBus`].
    pub fn check(&self, config: &HwConfig) -> Result<(), Fault> {
        self.core.check(config)?;
        let found = 1u64.checked_shl(self.hello.beat_log.into()).unwrap_or(0);
        if found != u64::from(config.bus_bytes()) {
            return Err(Fault::OtherBus { found, asked: config.bus_bytes(), name: config.name.clone() });
        }
        Ok(())
    }
}

/// An open link.
#[derive(Debug)]
pub(super) struct Session<S> {
    stream: S,
    options: LinkOptions,
    frames: Frames,
    beat_bytes: usize,
    resync_bytes: usize,
    /// Device memory, if it is at the host.
    pub memory: Option<HostMemory>,
    /// The link has started and nothing was answered yet: a board that saw too many zeros greets again.
    greeting: bool,
    /// The interrupt rose since this was last cleared.
    pub interrupted: bool,
    /// Frames of the core's memory served so far.
    pub served: u64,
}

impl<S: ByteStream> Session<S> {
    /// A session that has not started yet.
    pub fn new(stream: S, config: &HwConfig, options: LinkOptions) -> Session<S> {
        Session {
            stream,
            options,
            frames: Frames::new(config),
            beat_bytes: config.bus_bytes() as usize,
            resync_bytes: resync_bytes(config),
            memory: None,
            greeting: false,
            interrupted: false,
            served: 0,
        }
    }

    /// The byte stream.
    pub fn stream_mut(&mut self) -> &mut S {
        &mut self.stream
    }

    /// The byte stream alone.
    pub fn into_stream(self) -> S {
        self.stream
    }

    /// Adds the port's name to a fault.
    pub fn error(&self, fault: Fault) -> LinkError {
        LinkError { port: self.stream.name().into(), fault }
    }

    /// Resyncs the link, whatever state the board is in.
    pub fn begin(&mut self) -> Result<Hello, Fault> {
        self.frames.clear();
        self.interrupted = false;
        self.stream.clear().map_err(broken)?;
        // A board of another configuration can need more zeros than this one. They come second, because they take long
        // on a slow line.
        let hello = match self.greet(self.resync_bytes) {
            Err(Fault::Silent { .. } | Fault::Garbage { .. }) => self.greet(link::MOST_FRAME_BYTES)?,
            other => other?,
        };
        if hello.version != link::VERSION {
            return Err(Fault::OtherLink { found: hello.version, known: link::VERSION });
        }
        self.greeting = true;
        Ok(hello)
    }

    /// Sends zeros and looks for the greeting in what arrives.
    fn greet(&mut self, zeros: usize) -> Result<Hello, Fault> {
        let mut bytes = vec![0; zeros];
        bytes.resize(zeros + link::GREETING_PAUSE_BYTES, 0xff);
        self.stream.send(&bytes).map_err(broken)?;
        let begun = self.stream.now();
        let mut seen = Vec::new();
        let mut bytes = [0; 256];
        loop {
            let count = self.stream.receive(&mut bytes, self.options.answer).map_err(broken)?;
            seen.extend_from_slice(&bytes[..count]);
            for at in 0..seen.len() {
                if seen[at] != ToHost::Hello as u8 {
                    continue;
                }
                // Bytes before it are the rest of what the board was sending.
                self.frames.clear();
                self.frames.push(&seen[at..]);
                if let Ok(Some(Frame::Hello(hello))) = self.frames.take() {
                    return Ok(hello);
                }
            }
            self.frames.clear();
            if count == 0 && seen.iter().all(|byte| *byte == 0) {
                return Err(self.silent("after the link was reset"));
            }
            if count == 0
                || seen.len() > MOST_GARBAGE
                || self.stream.now().saturating_sub(begun) > 4 * self.options.answer
            {
                return Err(Fault::Garbage { bytes: seen.len() });
            }
        }
    }

    /// Reads the board's identity; fails if it is not an accelerator.
    pub fn identity(&mut self, hello: Hello) -> Result<Identity, Fault> {
        Ok(Identity { hello, core: Registers::identity(self)?? })
    }

    /// The time on the clock that measures timeouts.
    pub fn now(&self) -> Duration {
        self.stream.now()
    }

    /// Time without a byte after which a running command's state is polled.
    pub fn poll(&self) -> Duration {
        self.options.poll
    }

    /// Serves the core until a frame was served, or nothing arrived for `at_most`. Returns whether a frame was served.
    pub fn serve_one(&mut self, at_most: Duration) -> Result<bool, Fault> {
        match self.next_frame(at_most)? {
            Some(frame) => self.serve(frame, "while a command ran").map(|()| true),
            None => Ok(false),
        }
    }

    /// Writes whole beats of memory on the board.
    pub fn write_board(&mut self, addr: u64, beats: &[u8]) -> Result<(), Fault> {
        let mut body = addr_bytes(addr).to_vec();
        body.push((beats.len() / self.beat_bytes - 1) as u8);
        body.extend_from_slice(beats);
        self.send(ToBoard::WriteMemory, &body)?;
        self.done()
    }

    /// Reads whole beats of memory on the board.
    pub fn read_board(&mut self, addr: u64, beats: &mut [u8]) -> Result<(), Fault> {
        let count = beats.len() / self.beat_bytes;
        let mut body = addr_bytes(addr).to_vec();
        body.push((count - 1) as u8);
        self.frames.memory_beats = Some(count);
        self.send(ToBoard::ReadMemory, &body)?;
        match self.answer()? {
            Frame::Memory(bytes) => beats.copy_from_slice(&bytes),
            other => return Err(unexpected(&other, "instead of memory data")),
        }
        Ok(())
    }

    fn send(&mut self, kind: ToBoard, body: &[u8]) -> Result<(), Fault> {
        self.stream.send(&frame(kind as u8, body)).map_err(broken)
    }

    fn silent(&self, waited_for: &'static str) -> Fault {
        Fault::Silent { millis: self.options.answer.as_millis() as u64, waited_for }
    }

    /// The next frame; `None` if nothing arrived within `timeout`.
    fn next_frame(&mut self, timeout: Duration) -> Result<Option<Frame>, Fault> {
        let mut bytes = [0; 4096];
        loop {
            if let Some(frame) = self.frames.take()? {
                return Ok(Some(frame));
            }
            match self.stream.receive(&mut bytes, timeout).map_err(broken)? {
                0 => return Ok(None),
                count => self.frames.push(&bytes[..count]),
            }
        }
    }

    /// Handles a frame that is not an answer.
    fn serve(&mut self, frame: Frame, while_doing: &'static str) -> Result<(), Fault> {
        let answer = match (frame, &mut self.memory) {
            (Frame::Read { client, addr, beats }, Some(memory)) => memory.read(client, addr, beats),
            (Frame::Write { addr, strobes, data }, Some(memory)) => memory.write(addr, strobes, &data),
            (Frame::Interrupt, _) => {
                self.interrupted = true;
                return Ok(());
            }
            (Frame::Refused(reason), _) => return Err(Fault::Refused { reason }),
            (other, _) => return Err(unexpected(&other, while_doing)),
        };
        self.served += 1;
        self.stream.send(&answer).map_err(broken)
    }

    /// Waits for the answer to a register access, and serves the core meanwhile.
    fn answer(&mut self) -> Result<Frame, Fault> {
        for _ in 0..MOST_BETWEEN {
            match self.next_frame(self.options.answer)? {
                None => break,
                Some(Frame::Hello(_)) if self.greeting => {}
                Some(frame @ (Frame::Value(_) | Frame::Done | Frame::Memory(_))) => {
                    self.greeting = false;
                    return Ok(frame);
                }
                Some(frame) => self.serve(frame, "instead of an answer")?,
            }
        }
        Err(self.silent("while waiting for an answer"))
    }

    fn done(&mut self) -> Result<(), Fault> {
        match self.answer()? {
            Frame::Done => Ok(()),
            other => Err(unexpected(&other, "instead of Done")),
        }
    }
}

impl<S: ByteStream> Registers for Session<S> {
    type Error = Fault;

    fn read_reg(&mut self, addr: u32) -> Result<u32, Fault> {
        self.send(ToBoard::ReadReg, &(addr as u16).to_le_bytes())?;
        match self.answer()? {
            Frame::Value(value) => Ok(value),
            other => Err(unexpected(&other, "instead of a register's value")),
        }
    }

    fn write_reg(&mut self, addr: u32, value: u32) -> Result<(), Fault> {
        let mut body = (addr as u16).to_le_bytes().to_vec();
        body.extend(value.to_le_bytes());
        self.send(ToBoard::WriteReg, &body)?;
        self.done()
    }
}

fn unexpected(frame: &Frame, while_doing: &'static str) -> Fault {
    Fault::Unexpected { found: frame.name(), while_doing }
}

fn broken(error: io::Error) -> Fault {
    match error.kind() {
        io::ErrorKind::TimedOut => Fault::Full,
        _ => Fault::Unplugged { reason: error.to_string() },
    }
}
