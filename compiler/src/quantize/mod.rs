//! Post-training quantization: a float network and samples of its data in, a network of int8 behind `quantize` and
//! `dequantize` out, which ONNX files can hold and the passes make integer.
//!
//! [`prepare`](prepare()) brings the network into the form that is quantized, [`plan`] says which values become integers,
//! samples are run over it with all of these in sight, [`range`] finds their scales, `search` which way of finding them costs
//! least at the outputs, and [`quantize`] puts everything together and says how far each layer is from its float value. An
//! [`Engine`] runs networks: compiled code is a hundred times faster than the evaluator, and the compiler knows none of its
//! back ends.

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

/// How the method for each tensor's range is chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Choice {
    /// One method for all tensors.
    All(Method),
    /// For each tensor the method that costs least at the network's outputs.
    Auto,
}

impl Choice {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Choice::All(method) => method.name(),
            Choice::Auto => "auto",
        }
    }
}

/// How a network is quantized.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// How ranges of activations are chosen.
    pub method: Choice,
    /// A step for each output channel of weights, or one for all.
    pub per_channel: bool,
    /// How many bits weights have.
    pub weight_bits: WeightBits,
    /// Names of nodes that stay float.
    pub keep_float: Vec<String>,
    /// Layers whose signal is less than this many decibels above their noise are reported as weak.
    pub weak_db: f64,
    /// Takes off each bias what rounding the weights adds to the mean.
    pub bias_correction: bool,
    /// Scales channels between layers so that they share ranges well, where the network's outputs gain from it.
    pub equalize: bool,
}

impl Default for Options {
    /// What is done where nothing else is asked for; no layer is reported as weak.
    fn default() -> Options {
        Options {
            method: Choice::Auto,
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
    /// What found its range.
    pub method: Method,
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
    /// Layers with less signal over noise than asked for, those first whose floats bring most.
    pub weak: Vec<Weak>,
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
    let kept = kept(graph, &options.keep_float)?;
    let plan = Plan::keeping(graph, &kept);
    if !plan.roles.iter().any(|r| matches!(r, Role::Product | Role::Join)) {
        return Err(QuantizeError::NothingToQuantize);
    }
    let work = |graph| Work { graph, plan: &plan, samples, options, engine };
    let (mut plainly, found) = work(graph).attempt(told)?;
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
            // Values keep their places, so the plan holds for both.
            let (mut equal, found_equal) = work(scaled).attempt(told)?;
            let equalized = Equalized { pairs: *pairs, before_db, after_db: db(&equal) };
            (plainly.equalized, equal.equalized) = (Some(equalized), Some(equalized));
            if equalized.kept() { (scaled, equal, found_equal) } else { (graph, plainly, found) }
        }
    };
    best.weak = weak::weak(&work(graph), &kept, &found, &best, told)?;
    Ok(best)
}

/// The nodes of these names, each with those that no integer stands between.
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

/// A network to be quantized, and how.
#[derive(Clone, Copy)]
struct Work<'w> {
    graph: &'w Graph,
    plan: &'w Plan,
    samples: &'w [Vec<Tensor>],
    options: &'w Options,
    engine: &'w dyn Engine,
}

/// What was found of a network's values.
struct Found {
    seen: BTreeMap<ValueId, observe::Seen>,
    /// What finds the range of each value that has a scale of its own.
    methods: BTreeMap<ValueId, Method>,
    params: BTreeMap<ValueId, Params>,
}

impl Work<'_> {
    fn attempt(&self, told: &mut Told) -> Result<(Quantized, Found), QuantizeError> {
        let Work { graph, plan, samples, options, engine } = *self;
        let values: Vec<ValueId> = (0..graph.value_count()).map(ValueId).filter(|v| plan.quantized[v.0]).collect();
        let total = 2 * samples.len();
        let seen = observe::observe(engine, graph, &values, samples, &mut |n| told("calibrate", n, total))?;
        let seen: BTreeMap<ValueId, observe::Seen> = values.iter().copied().zip(seen).collect();
        let own = values.iter().copied().filter(|v| plan.like[v.0] == *v);
        let (methods, ranges): (BTreeMap<ValueId, Method>, Ranges) = match options.method {
            Choice::All(method) => {
                let range = |v: ValueId| (v, method.range(&seen[&v].histogram));
                (own.clone().map(|v| (v, method)).collect(), own.map(range).collect())
            }
            Choice::Auto => search::search(self, &seen, told)?,
        };
        let params = scales::scales(graph, plan, &ranges);
        let inserted = self.inserted(&params, &seen)?;
        let found = Found { seen, methods, params };
        Ok((self.report(&found, inserted, told)?, found))
    }

    /// The network with integers in it.
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

    /// So many samples at most, spread over all.
    fn spread(&self, most: usize) -> Vec<Vec<Tensor>> {
        let n = self.samples.len().min(most);
        (0..n).map(|i| self.samples[i * self.samples.len() / n].clone()).collect()
    }

    fn report(&self, found: &Found, inserted: insert::Inserted, told: &mut Told) -> Result<Quantized, QuantizeError> {
        let Work { graph, plan, engine, .. } = *self;
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
