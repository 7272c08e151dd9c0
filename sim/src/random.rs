//! Random programs for comparing devices.
//!
//! - [`generate`] makes correct programs: every memory is written before it is read, nothing traps, and tokens order
//!   every two accesses of different units that conflict in an entry, a bank's port or DRAM. Every legal timing
//!   therefore gives the same result.
//! - [`plant`] makes programs with exactly one fault.
//! - [`loosen`] removes tokens.
//! - [`shrink`] makes a failing program smaller and keeps it correct.
//!
//! Everything depends only on seeds.

mod builder;
mod config;
mod coverage;
mod fault;
mod image;
mod loose;
mod order;
mod sample;
mod shrink;

pub use config::{make_serial, sample_config, sample_config_with, sample_dram};
pub use coverage::Coverage;
pub use fault::{Expected, FaultKind, Planted, plant};
pub use image::{MEMORY_BYTES, STREAM};
pub use loose::loosen;
#[cfg(test)]
pub(crate) use order::first_unordered;
pub use shrink::shrink;

use builder::{Builder, Refused};
use fault::plant_into;
use image::{DATA, DUMP, GEMM_UOPS, PARAMS, RESULTS, VECTOR_UOPS};
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use sample::{Aim, sample};
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::device::{Base, Command, Device, DeviceError};
use tilewright_hw::isa::{
    Insn, Load, Op, PARAM_ROWS, Store, Unit, VecDst, VecOp, VecSrc, Vector, encode, print_program,
};

/// A program with everything it needs to run.
#[derive(Debug, Clone)]
pub struct Program {
    /// The hardware it is for.
    pub config: HwConfig,
    /// The seed it was made from.
    pub seed: u64,
    /// Device memory from address 0, without the stream.
    pub image: Vec<u8>,
    /// The instructions. If a fault is planted in the bits of one, this holds it as it was before.
    pub insns: Vec<Insn>,
    /// The stream's bytes.
    pub stream: Vec<u8>,
    /// Address of the stream.
    pub stream_addr: u64,
    /// Base registers.
    pub bases: Vec<Base>,
    /// Whether instructions of two units can run at the same time.
    pub overlaps: bool,
    /// Number of attempts to add spare tokens. Smaller versions of the program use the same number.
    spare_tokens: usize,
}

impl Program {
    fn from_builder(builder: &Builder, image: Vec<u8>, seed: u64, spare_tokens: usize) -> Program {
        // Every instruction was already encoded when it was added, and tokens do not change its size.
        let stream = builder.insns.iter().flat_map(|i| encode(i, builder.config).unwrap_or_default()).collect();
        Program {
            config: builder.config.clone(),
            seed,
            image,
            insns: builder.insns.clone(),
            stream,
            stream_addr: STREAM,
            bases: builder.bases.clone(),
            overlaps: builder.overlaps(),
            spare_tokens,
        }
    }

    /// Returns the command that runs it.
    pub fn command(&self) -> Command {
        Command {
            stream_addr: self.stream_addr,
            insns: (self.stream.len() / tilewright_hw::isa::INSN_BYTES) as u32,
            bases: self.bases.clone(),
            cycle_limit: Some(2_000_000),
        }
    }

    /// Writes the program and its data to a device's memory.
    ///
    /// # Errors
    /// Returns the device's error if memory is too small.
    pub fn install(&self, device: &mut dyn Device) -> Result<(), DeviceError> {
        device.write(0, &self.image)?;
        device.write(self.stream_addr, self.stream_in_memory())
    }

    /// Writes the program and its data to memory of [`MEMORY_BYTES`] or more.
    pub fn install_into(&self, memory: &mut [u8]) {
        let (addr, stream) = (self.stream_addr as usize, self.stream_in_memory());
        memory[..self.image.len()].copy_from_slice(&self.image);
        memory[addr..addr + stream.len()].copy_from_slice(stream);
    }

    /// Returns the part of the stream that fits in memory. Some programs pass the end of memory on purpose.
    pub fn stream_in_memory(&self) -> &[u8] {
        let room = MEMORY_BYTES.saturating_sub(self.stream_addr) as usize;
        &self.stream[..self.stream.len().min(room)]
    }

    /// Returns whether a load fills the whole memory, so that all its contents are defined.
    pub fn fills(&self, mem: Mem) -> bool {
        let size = u64::from(self.config.entries(mem)) * u64::from(self.config.entry_bytes(mem));
        self.insns
            .iter()
            .any(|i| matches!(&i.op, Op::Load(x) if x.mem == mem && u64::from(x.row_bytes) * u64::from(x.rows) == size))
    }

    /// Returns its text with the seed.
    pub fn text(&self) -> String {
        format!("# seed {:#x}\n{}", self.seed, print_program(&self.insns))
    }

    /// Returns for each byte of memory whether a store of the program can write it.
    pub fn stored(&self) -> Vec<bool> {
        let mut stored = vec![false; MEMORY_BYTES as usize];
        let builder = Builder::new(&self.config, &self.image);
        for insn in &self.insns {
            if matches!(insn.op, Op::Store(_)) {
                for range in builder.access(&insn.op).dram_writes.iter() {
                    let end = range.end.min(MEMORY_BYTES) as usize;
                    stored[(range.start as usize).min(end)..end].fill(true);
                }
            }
        }
        stored
    }
}

/// Generates a correct program: it loads all memories, runs `length` random operations, and stores the scratchpads.
pub fn generate(config: &HwConfig, seed: u64, length: usize) -> Program {
    series(config, seed, length, 1).remove(0)
}

/// Generates correct programs to run one after the other on the same device. The first loads all memories, and the last
/// stores the scratchpads. Each continues from what the previous ones left, so it is short. Only the first has a memory
/// image.
pub fn series(config: &HwConfig, seed: u64, length: usize, programs: usize) -> Vec<Program> {
    let members = series_with_faults(config, seed, length, programs, usize::MAX, &mut std::iter::empty());
    members.into_iter().map(|member| member.program).collect()
}

/// A program of a series.
#[derive(Debug, Clone)]
pub struct Member {
    /// The program.
    pub program: Program,
    /// The planted fault, and the trap that the program must end with.
    pub fault: Option<(FaultKind, Expected)>,
}

/// Generates a series like [`series`], with a planted fault in each `every`-th program except the first and the last. A
/// kind that the configuration does not support is skipped; if no kind is left, the program is correct.
///
/// What a trapping program leaves in scratchpads depends on the device's timing. The programs after it are correct
/// nevertheless: they reload micro-ops, the only data that decide what is accessed.
pub fn series_with_faults(
    config: &HwConfig,
    seed: u64,
    length: usize,
    programs: usize,
    every: usize,
    kinds: &mut dyn Iterator<Item = FaultKind>,
) -> Vec<Member> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut image = image::image(config, &mut rng);
    let mut builder = Builder::new(config, &image);
    let mut made = Vec::with_capacity(programs);
    // Whether the device's micro-ops can differ from the builder's.
    let mut unknown = false;
    for at in 0..programs {
        if at > 0 && at + 1 < programs && (at + 1) % every == 0 {
            let tries = (&mut *kinds).take(FaultKind::ALL.len());
            let planted = tries.flat_map(|kind| [kind; PLANTINGS]).find_map(|kind| {
                begin(&mut builder, unknown, &mut rng);
                unknown = true;
                builder.mistrust_stores();
                plant_into(&mut builder, Vec::new(), kind, seed, &mut rng)
            });
            if let Some(Planted { kind, program, expected }) = planted {
                made.push(Member { program, fault: Some((kind, expected)) });
                continue;
            }
        }
        begin(&mut builder, unknown, &mut rng);
        unknown = false;
        if at == 0 {
            prologue(&mut builder, &mut rng);
        }
        body(&mut builder, length, &mut rng);
        if at + 1 == programs {
            epilogue(&mut builder, &mut rng);
        } else {
            glimpse(&mut builder, &mut rng);
        }
        let spare = rng.random_range(0..20);
        builder.add_spare_tokens(spare, &mut rng);
        let program = Program::from_builder(&builder, std::mem::take(&mut image), seed, spare);
        made.push(Member { program, fault: None });
    }
    made
}

/// Attempts per kind of fault.
const PLANTINGS: usize = 4;

/// Begins the next program of a series. Loads micro-ops if those of the device are unknown.
fn begin(builder: &mut Builder, unknown: bool, rng: &mut SmallRng) {
    builder.begin();
    if unknown {
        fill(builder, Mem::GemmUop, rng);
        fill(builder, Mem::VectorUop, rng);
    }
}

/// Fills every memory.
fn prologue(builder: &mut Builder, rng: &mut SmallRng) {
    let mut mems = Mem::ALL;
    mems.shuffle(rng);
    for mem in mems {
        fill(builder, mem, rng);
    }
}

/// Fills a memory.
fn fill(builder: &mut Builder, mem: Mem, rng: &mut SmallRng) {
    let config = builder.config;
    let total = u64::from(config.entries(mem)) * u64::from(config.entry_bytes(mem));
    let region = match mem {
        Mem::GemmUop => GEMM_UOPS,
        Mem::VectorUop => VECTOR_UOPS,
        Mem::Param => PARAMS,
        _ => DATA,
    };
    // Rows of whole entries, as large as the row length's 16 bits and the region allow.
    let mut rows = 1u32;
    while total / u64::from(rows) > 0x8000.min(region.end - region.start) {
        rows *= 2;
    }
    let room = (region.end - region.start) - total / u64::from(rows);
    let align = u64::from(config.entry_bytes(mem).max(config.dma_align)).next_power_of_two();
    let load = Load {
        mem,
        offset: region.start + if region == DATA { rng.random_range(0..=room) / align * align } else { 0 },
        row_bytes: (total / u64::from(rows)) as u32,
        rows,
        ..Load::default()
    };
    // Sizes of scratchpads are powers of two, so this is legal. If it is rejected anyway, nothing reads the memory.
    let _ = builder.add(load.into(), None, rng);
}

/// Random operations.
fn body(builder: &mut Builder, length: usize, rng: &mut SmallRng) {
    for _ in 0..length {
        let unit = [Unit::Load, Unit::Load, Unit::Gemm, Unit::Gemm, Unit::Vector, Unit::Vector, Unit::Store]
            [rng.random_range(0..7usize)];
        for _ in 0..60 {
            let op = sample(unit, builder.config, Aim::Good, rng);
            if builder.add(op, None, rng).is_ok() {
                break;
            }
        }
    }
}

/// Stores inp and out, then acc: byte by byte if vector can shift, otherwise saturated.
fn epilogue(builder: &mut Builder, rng: &mut SmallRng) {
    let mut at = DUMP.start;
    let config = builder.config;
    for mem in [Mem::Inp, Mem::Out] {
        at = dump(builder, mem, 0, config.entries(mem), at, rng);
    }
    let uop = config.vector_uop_depth - 1;
    let zero = Load {
        mem: Mem::VectorUop,
        entry: uop,
        offset: image::ZEROS,
        row_bytes: config.vector_uop_bytes(),
        ..Load::default()
    };
    let _ = builder.add(zero.into(), None, rng);
    let rows = config.acc_depth.min(config.out_depth);
    let count0 = 1 << (rows.ilog2() / 2);
    let count1 = rows / count0;
    for first in (0..config.acc_depth).step_by(rows as usize) {
        let walk = Vector {
            uop,
            count0,
            count1,
            a_at: first,
            a0: count1,
            a1: 1,
            dst0: count1,
            dst1: 1,
            dst: VecDst::Out,
            a: VecSrc::Acc,
            ..Vector::default()
        };
        let out_to = |builder: &mut Builder, op: Vector, at: u64, rng: &mut SmallRng| {
            let _ = builder.add(op.into(), None, rng);
            dump(builder, Mem::Out, 0, rows, at, rng)
        };
        if !config.vector_shift {
            at = out_to(builder, Vector { op: VecOp::Move, ..walk }, at, rng);
            continue;
        }
        // Param entry 0 holds 24 as every channel's bias, entry 1 holds 8.
        for (entry, value) in [(0, image::SHIFT_AMOUNTS[0]), (1, image::SHIFT_AMOUNTS[1])] {
            shift_amount(builder, entry, value, rng);
        }
        for byte in 0..4 {
            let high = Vector { op: VecOp::Shr, b: VecSrc::Param, ..walk };
            at = out_to(builder, high, at, rng);
            if byte < 3 {
                let up = Vector { op: VecOp::Shl, b: VecSrc::Param, b_at: 1, dst: VecDst::Acc, dst_at: first, ..walk };
                let _ = builder.add(up.into(), None, rng);
            }
        }
    }
}

/// Loads a bias of `value` for every channel into a param entry.
fn shift_amount(builder: &mut Builder, entry: u32, value: u32, rng: &mut SmallRng) {
    let load = Load {
        mem: Mem::Param,
        entry: entry * PARAM_ROWS,
        offset: image::shift_words(value),
        row_bytes: builder.config.block_out * 4,
        ..Load::default()
    };
    let _ = builder.add(load.into(), None, rng);
}

/// Stores a few entries of inp and out.
fn glimpse(builder: &mut Builder, rng: &mut SmallRng) {
    let mut at = DUMP.start;
    for mem in [Mem::Inp, Mem::Out] {
        let all = builder.config.entries(mem);
        let some = all.min(8);
        at = dump(builder, mem, rng.random_range(0..=all - some), some, at, rng);
    }
}

/// Stores entries of inp or out starting at `first`. Returns the next free address.
fn dump(builder: &mut Builder, mem: Mem, first: u32, entries: u32, at: u64, rng: &mut SmallRng) -> u64 {
    let row_bytes = entries * builder.config.entry_bytes(mem);
    let store = Store { mem, entry: first, offset: at, row_bytes, ..Store::default() };
    let _ = builder.add(store.into(), None, rng);
    (at + u64::from(row_bytes)).next_multiple_of(64)
}

/// Rebuilds a program from operations, with new tokens.
///
/// # Errors
/// Returns the place of the first operation that is not correct there, and why.
fn rebuild(like: &Program, ops: &[Op]) -> Result<Program, (usize, Refused)> {
    let mut rng = SmallRng::seed_from_u64(like.seed);
    let mut builder = Builder::new(&like.config, &like.image);
    for (i, op) in ops.iter().enumerate() {
        builder.add(*op, None, &mut rng).map_err(|why| (i, why))?;
    }
    if !ops.is_empty() {
        builder.add_spare_tokens(like.spare_tokens, &mut rng);
    }
    Ok(Program::from_builder(&builder, like.image.clone(), like.seed, like.spare_tokens))
}

/// Results must not overlap the data that is loaded as micro-ops and parameters.
const _: () = assert!(RESULTS.start >= PARAMS.end && DUMP.start >= RESULTS.end && STREAM >= DUMP.end);

#[cfg(test)]
mod tests;
