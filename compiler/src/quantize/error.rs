//! Errors of quantization.

use crate::graph::GraphError;
use crate::passes::PassError;

/// The reason why a network was not quantized.
#[derive(Debug, thiserror::Error)]
pub enum QuantizeError {
    /// The network is quantized already, at least in part.
    #[error("the model is quantized already: node `{node}` is {op}; give the float model that it was made from")]
    AlreadyQuantized {
        /// The first integer node.
        node: String,
        /// Its operator.
        op: String,
    },
    /// The network has nothing to quantize.
    #[error(
        "the model has no operator that can be quantized: no convolution, matrix product, sum or pooling of floats"
    )]
    NothingToQuantize,
    /// A value has an open size.
    #[error("value {value} has the open shape {shape}; give its sizes with --bind SYMBOL=SIZE")]
    OpenShape {
        /// The value.
        value: String,
        /// Its type.
        shape: String,
    },
    /// A node to keep in float does not exist.
    #[error(
        "the model has no node {name} that computes floats; choose one from the table of layers or the report, \
         such as {}",
        known.join(", ")
    )]
    NoNode {
        /// The given name.
        name: String,
        /// Some names of nodes in the model.
        known: Vec<String>,
    },
    /// There are no calibration data.
    #[error("there are no calibration data; give at least one sample, better a hundred")]
    NoSamples,
    /// A value is not finite for some sample.
    #[error(
        "value {value} is not finite for calibration sample {sample}; leave that sample out, or look at the model with it"
    )]
    NotFinite {
        /// The value.
        value: String,
        /// The sample, from 0.
        sample: usize,
    },
    /// The network failed on a sample.
    #[error("calibration sample {sample}: {reason}")]
    Run {
        /// The sample, from 0.
        sample: usize,
        /// What is wrong.
        reason: String,
    },
    /// The network could not be prepared for running.
    #[error("cannot run the {form} network: {reason}")]
    Open {
        /// Float or quantized.
        form: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// A pass failed.
    #[error(transparent)]
    Pass(#[from] PassError),
    /// The graph is invalid, which is a bug in the quantization.
    #[error(transparent)]
    Graph(Box<GraphError>),
}

impl From<GraphError> for QuantizeError {
    fn from(e: GraphError) -> QuantizeError {
        QuantizeError::Graph(Box::new(e))
    }
}
