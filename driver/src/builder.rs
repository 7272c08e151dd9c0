//! Builds a program from instructions in program order.

use crate::access::{self, Footprint, Kernel, Outside};
use crate::affine::{Dim, Nest, Piece};
use crate::by_entry::ByEntry;
use crate::conflicts::{Conflicts, History};
use crate::error::DriverError;
use crate::order::Order;
use crate::program::{AccelProgram, Binding, MemoryRegion, RegionId, Role, Section};
use crate::recording::Recording;
use crate::tokens::Analysis;
use crate::uops::{Placement, UopCache};
use rustc_hash::FxHashMap;
use std::collections::HashSet;
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::{self, Gemm, GemmUop, Insn, Load, Op, Store, Vector, VectorUop};

/// Builds a program: add regions, constants and instructions, then call [`Builder::finish`].
///
/// The builder fills in the token masks, and the micro-op fields of gemm and vector instructions; you give their
/// kernels as lists of micro-ops or as loop nests.
///
/// ```
/// use tilewright_driver::{Builder, Role};
/// use tilewright_hw::{HwConfig, Mem, isa::{Load, Store, VectorUop, Vector, VecDst, VecSrc}};
/// # fn main() -> Result<(), tilewright_driver::DriverError> {
/// let config = HwConfig::default();
/// let mut b = Builder::new(&config)?;
/// let data = b.region("data", Role::Input, 256)?;
/// b.input("x", data, 0, 128);
/// b.output("y", data, 128, 128);
/// b.load(Load { mem: Mem::Out, base: data.0, row_bytes: 128, ..Load::default() })?;
/// let copy = Vector { dst: VecDst::Out, a: VecSrc::Out, dst_at: 8, count0: 8, dst0: 1, a0: 1, ..Vector::default() };
/// b.vector(copy, &[VectorUop::default()])?;
/// b.store(Store { base: data.0, offset: 128, entry: 8, row_bytes: 128, ..Store::default() })?;
/// let program = b.finish()?;
/// assert!(program.disassemble(&config).unwrap().contains("pop=vector"));
/// # Ok(())
/// # }
/// ```
pub struct Builder {
    config: HwConfig,
    regions: Vec<MemoryRegion>,
    constants: Vec<u8>,
    /// Whether `constants` holds their bytes, not only region 0 their size.
    keeps_constants: bool,
    sections: Vec<Section>,
    inputs: Vec<Binding>,
    outputs: Vec<Binding>,
    insns: Vec<Insn>,
    history: History,
    conflicts: Vec<Conflicts>,
    /// The most tokens of a pair of units that can be in flight.
    token_limit: usize,
    gemm_uops: UopCache,
    vector_uops: UopCache,
    /// Loads of micro-ops; until the end, their offsets are relative to their memory's image.
    uop_loads: Vec<usize>,
    /// What loads brought to the scratchpads, while it is tracked.
    loaded: Option<Loaded>,
}

/// Memories to which [`Builder::load_once`] brings nothing twice.
const TRACKED: [Mem; 2] = [Mem::Inp, Mem::Wgt];

/// The loads that wrote the entries of some memories last.
struct Loaded {
    loads: FxHashMap<Load, u32>,
    /// For each entry of the memories in [`TRACKED`], the number of the load that wrote it last, 0 for none.
    entries: [ByEntry<u32>; 2],
}

impl Loaded {
    fn new(config: &HwConfig) -> Loaded {
        Loaded { loads: FxHashMap::default(), entries: TRACKED.map(|mem| ByEntry::new(config.entries(mem), 0)) }
    }

    /// Notes what an instruction writes.
    fn note(&mut self, op: &Op, footprint: &Footprint) {
        for touch in footprint.scratch.iter().filter(|touch| touch.write) {
            let Some(at) = TRACKED.iter().position(|mem| *mem == touch.mem) else { continue };
            let number = match op {
                Op::Load(load) => {
                    let next = self.loads.len() as u32 + 1;
                    *self.loads.entry(*load).or_insert(next)
                }
                _ => 0,
            };
            self.entries[at].change(&touch.set, |_| number);
        }
    }

    /// Whether every entry that a load would write holds what it brings.
    fn holds(&self, load: &Load, footprint: &Footprint) -> bool {
        let Some(&number) = self.loads.get(load) else { return false };
        footprint.scratch.iter().filter(|touch| touch.write).all(|touch| {
            let at = TRACKED.iter().position(|mem| *mem == touch.mem);
            at.is_some_and(|at| self.entries[at].of(&touch.set).all(|last| last == number))
        })
    }
}

impl Builder {
    /// Starts an empty program for a configuration; region 0 holds its constants.
    ///
    /// # Errors
    /// [`DriverError::Tokens`].
    pub fn new(config: &HwConfig) -> Result<Builder, DriverError> {
        let token_limit = Analysis::limit(config)
            .ok_or(DriverError::Tokens { token_bits: config.token_bits, queue_depth: config.queue_depth })?;
        let cache = |mem| UopCache::new(config.entries(mem), config.dma_align.into());
        Ok(Builder {
            config: config.clone(),
            regions: vec![MemoryRegion { name: "constants".into(), role: Role::Constants, bytes: 0 }],
            constants: Vec::new(),
            keeps_constants: true,
            sections: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            insns: Vec::new(),
            history: History::new(config),
            conflicts: Vec::new(),
            token_limit,
            gemm_uops: cache(Mem::GemmUop),
            vector_uops: cache(Mem::VectorUop),
            uop_loads: Vec::new(),
            loaded: None,
        })
    }

    /// Gives constants their places, but does not keep their bytes: the program takes the same cycles, but computes
    /// other values.
    pub fn without_constants(self) -> Builder {
        Builder { keeps_constants: false, ..self }
    }

    /// The configuration.
    pub fn config(&self) -> &HwConfig {
        &self.config
    }

    /// Instructions so far.
    pub fn len(&self) -> usize {
        self.insns.len()
    }

    /// Whether there is no instruction yet.
    pub fn is_empty(&self) -> bool {
        self.insns.is_empty()
    }

    /// The region of the constants.
    pub fn constants(&self) -> RegionId {
        RegionId(0)
    }

    /// Adds a region.
    ///
    /// # Errors
    /// [`DriverError::TooManyRegions`].
    pub fn region(&mut self, name: &str, role: Role, bytes: u64) -> Result<RegionId, DriverError> {
        if self.regions.len() >= self.config.bases as usize {
            return Err(DriverError::TooManyRegions { regions: self.regions.len() + 1, bases: self.config.bases });
        }
        self.regions.push(MemoryRegion { name: name.into(), role, bytes });
        Ok(RegionId(self.regions.len() as u32 - 1))
    }

    /// Grows a region to at least `bytes`.
    pub fn grow(&mut self, region: RegionId, bytes: u64) {
        if let Some(r) = self.regions.get_mut(region.0 as usize) {
            r.bytes = r.bytes.max(bytes);
        }
    }

    /// Adds constants and returns their offset in region 0, a multiple of 64.
    pub fn constant(&mut self, name: &str, role: Role, data: &[u8]) -> u64 {
        let bytes = data.len() as u64;
        let offset = self.regions[0].bytes.next_multiple_of(64);
        if self.keeps_constants {
            self.constants.resize(offset as usize, 0);
            self.constants.extend_from_slice(data);
        }
        self.sections.push(Section { name: name.into(), role, offset, bytes });
        self.regions[0].bytes = offset + bytes;
        offset
    }

    /// Declares a tensor that the host writes.
    pub fn input(&mut self, name: &str, region: RegionId, offset: u64, bytes: u64) {
        self.inputs.push(Binding { name: name.into(), region, offset, bytes });
    }

    /// Declares a tensor that the host reads.
    pub fn output(&mut self, name: &str, region: RegionId, offset: u64, bytes: u64) {
        self.outputs.push(Binding { name: name.into(), region, offset, bytes });
    }

    /// Adds a load.
    ///
    /// # Errors
    /// [`DriverError::Illegal`], [`DriverError::Scratchpad`], [`DriverError::Region`].
    pub fn load(&mut self, load: Load) -> Result<(), DriverError> {
        self.push(load.into(), Kernel::None)
    }

    /// From here on until `false`, notes what loads bring to inp and wgt, for [`Builder::load_once`]. Nothing that was
    /// loaded before counts.
    pub fn track_loads(&mut self, wanted: bool) {
        self.loaded = wanted.then(|| Loaded::new(&self.config));
    }

    /// Adds a load, unless the same load brought all its entries before and nothing was written over them since. No
    /// store to its source may come between the two.
    ///
    /// # Errors
    /// As [`Builder::load`].
    pub fn load_once(&mut self, load: Load) -> Result<(), DriverError> {
        if let Some(loaded) = &self.loaded
            && let Ok(footprint) = access::footprint(&load.into(), Kernel::None, &self.config)
            && loaded.holds(&load, &footprint)
        {
            return Ok(());
        }
        self.load(load)
    }

    /// Loads `bytes` consecutive bytes into consecutive entries, with as many instructions as needed.
    ///
    /// # Errors
    /// As [`Builder::load`].
    pub fn load_linear(
        &mut self,
        mem: Mem,
        region: RegionId,
        offset: u64,
        entry: u32,
        bytes: u64,
    ) -> Result<(), DriverError> {
        for load in linear(&self.config, mem, region.0, offset, entry, bytes) {
            self.load(load)?;
        }
        Ok(())
    }

    /// Adds a store.
    ///
    /// # Errors
    /// As [`Builder::load`].
    pub fn store(&mut self, store: Store) -> Result<(), DriverError> {
        self.push(store.into(), Kernel::None)
    }

    /// Adds a gemm that runs `kernel`; `uop` and `uops` are filled in.
    ///
    /// # Errors
    /// [`DriverError::KernelTooLong`], [`DriverError::Illegal`], [`DriverError::Scratchpad`].
    pub fn gemm(&mut self, gemm: Gemm, kernel: &[GemmUop]) -> Result<(), DriverError> {
        let uop = self.place_gemm(kernel)?;
        self.push(Gemm { uop, uops: kernel.len() as u32, ..gemm }.into(), Kernel::Gemm(kernel))
    }

    /// Adds a vector instruction that runs `kernel`; `uop` and `uops` are filled in.
    ///
    /// # Errors
    /// As [`Builder::gemm`], and [`DriverError::Rule`] if operands share a bank's port or a deep operation reads what
    /// it wrote.
    pub fn vector(&mut self, vector: Vector, kernel: &[VectorUop]) -> Result<(), DriverError> {
        let indices: Vec<u32> = kernel.iter().flat_map(|u| [u.dst, u.a, u.b]).collect();
        let encoded = |config: &HwConfig| kernel.iter().flat_map(|u| u.to_bytes(config)).collect();
        let uop = self.place(Mem::VectorUop, &indices, &encoded)?;
        self.push(Vector { uop, uops: kernel.len() as u32, ..vector }.into(), Kernel::Vector(kernel))
    }

    /// Adds the gemms of a nest over acc, inp and wgt.
    ///
    /// # Errors
    /// As [`Builder::gemm`].
    pub fn gemm_nest(&mut self, accumulate: bool, nest: &Nest) -> Result<(), DriverError> {
        self.gemm_nest_less(accumulate, 0, nest)
    }

    /// Like [`Builder::gemm_nest`], with a zero point that is subtracted from every weight.
    ///
    /// # Errors
    /// As [`Builder::gemm`].
    pub fn gemm_nest_less(&mut self, accumulate: bool, wgt_zp: i8, nest: &Nest) -> Result<(), DriverError> {
        for Piece { at, body, loops: [l0, l1, l2] } in nest.pieces(&self.config, self.config.gemm_uop_depth) {
            let kernel: Vec<GemmUop> = body.iter().map(|&[acc, inp, wgt]| GemmUop { acc, inp, wgt }).collect();
            let gemm = Gemm {
                accumulate,
                count0: l0.count,
                count1: l1.count,
                count2: l2.count,
                acc: at[0],
                inp: at[1],
                wgt: at[2],
                acc0: l0.steps[0],
                inp0: l0.steps[1],
                wgt0: l0.steps[2],
                acc1: l1.steps[0],
                inp1: l1.steps[1],
                wgt1: l1.steps[2],
                acc2: l2.steps[0],
                inp2: l2.steps[1],
                wgt2: l2.steps[2],
                wgt_zp,
                ..Gemm::default()
            };
            self.gemm(gemm, &kernel)?;
        }
        Ok(())
    }

    /// Loads the kernels of a nest that [`Builder::gemm_nest`] will run, so that it need not wait for other loads then.
    ///
    /// # Errors
    /// [`DriverError::KernelTooLong`].
    pub fn prepare_gemm(&mut self, nest: &Nest) -> Result<(), DriverError> {
        for piece in nest.pieces(&self.config, self.config.gemm_uop_depth) {
            let uops = piece.body.iter().map(|&[acc, inp, wgt]| GemmUop { acc, inp, wgt });
            self.place_gemm(&uops.collect::<Vec<_>>())?;
        }
        Ok(())
    }

    /// Adds the vector instructions of a nest over dst, a and b; `vector` gives operation, operands and descriptor.
    ///
    /// # Errors
    /// As [`Builder::vector`].
    pub fn vector_nest(&mut self, vector: Vector, nest: &Nest) -> Result<(), DriverError> {
        for Piece { at, body, loops: [l0, l1, l2] } in nest.pieces(&self.config, self.config.vector_uop_depth) {
            let kernel: Vec<VectorUop> = body.iter().map(|&[dst, a, b]| VectorUop { dst, a, b }).collect();
            let insn = Vector {
                count0: l0.count,
                count1: l1.count,
                count2: l2.count,
                dst_at: at[0],
                a_at: at[1],
                b_at: at[2],
                dst0: l0.steps[0],
                a0: l0.steps[1],
                b0: l0.steps[2],
                dst1: l1.steps[0],
                a1: l1.steps[1],
                b1: l1.steps[2],
                dst2: l2.steps[0],
                a2: l2.steps[1],
                b2: l2.steps[2],
                ..vector
            };
            self.vector(insn, &kernel)?;
        }
        Ok(())
    }

    fn place_gemm(&mut self, kernel: &[GemmUop]) -> Result<u32, DriverError> {
        let indices: Vec<u32> = kernel.iter().flat_map(|u| [u.acc, u.inp, u.wgt]).collect();
        let encoded = |config: &HwConfig| kernel.iter().flat_map(|u| u.to_bytes(config)).collect();
        self.place(Mem::GemmUop, &indices, &encoded)
    }

    /// Makes a kernel resident, given the indices of its micro-ops, and returns its first micro-op.
    fn place(&mut self, mem: Mem, indices: &[u32], encoded: &dyn Fn(&HwConfig) -> Vec<u8>) -> Result<u32, DriverError> {
        let uops = indices.len() / 3;
        let cache = if mem == Mem::GemmUop { &mut self.gemm_uops } else { &mut self.vector_uops };
        let depth = self.config.entries(mem);
        let Some(Placement { start, load }) = cache.place(indices, || encoded(&self.config)) else {
            return Err(DriverError::KernelTooLong { mem, uops, depth });
        };
        if let Some(image) = load {
            let bytes = uops as u64 * u64::from(self.config.entry_bytes(mem));
            for load in linear(&self.config, mem, 0, image, start, bytes) {
                self.uop_loads.push(self.insns.len());
                self.emit(load.into(), Kernel::None, true)?;
            }
        }
        Ok(start)
    }

    fn push(&mut self, op: Op, kernel: Kernel) -> Result<(), DriverError> {
        self.emit(op, kernel, false)
    }

    fn emit(&mut self, op: Op, kernel: Kernel, uop_load: bool) -> Result<(), DriverError> {
        let index = self.insns.len();
        let insn = Insn::new(op);
        let reasons = isa::unfit_reasons(&insn, &self.config);
        if !reasons.is_empty() {
            let reasons = reasons.iter().map(ToString::to_string).collect();
            return Err(DriverError::Illegal { index, reasons });
        }
        let footprint = access::footprint(&op, kernel, &self.config).map_err(|Outside { mem, entry }| {
            DriverError::Scratchpad { index, mem, entry, entries: self.config.entries(mem) }
        })?;
        if !uop_load {
            self.check_region(index, &footprint)?;
        }
        if let (Op::Vector(x), Kernel::Vector(uops)) = (&op, kernel) {
            vector_rules(x, uops, &footprint, &self.config).map_err(|what| DriverError::Rule { index, what })?;
        }
        if let Some(loaded) = &mut self.loaded {
            loaded.note(&op, &footprint);
        }
        self.conflicts.push(self.history.add(insn.unit(), &footprint));
        self.insns.push(insn);
        Ok(())
    }

    fn check_region(&self, index: usize, footprint: &Footprint) -> Result<(), DriverError> {
        let Some(touch) = &footprint.dram else { return Ok(()) };
        let Some(region) = self.regions.get(touch.base as usize) else {
            return Err(DriverError::Rule {
                index,
                what: format!("base {} is not a region of the program", touch.base),
            });
        };
        if touch.write && touch.base == 0 {
            return Err(DriverError::Rule { index, what: "constants cannot be stored to".into() });
        }
        let end = touch.spans.iter().map(|s| s.end).max().unwrap_or(0);
        if end > region.bytes {
            return Err(DriverError::Region { index, region: region.name.clone(), byte: end - 1, size: region.bytes });
        }
        Ok(())
    }

    /// Finishes the program in its own order, and inserts its tokens.
    ///
    /// # Errors
    /// [`DriverError::Encode`] if a value is wider than its field.
    pub fn finish(self) -> Result<AccelProgram, DriverError> {
        let recording = self.record();
        recording.program(&Order::of_program(recording.len()))
    }

    /// Finishes the program, but leaves the order of its instructions open.
    pub fn record(mut self) -> Recording {
        let images = [&mut self.gemm_uops, &mut self.vector_uops].map(UopCache::take_image);
        let mut offsets = [0u64; 2];
        for ((image, name), offset) in images.iter().zip(["gemm micro-ops", "vector micro-ops"]).zip(&mut offsets) {
            if !image.is_empty() {
                *offset = self.constant(name, Role::Uops, image);
            }
        }
        for &i in &self.uop_loads {
            if let Op::Load(load) = &mut self.insns[i].op {
                load.offset += offsets[usize::from(load.mem == Mem::VectorUop)];
            }
        }
        let program = AccelProgram {
            config_hash: 0,
            isa_version: isa::ISA_VERSION,
            stream: Vec::new(),
            regions: self.regions,
            constants: self.constants,
            sections: self.sections,
            inputs: self.inputs,
            outputs: self.outputs,
        };
        let (insns, conflicts, token_limit) = (self.insns, self.conflicts, self.token_limit);
        Recording { config: self.config, program, insns, conflicts, token_limit }
    }
}

/// Loads of consecutive bytes into consecutive entries.
fn linear(
    config: &HwConfig,
    mem: Mem,
    base: u32,
    offset: u64,
    entry: u32,
    bytes: u64,
) -> impl Iterator<Item = Load> + use<> {
    let entry_bytes = config.entry_bytes(mem);
    let step = entry_bytes.max(config.dma_align);
    let row = u64::from((isa::MOST_ROW_BYTES / step).max(1) * step);
    let (mut at, mut to, mut rest) = (offset, entry, bytes);
    std::iter::from_fn(move || {
        if rest == 0 {
            return None;
        }
        let rows = (rest / row).clamp(1, isa::MOST_ROWS.into());
        let row_bytes = rest.min(row);
        // Unused strides stay zero, so that they fit narrow stride fields.
        let row_stride = if rows > 1 { row } else { 0 };
        let load = Load {
            mem,
            base,
            offset: at,
            entry: to,
            row_bytes: row_bytes as u32,
            rows: rows as u32,
            row_stride,
            ..Load::default()
        };
        // A load past the memory's last entry is rejected, so a saturated value is never used.
        at = at.saturating_add(rows * row_bytes);
        to = to.saturating_add((rows * row_bytes.div_ceil(entry_bytes.into())) as u32);
        rest -= rows * row_bytes;
        Some(load)
    })
}

/// Checks the hardware's rules for vector instructions beyond their fields.
fn vector_rules(x: &Vector, uops: &[VectorUop], found: &Footprint, config: &HwConfig) -> Result<(), String> {
    let a = x.a.mem();
    let b = x.b.mem();
    let reads: Vec<_> = found.scratch.iter().filter(|t| !t.write && Some(t.mem) == a).collect();
    if a.is_some() && a == b {
        let banks: Vec<u32> = reads.iter().map(|t| t.set.banks(config.entries(t.mem) / config.banks(t.mem))).collect();
        if let [a_banks, b_banks] = banks[..]
            && a_banks & b_banks != 0
        {
            return Err("both operands read one bank; put them into different banks or memories".into());
        }
    }
    let dst = x.dst.mem();
    let written = found.scratch.iter().find(|t| t.write);
    let overlaps = found
        .scratch
        .iter()
        .any(|t| !t.write && t.mem == dst && t.mem != Mem::Param && written.is_some_and(|w| w.set.intersects(&t.set)));
    if x.op.is_deep() && overlaps && reads_own_result(x, uops, dst, config) {
        return Err(format!("{} reads a row that it wrote; deep operations do not forward", x.op.name()));
    }
    Ok(())
}

/// Runs through the iterations of a deep instruction and looks for a row that is read after it was written.
fn reads_own_result(x: &Vector, uops: &[VectorUop], dst: Mem, config: &HwConfig) -> bool {
    let dims = [
        Dim::new(x.count0, [x.dst0, x.a0, x.b0]),
        Dim::new(x.count1, [x.dst1, x.a1, x.b1]),
        Dim::new(x.count2, [x.dst2, x.a2, x.b2]),
    ];
    // A loop without steps does the same each time, so its second pass reads whatever a later pass would.
    let count = |d: &Dim| if d.steps == [0; 3] { d.count.min(2) } else { d.count };
    let mut written: HashSet<u32> = HashSet::new();
    let turn = |x: [u32; 3], k: u32, d: &Dim| -> [u32; 3] { std::array::from_fn(|o| x[o] + k * d.steps[o]) };
    for k0 in 0..count(&dims[0]) {
        for k1 in 0..count(&dims[1]) {
            for k2 in 0..count(&dims[2]) {
                let at = turn(turn(turn([x.dst_at, x.a_at, x.b_at], k0, &dims[0]), k1, &dims[1]), k2, &dims[2]);
                for u in uops {
                    let a = x.a.mem() == Some(dst) && written.contains(&(at[1] + u.a));
                    let b = x.b.mem() == Some(dst) && written.contains(&(at[2] + u.b));
                    if a || b {
                        return true;
                    }
                    written.insert(at[0] + u.dst);
                    if written.len() > config.entries(dst) as usize {
                        return false;
                    }
                }
            }
        }
    }
    false
}
