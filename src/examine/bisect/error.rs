//! Errors of a bisection.

use tilewright_compiler::graph::GraphError;
use tilewright_compiler::passes::PassError;

/// Why a bisection failed.
#[derive(Debug, thiserror::Error)]
pub enum BisectError {
    /// A pass failed.
    #[error(transparent)]
    Pass(#[from] PassError),
    /// A graph cannot be evaluated.
    #[error("the graph after {patches} patches cannot be evaluated: {source}")]
    Eval {
        /// Number of patches applied.
        patches: usize,
        /// The evaluator's error.
        source: Box<GraphError>,
    },
}
