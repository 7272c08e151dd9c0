//! What the tokens of a program order: vector clocks over its units.

use crate::access::Access;
use tilewright_hw::config::HwConfig;
use tilewright_hw::isa::{Insn, Unit, UnitSet};

/// For each unit, how many of its instructions have retired for certain.
type Clock = [u32; 4];

fn join(a: &mut Clock, b: &Clock) {
    a.iter_mut().zip(b).for_each(|(a, b)| *a = (*a).max(*b));
}

/// Starts of a program's instructions, in its order.
#[derive(Debug)]
pub(super) struct Order {
    /// What has retired when instruction `n` starts.
    pub(super) starts: Vec<Clock>,
    /// The instruction's ordinal in its unit.
    pub(super) ordinals: Vec<u32>,
}

impl Order {
    /// Follows the tokens of a program.
    ///
    /// # Errors
    /// Says where a pop comes before its push, or where a counter may overflow.
    pub(super) fn of(insns: &[Insn], config: &HwConfig) -> Result<Order, String> {
        let mut order = Order { starts: Vec::new(), ordinals: Vec::new() };
        let mut last_start = [Clock::default(); 4];
        let mut last_retire = [Clock::default(); 4];
        let mut issued = [0u32; 4];
        // Clocks of a pair's pushes; the unit's ordinal of a pair's pops.
        let mut pushes: [[Vec<Clock>; 4]; 4] = Default::default();
        let mut pops: [[Vec<u32>; 4]; 4] = Default::default();
        let full = (1usize << config.token_bits) - 1;
        for (place, insn) in insns.iter().enumerate() {
            let unit = insn.unit() as usize;
            let mut start = last_start[unit];
            for from in insn.pop.iter().map(|u| u as usize) {
                let n = pops[from][unit].len();
                let Some(push) = pushes[from][unit].get(n) else {
                    return Err(format!("instruction {place} pops a token that nothing pushed"));
                };
                join(&mut start, push);
                pops[from][unit].push(issued[unit]);
            }
            last_start[unit] = start;
            join(&mut last_retire[unit], &start);
            issued[unit] += 1;
            last_retire[unit][unit] = issued[unit];
            order.starts.push(start);
            order.ordinals.push(issued[unit] - 1);
            for to in insn.push.iter().map(|u| u as usize) {
                pushes[unit][to].push(last_retire[unit]);
                // The other unit may be late by what its queue and its front hold.
                let sure = issued[to].saturating_sub(config.queue_depth + 2);
                let popped = pops[unit][to].iter().filter(|ordinal| **ordinal < sure).count();
                if pushes[unit][to].len() - popped > full {
                    return Err(format!("instruction {place} may push a token into a full counter"));
                }
            }
        }
        Ok(order)
    }

    /// Whether instruction `late` starts after `early`, of another unit, retired.
    pub(super) fn is_after(&self, late: usize, early: usize, early_unit: Unit) -> bool {
        self.starts[late][early_unit as usize] > self.ordinals[early]
    }
}

/// The first instruction before `late` that conflicts with it and is not ordered before it.
pub(super) fn first_race(order: &Order, accesses: &[Access], late: usize) -> Option<usize> {
    let at = &accesses[late];
    (0..late).find(|&early| {
        let a = &accesses[early];
        a.unit != at.unit && !order.is_after(late, early, a.unit) && a.conflicts(at)
    })
}

/// The first two instructions that conflict and that the program's tokens do not order.
#[cfg(test)]
pub(crate) fn first_unordered(insns: &[Insn], accesses: &[Access], config: &HwConfig) -> Option<(usize, usize)> {
    let order = Order::of(insns, config).ok()?;
    (0..insns.len()).find_map(|late| Some((first_race(&order, accesses, late)?, late)))
}

/// Runs tokens and queues alone, each instruction at once when it may start, and gives the units whose next instruction
/// misses a token for ever, with its ordinal. Which instructions can start does not depend on their order.
pub(super) fn stuck(insns: &[Insn], config: &HwConfig) -> Vec<(Unit, u32)> {
    let mut tokens = [[0u32; 4]; 4];
    let mut queues: [Vec<Insn>; 4] = Default::default();
    let mut started = [0u32; 4];
    let mut next = 0;
    // The front of a unit holds an instruction besides its queue; a stuck fetch changes nothing for the others.
    let room = config.queue_depth as usize + 1;
    loop {
        let mut moved = false;
        while let Some(insn) = insns.get(next)
            && queues[insn.unit() as usize].len() < room
        {
            queues[insn.unit() as usize].push(*insn);
            next += 1;
            moved = true;
        }
        for unit in Unit::ALL {
            let u = unit as usize;
            let Some(insn) = queues[u].first().copied() else { continue };
            if insn.pop.iter().all(|from| tokens[from as usize][u] > 0) {
                insn.pop.iter().for_each(|from| tokens[from as usize][u] -= 1);
                insn.push.iter().for_each(|to| tokens[u][to as usize] += 1);
                queues[u].remove(0);
                started[u] += 1;
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    Unit::ALL.into_iter().filter(|u| !queues[*u as usize].is_empty()).map(|u| (u, started[u as usize])).collect()
}

/// The other units of a unit.
pub(super) fn others(unit: Unit) -> impl Iterator<Item = Unit> {
    Unit::ALL.into_iter().filter(move |u| *u != unit)
}

/// A set without one unit.
pub(super) fn without(set: UnitSet, unit: Unit) -> UnitSet {
    set.iter().filter(|u| *u != unit).collect()
}
