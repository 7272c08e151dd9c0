//! A board connected by a link, as a device.

use super::error::{Fault, LinkError, Once};
use super::memory::HostMemory;
use super::replay;
use super::session::{Identity, LinkOptions, Session};
use std::time::Duration;
use tilewright_hw::config::HwConfig;
use tilewright_hw::device::queue::{DEFAULT_CYCLE_LIMIT, Queue};
use tilewright_hw::device::{Command, Device, DeviceError, RunReport, Ticket, memory_range};
use tilewright_hw::host::{BaseRegisters, Registers, retired_macs};
use tilewright_hw::interrupt;
use tilewright_hw::link::{ByteStream, MemorySide, memory_beats};
use tilewright_hw::regs;

/// How often a command, or an access to the board's memory, is repeated after the link failed.
const RETRIES: usize = 2;
/// Consecutive polls without progress after which a command counts as stuck.
const MOST_STALLS: usize = 8;
/// Frames of the core's memory after which a running command's cycle count is checked.
const FRAMES_A_LOOK: u64 = 4096;
/// Time after which a wait looks whether it is to stop.
const SLICE: Duration = Duration::from_millis(50);
/// The shortest time that the line is listened to.
const SHORTEST: Duration = Duration::from_millis(1);
/// Reads of the status register after which a soft reset counts as failed.
const RESET_LOOKS: usize = 1000;

/// A board connected by a link.
///
/// A command starts when its report is asked for, and runs on between two polls; the core then waits for its memory at
/// the host. Writes and reads of memory on the board wait for its end.
///
/// If the link fails during a command whose memory is at the host, the command's writes are undone and it is run again,
/// unless it reads scratchpad entries that it did not write itself. If the memory is on the board, failed accesses to
/// it are repeated. A command that has started is not repeated then, because its writes cannot be undone.
#[derive(Debug)]
pub struct LinkDevice<S> {
    config: HwConfig,
    name: String,
    identity: Identity,
    session: Session<S>,
    memory_bytes: u64,
    bases: BaseRegisters,
    queue: Queue,
    running: Option<Running>,
    /// The link has failed and needs a resync.
    lost: bool,
    /// The command's doorbell may have been written.
    started: bool,
    retries: u64,
}

/// A command that was begun.
#[derive(Debug)]
struct Running {
    ticket: Ticket,
    command: Command,
    /// How often it can still be repeated.
    again: usize,
    /// What was seen of the attempt that runs; `None` before each attempt.
    seen: Option<Seen>,
}

/// What was seen of a command on the board.
#[derive(Debug)]
struct Seen {
    /// Frames of the core's memory after which the command's cycle count is checked.
    look_at: u64,
    /// The cycle count at the last check.
    last: Option<u64>,
    /// Checks without progress.
    stalls: usize,
    /// Time since anything arrived.
    quiet: Duration,
}

/// How a command's run on the board ended.
enum CommandEnd {
    Done,
    Limit,
}

impl<S: ByteStream> LinkDevice<S> {
    /// Resyncs the link and checks that the board has this configuration.
    ///
    /// # Errors
    /// What is wrong, and what to do.
    pub fn open(stream: S, config: HwConfig, options: LinkOptions) -> Result<LinkDevice<S>, LinkError> {
        let name = stream.name().to_string();
        let mut session = Session::new(stream, &config, options);
        let opened = session.begin().and_then(|hello| session.identity(hello)).and_then(|identity| {
            identity.check(&config)?;
            Ok(identity)
        });
        let identity = opened.map_err(|fault| session.error(fault))?;
        let at_host = options.memory_bytes.unwrap_or(config.memory_bytes());
        let memory_bytes = match identity.hello.memory.bytes() {
            // The core cannot address anything after its last address.
            Some(bytes) => bytes.min(1 << config.offset_bits),
            None => at_host,
        };
        if identity.hello.memory == MemorySide::Host {
            session.memory = Some(HostMemory::new(&config, at_host));
        }
        let bases = BaseRegisters::new(&config);
        let mut device = LinkDevice {
            config,
            name,
            identity,
            session,
            memory_bytes,
            bases,
            queue: Queue::default(),
            running: None,
            lost: false,
            started: false,
            retries: 0,
        };
        device.set_up().map_err(|fault| device.session.error(fault))?;
        Ok(device)
    }

    /// The identity that the board reported.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Commands that were run again, and accesses to the board's memory that were repeated, because the link had
    /// failed.
    pub fn retries(&self) -> u64 {
        self.retries
    }

    /// The byte stream, for tests that disturb it.
    pub fn stream_mut(&mut self) -> &mut S {
        self.session.stream_mut()
    }

    /// The byte stream. The board continues what it is doing.
    pub fn into_stream(self) -> S {
        self.session.into_stream()
    }

    /// The same device, which aborts a command without its own limit after so many cycles.
    pub fn with_cycle_limit(mut self, limit: Option<u64>) -> Self {
        self.queue.cycle_limit = limit;
        self
    }

    /// Writes the registers that a reset clears: empty bases, and the interrupt enable.
    fn set_up(&mut self) -> Result<(), Fault> {
        self.bases.clear(&mut self.session)?;
        self.session.write_reg(regs::CONTROL, regs::CONTROL_IRQ_ENABLE)
    }

    /// Resyncs the link, after which the board is in its power-on state except for the contents of its memories.
    fn begin_anew(&mut self) -> Result<(), Fault> {
        self.identity.hello = self.session.begin()?;
        let identity = self.session.identity(self.identity.hello)?;
        identity.check(&self.config)?;
        self.set_up()?;
        self.lost = false;
        Ok(())
    }

    /// Resyncs the link if it has failed.
    fn find_again(&mut self) -> Result<(), DeviceError> {
        if self.lost {
            self.begin_anew().map_err(|fault| self.session.error(fault))?;
        }
        Ok(())
    }

    /// The command that runs, or else the next one, unless it was submitted after `ticket`.
    fn next(&mut self, ticket: Ticket) -> Option<Running> {
        match &self.running {
            Some(running) if running.ticket > ticket => None,
            Some(_) => self.running.take(),
            None => {
                let (ticket, command) = self.queue.next(ticket)?;
                Some(Running { ticket, command, again: RETRIES, seen: None })
            }
        }
    }

    /// Runs a command on for about `at_most`. Returns its outcome once it has ended.
    fn advance(&mut self, running: &mut Running, at_most: Duration) -> Option<Result<RunReport, DeviceError>> {
        loop {
            if let Err(error) = self.find_again() {
                return Some(Err(error));
            }
            let fault = match self.attempt(running, at_most) {
                Ok(outcome) => return outcome,
                Err(fault) => fault,
            };
            self.lost = true;
            running.seen = None;
            if let Some(memory) = &mut self.session.memory {
                memory.undo();
            }
            let may = running.again > 0 && fault.is_passing();
            let once = if may { self.once(&running.command) } else { None };
            if !may || once.is_some() {
                let fault = match once {
                    Some(why) => Fault::NotAgain { fault: Box::new(fault), why },
                    None => fault,
                };
                return Some(Err(self.session.error(fault).into()));
            }
            running.again -= 1;
            self.retries += 1;
        }
    }

    /// Waits for the end of the command that runs; its outcome is kept. Memory on the board can be accessed then.
    fn finish(&mut self) -> Result<(), DeviceError> {
        while let Some(mut running) = self.running.take() {
            match self.advance(&mut running, SLICE) {
                Some(outcome) => self.queue.done(running.ticket, outcome),
                None => {
                    self.running = Some(running);
                    interrupt::check()?;
                }
            }
        }
        Ok(())
    }

    /// Why the command that just failed must not be run again, if so. Memory at the host is already restored.
    fn once(&self, command: &Command) -> Option<Once> {
        match &self.session.memory {
            _ if !self.started => None,
            None => Some(Once::BoardMemory),
            Some(memory) if replay::is_self_contained(command, memory.bytes(), &self.config) => None,
            Some(_) => Some(Once::Scratchpads),
        }
    }

    /// Starts a command, unless it runs, and waits about `at_most` for its end; the outer error is the link's.
    fn attempt(
        &mut self,
        running: &mut Running,
        at_most: Duration,
    ) -> Result<Option<Result<RunReport, DeviceError>>, Fault> {
        let command = &running.command;
        if running.seen.is_none() {
            self.begin(command)?;
        }
        let look_at = self.session.served + FRAMES_A_LOOK;
        let begun = Seen { look_at, last: None, stalls: 0, quiet: Duration::ZERO };
        let seen = running.seen.get_or_insert(begun);
        let limit = command.cycle_limit.unwrap_or(DEFAULT_CYCLE_LIMIT);
        match self.wait_for_end(seen, limit, at_most)? {
            None => Ok(None),
            Some(CommandEnd::Limit) => {
                self.soft_reset();
                Ok(Some(Err(DeviceError::CycleLimit { limit })))
            }
            Some(CommandEnd::Done) => self.report(command, limit).map(Some),
        }
    }

    fn begin(&mut self, command: &Command) -> Result<(), Fault> {
        self.started = false;
        if let Some(memory) = &mut self.session.memory {
            memory.begin();
        }
        self.bases.set(&mut self.session, &command.bases)?;
        self.session.interrupted = false;
        self.started = true;
        self.session.start(command)
    }

    /// The report of a command that has ended.
    fn report(&mut self, command: &Command, limit: u64) -> Result<Result<RunReport, DeviceError>, Fault> {
        let mut report = self.session.report(&self.config)?;
        report.bytes = self.session.memory.as_ref().map(|memory| memory.carried);
        report.macs = self.macs(command, report.retired[1])?;
        if report.trap.is_some() {
            self.soft_reset();
        }
        let last = match report.trap {
            Some(trap) => trap.cycle.map(|cycle| cycle + 1),
            None => report.cycles,
        };
        // The board does not enforce the limit itself.
        Ok(if last > Some(limit) { Err(DeviceError::CycleLimit { limit }) } else { Ok(report) })
    }

    /// Serves the core until the command has ended, for about `at_most`.
    fn wait_for_end(&mut self, seen: &mut Seen, limit: u64, at_most: Duration) -> Result<Option<CommandEnd>, Fault> {
        let (begun, mut waited) = (self.session.now(), Duration::ZERO);
        loop {
            let poll = self.session.poll();
            // A clock need not go on while nothing arrives, so this time is counted.
            let left = at_most.saturating_sub(waited.max(self.session.now().saturating_sub(begun)));
            let slice = poll.saturating_sub(seen.quiet).min(left).max(SHORTEST);
            let heard = self.session.serve_one(slice)?;
            if heard {
                seen.quiet = Duration::ZERO;
            } else {
                seen.quiet += slice;
                waited += slice;
            }
            let to_look = match heard {
                true => self.session.interrupted || self.session.served >= seen.look_at,
                false => seen.quiet >= poll,
            };
            if !to_look {
                if left <= slice {
                    return Ok(None);
                }
                continue;
            }
            seen.quiet = Duration::ZERO;
            seen.look_at = self.session.served + FRAMES_A_LOOK;
            let interrupted = std::mem::take(&mut self.session.interrupted);
            let status = self.session.read_reg(regs::STATUS)?;
            if status & regs::STATUS_BUSY == 0 {
                return Ok(Some(CommandEnd::Done));
            }
            let cycle = self.session.read_wide(regs::CYCLES_LO)?;
            if cycle > limit && status & regs::STATUS_TRAPPED == 0 {
                return Ok(Some(CommandEnd::Limit));
            }
            seen.stalls = if heard && !interrupted || seen.last != Some(cycle) { 0 } else { seen.stalls + 1 };
            if seen.stalls == MOST_STALLS {
                return Err(Fault::Stuck { cycle, status });
            }
            seen.last = Some(cycle);
        }
    }

    /// Soft-resets the core, which keeps the base registers. If that fails, the link needs a resync.
    fn soft_reset(&mut self) {
        let done = self.session.soft_reset(RESET_LOOKS);
        self.lost = !matches!(done, Ok(true));
    }

    /// Multiply-accumulates of the gemm instructions that retired.
    fn macs(&mut self, command: &Command, retired: u32) -> Result<u64, Fault> {
        let range = command.stream();
        let range = memory_range(range.start, range.end - range.start, self.memory_bytes());
        // A stream that passes the end of memory has ended in a bus error.
        let Ok(range) = range else { return Ok(0) };
        let mut copy = Vec::new();
        let stream = match &self.session.memory {
            Some(memory) => &memory.bytes()[range],
            None => {
                copy.resize(range.len(), 0);
                self.read_board(range.start as u64, &mut copy)?;
                &copy
            }
        };
        Ok(retired_macs(stream, retired, &self.config))
    }

    /// Splits the beats around a range into pieces that a frame can carry; returns the start and end of each.
    fn pieces(&self, addr: u64, len: usize) -> Vec<(u64, u64)> {
        let beat = u64::from(self.config.bus_bytes());
        let piece = u64::from(memory_beats(&self.config)) * beat;
        let end = (addr + len as u64).next_multiple_of(beat);
        let first = addr / beat * beat;
        (first..end).step_by(piece as usize).map(|at| (at, end.min(at + piece))).collect()
    }

    fn read_board(&mut self, addr: u64, bytes: &mut [u8]) -> Result<(), Fault> {
        for (start, end) in self.pieces(addr, bytes.len()) {
            interrupt::check()?;
            let mut beats = vec![0; (end - start) as usize];
            self.session.read_board(start, &mut beats)?;
            let (from, to) = (start.max(addr), end.min(addr + bytes.len() as u64));
            bytes[(from - addr) as usize..(to - addr) as usize]
                .copy_from_slice(&beats[(from - start) as usize..(to - start) as usize]);
        }
        Ok(())
    }

    fn write_board(&mut self, addr: u64, bytes: &[u8]) -> Result<(), Fault> {
        for (start, end) in self.pieces(addr, bytes.len()) {
            interrupt::check()?;
            let (from, to) = (start.max(addr), end.min(addr + bytes.len() as u64));
            let mut beats = vec![0; (end - start) as usize];
            // Beats at the ends keep the bytes next to the range.
            if (from, to) != (start, end) {
                self.session.read_board(start, &mut beats)?;
            }
            beats[(from - start) as usize..(to - start) as usize]
                .copy_from_slice(&bytes[(from - addr) as usize..(to - addr) as usize]);
            self.session.write_board(start, &beats)?;
        }
        Ok(())
    }

    /// Accesses memory on the board, and repeats the access if the link fails; `act` must be repeatable.
    fn on_board(&mut self, mut act: impl FnMut(&mut Self) -> Result<(), Fault>) -> Result<(), DeviceError> {
        self.finish()?;
        let mut again = RETRIES;
        loop {
            self.find_again()?;
            let Err(fault) = act(self) else { return Ok(()) };
            if let Fault::Interrupted(stopped) = fault {
                // Between two frames, so that the link is as it was.
                return Err(stopped.into());
            }
            self.lost = true;
            if again == 0 || !fault.is_passing() {
                return Err(self.session.error(fault).into());
            }
            again -= 1;
            self.retries += 1;
        }
    }
}

impl<S: ByteStream> Device for LinkDevice<S> {
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
        let range = memory_range(addr, bytes.len() as u64, self.memory_bytes())?;
        match &mut self.session.memory {
            Some(memory) => memory.write_host(range.start, bytes),
            None => self.on_board(|device| device.write_board(addr, bytes))?,
        }
        Ok(())
    }

    fn read(&mut self, addr: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        let range = memory_range(addr, bytes.len() as u64, self.memory_bytes())?;
        match &self.session.memory {
            Some(memory) => bytes.copy_from_slice(&memory.bytes()[range]),
            None => self.on_board(|device| device.read_board(addr, bytes))?,
        }
        Ok(())
    }

    fn submit(&mut self, command: &Command) -> Result<Ticket, DeviceError> {
        self.queue.submit(command, &self.config)
    }

    fn wait(&mut self, ticket: Ticket) -> Result<RunReport, DeviceError> {
        loop {
            if let Some(report) = self.poll(ticket, SLICE)? {
                return Ok(report);
            }
            if let Err(stopped) = interrupt::check()
                && self.running.take_if(|running| running.ticket == ticket).is_some()
            {
                self.soft_reset();
                return Err(stopped.into());
            }
        }
    }

    fn poll(&mut self, ticket: Ticket, at_most: Duration) -> Result<Option<RunReport>, DeviceError> {
        while let Some(mut running) = self.next(ticket) {
            match self.advance(&mut running, at_most) {
                Some(outcome) => self.queue.done(running.ticket, outcome),
                None => {
                    self.running = Some(running);
                    return Ok(None);
                }
            }
        }
        self.queue.take(ticket).map(Some)
    }
}
