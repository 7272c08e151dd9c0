//! Runs the steps of a flow.

use super::report::{self, Estimate, Report};
use super::steps::{Done, FlowStep, Progress};
use super::{FlowError, FlowOutcome, FlowRequest};
use super::{checks, design, files, leftovers, netlist, tools};
use std::path::Path;

/// Makes the bitstream of a configuration on a board, and reports on it.
///
/// Writes the sources, netlists, logs, bitstream, `report.json` and `summary.txt` to `dir`, and removes the files of an
/// earlier flow from it first. Takes the results of steps that ran before with the same inputs from `cache`, also the
/// results of netlist checks.
///
/// # Errors
/// [`FlowError`]. `dir` then has no bitstream, and has a report only if the design is larger than the part or too slow.
pub fn synthesize(
    request: &FlowRequest,
    dir: &Path,
    cache: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<FlowOutcome, FlowError> {
    let family = request.board.family;
    let tools = if request.estimate { tools::find_synthesis()? } else { tools::find(family)? };
    let tools = tools.with_time_limit(request.time_limit);
    let sources = design::sources(request)?;
    leftovers::clear(dir)?;
    let synthesized = FlowStep::synthesis(&tools, &sources).run(cache, progress)?;
    synthesized.copy_to(dir)?;
    let netlist = read(netlist::Netlist::read, dir, design::NETLIST, &synthesized)?;
    let estimate = Estimate::of(&netlist, request.board);
    if let Some(mhz) = estimate.fmax_mhz {
        progress(Progress::Estimated { wanted: request.mhz, mhz });
    }
    let refusal = report::refusal(&netlist, request.board);
    let routed = match family.router() {
        Some(_) if !request.estimate && refusal.is_none() => {
            let routed = FlowStep::route(request, &tools, &synthesized)?.run(cache, progress)?;
            routed.copy_to(dir)?;
            Some(routed)
        }
        _ => None,
    };
    let timing =
        routed.as_ref().map(|routed| read(report::Routed::read, dir, design::ROUTE_REPORT, routed)).transpose()?;
    let mut report = Report::new(request, &tools, &netlist, estimate, sources.mhz, timing.as_ref());
    if let Some(reason) = refusal {
        report.refuse_size(&reason);
        report.write(dir)?;
        let (board, config) = (request.board.name.clone(), request.config.name.clone());
        return Err(FlowError::TooLarge { board, config, reason, report: Box::new(report) });
    }
    if let (Some(achieved), true, false) = (report.fmax_mhz, report.slow, request.allow_slow) {
        report.refuse_clock();
        report.write(dir)?;
        return Err(FlowError::Slow { wanted: request.mhz, achieved, report: Box::new(report) });
    }
    let packed = match &routed {
        Some(routed) => {
            let packed = FlowStep::pack(request, &tools, routed)?.run(cache, progress)?;
            report.bitstream = Some(report::bitstream(&packed, family.bitstream_file())?);
            packed.copy_to(dir)?;
            Some(packed)
        }
        None => None,
    };
    report.checks = checks::kept(cache, request.checker, [Some(&synthesized), routed.as_ref(), packed.as_ref()]);
    report.write(dir)?;
    Ok(FlowOutcome { report, tools, synthesized, routed, packed })
}

/// Reads a file of a step in `dir`. If that fails, removes the step from the cache, so that it runs again next time.
fn read<T>(reader: fn(&Path) -> Result<T, FlowError>, dir: &Path, name: &str, step: &Done) -> Result<T, FlowError> {
    reader(&dir.join(name)).inspect_err(|_| step.forget())
}

/// Writes the sources of a board's design, for use with other tools: SystemVerilog, Verilog, pins, and the script for
/// Yosys.
///
/// Removes the files of an earlier flow from `dir` first. Returns the clock of shell and core, MHz.
///
/// # Errors
/// [`FlowError::Unfit`] if the part cannot make the clock, [`FlowError::Io`].
pub fn write_sources(request: &FlowRequest, dir: &Path) -> Result<f64, FlowError> {
    let sources = design::sources(request)?;
    leftovers::clear(dir)?;
    for file in &sources.files {
        files::write(&dir.join(&file.name), file.text.as_bytes())?;
    }
    Ok(sources.mhz)
}
