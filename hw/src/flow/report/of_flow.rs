//! Makes a report from the results of a flow.

use super::{Bitstream, Cells, Estimate, ModuleCells, NOT_ROUTED, REPORT, Report, Resource, Routed, SUMMARY};
use crate::flow::board::Board;
use crate::flow::netlist::Netlist;
use crate::flow::steps::Done;
use crate::flow::tools::Tools;
use crate::flow::{FlowError, FlowRequest, files, multipliers, timing};
use std::path::Path;

impl Estimate {
    /// Estimates a netlist on a board.
    pub fn of(netlist: &Netlist, board: &Board) -> Estimate {
        let longest = timing::longest_path(netlist, board);
        Estimate {
            fmax_mhz: longest.as_ref().map(|longest| 1000.0 / longest.ns),
            critical_path: longest.map_or(Vec::new(), |longest| longest.path),
            resources: netlist.resources(board),
        }
    }
}

impl Report {
    pub(in crate::flow) fn new(
        request: &FlowRequest,
        tools: &Tools,
        netlist: &Netlist,
        estimate: Estimate,
        clock_mhz: f64,
        routed: Option<&Routed>,
    ) -> Report {
        let FlowRequest { board, config, .. } = request;
        let programs = [Some(&tools.yosys), tools.router.as_ref(), tools.packer.as_ref()];
        let mut not_done = Vec::new();
        if routed.is_none() {
            let why = match board.family.router() {
                Some(_) => "only an estimate was asked for",
                None => "there is no open router for this family",
            };
            not_done.push(format!("{NOT_ROUTED}: {why}"));
        }
        not_done.push("no power estimate: these tools do not make one".into());
        let fmax_mhz = routed.and_then(Routed::fmax);
        Report {
            board: board.name.clone(),
            device: board.device.clone(),
            link: board.host.device(clock_mhz),
            wiring: board.host.wiring(board.io_volts),
            config: config.name.clone(),
            hw: request.hw.into(),
            config_hash: format!("{:016x}", config.hash()),
            tools: programs.into_iter().flatten().map(|tool| (tool.name.to_string(), tool.version.clone())).collect(),
            cells: netlist.total(board.family),
            modules: netlist
                .by_module(board.family)
                .into_iter()
                .map(|(module, cells)| ModuleCells { module, cells })
                .collect(),
            planned_multipliers: multipliers::planned(board, config),
            estimate,
            resources: routed.map_or(Vec::new(), Routed::resources),
            clock_mhz,
            wanted_mhz: request.mhz,
            fmax_mhz,
            slow: fmax_mhz.is_some_and(|fmax| fmax < clock_mhz),
            critical_path: routed.map_or(Vec::new(), Routed::critical_path),
            seed: request.seed,
            gops: 2.0 * config.macs_per_cycle() as f64 * clock_mhz / 1e3,
            bitstream: None,
            checks: Vec::new(),
            refused: None,
            not_done,
        }
    }

    /// Writes the report and its summary into a folder.
    ///
    /// # Errors
    /// [`FlowError::Io`].
    pub fn write(&self, dir: &Path) -> Result<(), FlowError> {
        files::write(&dir.join(SUMMARY), self.summary().as_bytes())?;
        files::write(&dir.join(REPORT), self.json().as_bytes())
    }
}

/// Reads the size and hash of the bitstream that a step made.
pub(in crate::flow) fn bitstream(packed: &Done, file: &str) -> Result<Bitstream, FlowError> {
    let path = packed.file(file);
    let bytes = std::fs::read(&path).map_err(|error| FlowError::io(&path, &error))?;
    Ok(Bitstream::of(file, &bytes))
}

/// Returns which resources of the part a netlist exceeds, with numbers and the largest modules; `None` if it fits.
pub(in crate::flow) fn refusal(netlist: &Netlist, board: &Board) -> Option<String> {
    let over: Vec<String> = netlist
        .resources(board)
        .into_iter()
        .filter(|resource| resource.used > resource.available)
        .map(|Resource { name, used, available }| format!("{used} of {available} {name}"))
        .collect();
    if over.is_empty() {
        return None;
    }
    let mut modules: Vec<(String, Cells)> = netlist.by_module(board.family).into_iter().collect();
    modules.sort_by_key(|(_, cells)| std::cmp::Reverse(cells.luts));
    let largest: Vec<String> = modules.iter().take(5).map(|(name, cells)| format!("{name} {}", cells.luts)).collect();
    Some(format!(
        "it needs {}; the modules with the most look-up tables are {}",
        over.join(" and "),
        largest.join(", ")
    ))
}
