//! Where the buffers of a scheduled program are: entries of scratchpads, and bytes of device memory.

use std::collections::HashMap;
use std::ops::Range;

use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::{PARAM_ROWS, Unit};

use super::error::LowerError;
use super::needs::Needs;
use super::scopes::mem;
use super::stages::Stages;
use crate::schedule::chain;
use crate::te::{DType, Name, NameMap};
use crate::tir::{Buffer, Function, Scope, Stmt};

/// Most buffers of a memory for whose slots the best banks are searched.
const MOST_IN_TURN: usize = 6;

/// The entries of a buffer in a scratchpad.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    /// The scratchpad.
    pub mem: Mem,
    /// First entry.
    pub first: u32,
    /// Entries of a slot.
    pub entries: u32,
    /// Entries from slot to slot.
    pub stride: u32,
    /// The pipeline loop whose iterations use the slots in turn.
    pub pipeline: Option<Name>,
    /// Number of slots.
    pub slots: u32,
    /// First entry of each slot, if the slots are not one after the other.
    pub firsts: Vec<u32>,
    /// Elements of an entry; for taps, those of a block, which can have several entries.
    pub elements: i64,
    /// Elements of the scratchpad from index to index of each dimension, if the buffer is a part of a larger tensor.
    pub strides: Option<Vec<i64>>,
}

/// What is in inp besides the buffers that a program places itself.
#[derive(Debug, Clone, Default)]
pub struct Held {
    /// Buffers whose places are given.
    pub places: NameMap<Place>,
    /// First entry and number of entries of the part of inp for other buffers; `None` for all of inp.
    pub room: Option<(u32, u32)>,
}

/// Returns the elements of an entry, if the memory can hold the type.
fn elements(config: &HwConfig, mem: Mem, b: &Buffer) -> Result<i64, LowerError> {
    if mem == Mem::Param && b.dtype == DType::I8 {
        return Ok(config.table_entry_bytes().into());
    }
    let bytes = match mem {
        // An entry of param holds a bias, a multiplier and a shift of each channel.
        Mem::Param => config.block_out * 4,
        _ => config.entry_bytes(mem),
    };
    let holds = if matches!(mem, Mem::Acc | Mem::Param) { DType::I32 } else { DType::I8 };
    // A truth value is a byte, 0 or 1.
    if b.dtype != holds && (b.dtype, holds) != (DType::Bool, DType::I8) {
        let remedy = match b.dtype {
            DType::I8 | DType::Bool => "move it to inp, wgt or out",
            DType::I32 => "move it to acc",
            _ => "scratchpads hold i8, bool and i32",
        };
        let reason = format!("its elements are {}, and {} holds {holds}; {remedy}", b.dtype, mem.name());
        return Err(LowerError::Buffer { buffer: b.name.clone(), reason });
    }
    Ok(i64::from(bytes) / holds.size_bytes() as i64)
}

/// Returns the entries of a buffer.
fn entries_of(b: &Buffer, elements: i64) -> u32 {
    u32::try_from(b.len().max(1).unsigned_abs().div_ceil(elements.unsigned_abs())).unwrap_or(u32::MAX >> 8)
}

/// Returns the buffers that take the entries of a buffer.
fn sharing<'f>(f: &'f Function, alias: &HashMap<&'f Name, &'f Name>, root: &Name) -> impl Iterator<Item = &'f Buffer> {
    f.locals.iter().filter(move |b| alias.get(&b.name).is_some_and(|of| *of == root))
}

/// Places all buffers of scratchpads.
///
/// Both buffers of a pair in `needs.apart` are read by one instruction, so they get different banks if possible.
/// `reserved` entries at the end of param stay free. Buffers in `held` keep their places.
///
/// # Errors
/// [`LowerError::Fit`] names the scratchpad with the entries needed and there; [`LowerError::Buffer`] a buffer of
/// another type than its memory holds.
pub fn places(
    config: &HwConfig,
    f: &Function,
    needs: &Needs,
    reserved: u32,
    held: &Held,
) -> Result<NameMap<Place>, LowerError> {
    let Needs { apart, pipelines, .. } = needs;
    let shared = needs.shares.iter().chain(&needs.reuses);
    let alias: HashMap<&Name, &Name> = shared.filter(|(name, _)| !held.places.contains_key(*name)).collect();
    let mut found = held.places.clone();
    for scope in [Scope::Inp, Scope::Wgt, Scope::Acc, Scope::Out, Scope::Param] {
        let Some(mem) = mem(scope) else { continue };
        let mut own: Vec<(&Buffer, Place)> = Vec::new();
        let is_own =
            |b: &&Buffer| b.scope == scope && !alias.contains_key(&b.name) && !held.places.contains_key(&b.name);
        for b in f.locals.iter().filter(is_own) {
            let taps = needs.taps.iter().find(|t| t.buffer == b.name);
            let (elements, each) = match taps {
                Some(t) => (t.count * i64::from(config.block_out), t.entries() as u32),
                None => (elements(config, mem, b)?, 1),
            };
            let entries = entries_of(b, elements).saturating_mul(each);
            let entries = sharing(f, &alias, &b.name).map(|o| entries_of(o, elements)).fold(entries, u32::max);
            let pipeline = pipelines.get(&b.name).cloned();
            let slots = needs.slots.get(&b.name).copied().unwrap_or(1);
            let place = Place {
                mem,
                first: 0,
                entries,
                stride: entries,
                pipeline,
                slots,
                firsts: Vec::new(),
                elements,
                strides: None,
            };
            own.push((b, place));
        }
        let rows = if mem == Mem::Param { PARAM_ROWS } else { 1 };
        let there = config.entries(mem) / rows;
        let there = if mem == Mem::Param { there.saturating_sub(reserved) } else { there };
        let (start, there) = held.room.filter(|_| mem == Mem::Inp).unwrap_or((0, there));
        let sizes: Vec<[u32; 2]> = own.iter().map(|(_, p)| [p.slots, p.entries]).collect();
        let at = |name: &Name| own.iter().position(|(b, _)| b.name == *name);
        let pairs = apart.iter().filter_map(|pair| Some([at(&pair[0])?, at(&pair[1])?])).collect();
        let of_held = |name: &Name| held.places.get(name).filter(|p| p.mem == mem).map(Place::span);
        let both = apart.iter().flat_map(|[a, b]| [(a, b), (b, a)]);
        let fixed = both.filter_map(|(own, other)| Some((at(own)?, of_held(other)?))).collect();
        let banks = if matches!(mem, Mem::Acc | Mem::Out | Mem::Inp) { config.banks(mem) } else { 1 };
        let bank = if banks == 1 { there } else { config.entries(mem) / banks };
        let room = Room { start: start.into(), end: u64::from(start) + u64::from(there), bank: bank.into(), banks };
        let Layout { firsts, strides, needed } = layout(&sizes, &Apart { pairs, fixed }, &room);
        let names: Vec<&Name> = own.iter().map(|(b, _)| &b.name).collect();
        let in_turn = needs
            .stages
            .as_ref()
            .filter(|_| banks > 1)
            .and_then(|stages| turns(&names, &sizes, stages, mem, pipelines, room.halves()));
        if in_turn.is_none() && needed > room.end {
            let list = own.iter().map(|(b, p)| match p.slots {
                1 => format!("{} {}", b.name, p.entries),
                n => format!("{} {} ({n} slots of {})", b.name, n * p.entries, p.entries),
            });
            let buffers = list.collect::<Vec<_>>().join(", ");
            let entries = config.entries(mem) / rows;
            let needed = needed - room.start;
            return Err(LowerError::Fit { mem: mem.name(), entries, taken: entries - there, needed, buffers });
        }
        for (i, (b, place)) in own.into_iter().enumerate() {
            let place = match &in_turn {
                Some(slots) => Place { first: slots[i][0], firsts: slots[i].clone(), ..place },
                None => Place { first: firsts[i] as u32, stride: strides[i], ..place },
            };
            found.insert(b.name.clone(), place);
        }
    }
    for (name, other) in alias {
        if let Some(place) = found.get(other).cloned() {
            found.insert(name.clone(), place);
        }
    }
    Ok(found)
}

/// Places the buffers of a memory so that, in each step of a software pipeline, the array and the vector unit use
/// different banks. The memory is taken as two halves of one or more banks. The slots of a buffer that the pipeline's
/// iterations use in turn are in the halves in turn; what is searched is the half of each buffer's first slot. Returns the
/// first entry of each slot; `None` if there are not enough entries or nothing is in turn.
fn turns(
    names: &[&Name],
    sizes: &[[u32; 2]],
    stages: &Stages,
    mem: Mem,
    pipelines: &NameMap<Name>,
    halves: [Range<u32>; 2],
) -> Option<Vec<Vec<u32>>> {
    let alternates = |i: usize| sizes[i][0].is_multiple_of(2) && pipelines.get(names[i]) == Some(&stages.pipeline);
    let list: Vec<usize> = (0..names.len()).filter(|&i| alternates(i)).collect();
    if list.is_empty() || list.len() > MOST_IN_TURN {
        return None;
    }
    let uses = |unit: Unit| -> Vec<(usize, u32)> {
        let own = stages.calls.iter().filter(|c| c.unit == unit && c.mem == mem);
        own.filter_map(|c| Some((list.iter().position(|&i| *names[i] == c.buffer)?, c.stage))).collect()
    };
    let (products, others) = (uses(Unit::Gemm), uses(Unit::Vector));
    let half_in = |turns: &[u32], (buffer, stage): (usize, u32)| (turns[buffer] + stage) % 2;
    let choices = 1u32 << (list.len() - 1);
    let mut best: Option<(usize, Vec<Vec<u32>>)> = None;
    for choice in 0..choices {
        let turns: Vec<u32> = (0..list.len() as u32).map(|i| choice >> i & 1).collect();
        let meet = |a: &&(usize, u32), b: &&(usize, u32)| half_in(&turns, **a) == half_in(&turns, **b);
        let meetings = products.iter().map(|a| others.iter().filter(|b| meet(&a, b)).count()).sum::<usize>();
        if best.as_ref().is_some_and(|b| b.0 <= meetings) {
            continue;
        }
        let mut next = [halves[0].start, halves[1].start];
        let mut made: Vec<Vec<u32>> = vec![Vec::new(); names.len()];
        for (at, &i) in list.iter().enumerate() {
            for slot in 0..sizes[i][0] {
                let k = ((slot + turns[at]) % 2) as usize;
                made[i].push(next[k]);
                next[k] += sizes[i][1];
            }
        }
        for i in (0..names.len()).filter(|i| !list.contains(i)) {
            for _ in 0..sizes[i][0] {
                let most = (0..2usize).max_by_key(|&k| (halves[k].end.saturating_sub(next[k]), 1 - k)).unwrap_or(0);
                made[i].push(next[most]);
                next[most] += sizes[i][1];
            }
        }
        let fits = next.iter().zip(&halves).all(|(next, half)| *next <= half.end);
        if fits {
            best = Some((meetings, made));
        }
    }
    best.map(|b| b.1)
}

impl Place {
    /// Returns the first entry of the slot of an iteration, counted from 0.
    pub fn slot(&self, iteration: u64) -> u32 {
        let slot = (iteration % u64::from(self.slots)) as u32;
        self.firsts.get(slot as usize).copied().unwrap_or(self.first + slot * self.stride)
    }

    /// Returns the entries from the first to the one after the last.
    pub fn span(&self) -> Range<u64> {
        let first = u64::from(self.first);
        let last = first + u64::from(self.stride) * u64::from(self.slots - 1);
        let entries = self.firsts.iter().map(|&entry| u64::from(entry));
        entries.clone().min().unwrap_or(first)..entries.max().unwrap_or(last) + u64::from(self.entries)
    }
}

/// The part of a memory in which buffers are placed.
struct Room {
    start: u64,
    end: u64,
    /// Entries of a bank.
    bank: u64,
    banks: u32,
}

impl Room {
    /// The parts of it in both halves of the memory's banks.
    fn halves(&self) -> [Range<u32>; 2] {
        let middle = self.bank * u64::from(self.banks) / 2;
        let [start, end, middle] = [self.start, self.end, middle].map(|n| n as u32);
        [start.min(middle)..end.min(middle), start.max(middle)..end.max(middle)]
    }
}

/// Buffers, by their number, that should be in different banks.
struct Apart {
    pairs: Vec<[usize; 2]>,
    /// Buffers with entries that something else has.
    fixed: Vec<(usize, Range<u64>)>,
}

/// Entries of buffers in one memory.
struct Layout {
    /// First entry of each buffer.
    firsts: Vec<u64>,
    /// Entries from slot to slot of each buffer.
    strides: Vec<u32>,
    /// Entries up to the end of the last buffer.
    needed: u64,
}

/// Places buffers of given numbers of slots and entries.
///
/// Two units cannot use a port of a bank at the same time. So each slot begins at a new bank if all fit so, else each
/// buffer; else only the pairs in `apart` are in different banks. If not even that fits, the buffers are one after the
/// other.
fn layout(sizes: &[[u32; 2]], apart: &Apart, room: &Room) -> Layout {
    let Room { start, end, bank, banks } = *room;
    // Slots begin at a multiple of `slot` entries, buffers at one of `buffer`.
    let aligned = |slot: u64, buffer: u64| {
        let mut made = Layout { firsts: Vec::new(), strides: Vec::new(), needed: start };
        for &[slots, entries] in sizes {
            let stride = u64::from(entries).next_multiple_of(slot) as u32;
            let first = made.needed.next_multiple_of(buffer);
            made.needed = first + u64::from(stride) * u64::from(slots - 1) + u64::from(entries);
            made.firsts.push(first);
            made.strides.push(stride);
        }
        made
    };
    let banks_of = |made: &Layout, i: usize| {
        let [slots, entries] = sizes[i];
        let end = made.firsts[i] + u64::from(made.strides[i]) * u64::from(slots - 1) + u64::from(entries);
        made.firsts[i] / bank..end.div_ceil(bank)
    };
    let good = |made: &Layout| {
        let separate = |a: Range<u64>, b: Range<u64>| a.end <= b.start || b.end <= a.start;
        let in_banks = |span: &Range<u64>| span.start / bank..span.end.div_ceil(bank);
        made.needed <= end
            && apart.pairs.iter().all(|&[a, b]| separate(banks_of(made, a), banks_of(made, b)))
            && apart.fixed.iter().all(|(a, other)| separate(banks_of(made, *a), in_banks(other)))
    };
    let packed = aligned(1, 1);
    if banks == 1 || sizes.is_empty() {
        return packed;
    }
    // Each buffer in the first bank with room and without one that it must be apart from.
    let bounds = |k: usize| (k as u64 * bank).max(start)..((k as u64 + 1) * bank).min(end);
    let mut next: Vec<u64> = (0..banks as usize).map(|k| bounds(k).start).collect();
    let mut chosen: Vec<usize> = Vec::new();
    let mut sorted = Layout { firsts: Vec::new(), strides: packed.strides.clone(), needed: start };
    for (i, &[slots, entries]) in sizes.iter().enumerate() {
        let length = u64::from(slots) * u64::from(entries);
        let free = |k: usize| {
            let foe =
                |&[a, b]: &[usize; 2]| (a == i && chosen.get(b) == Some(&k)) || (b == i && chosen.get(a) == Some(&k));
            let own = k as u64 * bank..(k as u64 + 1) * bank;
            let fixed = |(a, at): &(usize, Range<u64>)| *a == i && at.start < own.end && own.start < at.end;
            next[k] + length <= bounds(k).end && !apart.pairs.iter().any(foe) && !apart.fixed.iter().any(fixed)
        };
        let Some(k) = (0..banks as usize).find(|&k| free(k)) else {
            sorted.needed = u64::MAX;
            break;
        };
        sorted.firsts.push(next[k]);
        next[k] += length;
        sorted.needed = sorted.needed.max(next[k]);
        chosen.push(k);
    }
    let sorted = (sorted.needed != u64::MAX).then_some(sorted);
    let tried = [Some(aligned(bank, bank)), Some(aligned(1, bank)), sorted];
    tried.into_iter().flatten().find(good).unwrap_or(packed)
}

/// How much of a scratchpad a program uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryUse {
    /// The scratchpad.
    pub mem: Mem,
    /// Entries of its buffers, all slots counted, and of descriptors.
    pub used: u32,
    /// Entries that it has.
    pub entries: u32,
}

/// Returns how much of each scratchpad is used, if any. Descriptors take `reserved` entries of param.
pub fn footprint(config: &HwConfig, f: &Function, places: &NameMap<Place>, reserved: u32) -> Vec<MemoryUse> {
    let mems = [Mem::Inp, Mem::Wgt, Mem::Acc, Mem::Out, Mem::Param];
    let used = |mem: Mem| {
        let mut firsts: Vec<u32> = Vec::new();
        let mut entries = if mem == Mem::Param { reserved } else { 0 };
        for p in f.locals.iter().filter_map(|b| places.get(&b.name)).filter(|p| p.mem == mem) {
            // Buffers that share entries are counted once.
            let first = p.first;
            if !firsts.contains(&first) {
                firsts.push(first);
                entries += p.slots * p.entries;
            }
        }
        entries
    };
    let there = |mem: Mem| config.entries(mem) / if mem == Mem::Param { PARAM_ROWS } else { 1 };
    let uses = mems.into_iter().map(|mem| MemoryUse { mem, used: used(mem), entries: there(mem) });
    uses.filter(|m| m.used > 0).collect()
}

/// Returns whether a statement is a nest around one block, with its loops.
pub fn leaf(s: &Stmt) -> Option<(Vec<&crate::tir::For>, &crate::tir::Block)> {
    let (loops, inside) = match s {
        Stmt::For(l) => chain(l),
        inside => (Vec::new(), inside),
    };
    match inside {
        Stmt::Block(b) => Some((loops, b)),
        Stmt::Seq(_) | Stmt::For(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_get_banks_of_their_own_if_they_fit() {
        let room = |start, end| Room { start, end, bank: 25, banks: 4 };
        let pairs = |pairs: &[[usize; 2]]| Apart { pairs: pairs.to_vec(), fixed: Vec::new() };
        let firsts = |sizes: &[[u32; 2]], apart: &[[usize; 2]]| layout(sizes, &pairs(apart), &room(0, 100)).firsts;
        // Each slot in a bank of 25 entries, then each buffer, then only pairs, then one after the other.
        assert_eq!(firsts(&[[2, 10], [2, 20]], &[]), [0, 50]);
        assert_eq!(firsts(&[[2, 10], [1, 20], [2, 5]], &[]), [0, 25, 50]);
        assert_eq!(firsts(&[[1, 5]; 5], &[[0, 1], [1, 2]]), [0, 25, 5, 10, 15]);
        assert_eq!(firsts(&[[1, 30], [1, 30], [1, 40]], &[]), [0, 30, 60]);
        assert_eq!(layout(&[[2, 60]], &pairs(&[]), &room(0, 100)).needed, 120);
        // In a part of the memory, and apart from entries that something else has.
        assert_eq!(layout(&[[1, 10], [2, 20]], &pairs(&[]), &room(30, 90)).firsts, [30, 40]);
        let apart = Apart { pairs: Vec::new(), fixed: vec![(0, 30..50)] };
        assert_eq!(layout(&[[1, 10], [1, 5]], &apart, &room(50, 100)).firsts, [50, 75]);
        assert_eq!(layout(&[[1, 10], [1, 25], [1, 15]], &apart, &room(30, 100)).firsts, [50, 75, 30]);
    }
}
