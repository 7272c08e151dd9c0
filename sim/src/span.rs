//! When an instruction started and when it retired.

use tilewright_hw::isa::Unit;

/// The cycles of one instruction. Cycle 0 is the one whose edge takes the doorbell's write; an instruction that starts or
/// retires in t does so in the registers' state of t, so that others see it in t+1 (`hw/TIMING.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Span {
    /// The unit.
    pub unit: Unit,
    /// The instruction's place among its unit's, from 0.
    pub ordinal: u32,
    /// The cycle in which it leaves its queue and takes its tokens.
    pub start: u64,
    /// The cycle in which it retires and gives its tokens; `None` where a trap came first.
    pub end: Option<u64>,
}

/// Spans from starts and retirements in the order of their cycles, each `(unit, cycle, whether it is a retirement)`; by unit,
/// then ordinal.
pub(crate) fn spans(events: impl IntoIterator<Item = (Unit, u64, bool)>) -> Vec<Span> {
    let mut spans: [Vec<Span>; 4] = Default::default();
    let mut retired = [0usize; 4];
    for (unit, cycle, retirement) in events {
        let of = &mut spans[unit as usize];
        if !retirement {
            of.push(Span { unit, ordinal: of.len() as u32, start: cycle, end: None });
        } else if let Some(span) = of.get_mut(retired[unit as usize]) {
            span.end = Some(cycle);
            retired[unit as usize] += 1;
        }
    }
    spans.concat()
}
