//! From the best plans of layers to the best program.
//!
//! A window ignores layers that are farther away, and neighbors change at the same time. So the new plans are kept only
//! if whole programs take fewer cycles with them.

use super::task::Task;
use super::tasks::Program;
use crate::codegen::accel::space::Decisions;
use crate::cost::Clock;
use crate::partition::window::least_cycles;
use crate::records::Record;
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
/// after; what they gain must exceed the clock's jitter.
pub fn choose(programs: &mut [Program], tasks: &[Task], cycles: &mut [Option<u64>], clock: &dyn Clock, jitter: f64) {
    let mut better: Vec<(u64, Choice)> = tasks
        .iter()
        .filter_map(|task| Some((task.gain(), Choice { task, decisions: &task.best.as_ref()?.1 })))
        .filter(|(gain, _)| *gain > 0)
        .collect();
    better.sort_by_key(|(gain, _)| std::cmp::Reverse(*gain));
    let promised: u64 = better.iter().map(|(gain, _)| gain).sum();
    let all: Vec<Choice> = better.into_iter().map(|(_, choice)| choice).collect();
    if all.is_empty() || attempt(programs, &all, cycles, clock, [(promised * 9 / 10) as f64, jitter]) {
        return;
    }
    for choice in all {
        attempt(programs, &[choice], cycles, clock, [0.0, jitter]);
    }
}

/// Gives layers the plans that an earlier search chose, if the programs then take fewer cycles.
pub fn resume(
    programs: &mut [Program],
    tasks: &[Task],
    known: &[Record],
    cycles: &mut [Option<u64>],
    clock: &dyn Clock,
    jitter: f64,
) {
    let chosen = |task| Some(Choice { task, decisions: &Task::last_choice(task, known)?.decisions });
    let all: Vec<Choice> = tasks.iter().filter_map(chosen).collect();
    if !all.is_empty() {
        attempt(programs, &all, cycles, clock, [0.0, jitter]);
    }
}

/// A plan for all layers of a task.
#[derive(Clone, Copy)]
struct Choice<'a> {
    task: &'a Task,
    decisions: &'a Decisions,
}

/// Gives the layers of some tasks other plans. If the programs do not gain at least so many cycles and more than this
/// share of theirs, takes that back and returns false.
fn attempt(
    programs: &mut [Program],
    choices: &[Choice],
    cycles: &mut [Option<u64>],
    clock: &dyn Clock,
    [least, jitter]: [f64; 2],
) -> bool {
    let mut before = Vec::new();
    for Choice { task, decisions } in choices {
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
    let gains = old.zip(new).is_some_and(|(old, new)| {
        new < old && {
            let gain = (old - new) as f64;
            gain >= least && gain > old as f64 * jitter
        }
    });
    if gains {
        after.into_iter().for_each(|(p, now)| cycles[p] = now);
    } else {
        before.into_iter().rev().for_each(|(p, at, planned)| programs[p].layers[at].1 = planned);
    }
    gains
}
