//! Which entries, ports and bytes an instruction touches, and where it would trap.

use crate::functional::Stop;
use crate::functional::dma::{LoadRows, StoreRows};
use crate::functional::loops::Affine;
use crate::functional::vector::is_inside;
use std::collections::HashSet;
use std::ops::Range;
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::device::Base;
use tilewright_hw::isa::{Gemm, Op, PARAM_ROWS, Unit, Vector};
use tilewright_hw::regs::TrapCause;

/// A set of entries.
#[derive(Debug, Clone, Default)]
pub(crate) struct Entries(Vec<u64>);

impl Entries {
    pub(crate) fn insert(&mut self, range: Range<u32>) {
        for entry in range {
            let word = (entry / 64) as usize;
            if self.0.len() <= word {
                self.0.resize(word + 1, 0);
            }
            self.0[word] |= 1 << (entry % 64);
        }
    }

    fn has(&self, entry: u32) -> bool {
        self.0.get((entry / 64) as usize).is_some_and(|word| word & 1 << (entry % 64) != 0)
    }

    /// Returns the first entry that both sets contain.
    pub(crate) fn first_common(&self, other: &Entries) -> Option<u32> {
        let (word, bits) = self.0.iter().zip(&other.0).map(|(a, b)| a & b).enumerate().find(|(_, bits)| *bits != 0)?;
        Some(word as u32 * 64 + bits.trailing_zeros())
    }

    /// Returns the first entry of this set that `other` does not contain.
    pub(crate) fn first_outside(&self, other: &Entries) -> Option<u32> {
        let outside = |(i, a): (usize, &u64)| a & !other.0.get(i).unwrap_or(&0);
        let (word, bits) = self.0.iter().enumerate().map(|x| (x.0, outside(x))).find(|(_, bits)| *bits != 0)?;
        Some(word as u32 * 64 + bits.trailing_zeros())
    }

    pub(crate) fn is_within(&self, other: &Entries) -> bool {
        self.first_outside(other).is_none()
    }

    pub(crate) fn add(&mut self, other: &Entries) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
    }
}

/// Bytes of device memory: sorted ranges with gaps between them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bytes(Vec<Range<u64>>);

impl Bytes {
    /// Adds a range. The ranges may be unsorted until [`Bytes::put_in_order`] is called.
    fn push(&mut self, range: Range<u64>) {
        match self.0.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.0.push(range),
        }
    }

    fn put_in_order(&mut self) {
        self.0.sort_unstable_by_key(|range| range.start);
        self.0.dedup_by(|next, range| {
            let meets = next.start <= range.end;
            if meets {
                range.end = range.end.max(next.end);
            }
            meets
        });
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Range<u64>> {
        self.0.iter().cloned()
    }

    /// Returns the first byte that both contain.
    pub(crate) fn first_common(&self, other: &Bytes) -> Option<u64> {
        let (mut a, mut b) = (self.0.iter().peekable(), other.0.iter().peekable());
        while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
            if x.start.max(y.start) < x.end.min(y.end) {
                return Some(x.start.max(y.start));
            }
            if x.end <= y.end {
                a.next();
            } else {
                b.next();
            }
        }
        None
    }
}

impl From<Range<u64>> for Bytes {
    fn from(range: Range<u64>) -> Bytes {
        Bytes(vec![range])
    }
}

/// What an instruction touches until its end or its trap. Entries are numbered as loads address them.
#[derive(Debug, Clone)]
pub(crate) struct Access {
    pub(crate) unit: Unit,
    /// Entries read, by memory.
    pub(crate) reads: [Entries; 7],
    /// Entries read before the instruction itself wrote them.
    pub(crate) needs: [Entries; 7],
    pub(crate) writes: [Entries; 7],
    /// Entries written completely.
    pub(crate) fills: [Entries; 7],
    read_banks: [u8; 7],
    write_banks: [u8; 7],
    pub(crate) dram_reads: Bytes,
    pub(crate) dram_writes: Bytes,
    /// The trap that ends it, if any.
    pub(crate) trap: Option<TrapCause>,
    /// Whether a deep operation reads a row that the same instruction wrote.
    pub(crate) reads_own_row: bool,
}

/// What two instructions conflict on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conflict {
    /// An entry, numbered as loads address it, that at least one of them writes.
    Entry(Mem, u32),
    /// A port of a bank.
    Port { mem: Mem, bank: u32, write: bool },
    /// A byte of device memory that at least one of them writes.
    Memory(u64),
}

/// Inputs to the analysis of an instruction.
pub(crate) struct Context<'a> {
    pub(crate) config: &'a HwConfig,
    pub(crate) bases: &'a [Base],
    pub(crate) memory_bytes: u64,
    /// Micro-ops of gemm and of vector.
    pub(crate) micro_ops: [&'a [[u32; 3]]; 2],
    /// Most micro-ops or rows of device memory to analyze; later ones are ignored.
    pub(crate) most: u64,
}

impl Access {
    /// Returns whether two units must not run the two instructions at the same time or in the other order.
    pub(crate) fn conflicts(&self, other: &Access) -> bool {
        self.conflict(other).is_some()
    }

    /// Returns why two units must not run the two instructions at the same time or in the other order, if so.
    pub(crate) fn conflict(&self, other: &Access) -> Option<Conflict> {
        for mem in Mem::ALL {
            let m = mem as usize;
            let common = |a: &[Entries; 7], b: &[Entries; 7]| a[m].first_common(&b[m]);
            let pairs = [(&self.writes, &other.writes), (&self.writes, &other.reads), (&self.reads, &other.writes)];
            if let Some(entry) = pairs.iter().find_map(|(a, b)| common(a, b)) {
                return Some(Conflict::Entry(mem, entry));
            }
        }
        for mem in Mem::ALL {
            let m = mem as usize;
            let kinds =
                [(self.read_banks[m] & other.read_banks[m], false), (self.write_banks[m] & other.write_banks[m], true)];
            if let Some((banks, write)) = kinds.into_iter().find(|(banks, _)| *banks != 0) {
                return Some(Conflict::Port { mem, bank: banks.trailing_zeros(), write });
            }
        }
        let meet = |a: &Bytes, b: &Bytes| a.first_common(b).map(Conflict::Memory);
        meet(&self.dram_writes, &other.dram_writes)
            .or_else(|| meet(&self.dram_writes, &other.dram_reads))
            .or_else(|| meet(&self.dram_reads, &other.dram_writes))
    }

    fn read(&mut self, c: &Context, mem: Mem, entries: Range<u32>) {
        for entry in entries.clone() {
            self.read_banks[mem as usize] |= 1 << c.config.bank_of(mem, entry);
            if !self.writes[mem as usize].has(entry) {
                self.needs[mem as usize].insert(entry..entry + 1);
            }
        }
        self.reads[mem as usize].insert(entries);
    }

    fn write(&mut self, c: &Context, mem: Mem, entries: Range<u32>, whole: bool) {
        for entry in entries.clone() {
            self.write_banks[mem as usize] |= 1 << c.config.bank_of(mem, entry);
        }
        if whole {
            self.fills[mem as usize].insert(entries.clone());
        }
        self.writes[mem as usize].insert(entries);
    }

    /// Records a row that vector reads. In param, this is all rows of the entry.
    fn read_row(&mut self, c: &Context, mem: Mem, entry: u32) {
        let rows = if mem == Mem::Param { PARAM_ROWS } else { 1 };
        let entries = entry * rows..(entry + 1) * rows;
        self.read(c, mem, entries);
    }
}

/// Analyzes which entries, ports and bytes an instruction touches.
pub(crate) fn access(c: &Context, op: &Op) -> Access {
    let mut a = Access {
        unit: op.opcode().unit(),
        reads: Default::default(),
        needs: Default::default(),
        writes: Default::default(),
        fills: Default::default(),
        read_banks: [0; 7],
        write_banks: [0; 7],
        dram_reads: Bytes::default(),
        dram_writes: Bytes::default(),
        trap: None,
        reads_own_row: false,
    };
    let mut bus_error = false;
    let mut most = c.most;
    let beat = u64::from(c.config.bus_bytes());
    let mut dram = |addr: u64, bytes: u32| {
        let range = addr..addr + u64::from(bytes);
        bus_error |= range.end.next_multiple_of(beat) > c.memory_bytes;
        // Addresses past the end of memory hold no bytes, but earlier bursts still transfer theirs.
        let inside = range.start..range.end.min(c.memory_bytes);
        (!inside.is_empty()).then_some(inside)
    };
    let entries = |mem: Mem, bytes: &Range<usize>| {
        let size = c.config.entry_bytes(mem) as usize;
        (bytes.start / size) as u32..bytes.end.div_ceil(size) as u32
    };
    let end = match op {
        Op::Load(x) => LoadRows::new(c.config, x, c.bases).try_for_each(|row| {
            let row = row?;
            if let Some(addr) = row.dram {
                most = most.checked_sub(1).ok_or(Stop::Limit)?;
                dram(addr, x.row_bytes).into_iter().for_each(|range| a.dram_reads.push(range));
            }
            a.write(c, x.mem, entries(x.mem, &row.bytes), !x.pack);
            Ok(())
        }),
        Op::Store(x) => StoreRows::new(c.config, x, c.bases).try_for_each(|row| {
            let (addr, bytes) = row?;
            most = most.checked_sub(1).ok_or(Stop::Limit)?;
            dram(addr, x.row_bytes).into_iter().for_each(|range| a.dram_writes.push(range));
            a.read(c, x.mem, entries(x.mem, &bytes));
            Ok(())
        }),
        Op::Gemm(x) => gemm(c, x, &mut a),
        Op::Vector(x) => vector(c, x, &mut a),
    };
    a.dram_reads.put_in_order();
    a.dram_writes.put_in_order();
    a.trap = match end {
        Err(Stop::Trap(cause)) => Some(cause),
        _ if bus_error => Some(TrapCause::Bus),
        _ => None,
    };
    a
}

fn gemm(c: &Context, x: &Gemm, a: &mut Access) -> Result<(), Stop> {
    let trap = || Err(Stop::Trap(TrapCause::Scratchpad));
    let mems = [Mem::Acc, Mem::Inp, Mem::Wgt];
    let mut done = 0;
    Affine::from(x).for_each(c.micro_ops[0], |uop, index| {
        if done == c.most {
            return Err(Stop::Limit);
        }
        done += 1;
        let Some(index) = index else { return trap() };
        a.read(c, Mem::GemmUop, uop..uop + 1);
        if index.iter().zip(mems).any(|(index, mem)| *index >= u64::from(c.config.entries(mem))) {
            return trap();
        }
        let [acc, inp, wgt] = index.map(|i| i as u32..i as u32 + 1);
        a.read(c, Mem::Inp, inp);
        a.read(c, Mem::Wgt, wgt);
        if x.accumulate {
            a.read(c, Mem::Acc, acc.clone());
        }
        a.write(c, Mem::Acc, acc, true);
        Ok(())
    })
}

fn vector(c: &Context, x: &Vector, a: &mut Access) -> Result<(), Stop> {
    let trap = |cause| Err(Stop::Trap(cause));
    if x.op.needs_descriptor(x.b) {
        let entries = c.config.constant_entries(x.op);
        if x.descriptor + entries > c.config.param_depth {
            return trap(TrapCause::Scratchpad);
        }
        a.read(c, Mem::Param, x.descriptor * PARAM_ROWS..(x.descriptor + entries) * PARAM_ROWS);
    }
    let mems = [Some(x.dst.mem()), x.a.mem(), x.b.mem()];
    let mut written = HashSet::new();
    let mut done = 0;
    Affine::from(x).for_each(c.micro_ops[1], |uop, index| {
        if done == c.most {
            return Err(Stop::Limit);
        }
        done += 1;
        let Some(index) = index else { return trap(TrapCause::Scratchpad) };
        a.read(c, Mem::VectorUop, uop..uop + 1);
        for (index, mem) in index.iter().zip(mems) {
            if mem.is_some_and(|m| !is_inside(c.config, x.op, m, *index)) {
                return trap(TrapCause::Scratchpad);
            }
        }
        let [dst, first, second] = index.map(|i| i as u32);
        // The hardware reads the operands before it detects that they collide.
        for (mem, at) in [(mems[1], first), (mems[2], second)] {
            if let Some(mem) = mem {
                a.read_row(c, mem, if mem == Mem::Param { x.op.param_entry(at).0 } else { at });
                a.reads_own_row |= x.op.is_deep() && mems[0] == Some(mem) && written.contains(&at);
            }
        }
        if let (Some(m), Some(n)) = (mems[1], mems[2])
            && m == n
            && c.config.bank_of(m, first) == c.config.bank_of(n, second)
        {
            return trap(TrapCause::Collision);
        }
        if x.op.reads_dst() {
            a.read_row(c, x.dst.mem(), dst);
        }
        written.insert(dst);
        a.write(c, x.dst.mem(), dst..dst + 1, true);
        Ok(())
    })
}
