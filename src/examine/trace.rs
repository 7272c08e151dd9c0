//! Writes a trace of when instructions ran and what they waited for, for Perfetto and Chrome, as complete events of the
//! trace event format.

use std::io;
use std::path::Path;

use serde_json::{Value, json};
use tilewright_hw::config::HwConfig;
use tilewright_hw::isa::{DecodeError, Insn, Unit, print_insn};
use tilewright_hw::regs::UnitState;
use tilewright_runtime::artifact::{Artifact, Step, StepKind};
use tilewright_runtime::files::write_whole;
use tilewright_runtime::session::RunReport;

use super::parts::Part;
use super::stalls;

/// An instruction of a compiled step that its configuration does not support.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("step {step}: instruction {at}: {reason}")]
pub struct UnknownInsn {
    /// The step.
    pub step: String,
    /// Index of the instruction in the stream.
    pub at: usize,
    /// What is wrong with it.
    pub reason: String,
}

/// The program of each step; empty for steps of the CPU or GPU.
///
/// # Errors
/// [`UnknownInsn`].
pub fn programs(config: &HwConfig, artifact: &Artifact) -> Result<Vec<Vec<Insn>>, UnknownInsn> {
    let program = |step: &Step| match &step.kind {
        StepKind::Accel(accel) => {
            let mut program = accel.program.clone();
            program.stream = artifact.blob(accel.stream).to_vec();
            let unknown = |(at, reason): (usize, DecodeError)| UnknownInsn {
                step: step.name.clone(),
                at,
                reason: reason.to_string(),
            };
            program.decode(config).map_err(unknown)
        }
        _ => Ok(Vec::new()),
    };
    artifact.manifest.steps.iter().map(program).collect()
}

/// The commands of all runs.
pub fn parts<'a>(artifact: &'a Artifact, reports: &'a [RunReport], programs: &'a [Vec<Insn>]) -> Vec<Part<'a>> {
    let mut parts = Vec::new();
    for (run, report) in reports.iter().enumerate() {
        for (number, (step, taken)) in artifact.manifest.steps.iter().zip(&report.steps).enumerate() {
            let (Some(cycles), StepKind::Accel(accel)) = (taken.cycles, &step.kind) else { continue };
            let name = format!("run {run}: {}", step.name);
            let (program, layers, spans) = (&programs[number], &accel.layers, &taken.spans);
            let insn_layers = accel.insn_layers();
            parts.push(Part { name, number, program, layers, insn_layers, spans, never_started: &[], cycles });
        }
    }
    parts
}

/// The trace of commands that ran one after another at a clock of `clock_mhz`; times are in microseconds. Overlapping
/// instructions of a unit go into separate lanes.
pub fn trace(hw: &str, clock_mhz: f64, parts: &[Part]) -> Value {
    let us = |cycles: u64| cycles as f64 / clock_mhz;
    let mut events = vec![json!({ "ph": "M", "pid": 1, "name": "process_name", "args": { "name": hw } })];
    let mut lanes_of = [1usize; 4];
    let mut begin = 0;
    let mut rows = Vec::new();
    for part in parts {
        rows.push(json!({ "ph": "X", "pid": 1, "tid": 0, "name": part.name, "ts": us(begin), "dur": us(part.cycles),
                          "args": { "cycles": part.cycles } }));
        for unit in Unit::ALL {
            let insns: Vec<(usize, &Insn)> =
                part.program.iter().enumerate().filter(|(_, insn)| insn.unit() == unit).collect();
            // The cycle from which each lane is free.
            let mut lanes: Vec<u64> = Vec::new();
            for span in part.spans.iter().filter(|span| span.unit == unit) {
                let end = span.end.unwrap_or(part.cycles);
                let lane = lanes.iter().position(|free| *free <= span.start).unwrap_or(lanes.len());
                if lane == lanes.len() {
                    lanes.push(0);
                }
                lanes[lane] = end;
                let insn = insns.get(span.ordinal as usize);
                rows.push(json!({
                    "ph": "X", "pid": 1, "tid": thread(unit, lane), "ts": us(begin + span.start), "dur": us(end - span.start),
                    "name": insn.map_or_else(|| format!("{} {}", unit.name(), span.ordinal), |(_, insn)| title(insn)),
                    "args": { "start": span.start, "end": span.end, "ordinal": span.ordinal,
                              "place": insn.map(|(place, _)| place), "instruction": insn.map(|(_, insn)| print_insn(insn)),
                              "layer": insn.and_then(|(place, _)| part.layer_of(*place)),
                              "busy": span.states[UnitState::Busy as usize], "stalled": span.stalled(),
                              "stalls": stalls::by_name(&span.states) },
                }));
            }
            lanes_of[unit as usize] = lanes_of[unit as usize].max(lanes.len());
        }
        begin += part.cycles;
    }
    let mut name = |tid: usize, name: String| {
        events.push(json!({ "ph": "M", "pid": 1, "tid": tid, "name": "thread_name", "args": { "name": name } }));
        events.push(
            json!({ "ph": "M", "pid": 1, "tid": tid, "name": "thread_sort_index", "args": { "sort_index": tid } }),
        );
    };
    name(0, "commands".into());
    for unit in Unit::ALL {
        for lane in 0..lanes_of[unit as usize] {
            let more = if lane == 0 { String::new() } else { format!(" ({})", lane + 1) };
            name(thread(unit, lane), format!("{}{more}", unit.name()));
        }
    }
    events.extend(rows);
    json!({ "traceEvents": events, "displayTimeUnit": "ns",
            "otherData": { "clock_mhz": clock_mhz, "cycle": "1 cycle is 1 / clock_mhz microseconds" } })
}

/// Writes the trace of commands that ran one after another, at the configuration's clock.
///
/// # Errors
/// If the file cannot be written; in that case nothing is written.
pub fn write(path: &Path, config: &HwConfig, parts: &[Part]) -> io::Result<()> {
    let value = trace(&config.name, config.host.clock_mhz, parts);
    write_whole(path, &[value.to_string().as_bytes()])
}

/// Thread number of a unit's lane in the trace.
fn thread(unit: Unit, lane: usize) -> usize {
    (unit as usize + 1) * 100 + lane
}

/// The first two words of an instruction: the operation and its target.
fn title(insn: &Insn) -> String {
    print_insn(insn).split_whitespace().take(2).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use tilewright_runtime::artifact::InsnLayers;

    use super::*;
    use tilewright_hw::device::Span;

    #[test]
    fn overlapping_instructions_lie_in_lanes() {
        let span = |ordinal, start, end| Span {
            unit: Unit::Load,
            ordinal,
            start,
            end: Some(end),
            states: [0, 0, 0, 3, 0, 0, 0, 4, 5],
        };
        let spans = [span(0, 10, 30), span(1, 20, 40), span(2, 30, 50)];
        let part = |name: &str| Part {
            name: name.into(),
            number: 0,
            program: &[],
            layers: &[],
            insn_layers: InsnLayers::default(),
            spans: &spans,
            never_started: &[],
            cycles: 100,
        };
        let trace = trace("1x16x16", 100.0, &[part("a"), part("b")]);
        let found: Vec<(u64, f64, f64)> = trace["traceEvents"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|e| e["ph"] == "X" && e["tid"] != 0)
            .map(|e| (e["tid"].as_u64().unwrap(), e["ts"].as_f64().unwrap(), e["dur"].as_f64().unwrap()))
            .collect();
        assert_eq!(found[..3], [(100, 0.1, 0.2), (101, 0.2, 0.2), (100, 0.3, 0.2)]);
        assert_eq!(found[3], (100, 1.1, 0.2));
        let row = trace["traceEvents"].as_array().unwrap().iter().find(|e| e["tid"] == 101 && e["ph"] == "X").unwrap();
        assert_eq!((&row["args"]["busy"], &row["args"]["stalled"]), (&json!(5), &json!(7)));
        assert_eq!(row["args"]["stalls"], json!({ "token of vector": 3, "data": 4 }));
    }
}
