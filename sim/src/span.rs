//! When an instruction started and when it retired.

use tilewright_hw::device::{Span, Trap};
use tilewright_hw::isa::Unit;
use tilewright_hw::regs::{TrapCause, UnitState};

/// The span of an instruction that has just started.
pub(crate) fn started(unit: Unit, ordinal: u32, start: u64) -> Span {
    Span { unit, ordinal, start, end: None, states: [0; UnitState::ALL.len()] }
}

/// Takes away the shares that a run's end leaves open: where a trap cuts off what load and store have on the bus, theirs say
/// nothing. A deadlock cuts off nothing.
pub(crate) fn leave_out(spans: &mut [Span], trap: Option<Trap>) {
    if trap.is_some_and(|trap| trap.cause != TrapCause::Deadlock) {
        let transfers = spans.iter_mut().filter(|span| matches!(span.unit, Unit::Load | Unit::Store));
        transfers.for_each(|span| span.states = Default::default());
    }
}

/// Spans from starts and retirements in the order of their cycles, each `(unit, cycle, whether it is a retirement)`; by unit,
/// then ordinal.
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
