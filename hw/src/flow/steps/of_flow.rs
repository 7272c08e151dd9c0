//! The steps of a flow: inputs, arguments and outputs of each program.

use super::{Done, FlowStep, Input, YOSYS_LOG, log_of};
use crate::flow::board::Board;
use crate::flow::design::{self, Sources};
use crate::flow::family::{Definition, Files};
use crate::flow::tools::{Readers, Tools};
use crate::flow::{FlowError, FlowRequest};

/// Names of the steps whose files are copied to the flow's folder.
const SYNTHESIS: &str = "synthesis";
const ROUTE: &str = "place and route";
const PACK: &str = "bitstream";

/// Returns the logs of those steps.
pub(in crate::flow) fn logs() -> impl Iterator<Item = String> {
    [SYNTHESIS, ROUTE, PACK].into_iter().map(log_of).chain([YOSYS_LOG.to_string()])
}

/// The Verilog that is read back from a bitstream.
pub(in crate::flow) const READ_BACK: &str = "read_back.v";

impl<'a> FlowStep<'a> {
    /// Synthesis: sources to a netlist of the family's cells.
    pub(in crate::flow) fn synthesis(tools: &'a Tools, sources: &Sources) -> FlowStep<'a> {
        let mut outputs = vec![design::NETLIST.to_string(), design::NETLIST_VERILOG.into()];
        // The sources are part of the result.
        outputs.extend(sources.files.iter().map(|file| file.name.clone()));
        let inputs = sources.files.iter().map(|file| Input::new(&file.name, file.text.as_bytes())).collect();
        FlowStep::script(SYNTHESIS, tools, design::SCRIPT, inputs, outputs)
    }

    /// A run of a Yosys script.
    pub(in crate::flow) fn script(
        name: &'static str,
        tools: &'a Tools,
        script: &str,
        inputs: Vec<Input>,
        mut outputs: Vec<String>,
    ) -> FlowStep<'a> {
        outputs.push(YOSYS_LOG.into());
        let arguments = vec!["-ql".into(), YOSYS_LOG.into(), script.into()];
        FlowStep { name, tool: &tools.yosys, arguments, inputs, outputs }
    }

    /// Place and route of a netlist.
    ///
    /// # Errors
    /// [`FlowError::MissingTool`] without a router, [`FlowError::Io`].
    pub(in crate::flow) fn route(
        request: &FlowRequest,
        tools: &'a Tools,
        synthesis: &Done,
    ) -> Result<FlowStep<'a>, FlowError> {
        let family = request.board.family;
        let tool = tools.router.as_ref().ok_or_else(|| FlowError::MissingTool {
            tool: "nextpnr".into(),
            reason: format!("does not route parts of {}", family.name()),
            remedy: family.definition().programs.install.into(),
        })?;
        let Definition { files, route_options, .. } = family.definition();
        let mut arguments = request.board.chip().map_or(Vec::new(), |chip| route_options(&chip));
        arguments.extend([
            "--json".into(),
            design::NETLIST.into(),
            "--write".into(),
            design::ROUTED_NETLIST.into(),
            "--report".into(),
            design::ROUTE_REPORT.into(),
            "--freq".into(),
            format!("{}", request.mhz),
            "--seed".into(),
            format!("{}", request.seed),
            "--timing-allow-fail".into(),
        ]);
        let mut outputs = vec![design::ROUTED_NETLIST.to_string(), design::ROUTE_REPORT.into()];
        if files.routed != design::ROUTED_NETLIST {
            outputs.push(files.routed.into());
        }
        Ok(FlowStep {
            name: ROUTE,
            tool,
            arguments,
            inputs: vec![synthesis.input(design::NETLIST)?, synthesis.input(files.constraints)?],
            outputs,
        })
    }

    /// Packing a routed design to a bitstream.
    ///
    /// # Errors
    /// [`FlowError::MissingTool`] without a packer, [`FlowError::Io`].
    pub(in crate::flow) fn pack(
        request: &FlowRequest,
        tools: &'a Tools,
        routed: &Done,
    ) -> Result<FlowStep<'a>, FlowError> {
        let family = request.board.family;
        let tool = tools.packer.as_ref().ok_or_else(|| FlowError::MissingTool {
            tool: family.packer().into(),
            reason: "was not found".into(),
            remedy: family.definition().programs.install.into(),
        })?;
        let Definition { files, pack_options, .. } = family.definition();
        Ok(FlowStep {
            name: PACK,
            tool,
            arguments: request.board.chip().map_or(Vec::new(), |chip| pack_options(&chip)),
            inputs: vec![routed.input(files.routed)?],
            outputs: vec![files.bitstream.into()],
        })
    }

    /// Unpacking a bitstream to the packer's input.
    ///
    /// # Errors
    /// [`FlowError::Io`].
    pub(in crate::flow) fn unpack(board: &Board, tools: &'a Readers, packed: &Done) -> Result<FlowStep<'a>, FlowError> {
        let Files { bitstream: from, routed: to, .. } = board.family.definition().files;
        Ok(FlowStep {
            name: "unpacking",
            tool: &tools.unpacker,
            arguments: vec![from.into(), to.into()],
            inputs: vec![packed.input(from)?],
            outputs: vec![to.into()],
        })
    }

    /// Reading the packer's input back as Verilog.
    ///
    /// # Errors
    /// [`FlowError::Io`].
    pub(in crate::flow) fn read_back(
        board: &Board,
        tools: &'a Readers,
        unpacked: &Done,
    ) -> Result<FlowStep<'a>, FlowError> {
        let Definition { files, bitstream_reader, .. } = board.family.definition();
        let options = bitstream_reader.as_ref().zip(board.chip()).map(|(reader, chip)| (reader.options)(&chip));
        let Files { routed: from, constraints: pins, .. } = *files;
        Ok(FlowStep {
            name: "reading back",
            tool: &tools.reader,
            arguments: [READ_BACK.to_string()].into_iter().chain(options.into_iter().flatten()).collect(),
            inputs: vec![unpacked.input(from)?, Input::new(pins, design::constraints(board))],
            outputs: vec![READ_BACK.into()],
        })
    }
}
