//! The result of a flow.

use super::report::Report;
use super::steps::Done;
use super::tools::Tools;

/// The result of a flow, with the steps that made it.
#[derive(Debug, Clone)]
pub struct FlowOutcome {
    /// The report.
    pub report: Report,
    /// The programs that were called.
    pub tools: Tools,
    /// The synthesized netlist.
    pub synthesized: Done,
    /// The routed netlist; `None` if no open program routes the part, or only an estimate was asked for.
    pub routed: Option<Done>,
    /// The bitstream; `None` without a routed netlist.
    pub packed: Option<Done>,
}
