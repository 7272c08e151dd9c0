//! Walks through a loop program and adds its instructions.

mod positions;

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::rc::Rc;

use tilewright_driver::{Builder, DriverError, RegionId, Role};
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::PARAM_ROWS;
use tilewright_hw::layout::pack_descriptor;

use super::error::LowerError;
use super::intrinsics::{Instruction, VectorCall, called};
use super::memory::{self, Place};
use super::needs::Needs;
use super::params::Taps;
use super::stages::Stages;
use crate::schedule::bounds;
use crate::te::{Expr, Name, NameMap, NameSet};
use crate::tir::{Action, Block, Bounds, For, Function, LoopKind, Scope, Stmt};

/// Most instructions of a program.
const MOST_INSTRUCTIONS: usize = 1 << 20;

/// Most iterations of loops around instructions. Some add none.
const MOST_ITERATIONS: usize = 1 << 23;

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
    /// Iterations so far of loops that run one after the other.
    iterations: usize,
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
            iterations: 0,
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
            self.iterations += 1;
            if self.b.len() > MOST_INSTRUCTIONS {
                return Err(LowerError::TooLong { most: MOST_INSTRUCTIONS });
            }
            if self.iterations > MOST_ITERATIONS {
                return Err(LowerError::TooManyIterations { most: MOST_ITERATIONS });
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
