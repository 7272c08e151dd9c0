//! The thread that a session's device runs on.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tilewright_hw::config::Mem;
use tilewright_hw::device::{Command, Device, DeviceError, Ticket, memory_range};
use tokio::sync::{mpsc, watch};

use super::Shared;
use super::scrub::{Touched, scrub};
use super::session::Wants;
use crate::PIECE;
use crate::report::{failure, pack};
use crate::runtime::runtime;
use crate::wire::{self, reply, request};

/// Commands of a session that nobody waited for yet.
const COMMANDS: usize = 1 << 16;

/// Since when a request is being executed.
pub(super) struct Busy {
    begun: Instant,
    /// Nanoseconds after `begun`, plus one; 0 while nothing is executed.
    at: AtomicU64,
}

impl Default for Busy {
    fn default() -> Busy {
        Busy { begun: Instant::now(), at: AtomicU64::new(0) }
    }
}

impl Busy {
    fn begin(&self) {
        self.at.store(self.begun.elapsed().as_nanos() as u64 + 1, Ordering::Relaxed);
    }

    fn end(&self) {
        self.at.store(0, Ordering::Relaxed);
    }

    /// How long the request takes so far.
    pub fn time(&self) -> Option<Duration> {
        match self.at.load(Ordering::Relaxed) {
            0 => None,
            at => Some(self.begun.elapsed().saturating_sub(Duration::from_nanos(at - 1))),
        }
    }
}

/// What the thread of a session needs.
pub(super) struct Job {
    pub shared: Arc<Shared>,
    pub peer: String,
    pub asked: Wants,
    pub requests: mpsc::Receiver<wire::Request>,
    pub replies: mpsc::Sender<wire::Reply>,
    /// True once the session has ended.
    pub stopped: watch::Receiver<bool>,
    pub busy: Arc<Busy>,
}

/// The session has ended.
struct Ended;

struct Line {
    replies: mpsc::Sender<wire::Reply>,
    stopped: watch::Receiver<bool>,
}

impl Line {
    /// Sends a reply; waits while the client does not take them.
    fn send(&mut self, kind: reply::Kind) -> Result<(), Ended> {
        let reply = wire::Reply { kind: Some(kind) };
        match self.replies.try_send(reply) {
            Ok(()) => Ok(()),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(Ended),
            Err(mpsc::error::TrySendError::Full(reply)) => {
                let Line { replies, stopped } = self;
                runtime().map_err(|_| Ended)?.block_on(async {
                    tokio::select! {
                        sent = replies.send(reply) => sent.map_err(|_| Ended),
                        _ = stopped.wait_for(|stopped| *stopped) => Err(Ended),
                    }
                })
            }
        }
    }

    /// For a person; dropped if the client does not take replies.
    fn tell(&self, text: &str) {
        let text = text.to_string();
        let _ = self.replies.try_send(wire::Reply { kind: Some(reply::Kind::Progress(wire::Progress { text })) });
    }
}

/// Executes a session's requests until it ends, then closes the device.
pub(super) fn serve(job: Job) {
    let Job { shared, peer, asked, mut requests, replies, stopped, busy } = job;
    let mut line = Line { replies, stopped };
    let opened = (shared.lends.open)(&asked.config, asked.asked, &|text| line.tell(text));
    let device = match opened {
        Ok(device) => device,
        Err(error) => {
            tracing::warn!("{peer}: the device cannot be opened: {error}");
            let _ = line.send(reply::Kind::Failure(failure(error)));
            return;
        }
    };
    let opened = wire::Opened {
        device: device.name().to_string(),
        memory_bytes: device.memory_bytes(),
        version: env!("CARGO_PKG_VERSION").into(),
    };
    let most_cycles = shared.limits.cycles;
    let mut session = Session {
        device,
        submitted: 0,
        tickets: HashMap::new(),
        failed: None,
        most_cycles,
        touched: Touched::default(),
    };
    let mut goes_on = line.send(reply::Kind::Opened(opened)).is_ok();
    while goes_on && let Some(request) = requests.blocking_recv() {
        if *line.stopped.borrow() {
            break;
        }
        busy.begin();
        goes_on = session.execute(request, &mut line, &peer).is_ok();
        busy.end();
    }
    if !shared.lends.disposable {
        let begun = Instant::now();
        match session.scrub() {
            Ok(()) => tracing::info!("{peer}: its data are cleared in {:.1} s", begun.elapsed().as_secs_f64()),
            Err(error) => tracing::error!("{peer}: its data could not be cleared: {error}"),
        }
    }
}

/// A session's device and what is to be said of it.
struct Session {
    device: Box<dyn Device>,
    submitted: u64,
    /// The device's tickets, by the client's. A command that the device refused has its error.
    tickets: HashMap<u64, Result<Ticket, DeviceError>>,
    /// The first error of a request without a reply, for the next one that has one.
    failed: Option<DeviceError>,
    most_cycles: Option<u64>,
    /// What is to be cleared after it.
    touched: Touched,
}

impl Session {
    /// Clears what the session leaves, after the commands that nobody waited for.
    fn scrub(&mut self) -> Result<(), DeviceError> {
        for ticket in self.tickets.drain().filter_map(|(_, ticket)| ticket.ok()) {
            let _ = self.device.wait(ticket);
        }
        scrub(self.device.as_mut(), &self.touched)
    }

    fn execute(&mut self, request: wire::Request, line: &mut Line, peer: &str) -> Result<(), Ended> {
        use request::Kind;
        let outcome = match request.kind {
            Some(Kind::Write(write)) => {
                self.touched.add(write.addr, write.data.len() as u64);
                return self.later(|device| device.write(write.addr, &write.data), peer);
            }
            Some(Kind::CleanCache(span)) => return self.later(|device| device.clean_cache(span.addr, span.len), peer),
            Some(Kind::InvalidateCache(span)) => {
                return self.later(|device| device.invalidate_cache(span.addr, span.len), peer);
            }
            Some(Kind::Submit(command)) => return self.submit(command.into(), peer),
            Some(Kind::Read(read)) => self.answer(|session| session.read(read, line)),
            Some(Kind::Wait(ticket)) => self.answer(|session| session.wait(ticket, line)),
            Some(Kind::Scratchpad(entries)) => self.answer(|session| session.scratchpad(entries, line)),
            Some(Kind::Ping(_)) => {
                self.answer(|_| line.send(reply::Kind::Pong(wire::Nothing {})).map_err(Failed::from))
            }
            Some(Kind::Open(_)) | None => Err(Failed::Device(unknown_request())),
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

    /// A request without a reply.
    fn later(
        &mut self,
        execute: impl FnOnce(&mut dyn Device) -> Result<(), DeviceError>,
        peer: &str,
    ) -> Result<(), Ended> {
        if let Err(error) = execute(self.device.as_mut()) {
            tracing::warn!("{peer}: {error}");
            self.failed.get_or_insert(error);
        }
        Ok(())
    }

    /// A request with a reply, which is the error of those before it if they failed.
    fn answer(&mut self, execute: impl FnOnce(&mut Session) -> Result<(), Failed>) -> Result<(), Failed> {
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
        let cycle_limit = match (command.cycle_limit, self.most_cycles) {
            (Some(asked), Some(most)) => Some(asked.min(most)),
            (asked, most) => asked.or(most),
        };
        self.touched.add_command(&command);
        let ticket = self.device.submit(&Command { cycle_limit, ..command });
        self.tickets.insert(self.submitted, ticket);
        self.submitted += 1;
        Ok(())
    }

    fn wait(&mut self, ticket: u64, line: &mut Line) -> Result<(), Failed> {
        let known = self.tickets.remove(&ticket).ok_or(DeviceError::UnknownTicket(Ticket(ticket)))?;
        let report = self.device.wait(known?)?;
        let (spans, report) = pack(&report);
        for spans in spans {
            line.send(reply::Kind::Spans(spans))?;
        }
        Ok(line.send(reply::Kind::Report(report))?)
    }

    fn read(&mut self, read: wire::Read, line: &mut Line) -> Result<(), Failed> {
        // Checked before anything is allocated.
        memory_range(read.addr, read.len, self.device.memory_bytes())?;
        let mut addr = read.addr;
        let end = read.addr + read.len;
        while addr < end {
            let mut bytes = vec![0; (end - addr).min(PIECE as u64) as usize];
            self.device.read(addr, &mut bytes)?;
            addr += bytes.len() as u64;
            line.send(reply::Kind::Data(bytes.into()))?;
        }
        Ok(line.send(reply::Kind::Done(wire::Nothing {}))?)
    }

    fn scratchpad(&mut self, entries: wire::Entries, line: &mut Line) -> Result<(), Failed> {
        let wire::Entries { mem, entry, count } = entries;
        let mem = *Mem::ALL.get(mem as usize).ok_or_else(unknown_request)?;
        let size = u64::from(self.device.config().entries(mem));
        memory_range(entry.into(), count.into(), size)?;
        let bytes = Bytes::from(self.device.scratchpad(mem, entry, count)?);
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
