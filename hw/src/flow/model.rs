//! Makes netlists that can be simulated: replaces each cell by its model, and the models by gates, registers and
//! memories.

use super::board::Board;
use super::design::{ROUTED_NETLIST, TOP};
use super::family::Family;
use super::steps::{Done, FlowStep, Input, Progress, READ_BACK};
use super::tools::{self, Tools};
use super::{FlowError, FlowOutcome, design, routed};
use std::path::Path;

const OWN: &str = "own_models.v";
const SCRIPT: &str = "model.ys";
/// The file of the netlist that can be simulated.
pub const MODEL: &str = "model.json";
/// Yosys's errors for a cell without a module, and for a cell whose module is only declared.
const UNKNOWN_CELL: &str = "is not part of the design";
const CELL_LEFT: &str = "Assertion failed: selection is not empty";
/// Prefix of the module that a model instantiates if it does not cover the use of its cell.
const NO_MODEL: &str = "TW_NO_MODEL_OF_";
/// A stage of a flow whose netlist can be checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The output of synthesis.
    Synthesized,
    /// The output of place and route.
    Routed,
    /// The bitstream.
    Bitstream,
}

impl Stage {
    /// All stages, in the flow's order.
    pub const ALL: [Stage; 3] = [Stage::Synthesized, Stage::Routed, Stage::Bitstream];

    /// Returns the name for people.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Synthesized => "synthesized netlist",
            Stage::Routed => "routed netlist",
            Stage::Bitstream => "bitstream",
        }
    }
}

/// Makes the netlist of a stage that can be simulated, as the file [`MODEL`] with the top module [`TOP`]. `None` if the
/// flow ended before this stage.
///
/// # Errors
/// [`FlowError::Unfit`] if the netlist cannot be simulated, for example because a cell has no model;
/// [`FlowError::MissingTool`], [`FlowError::Tool`].
pub fn model(
    board: &Board,
    stage: Stage,
    outcome: &FlowOutcome,
    cache: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<Option<Done>, FlowError> {
    let from = match stage {
        Stage::Synthesized => Some(&outcome.synthesized),
        Stage::Routed => outcome.routed.as_ref(),
        Stage::Bitstream => outcome.packed.as_ref(),
    };
    let Some(from) = from else { return Ok(None) };
    let unfit = |reason: &str| FlowError::Unfit {
        board: board.name.clone(),
        config: stage.name().into(),
        reason: reason.into(),
    };
    let own = board.family.definition().own_models.ok_or_else(|| unfit("there are no models of its family's cells"))?;
    let netlist = match stage {
        Stage::Synthesized => from.input(design::NETLIST)?,
        Stage::Routed => {
            let open = from.input(ROUTED_NETLIST)?;
            let file = from.file(ROUTED_NETLIST).display().to_string();
            Input::new(ROUTED_NETLIST, routed::closed(&board.family.definition().open_inputs, &file, &open.bytes)?)
        }
        Stage::Bitstream => {
            let tools = tools::find_readers(board.family, &outcome.tools)?
                .ok_or_else(|| unfit("no open tool makes a netlist of its family's bitstreams"))?;
            let unpacked = FlowStep::unpack(board, &tools, from)?.run(cache, progress)?;
            FlowStep::read_back(board, &tools, &unpacked)?.run(cache, progress)?.input(READ_BACK)?
        }
    };
    modeled(board.family, own, &outcome.tools, stage, netlist, cache, progress).map(Some).map_err(|error| {
        let missing = match &error {
            FlowError::Tool { reason, .. } => without_model(reason),
            _ => None,
        };
        missing.map_or(error, |reason| unfit(&reason))
    })
}

/// Replaces the cells of a netlist by gates, with `own` models in place of some of Yosys's.
fn modeled(
    family: Family,
    own: &str,
    tools: &Tools,
    stage: Stage,
    netlist: Input,
    cache: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<Done, FlowError> {
    let script = script(family, tools, stage, &netlist.name);
    let inputs = vec![
        netlist,
        Input::new(OWN, [family.board_cells().unwrap_or_default(), own].concat()),
        Input::new(SCRIPT, script.join("\n") + "\n"),
    ];
    FlowStep::script("model", tools, SCRIPT, inputs, vec![MODEL.into()]).run(cache, progress)
}

/// Returns the reason if Yosys's error says that a cell has no model.
fn without_model(reason: &str) -> Option<String> {
    let line = reason.lines().find(|line| line.contains(UNKNOWN_CELL) || line.contains(CELL_LEFT))?;
    let kind = line.split_once("Module `").and_then(|(_, rest)| rest.split_once('\''));
    let kind = kind.map_or("one of its cells", |(kind, _)| kind.trim_start_matches('\\'));
    let kind = match kind.strip_prefix(NO_MODEL) {
        Some(what) => what.to_lowercase().replace('_', " "),
        None => kind.to_string(),
    };
    Some(format!("there is no model of {kind}"))
}

/// Returns the Yosys commands that read the models of a family's cells for a netlist with the top module `top`. The
/// models are Yosys's; those in the file `own` replace Yosys's models of the same name.
pub fn read_models(family: Family, tools: &Tools, top: &str, own: &Path) -> [String; 4] {
    // Models instantiate other cells of the family, so all of Yosys's models are read first. Those that are not used
    // are not elaborated.
    let models = tools.share.join(family.cell_models());
    let folder = models.parent().unwrap_or(Path::new("."));
    [
        // Remaining declarations of the cells would conflict with the models.
        format!("delete =* {top} %d"),
        "delete t:$scopeinfo".into(),
        format!("read_verilog -defer -overwrite -I{} {}", folder.display(), models.display()),
        format!("read_verilog -defer -overwrite -icells {}", own.display()),
    ]
}

/// Replaces all cells by gates, except look-up tables and memories.
const GATES: &str = "techmap t:$* t:$lut %d t:$mem_v2 %d";

/// Writes the Yosys script for the netlist in a file.
fn script(family: Family, tools: &Tools, stage: Stage, file: &str) -> Vec<String> {
    let mut script = vec![match stage {
        Stage::Bitstream => format!("read_verilog {file}"),
        Stage::Synthesized | Stage::Routed => format!("read_json {file}"),
    }];
    script.extend(read_models(family, tools, TOP, Path::new(OWN)));
    script.extend([
        format!("hierarchy -check -top {TOP}"),
        "proc".into(),
        "flatten -wb -noscopeinfo".into(),
        // A cell that remains has no model.
        "select -assert-none t:* t:$* %d t:$paramod* %u".into(),
        "memory_collect".into(),
        "opt_expr".into(),
        "opt_clean".into(),
        "alumacc".into(),
        "maccmap -unmap".into(),
        GATES.into(),
        // `maccmap` made full adders of products, and the first pass leaves them.
        GATES.into(),
        "opt_expr".into(),
        "opt_clean -purge".into(),
        format!("write_json {MODEL}"),
    ]);
    script
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The error for a cell without a model names its kind. It differs from other failures of Yosys.
    #[test]
    fn a_cell_without_a_model_is_named() {
        let tools = match tools::find_synthesis() {
            Ok(tools) => tools,
            Err(error) => return tilewright_testing::skip(&error.to_string()),
        };
        let dir = tempfile::tempdir().unwrap();
        let made = |family: Family, (kind, output): (&str, &str), parameters: serde_json::Value| {
            let own = family.definition().own_models.unwrap_or_default();
            let cell = json!({
                "hide_name": 0, "type": kind, "parameters": parameters, "attributes": {}, "port_directions": {output: "output"},
                "connections": {output: [2]},
            });
            let module = json!({
                "ports": {"led": {"direction": "output", "bits": [2]}}, "cells": {"a": cell},
                "netnames": {"led": {"hide_name": 0, "bits": [2], "attributes": {}}},
            });
            let netlist = Input::new(design::NETLIST, json!({ "modules": { TOP: module } }).to_string());
            modeled(family, own, &tools, Stage::Synthesized, netlist, dir.path(), &mut |_| {})
        };
        let reason = |family, cell, parameters| match made(family, cell, parameters) {
            Err(FlowError::Tool { reason, .. }) => without_model(&reason),
            other => panic!("{cell:?}: {other:?}"),
        };
        let (ice40, ecp5) = (Family::Ice40, Family::Ecp5);
        assert_eq!(reason(ice40, ("SB_NOVEL", "O"), json!({})), Some("there is no model of SB_NOVEL".into()));
        made(ice40, ("SB_LUT4", "O"), json!({})).unwrap();
        // So does the error for a use of a cell that its model does not cover.
        let (ram, multiplier, pin) = (("DP16KD", "DOA0"), ("MULT18X18D", "P0"), ("TRELLIS_IO", "O"));
        let contents = format!("1{}", "0".repeat(319));
        for (cell, key, value, expected) in [
            (ram, "REGMODE_B", "OUTREG", "an output register of a block ram"),
            (ram, "INITVAL_1F", contents.as_str(), "first contents of a block ram"),
            (multiplier, "MULT_BYPASS", "ENABLED", "this use of a multiplier"),
            (pin, "DATAMUX_MDDR", "IOLDO", "this data of a pin"),
        ] {
            let expected = Some(format!("there is no model of {expected}"));
            assert_eq!(reason(ecp5, cell, json!({ key: value })), expected, "{key}");
            made(ecp5, cell, json!({})).unwrap();
        }
        assert_eq!(without_model("signal: 11\nERROR: Can't open file"), None);
        assert_eq!(
            without_model("ERROR: Assertion failed: selection is not empty: t:*"),
            Some("there is no model of one of its cells".into())
        );
    }
}
