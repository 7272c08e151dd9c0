//! What a flow leaves.

use super::report::Report;
use super::steps::Done;
use super::tools::Tools;

/// A flow's result and what it was made of.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The report.
    pub report: Report,
    /// The programs.
    pub tools: Tools,
    /// The synthesized netlist.
    pub synthesized: Done,
    /// The routed netlist, where there is an open router.
    pub routed: Option<Done>,
    /// The bitstream, where it was packed.
    pub packed: Option<Done>,
}
