//! Decides which results stay in inp between layers, where in inp they are, and which part of inp is left for loads.

use super::place::{Placed, PlacedLayer};
use crate::codegen::accel::{InpUse, Kept, Layer, OnChip, Planned, WindowBorder};
use crate::graph::ValueId;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use tilewright_hw::HwConfig;
use tilewright_hw::config::Mem;

/// Changed layers: index among the region's layers, the layer with its tensors in inp, and its new plan.
type Change = Vec<(usize, Layer, Planned)>;

/// A kept value, the depth of its region, and the indices of the layers from its writer to its last reader.
type Lying = (ValueId, usize, Range<usize>);

/// Estimated cycles, first entry and number of entries of the part of inp for loads, and the plan.
type KeepChoice = (u64, Option<(u32, u32)>, Planned);

/// Values that must not stay on the chip, each with the reason.
pub(super) type Away = HashMap<ValueId, String>;

/// Keeps the results that fit, except those in `away`. `leaves` says which values leave the region of a depth.
pub(super) fn keep(config: &HwConfig, placed: &mut Placed, leaves: &dyn Fn(ValueId, usize) -> bool, away: &Away) {
    if config.batch != 1 || !config.block_is_row() {
        return;
    }
    let roots = placed.roots.clone();
    let root = |v: ValueId| roots.get(&v).copied().unwrap_or(v);
    // For each value its aliases.
    let mut others: HashMap<ValueId, Vec<ValueId>> = HashMap::new();
    roots.iter().for_each(|(&other, &of)| others.entry(of).or_default().push(other));
    for (depth, group) in placed.by_depth() {
        let leaves = |v: ValueId| {
            let mut all = others.get(&v).into_iter().flatten();
            leaves(v, depth) || all.any(|&other| leaves(other, depth))
        };
        let layers: Vec<_> =
            group.iter().map(|&i| (placed.layers[i].layer.clone(), placed.layers[i].planned.clone())).collect();
        let users = users(&layers, &root);
        let mut region = RegionLayers { config, layers, users, root: &root, away, held: Vec::new() };
        region.keep(&leaves);
        for (&i, (layer, planned)) in group.iter().zip(region.layers) {
            if layer.on_chip == placed.layers[i].layer.on_chip {
                continue;
            }
            for node in &layer.nodes {
                if let Some(at) = placed.nodes.get_mut(node) {
                    at.why = planned.describe(&layer);
                }
            }
            (placed.layers[i].layer, placed.layers[i].planned) = (layer, planned);
        }
    }
    for l in &placed.layers {
        let Some(reason) = away.get(&l.layer.output.0) else { continue };
        for node in &l.layer.nodes {
            if let Some(at) = placed.nodes.get_mut(node) {
                at.why += &format!("; its results do not stay on the chip: {reason}");
            }
        }
    }
}

/// Returns the kept values that can be the reason why a program is rejected at the layer of this name.
///
/// These are the values in inp while the layer runs; if there are none, all kept values of its program; if there is no
/// such layer, all kept values.
pub(super) fn suspects(placed: &Placed, name: &str) -> Vec<ValueId> {
    let root = |v: ValueId| placed.roots.get(&v).copied().unwrap_or(v);
    let kept = |(at, l): (usize, &PlacedLayer)| {
        l.layer.on_chip.output?;
        let value = l.layer.output.0;
        let reads = |i: &usize| {
            let other = &placed.layers[*i];
            other.depth == l.depth && other.layer.on_chip.input.is_some() && root(other.layer.inputs[0].0) == value
        };
        let last = (at..placed.layers.len()).rev().find(reads).unwrap_or(at);
        Some((value, l.depth, at..last + 1))
    };
    let all: Vec<Lying> = placed.layers.iter().enumerate().filter_map(kept).collect();
    let at = placed.layers.iter().position(|l| l.layer.name == name);
    let depth = at.map(|at| placed.layers[at].depth);
    let those =
        |wanted: &dyn Fn(&Lying) -> bool| -> Vec<ValueId> { all.iter().filter(|k| wanted(k)).map(|k| k.0).collect() };
    let near = [
        those(&|(_, of, life)| depth == Some(*of) && at.is_some_and(|at| life.contains(&at))),
        those(&|(_, of, _)| depth == Some(*of)),
        those(&|_| true),
    ];
    near.into_iter().find(|values| !values.is_empty()).unwrap_or_default()
}

/// The layers of a program.
struct RegionLayers<'a> {
    config: &'a HwConfig,
    layers: Vec<(Layer, Planned)>,
    /// For each layer, the layers that read its output, in order.
    users: Vec<Vec<usize>>,
    root: &'a dyn Fn(ValueId) -> ValueId,
    away: &'a Away,
    held: Vec<Held>,
}

/// An output that can be kept, with the cycles that it saves and the layers that change.
#[derive(Clone)]
struct Candidate {
    saved: u64,
    held: Held,
    change: Change,
}

/// A kept tensor: its entries, and the layers from its writer to its last reader.
#[derive(Clone)]
struct Held {
    entries: Range<u32>,
    life: Range<usize>,
}

/// Returns for each layer the later layers that read its output.
fn users(layers: &[(Layer, Planned)], root: &dyn Fn(ValueId) -> ValueId) -> Vec<Vec<usize>> {
    let made: HashMap<ValueId, usize> = layers.iter().enumerate().map(|(i, (l, _))| (l.output.0, i)).collect();
    let mut users = vec![Vec::new(); layers.len()];
    for (i, (layer, _)) in layers.iter().enumerate() {
        let makers: BTreeSet<usize> = layer.inputs.iter().filter_map(|(v, _)| made.get(&root(*v)).copied()).collect();
        makers.into_iter().filter(|&maker| maker < i).for_each(|maker| users[maker].push(i));
    }
    users
}

impl RegionLayers<'_> {
    /// Keeps outputs as long as that takes no more time, always the one that saves most next.
    fn keep(&mut self, leaves: &dyn Fn(ValueId) -> bool) {
        let leaves: Vec<bool> = self.layers.iter().map(|(layer, _)| leaves(layer.output.0)).collect();
        // A candidate stays valid until a layer in the lifetime of its output changes.
        let mut found: Vec<Option<Option<Candidate>>> = self.layers.iter().map(|_| None).collect();
        loop {
            for (at, &leaves) in leaves.iter().enumerate() {
                if found[at].is_none() {
                    found[at] = Some(self.candidate(at, leaves));
                }
            }
            let best = found.iter().flatten().flatten().max_by_key(|f| (f.saved, std::cmp::Reverse(f.held.life.start)));
            let Some(Candidate { held, change, .. }) = best.cloned() else { return };
            for (at, found) in found.iter_mut().enumerate() {
                let last = self.users[at].last().copied().unwrap_or(at);
                if at < held.life.end && held.life.start <= last {
                    *found = None;
                }
            }
            for (i, layer, planned) in change {
                self.layers[i] = (layer, planned);
            }
            self.held.push(held);
        }
    }

    /// Returns the change that keeps a layer's output for as many readers as possible.
    fn candidate(&self, at: usize, leaves: bool) -> Option<Candidate> {
        let layer = &self.layers[at].0;
        let writes = self.border(at).is_some() && layer.output.1.n == 1;
        if !writes || layer.on_chip.output.is_some() || self.away.contains_key(&layer.output.0) {
            return None;
        }
        let users = &self.users[at];
        let readers: Vec<usize> = users.iter().copied().filter(|&i| self.can_read(i, layer.output.0)).collect();
        let of = |count: usize| self.kept(at, &readers[..count], leaves || count < users.len());
        (1..=readers.len()).rev().find_map(of)
    }

    /// Returns the padding around the first input of a layer, if the layer can read it from inp and write its output
    /// there.
    fn border(&self, at: usize) -> Option<WindowBorder> {
        let (layer, planned) = &self.layers[at];
        match planned.operator().inp_use(layer) {
            InpUse::Kept(border) => Some(border),
            InpUse::None | InpUse::All => None,
        }
    }

    /// Whether a layer can read a value from inp.
    fn can_read(&self, at: usize, value: ValueId) -> bool {
        let layer = &self.layers[at].0;
        let reads = |(v, _): &(ValueId, _)| (self.root)(*v) == value;
        let once = layer.inputs.iter().filter(|i| reads(i)).count() == 1 && reads(&layer.inputs[0]);
        once && self.border(at).is_some()
    }

    /// Returns the change that keeps a layer's output for these readers; `None` if it does not fit or takes more time.
    fn kept(&self, at: usize, readers: &[usize], stored: bool) -> Option<Candidate> {
        let (value, view) = self.layers[at].0.output;
        let mut kept = Kept {
            entry: 0,
            blocks: view.c.div_ceil(self.config.block() as usize) as u32,
            image: [view.h as u32, view.w as u32],
            border: [0; 4],
            pad_value: 0,
        };
        for &reader in readers {
            let layer = &self.layers[reader].0;
            if layer.inputs[0].1 != view {
                return None;
            }
            let border = self.border(reader)?;
            if border.sizes == [0; 4] {
                continue;
            }
            if kept.border != [0; 4] && kept.pad_value != border.value {
                return None;
            }
            kept.border = std::array::from_fn(|i| kept.border[i].max(border.sizes[i]));
            kept.pad_value = border.value;
        }
        let (all, size) = (self.config.entries(Mem::Inp), kept.entries());
        let life = at..*readers.last()? + 1;
        let meanwhile: Vec<&Range<u32>> = self
            .held
            .iter()
            .filter(|h| h.life.start < life.end && life.start < h.life.end)
            .map(|h| &h.entries)
            .collect();
        let mut starts: Vec<u32> = vec![0];
        starts.extend(all.checked_sub(size));
        // With half of its blocks in each of two banks, the array can read one while the vector unit reads the other.
        let (bank, half) = (all / self.config.banks(Mem::Inp), size / kept.blocks * (kept.blocks / 2));
        starts.extend((1..self.config.banks(Mem::Inp)).filter_map(|at| (at * bank).checked_sub(half)));
        starts.extend(meanwhile.iter().map(|e| e.end));
        starts.extend(meanwhile.iter().filter_map(|e| e.start.checked_sub(size)));
        let free =
            |start: u32| start + size <= all && meanwhile.iter().all(|e| e.end <= start || start + size <= e.start);
        let of_layer = |i: usize| self.layers[i].1.cycles(&self.layers[i].0, self.config);
        let before: u64 = life.clone().map(of_layer).sum();
        let of = |start: u32| {
            let held = Held { entries: start..start + size, life: life.clone() };
            let (cycles, change) = self.changed(value, &held, Kept { entry: start, ..kept }, readers, stored)?;
            Some(Candidate { saved: before.checked_sub(cycles)?, held, change })
        };
        let places = starts.into_iter().filter(|&start| free(start)).filter_map(of);
        places.reduce(|best, other| if other.saved > best.saved { other } else { best })
    }

    /// Returns the layers in a tensor's lifetime, changed to have it in inp, and the sum of their cycles.
    fn changed(
        &self,
        value: ValueId,
        held: &Held,
        kept: Kept,
        readers: &[usize],
        stored: bool,
    ) -> Option<(u64, Change)> {
        let (mut sum, mut change) = (0, Vec::new());
        for i in held.life.clone() {
            let mut layer = self.layers[i].0.clone();
            if layer.output.0 == value {
                layer.on_chip = OnChip { output: Some(kept), stored, ..layer.on_chip };
            }
            if readers.contains(&i) {
                layer.on_chip.input = Some(kept);
            }
            let operator = self.layers[i].1.operator();
            let planned = match operator.inp_use(&layer) {
                InpUse::Kept(_) => {
                    let rooms =
                        self.rooms(i, &held.entries, layer.on_chip.output.map(|k| k.entry..k.entry + k.entries()));
                    let mut plans: Vec<KeepChoice> = Vec::new();
                    for room in rooms {
                        layer.on_chip.room = Some(room);
                        let found = operator.plan(&layer, self.config, true).ok();
                        plans.extend(found.map(|planned| (planned.cycles(&layer, self.config), Some(room), planned)));
                    }
                    let (_, room, planned) = plans.into_iter().min_by_key(|(cycles, ..)| *cycles)?;
                    layer.on_chip.room = room;
                    planned
                }
                InpUse::None => self.layers[i].1.clone(),
                InpUse::All => return None,
            };
            sum += planned.cycles(&layer, self.config);
            change.push((i, layer, planned));
        }
        Some((sum, change))
    }

    /// Returns runs of free entries of inp in a layer if `taken` is used too: the longest run in banks to which the
    /// layer writes nothing, and the longest run of all.
    fn rooms(&self, at: usize, taken: &Range<u32>, written: Option<Range<u32>>) -> Vec<(u32, u32)> {
        let all = self.config.entries(Mem::Inp);
        let mut used: Vec<Range<u32>> =
            self.held.iter().filter(|h| h.life.contains(&at)).map(|h| h.entries.clone()).collect();
        used.push(taken.clone());
        let longest = |mut used: Vec<Range<u32>>| {
            used.sort_by_key(|e| e.start);
            let ends = std::iter::once(0).chain(used.iter().map(|e| e.end));
            let starts = used.iter().map(|e| e.start).chain(std::iter::once(all));
            let free = ends.zip(starts).map(|(from, to)| (from, to.saturating_sub(from)));
            free.max_by_key(|(_, count)| *count).unwrap_or((0, 0))
        };
        let mut rooms = Vec::new();
        if let Some(written) = written {
            let bank = all / self.config.banks(Mem::Inp);
            let banks = written.start / bank * bank..written.end.next_multiple_of(bank);
            rooms.push(longest(used.iter().cloned().chain([banks]).collect()));
        }
        rooms.push(longest(used));
        rooms.dedup();
        rooms
    }
}
