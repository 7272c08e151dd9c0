//! Start and retirement cycles of instructions.

use tilewright_hw::device::{Span, Trap};
use tilewright_hw::isa::Unit;
use tilewright_hw::regs::{TrapCause, UnitState};

/// Returns the span of an instruction that has just started.
pub(crate) fn started(unit: Unit, ordinal: u32, start: u64) -> Span {
    Span { unit, ordinal, start, end: None, states: [0; UnitState::ALL.len()] }
}

/// Clears the state shares of load and store if a trap ended the run: bus transfers were cut off, so their shares mean
/// nothing. A deadlock cuts off nothing, so it keeps them.
pub(crate) fn leave_out(spans: &mut [Span], trap: Option<Trap>) {
    if trap.is_some_and(|trap| trap.cause != TrapCause::Deadlock) {
        let transfers = spans.iter_mut().filter(|span| matches!(span.unit, Unit::Load | Unit::Store));
        transfers.for_each(|span| span.states = Default::default());
    }
}

/// Builds spans from starts and retirements in cycle order, each `(unit, cycle, is_retirement)`. The result is sorted
/// by unit, then ordinal.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn spans(events: impl IntoIterator<Item = (Unit, u64, bool)>) -> Vec<Span> {
    let mut spans: [Vec<Span>; 4] = Default::default();
    let mut retired = [0usize; 4];
    for (unit, cycle, retirement) in events {
        let of = &mut spans[unit as usize];
        if !retirement {
            of.push(started(unit, of.len() as u32, cycle));
        } else if let Some(span) = of.get_mut(retired[unit as usize]) {
            span.end = Some(cycle);
            retired[unit as usize] += 1;
        }
    }
    spans.concat()
}
