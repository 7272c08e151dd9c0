//! Which instructions made a byte of device memory: the store that wrote it last, and what wrote the scratchpad before.

use crate::access::{Kernel, footprint};
use crate::program::AccelProgram;
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::{self, DecodeError, Gemm, GemmUop, Insn, Load, Op, Store, Vector, VectorUop};

/// The store that wrote a byte last, and where it had the byte from.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// Its place in the stream.
    pub index: usize,
    /// The store.
    pub store: Store,
    /// The scratchpad that it read.
    pub mem: Mem,
    /// The entry there.
    pub entry: u32,
    /// The byte of the entry.
    pub byte: u32,
    /// Stores of the stream that write the asked range of bytes, by their places.
    pub stores: Vec<usize>,
    /// What made the entry, the last first: a vector instruction, what made its first operand, and so on to a product or a
    /// load, which is left out.
    pub makers: Vec<Maker>,
}

/// An instruction that wrote an entry of a scratchpad.
#[derive(Debug, Clone, PartialEq)]
pub struct Maker {
    /// Its place in the stream.
    pub index: usize,
    /// The instruction.
    pub insn: Insn,
    /// Where it wrote.
    pub mem: Mem,
    /// The entry.
    pub entry: u32,
    /// The turn of its three loops, and the micro-op, that wrote it last.
    pub turn: [u32; 4],
    /// Instructions that summed into the entry, this one the last of them; more than one for products cut in pieces.
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
    /// Decodes a program that has its stream and constants.
    ///
    /// # Errors
    /// Place and reason of the first instruction that the configuration does not know.
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

    /// What made byte `at` behind base register `base`; none where no store writes it. `range` are the bytes of the tensor
    /// that it is part of, whose stores are listed.
    pub fn trace(&self, base: u32, at: u64, range: std::ops::Range<u64>) -> Option<Trace> {
        let mut stores = Vec::new();
        let mut found = None;
        for (index, insn) in self.insns.iter().enumerate() {
            let Op::Store(x) = &insn.op else { continue };
            if x.base != base {
                continue;
            }
            let mut rows = self.rows(x);
            if rows.any(|(start, _)| start < range.end && range.start < start + u64::from(x.row_bytes)) {
                stores.push(index);
            }
            let mut rows = self.rows(x);
            if let Some((start, source)) = rows.find(|(s, _)| (*s..*s + u64::from(x.row_bytes)).contains(&at)) {
                found = Some((index, *x, source + (at - start)));
            }
        }
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

    /// What made an entry before an instruction, and what made the first operand of that, until a load or a product.
    fn makers(&self, before: usize, mem: Mem, entry: u32) -> Vec<Maker> {
        let mut makers = Vec::new();
        let (mut before, mut at) = (before, Some((mem, entry)));
        while let Some((mem, entry)) = at {
            let Some(index) = self.writer(before, mem, entry) else { break };
            let insn = self.insns[index];
            let (turn, next) = match (&insn.op, &self.kernels[index]) {
                (Op::Vector(x), Uops::Vector(uops)) => vector_turn(x, uops, entry),
                (Op::Gemm(x), Uops::Gemm(uops)) => (gemm_turn(x, uops, entry), None),
                _ => break,
            };
            makers.push(Maker { index, insn, mem, entry, turn, summed: self.summed(index, mem, entry) });
            // An instruction that works in place, turn by turn, has itself as its maker.
            (before, at) = (index, next);
        }
        makers
    }

    /// The last instruction before another that wrote an entry.
    fn writer(&self, before: usize, mem: Mem, entry: u32) -> Option<usize> {
        (0..before).rev().find(|&index| {
            let found = footprint(&self.insns[index].op, self.kernels[index].kernel(), self.config);
            found.is_ok_and(|f| f.scratch.iter().any(|t| t.write && t.mem == mem && t.set.contains(entry)))
        })
    }

    /// Products that were summed into an entry, up to the one at `last`.
    fn summed(&self, last: usize, mem: Mem, entry: u32) -> usize {
        let (mut count, mut at) = (1, last);
        while matches!(&self.insns[at].op, Op::Gemm(x) if x.accumulate) {
            let Some(index) = self.writer(at, mem, entry).filter(|&i| matches!(self.insns[i].op, Op::Gemm(_))) else {
                break;
            };
            (count, at) = (count + 1, index);
        }
        count
    }
}

/// Puts what a load brings into a micro-op memory, which the driver fills from the constants alone.
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

/// The turns of three loops over micro-ops, last first.
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

/// The turn that wrote an entry last, and the place of its first operand.
fn vector_turn(x: &Vector, uops: &[VectorUop], entry: u32) -> ([u32; 4], Option<(Mem, u32)>) {
    let dst = |turn: &[u32; 4]| index(x.dst_at, uops[turn[3] as usize].dst, [x.dst0, x.dst1, x.dst2], turn);
    let counts = [x.count0, x.count1, x.count2];
    let turn = turns(counts, uops.len()).find(|turn| dst(turn) == u64::from(entry)).unwrap_or_default();
    let a = uops.get(turn[3] as usize).map(|uop| index(x.a_at, uop.a, [x.a0, x.a1, x.a2], &turn));
    (turn, x.a.mem().zip(a.and_then(|a| u32::try_from(a).ok())))
}

fn gemm_turn(x: &Gemm, uops: &[GemmUop], entry: u32) -> [u32; 4] {
    let acc = |turn: &[u32; 4]| index(x.acc, uops[turn[3] as usize].acc, [x.acc0, x.acc1, x.acc2], turn);
    let counts = [x.count0, x.count1, x.count2];
    turns(counts, uops.len()).find(|turn| acc(turn) == u64::from(entry)).unwrap_or_default()
}

impl Maker {
    /// Its text.
    pub fn text(&self) -> String {
        isa::print_insn(&self.insn)
    }
}
