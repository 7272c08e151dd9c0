//! A board connected by a link, as a device.

use super::error::{Fault, LinkError, Once};
use super::memory::HostMemory;
use super::replay;
use super::session::{Identity, LinkOptions, Session};
use tilewright_hw::config::HwConfig;
use tilewright_hw::device::queue::{DEFAULT_CYCLE_LIMIT, Queue};
use tilewright_hw::device::{Command, Device, DeviceError, RunReport, Ticket, memory_range};
use tilewright_hw::host::{BaseRegisters, Registers, retired_macs};
use tilewright_hw::link::{ByteStream, MemorySide, memory_beats};
use tilewright_hw::regs;

/// How often a command, or an access to the board's memory, is repeated after the link failed.
const RETRIES: usize = 2;
/// Consecutive polls without progress after which a command counts as stuck.
const MOST_STALLS: usize = 8;
/// Frames of the core's memory after which a running command's cycle count is checked.
const FRAMES_A_LOOK: u64 = 4096;
/// Reads of the status register after which a soft reset counts as failed.
const RESET_LOOKS: usize = 1000;

/// A board connected by a link.
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
    /// The link has failed and needs a resync.
    lost: bool,
    /// The command's doorbell may have been written.
    started: bool,
    retries: u64,
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
        let (queue, lost, started, retries) = (Queue::default(), false, false, 0);
        let mut device =
            LinkDevice { config, name, identity, session, memory_bytes, bases, queue, lost, started, retries };
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

    fn run_command(&mut self, command: &Command) -> Result<RunReport, DeviceError> {
        let mut again = RETRIES;
        loop {
            self.find_again()?;
            let fault = match self.attempt(command) {
                Ok(outcome) => return outcome,
                Err(fault) => fault,
            };
            self.lost = true;
            if let Some(memory) = &mut self.session.memory {
                memory.undo();
            }
            let may = again > 0 && fault.is_passing();
            let once = if may { self.once(command) } else { None };
            if !may || once.is_some() {
                let fault = match once {
                    Some(why) => Fault::NotAgain { fault: Box::new(fault), why },
                    None => fault,
                };
                return Err(self.session.error(fault).into());
            }
            again -= 1;
            self.retries += 1;
        }
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

    /// Runs a command once; the outer error is the link's.
    fn attempt(&mut self, command: &Command) -> Result<Result<RunReport, DeviceError>, Fault> {
        self.started = false;
        if let Some(memory) = &mut self.session.memory {
            memory.begin();
        }
        self.bases.set(&mut self.session, &command.bases)?;
        self.session.interrupted = false;
        self.started = true;
        self.session.start(command)?;
        let limit = command.cycle_limit.unwrap_or(DEFAULT_CYCLE_LIMIT);
        let end = self.wait_for_end(limit)?;
        if matches!(end, CommandEnd::Limit) {
            self.soft_reset();
            return Ok(Err(DeviceError::CycleLimit { limit }));
        }
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

    /// Serves the core until the command has ended.
    fn wait_for_end(&mut self, limit: u64) -> Result<CommandEnd, Fault> {
        let mut look_at = self.session.served + FRAMES_A_LOOK;
        let (mut last, mut stalls) = (None, 0);
        loop {
            let heard = self.session.serve_one()?;
            if heard && !self.session.interrupted && self.session.served < look_at {
                continue;
            }
            look_at = self.session.served + FRAMES_A_LOOK;
            let interrupted = std::mem::take(&mut self.session.interrupted);
            let status = self.session.read_reg(regs::STATUS)?;
            if status & regs::STATUS_BUSY == 0 {
                return Ok(CommandEnd::Done);
            }
            let cycle = self.session.read_wide(regs::CYCLES_LO)?;
            if cycle > limit && status & regs::STATUS_TRAPPED == 0 {
                return Ok(CommandEnd::Limit);
            }
            stalls = if heard && !interrupted || last != Some(cycle) { 0 } else { stalls + 1 };
            if stalls == MOST_STALLS {
                return Err(Fault::Stuck { cycle, status });
            }
            last = Some(cycle);
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
        let mut again = RETRIES;
        loop {
            self.find_again()?;
            let Err(fault) = act(self) else { return Ok(()) };
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
            Some(memory) => memory.bytes_mut()[range].copy_from_slice(bytes),
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
        while let Some((first, command)) = self.queue.next(ticket) {
            let outcome = self.run_command(&command);
            self.queue.done(first, outcome);
        }
        self.queue.take(ticket)
    }
}
