//! From the best plans of layers to the best program.
//!
//! A window ignores layers that are farther away, and neighbors change at the same time. So the new plans are kept only
//! if whole programs take fewer cycles with them.

use super::task::Task;
use super::tasks::Program;
use crate::cost::Clock;
use crate::partition::window::least_cycles;
use tilewright_driver::Search;

/// Returns the cycles of each program; `None` for one that cannot be built or run.
pub fn timed(programs: &[Program], clock: &dyn Clock) -> Vec<Option<u64>> {
    programs.iter().map(|program| one(program, clock)).collect()
}

fn one(program: &Program, clock: &dyn Clock) -> Option<u64> {
    let built = program.around.build(&program.layers, program.outputs).ok()?;
    let searches: &[Search] = if program.reorder { &Search::ALL } else { &[] };
    least_cycles(&built, clock, searches)
}

/// Gives layers their best plans, if the programs then take fewer cycles: first all, and if that gains less than the
/// windows promise, one task after the other, the greatest gain first. `cycles` are those of the programs, before and
/// after.
pub fn choose(programs: &mut [Program], tasks: &[Task], cycles: &mut [Option<u64>], clock: &dyn Clock) {
    let mut better: Vec<(u64, &Task)> = tasks.iter().map(|task| (task.gain(), task)).collect();
    better.retain(|(gain, _)| *gain > 0);
    better.sort_by_key(|(gain, _)| std::cmp::Reverse(*gain));
    let promised: u64 = better.iter().map(|(gain, _)| gain).sum();
    let all: Vec<&Task> = better.iter().map(|(_, task)| *task).collect();
    if all.is_empty() || attempt(programs, &all, cycles, clock, promised * 9 / 10) {
        return;
    }
    for task in all {
        attempt(programs, &[task], cycles, clock, 1);
    }
}

/// Gives the layers of some tasks their best plans. If the programs do not gain at least this many cycles, takes that
/// back and returns false.
fn attempt(
    programs: &mut [Program],
    tasks: &[&Task],
    cycles: &mut [Option<u64>],
    clock: &dyn Clock,
    least: u64,
) -> bool {
    let mut before = Vec::new();
    for task in tasks {
        let Some((_, decisions)) = &task.best else { continue };
        for &[p, at] in &task.places {
            let program = &mut programs[p];
            let (layer, planned) = &program.layers[at];
            if let Ok(other) = planned.with(decisions, layer, program.around.config) {
                before.push((p, at, std::mem::replace(&mut program.layers[at].1, other)));
            }
        }
    }
    let mut touched: Vec<usize> = before.iter().map(|(p, ..)| *p).collect();
    touched.sort_unstable();
    touched.dedup();
    let after: Vec<(usize, Option<u64>)> = touched.iter().map(|&p| (p, one(&programs[p], clock))).collect();
    let old: Option<u64> = touched.iter().map(|&p| cycles[p]).sum();
    let new: Option<u64> = after.iter().map(|(_, cycles)| *cycles).sum();
    let gains = old.zip(new).is_some_and(|(old, new)| new + least.max(1) <= old);
    if gains {
        after.into_iter().for_each(|(p, now)| cycles[p] = now);
    } else {
        before.into_iter().rev().for_each(|(p, at, planned)| programs[p].layers[at].1 = planned);
    }
    gains
}
