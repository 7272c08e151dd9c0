//! Networks of well-known shapes with random weights, quantized. In a simulator they take the same time as the trained
//! networks.
//!
//! Weights come from a fixed seed and are scaled so that activations keep their magnitude from layer to layer. A random
//! input determines the scales of the quantized tensors, so that nothing saturates.

mod convolutional;
mod layers;
mod net;
mod transformers;

use std::fmt::Write as _;

use tilewright_compiler::frontend::onnx::{self, WriteError};
use tilewright_compiler::graph::{DType, Graph, GraphError, Tensor};
use tilewright_compiler::quantize::{self, QuantizeError};
use tilewright_hw::config::HwConfig;

use crate::model::quantize::{Compiled, Method, MethodChoice, QuantizeOptions};
pub use layers::{LAYERS, Layer};
use net::Net;

/// Names of the complete networks.
pub const NETWORKS: &[&str] =
    &["resnet18", "resnet34", "resnet50", "mobilenet-v1", "mobilenet-v2", "vgg16", "deit-tiny", "bert-tiny"];

/// Why a network could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ShapeError {
    /// Unknown name.
    #[error("there is no network shape named {name}; use one of {}", names())]
    Unknown {
        /// The name.
        name: String,
    },
    /// The graph is invalid.
    #[error("{name}: {source}")]
    Graph {
        /// The network.
        name: String,
        /// The error.
        source: Box<GraphError>,
    },
    /// It cannot be quantized.
    #[error("{name}: {source}")]
    Quantize {
        /// The network.
        name: String,
        /// The quantizer's error.
        source: QuantizeError,
    },
    /// It has no ONNX form.
    #[error("{name}: {source}")]
    Write {
        /// The network.
        name: String,
        /// The writer's error.
        source: WriteError,
    },
}

fn names() -> String {
    let mut text = NETWORKS.join(", ");
    for layer in LAYERS {
        let _ = write!(text, ", {}", layer.name);
    }
    text + "; append -add to a layer's name to add a second input to its result, or -batchN to the name of a network of \
            pictures to compute N from 1 to 64 at once"
}

/// Most pictures that a network computes at once.
const MOST_BATCH: usize = 64;

/// The network's own name, and how many inputs it computes at once.
fn batched(name: &str) -> (&str, usize) {
    let batch = |text: &str| text.parse().ok().filter(|batch| (1..=MOST_BATCH).contains(batch));
    let found = name.rsplit_once("-batch").and_then(|(own, text)| Some((own, batch(text)?)));
    found.filter(|(own, _)| convolutional::NETWORKS.contains(own)).unwrap_or((name, 1))
}

/// Makes the float network with this name.
///
/// # Errors
/// [`ShapeError::Unknown`] or [`ShapeError::Graph`].
pub fn float(name: &str) -> Result<Graph, ShapeError> {
    let (own, batch) = batched(name);
    let mut net = Net::new(own);
    net.batch = batch;
    let built = match own {
        "resnet18" => convolutional::resnet(&mut net, [2, 2, 2, 2], false),
        "resnet34" => convolutional::resnet(&mut net, [3, 4, 6, 3], false),
        "resnet50" => convolutional::resnet(&mut net, [3, 4, 6, 3], true),
        "mobilenet-v1" => convolutional::mobilenet_v1(&mut net),
        "mobilenet-v2" => convolutional::mobilenet_v2(&mut net),
        "vgg16" => convolutional::vgg16(&mut net),
        "deit-tiny" => transformers::deit_tiny(&mut net),
        "bert-tiny" => transformers::bert_tiny(&mut net),
        _ => {
            let (layer, add) = name.strip_suffix("-add").map_or((name, false), |layer| (layer, true));
            let found = LAYERS.iter().find(|l| l.name == layer);
            found.ok_or_else(|| ShapeError::Unknown { name: name.to_string() })?.build(&mut net, add)
        }
    };
    let wrong = |source| ShapeError::Graph { name: name.to_string(), source: Box::new(source) };
    built.map_err(wrong)?;
    net.finish().map_err(wrong)
}

/// Makes the network with this name in int8, between `quantize` and `dequantize`.
///
/// # Errors
/// [`ShapeError`].
pub fn quantized(name: &str) -> Result<Graph, ShapeError> {
    let wrong = |source| ShapeError::Quantize { name: name.to_string(), source };
    let graph = quantize::prepare(float(name)?).map_err(wrong)?;
    let options = QuantizeOptions { method: MethodChoice::All(Method::MinMax), ..QuantizeOptions::default() };
    let engine = Compiled::new(&HwConfig::default());
    let done = quantize::quantize(&graph, &[input(&graph)], &options, &engine, &mut |_, _, _| {});
    Ok(done.map_err(wrong)?.graph)
}

/// Makes the network with this name as an ONNX file, in int8, or in floats if `floats` is true.
///
/// # Errors
/// [`ShapeError`].
pub fn onnx(name: &str, floats: bool) -> Result<Vec<u8>, ShapeError> {
    let graph = if floats { float(name) } else { quantized(name) }?;
    onnx::write(&graph).map_err(|source| ShapeError::Write { name: name.to_string(), source })
}

/// A random input: normally distributed floats, or integers below 1000.
pub fn input(graph: &Graph) -> Vec<Tensor> {
    let mut net = Net::new("input");
    let tensor = |net: &mut Net, v| {
        let ty = graph.ty(v);
        let shape = ty.shape().unwrap_or_default();
        match ty.dtype {
            DType::I64 => Tensor::from_fn(&shape, |_| (net.uniform() * 1000.0) as i64),
            _ => Tensor::from_fn(&shape, |_| net.normal()),
        }
    };
    graph.inputs().map(|(_, v)| tensor(&mut net, v)).collect()
}

#[cfg(test)]
mod tests;
