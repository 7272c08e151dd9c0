//! Commands, reports and errors of devices as messages.

use tilewright_hw::device::{Base, Command, DeviceError, RunReport, Span, Ticket, Trap, UnitCounters};
use tilewright_hw::isa::Unit;
use tilewright_hw::regs::{TrapCause, TrapUnit, UnitState};

use crate::wire;
use crate::wire::failure::Kind;

/// Spans in one message: about 600 KiB.
const SPANS: usize = 8192;

/// A message that cannot be what it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the message has an invalid {0}")]
pub(crate) struct Invalid(pub &'static str);

impl From<&Command> for wire::Command {
    fn from(command: &Command) -> wire::Command {
        let bases = command.bases.iter().map(|base| wire::Base { addr: base.addr, limit: base.limit });
        wire::Command {
            stream_addr: command.stream_addr,
            insns: command.insns,
            bases: bases.collect(),
            cycle_limit: command.cycle_limit,
        }
    }
}

impl From<wire::Command> for Command {
    fn from(command: wire::Command) -> Command {
        let bases = command.bases.iter().map(|base| Base { addr: base.addr, limit: base.limit });
        Command {
            stream_addr: command.stream_addr,
            insns: command.insns,
            bases: bases.collect(),
            cycle_limit: command.cycle_limit,
        }
    }
}

/// A report's spans, in messages of a bounded size, and the rest of it.
pub(crate) fn pack(report: &RunReport) -> (impl Iterator<Item = wire::Spans>, wire::Report) {
    let span = |span: &Span| wire::InsnSpan {
        unit: span.unit as u32,
        ordinal: span.ordinal,
        start: span.start,
        end: span.end,
        states: span.states.to_vec(),
    };
    let spans = report.spans.chunks(SPANS).map(move |spans| wire::Spans { spans: spans.iter().map(span).collect() });
    let trap = report.trap.map(|trap| wire::Trap {
        unit: trap.unit as u32,
        cause: trap.cause as u32,
        ordinal: trap.ordinal,
        cycle: trap.cycle,
    });
    let counters = report.counters.iter().flat_map(|counters| counters.0.iter().flatten().copied());
    let rest = wire::Report {
        cycles: report.cycles,
        trap,
        trap_text: report.trap_text.clone(),
        retired: report.retired.to_vec(),
        macs: report.macs,
        bytes: report.bytes.map(|(first, second)| wire::Pair { first, second }),
        counters: counters.collect(),
    };
    (spans, rest)
}

/// The spans of a message.
pub(crate) fn unpack_spans(spans: wire::Spans) -> Result<Vec<Span>, Invalid> {
    let span = |span: wire::InsnSpan| {
        Ok(Span {
            unit: *Unit::ALL.get(span.unit as usize).ok_or(Invalid("unit"))?,
            ordinal: span.ordinal,
            start: span.start,
            end: span.end,
            states: span.states.try_into().map_err(|_| Invalid("number of states"))?,
        })
    };
    spans.spans.into_iter().map(span).collect()
}

/// A report without its spans.
pub(crate) fn unpack(report: wire::Report) -> Result<RunReport, Invalid> {
    let trap = report.trap.map(|trap| {
        Ok(Trap {
            unit: *TrapUnit::ALL.get(trap.unit as usize).ok_or(Invalid("unit of a trap"))?,
            cause: TrapCause::from_code(trap.cause).ok_or(Invalid("cause of a trap"))?,
            ordinal: trap.ordinal,
            cycle: trap.cycle,
        })
    });
    Ok(RunReport {
        cycles: report.cycles,
        trap: trap.transpose()?,
        trap_text: report.trap_text,
        retired: report.retired.try_into().map_err(|_| Invalid("number of units"))?,
        macs: report.macs,
        bytes: report.bytes.map(|pair| (pair.first, pair.second)),
        counters: if report.counters.is_empty() { None } else { Some(counters(&report.counters)?) },
        spans: Vec::new(),
    })
}

fn counters(flat: &[u64]) -> Result<UnitCounters, Invalid> {
    let mut counters = UnitCounters::default();
    if flat.len() != TrapUnit::ALL.len() * UnitState::ALL.len() {
        return Err(Invalid("number of counters"));
    }
    for (unit, states) in counters.0.iter_mut().zip(flat.chunks(UnitState::ALL.len())) {
        unit.copy_from_slice(states);
    }
    Ok(counters)
}

/// An error as a message.
pub(crate) fn failure(error: DeviceError) -> wire::Failure {
    let kind = match error {
        DeviceError::OutOfMemory { addr, len, size } => Kind::OutOfMemory(wire::OutOfMemory { addr, len, size }),
        DeviceError::Misaligned { addr } => Kind::Misaligned(addr),
        DeviceError::Unaddressable { what, value, last } => {
            Kind::Unaddressable(wire::Unaddressable { what, value, last })
        }
        DeviceError::TooManyBases { given, available } => {
            Kind::TooManyBases(wire::TooManyBases { given: given as u64, available })
        }
        DeviceError::CycleLimit { limit } => Kind::CycleLimit(limit),
        DeviceError::InsnLimit { limit } => Kind::InsnLimit(limit),
        DeviceError::UnknownTicket(ticket) => Kind::UnknownTicket(ticket.0),
        // Only the process whose work it is can stop it.
        DeviceError::Interrupted(stopped) => Kind::Tool(wire::Tool {
            tool: "the device".into(),
            reason: stopped.to_string(),
            remedy: "run it again".into(),
        }),
        DeviceError::Unsupported { device, what } => Kind::Unsupported(wire::Unsupported { device, what }),
        DeviceError::Program { index, what } => Kind::Program(wire::Program { index, what }),
        DeviceError::Tool { tool, reason, remedy } => Kind::Tool(wire::Tool { tool, reason, remedy }),
    };
    wire::Failure { kind: Some(kind) }
}

/// The error of a message; `server` names its sender.
pub(crate) fn error(failure: wire::Failure, server: &str) -> DeviceError {
    match failure.kind {
        Some(Kind::OutOfMemory(e)) => DeviceError::OutOfMemory { addr: e.addr, len: e.len, size: e.size },
        Some(Kind::Misaligned(addr)) => DeviceError::Misaligned { addr },
        Some(Kind::Unaddressable(e)) => DeviceError::Unaddressable { what: e.what, value: e.value, last: e.last },
        Some(Kind::TooManyBases(e)) => DeviceError::TooManyBases { given: e.given as usize, available: e.available },
        Some(Kind::CycleLimit(limit)) => DeviceError::CycleLimit { limit },
        Some(Kind::InsnLimit(limit)) => DeviceError::InsnLimit { limit },
        Some(Kind::UnknownTicket(ticket)) => DeviceError::UnknownTicket(Ticket(ticket)),
        Some(Kind::Unsupported(e)) => {
            DeviceError::Unsupported { device: format!("{server} ({})", e.device), what: e.what }
        }
        Some(Kind::Program(e)) => DeviceError::Program { index: e.index, what: e.what },
        Some(Kind::Tool(e)) => {
            DeviceError::Tool { tool: format!("{server}: {}", e.tool), reason: e.reason, remedy: e.remedy }
        }
        None => broken(server, "it failed without a reason".into()),
    }
}

/// An error for an answer that makes no sense or does not come.
pub(crate) fn broken(server: &str, reason: String) -> DeviceError {
    DeviceError::Tool { tool: server.to_string(), reason, remedy: "see the log of the server, and run it again".into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> RunReport {
        let mut counters = UnitCounters::default();
        counters.0[1][2] = 7;
        counters.0[4][0] = u64::from(u32::MAX);
        let span = |ordinal: u32| Span {
            unit: Unit::Vector,
            ordinal,
            start: u64::from(ordinal),
            end: ordinal.is_multiple_of(2).then_some(9),
            states: [u64::from(ordinal); UnitState::ALL.len()],
        };
        RunReport {
            cycles: Some(3),
            trap: Some(Trap { unit: TrapUnit::Fetch, cause: TrapCause::Deadlock, ordinal: 4, cycle: Some(5) }),
            trap_text: Some("load waits for gemm".into()),
            retired: [1, 2, 3, 4],
            macs: 1 << 40,
            bytes: Some((6, 7)),
            counters: Some(counters),
            spans: (0..SPANS as u32 + 3).map(span).collect(),
        }
    }

    #[test]
    fn reports_cross_whole() {
        for report in [report(), RunReport::default()] {
            let (spans, rest) = pack(&report);
            let mut back = unpack(rest).expect("is a report");
            let spans: Vec<_> = spans.map(|spans| unpack_spans(spans).expect("are spans")).collect();
            back.spans = spans.concat();
            assert_eq!(back, report);
        }
    }

    #[test]
    fn reports_that_no_device_gives_are_refused() {
        let wrong = |change: fn(&mut wire::Report)| {
            let (_, mut rest) = pack(&report());
            change(&mut rest);
            unpack(rest).unwrap_err().to_string()
        };
        assert_eq!(wrong(|report| report.retired = vec![1]), "the message has an invalid number of units");
        assert_eq!(wrong(|report| report.counters = vec![1]), "the message has an invalid number of counters");
        let trap = wrong(|report| report.trap = Some(wire::Trap { unit: 9, ..wire::Trap::default() }));
        assert_eq!(trap, "the message has an invalid unit of a trap");
        let spans = wire::Spans { spans: vec![wire::InsnSpan { unit: 4, ..wire::InsnSpan::default() }] };
        assert_eq!(unpack_spans(spans), Err(Invalid("unit")));
    }

    #[test]
    fn errors_cross_with_their_data() {
        let tool = |reason: &str| DeviceError::Tool { tool: "t".into(), reason: reason.into(), remedy: "m".into() };
        for (given, text) in [
            (DeviceError::OutOfMemory { addr: 1, len: 2, size: 3 }, None),
            (DeviceError::Misaligned { addr: 33 }, None),
            (DeviceError::Unaddressable { what: "the stream's end".into(), value: 1, last: 2 }, None),
            (DeviceError::TooManyBases { given: 9, available: 8 }, None),
            (DeviceError::CycleLimit { limit: 5 }, None),
            (DeviceError::InsnLimit { limit: 6 }, None),
            (DeviceError::UnknownTicket(Ticket(7)), None),
            (DeviceError::Program { index: 8, what: "reads what nobody wrote".into() }, None),
            (tool("r"), Some("remote:h:1: t: r; m")),
            (
                DeviceError::Unsupported { device: "fsim".into(), what: "fly".into() },
                Some("remote:h:1 (fsim) cannot fly"),
            ),
        ] {
            let wanted = text.map_or_else(|| given.to_string(), str::to_string);
            assert_eq!(error(failure(given), "remote:h:1").to_string(), wanted);
        }
    }
}
