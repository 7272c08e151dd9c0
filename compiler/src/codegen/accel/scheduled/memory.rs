//! Where the buffers of a scheduled program are: entries of scratchpads, and bytes of device memory.

use std::collections::HashMap;

use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::{PARAM_ROWS, Unit};

use super::error::LowerError;
use super::needs::Needs;
use super::stages::Stages;
use crate::schedule::chain;
use crate::te::{DType, Name};
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
    /// Entries from the first entry to each slot.
    pub offsets: Vec<u32>,
    /// The pipeline loop whose iterations use the slots in turn.
    pub pipeline: Option<Name>,
    /// Elements of an entry; for taps, those of a block, which can have several entries.
    pub elements: i64,
}

impl Place {
    /// Number of slots.
    pub fn slots(&self) -> u32 {
        self.offsets.len() as u32
    }

    /// The entry behind all slots.
    pub fn end(&self) -> u32 {
        self.first + self.offsets.iter().max().copied().unwrap_or(0) + self.entries
    }
}

/// Returns the memory of a scope.
pub fn mem(scope: Scope) -> Option<Mem> {
    match scope {
        Scope::Inp => Some(Mem::Inp),
        Scope::Wgt => Some(Mem::Wgt),
        Scope::Acc => Some(Mem::Acc),
        Scope::Out => Some(Mem::Out),
        Scope::Param => Some(Mem::Param),
        Scope::Global | Scope::Local | Scope::Shared => None,
    }
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
    if b.dtype != holds {
        let reason = format!("its elements are {}, and {} holds {holds}", b.dtype, mem.name());
        return Err(LowerError::Buffer { buffer: b.name.clone(), reason });
    }
    Ok(i64::from(bytes) / holds.size_bytes() as i64)
}

/// Places all buffers of scratchpads.
///
/// Both buffers of a pair in `needs.apart` are read by one instruction, so they get different banks if possible.
/// `reserved` entries at the end of param stay free.
///
/// # Errors
/// [`LowerError::Fit`] names the scratchpad with the entries needed and there; [`LowerError::Buffer`] a buffer of
/// another type than its memory holds.
pub fn places(
    config: &HwConfig,
    f: &Function,
    needs: &Needs,
    reserved: u32,
) -> Result<HashMap<Name, Place>, LowerError> {
    let Needs { apart, pipelines, .. } = needs;
    let alias: HashMap<&Name, &Name> = needs.shares.iter().chain(&needs.reuses).collect();
    let mut found: HashMap<Name, Place> = HashMap::new();
    for scope in [Scope::Inp, Scope::Wgt, Scope::Acc, Scope::Out, Scope::Param] {
        let Some(mem) = mem(scope) else { continue };
        let mut own: Vec<(&Buffer, Place)> = Vec::new();
        for b in f.locals.iter().filter(|b| b.scope == scope && !alias.contains_key(&b.name)) {
            let taps = needs.taps.iter().find(|t| t.buffer == b.name);
            let (elements, each) = match taps {
                Some(t) => (t.count * i64::from(config.block_out), t.entries().unsigned_abs()),
                None => (elements(config, mem, b)?, 1),
            };
            let entries = b.len().max(1).unsigned_abs().div_ceil(elements.unsigned_abs()) * each;
            let entries = u32::try_from(entries).unwrap_or(u32::MAX >> 8);
            let pipeline = pipelines.get(&b.name).cloned();
            let slots = needs.slots.get(&b.name).copied().unwrap_or(1);
            own.push((b, Place { mem, first: 0, entries, offsets: vec![0; slots as usize], pipeline, elements }));
        }
        let rows = if mem == Mem::Param { PARAM_ROWS } else { 1 };
        let there = config.entries(mem) / rows;
        let there = if mem == Mem::Param { there.saturating_sub(reserved) } else { there };
        let sizes: Vec<[u32; 2]> = own.iter().map(|(_, p)| [p.slots(), p.entries]).collect();
        let apart: Vec<[usize; 2]> = (apart.iter())
            .filter_map(|pair| {
                let at = |name: &Name| own.iter().position(|(b, _)| b.name == *name);
                Some([at(&pair[0])?, at(&pair[1])?])
            })
            .collect();
        let banks = if matches!(mem, Mem::Acc | Mem::Out | Mem::Inp) { config.banks(mem) } else { 1 };
        let names: Vec<&Name> = own.iter().map(|(b, _)| &b.name).collect();
        let in_turn = needs
            .stages
            .as_ref()
            .filter(|_| banks > 1)
            .and_then(|stages| turns(&names, &sizes, stages, mem, pipelines, there / 2));
        let Layout { firsts, strides, needed } = layout(&sizes, &apart, there, banks);
        if in_turn.is_none() && needed > u64::from(there) {
            let list = own.iter().map(|(b, p)| match p.slots() {
                1 => format!("{} {}", b.name, p.entries),
                n => format!("{} {} ({n} slots of {})", b.name, n * p.entries, p.entries),
            });
            let buffers = list.collect::<Vec<_>>().join(", ");
            return Err(LowerError::Fit { mem: mem.name(), entries: there, needed, buffers });
        }
        for (i, (b, place)) in own.into_iter().enumerate() {
            let (first, offsets) = match &in_turn {
                Some(slots) => (0, slots[i].clone()),
                None => (firsts[i] as u32, (0..place.slots()).map(|k| k * strides[i]).collect()),
            };
            found.insert(b.name.clone(), Place { first, offsets, ..place });
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
    pipelines: &HashMap<Name, Name>,
    half: u32,
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
        let mut filled = [0; 2];
        let mut made: Vec<Vec<u32>> = vec![Vec::new(); names.len()];
        for (at, &i) in list.iter().enumerate() {
            for slot in 0..sizes[i][0] {
                let k = (slot + turns[at]) % 2;
                made[i].push(k * half + filled[k as usize]);
                filled[k as usize] += sizes[i][1];
            }
        }
        let mut fits = true;
        for i in (0..names.len()).filter(|i| !list.contains(i)) {
            for _ in 0..sizes[i][0] {
                let least = (0..2usize).min_by_key(|&k| filled[k]).unwrap_or(0);
                made[i].push(least as u32 * half + filled[least]);
                filled[least] += sizes[i][1];
            }
        }
        fits &= filled.iter().all(|&n| n <= half);
        if fits {
            best = Some((meetings, made));
        }
    }
    best.map(|b| b.1)
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
fn layout(sizes: &[[u32; 2]], apart: &[[usize; 2]], there: u32, banks: u32) -> Layout {
    let bank = there / banks;
    // Slots begin at a multiple of `slot` entries, buffers at one of `buffer`.
    let aligned = |slot: u32, buffer: u32| {
        let mut made = Layout { firsts: Vec::new(), strides: Vec::new(), needed: 0 };
        for &[slots, entries] in sizes {
            let stride = entries.next_multiple_of(slot);
            let first = made.needed.next_multiple_of(u64::from(buffer));
            made.needed = first + u64::from(stride) * u64::from(slots - 1) + u64::from(entries);
            made.firsts.push(first);
            made.strides.push(stride);
        }
        made
    };
    let banks_of = |made: &Layout, i: usize| {
        let [slots, entries] = sizes[i];
        let end = made.firsts[i] + u64::from(made.strides[i]) * u64::from(slots - 1) + u64::from(entries);
        made.firsts[i] / u64::from(bank)..end.div_ceil(u64::from(bank))
    };
    let good = |made: &Layout| {
        let separate = |&[a, b]: &[usize; 2]| {
            let (a, b) = (banks_of(made, a), banks_of(made, b));
            a.end <= b.start || b.end <= a.start
        };
        made.needed <= u64::from(there) && apart.iter().all(separate)
    };
    let packed = aligned(1, 1);
    if banks == 1 || sizes.is_empty() {
        return packed;
    }
    // Each buffer in the first bank with room and without one that it must be apart from.
    let mut filled = vec![0u64; banks as usize];
    let mut chosen: Vec<usize> = Vec::new();
    let mut sorted = Layout { firsts: Vec::new(), strides: packed.strides.clone(), needed: 0 };
    for (i, &[slots, entries]) in sizes.iter().enumerate() {
        let length = u64::from(slots) * u64::from(entries);
        let free = |k: usize| {
            let foe =
                |&[a, b]: &[usize; 2]| (a == i && chosen.get(b) == Some(&k)) || (b == i && chosen.get(a) == Some(&k));
            filled[k] + length <= u64::from(bank) && !apart.iter().any(foe)
        };
        let Some(k) = (0..banks as usize).find(|&k| free(k)) else {
            sorted.needed = u64::MAX;
            break;
        };
        sorted.firsts.push(k as u64 * u64::from(bank) + filled[k]);
        filled[k] += length;
        sorted.needed = sorted.needed.max(k as u64 * u64::from(bank) + filled[k]);
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
pub fn footprint(config: &HwConfig, f: &Function, places: &HashMap<Name, Place>, reserved: u32) -> Vec<MemoryUse> {
    let mems = [Mem::Inp, Mem::Wgt, Mem::Acc, Mem::Out, Mem::Param];
    let used = |mem: Mem| {
        let mut firsts: Vec<u32> = Vec::new();
        let mut entries = if mem == Mem::Param { reserved } else { 0 };
        for p in f.locals.iter().filter_map(|b| places.get(&b.name)).filter(|p| p.mem == mem) {
            // Buffers that share entries are counted once.
            let first = p.first + p.offsets[0];
            if !firsts.contains(&first) {
                firsts.push(first);
                entries += p.slots() * p.entries;
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
        let firsts = |sizes: &[[u32; 2]], apart: &[[usize; 2]]| layout(sizes, apart, 100, 4).firsts;
        // Each slot in a bank of 25 entries, then each buffer, then only pairs, then one after the other.
        assert_eq!(firsts(&[[2, 10], [2, 20]], &[]), [0, 50]);
        assert_eq!(firsts(&[[2, 10], [1, 20], [2, 5]], &[]), [0, 25, 50]);
        assert_eq!(firsts(&[[1, 5]; 5], &[[0, 1], [1, 2]]), [0, 25, 5, 10, 15]);
        assert_eq!(firsts(&[[1, 30], [1, 30], [1, 40]], &[]), [0, 30, 60]);
        assert_eq!(layout(&[[2, 60]], &[], 100, 4).needed, 120);
    }
}
