//! Post-training quantization: converts a float network and samples of its data to an int8 network with `quantize` and
//! `dequantize`, which ONNX files can hold and the passes make integer.
//!
//! - [`prepare`](prepare()) brings the network into the form that is quantized.
//! - [`plan`] decides which values become integers.
//! - The network runs over the samples with all of these values as outputs.
//! - [`range`] finds their scales; `search` finds the method that costs least at the outputs.
//! - [`quantize`] combines all this and measures how far each layer is from its float value.
//!
//! An [`Engine`] runs networks: compiled code is a hundred times faster than the evaluator, and this crate knows none
//! of its back ends.

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
mod search;
mod trial;
mod weak;

pub use error::QuantizeError;
pub use prepare::prepare;
pub use range::{Method, Params, WeightBits};
pub use weak::Weak;

use crate::graph::{Graph, NodeId, Tensor, ValueId, eval};
use insert::WeightForm;
use plan::{Plan, Role};
use scales::Ranges;
use std::collections::{BTreeMap, BTreeSet};

/// Prepares networks for running.
pub trait Engine {
    /// Prepares a network, float or with `quantize` and `dequantize` in it.
    ///
    /// # Errors
    /// A message that says what is wrong.
    fn open(&self, graph: &Graph) -> Result<Box<dyn RunnableNetwork>, String>;
}

/// A network that can run.
pub trait RunnableNetwork {
    /// Computes the outputs for these inputs.
    ///
    /// # Errors
    /// A message that says what is wrong.
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, String>;
}

/// The reference evaluator as an engine: slow, but always available.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reference;

impl Engine for Reference {
    fn open(&self, graph: &Graph) -> Result<Box<dyn RunnableNetwork>, String> {
        Ok(Box::new(graph.clone()))
    }
}

impl RunnableNetwork for Graph {
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, String> {
        eval(self, inputs).map_err(|e| e.to_string())
    }
}

/// How the range method of each tensor is chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MethodChoice {
    /// One method for all tensors.
    All(Method),
    /// For each tensor, the method that costs least at the network's outputs.
    Auto,
}

impl MethodChoice {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            MethodChoice::All(method) => method.name(),
            MethodChoice::Auto => "auto",
        }
    }
}

/// How a network is quantized.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The range method for activations.
    pub method: MethodChoice,
    /// One scale per output channel of weights instead of one for all.
    pub per_channel: bool,
    /// Number of bits of weights.
    pub weight_bits: WeightBits,
    /// Names of nodes that stay float.
    pub keep_float: Vec<String>,
    /// Layers with a signal-to-noise ratio below this, in decibels, are reported as weak.
    pub weak_db: f64,
    /// Subtracts from each bias what rounding the weights adds to the mean.
    pub bias_correction: bool,
    /// Scales channels between layers so that they use their range equally, if the network's outputs improve.
    pub equalize: bool,
}

impl Default for Options {
    /// The default options; they report no layer as weak.
    fn default() -> Options {
        Options {
            method: MethodChoice::Auto,
            per_channel: true,
            weight_bits: WeightBits::Eight,
            keep_float: Vec::new(),
            weak_db: f64::NEG_INFINITY,
            bias_correction: false,
            equalize: false,
        }
    }
}

impl Options {
    fn weights(&self) -> WeightForm {
        WeightForm { per_channel: self.per_channel, bits: self.weight_bits }
    }
}

/// The result of equalization.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Equalized {
    /// Number of pairs of layers that were scaled.
    pub pairs: usize,
    /// Signal-to-noise ratio of the first output without it, in decibels.
    pub before_db: f64,
    /// Signal-to-noise ratio of the first output with it, in decibels.
    pub after_db: f64,
}

impl Equalized {
    /// True if it helped and was therefore kept.
    pub fn kept(&self) -> bool {
        self.after_db > self.before_db
    }
}

/// Called with the name of a step, the number of its parts that are done, and the number of all parts.
pub type Told<'a> = dyn FnMut(&str, usize, usize) + 'a;

/// A quantized value and its error against the float network.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// The float network's node or input.
    pub name: String,
    /// Its operator.
    pub op: String,
    /// Scale and zero point of the result.
    pub params: Params,
    /// The method that found its range.
    pub method: Method,
    /// Signal-to-noise ratio in decibels: energy of the float value over that of the error. Infinite if there is no
    /// error.
    pub sqnr_db: f64,
}

/// A quantized network and its measurements.
#[derive(Debug, Clone)]
pub struct Quantized {
    /// The network: floats between `quantize` and `dequantize`.
    pub graph: Graph,
    /// Quantized values in the order of their computation.
    pub layers: Vec<Layer>,
    /// Signal-to-noise ratio of each float output, in decibels.
    pub output_db: Vec<f64>,
    /// Layers below the signal-to-noise ratio of the options, sorted by what the outputs gain if the layer stays float.
    pub weak: Vec<Weak>,
    /// Nodes that stay float, each with its operator.
    pub float_nodes: Vec<(String, String)>,
    /// The result of equalization, if it was requested.
    pub equalized: Option<Equalized>,
}

/// Maximum number of samples for measuring signal and noise.
const MEASURED: usize = 32;

/// Quantizes a network from [`prepare`](prepare()), with samples of all of its inputs.
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
    let kept = kept(graph, &options.keep_float)?;
    let plan = Plan::keeping(graph, &kept);
    if !plan.roles.iter().any(|r| matches!(r, Role::Product | Role::Join)) {
        return Err(QuantizeError::NothingToQuantize);
    }
    let request = |graph| QuantizeRequest { graph, plan: &plan, samples, options, engine };
    let (mut plainly, found) = request(graph).attempt(told)?;
    let scaled = match options.equalize {
        true => Some(equalize::equalize(graph, &plan, &found.seen, options.per_channel)?),
        false => None,
    };
    let db = |q: &Quantized| q.output_db.first().copied().unwrap_or(f64::NAN);
    let before_db = db(&plainly);
    let (graph, mut best, found) = match &scaled {
        None => (graph, plainly, found),
        Some((_, 0)) => {
            plainly.equalized = Some(Equalized { pairs: 0, before_db, after_db: before_db });
            (graph, plainly, found)
        }
        Some((scaled, pairs)) => {
            // Value ids stay the same, so the plan is valid for both.
            let (mut equal, found_equal) = request(scaled).attempt(told)?;
            let equalized = Equalized { pairs: *pairs, before_db, after_db: db(&equal) };
            (plainly.equalized, equal.equalized) = (Some(equalized), Some(equalized));
            if equalized.kept() { (scaled, equal, found_equal) } else { (graph, plainly, found) }
        }
    };
    best.weak = weak::weak(&request(graph), &kept, &found, &best, told)?;
    Ok(best)
}

/// The nodes with these names, each with the nodes that no integer separates from it.
fn kept(graph: &Graph, names: &[String]) -> Result<BTreeSet<NodeId>, QuantizeError> {
    let plan = Plan::new(graph);
    let computes = |id: &NodeId| !matches!(plan.roles[id.0], Role::Constant);
    let mut kept = BTreeSet::new();
    for name in names {
        let found = graph.nodes().find(|(id, node)| node.name == *name && computes(id));
        let Some((id, _)) = found else {
            let product = |(id, node): (NodeId, &crate::graph::Node)| {
                (plan.roles[id.0] == Role::Product).then(|| node.name.clone())
            };
            let known = graph.nodes().filter_map(product).take(4).collect();
            return Err(QuantizeError::NoNode { name: name.clone(), known });
        };
        kept.extend(plan.makers(graph, id));
    }
    Ok(kept)
}

/// A network to quantize, and how.
#[derive(Clone, Copy)]
struct QuantizeRequest<'w> {
    graph: &'w Graph,
    plan: &'w Plan,
    samples: &'w [Vec<Tensor>],
    options: &'w Options,
    engine: &'w dyn Engine,
}

/// Results for a network's values.
struct ValueResults {
    seen: BTreeMap<ValueId, observe::Seen>,
    /// The range method of each value that has its own scale.
    methods: BTreeMap<ValueId, Method>,
    params: BTreeMap<ValueId, Params>,
}

impl QuantizeRequest<'_> {
    fn attempt(&self, told: &mut Told) -> Result<(Quantized, ValueResults), QuantizeError> {
        let QuantizeRequest { graph, plan, samples, options, engine } = *self;
        let values: Vec<ValueId> = (0..graph.value_count()).map(ValueId).filter(|v| plan.quantized[v.0]).collect();
        let total = 2 * samples.len();
        let seen = observe::observe(engine, graph, &values, samples, &mut |n| told("calibrate", n, total))?;
        let seen: BTreeMap<ValueId, observe::Seen> = values.iter().copied().zip(seen).collect();
        let own = values.iter().copied().filter(|v| plan.like[v.0] == *v);
        let (methods, ranges): (BTreeMap<ValueId, Method>, Ranges) = match options.method {
            MethodChoice::All(method) => {
                let range = |v: ValueId| (v, method.range(&seen[&v].histogram));
                (own.clone().map(|v| (v, method)).collect(), own.map(range).collect())
            }
            MethodChoice::Auto => search::search(self, &seen, told)?,
        };
        let params = scales::scales(graph, plan, &ranges);
        let inserted = self.inserted(&params, &seen)?;
        let found = ValueResults { seen, methods, params };
        Ok((self.report(&found, inserted, told)?, found))
    }

    /// The network with integers inserted.
    fn inserted(
        &self,
        params: &BTreeMap<ValueId, Params>,
        seen: &BTreeMap<ValueId, observe::Seen>,
    ) -> Result<insert::Inserted, QuantizeError> {
        let form = self.options.weights();
        let mut biases: BTreeMap<NodeId, Vec<f32>> = BTreeMap::new();
        if self.options.bias_correction {
            biases = correct::corrections(self.graph, self.plan, params, seen, form)?;
        }
        insert::insert(self.graph, self.plan, params, &biases, form)
    }

    /// At most `most` samples, spread over all.
    fn spread(&self, most: usize) -> Vec<Vec<Tensor>> {
        let n = self.samples.len().min(most);
        (0..n).map(|i| self.samples[i * self.samples.len() / n].clone()).collect()
    }

    fn report(
        &self,
        found: &ValueResults,
        inserted: insert::Inserted,
        told: &mut Told,
    ) -> Result<Quantized, QuantizeError> {
        let QuantizeRequest { graph, plan, engine, .. } = *self;
        let is_float = |v: ValueId| graph.ty(v).dtype == crate::graph::DType::F32;
        let outputs: Vec<usize> = (0..graph.outputs().len()).filter(|&i| is_float(graph.outputs()[i].1)).collect();
        let mut left: Vec<ValueId> = inserted.real.keys().copied().collect();
        let mut right: Vec<ValueId> = inserted.real.values().copied().collect();
        left.extend(outputs.iter().map(|&i| graph.outputs()[i].1));
        right.extend(outputs.iter().map(|&i| inserted.graph.outputs()[i].1));
        let samples = self.spread(MEASURED);
        let n = samples.len();
        let (float, quantized) = ((graph, &left[..]), (&inserted.graph, &right[..]));
        let energies = observe::compare(engine, float, quantized, &samples, &mut |i| told("compare", i, n))?;
        let layer = |(v, e): (&ValueId, &observe::Energy)| {
            let op = graph.def_node(*v).map_or("input", |(_, n)| n.op.name());
            let (params, method) = (*found.params.get(v)?, *found.methods.get(&plan.like[v.0])?);
            Some(Layer { name: graph.value_name(*v).into(), op: op.into(), params, method, sqnr_db: e.decibels() })
        };
        let layers = inserted.real.keys().zip(&energies).filter_map(layer).collect();
        let output_db = energies[inserted.real.len()..].iter().map(observe::Energy::decibels).collect();
        let float_nodes = graph.nodes().filter(|(id, _)| plan.roles[id.0] == Role::Float);
        let float_nodes = float_nodes.map(|(_, n)| (n.name.clone(), n.op.name().to_string())).collect();
        let weak = Vec::new();
        Ok(Quantized { graph: inserted.graph, layers, output_db, weak, float_nodes, equalized: None })
    }
}

#[cfg(test)]
mod tests;
