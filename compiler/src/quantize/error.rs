//! What can be wrong with a quantization.

use crate::graph::GraphError;
use crate::passes::PassError;

/// Why a network was not quantized.
#[derive(Debug, thiserror::Error)]
pub enum QuantizeError {
    /// A network that is quantized already, at least in part.
    #[error("the model is quantized already: node `{node}` is {op}; give the float model that it was made from")]
    AlreadyQuantized {
        /// The first node of integers.
        node: String,
        /// Its operator.
        op: String,
    },
    /// A network that has nothing to quantize.
    #[error(
        "the model has no operator that can be quantized: no convolution, matrix product, sum or pooling of floats"
    )]
    NothingToQuantize,
    /// A value whose size is open.
    #[error("value {value} has the open shape {shape}; give its sizes with --bind SYMBOL=SIZE")]
    OpenShape {
        /// The value.
        value: String,
        /// Its type.
        shape: String,
    },
    /// A node to be kept in floats that is not there.
    #[error(
        "the model has no node {name} that computes floats; choose one that the table of layers or the report names, such as {}",
        known.join(", ")
    )]
    NoNode {
        /// The name given.
        name: String,
        /// Some of the model's.
        known: Vec<String>,
    },
    /// No data to calibrate with.
    #[error("there are no calibration data; give at least one sample, better a hundred")]
    NoSamples,
    /// A value that is not finite for some sample.
    #[error(
        "value {value} is not finite for calibration sample {sample}; leave that sample out, or look at the model with it"
    )]
    NotFinite {
        /// The value.
        value: String,
        /// The sample, from 0.
        sample: usize,
    },
    /// The network does not run.
    #[error("calibration sample {sample}: {reason}")]
    Run {
        /// The sample, from 0.
        sample: usize,
        /// What is wrong.
        reason: String,
    },
    /// The network was not made ready to run.
    #[error("cannot run the {form} network: {reason}")]
    Open {
        /// Float or quantized.
        form: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// A pass went wrong.
    #[error(transparent)]
    Pass(#[from] PassError),
    /// An unsound graph, which is an error of the quantization.
    #[error(transparent)]
    Graph(Box<GraphError>),
}

impl From<GraphError> for QuantizeError {
    fn from(e: GraphError) -> QuantizeError {
        QuantizeError::Graph(Box::new(e))
    }
}
