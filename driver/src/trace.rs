//! Finds the instructions that produced a byte of device memory: the store that wrote it last, and those that wrote the
//! scratchpad before.

use crate::access::{Footprint, Kernel, footprint};
use crate::program::AccelProgram;
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::{self, DecodeError, Gemm, GemmUop, Insn, Load, Op, Store, Vector, VectorUop};

/// The store that wrote a byte last, and the source of the byte.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// Its index in the stream.
    pub index: usize,
    /// The store.
    pub store: Store,
    /// The scratchpad that it read.
    pub mem: Mem,
    /// The entry that it read.
    pub entry: u32,
    /// The byte of the entry.
    pub byte: u32,
    /// Indices of the stores that wrote a byte of the requested range last. Stores of a tensor that was there before do
    /// not count.
    pub stores: Vec<usize>,
    /// The instructions that produced the entry, last first: a vector instruction, those that produced its operands and
    /// the value that it added to, and so on down to products and loads; loads are not listed.
    pub makers: Vec<Maker>,
}

/// An instruction that wrote an entry of a scratchpad.
#[derive(Debug, Clone, PartialEq)]
pub struct Maker {
    /// Its index in the stream.
    pub index: usize,
    /// The instruction.
    pub insn: Insn,
    /// The memory that it wrote.
    pub mem: Mem,
    /// The entry.
    pub entry: u32,
    /// The iteration of its three loops, and the micro-op, that wrote it last.
    pub turn: [u32; 4],
    /// Number of instructions that summed into the entry, this one last; more than one if a product is split into
    /// pieces.
    pub summed: usize,
}

/// A stream's instructions with the micro-ops that each runs.
#[derive(Debug)]
pub struct Stream<'p> {
    config: &'p HwConfig,
    insns: Vec<Insn>,
    kernels: Vec<Uops>,
}

#[derive(Debug)]
enum Uops {
    None,
    Gemm(Vec<GemmUop>),
    Vector(Vec<VectorUop>),
}

impl Uops {
    fn kernel(&self) -> Kernel<'_> {
        match self {
            Uops::None => Kernel::None,
            Uops::Gemm(uops) => Kernel::Gemm(uops),
            Uops::Vector(uops) => Kernel::Vector(uops),
        }
    }
}

impl<'p> Stream<'p> {
    /// Decodes a program, which must have its stream and constants.
    ///
    /// # Errors
    /// Index and reason of the first instruction that does not decode for the configuration.
    pub fn new(program: &AccelProgram, config: &'p HwConfig) -> Result<Stream<'p>, (usize, DecodeError)> {
        let insns = program.decode(config)?;
        let room = |mem| vec![0u8; config.entries(mem) as usize * config.entry_bytes(mem) as usize];
        let (mut guop, mut vuop) = (room(Mem::GemmUop), room(Mem::VectorUop));
        let mut kernels = Vec::with_capacity(insns.len());
        for insn in &insns {
            kernels.push(match &insn.op {
                Op::Load(x) if x.mem == Mem::GemmUop => fill(&mut guop, x, program, config),
                Op::Load(x) if x.mem == Mem::VectorUop => fill(&mut vuop, x, program, config),
                Op::Gemm(x) => {
                    let bytes = part(&guop, x.uop, x.uops, config.gemm_uop_bytes());
                    Uops::Gemm(bytes.map(|b| GemmUop::from_bytes(b, config)).collect())
                }
                Op::Vector(x) => {
                    let bytes = part(&vuop, x.uop, x.uops, config.vector_uop_bytes());
                    Uops::Vector(bytes.map(|b| VectorUop::from_bytes(b, config)).collect())
                }
                _ => Uops::None,
            });
        }
        Ok(Stream { config, insns, kernels })
    }

    /// The instructions.
    pub fn insns(&self) -> &[Insn] {
        &self.insns
    }

    /// Returns what an instruction touches; `None` if the hardware would trap.
    pub fn footprint(&self, index: usize) -> Option<Footprint> {
        footprint(&self.insns.get(index)?.op, self.kernels.get(index)?.kernel(), self.config).ok()
    }

    /// Traces byte `at` of the region of base register `base`; `None` if no store writes it. `range` is the byte range
    /// of the tensor that contains it, whose stores are listed.
    pub fn trace(&self, base: u32, at: u64, range: std::ops::Range<u64>) -> Option<Trace> {
        let mut stores = Vec::new();
        let mut found = None;
        let mut written = vec![false; usize::try_from(range.end.saturating_sub(range.start)).ok()?];
        for (index, insn) in self.insns.iter().enumerate().rev() {
            let Op::Store(x) = &insn.op else { continue };
            if x.base != base {
                continue;
            }
            let mut last = false;
            for (start, source) in self.rows(x) {
                let end = start + u64::from(x.row_bytes);
                if found.is_none() && (start..end).contains(&at) {
                    found = Some((index, *x, source + (at - start)));
                }
                let [from, to] = [start, end].map(|byte| byte.clamp(range.start, range.end) - range.start);
                for byte in written.get_mut(from as usize..to as usize).unwrap_or_default() {
                    last |= !std::mem::replace(byte, true);
                }
            }
            if last {
                stores.push(index);
            }
        }
        stores.reverse();
        let (index, store, byte) = found?;
        let entry_bytes = u64::from(self.config.entry_bytes(store.mem));
        let (entry, byte) = ((byte / entry_bytes) as u32, (byte % entry_bytes) as u32);
        let makers = self.makers(index, store.mem, entry);
        Some(Trace { index, store, mem: store.mem, entry, byte, stores, makers })
    }

    /// First byte in device memory and in the scratchpad of each row of a store.
    fn rows(&self, x: &Store) -> impl Iterator<Item = (u64, u64)> + use<'_> {
        let entry_bytes = u64::from(self.config.entry_bytes(x.mem));
        let first = u64::from(x.entry) * entry_bytes;
        let row_room = u64::from(x.row_bytes).div_ceil(entry_bytes) * entry_bytes;
        let wrap = (1u64 << self.config.offset_bits) - 1;
        let x = *x;
        (0..u64::from(x.planes)).flat_map(move |plane| {
            (0..u64::from(x.rows)).map(move |row| {
                let start = (x.offset + row * x.row_stride + plane * x.plane_stride) & wrap;
                let source = if x.pack {
                    let strides = row * u64::from(x.pack_row_stride) + plane * u64::from(x.pack_plane_stride);
                    first + u64::from(x.pack_byte) + strides
                } else {
                    first + (plane * u64::from(x.rows) + row) * row_room
                };
                (start, source)
            })
        })
    }

    /// The instructions that produced an entry before an instruction, and those that produced their operands, down to
    /// loads and products.
    fn makers(&self, before: usize, mem: Mem, entry: u32) -> Vec<Maker> {
        let mut makers: Vec<Maker> = Vec::new();
        let mut open = vec![(before, mem, entry)];
        while let Some((before, mem, entry)) = open.pop() {
            let Some(index) = self.writer(before, mem, entry) else { continue };
            if makers.iter().any(|maker| (maker.index, maker.mem, maker.entry) == (index, mem, entry)) {
                continue;
            }
            let insn = self.insns[index];
            let mut summed = 1;
            let turn = match (&insn.op, &self.kernels[index]) {
                (Op::Vector(x), Uops::Vector(uops)) => {
                    let (turn, operands) = vector_turn(x, uops, entry);
                    // An instruction that works in place, iteration by iteration, is its own maker.
                    open.extend(operands.into_iter().flatten().map(|(mem, entry)| (index, mem, entry)));
                    turn
                }
                (Op::Gemm(x), Uops::Gemm(uops)) => {
                    let first;
                    (summed, first) = self.summed(index, mem, entry);
                    // The first product can add to the result of a vector instruction.
                    if matches!(&self.insns[first].op, Op::Gemm(x) if x.accumulate) {
                        open.push((first, mem, entry));
                    }
                    gemm_turn(x, uops, entry)
                }
                _ => continue,
            };
            makers.push(Maker { index, insn, mem, entry, turn, summed });
        }
        makers.sort_by_key(|maker| std::cmp::Reverse(maker.index));
        makers
    }

    /// The last instruction before index `before` that wrote an entry.
    fn writer(&self, before: usize, mem: Mem, entry: u32) -> Option<usize> {
        (0..before).rev().find(|&index| {
            let found = footprint(&self.insns[index].op, self.kernels[index].kernel(), self.config);
            found.is_ok_and(|f| f.scratch.iter().any(|t| t.write && t.mem == mem && t.set.contains(entry)))
        })
    }

    /// The number of products summed into an entry, up to the one at `last`, and the index of the first of them.
    fn summed(&self, last: usize, mem: Mem, entry: u32) -> (usize, usize) {
        let (mut count, mut at) = (1, last);
        while matches!(&self.insns[at].op, Op::Gemm(x) if x.accumulate) {
            let Some(index) = self.writer(at, mem, entry).filter(|&i| matches!(self.insns[i].op, Op::Gemm(_))) else {
                break;
            };
            (count, at) = (count + 1, index);
        }
        (count, at)
    }
}

/// Copies what a load brings into a micro-op memory; the driver fills these memories from the constants alone.
fn fill(memory: &mut [u8], x: &Load, program: &AccelProgram, config: &HwConfig) -> Uops {
    let entry_bytes = config.entry_bytes(x.mem) as usize;
    let mut to = x.entry as usize * entry_bytes;
    for row in 0..u64::from(x.rows) * u64::from(x.planes) {
        let (row, plane) = (row % u64::from(x.rows), row / u64::from(x.rows));
        let from = (x.offset + row * x.row_stride + plane * x.plane_stride) as usize;
        let bytes = program.constants.get(from..from + x.row_bytes as usize).filter(|_| x.base == 0);
        let room = memory.get_mut(to..to + x.row_bytes as usize);
        if let (Some(bytes), Some(room)) = (bytes, room) {
            room.copy_from_slice(bytes);
        }
        to += (x.row_bytes as usize).div_ceil(entry_bytes) * entry_bytes;
    }
    Uops::None
}

fn part(memory: &[u8], first: u32, count: u32, bytes: u32) -> impl Iterator<Item = &[u8]> {
    memory.chunks_exact(bytes as usize).skip(first as usize).take(count as usize)
}

/// The iterations of three loops over micro-ops, last first.
fn turns(counts: [u32; 3], uops: usize) -> impl Iterator<Item = [u32; 4]> {
    let [c0, c1, c2] = counts;
    let inner = move |l0, l1, l2| (0..uops as u32).rev().map(move |u| [l0, l1, l2, u]);
    (0..c0)
        .rev()
        .flat_map(move |l0| (0..c1).rev().flat_map(move |l1| (0..c2).rev().flat_map(move |l2| inner(l0, l1, l2))))
}

fn index(at: u32, uop: u32, factors: [u32; 3], turn: &[u32; 4]) -> u64 {
    let steps = factors.iter().zip(turn).map(|(f, l)| u64::from(*f) * u64::from(*l));
    u64::from(at) + u64::from(uop) + steps.sum::<u64>()
}

/// The iteration that wrote an entry last, and the entries that it read: both operands, and the entry itself if the
/// operation adds to it. Param is left out, because only loads write it.
fn vector_turn(x: &Vector, uops: &[VectorUop], entry: u32) -> ([u32; 4], [Option<(Mem, u32)>; 3]) {
    let dst = |turn: &[u32; 4]| index(x.dst_at, uops[turn[3] as usize].dst, [x.dst0, x.dst1, x.dst2], turn);
    let counts = [x.count0, x.count1, x.count2];
    let turn = turns(counts, uops.len()).find(|turn| dst(turn) == u64::from(entry)).unwrap_or_default();
    let uop = uops.get(turn[3] as usize);
    let place = |mem: Option<Mem>, at: Option<u64>| {
        mem.filter(|mem| *mem != Mem::Param).zip(at.and_then(|at| u32::try_from(at).ok()))
    };
    let a = place(x.a.mem(), uop.map(|uop| index(x.a_at, uop.a, [x.a0, x.a1, x.a2], &turn)));
    let b = place(x.b.mem().filter(|_| x.op.has_b()), uop.map(|uop| index(x.b_at, uop.b, [x.b0, x.b1, x.b2], &turn)));
    (turn, [a, b, x.op.reads_dst().then_some((x.dst.mem(), entry))])
}

fn gemm_turn(x: &Gemm, uops: &[GemmUop], entry: u32) -> [u32; 4] {
    let acc = |turn: &[u32; 4]| index(x.acc, uops[turn[3] as usize].acc, [x.acc0, x.acc1, x.acc2], turn);
    let counts = [x.count0, x.count1, x.count2];
    turns(counts, uops.len()).find(|turn| acc(turn) == u64::from(entry)).unwrap_or_default()
}

impl Maker {
    /// The instruction's assembly text.
    pub fn text(&self) -> String {
        isa::print_insn(&self.insn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builder, DriverError, Role};
    use tilewright_hw::isa::{VecDst, VecOp, VecSrc};

    /// Products, summed with a vector result before or after them, requantized, added to another row, and stored twice.
    fn program(config: &HwConfig, mac_first: bool) -> Result<AccelProgram, DriverError> {
        let row = config.entry_bytes(Mem::Out);
        let mut b = Builder::new(config)?;
        let data = b.region("data", Role::Output, 1 << 12)?;
        b.output("y", data, 0, u64::from(2 * row));
        let load =
            |mem, entry| Load { mem, entry, base: data.0, row_bytes: config.entry_bytes(mem), ..Load::default() };
        for mem in [Mem::Inp, Mem::Wgt, Mem::Out] {
            b.load(load(mem, 0))?;
        }
        for entry in 0..4 {
            b.load(load(Mem::Param, entry))?;
        }
        // A tensor that is dead before the output is stored had the same place.
        b.store(Store { base: data.0, row_bytes: 2 * row, ..Store::default() })?;
        let one = |x: Vector| Vector { count0: 1, count1: 1, count2: 1, ..x };
        let mac = one(Vector { op: VecOp::Mac, a: VecSrc::Inp, b: VecSrc::Param, descriptor: 2, ..Vector::default() });
        let gemm = |accumulate| Gemm { accumulate, count0: 1, count1: 1, count2: 1, ..Gemm::default() };
        if mac_first {
            b.vector(mac, &[VectorUop::default()])?;
        }
        b.gemm(gemm(mac_first), &[GemmUop::default()])?;
        b.gemm(gemm(true), &[GemmUop::default()])?;
        if !mac_first {
            b.vector(mac, &[VectorUop::default()])?;
        }
        let requant = Vector { op: VecOp::Requant, dst: VecDst::Out, dst_at: 1, b: VecSrc::Param, ..Vector::default() };
        b.vector(one(requant), &[VectorUop::default()])?;
        // The requantized row is the second operand.
        let pair = Vector {
            op: VecOp::Max,
            dst: VecDst::Out,
            dst_at: 2,
            a: VecSrc::Inp,
            b: VecSrc::Out,
            b_at: 1,
            ..Vector::default()
        };
        b.vector(one(pair), &[VectorUop::default()])?;
        for offset in [0, row] {
            b.store(Store { base: data.0, offset: offset.into(), entry: 2, row_bytes: row, ..Store::default() })?;
        }
        b.finish()
    }

    #[test]
    fn all_that_an_entry_came_from_is_followed() {
        let config = HwConfig { vector_mac: true, ..HwConfig::default() };
        for mac_first in [false, true] {
            let program = program(&config, mac_first).unwrap();
            let stream = Stream::new(&program, &config).unwrap();
            let binding = &program.outputs[0];
            let trace = stream.trace(binding.region.0, 3, 0..binding.bytes).unwrap();
            let names: Vec<&str> = trace
                .makers
                .iter()
                .map(|maker| match &maker.insn.op {
                    Op::Vector(x) => x.op.name(),
                    Op::Gemm(_) => "gemm",
                    _ => "another",
                })
                .collect();
            let sums = if mac_first { ["gemm", "mac"] } else { ["mac", "gemm"] };
            assert_eq!(names, [&["max", "requant"][..], &sums].concat());
            assert_eq!(trace.makers.iter().map(|maker| maker.summed).max(), Some(2));
            // The store of the dead tensor is not one of the output's.
            assert_eq!((trace.stores.len(), trace.stores[0]), (2, trace.index));
        }
    }
}
