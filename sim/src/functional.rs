//! The functional simulator: executes a stream's meaning, without time.
//!
//! Instructions run one at a time in stream order, which the ISA contract makes a legal execution. Tokens are counted,
//! so a pop that comes before its push is a deadlock trap here. Traps carry the same unit, cause and ordinal as in
//! hardware. One check goes beyond the hardware: a deep vector instruction that reads a row it wrote itself is reported
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
use tilewright_hw::interrupt;
use tilewright_hw::isa::{DecodeError, Decoder, INSN_BYTES, Insn, Op, illegal_reasons};
use tilewright_hw::regs::{TrapCause, TrapUnit};

/// Why an instruction stopped early.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The hardware traps.
    Trap(TrapCause),
    /// The hardware traps at the check of this micro-op, counted from 0 over all loops.
    MicroOp(u64, TrapCause),
    /// The hardware traps when it checks the address of a vector operation's constants.
    Constants,
    /// The program broke a rule that the hardware does not check.
    Program(String),
    /// The instruction has more micro-ops or rows than the limit allows, and none of the allowed ones traps.
    Limit,
}

/// What one step did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepResult {
    /// This instruction ran and retired.
    Retired(Insn),
    /// The device trapped and runs nothing more.
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
    /// Creates a device with `memory_bytes` of zeroed memory and zeroed scratchpads.
    pub fn new(config: HwConfig, memory_bytes: u64) -> Fsim {
        let kernel = Kernel::best(&config);
        Fsim { state: State::new(&config, Some(kernel)), kernel, ..Fsim::without_values(config, memory_bytes) }
    }

    /// Creates a device for which nothing is ever executed: its scratchpads have no entries.
    pub(crate) fn without_values(config: HwConfig, memory_bytes: u64) -> Fsim {
        Fsim {
            state: State::new(&config, None),
            dram: vec![0; memory_bytes as usize],
            kernel: Kernel::Portable,
            decoder: Decoder::new(&config),
            config: Arc::new(config),
            queue: Queue::default(),
        }
    }

    /// Selects how matrix products are computed; all kernels give the same results. A kernel that this machine or
    /// configuration cannot use is ignored. Zeroes the scratchpads.
    pub fn with_kernel(mut self, kernel: Kernel) -> Fsim {
        if kernel.is_usable(&self.config) {
            self.kernel = kernel;
            self.state = State::new(&self.config, Some(kernel));
        }
        self
    }

    /// Returns device memory.
    pub fn memory(&self) -> &[u8] {
        &self.dram
    }

    /// Returns device memory for the host to fill.
    pub fn memory_mut(&mut self) -> &mut [u8] {
        &mut self.dram
    }

    /// Returns the shared configuration.
    pub(crate) fn shared_config(&self) -> &Arc<HwConfig> {
        &self.config
    }

    /// Ignores writes by the host.
    fn host_wrote(&mut self, _range: std::ops::Range<usize>) {}

    /// Returns the decoded micro-ops: acc, inp, wgt for gemm, and dst, a, b for vector.
    pub(crate) fn micro_ops(&self) -> [&[[u32; 3]]; 2] {
        [&self.state.gemm_uops, &self.state.vector_uops]
    }

    /// Starts a command that you run instruction by instruction.
    ///
    /// # Errors
    /// The same as [`Device::submit`](tilewright_hw::device::Device::submit).
    pub fn step_through(&mut self, command: &Command) -> Result<Stepper<'_>, DeviceError> {
        check_command(command, &self.config)?;
        // Tokens start at zero with each command.
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

    /// Returns bytes `addr..addr + len` of memory. Like the bus, it accepts only ranges whose beats all fit.
    fn dram_range(&self, addr: u64, len: u64) -> Result<std::ops::Range<usize>, Stop> {
        let beat = u64::from(self.config.bus_bytes());
        let end = addr.checked_add(len).and_then(|e| e.checked_next_multiple_of(beat));
        match end {
            Some(end) if end <= self.dram.len() as u64 => Ok(addr as usize..(addr + len) as usize),
            _ => Err(Stop::Trap(TrapCause::Bus)),
        }
    }

    /// Returns instruction `place` of a command's stream, or the cause of the trap that fetch takes there.
    pub(crate) fn instruction(&self, command: &Command, place: u32) -> Result<Insn, TrapCause> {
        let addr = command.insn_addr(place);
        let stream = command.stream();
        // The bus answers a burst as a whole. If it has all of the stream, it has all bursts.
        if self.dram_range(stream.start, stream.end - stream.start).is_err() {
            let burst = fetch_burst(&self.config, command, addr);
            if self.dram_range(burst.start, burst.end - burst.start).is_err() {
                return Err(TrapCause::Bus);
            }
        }
        let bytes = self.dram.get(addr as usize..).and_then(|rest| rest.first_chunk::<INSN_BYTES>());
        match self.decoder.decode(bytes.ok_or(TrapCause::Bus)?) {
            Ok(insn) if illegal_reasons(&insn, &self.config).is_empty() => Ok(insn),
            Err(DecodeError::Opcode(_)) => Err(TrapCause::Opcode),
            Ok(_) | Err(DecodeError::Field { .. }) => Err(TrapCause::Field),
        }
    }

    /// Runs an instruction, up to `most` of its micro-ops or rows of device memory.
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
        interrupt::check()?;
        while let StepResult::Retired(_) = stepper.step()? {
            interrupt::check()?;
        }
        Ok(stepper.into_report())
    }
}

/// Returns the burst in which fetch reads the instruction at `addr`. Bursts begin at the stream's start and at each
/// page, and the bus answers each as a whole.
pub(crate) fn fetch_burst(config: &HwConfig, command: &Command, addr: u64) -> std::ops::Range<u64> {
    let beat = u64::from(config.bus_bytes());
    let longest = u64::from(config.fetch_burst_beats()) * beat;
    let page_bytes = u64::from(PAGE_BYTES);
    let page = addr / page_bytes * page_bytes;
    let origin = page.max(command.stream_addr / beat * beat);
    let start = origin + (addr - origin) / longest * longest;
    start..(start + longest).min(page + page_bytes).min(command.stream().end)
}

/// A command that runs instruction by instruction. See [`Fsim::step_through`].
pub struct Stepper<'a> {
    device: &'a mut Fsim,
    command: Command,
    place: u32,
    issued: [u32; 4],
    /// Fewest cycles that each unit needs for what it did so far.
    least_cycles: [u64; 4],
    report: RunReport,
}

impl Stepper<'_> {
    /// Returns the device, to inspect its memory and scratchpads between steps.
    pub fn device(&mut self) -> &mut Fsim {
        self.device
    }

    /// Returns the place of the next instruction in the stream.
    pub fn place(&self) -> u32 {
        self.place
    }

    /// Returns the tokens in the counter from unit `from` to unit `to`, by unit number.
    pub fn tokens(&self, from: usize, to: usize) -> u32 {
        self.device.state.tokens[from][to]
    }

    /// Returns the report so far.
    pub fn report(&self) -> &RunReport {
        &self.report
    }

    /// Returns the final report.
    pub fn into_report(self) -> RunReport {
        self.report
    }

    /// Returns the next instruction, or the trap that fetch would take there, or `None` at the end of the stream.
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
    /// - [`DeviceError::Program`] if the instruction breaks a rule that the hardware does not check
    /// - [`DeviceError::InsnLimit`] after as many instructions, or micro-ops or rows of one unit, as the command allows
    ///   cycles; a timed device would take at least that long
    pub fn step(&mut self) -> Result<StepResult, DeviceError> {
        if let Some(trap) = self.report.trap {
            return Ok(StepResult::Trapped(trap));
        }
        let insn = match self.peek() {
            None => return Ok(StepResult::Finished),
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
        // The work is done, so the instruction counts as retired even if one of its pushes finds a full counter.
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
        Ok(StepResult::Retired(insn))
    }

    fn trapped(&mut self, trap: Trap) -> StepResult {
        self.report.trap = Some(trap);
        StepResult::Trapped(trap)
    }
}

crate::queue::device!(Fsim, "fsim");

#[cfg(test)]
mod tests;
