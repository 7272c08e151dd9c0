//! A device of a server, as one of this machine.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::device::{Command, Device, DeviceError, RunReport, Span, Ticket, check_command, memory_range};
use tilewright_hw::interrupt;

use super::open_session;
use crate::PIECE;
use crate::caller::Link;
use crate::endpoint::{Access, Endpoint, Lender};
use crate::report::{self, broken};
use crate::tracker::Lease;
use crate::wire::{self, reply, request};

/// What a client wants of a device beyond running commands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Asked {
    /// Refuse programs with races.
    pub strict: bool,
    /// Report when each instruction started and retired.
    pub spans: bool,
    /// Abort a command after so many cycles.
    pub max_cycles: Option<u64>,
}

/// A device that a server lends. Writes and commands are sent without waiting for the server, also while a command is
/// polled; an error of theirs comes with the next read or report. Work that is [stopped](tilewright_hw::interrupt) no
/// longer waits for a command, which goes on at the server until it ends. Dropping this gives the device back.
pub struct RemoteDevice {
    name: String,
    config: HwConfig,
    memory_bytes: u64,
    line: Box<dyn Link>,
    submitted: u64,
    /// Tickets whose reports were not taken.
    open: BTreeSet<u64>,
    /// The command whose report was asked for.
    awaited: Option<Awaited>,
    /// Reports that came while something else was asked for.
    done: BTreeMap<u64, Result<RunReport, DeviceError>>,
    /// What a tracker wants back.
    _lease: Option<Lease>,
}

/// A command whose report was asked for, and the spans that came.
struct Awaited {
    ticket: u64,
    spans: Vec<Span>,
}

/// Time after which a wait looks whether it is to stop.
const SLICE: Duration = Duration::from_millis(50);

impl RemoteDevice {
    /// Opens a session on a server and waits until it has a device with `config`. `told` receives what it waits for.
    ///
    /// # Errors
    /// [`DeviceError::Tool`] if the server cannot be reached or refuses, or has another configuration;
    /// [`DeviceError::Unsupported`] if its device cannot do what is asked.
    pub fn open(
        endpoint: &Endpoint,
        access: &Access,
        config: &HwConfig,
        asked: Asked,
        told: &dyn Fn(&str),
    ) -> Result<RemoteDevice, DeviceError> {
        RemoteDevice::of(&endpoint.clone().into(), access, config, asked, told)
    }

    /// Like [`RemoteDevice::open`], also on a server that a tracker chooses.
    ///
    /// # Errors
    /// As [`RemoteDevice::open`].
    pub fn of(
        lender: &Lender,
        access: &Access,
        config: &HwConfig,
        asked: Asked,
        told: &dyn Fn(&str),
    ) -> Result<RemoteDevice, DeviceError> {
        let open = wire::Open {
            config_name: config.name.clone(),
            config: config.to_toml(),
            strict: asked.strict,
            spans: asked.spans,
            max_cycles: asked.max_cycles,
            ..wire::Open::default()
        };
        let (line, opened, lease) = open_session(lender, access, &open, told)?;
        let device = RemoteDevice::over(Box::new(line), config.clone(), opened.memory_bytes);
        Ok(RemoteDevice { _lease: lease, ..device })
    }

    /// The device at the other end of a link.
    pub(crate) fn over(line: Box<dyn Link>, config: HwConfig, memory_bytes: u64) -> RemoteDevice {
        let name = line.name().to_string();
        RemoteDevice {
            name,
            config,
            memory_bytes,
            line,
            submitted: 0,
            open: BTreeSet::new(),
            awaited: None,
            done: BTreeMap::new(),
            _lease: None,
        }
    }

    /// Waits until everything before is done.
    ///
    /// # Errors
    /// The error of a write or of another request without a reply of its own.
    pub fn flush(&mut self) -> Result<(), DeviceError> {
        self.settle()?;
        self.line.send(request::Kind::Ping(wire::Nothing {}))?;
        match self.next()? {
            reply::Kind::Pong(_) => Ok(()),
            _ => Err(self.line.nonsense().into()),
        }
    }

    /// Waits for the report that was asked for, whose reply comes before that of any other request.
    fn settle(&mut self) -> Result<(), DeviceError> {
        while self.awaited.is_some() {
            self.listen(SLICE)?;
            interrupt::check()?;
        }
        Ok(())
    }

    /// Receives the report that was asked for, if it comes within `at_most`.
    fn listen(&mut self, at_most: Duration) -> Result<(), DeviceError> {
        let begun = Instant::now();
        while let Some(Awaited { ticket, spans }) = &mut self.awaited {
            let ticket = *ticket;
            let Some(kind) = self.line.next_within(at_most.saturating_sub(begun.elapsed()))? else { return Ok(()) };
            let invalid = |error: report::Invalid| broken(&self.name, error.to_string());
            let outcome = match kind {
                reply::Kind::Progress(_) => continue,
                reply::Kind::Spans(more) => match report::unpack_spans(more) {
                    Ok(mut more) => {
                        spans.append(&mut more);
                        continue;
                    }
                    Err(error) => Err(invalid(error)),
                },
                reply::Kind::Report(report) => {
                    let spans = std::mem::take(spans);
                    report::unpack(report).map(|report| RunReport { spans, ..report }).map_err(invalid)
                }
                reply::Kind::Failure(failure) => Err(report::error(failure, &self.name)),
                _ => Err(self.line.nonsense().into()),
            };
            self.awaited = None;
            // Nobody waits for the others any more.
            if self.open.contains(&ticket) {
                self.done.insert(ticket, outcome);
            }
        }
        Ok(())
    }

    /// The next reply that is no failure.
    fn next(&mut self) -> Result<reply::Kind, DeviceError> {
        loop {
            match self.line.next()? {
                reply::Kind::Failure(failure) => return Err(report::error(failure, &self.name)),
                reply::Kind::Progress(_) => {}
                kind => return Ok(kind),
            }
        }
    }

    /// Receives bytes in pieces; `take` gets each.
    fn receive(&mut self, mut take: impl FnMut(&[u8]) -> Option<()>) -> Result<(), DeviceError> {
        loop {
            match self.next()? {
                reply::Kind::Data(bytes) => match take(&bytes) {
                    Some(()) => {}
                    None => return Err(self.line.nonsense().into()),
                },
                reply::Kind::Done(_) => return Ok(()),
                _ => return Err(self.line.nonsense().into()),
            }
        }
    }
}

impl Device for RemoteDevice {
    fn config(&self) -> &HwConfig {
        &self.config
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    fn write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        memory_range(addr, bytes.len() as u64, self.memory_bytes)?;
        for (index, piece) in bytes.chunks(PIECE).enumerate() {
            let addr = addr + (index * PIECE) as u64;
            self.line.send(request::Kind::Write(wire::Write { addr, data: Bytes::copy_from_slice(piece) }))?;
        }
        Ok(())
    }

    fn read(&mut self, addr: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        let len = bytes.len() as u64;
        memory_range(addr, len, self.memory_bytes)?;
        self.settle()?;
        self.line.send(request::Kind::Read(wire::Read { addr, len }))?;
        let mut rest = bytes;
        self.receive(|piece| {
            let (here, after) = std::mem::take(&mut rest).split_at_mut_checked(piece.len())?;
            here.copy_from_slice(piece);
            rest = after;
            Some(())
        })?;
        if rest.is_empty() { Ok(()) } else { Err(self.line.nonsense().into()) }
    }

    fn clean_cache(&mut self, addr: u64, len: u64) -> Result<(), DeviceError> {
        Ok(self.line.send(request::Kind::CleanCache(wire::Span { addr, len }))?)
    }

    fn invalidate_cache(&mut self, addr: u64, len: u64) -> Result<(), DeviceError> {
        Ok(self.line.send(request::Kind::InvalidateCache(wire::Span { addr, len }))?)
    }

    fn submit(&mut self, command: &Command) -> Result<Ticket, DeviceError> {
        check_command(command, &self.config)?;
        self.line.send(request::Kind::Submit(command.into()))?;
        let ticket = self.submitted;
        self.submitted += 1;
        self.open.insert(ticket);
        Ok(Ticket(ticket))
    }

    fn wait(&mut self, ticket: Ticket) -> Result<RunReport, DeviceError> {
        loop {
            if let Some(report) = self.poll(ticket, SLICE)? {
                return Ok(report);
            }
            if let Err(stopped) = interrupt::check() {
                self.open.remove(&ticket.0);
                return Err(stopped.into());
            }
        }
    }

    fn poll(&mut self, ticket: Ticket, at_most: Duration) -> Result<Option<RunReport>, DeviceError> {
        if !self.open.contains(&ticket.0) {
            return Err(DeviceError::UnknownTicket(ticket));
        }
        let begun = Instant::now();
        loop {
            if let Some(outcome) = self.done.remove(&ticket.0) {
                self.open.remove(&ticket.0);
                return outcome.map(Some);
            }
            if self.awaited.is_none() {
                self.line.send(request::Kind::Wait(ticket.0))?;
                self.awaited = Some(Awaited { ticket: ticket.0, spans: Vec::new() });
            }
            self.listen(at_most.saturating_sub(begun.elapsed()))?;
            if self.awaited.is_some() {
                return Ok(None);
            }
        }
    }

    fn scratchpad(&mut self, mem: Mem, entry: u32, count: u32) -> Result<Vec<u8>, DeviceError> {
        self.settle()?;
        self.line.send(request::Kind::Scratchpad(wire::Entries { mem: mem as u32, entry, count }))?;
        let most = u64::from(count) * u64::from(self.config.entry_bytes(mem));
        let mut bytes = Vec::new();
        self.receive(|piece| {
            bytes.extend_from_slice(piece);
            (bytes.len() as u64 <= most).then_some(())
        })?;
        Ok(bytes)
    }
}
