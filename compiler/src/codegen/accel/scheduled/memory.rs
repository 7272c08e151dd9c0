//! Where the buffers of a scheduled program are: entries of scratchpads, and bytes of device memory.

use std::collections::HashMap;

use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::PARAM_ROWS;

use super::error::LowerError;
use crate::te::{Expr, Name};
use crate::tir::{Action, Buffer, Function, LoopKind, Scope, Stmt};

/// Slots of a buffer whose loop is a pipeline: one is filled while the other is in use.
const SLOTS: u32 = 2;

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
    /// Elements of an entry.
    pub elements: i64,
}

impl Place {
    /// Returns the number of slots.
    pub fn slots(&self) -> u32 {
        if self.pipeline.is_some() { SLOTS } else { 1 }
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
    let bytes = match mem {
        // An entry of param holds a bias, a multiplier and a shift of each channel.
        Mem::Param => config.block_out * 4,
        _ => config.entry_bytes(mem),
    };
    let expected = if matches!(mem, Mem::Acc | Mem::Param) { 4 } else { 1 };
    if b.dtype.size_bytes() != expected || b.dtype == crate::te::DType::F32 {
        let holds = if expected == 4 { "i32" } else { "i8" };
        let reason = format!("its elements are {}, and {} holds {holds}", b.dtype, mem.name());
        return Err(LowerError::Buffer { buffer: b.name.clone(), reason });
    }
    Ok(i64::from(bytes) / expected as i64)
}

/// Returns the innermost pipeline loop that encloses all uses of each buffer.
fn pipelines(f: &Function) -> HashMap<Name, Name> {
    let mut loops: HashMap<Name, Vec<Name>> = HashMap::new();
    f.body.visit_blocks(&mut |around, block| {
        let around: Vec<Name> = around.iter().filter(|l| l.kind == LoopKind::Pipeline).map(|l| l.var.clone()).collect();
        let mut used = |buffer: &Name| {
            let known = loops.entry(buffer.clone()).or_insert_with(|| around.clone());
            let common = known.iter().zip(&around).take_while(|(a, b)| a == b).count();
            known.truncate(common);
        };
        match &block.action {
            Action::Store { buffer, .. } => used(buffer),
            Action::Call { args, .. } => args.iter().for_each(|view| used(&view.buffer)),
        }
        block.each_expr(&mut |e| {
            e.visit(&mut |e| {
                if let Expr::Load { buffer, .. } = e {
                    used(buffer);
                }
            });
        });
    });
    loops.into_iter().filter_map(|(buffer, mut loops)| Some((buffer, loops.pop()?))).collect()
}

/// Places all buffers of scratchpads. Buffers of `alias` share the entries of another.
///
/// In acc and out each slot of a buffer begins at a new bank if all fit so, else each buffer, because two units cannot use
/// a port of a bank at the same time. `reserved` entries at the end of param stay free.
///
/// # Errors
/// [`LowerError::Fit`] names the scratchpad with the entries needed and there; [`LowerError::Buffer`] a buffer of
/// another type than its memory holds.
pub fn places(
    config: &HwConfig,
    f: &Function,
    alias: &HashMap<Name, Name>,
    reserved: u32,
) -> Result<HashMap<Name, Place>, LowerError> {
    let pipelines = pipelines(f);
    let mut found: HashMap<Name, Place> = HashMap::new();
    for scope in [Scope::Inp, Scope::Wgt, Scope::Acc, Scope::Out, Scope::Param] {
        let Some(mem) = mem(scope) else { continue };
        let mut own: Vec<(&Buffer, Place)> = Vec::new();
        for b in f.locals.iter().filter(|b| b.scope == scope && !alias.contains_key(&b.name)) {
            let elements = elements(config, mem, b)?;
            let entries = b.len().max(1).unsigned_abs().div_ceil(elements.unsigned_abs());
            let entries = u32::try_from(entries).unwrap_or(u32::MAX / (4 * SLOTS));
            let pipeline = pipelines.get(&b.name).cloned();
            own.push((b, Place { mem, first: 0, entries, stride: entries, pipeline, elements }));
        }
        let rows = if mem == Mem::Param { PARAM_ROWS } else { 1 };
        let there = config.entries(mem) / rows;
        let there = if mem == Mem::Param { there.saturating_sub(reserved) } else { there };
        let bank = config.entries(mem) / config.banks(mem);
        // Slots begin at a multiple of `slot` entries, buffers at one of `buffer`.
        let fits = |slot: u32, buffer: u32| {
            let mut next = 0u64;
            let mut firsts = Vec::new();
            for (_, place) in &own {
                next = next.next_multiple_of(u64::from(buffer));
                firsts.push(next);
                let stride = u64::from(place.entries.next_multiple_of(slot));
                next += stride * u64::from(place.slots() - 1) + u64::from(place.entries);
            }
            (next, firsts)
        };
        let spread =
            if matches!(mem, Mem::Acc | Mem::Out) { &[(bank, bank), (1, bank), (1, 1)][..] } else { &[(1, 1)] };
        let (slot, buffer) = spread.iter().copied().find(|&(s, b)| fits(s, b).0 <= u64::from(there)).unwrap_or((1, 1));
        let (needed, firsts) = fits(slot, buffer);
        if needed > u64::from(there) {
            let list = own.iter().map(|(b, p)| match p.slots() {
                1 => format!("{} {}", b.name, p.entries),
                n => format!("{} {} ({n} slots of {})", b.name, n * p.entries, p.entries),
            });
            let buffers = list.collect::<Vec<_>>().join(", ");
            return Err(LowerError::Fit { mem: mem.name(), entries: there, needed, buffers });
        }
        for ((b, mut place), first) in own.into_iter().zip(firsts) {
            place.first = first as u32;
            place.stride = place.entries.next_multiple_of(slot);
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

/// Returns each scratchpad with the entries that its buffers use, all slots counted, and those that there are.
pub fn footprint(config: &HwConfig, f: &Function, places: &HashMap<Name, Place>) -> Vec<(Mem, u32, u32)> {
    let mems = [Mem::Inp, Mem::Wgt, Mem::Acc, Mem::Out, Mem::Param];
    let used = |mem: Mem| {
        let mut firsts = Vec::new();
        let mut entries = 0;
        for p in f.locals.iter().filter_map(|b| places.get(&b.name)).filter(|p| p.mem == mem) {
            // Biases, multipliers and shifts share entries.
            if !firsts.contains(&p.first) {
                firsts.push(p.first);
                entries += p.slots() * p.entries;
            }
        }
        entries
    };
    let there = |mem: Mem| config.entries(mem) / if mem == Mem::Param { PARAM_ROWS } else { 1 };
    mems.into_iter().map(|mem| (mem, used(mem), there(mem))).filter(|m| m.1 > 0).collect()
}

/// Returns whether a statement is a nest around one block, with its loops.
pub fn leaf(s: &Stmt) -> Option<(Vec<&crate::tir::For>, &crate::tir::Block)> {
    let (mut loops, mut at) = (Vec::new(), s);
    loop {
        match at {
            Stmt::For(l) => {
                loops.push(l);
                at = &l.body;
            }
            Stmt::Block(b) => return Some((loops, b)),
            Stmt::Seq(_) => return None,
        }
    }
}
