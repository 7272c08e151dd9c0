//! The functional simulator: the meaning of a stream, without time.
//!
//! Instructions run whole, one after the other, in the stream's order, which the contract makes a legal execution. Tokens
//! are counted, so a pop that comes before its push is a deadlock trap here. Traps carry the unit, cause and ordinal that
//! the hardware gives. Beyond the hardware, a deep vector instruction that reads a row which it wrote itself is reported
//! as a program error.

mod copies;
pub(crate) mod dma;
mod gemm;
mod kernel;
pub(crate) mod loops;
mod state;
pub(crate) mod vector;

pub use kernel::Kernel;

use state::State;
use std::sync::Arc;
use tilewright_hw::config::{HwConfig, Mem, PAGE_BYTES};
use tilewright_hw::device::queue::{DEFAULT_CYCLE_LIMIT, Queue};
use tilewright_hw::device::{Base, Command, DeviceError, RunReport, Trap, check_command};
use tilewright_hw::isa::{DecodeError, Decoder, INSN_BYTES, Insn, Op, illegal_reasons};
use tilewright_hw::regs::{TrapCause, TrapUnit};

/// Why an instruction could not run to its end.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The hardware traps.
    Trap(TrapCause),
    /// It traps at the check of a micro-op, counted from 0 over all loops.
    MicroOp(u64, TrapCause),
    /// It traps at the check of where a vector operation's constants lie.
    Constants,
    /// A rule that the hardware does not check was broken.
    Program(String),
    /// It has more micro-ops or rows than it may run, and none of those that it may would have trapped.
    Limit,
}

/// What one step did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// This instruction ran and retired.
    Retired(Insn),
    /// The device trapped; nothing runs any more.
    Trapped(Trap),
    /// The stream has no more instructions.
    Finished,
}

/// The functional simulator.
pub struct Fsim {
    config: Arc<HwConfig>,
    state: State,
    dram: Vec<u8>,
    kernel: Kernel,
    decoder: Decoder,
    queue: Queue,
}

impl Fsim {
    /// A device with this much zeroed memory, scratchpads zeroed too.
    pub fn new(config: HwConfig, memory_bytes: u64) -> Fsim {
        let kernel = Kernel::best(&config);
        Fsim {
            state: State::new(&config, kernel),
            dram: vec![0; memory_bytes as usize],
            kernel,
            decoder: Decoder::new(&config),
            config: Arc::new(config),
            queue: Queue::default(),
        }
    }

    /// The same device computing matrix products in a given way; all ways give the same result. A way that this machine
    /// or configuration cannot use is left aside. Scratchpads are zeroed.
    pub fn with_kernel(mut self, kernel: Kernel) -> Fsim {
        if kernel.is_usable(&self.config) {
            self.kernel = kernel;
            self.state = State::new(&self.config, kernel);
        }
        self
    }

    /// Device memory.
    pub fn memory(&self) -> &[u8] {
        &self.dram
    }

    /// Device memory, to be filled by the host.
    pub fn memory_mut(&mut self) -> &mut [u8] {
        &mut self.dram
    }

    /// The configuration, as it is shared.
    pub(crate) fn shared_config(&self) -> &Arc<HwConfig> {
        &self.config
    }

    /// The host wrote these bytes; nobody asks.
    fn host_wrote(&mut self, _range: std::ops::Range<usize>) {}

    /// Decoded micro-ops: of gemm in the order acc, inp, wgt; of vector in the order dst, a, b.
    pub(crate) fn micro_ops(&self) -> [&[[u32; 3]]; 2] {
        [&self.state.gemm_uops, &self.state.vector_uops]
    }

    /// Starts a command that is run by hand, instruction by instruction.
    ///
    /// # Errors
    /// As [`Device::submit`].
    pub fn step_through(&mut self, command: &Command) -> Result<Stepper<'_>, DeviceError> {
        check_command(command, &self.config)?;
        // Tokens begin anew with each command.
        self.state.tokens = Default::default();
        Ok(Stepper {
            command: command.clone(),
            place: 0,
            issued: [0; 4],
            least_cycles: [0; 4],
            report: RunReport::default(),
            device: self,
        })
    }

    /// Bytes `addr..addr + len` of memory as a bus sees them: whole beats, all or none.
    fn dram_range(&self, addr: u64, len: u64) -> Result<std::ops::Range<usize>, Stop> {
        let beat = u64::from(self.config.bus_bytes());
        let end = addr.checked_add(len).and_then(|e| e.checked_next_multiple_of(beat));
        match end {
            Some(end) if end <= self.dram.len() as u64 => Ok(addr as usize..(addr + len) as usize),
            _ => Err(Stop::Trap(TrapCause::Bus)),
        }
    }

    /// The instruction at a place of a command's stream, or the cause of the trap that fetch takes at it.
    pub(crate) fn instruction(&self, command: &Command, place: u32) -> Result<Insn, TrapCause> {
        let addr = command.insn_addr(place);
        let burst = fetch_burst(&self.config, command, addr);
        let length = burst.end - burst.start;
        let (Ok(_), Ok(range)) = (self.dram_range(burst.start, length), self.dram_range(addr, INSN_BYTES as u64))
        else {
            return Err(TrapCause::Bus);
        };
        let mut bytes = [0; INSN_BYTES];
        bytes.copy_from_slice(&self.dram[range]);
        match self.decoder.decode(&bytes) {
            Ok(insn) if illegal_reasons(&insn, &self.config).is_empty() => Ok(insn),
            Err(DecodeError::Opcode(_)) => Err(TrapCause::Opcode),
            Ok(_) | Err(DecodeError::Field { .. }) => Err(TrapCause::Field),
        }
    }

    /// Runs an instruction, at most so many of its micro-ops or rows of device memory.
    pub(crate) fn execute(&mut self, op: &Op, bases: &[Base], most: u64, report: &mut RunReport) -> Result<(), Stop> {
        match op {
            Op::Load(x) => self.load(x, bases, most),
            Op::Store(x) => self.store(x, bases, most),
            Op::Gemm(x) => self.gemm(x, most, report),
            Op::Vector(x) => self.vector(x, most),
        }
    }

    pub(crate) fn entries(&mut self, mem: Mem, entry: u32, count: u32) -> Vec<u8> {
        self.state.bytes(mem, entry as usize, count as usize)
    }

    fn run_command(&mut self, command: &Command) -> Result<RunReport, DeviceError> {
        let mut stepper = self.step_through(command)?;
        while let Step::Retired(_) = stepper.step()? {}
        Ok(stepper.into_report())
    }
}

/// The burst in which fetch reads the instruction at `addr`: bursts begin with the stream and at each page, and the bus
/// answers one as a whole.
pub(crate) fn fetch_burst(config: &HwConfig, command: &Command, addr: u64) -> std::ops::Range<u64> {
    let beat = u64::from(config.bus_bytes());
    let longest = u64::from(config.fetch_burst_beats()) * beat;
    let page_bytes = u64::from(PAGE_BYTES);
    let page = addr / page_bytes * page_bytes;
    let origin = page.max(command.stream_addr / beat * beat);
    let start = origin + (addr - origin) / longest * longest;
    start..(start + longest).min(page + page_bytes).min(command.stream().end)
}

/// A command that runs instruction by instruction; see [`Fsim::step_through`].
pub struct Stepper<'a> {
    device: &'a mut Fsim,
    command: Command,
    place: u32,
    issued: [u32; 4],
    /// Cycles that each unit takes at least for what it did.
    least_cycles: [u64; 4],
    report: RunReport,
}

impl Stepper<'_> {
    /// The device, to look at its memory and scratchpads between two steps.
    pub fn device(&mut self) -> &mut Fsim {
        self.device
    }

    /// Place of the next instruction in the stream.
    pub fn place(&self) -> u32 {
        self.place
    }

    /// Tokens in the counter from the first to the second unit, by unit number.
    pub fn tokens(&self, from: usize, to: usize) -> u32 {
        self.device.state.tokens[from][to]
    }

    /// What happened so far.
    pub fn report(&self) -> &RunReport {
        &self.report
    }

    /// What happened.
    pub fn into_report(self) -> RunReport {
        self.report
    }

    /// The next instruction, or the trap that fetch would take at it, or `None` at the stream's end.
    pub fn peek(&self) -> Option<Result<Insn, Trap>> {
        if self.place >= self.command.insns {
            return None;
        }
        let trap = |cause| Trap { unit: TrapUnit::Fetch, cause, ordinal: self.place, cycle: None };
        Some(self.device.instruction(&self.command, self.place).map_err(trap))
    }

    /// Runs the next instruction.
    ///
    /// # Errors
    /// [`DeviceError::Program`]; [`DeviceError::InsnLimit`] after as many instructions, or micro-ops or rows of a unit, as the
    /// command allows cycles: it would take at least so many.
    pub fn step(&mut self) -> Result<Step, DeviceError> {
        if let Some(trap) = self.report.trap {
            return Ok(Step::Trapped(trap));
        }
        let insn = match self.peek() {
            None => return Ok(Step::Finished),
            Some(Err(trap)) => return Ok(self.trapped(trap)),
            Some(Ok(insn)) => insn,
        };
        let limit = self.command.cycle_limit.unwrap_or(DEFAULT_CYCLE_LIMIT);
        if u64::from(self.place) >= limit {
            return Err(DeviceError::InsnLimit { limit });
        }

        let unit = insn.unit();
        let ordinal = self.issued[unit as usize];
        self.issued[unit as usize] += 1;
        let trap = |cause| Trap { unit: unit.into(), cause, ordinal, cycle: None };

        for from in insn.pop.iter() {
            let counter = &mut self.device.state.tokens[from as usize][unit as usize];
            if *counter == 0 {
                return Ok(self.trapped(trap(TrapCause::Deadlock)));
            }
            *counter -= 1;
        }
        let done = &mut self.least_cycles[unit as usize];
        match self.device.execute(&insn.op, &self.command.bases, limit - *done, &mut self.report) {
            Ok(()) => *done += insn.op.least_cycles(),
            Err(Stop::Limit) => return Err(DeviceError::InsnLimit { limit }),
            Err(Stop::Trap(cause) | Stop::MicroOp(_, cause)) => return Ok(self.trapped(trap(cause))),
            Err(Stop::Constants) => return Ok(self.trapped(trap(TrapCause::Scratchpad))),
            Err(Stop::Program(what)) => return Err(DeviceError::Program { index: self.place, what }),
        }
        // The work is done, so the instruction has retired even where one of its tokens finds a full counter.
        self.report.retired[unit as usize] += 1;
        let full = (1u32 << self.device.config.token_bits) - 1;
        for to in insn.push.iter() {
            let counter = &mut self.device.state.tokens[unit as usize][to as usize];
            if *counter == full {
                return Ok(self.trapped(trap(TrapCause::Token)));
            }
            *counter += 1;
        }
        self.place += 1;
        Ok(Step::Retired(insn))
    }

    fn trapped(&mut self, trap: Trap) -> Step {
        self.report.trap = Some(trap);
        Step::Trapped(trap)
    }
}

crate::queue::device!(Fsim, "fsim");

#[cfg(test)]
mod tests;
