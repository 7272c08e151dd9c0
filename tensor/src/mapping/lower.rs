//! Walks through a loop program and adds its instructions.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::rc::Rc;

use tilewright_driver::{AccelProgram, Builder, DriverError, RegionId, Role, run_program};
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::device::{Device, RunReport};
use tilewright_hw::isa::PARAM_ROWS;
use tilewright_hw::layout::{pack_descriptor, pack_params, pack_table};

use super::error::LowerError;
use super::intrinsics::{Instruction, VectorCall, called};
use super::memory::{self, Held, MemoryUse, Place};
use super::needs::{Marks, Needs};
use super::params::Taps;
use super::stages::Stages;
use crate::schedule::bounds;
use crate::te::{Array, Expr, Name, NameMap, NameSet, scalar};
use crate::tir::{Action, Affine, Block, Bounds, For, Function, LoopKind, Scope, Stmt, View, simplify};

/// Most instructions of a program.
const MOST_INSTRUCTIONS: usize = 1 << 20;

/// Alignment of tensors in device memory, in bytes.
const ALIGN: u64 = 64;

/// What the host writes into device memory before a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostInput {
    /// The input with that number.
    Tensor(usize),
    /// Three inputs as entries of param: biases, multipliers and shifts.
    Params([usize; 3]),
    /// An input of 256 bytes as the table of a lookup.
    Table(usize),
    /// An input of weights of depthwise convolutions, `[..., TAPS, block_out]`, as entries of param.
    Taps(usize),
}

impl HostInput {
    /// Returns the bytes to write, given all inputs of the tensor expression.
    pub fn bytes(&self, config: &HwConfig, inputs: &[Array]) -> Vec<u8> {
        let words = |i: usize| -> Vec<i32> {
            let words = |a: &Array| (0..a.len()).filter_map(|k| a.get(k)).map(|v| v.int() as i32).collect();
            inputs.get(i).map(words).unwrap_or_default()
        };
        match *self {
            HostInput::Tensor(i) => inputs.get(i).map(|a| a.bytes.clone()).unwrap_or_default(),
            HostInput::Params([bias, multiplier, shift]) => {
                let shifts: Vec<i8> = words(shift).iter().map(|&s| scalar::shift(s)).collect();
                pack_params(config, &words(bias), &words(multiplier), &shifts)
            }
            HostInput::Taps(i) => {
                let Some([.., taps, lanes]) = inputs.get(i).map(|a| &a.shape[..]) else { return Vec::new() };
                let row = *lanes as usize;
                let bytes = (*taps as usize).div_ceil(PARAM_ROWS as usize) * PARAM_ROWS as usize * row;
                let blocks = inputs[i].bytes.chunks(*taps as usize * row);
                blocks.flat_map(|b| b.iter().copied().chain(vec![0; bytes - b.len()])).collect()
            }
            HostInput::Table(i) => {
                // The hardware indexes the table with the byte as an unsigned number.
                let byte = |k: usize| inputs.get(i).and_then(|a| a.bytes.get(k ^ 0x80)).copied().unwrap_or(0);
                pack_table(config, &std::array::from_fn(|k| byte(k) as i8))
            }
        }
    }
}

/// A program of the accelerator, and how the host feeds it.
#[derive(Debug, Clone, PartialEq)]
pub struct Lowered {
    /// The program. Its outputs are those of the tensor expression, in order.
    pub program: AccelProgram,
    /// What the host writes to each of the program's inputs.
    pub inputs: Vec<HostInput>,
    /// How much of each scratchpad the program uses.
    pub footprint: Vec<MemoryUse>,
}

impl Lowered {
    /// Runs the program on a device. `outputs` have the types and shapes of the results; their elements do not matter.
    ///
    /// # Errors
    /// The device or the driver fails.
    pub fn run(
        &self,
        device: &mut dyn Device,
        inputs: &[Array],
        outputs: &[Array],
    ) -> Result<(Vec<Array>, RunReport), DriverError> {
        let data: Vec<Vec<u8>> = self.inputs.iter().map(|i| i.bytes(device.config(), inputs)).collect();
        let data: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
        let (results, report) = run_program(device, &self.program, &data)?;
        let arrays = results.into_iter().zip(outputs).map(|(bytes, like)| Array { bytes, ..like.clone() });
        Ok((arrays.collect(), report))
    }
}

/// Where a tensor begins in device memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// Its region.
    pub region: RegionId,
    /// First byte.
    pub offset: u64,
}

impl Address {
    /// Returns the address that many bytes behind.
    pub fn plus(self, bytes: u64) -> Address {
        Address { offset: self.offset + bytes, ..self }
    }
}

/// A load of contiguous entries of param.
#[derive(Debug, Clone, Copy)]
pub struct ParamLoad {
    /// Where they are in device memory.
    pub from: Address,
    /// First row of param.
    pub row: u32,
    /// Their size.
    pub bytes: u64,
}

/// A load to a buffer: its first entry and byte, bytes of a row, rows and planes.
type Loaded = (Name, [u32; 5]);

/// The first and the last iteration of loops.
pub(super) type Part = Vec<(Name, (i64, i64))>;

/// The loops around an iteration of a software pipeline.
struct Iteration {
    values: Vec<Option<i64>>,
    begun: NameMap<u64>,
}

/// A sum over all loops.
struct LoopSum {
    constant: i64,
    /// Number, variable and coefficient of each loop; [`NO_LOOP`] for other variables.
    terms: Vec<(usize, Name, i64)>,
}

/// The number of a variable that is no loop.
const NO_LOOP: usize = usize::MAX;

/// Sums by the address of their first expression and the number of indices, 0 for a single expression; `None` if they
/// are not affine. The expressions are borrowed as long as the sums exist, so that addresses are not used again.
type LoopSums = BTreeMap<(*const Expr, usize), Option<Rc<LoopSum>>>;

/// What is in scratchpads after the last instruction.
pub struct Done {
    /// The last entry of acc with sums, if any.
    pub summed: Option<u32>,
    /// The first entry of the slot that the last iteration used, for each buffer whose slots are used in turn.
    pub last: NameMap<u32>,
}

/// Adds instructions that read an entry of acc.
pub type OnceSummed<'l> = Box<dyn FnOnce(&mut Builder, u32) -> Result<(), DriverError> + 'l>;

/// The state of lowering.
pub struct Lower<'l> {
    /// The configuration.
    pub config: &'l HwConfig,
    /// The loop program.
    pub f: &'l Function,
    /// The instructions so far.
    pub b: &'l mut Builder,
    /// Where each tensor is in device memory, and each buffer of param in packed form.
    pub tensors: NameMap<Address>,
    /// Where each buffer is in its scratchpad.
    pub places: NameMap<Place>,
    /// Numbers of all loops.
    numbers: NameMap<usize>,
    /// Values of the loops that run one iteration after the other, by the loop's number.
    values: Vec<Option<i64>>,
    /// Indices and positions, so that an iteration only puts in the values of its loops.
    sums: RefCell<LoopSums>,
    /// Tensors that are not in device memory, because a buffer is the tensor itself.
    pub on_chip: NameSet,
    /// What to add once there is an entry of acc with sums, given that entry.
    pub once_summed: Option<OnceSummed<'l>>,
    /// The last entry of acc with sums, if any. The tiles of the next layer begin at the first entries, so an instruction
    /// that reads this one delays them least.
    pub summed: Option<u32>,
    /// An entry of acc that an instruction has written.
    pub acc_entry: Option<u32>,
    /// Iterations of each pipeline loop that have begun so far, those of the loops around it included.
    begun: NameMap<u64>,
    /// The software pipeline, if blocks have stages.
    stages: Option<Rc<Stages>>,
    /// The last iterations of the software pipeline that have begun, the latest first, for their later stages.
    late: VecDeque<Option<Iteration>>,
    /// Weights of depthwise convolutions in param.
    pub taps: Vec<Taps>,
    /// Ranges of all loops; while a part of a nest is added, those of the part.
    pub bounds: Bounds,
    /// Whether a nest is being added in several parts.
    pub in_parts: bool,
    /// The buffer whose entries a buffer of param shares.
    pub shares: NameMap<Name>,
    /// The buffer whose entries a result takes.
    pub reuses: NameMap<Name>,
    /// Buffers whose elements are loaded only once.
    whole: NameSet,
    /// Loads to these buffers.
    loaded: HashSet<Loaded>,
    /// Constants with which buffers are filled.
    inits: NameMap<i64>,
    /// Buffers to which instructions add, each with the first block that does.
    reduced: NameMap<Name>,
    instructions: &'l NameMap<Instruction>,
    /// The load of the scalars, until it is done.
    scalars: Option<ParamLoad>,
    /// Descriptors with their first entries of param.
    descriptors: Vec<(Vec<u8>, u32)>,
    /// Offset and length of constant bytes for padding.
    pads: HashMap<i8, (u64, u64)>,
}

/// Lowers a program with tensors of its own.
///
/// # Errors
/// [`LowerError`].
pub fn lower(
    config: &HwConfig,
    f: &Function,
    instructions: &NameMap<Instruction>,
    marks: &Marks,
) -> Result<Lowered, LowerError> {
    let needs = Needs::of(config, f, instructions, marks)?;
    let reserved = needs.descriptor_entries(config);
    let places = memory::places(config, f, &needs, reserved, &Held::default())?;
    let footprint = memory::footprint(config, f, &places, reserved);
    let mut b = Builder::new(config)?;
    let first = (config.entries(Mem::Param) / PARAM_ROWS).saturating_sub(reserved);
    let (tensors, inputs) = memory_of(config, f, &needs, &mut b)?;
    let scalars = match needs.scalars() {
        none if none.is_empty() => Address { region: b.constants(), offset: 0 },
        bytes => Address { region: b.constants(), offset: b.constant("descriptor", Role::Params, &bytes) },
    };
    Lower::new(config, f, instructions, &mut b, &needs, places, tensors).run(first, scalars)?;
    Ok(Lowered { program: b.finish()?, inputs, footprint })
}

/// Gives every tensor its bytes in the region, and declares inputs and outputs.
fn memory_of(
    config: &HwConfig,
    f: &Function,
    needs: &Needs,
    b: &mut Builder,
) -> Result<(NameMap<Address>, Vec<HostInput>), LowerError> {
    let Needs { packed, tables, taps, .. } = needs;
    let region = b.region("tensors", Role::Scratch, 0)?;
    let (mut tensors, mut inputs, mut next) = (NameMap::default(), Vec::new(), 0u64);
    let mut take = |bytes: u64| {
        let at = next;
        next = (at + bytes).next_multiple_of(ALIGN);
        at
    };
    // Inputs that something else than the copies to param reads.
    let mut read: NameSet = NameSet::default();
    f.body.visit_blocks(&mut |_, block| {
        let to_param = |target: &Name| {
            packed.iter().any(|p| p.buffers.contains(target))
                || tables.iter().any(|t| t.0 == *target)
                || taps.iter().any(|t| t.buffer == *target)
        };
        if block.target().is_some_and(to_param) {
            return;
        }
        block.each_expr(&mut |e| {
            e.visit(&mut |e| {
                if let Expr::Load { buffer, .. } = e {
                    read.insert(buffer.clone());
                }
            });
        });
    });
    for (i, p) in f.inputs().iter().enumerate() {
        if needs.is_in_param(i) && !read.contains(&p.name) {
            continue;
        }
        let bytes = p.size_bytes() as u64;
        let at = take(bytes);
        b.grow(region, at + bytes);
        b.input(p.name.as_str(), region, at, bytes);
        tensors.insert(p.name.clone(), Address { region, offset: at });
        inputs.push(HostInput::Tensor(i));
    }
    for p in packed {
        let biases = &f.inputs()[p.inputs[0]];
        let entries = (biases.len().unsigned_abs()).div_ceil(u64::from(config.block_out));
        let bytes = entries * u64::from(config.param_entry_bytes());
        let at = take(bytes);
        b.grow(region, at + bytes);
        b.input(&format!("{} packed", biases.name), region, at, bytes);
        tensors.insert(p.buffers[0].clone(), Address { region, offset: at });
        inputs.push(HostInput::Params(p.inputs));
    }
    for (table, i) in tables {
        let bytes = u64::from(config.table_entries() * config.param_entry_bytes());
        let at = take(bytes);
        b.grow(region, at + bytes);
        b.input(&format!("{table} packed"), region, at, bytes);
        tensors.insert(table.clone(), Address { region, offset: at });
        inputs.push(HostInput::Table(*i));
    }
    for t in taps {
        let blocks = f.inputs()[t.input].len() / (t.count * i64::from(config.block_out)).max(1);
        let bytes = (blocks * t.entries()).unsigned_abs() * u64::from(config.param_entry_bytes());
        let at = take(bytes);
        b.grow(region, at + bytes);
        b.input(&format!("{} packed", t.buffer), region, at, bytes);
        tensors.insert(t.buffer.clone(), Address { region, offset: at });
        inputs.push(HostInput::Taps(t.input));
    }
    let middle = f.locals.iter().filter(|local| local.scope == Scope::Global);
    for (p, is_output) in f.output_buffers().iter().map(|p| (p, true)).chain(middle.map(|p| (p, false))) {
        let bytes = p.size_bytes() as u64;
        let at = take(bytes);
        b.grow(region, at + bytes);
        if is_output {
            b.output(p.name.as_str(), region, at, bytes);
        }
        tensors.insert(p.name.clone(), Address { region, offset: at });
    }
    Ok((tensors, inputs))
}

/// Returns the buffers that instructions combine with further values, each with the first block that does.
fn reduced(f: &Function, instructions: &NameMap<Instruction>) -> NameMap<Name> {
    let mut found = NameMap::default();
    f.body.visit_blocks(&mut |_, block| {
        let Action::Call { args, .. } = &block.action else { return };
        let result = match called(block, instructions) {
            Some(Instruction::Gemm { .. }) => args.last(),
            Some(Instruction::Vector(v)) if v.combines.is_some() => v.params[0].and_then(|p| args.get(p)),
            _ => None,
        };
        if let Some(view) = result {
            found.entry(view.buffer.clone()).or_insert_with(|| block.name.clone());
        }
    });
    found
}

/// Returns the constants with which buffers of scratchpads are filled.
fn inits(f: &Function) -> NameMap<i64> {
    let mut found = NameMap::default();
    f.body.visit_blocks(&mut |_, block| {
        if let Action::Store { buffer, value: Expr::Int(v, _), .. } = &block.action {
            found.insert(buffer.clone(), *v);
        }
    });
    found
}

impl<'l> Lower<'l> {
    /// Begins to lower a program whose tensors and buffers have these places.
    pub fn new(
        config: &'l HwConfig,
        f: &'l Function,
        instructions: &'l NameMap<Instruction>,
        b: &'l mut Builder,
        needs: &Needs,
        places: NameMap<Place>,
        tensors: NameMap<Address>,
    ) -> Lower<'l> {
        let bounds = bounds(f);
        Lower {
            config,
            f,
            b,
            tensors,
            places,
            numbers: bounds.keys().cloned().zip(0..).collect(),
            values: vec![None; bounds.len()],
            sums: RefCell::default(),
            on_chip: NameSet::default(),
            once_summed: None,
            summed: None,
            acc_entry: None,
            begun: NameMap::default(),
            stages: needs.stages.clone().map(Rc::new),
            late: VecDeque::new(),
            taps: needs.taps.clone(),
            bounds,
            in_parts: false,
            shares: needs.shares.clone(),
            reuses: needs.reuses.clone(),
            whole: needs.whole.clone(),
            loaded: HashSet::new(),
            inits: inits(f),
            reduced: reduced(f, instructions),
            instructions,
            descriptors: needs.descriptors.iter().map(|bytes| (bytes.clone(), 0)).collect(),
            scalars: None,
            pads: HashMap::new(),
        }
    }

    /// Adds the instructions. Scalars are loaded to param from entry `first` on, from the constants at `scalars`.
    ///
    /// # Errors
    /// [`LowerError`]. Also if no instruction reads sums, but something waits for them.
    pub fn run(mut self, first: u32, scalars: Address) -> Result<Done, LowerError> {
        let each = self.config.descriptor_entries();
        self.descriptors.iter_mut().zip(0..).for_each(|((_, entry), i)| *entry = first + i * each);
        let bytes = self.descriptors.iter().map(|(bytes, _)| bytes.len() as u64).sum();
        if bytes > 0 {
            self.scalars = Some(ParamLoad { from: scalars, row: first * PARAM_ROWS, bytes });
        }
        self.b.track_loads(true);
        let f = self.f;
        self.statement(&f.body)?;
        self.b.track_loads(false);
        if let (Some(_), Some(output)) = (&self.once_summed, self.f.output_buffers().first()) {
            let reason =
                "the border around it is written once an instruction has read sums in acc, and none does".into();
            return Err(LowerError::Buffer { buffer: output.name.clone(), reason });
        }
        let last = |(name, place): (&Name, &Place)| {
            place.pipeline.as_ref()?;
            Some((name.clone(), self.slot(place)))
        };
        Ok(Done { summed: self.summed, last: self.places.iter().filter_map(last).collect() })
    }

    /// Loads entries of param. If the scalars are right before them, one load brings both.
    ///
    /// # Errors
    /// The driver refuses the load.
    pub fn load_param_rows(&mut self, load: ParamLoad) -> Result<(), LowerError> {
        let rows = |bytes: u64| (bytes / u64::from(self.config.param_entry_bytes())) as u32 * PARAM_ROWS;
        let load = match self.scalars.take() {
            Some(s) if s.row + rows(s.bytes) == load.row && s.from.plus(s.bytes) == load.from => {
                ParamLoad { bytes: s.bytes + load.bytes, ..s }
            }
            Some(s) => {
                self.b.load_linear(Mem::Param, s.from.region, s.from.offset, s.row, s.bytes)?;
                load
            }
            None => load,
        };
        Ok(self.b.load_linear(Mem::Param, load.from.region, load.from.offset, load.row, load.bytes)?)
    }

    /// Loads the scalars, unless that is done.
    fn load_scalars(&mut self) -> Result<(), LowerError> {
        match self.scalars.take() {
            Some(scalars) => self.load_param_rows(scalars),
            None => Ok(()),
        }
    }

    /// Returns an error about a block.
    pub fn refuse(&self, block: &Block, reason: impl Into<String>) -> LowerError {
        LowerError::Block { block: block.name.clone(), reason: reason.into() }
    }

    fn statement(&mut self, s: &'l Stmt) -> Result<(), LowerError> {
        if let Some((loops, block)) = memory::leaf(s) {
            return self.nest(&loops, block);
        }
        match s {
            Stmt::Seq(list) => list.iter().try_for_each(|s| self.statement(s)),
            Stmt::For(l) => {
                match &self.stages {
                    Some(stages) if stages.pipeline == l.var => self.staged(l)?,
                    _ => self.each(l, |lower| lower.statement(&l.body))?,
                }
                if self.values.iter().all(Option::is_none) { self.end_pipeline() } else { Ok(()) }
            }
            Stmt::Block(block) => self.nest(&[], block),
        }
    }

    /// Runs the iterations of a loop whose statements have stages.
    fn staged(&mut self, l: &'l For) -> Result<(), LowerError> {
        self.each(l, |lower| {
            let iteration = Iteration { values: lower.values.clone(), begun: lower.begun.clone() };
            lower.step(Some(iteration))
        })?;
        if self.stages.as_ref().is_some_and(|s| s.overlaps) { Ok(()) } else { self.end_pipeline() }
    }

    /// Runs one step of the software pipeline: each stage of the iteration that has reached it, the last stage first.
    /// `begins` is the iteration that begins.
    fn step(&mut self, begins: Option<Iteration>) -> Result<(), LowerError> {
        let Some(stages) = self.stages.clone() else { return Ok(()) };
        let f = self.f;
        let Some(l) = f.body.find_loop(&stages.pipeline) else { return Ok(()) };
        let statements = match &*l.body {
            Stmt::Seq(list) => list.iter().collect(),
            other => vec![other],
        };
        self.late.push_front(begins);
        self.late.truncate(stages.last() as usize + 1);
        for stage in (0..=stages.last()).rev() {
            let Some(Some(iteration)) = self.late.get(stage as usize) else { continue };
            let (values, begun) = (iteration.values.clone(), iteration.begun.clone());
            let now = (std::mem::replace(&mut self.values, values), std::mem::replace(&mut self.begun, begun));
            let own = statements.iter().zip(&stages.of_statements).filter(|(_, s)| **s == stage);
            own.map(|(statement, _)| *statement).try_for_each(|statement| self.statement(statement))?;
            (self.values, self.begun) = now;
        }
        Ok(())
    }

    /// Runs the later stages of the last iterations of the software pipeline.
    fn end_pipeline(&mut self) -> Result<(), LowerError> {
        while self.late.iter().any(Option::is_some) {
            self.step(None)?;
        }
        self.late.clear();
        Ok(())
    }

    /// Runs the iterations of a loop one after the other.
    fn each(
        &mut self,
        l: &'l For,
        mut body: impl FnMut(&mut Self) -> Result<(), LowerError>,
    ) -> Result<(), LowerError> {
        let number = self.numbers.get(&l.var).copied().unwrap_or(NO_LOOP);
        let set = |values: &mut [Option<i64>], value| values.get_mut(number).map(|at| *at = value);
        let (first, last) = self.running(l);
        for i in first..=last {
            set(&mut self.values, Some(i));
            if l.kind == LoopKind::Pipeline {
                *self.begun.entry(l.var.clone()).or_default() += 1;
            }
            body(self)?;
            if self.b.len() > MOST_INSTRUCTIONS {
                return Err(LowerError::TooLong { most: MOST_INSTRUCTIONS });
            }
        }
        set(&mut self.values, None);
        Ok(())
    }

    /// Adds a nest around one block. If it is no single copy or nest of instructions, its outermost loop runs on its
    /// own.
    fn nest(&mut self, loops: &[&'l For], block: &'l Block) -> Result<(), LowerError> {
        let is_param = |name: &Name| self.f.buffer(name).is_some_and(|b| b.scope == Scope::Param);
        // Scalars come with the first parameters, unless an instruction is before these.
        let waits = !self.shares.is_empty() && matches!(block.action, Action::Store { .. });
        if !waits && !block.target().is_some_and(is_param) {
            self.load_scalars()?;
        }
        if let [outer, inner @ ..] = loops
            && outer.kind == LoopKind::Unrolled
        {
            return self.in_parts(|lower| lower.each(outer, |lower| lower.nest(inner, block)));
        }
        if let Some(parts) = self.parts(loops, block) {
            return self.in_parts(|lower| parts.into_iter().try_for_each(|part| lower.part(part, loops, block)));
        }
        let done = match &block.action {
            Action::Call { .. } => self.calls(loops, block).map_err(|e| match e {
                LowerError::Driver(source) => LowerError::Instruction { block: block.name.clone(), source },
                e => e,
            })?,
            Action::Store { buffer, indices, value } => match value {
                // The first product of a reduction overwrites; see `overwrites`.
                Expr::Int(..) if self.reduced.contains_key(buffer) => true,
                Expr::Int(v, _) => self.fill(loops, block, (buffer, indices), *v)?,
                _ => self.copy(loops, block, (buffer, indices), value)?,
            },
        };
        match loops {
            _ if done => Ok(()),
            [outer, inner @ ..] => self.each(outer, |lower| lower.nest(inner, block)),
            [] => Err(self.refuse(block, "the accelerator has no instruction for this access to memory")),
        }
    }

    /// Adds a nest in several parts, which can interleave in scratchpads.
    fn in_parts(&mut self, add: impl FnOnce(&mut Self) -> Result<(), LowerError>) -> Result<(), LowerError> {
        let before = std::mem::replace(&mut self.in_parts, true);
        let added = add(self);
        self.in_parts = before;
        added
    }

    /// Adds a part of a nest.
    fn part(&mut self, part: Part, loops: &[&'l For], block: &'l Block) -> Result<(), LowerError> {
        let all: Part =
            part.into_iter().filter_map(|(l, range)| Some((l.clone(), self.bounds.insert(l, range)?))).collect();
        let added = self.nest(loops, block);
        self.bounds.extend(all);
        added
    }

    /// Returns the first and the last iteration of a loop in the part of a nest that is being added.
    pub fn running(&self, l: &For) -> (i64, i64) {
        self.bounds.get(&l.var).copied().unwrap_or((0, l.extent - 1))
    }

    /// Returns the instruction that a block calls.
    pub fn instruction(&self, block: &Block) -> Result<Instruction, LowerError> {
        let known = called(block, self.instructions).cloned();
        known.ok_or_else(|| self.refuse(block, "it calls an intrinsic that is no instruction of the accelerator"))
    }

    /// Returns whether a call's first products overwrite its result, because the reduction begins there.
    ///
    /// # Errors
    /// The reduction starts from another value than the instruction can.
    pub fn overwrites(&self, block: &Block, dst: &Name, identity: i64) -> Result<bool, LowerError> {
        match self.inits.get(dst) {
            None => Ok(false),
            // The sum begins with another block.
            Some(_) if self.reduced.get(dst).is_some_and(|first| *first != block.name) => Ok(false),
            Some(v) if *v == identity => Ok(block.reduce.iter().all(|r| self.value(r).is_none_or(|value| value == 0))),
            Some(v) => Err(self.refuse(
                block,
                format!("its reduction starts from {v}; the accelerator can only start this one from {identity}"),
            )),
        }
    }

    /// Returns the descriptor's first entry.
    pub fn descriptor(&self, v: &VectorCall) -> u32 {
        let bytes = v.descriptor.map(|d| pack_descriptor(self.config, &d));
        self.descriptors.iter().find(|d| Some(&d.0) == bytes.as_ref()).map_or(0, |d| d.1)
    }

    /// Returns the value of a loop that runs one iteration after the other.
    pub fn value(&self, loop_: &Name) -> Option<i64> {
        self.values.get(*self.numbers.get(loop_)?).copied().flatten()
    }

    /// Returns an index as an affine function of the loops that are not running yet; `None` if it is not affine.
    pub fn affine(&self, e: &'l Expr) -> Option<Affine> {
        self.put_in((e, 0), || Affine::of(e)).or_else(|| {
            // With the values of the loops, it can become affine.
            let known = e.substitute(&|v| self.value(v).map(Expr::int));
            Affine::of(&simplify(&known, &self.bounds))
        })
    }

    /// Returns the position of an element in its memory from the buffer's first element on; `None` if an index is not
    /// affine.
    pub fn position(&self, buffer: &Name, indices: &'l [Expr]) -> Option<Affine> {
        let shape = &self.f.buffer(buffer)?.shape;
        let strides = self.places.get(buffer).and_then(|place| place.strides.as_ref());
        let row_by_row = |index: &dyn Fn(&'l Expr) -> Option<Affine>| {
            let mut at = Affine::default();
            if let Some(strides) = strides {
                for (e, &step) in indices.iter().zip(strides) {
                    at = at.plus(&index(e)?, step);
                }
                return Some(at);
            }
            for (e, &n) in indices.iter().zip(shape) {
                at = at.times(n).plus(&index(e)?, 1);
            }
            Some(at)
        };
        // The elements of a list of indices belong to one buffer.
        self.put_in((indices.as_ptr(), indices.len()), || row_by_row(&|e| Affine::of(e)))
            .or_else(|| row_by_row(&|e| self.affine(e)))
    }

    /// Returns a sum over all loops with the values of those that are running. `make` returns the sum when it is needed
    /// for the first time.
    fn put_in(&self, key: (*const Expr, usize), make: impl FnOnce() -> Option<Affine>) -> Option<Affine> {
        let number = |v: &Name| self.numbers.get(v).copied().unwrap_or(NO_LOOP);
        let over_loops = |sum: Affine| {
            let terms = sum.terms.into_iter().map(|(v, c)| (number(&v), v, c)).collect();
            Rc::new(LoopSum { constant: sum.constant, terms })
        };
        let sum = self.sums.borrow_mut().entry(key).or_insert_with(|| make().map(over_loops)).clone()?;
        let mut now = Affine { constant: sum.constant, ..Affine::default() };
        for (number, v, c) in &sum.terms {
            match self.values.get(*number).copied().flatten() {
                Some(value) => now.constant = now.constant.wrapping_add(c.wrapping_mul(value)),
                None => now.terms.insert(v.clone(), *c),
            }
        }
        Some(now)
    }

    /// Returns the first entry of a buffer, in the slot of the running iteration.
    pub fn slot(&self, place: &Place) -> u32 {
        let begun = place.pipeline.as_ref().and_then(|l| self.begun.get(l)).copied().unwrap_or(0);
        place.slot(begun.saturating_sub(1))
    }

    /// Returns the entry at which an argument of an instruction begins, over the loops that are not running yet.
    ///
    /// # Errors
    /// The argument is not one entry.
    pub fn entry(&self, block: &Block, view: &'l View, shape: &[i64]) -> Result<Option<Affine>, LowerError> {
        let Some(at) = self.position(&view.buffer, &view.indices) else { return Ok(None) };
        self.entry_at(block, view, shape, at).map(Some)
    }

    /// Returns the entry at a position of an argument's buffer.
    ///
    /// # Errors
    /// The argument is not one entry.
    pub fn entry_at(&self, block: &Block, view: &View, shape: &[i64], at: Affine) -> Result<Affine, LowerError> {
        let Some(place) = self.places.get(&view.buffer) else {
            return Err(self.refuse(block, format!("its operand {} is not in a scratchpad", view.buffer)));
        };
        let (within, mut start) = at.partition(|v| view.dims.contains(v));
        let mut stride = 1;
        for (dim, &n) in view.dims.iter().zip(shape).rev() {
            if n > 1 && within.coefficient(dim) != stride {
                let reason = format!(
                    "an entry of {} is not stored as one: its elements are {} apart instead of {stride}; make the \
                     last dimensions of the tensor those of an entry, {shape:?}",
                    view.buffer,
                    within.coefficient(dim)
                );
                return Err(self.refuse(block, reason));
            }
            stride *= n;
        }
        let whole = |v: i64| v % place.elements == 0;
        if !whole(start.constant) || !start.terms.values().all(whole) {
            let reason = format!(
                "an entry of {} begins at element {}; entries have {} elements",
                view.buffer,
                start.to_expr(),
                place.elements
            );
            return Err(self.refuse(block, reason));
        }
        start.constant /= place.elements;
        start.terms.values_mut().for_each(|c| *c /= place.elements);
        start.constant += i64::from(self.slot(place));
        Ok(start)
    }

    /// Notes a load to a buffer. Returns whether the buffer already holds its elements.
    pub fn is_loaded(&mut self, buffer: &Name, load: [u32; 5]) -> bool {
        self.whole.contains(buffer) && !self.loaded.insert((buffer.clone(), load))
    }

    /// Returns the offset of constants of that value, at least `bytes` long.
    pub fn pad(&mut self, value: i8, bytes: u64) -> u64 {
        match self.pads.get(&value) {
            Some(&(offset, there)) if there >= bytes => offset,
            _ => {
                let offset = self.b.constant("padding", Role::Constants, &vec![value as u8; bytes as usize]);
                self.pads.insert(value, (offset, bytes));
                offset
            }
        }
    }
}
