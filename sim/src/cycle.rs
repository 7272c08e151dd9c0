//! The cycle model: executes a stream with exact timing, event by event, by the rules of `hw/TIMING.md`.
//!
//! The functional simulator computes the values: an instruction does its work when its start is known, which is after
//! everything it depends on. Times are sums and maxima over events of instructions, rows and bursts. The model never
//! steps through cycles one by one.

mod bursts;
mod bus;
mod check;
mod compute;
mod end;
mod engine;
mod fetch;
mod load;
mod ports;
mod ring;
mod shares;
mod slots;
mod states;
mod store;
mod tokens;
mod undo;

pub use check::{Diagnosis, DiagnosisKind};

use crate::access::Context;
use crate::dram::Dram;
use crate::functional::dma::StoreRows;
use crate::functional::{Fsim, Stop};
use bursts::{Cut, PendingBytes};
use check::{Checker, Memories, TimedDiagnosis};
use engine::{Engine, Environment, Halt, Order};
use ports::MicroOps;
use slots::Time;
use std::rc::Rc;
use std::sync::Arc;
use tilewright_hw::config::{DramSection, HwConfig, Mem};
use tilewright_hw::device::queue::{DEFAULT_CYCLE_LIMIT, Queue};
use tilewright_hw::device::{Command, DeviceError, RunReport, check_command};
use tilewright_hw::isa::{Insn, Op, Opcode, Store, Unit};
use tilewright_hw::regs::TrapCause;
use undo::Undo;

/// Options of the cycle model.
#[derive(Debug, Clone, Copy, Default)]
pub struct CsimOptions {
    /// Timing of the memory; `None` takes the configuration's.
    pub dram: Option<DramSection>,
    /// Computes no values, only times. Traps are then limited to those of fetch, rows, tokens and the bus.
    pub timing_only: bool,
    /// Looks for races, ports that avoid a collision only by accident of timing, and reads of data that nothing wrote.
    /// A program with any of these, or one that deadlocks or overflows a token counter, ends with
    /// [`DeviceError::Program`]. Overrides `timing_only`.
    pub strict: bool,
    /// Reports when each instruction started and retired, and what it waited for.
    pub spans: bool,
}

/// The cycle model.
pub struct Csim {
    /// The configuration, shared with the functional simulator.
    config: Arc<HwConfig>,
    fsim: Fsim,
    options: CsimOptions,
    /// Whether load made the last read request of the previous command.
    last_load: bool,
    /// What has been written so far; tracked only in strict mode.
    memories: Memories,
    diagnoses: Vec<Diagnosis>,
    /// Whether commands run one word at a time, as a reference for tests.
    plain: bool,
    queue: Queue,
}

impl Csim {
    /// Creates a device with `memory_bytes` of zeroed memory and zeroed scratchpads.
    pub fn new(config: HwConfig, memory_bytes: u64, options: CsimOptions) -> Csim {
        let options = CsimOptions { timing_only: options.timing_only && !options.strict, ..options };
        let create = if options.timing_only { Fsim::without_values } else { Fsim::new };
        let fsim = create(config, memory_bytes);
        Csim {
            config: Arc::clone(fsim.shared_config()),
            fsim,
            options,
            last_load: true,
            memories: Memories::default(),
            diagnoses: Vec::new(),
            plain: false,
            queue: Queue::default(),
        }
    }

    /// Returns device memory.
    pub fn memory(&self) -> &[u8] {
        self.fsim.memory()
    }

    /// Returns device memory for the host to fill. A strict device does not notice these writes; use
    /// [`Device::write`](tilewright_hw::device::Device::write) instead.
    pub fn memory_mut(&mut self) -> &mut [u8] {
        self.fsim.memory_mut()
    }

    /// Returns the errors of the last command's program, sorted by place. Empty if the command hit its cycle limit.
    /// See [`CsimOptions::strict`].
    pub fn diagnoses(&self) -> &[Diagnosis] {
        &self.diagnoses
    }

    /// Records that the host wrote these bytes.
    fn host_wrote(&mut self, range: std::ops::Range<usize>) {
        if self.options.strict {
            self.memories.bytes.add(range.start as u64..range.end as u64);
        }
    }

    fn entries(&mut self, mem: Mem, entry: u32, count: u32) -> Vec<u8> {
        if self.options.timing_only {
            return vec![0; (count * self.config.entry_bytes(mem)) as usize];
        }
        self.fsim.entries(mem, entry, count)
    }

    /// Runs a command for its times alone. Its instructions are given, as if they were in memory: they must be ones
    /// that can be encoded and are legal.
    ///
    /// # Errors
    /// As for [`Device::run`](tilewright_hw::device::Device::run).
    pub fn time(&mut self, command: &Command, insns: &[Insn]) -> Result<RunReport, DeviceError> {
        check_command(command, &self.config)?;
        let whole = self.options;
        self.options = CsimOptions { timing_only: true, strict: false, ..whole };
        let report = self.run_insns(command, Some(insns));
        self.options = whole;
        report
    }

    fn run_command(&mut self, command: &Command) -> Result<RunReport, DeviceError> {
        self.run_insns(command, None)
    }

    /// Runs a command whose instructions are given, or else in memory.
    fn run_insns(&mut self, command: &Command, insns: Option<&[Insn]>) -> Result<RunReport, DeviceError> {
        let config = Arc::clone(&self.config);
        let section = self.options.dram.unwrap_or(config.dram);
        let dram = Dram::new(section, self.fsim.memory().len() as u64, config.bus_bytes());
        let limit = command.cycle_limit.unwrap_or(DEFAULT_CYCLE_LIMIT);
        let values = Values {
            fsim: &mut self.fsim,
            command,
            insns,
            timing_only: self.options.timing_only,
            report: RunReport::default(),
            known: [None, None],
            undo: Undo::default(),
            check: self.options.strict.then(|| (Checker::new(command.stream()), &mut self.memories)),
        };
        let stream = (command.stream_addr, command.insns);
        let mut engine = Engine::new(&config, &command.bases, dram, values, stream, limit, self.last_load)
            .keep_spans(self.options.spans);
        if !self.options.timing_only {
            engine = engine.watch_ports();
        }
        if self.plain {
            engine = engine.plain();
        }
        // A run that hits its limit is followed by a reset.
        self.last_load = true;
        self.diagnoses.clear();
        let outcome = engine.run()?.ok_or(DeviceError::CycleLimit { limit })?;
        self.diagnoses = outcome.diagnoses;
        if let Some((index, what)) = outcome.program {
            return Err(DeviceError::Program { index, what });
        }
        if self.options.strict
            && let Some(first) = self.diagnoses.first()
        {
            return Err(DeviceError::Program { index: first.place, what: first.text.clone() });
        }
        // A trap is followed by a reset.
        self.last_load = outcome.last_load || outcome.report.trap.is_some();
        Ok(outcome.report)
    }
}

/// The engine's access to the functional simulator during a run.
struct Values<'a> {
    fsim: &'a mut Fsim,
    command: &'a Command,
    /// The instructions, if they are not read from memory.
    insns: Option<&'a [Insn]>,
    timing_only: bool,
    report: RunReport,
    /// The micro-ops of the last gemm and vector instruction, with first and count, until a load overwrites micro-ops.
    known: [Option<(u32, u32, Rc<MicroOps>)>; 2],
    undo: Undo,
    check: Option<(Checker, &'a mut Memories)>,
}

impl Values<'_> {
    /// Runs a store. If a row passes the end of memory, its bursts that fit are still written: the bus reports the
    /// error only after the other bursts, when more rows are already under way.
    fn store(&mut self, x: &Store, most: u64) -> Result<(), Stop> {
        let config = Arc::clone(self.fsim.shared_config());
        let memory_bytes = self.fsim.memory().len() as u64;
        let (cut, mut end) = (Cut::new(&config), Ok(()));
        for (row, _) in StoreRows::new(&config, x, &self.command.bases).zip(0..most) {
            let (addr, source) = row?;
            if addr + u64::from(x.row_bytes) <= memory_bytes {
                self.undo.note(self.fsim.memory(), addr as usize..addr as usize + source.len());
                self.fsim.store_bytes(x.mem, source, addr as usize);
                continue;
            }
            end = Err(Stop::Trap(TrapCause::Bus));
            let (mut bursts, mut from) = (PendingBytes::new(addr, x.row_bytes.into(), 0), source.start);
            while !bursts.is_empty() {
                let (at, request) = (bursts.at(), bursts.next(cut));
                let bytes = bursts.granted(request, cut, 0);
                if request.addr + u64::from(request.beats) * cut.beat_bytes <= memory_bytes {
                    self.undo.note(self.fsim.memory(), at as usize..(at + bytes) as usize);
                    self.fsim.store_bytes(x.mem, from..from + bytes as usize, at as usize);
                } else {
                    self.undo.note_outside(bytes);
                }
                from += bytes as usize;
            }
        }
        end
    }
}

impl Environment for Values<'_> {
    fn wrote(&mut self, bytes: u64) {
        self.undo.forget(bytes);
    }

    fn take_back(&mut self, bytes: u64) {
        self.undo.take_back(self.fsim.memory_mut(), bytes);
    }

    fn refuses(&self, place: u32) -> Unit {
        let opcode = self
            .fsim
            .memory()
            .get(self.command.insn_addr(place) as usize)
            .and_then(|byte| Opcode::from_code(byte & 15));
        opcode.map_or(Unit::Load, Opcode::unit)
    }

    fn found(&mut self) -> Vec<TimedDiagnosis> {
        self.check.take().map(|(checker, _)| checker.into_found()).unwrap_or_default()
    }

    fn decode(&mut self, place: u32, at: Time) -> Result<Insn, TrapCause> {
        if let Some((checker, memories)) = &mut self.check {
            checker.fetched(memories, place, at);
        }
        match self.insns {
            Some(insns) => insns.get(place as usize).copied().ok_or(TrapCause::Bus),
            None => self.fsim.instruction(self.command, place),
        }
    }

    fn micro_ops(&mut self, insn: &Insn) -> Option<Rc<MicroOps>> {
        if self.timing_only {
            return None;
        }
        let (memory, first, count) = match &insn.op {
            Op::Gemm(x) => (0, x.uop, x.uops),
            Op::Vector(x) => (1, x.uop, x.uops),
            Op::Load(x) => {
                match x.mem {
                    Mem::GemmUop => self.known[0] = None,
                    Mem::VectorUop => self.known[1] = None,
                    _ => {}
                }
                return None;
            }
            Op::Store(_) => return None,
        };
        let known = self.known[memory].take().filter(|known| (known.0, known.1) == (first, count));
        let list = &self.fsim.micro_ops()[memory];
        let (_, _, micro_ops) = match known {
            Some(known) => known,
            None => {
                // Micro-ops past the end of memory are never needed: the first of them traps.
                let end = list.len().min((first + count) as usize);
                let there = list.get(first as usize..end).filter(|there| !there.is_empty())?;
                (first, count, Rc::new(MicroOps::new(there)))
            }
        };
        self.known[memory] = Some((first, count, Rc::clone(&micro_ops)));
        Some(micro_ops)
    }

    fn run(&mut self, insn: &Insn, order: Order) -> Result<(), Halt> {
        if self.timing_only {
            return Ok(());
        }
        if let Some((checker, memories)) = &mut self.check {
            let context = Context {
                config: self.fsim.shared_config(),
                bases: &self.command.bases,
                memory_bytes: self.fsim.memory().len() as u64,
                micro_ops: self.fsim.micro_ops(),
                most: order.most,
            };
            checker.starts(&context, memories, order, &insn.op);
        }
        let end = match &insn.op {
            Op::Store(x) => self.store(x, order.most),
            op => self.fsim.execute(op, &self.command.bases, order.most, &mut self.report),
        };
        match end {
            // An instruction that runs past the limit has no values, but its times show that the run does too.
            Ok(()) | Err(Stop::Limit) => Ok(()),
            Err(Stop::Program(what)) => Err(Halt::Program(what)),
            Err(Stop::MicroOp(step, cause)) => Err(Halt::At { step, cause }),
            Err(Stop::Constants) => Err(Halt::Constants),
            Err(Stop::Trap(_)) => Err(Halt::Rows),
        }
    }
}

crate::queue::device!(Csim, "csim");

#[cfg(test)]
mod tests;
