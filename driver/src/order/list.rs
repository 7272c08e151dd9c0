//! A list scheduler over approximate times.

use super::Work;
use crate::conflicts::{ByPort, Conflicts};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use tilewright_hw::isa::Unit;

/// How an order is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Search {
    /// How many loads, in program order from the first that is left, can be next.
    pub loads: usize,
    /// An instruction waits for a more urgent one that can start within this percentage of its own time.
    pub patience: u64,
}

impl Search {
    /// The search that is best most often.
    pub const FIRST: Search = Search { loads: 48, patience: 50 };

    /// Searches that each find the best order for some program.
    pub const ALL: [Search; 4] = [
        Search::FIRST,
        Search { loads: 256, ..Search::FIRST },
        Search { loads: 24, ..Search::FIRST },
        Search { patience: 100, ..Search::FIRST },
    ];
}

/// When each instruction runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Schedule {
    /// Places of the instructions in the order of their starts.
    pub places: Vec<u32>,
    /// By place, cycle in which it starts.
    pub starts: Vec<u64>,
    /// By place, cycle in which it retires.
    pub ends: Vec<u64>,
    /// Transfers that the bus delays, each with the more urgent transfer of another unit that has the bus.
    pub delayed: Vec<(u32, u32)>,
    /// Cycle in which the last instruction retires.
    pub cycles: u64,
}

/// An instruction that could be next, and the cycle in which it would start.
#[derive(Debug, Clone, Copy)]
struct Choice {
    place: u32,
    start: u64,
}

/// The units' state at one step.
struct State<'a> {
    conflicts: &'a [Conflicts],
    works: &'a [Work],
    /// By place, cycles from an instruction's start to the program's end, if nothing else delays it.
    tails: Vec<u64>,
    /// By place, the instructions that come after it.
    followers: Vec<Vec<u32>>,
    /// By place, number of instructions that must still be scheduled before it.
    missing: Vec<u32>,
    /// By place, cycle in which the instructions of other units that it waits for have retired.
    ready: Vec<u64>,
    /// By place, the number of an instruction among those of its unit.
    ordinals: Vec<usize>,
    /// By unit, instructions that are not scheduled.
    left: [BTreeSet<u32>; 4],
    /// By unit, cycle in which the next instruction can start.
    free: [u64; 4],
    /// By unit, cycle in which its transfers so far have moved their data.
    moved: [u64; 4],
    /// Cycle in which the bus is free.
    bus: u64,
    /// The last transfer.
    last: Option<u32>,
    /// Cycle in which a unit's last user of a port has retired.
    ports: ByPort<u64>,
    schedule: Schedule,
}

/// Schedules a program.
pub(super) fn schedule(conflicts: &[Conflicts], works: &[Work], search: Search) -> Schedule {
    let mut state = State::new(conflicts, works, search);
    while let Some(choice) = state.choose(search) {
        state.commit(choice);
    }
    state.schedule
}

/// Number of a unit's instructions from which the next one is selected.
fn window(unit: Unit, search: Search) -> usize {
    if unit == Unit::Load { search.loads.max(1) } else { 1 }
}

/// By place, cycles from an instruction's start to the end of the longest chain of instructions that wait for it.
fn tails(conflicts: &[Conflicts], works: &[Work], followers: &[Vec<u32>]) -> Vec<u64> {
    let mut tails = vec![0; conflicts.len()];
    for (place, work) in works.iter().enumerate().rev() {
        let from_start = |&next: &u32| {
            let same = conflicts[next as usize].unit == conflicts[place].unit;
            tails[next as usize] + if same { work.busy.max(work.beats) } else { work.span() }
        };
        tails[place] = followers[place].iter().map(from_start).max().unwrap_or(0).max(work.span());
    }
    tails
}

impl<'a> State<'a> {
    fn new(conflicts: &'a [Conflicts], works: &'a [Work], search: Search) -> State<'a> {
        let insns = conflicts.len();
        let mut followers = vec![Vec::new(); insns];
        let mut missing = vec![0; insns];
        let mut left: [BTreeSet<u32>; 4] = Default::default();
        let mut ordinals = vec![0; insns];
        for (place, own) in (0..).zip(conflicts) {
            // A unit whose window is one instruction keeps its order.
            let before = left[own.unit as usize].last().copied();
            let before = before.filter(|before| window(own.unit, search) == 1 && !own.after.contains(before));
            for &before in own.after.iter().chain(&before) {
                followers[before as usize].push(place);
                missing[place as usize] += 1;
            }
            ordinals[place as usize] = left[own.unit as usize].len();
            left[own.unit as usize].insert(place);
        }
        let schedule = Schedule {
            places: Vec::with_capacity(insns),
            starts: vec![0; insns],
            ends: vec![0; insns],
            delayed: Vec::new(),
            cycles: 0,
        };
        State {
            conflicts,
            works,
            tails: tails(conflicts, works, &followers),
            followers,
            missing,
            ready: vec![0; insns],
            ordinals,
            left,
            free: [0; 4],
            moved: [0; 4],
            bus: 0,
            last: None,
            ports: ByPort::all(0),
            schedule,
        }
    }

    /// Selects the next instruction; `None` at the end.
    fn choose(&self, search: Search) -> Option<Choice> {
        let [load, gemm, vector, store] =
            [Unit::Load, Unit::Gemm, Unit::Vector, Unit::Store].map(|u| self.pick(u, search));
        let transfer = match (load, store) {
            (Some(load), Some(store)) => {
                let (first, second) = if load.start <= store.start { (load, store) } else { (store, load) };
                Some(if self.waits_for(first, second, search) { second } else { first })
            }
            _ => load.or(store),
        };
        [transfer, gemm, vector].into_iter().flatten().min_by_key(|choice| choice.start)
    }

    /// Selects the next instruction of a unit; `None` if it has none that can be scheduled.
    fn pick(&self, unit: Unit, search: Search) -> Option<Choice> {
        let left = &self.left[unit as usize];
        let end = self.ordinals[*left.first()? as usize] + window(unit, search);
        let next = left.iter().take_while(|place| self.ordinals[**place as usize] < end);
        let open = next.filter(|place| self.missing[**place as usize] == 0);
        let open: Vec<Choice> = open.map(|&place| Choice { place, start: self.start(place) }).collect();
        let first = open.iter().copied().min_by_key(|choice| choice.start)?;
        let urgent = open.into_iter().filter(|&other| self.waits_for(first, other, search));
        Some(urgent.max_by_key(|x| (self.tails[x.place as usize], Reverse(x.place))).unwrap_or(first))
    }

    /// Whether `first` should wait for `other`, which starts later but is more urgent.
    fn waits_for(&self, first: Choice, other: Choice, search: Search) -> bool {
        let work = &self.works[first.place as usize];
        let patience = work.busy.max(work.beats) * search.patience / 100;
        self.tails[other.place as usize] > self.tails[first.place as usize] && other.start <= first.start + patience
    }

    /// Cycle in which an instruction can start if the bus is free.
    fn earliest(&self, place: u32) -> u64 {
        let own = &self.conflicts[place as usize];
        let at = self.ready[place as usize].max(self.free[own.unit as usize]);
        self.ports.others(own).fold(at, u64::max)
    }

    /// Cycle in which an instruction can start.
    fn start(&self, place: u32) -> u64 {
        let work = &self.works[place as usize];
        let bus = if work.beats > 0 { self.bus.saturating_sub(work.lead) } else { 0 };
        self.earliest(place).max(bus)
    }

    fn commit(&mut self, Choice { place, start }: Choice) {
        let (at, own, work) = (place as usize, &self.conflicts[place as usize], self.works[place as usize]);
        let unit = own.unit as usize;
        if let Some(last) = self.last
            && work.beats > 0
            && self.conflicts[last as usize].unit != own.unit
            && self.tails[last as usize] > self.tails[at]
            && start > self.earliest(place)
        {
            self.schedule.delayed.push((place, last));
        }
        self.bus += work.fetch;
        self.free[unit] = start + work.busy;
        let mut end = self.free[unit];
        // A load of pads alone moves data without the bus.
        if work.moves > 0 {
            let first = if work.beats > 0 { (start + work.lead).max(self.bus) } else { start };
            self.moved[unit] = first.max(self.moved[unit]) + work.moves;
            end = end.max(self.moved[unit]);
            if work.beats > 0 {
                self.bus = first + work.beats;
                self.last = Some(place);
            }
        }
        end += work.tail;
        for &port in &own.ports {
            let used = &mut self.ports.of(port)[unit];
            *used = (*used).max(end);
        }
        for &next in &self.followers[at] {
            let next = next as usize;
            self.missing[next] -= 1;
            if self.conflicts[next].unit != own.unit {
                self.ready[next] = self.ready[next].max(end);
            }
        }
        self.left[unit].remove(&place);
        (self.schedule.starts[at], self.schedule.ends[at]) = (start, end);
        self.schedule.cycles = self.schedule.cycles.max(end);
        self.schedule.places.push(place);
    }
}
