//! Executes the requests of a device.

use std::collections::HashMap;

use bytes::Bytes;
use tilewright_hw::config::Mem;
use tilewright_hw::device::{Command, Device, DeviceError, Ticket, memory_range};
use tilewright_runtime::SharedDevice;

use crate::PIECE;
use crate::report::{failure, pack};
use crate::wire::{self, reply, request};

/// Commands of a session that nobody waited for yet.
const COMMANDS: usize = 1 << 16;

/// Who asked is gone.
pub(crate) struct Ended;

/// Where replies go.
pub(crate) trait Replies {
    /// Sends a reply; waits while the client does not take them.
    fn send(&mut self, kind: reply::Kind) -> Result<(), Ended>;
}

/// A device, its open commands, and the first error that was not reported.
pub(crate) struct Executor {
    device: Option<SharedDevice>,
    submitted: u64,
    /// The device's tickets, by the client's. A command that the device refused has its error.
    tickets: HashMap<u64, Result<Ticket, DeviceError>>,
    /// The first error of a request without a reply, for the next one that has one.
    failed: Option<DeviceError>,
}

impl Executor {
    pub fn new(device: Option<SharedDevice>) -> Executor {
        Executor { device, submitted: 0, tickets: HashMap::new(), failed: None }
    }

    /// Executes a request. Errors of the device are replies, and `peer` names who asked in the log.
    pub fn execute(&mut self, request: Option<request::Kind>, line: &mut dyn Replies, peer: &str) -> Result<(), Ended> {
        use request::Kind;
        let outcome = match request {
            Some(Kind::Write(write)) => {
                return self.later(|device| device.write(write.addr, &write.data), peer);
            }
            Some(Kind::CleanCache(span)) => return self.later(|device| device.clean_cache(span.addr, span.len), peer),
            Some(Kind::InvalidateCache(span)) => {
                return self.later(|device| device.invalidate_cache(span.addr, span.len), peer);
            }
            Some(Kind::Submit(command)) => return self.submit(command.into(), peer),
            Some(Kind::Read(read)) => self.answer(|executor| executor.read(read, line)),
            Some(Kind::Wait(ticket)) => self.answer(|executor| executor.wait(ticket, line)),
            Some(Kind::Scratchpad(entries)) => self.answer(|executor| executor.scratchpad(entries, line)),
            Some(Kind::Ping(_)) => {
                self.answer(|_| line.send(reply::Kind::Pong(wire::Nothing {})).map_err(Failed::from))
            }
            _ => Err(Failed::Device(unknown_request())),
        };
        match outcome {
            Ok(()) => Ok(()),
            Err(Failed::Ended) => Err(Ended),
            Err(Failed::Device(error)) => {
                tracing::warn!("{peer}: {error}");
                line.send(reply::Kind::Failure(failure(error)))
            }
        }
    }

    fn with<R>(&self, use_it: impl FnOnce(&mut dyn Device) -> Result<R, DeviceError>) -> Result<R, DeviceError> {
        let device = self.device.as_ref().ok_or_else(|| DeviceError::Unsupported {
            device: "this session".into(),
            what: "use a device, because it was opened without one".into(),
        })?;
        device.with(use_it)
    }

    /// A request without a reply.
    fn later(
        &mut self,
        execute: impl FnOnce(&mut dyn Device) -> Result<(), DeviceError>,
        peer: &str,
    ) -> Result<(), Ended> {
        if let Err(error) = self.with(execute) {
            tracing::warn!("{peer}: {error}");
            self.failed.get_or_insert(error);
        }
        Ok(())
    }

    /// A request with a reply, which is the error of those before it if they failed.
    fn answer(&mut self, execute: impl FnOnce(&mut Executor) -> Result<(), Failed>) -> Result<(), Failed> {
        match self.failed.take() {
            Some(error) => Err(Failed::Device(error)),
            None => execute(self),
        }
    }

    fn submit(&mut self, command: Command, peer: &str) -> Result<(), Ended> {
        if self.tickets.len() >= COMMANDS {
            tracing::warn!("{peer}: ended, because {COMMANDS} commands wait");
            return Err(Ended);
        }
        let ticket = self.with(|device| device.submit(&command));
        self.tickets.insert(self.submitted, ticket);
        self.submitted += 1;
        Ok(())
    }

    fn wait(&mut self, ticket: u64, line: &mut dyn Replies) -> Result<(), Failed> {
        let known = self.tickets.remove(&ticket).ok_or(DeviceError::UnknownTicket(Ticket(ticket)))?;
        let report = self.with(|device| device.wait(known?))?;
        let (spans, report) = pack(&report);
        for spans in spans {
            line.send(reply::Kind::Spans(spans))?;
        }
        Ok(line.send(reply::Kind::Report(report))?)
    }

    fn read(&mut self, read: wire::Read, line: &mut dyn Replies) -> Result<(), Failed> {
        // Checked before anything is allocated.
        memory_range(read.addr, read.len, self.with(|device| Ok(device.memory_bytes()))?)?;
        let mut addr = read.addr;
        let end = read.addr + read.len;
        while addr < end {
            let mut bytes = vec![0; (end - addr).min(PIECE as u64) as usize];
            self.with(|device| device.read(addr, &mut bytes))?;
            addr += bytes.len() as u64;
            line.send(reply::Kind::Data(bytes.into()))?;
        }
        Ok(line.send(reply::Kind::Done(wire::Nothing {}))?)
    }

    fn scratchpad(&mut self, entries: wire::Entries, line: &mut dyn Replies) -> Result<(), Failed> {
        let wire::Entries { mem, entry, count } = entries;
        let mem = *Mem::ALL.get(mem as usize).ok_or_else(unknown_request)?;
        let size = self.with(|device| Ok(u64::from(device.config().entries(mem))))?;
        memory_range(entry.into(), count.into(), size)?;
        let bytes = Bytes::from(self.with(|device| device.scratchpad(mem, entry, count))?);
        for at in (0..bytes.len()).step_by(PIECE) {
            line.send(reply::Kind::Data(bytes.slice(at..bytes.len().min(at + PIECE))))?;
        }
        Ok(line.send(reply::Kind::Done(wire::Nothing {}))?)
    }
}

/// Why a request was not answered.
enum Failed {
    Ended,
    Device(DeviceError),
}

impl From<Ended> for Failed {
    fn from(_: Ended) -> Failed {
        Failed::Ended
    }
}

impl From<DeviceError> for Failed {
    fn from(error: DeviceError) -> Failed {
        Failed::Device(error)
    }
}

fn unknown_request() -> DeviceError {
    DeviceError::Unsupported { device: "this server".into(), what: "understand the request".into() }
}
