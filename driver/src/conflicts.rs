//! What an instruction must wait for: earlier instructions that touch the same data, and bank ports.
//!
//! The instructions of a program are added in program order. A read of an entry comes after the last write of it, and
//! after the last read by the same unit; a write comes after the last write and after the last read of each unit. So
//! every two instructions that conflict in an entry are ordered, directly or through others, and any order that
//! respects these pairs gives the same result. Reads by one unit are kept in order, so that the last one stands for
//! all. Two instructions that only share a bank's port can run in either order, but not at the same time.

use crate::access::{DramTouch, Footprint};
use crate::by_entry::ByEntry;
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::Unit;

/// Granularity in bytes at which accesses to device memory are distinguished.
const GRANULE: u64 = 64;
/// Most banks of a memory.
const BANKS: usize = 8;
const MEMS: usize = Mem::ALL.len();

/// The instructions that an instruction must come after, and the ports that it uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflicts {
    /// Its unit.
    pub unit: Unit,
    /// Their places in the program, of its own unit too, in ascending order.
    pub after: Vec<u32>,
    /// The ports that it uses.
    pub ports: Vec<Port>,
}

/// The read or write port of a bank, numbered over all memories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Port(u8);

impl Port {
    /// The ports of the banks whose bits are set.
    fn of_banks(mem: Mem, write: bool, banks: u32) -> impl Iterator<Item = Port> {
        let first = (usize::from(write) * MEMS + mem as usize) * BANKS;
        (0..BANKS).filter(move |bank| banks >> bank & 1 == 1).map(move |bank| Port((first + bank) as u8))
    }
}

/// A value for each unit and port.
#[derive(Debug, Clone)]
pub struct ByPort<T>(Vec<[T; 4]>);

impl<T: Copy> ByPort<T> {
    /// The same value for all.
    pub fn all(value: T) -> ByPort<T> {
        ByPort(vec![[value; 4]; 2 * MEMS * BANKS])
    }

    /// The values of a port, by unit.
    pub fn of(&mut self, port: Port) -> &mut [T; 4] {
        &mut self.0[usize::from(port.0)]
    }

    /// The values that units other than an instruction's have for its ports.
    pub fn others<'a>(&'a self, of: &'a Conflicts) -> impl Iterator<Item = T> + 'a {
        let values = |port: &Port| {
            let [load, gemm, vector, store] = self.0[usize::from(port.0)];
            match of.unit {
                Unit::Load => [gemm, vector, store],
                Unit::Gemm => [load, vector, store],
                Unit::Vector => [load, gemm, store],
                Unit::Store => [load, gemm, vector],
            }
        };
        of.ports.iter().flat_map(values)
    }
}

/// The last instructions that read an entry, by unit, and the last one that wrote it; counts from 1, 0 for none.
type Last = [u32; 5];

/// Place of the last write.
const WRITTEN: usize = 4;

/// The last instructions that touched each entry of one memory.
struct MemHistory {
    bank_entries: u32,
    entries: ByEntry<Last>,
}

/// The last load and store of each granule of a region.
#[derive(Default)]
struct RegionHistory {
    loaded: Vec<u32>,
    stored: Vec<u32>,
}

/// The last instructions that touched each entry of each memory, and each granule of device memory.
pub struct History {
    memories: Vec<MemHistory>,
    regions: Vec<RegionHistory>,
    count: u32,
}

impl History {
    /// An empty history.
    pub fn new(config: &HwConfig) -> History {
        let memories = Mem::ALL.iter().map(|&mem| {
            let entries = config.entries(mem);
            let bank_entries = entries / config.banks(mem);
            MemHistory { bank_entries, entries: ByEntry::new(entries, [0; 5]) }
        });
        History { memories: memories.collect(), regions: Vec::new(), count: 0 }
    }

    /// Adds the next instruction of the program.
    pub fn add(&mut self, unit: Unit, footprint: &Footprint) -> Conflicts {
        let mut found = Conflicts { unit, after: Vec::new(), ports: Vec::new() };
        for touch in &footprint.scratch {
            let memory = &self.memories[touch.mem as usize];
            for port in Port::of_banks(touch.mem, touch.write, touch.set.banks(memory.bank_entries)) {
                if !found.ports.contains(&port) {
                    found.ports.push(port);
                }
            }
            let mut before: Last = [0; 5];
            for last in memory.entries.of(&touch.set) {
                // Most entries were last touched together with those before.
                if last == before {
                    continue;
                }
                let mut note = |by: usize| {
                    if last[by] != before[by] {
                        found.after.push(last[by]);
                    }
                };
                if touch.write {
                    (0..last.len()).for_each(note);
                } else {
                    note(WRITTEN);
                    note(unit as usize);
                }
                before = last;
            }
        }
        if let Some(touch) = &footprint.dram {
            self.after_dram(touch, &mut found.after);
        }
        found.after.sort_unstable();
        found.after.dedup();
        found.after.retain(|&count| count > 0);
        found.after.iter_mut().for_each(|count| *count -= 1);
        self.count += 1;
        self.remember(unit, footprint);
        found
    }

    /// Loads of constants conflict with nothing, because stores do not reach them.
    fn after_dram(&self, touch: &DramTouch, after: &mut Vec<u32>) {
        let Some(region) = self.regions.get(touch.base as usize).filter(|_| touch.base > 0) else { return };
        let mut note = |table: &[u32]| {
            let mut last = 0;
            for count in granules(touch).filter_map(|g| table.get(g)) {
                if *count != last {
                    last = *count;
                    after.push(last);
                }
            }
        };
        note(&region.stored);
        note(&region.loaded);
    }

    fn remember(&mut self, unit: Unit, footprint: &Footprint) {
        let count = self.count;
        for touch in &footprint.scratch {
            let memory = &mut self.memories[touch.mem as usize];
            let by = if touch.write { WRITTEN } else { unit as usize };
            memory.entries.change(&touch.set, |mut last| {
                last[by] = count;
                last
            });
        }
        let Some(touch) = footprint.dram.as_ref().filter(|touch| touch.base > 0) else { return };
        if self.regions.len() <= touch.base as usize {
            self.regions.resize_with(touch.base as usize + 1, RegionHistory::default);
        }
        let region = &mut self.regions[touch.base as usize];
        let table = if touch.write { &mut region.stored } else { &mut region.loaded };
        let end = touch.spans.iter().map(|s| s.end.div_ceil(GRANULE) as usize).max().unwrap_or(0);
        if table.len() < end {
            table.resize(end, 0);
        }
        for granule in granules(touch) {
            table[granule] = count;
        }
    }
}

fn granules(touch: &DramTouch) -> impl Iterator<Item = usize> + '_ {
    touch.spans.iter().flat_map(|s| (s.start / GRANULE) as usize..s.end.div_ceil(GRANULE) as usize)
}
