//! The order that a program's tokens enforce, as vector clocks over its units.

use crate::access::Access;
use tilewright_hw::config::HwConfig;
use tilewright_hw::isa::{Insn, Unit, UnitSet};

/// For each unit, how many of its instructions have certainly retired.
type Clock = [u32; 4];

fn join(a: &mut Clock, b: &Clock) {
    a.iter_mut().zip(b).for_each(|(a, b)| *a = (*a).max(*b));
}

/// The order of a program's instructions.
#[derive(Debug)]
pub(super) struct Order {
    /// For each instruction, what has retired when it starts.
    pub(super) starts: Vec<Clock>,
    /// For each instruction, its ordinal in its unit.
    pub(super) ordinals: Vec<u32>,
}

impl Order {
    /// Follows the tokens of a program.
    ///
    /// # Errors
    /// Says which pop comes before its push, or which push can overflow a counter.
    pub(super) fn of(insns: &[Insn], config: &HwConfig) -> Result<Order, String> {
        let mut order = Order { starts: Vec::new(), ordinals: Vec::new() };
        let mut last_start = [Clock::default(); 4];
        let mut last_retire = [Clock::default(); 4];
        let mut issued = [0u32; 4];
        // For each pair of units: the clocks of its pushes, and the ordinals of its pops.
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
                // The other unit can lag behind by what its queue and its front end hold.
                let sure = issued[to].saturating_sub(config.queue_depth + 2);
                let popped = pops[unit][to].iter().filter(|ordinal| **ordinal < sure).count();
                if pushes[unit][to].len() - popped > full {
                    return Err(format!("instruction {place} can push a token to a full counter"));
                }
            }
        }
        Ok(order)
    }

    /// Returns whether instruction `late` starts only after `early`, an instruction of another unit, has retired.
    pub(super) fn is_after(&self, late: usize, early: usize, early_unit: Unit) -> bool {
        self.starts[late][early_unit as usize] > self.ordinals[early]
    }
}

/// Returns the first instruction before `late` that conflicts with it and is not ordered before it.
pub(super) fn first_race(order: &Order, accesses: &[Access], late: usize) -> Option<usize> {
    let at = &accesses[late];
    (0..late).find(|&early| {
        let a = &accesses[early];
        a.unit != at.unit && !order.is_after(late, early, a.unit) && a.conflicts(at)
    })
}

/// Returns the first two instructions that conflict and that no tokens order.
#[cfg(test)]
pub(crate) fn first_unordered(insns: &[Insn], accesses: &[Access], config: &HwConfig) -> Option<(usize, usize)> {
    let order = Order::of(insns, config).ok()?;
    (0..insns.len()).find_map(|late| Some((first_race(&order, accesses, late)?, late)))
}

/// Simulates only tokens and queues, starting each instruction as soon as possible. Returns the units whose next
/// instruction never gets its token, with that instruction's ordinal. The result does not depend on the order of
/// starts.
pub(super) fn stuck(insns: &[Insn], config: &HwConfig) -> Vec<(Unit, u32)> {
    let mut tokens = [[0u32; 4]; 4];
    let mut queues: [Vec<Insn>; 4] = Default::default();
    let mut started = [0u32; 4];
    let mut next = 0;
    // A unit holds one instruction in addition to its queue. A blocked fetch does not affect other units' instructions.
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

/// Returns the other units.
pub(super) fn others(unit: Unit) -> impl Iterator<Item = Unit> {
    Unit::ALL.into_iter().filter(move |u| *u != unit)
}

/// Returns a set without one unit.
pub(super) fn without(set: UnitSet, unit: Unit) -> UnitSet {
    set.iter().filter(|u| *u != unit).collect()
}
