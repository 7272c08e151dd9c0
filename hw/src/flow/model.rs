//! A netlist as plain Verilog for simulation: each cell is replaced by its model.

use super::design::{ROUTED_NETLIST, TOP};
use super::family::Family;
use super::steps::{Done, Step};
use super::tools::Tools;
use super::{FlowError, Progress, design, routed};
use std::path::Path;

/// The project's own models, which take the place of Yosys's.
const ICE40: &str = include_str!("../../cells/ice40.v");
const ECP5: &str = include_str!("../../cells/ecp5.v");
const OWN: &str = "own_models.v";
const SCRIPT: &str = "model.ys";

/// Which netlist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// What synthesis wrote.
    Synthesized,
    /// What place and route wrote.
    Routed,
}

impl Stage {
    /// The name for people.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Synthesized => "synthesized netlist",
            Stage::Routed => "routed netlist",
        }
    }

    /// The Verilog's file.
    pub fn file(self) -> &'static str {
        match self {
            Stage::Synthesized => "synthesized_model.v",
            Stage::Routed => "routed_model.v",
        }
    }
}

/// Writes a netlist of `from` with its cells' models; its top module is [`TOP`].
///
/// # Errors
/// [`FlowError::Unfit`] for a family without models; [`FlowError::Tool`], also where a cell has no model.
pub fn model(
    family: Family,
    stage: Stage,
    tools: &Tools,
    from: &Done,
    cache: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<Done, FlowError> {
    let own = match family {
        Family::Ice40 => ICE40,
        Family::Ecp5 => ECP5,
        Family::Gowin | Family::Nexus | Family::Xc7 | Family::Xcup => {
            return Err(FlowError::Unfit {
                board: family.name().into(),
                config: stage.name().into(),
                reason: "there are no models of its cells, so its netlists are not simulated".into(),
            });
        }
    };
    let netlist = match stage {
        Stage::Synthesized => design::NETLIST,
        Stage::Routed => ROUTED_NETLIST,
    };
    // Models of cells name others of the same family, so all of Yosys's are read first.
    let models = tools.share.join(family.cell_models());
    let folder = models.parent().unwrap_or(Path::new("."));
    let script = [
        format!("read_json {netlist}"),
        // What is left of the cells' declarations would stand in the models' way.
        format!("delete =* {TOP} %d"),
        format!("read_verilog -overwrite -I{} {}", folder.display(), models.display()),
        format!("read_verilog -overwrite {OWN}"),
        format!("hierarchy -check -top {TOP}"),
        "proc".into(),
        "flatten -wb".into(),
        // Names of signals that are others' aliases would make up most of the simulator.
        "opt_clean -purge".into(),
        // A cell that is left has no model.
        "select -assert-none t:* t:$* %d t:$paramod* %u".into(),
        format!("write_verilog -noattr {}", stage.file()),
    ];
    let (name, text) = from.input(netlist)?;
    let text = match stage {
        Stage::Synthesized => text,
        Stage::Routed => routed::closed(&from.file(&name).display().to_string(), &text)?,
    };
    let inputs = vec![
        (name, text),
        (OWN.to_string(), own.as_bytes().to_vec()),
        (SCRIPT.to_string(), (script.join("\n") + "\n").into_bytes()),
    ];
    Step::script("model", tools, SCRIPT, inputs, vec![stage.file().into()]).run(cache, progress)
}
