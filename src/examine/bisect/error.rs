//! Why a bisection has no result.

use tilewright_compiler::graph::GraphError;
use tilewright_compiler::passes::PassError;

/// Why patches could not be judged.
#[derive(Debug, thiserror::Error)]
pub enum BisectError {
    /// A pass that goes wrong by itself.
    #[error(transparent)]
    Pass(#[from] PassError),
    /// A graph that cannot be evaluated.
    #[error("the graph after {patches} patches cannot be evaluated: {source}")]
    Eval {
        /// Patches.
        patches: usize,
        /// Why.
        source: Box<GraphError>,
    },
}
