//! A board as a device.

use super::error::{Fault, LinkError, Once};
use super::memory::HostMemory;
use super::replay;
use super::session::{Identity, LinkOptions, Session};
use tilewright_hw::config::HwConfig;
use tilewright_hw::device::queue::{DEFAULT_CYCLE_LIMIT, Queue};
use tilewright_hw::device::{Command, Device, DeviceError, RunReport, Ticket, memory_range};
use tilewright_hw::host::{BaseRegisters, Registers, retired_macs};
use tilewright_hw::link::{ByteStream, Memory, memory_beats};
use tilewright_hw::regs;

/// How often a command is run again, and what goes to the board's memory or comes from it is brought again, where the link fails.
const RETRIES: usize = 2;
/// Looks at a command that neither answers nor moves, after which it is given up.
const MOST_STALLS: usize = 8;
/// Frames of the core's memory after which a running command's cycles are looked at.
const FRAMES_A_LOOK: u64 = 4096;
/// Looks at the status register after which a soft reset has failed.
const RESET_LOOKS: usize = 1000;

/// A board behind a link.
///
/// Where the link fails in a command whose memory is at the host, what the command wrote is taken back and it is run again,
/// provided that it reads nothing from scratchpads but what it has put there. Where memory is on the board, what is written there or
/// read is so again; a command that began is not, because what it wrote stays.
#[derive(Debug)]
pub struct LinkDevice<S> {
    config: HwConfig,
    name: String,
    identity: Identity,
    session: Session<S>,
    memory_bytes: u64,
    bases: BaseRegisters,
    queue: Queue,
    /// The link has failed and is to begin anew.
    lost: bool,
    /// The command's doorbell may have been rung.
    started: bool,
    retries: u64,
}

/// How a command's run on the board ended.
enum End {
    Done,
    Limit,
}

impl<S: ByteStream> LinkDevice<S> {
    /// Begins the link anew and checks that the board has this configuration.
    ///
    /// # Errors
    /// What is wrong, with what to do.
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
            // What lies behind the last address is out of the core's reach.
            Some(bytes) => bytes.min(1 << config.offset_bits),
            None => at_host,
        };
        if identity.hello.memory == Memory::Host {
            session.memory = Some(HostMemory::new(&config, at_host));
        }
        let bases = BaseRegisters::new(&config);
        let (queue, lost, started, retries) = (Queue::default(), false, false, 0);
        let mut device =
            LinkDevice { config, name, identity, session, memory_bytes, bases, queue, lost, started, retries };
        device.set_up().map_err(|fault| device.session.error(fault))?;
        Ok(device)
    }

    /// What the board said that it is.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Commands that were run again, and ranges of the board's memory that were written or read again, because the link had failed.
    pub fn retries(&self) -> u64 {
        self.retries
    }

    /// The stream of bytes, for tests that spoil it.
    pub fn stream_mut(&mut self) -> &mut S {
        self.session.stream_mut()
    }

    /// The stream of bytes; what the board is doing it goes on doing.
    pub fn into_stream(self) -> S {
        self.session.into_stream()
    }

    /// The same device, which gives up each command that has no limit of its own after so many cycles.
    pub fn with_cycle_limit(mut self, limit: Option<u64>) -> Self {
        self.queue.cycle_limit = limit;
        self
    }

    /// What the host writes after a reset: bases that nothing fits in, and that it wants the interrupt.
    fn set_up(&mut self) -> Result<(), Fault> {
        self.bases.clear(&mut self.session)?;
        self.session.write_reg(regs::CONTROL, regs::CONTROL_IRQ_ENABLE)
    }

    /// Begins the link anew, after which the board is as after power-on but for what its memories hold.
    fn begin_anew(&mut self) -> Result<(), Fault> {
        self.identity.hello = self.session.begin()?;
        let identity = self.session.identity(self.identity.hello)?;
        identity.check(&self.config)?;
        self.set_up()?;
        self.lost = false;
        Ok(())
    }

    /// Begins the link anew where it has failed.
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

    /// Why the command that failed just now may not be run again, if so. Memory at the host is as before it.
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
        if matches!(end, End::Limit) {
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
        // The board looks at no limit by itself.
        Ok(if last > Some(limit) { Err(DeviceError::CycleLimit { limit }) } else { Ok(report) })
    }

    /// Serves the core until the command has ended.
    fn wait_for_end(&mut self, limit: u64) -> Result<End, Fault> {
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
                return Ok(End::Done);
            }
            let cycle = self.session.read_wide(regs::CYCLES_LO)?;
            if cycle > limit && status & regs::STATUS_TRAPPED == 0 {
                return Ok(End::Limit);
            }
            stalls = if heard && !interrupted || last != Some(cycle) { 0 } else { stalls + 1 };
            if stalls == MOST_STALLS {
                return Err(Fault::Stuck { cycle, status });
            }
            last = Some(cycle);
        }
    }

    /// Resets the core by its register, which keeps the bases; where that does not come back, the link is to begin anew.
    fn soft_reset(&mut self) {
        let done = self.session.soft_reset(RESET_LOOKS);
        self.lost = !matches!(done, Ok(true));
    }

    /// Multiply-accumulates of the gemm instructions that retired.
    fn macs(&mut self, command: &Command, retired: u32) -> Result<u64, Fault> {
        let range = command.stream();
        let range = memory_range(range.start, range.end - range.start, self.memory_bytes());
        // A stream that passes the end of memory ended in a bus error.
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

    /// The beats around a range, by pieces that a frame may carry: where each begins and ends.
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
            // Beats at the ends keep what lies beside the range.
            if (from, to) != (start, end) {
                self.session.read_board(start, &mut beats)?;
            }
            beats[(from - start) as usize..(to - start) as usize]
                .copy_from_slice(&bytes[(from - addr) as usize..(to - addr) as usize]);
            self.session.write_board(start, &beats)?;
        }
        Ok(())
    }

    /// Does something with memory on the board that may be done twice, again where the link fails.
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
