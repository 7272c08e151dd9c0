//! Which passes run, in which order.

use super::{
    Canonicalize, ChannelsLast, DeadCode, FoldBias, FoldClip, FoldConstants, FoldPad, FoldScale, LegalizeQdq, Options,
    Pass, PassError, Report, SinkDequantize, run,
};
use crate::graph::Graph;

/// How much is done to a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum OptLevel {
    /// Only what back ends need: quantized groups become integer, and every layer and node is a program of its own.
    O0,
    /// One form for each thing, what is known is computed, and what follows each other in one place is joined.
    O1,
    /// Neighbouring operators become one, and tiles are those of the fewest estimated cycles.
    #[default]
    O2,
    /// All that there is.
    O3,
}

/// The passes of a level, in order.
pub fn passes(level: OptLevel) -> Vec<Box<dyn Pass>> {
    let mut list: Vec<Box<dyn Pass>> = Vec::new();
    if level >= OptLevel::O1 {
        list.push(Box::new(DeadCode));
        list.push(Box::new(Canonicalize));
    }
    if level >= OptLevel::O2 {
        list.push(Box::new(FoldScale));
        list.push(Box::new(FoldBias));
        // What stands behind a bias, as a normalisation does.
        list.push(Box::new(FoldScale));
        list.push(Box::new(FoldBias));
    }
    // Before constants are folded: the dequantized ones mark the groups.
    list.push(Box::new(SinkDequantize));
    list.push(Box::new(LegalizeQdq));
    if level >= OptLevel::O1 {
        list.push(Box::new(Canonicalize));
        list.push(Box::new(FoldConstants));
    }
    if level >= OptLevel::O2 {
        list.push(Box::new(FoldBias));
        list.push(Box::new(FoldPad));
        list.push(Box::new(FoldClip));
    }
    list.push(Box::new(DeadCode));
    list
}

/// What is done to the CPU's part of a graph, cut out of it, before its code is generated.
pub fn cpu_passes(level: OptLevel) -> Vec<Box<dyn Pass>> {
    if level < OptLevel::O2 {
        return Vec::new();
    }
    vec![Box::new(ChannelsLast), Box::new(Canonicalize), Box::new(FoldConstants), Box::new(DeadCode)]
}

/// What is done to a float network before it is quantized: everything that needs no integers.
pub fn float_passes() -> Vec<Box<dyn Pass>> {
    let mut list: Vec<Box<dyn Pass>> =
        vec![Box::new(DeadCode), Box::new(Canonicalize), Box::new(FoldConstants), Box::new(Canonicalize)];
    for _ in 0..2 {
        list.push(Box::new(FoldScale));
        list.push(Box::new(FoldBias));
    }
    list.push(Box::new(FoldPad));
    list.push(Box::new(DeadCode));
    list
}

/// The graph after the passes of a level.
///
/// # Errors
/// As [`run`].
pub fn optimize(g: Graph, level: OptLevel, options: Options) -> Result<(Graph, Report), PassError> {
    run(g, &passes(level), options)
}
