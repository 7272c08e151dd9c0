//! When an instruction started and when it retired.

use tilewright_hw::device::Span;
use tilewright_hw::isa::Unit;
use tilewright_hw::regs::UnitState;

/// The span of an instruction that has just started.
pub(crate) fn started(unit: Unit, ordinal: u32, start: u64) -> Span {
    Span { unit, ordinal, start, end: None, states: [0; UnitState::ALL.len()] }
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
