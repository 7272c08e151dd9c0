//! Post-training quantization: a float network and samples of its data in, a network of int8 behind `quantize` and
//! `dequantize` out, which ONNX files can hold and the passes make integer.
//!
//! [`prepare`](prepare()) brings the network into the form that is quantized, [`plan`] says which values become integers,
//! samples are run over it with all of these in sight, [`range`] finds their scales, and [`quantize`] puts everything
//! together and says how far each layer is from its float value. An [`Engine`] runs networks: compiled code is a
//! hundred times faster than the evaluator, and the compiler knows none of its back ends.

mod correct;
mod equalize;
mod error;
pub mod histogram;
mod insert;
pub(crate) mod layout;
mod observe;
pub mod plan;
mod prepare;
pub mod range;
mod scales;

pub use error::QuantizeError;
pub use prepare::prepare;
pub use range::{Method, Params};

use crate::graph::{Graph, NodeId, Tensor, ValueId, eval};
use plan::{Plan, Role};
use std::collections::BTreeMap;

/// Makes networks ready to run.
pub trait Engine {
    /// A network, float or with `quantize` and `dequantize` in it, ready to run.
    ///
    /// # Errors
    /// What is wrong, in words.
    fn open(&self, graph: &Graph) -> Result<Box<dyn Run>, String>;
}

/// A network that is ready to run.
pub trait Run {
    /// The outputs for these inputs.
    ///
    /// # Errors
    /// What is wrong, in words.
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, String>;
}

/// The reference evaluator as an engine: slow, and always there.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reference;

impl Engine for Reference {
    fn open(&self, graph: &Graph) -> Result<Box<dyn Run>, String> {
        Ok(Box::new(graph.clone()))
    }
}

impl Run for Graph {
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, String> {
        eval(self, inputs).map_err(|e| e.to_string())
    }
}

/// How a network is quantized.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// How ranges of activations are chosen.
    pub method: Method,
    /// A step for each output channel of weights, or one for all.
    pub per_channel: bool,
    /// Takes off each bias what rounding the weights adds to the mean.
    pub bias_correction: bool,
    /// Scales channels between layers so that they share ranges well, where the network's outputs gain from it.
    pub equalize: bool,
}

/// What equalisation did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Equalized {
    /// Pairs of layers that were scaled.
    pub pairs: usize,
    /// Signal over noise of the first output without it, in decibels.
    pub before_db: f64,
    /// The same with it.
    pub after_db: f64,
}

impl Equalized {
    /// Whether it helped, and therefore was kept.
    pub fn kept(&self) -> bool {
        self.after_db > self.before_db
    }
}

/// A step of the work, of which so many pieces of so many are done.
pub type Told<'a> = dyn FnMut(&str, usize, usize) + 'a;

/// How far a layer's result is from the float network's.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// The float network's node, or input.
    pub name: String,
    /// Its operator.
    pub op: String,
    /// Scale and zero point of its result.
    pub params: Params,
    /// Signal over noise in decibels: energy of the float value over that of the difference. Infinite without a difference.
    pub sqnr_db: f64,
}

/// A quantized network and what is known of it.
#[derive(Debug, Clone)]
pub struct Quantized {
    /// The network: floats between `quantize` and `dequantize`.
    pub graph: Graph,
    /// Quantized values in the order in which they are computed.
    pub layers: Vec<Layer>,
    /// Signal over noise of the network's outputs.
    pub output_db: Vec<f64>,
    /// Nodes that stay float, with their operators.
    pub float_nodes: Vec<(String, String)>,
    /// What equalisation did, where it was asked for.
    pub equalized: Option<Equalized>,
}

/// Most samples that signal and noise are measured on.
const MEASURED: usize = 32;

/// Quantizes a network that [`prepare`](prepare()) made, with samples of all of its inputs.
///
/// # Errors
/// [`QuantizeError`], naming the value or the sample.
pub fn quantize(
    graph: &Graph,
    samples: &[Vec<Tensor>],
    options: &Options,
    engine: &dyn Engine,
    told: &mut Told,
) -> Result<Quantized, QuantizeError> {
    if samples.is_empty() {
        return Err(QuantizeError::NoSamples);
    }
    let plan = Plan::new(graph);
    if !plan.roles.iter().any(|r| matches!(r, Role::Product | Role::Join)) {
        return Err(QuantizeError::NothingToQuantize);
    }
    let (mut plainly, seen) = attempt(graph, &plan, samples, options, engine, told)?;
    if !options.equalize {
        return Ok(plainly);
    }
    let (scaled, pairs) = equalize::equalize(graph, &plan, &seen, options.per_channel)?;
    let db = |q: &Quantized| q.output_db.first().copied().unwrap_or(f64::NAN);
    let before_db = db(&plainly);
    if pairs == 0 {
        plainly.equalized = Some(Equalized { pairs, before_db, after_db: before_db });
        return Ok(plainly);
    }
    // Values keep their places, so the plan holds for both.
    let (mut equal, _) = attempt(&scaled, &plan, samples, options, engine, told)?;
    let found = Equalized { pairs, before_db, after_db: db(&equal) };
    (plainly.equalized, equal.equalized) = (Some(found), Some(found));
    Ok(if found.kept() { equal } else { plainly })
}

fn attempt(
    graph: &Graph,
    plan: &Plan,
    samples: &[Vec<Tensor>],
    options: &Options,
    engine: &dyn Engine,
    told: &mut Told,
) -> Result<(Quantized, BTreeMap<ValueId, observe::Seen>), QuantizeError> {
    let values: Vec<ValueId> = (0..graph.value_count()).map(ValueId).filter(|v| plan.quantized[v.0]).collect();
    let total = 2 * samples.len();
    let seen = observe::observe(engine, graph, &values, samples, &mut |n| told("calibrate", n, total))?;
    let seen: BTreeMap<ValueId, observe::Seen> = values.iter().copied().zip(seen).collect();
    let params = scales::scales(graph, plan, &seen, options.method);
    let mut biases: BTreeMap<NodeId, Vec<f32>> = BTreeMap::new();
    if options.bias_correction {
        biases = correct::corrections(graph, plan, &params, &seen, options.per_channel)?;
    }
    let inserted = insert::insert(graph, plan, &params, &biases, options.per_channel)?;
    let measured = &samples[..samples.len().min(MEASURED)];
    Ok((report(graph, plan, &params, inserted, measured, engine, told)?, seen))
}

fn report(
    graph: &Graph,
    plan: &Plan,
    params: &BTreeMap<ValueId, Params>,
    inserted: insert::Inserted,
    samples: &[Vec<Tensor>],
    engine: &dyn Engine,
    told: &mut Told,
) -> Result<Quantized, QuantizeError> {
    let is_float = |v: ValueId| graph.ty(v).dtype == crate::graph::DType::F32;
    let outputs: Vec<usize> = (0..graph.outputs().len()).filter(|&i| is_float(graph.outputs()[i].1)).collect();
    let mut left: Vec<ValueId> = inserted.real.keys().copied().collect();
    let mut right: Vec<ValueId> = inserted.real.values().copied().collect();
    left.extend(outputs.iter().map(|&i| graph.outputs()[i].1));
    right.extend(outputs.iter().map(|&i| inserted.graph.outputs()[i].1));
    let n = samples.len();
    let energies =
        observe::compare(engine, (graph, &left), (&inserted.graph, &right), samples, &mut |i| told("compare", i, n))?;
    let layer = |(v, e): (&ValueId, &observe::Energy)| {
        let op = graph.def_node(*v).map_or("input", |(_, n)| n.op.name());
        let params = *params.get(v)?;
        Some(Layer { name: graph.value_name(*v).into(), op: op.into(), params, sqnr_db: e.decibels() })
    };
    let layers = inserted.real.keys().zip(&energies).filter_map(layer).collect();
    let output_db = energies[inserted.real.len()..].iter().map(observe::Energy::decibels).collect();
    let float_nodes = graph.nodes().filter(|(id, _)| plan.roles[id.0] == Role::Float);
    let float_nodes = float_nodes.map(|(_, n)| (n.name.clone(), n.op.name().to_string())).collect();
    Ok(Quantized { graph: inserted.graph, layers, output_db, float_nodes, equalized: None })
}

#[cfg(test)]
mod tests;
