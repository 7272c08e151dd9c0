//! The passes of each optimization level, in order.

use super::added::with_added;
use super::{
    Canonicalize, ChannelsLast, DeadCode, FoldBias, FoldClip, FoldConstants, FoldPad, FoldScale, FuseLayerNorm,
    LegalizeQdq, Options, Pass, PassError, Report, SinkDequantize, run,
};
use crate::graph::Graph;

/// Optimization level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum OptLevel {
    /// Only what back ends need: quantized groups become integer, and every layer and node is a program of its own.
    O0,
    /// Adds canonical forms and constant folding; adjacent nodes on the same device share a program.
    O1,
    /// Adds operator fusion, and tiles with the fewest estimated cycles.
    #[default]
    O2,
    /// All optimizations.
    O3,
}

/// The passes of a level, in order, with those that the program [added](super::add).
pub fn passes(level: OptLevel) -> Vec<Box<dyn Pass>> {
    with_added(own_passes(level))
}

/// The compiler's own passes of a level, in order.
pub(super) fn own_passes(level: OptLevel) -> Vec<Box<dyn Pass>> {
    let mut list: Vec<Box<dyn Pass>> = Vec::new();
    if level >= OptLevel::O1 {
        list.push(Box::new(DeadCode));
        list.push(Box::new(Canonicalize));
        // Before its scale and bias are folded into neighbors.
        list.push(Box::new(FuseLayerNorm));
    }
    if level >= OptLevel::O2 {
        list.push(Box::new(FoldScale));
        list.push(Box::new(FoldBias));
        // Again, for what follows a bias, such as a normalization.
        list.push(Box::new(FoldScale));
        list.push(Box::new(FoldBias));
    }
    // Before constants are folded, because dequantized constants mark the groups.
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

/// The passes over the CPU's part of a graph, cut out of it, before code generation.
pub fn cpu_passes(level: OptLevel) -> Vec<Box<dyn Pass>> {
    if level < OptLevel::O2 {
        return Vec::new();
    }
    vec![Box::new(ChannelsLast), Box::new(Canonicalize), Box::new(FoldConstants), Box::new(DeadCode)]
}

/// The passes over a float network before it is quantized: everything that needs no integers.
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

/// Runs the passes of a level on a graph.
///
/// # Errors
/// Like [`run`].
pub fn optimize(g: Graph, level: OptLevel, options: Options) -> Result<(Graph, Report), PassError> {
    run(g, &passes(level), options)
}
