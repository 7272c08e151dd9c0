//! A quantized network with its scales as inputs: it is compiled once and then measures the cost of any scales.

use super::insert::Inserted;
use super::observe::{Energy, Probe};
use super::range::Params;
use super::{QuantizeError, QuantizeRequest, RunnableNetwork};
use crate::graph::op::{Binary, BinaryKind, Unary, UnaryKind};
use crate::graph::{DType, Graph, GraphBuilder, Op, OpError, Tensor, TensorType, ValueId};
use std::collections::{BTreeMap, BTreeSet};

/// How a value is represented.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Representation {
    /// Rounded to integers.
    Integers(Params),
    /// Unchanged; its magnitudes reach up to this.
    Float(f32),
}

impl Representation {
    /// The step, and the smallest and greatest multiple of it.
    fn numbers(self) -> [f32; 3] {
        match self {
            Representation::Integers(p) => [p.scale, (-128 - p.zero_point) as f32, (127 - p.zero_point) as f32],
            // A power of two so small that every float up to this magnitude is a multiple of it.
            Representation::Float(most) => {
                let exponent = most.max(f32::MIN_POSITIVE).log2().ceil().clamp(-100.0, 100.0) as i32 - 23;
                [2f32.powi(exponent), f32::NEG_INFINITY, f32::INFINITY]
            }
        }
    }
}

/// The network, with samples and expected values.
pub(super) struct Trial {
    network: Box<dyn RunnableNetwork>,
    /// The float network's values that have steps, in the order of the inputs that follow the network's own.
    values: Vec<ValueId>,
    samples: Vec<Vec<Tensor>>,
    /// For each sample, the expected values.
    right: Vec<Vec<Tensor>>,
}

impl Trial {
    /// Builds the trial of a quantized network with at most `most` samples. The network's own scales only matter for
    /// the rounding of biases.
    pub fn new(request: &QuantizeRequest, inserted: &Inserted, most: usize) -> Result<Trial, QuantizeError> {
        let (float, quantized) = judged(request, inserted);
        let samples = request.spread(most);
        let mut probe = Probe::new(request.engine, request.graph, &float, "float")?;
        let right = samples.iter().enumerate().map(|(i, sample)| probe.run(sample, i)).collect::<Result<_, _>>()?;
        let values: Vec<ValueId> = inserted.real.keys().copied().collect();
        let graph = with_inputs(inserted, &quantized)?;
        let network =
            request.engine.open(&graph).map_err(|reason| QuantizeError::Open { form: "quantized", reason })?;
        Ok(Trial { network, values, samples, right })
    }

    /// Number of samples.
    pub fn samples(&self) -> usize {
        self.samples.len()
    }

    /// The cost of a quantized network at its outputs, per sample, computed with its compiled integers. A trial
    /// computes in floats between its steps, which round slightly differently.
    pub fn network_cost(&self, request: &QuantizeRequest, inserted: &Inserted) -> Result<Vec<f64>, QuantizeError> {
        let (_, values) = judged(request, inserted);
        let mut probe = Probe::new(request.engine, &inserted.graph, &values, "quantized")?;
        let mut costs = Costs::default();
        for (index, sample) in self.samples.iter().enumerate() {
            costs.add(&self.right[index], &probe.run(sample, index)?, index)?;
        }
        Ok(costs.shares())
    }

    /// The cost of these representations at the outputs, per sample.
    pub fn cost(
        &mut self,
        samples: impl Iterator<Item = usize>,
        representation: &dyn Fn(ValueId) -> Option<Representation>,
    ) -> Result<Vec<f64>, QuantizeError> {
        let numbers = |v: &ValueId| representation(*v).unwrap_or(Representation::Float(1.0)).numbers();
        let steps: Vec<Tensor> = self.values.iter().flat_map(numbers).map(|x| Tensor::from_fn(&[1], |_| x)).collect();
        let mut costs = Costs::default();
        for index in samples {
            let inputs = [&self.samples[index][..], &steps].concat();
            let found = self.network.run(&inputs).map_err(|reason| QuantizeError::Run { sample: index, reason })?;
            costs.add(&self.right[index], &found, index)?;
        }
        Ok(costs.shares())
    }
}

/// Signal and noise of the measured values, for each sample.
#[derive(Default)]
struct Costs {
    energies: Vec<Vec<Energy>>,
}

impl Costs {
    fn add(&mut self, right: &[Tensor], found: &[Tensor], sample: usize) -> Result<(), QuantizeError> {
        let failed = |e: OpError| QuantizeError::Run { sample, reason: e.to_string() };
        let mut energies = vec![Energy::default(); right.len()];
        for ((energy, right), found) in energies.iter_mut().zip(right).zip(found) {
            energy.add(right.as_slice::<f32>().map_err(failed)?, found.as_slice::<f32>().map_err(failed)?);
        }
        self.energies.push(energies);
        Ok(())
    }

    /// Each sample's noise divided by the signal of all samples, summed over the values that have a signal. NaN counts
    /// as infinite.
    fn shares(&self) -> Vec<f64> {
        let values = self.energies.first().map_or(0, Vec::len);
        let signals: Vec<f64> = (0..values).map(|i| self.energies.iter().map(|e| e[i].signal).sum()).collect();
        let share = |energies: &Vec<Energy>| {
            let with_signal = energies.iter().zip(&signals).filter(|(_, signal)| **signal > 0.0);
            let cost: f64 = with_signal.map(|(e, signal)| e.noise / signal).sum();
            if cost.is_nan() { f64::INFINITY } else { cost }
        };
        self.energies.iter().map(share).collect()
    }
}

/// The values at which noise is measured, in the float and in the quantized network: float outputs, and for other
/// outputs the quantized values that they are computed from.
fn judged(request: &QuantizeRequest, inserted: &Inserted) -> (Vec<ValueId>, Vec<ValueId>) {
    let mut pairs = Vec::new();
    let mut seen = BTreeSet::new();
    for ((_, float), (_, quantized)) in request.graph.outputs().iter().zip(inserted.graph.outputs()) {
        if request.graph.ty(*float).dtype == DType::F32 {
            pairs.push((*float, *quantized));
            continue;
        }
        let mut todo = vec![*float];
        while let Some(v) = todo.pop().filter(|v| seen.insert(*v)) {
            match inserted.real.get(&v) {
                Some(real) => pairs.push((v, *real)),
                None => todo.extend(request.graph.def_node(v).map(|(_, node)| &node.inputs[..]).unwrap_or_default()),
            }
        }
    }
    pairs.sort_unstable();
    pairs.dedup();
    pairs.into_iter().unzip()
}

/// The network that returns these values, with three more inputs per quantized value: step, smallest and greatest
/// multiple. Inputs are passed by position, the network's own first.
fn with_inputs(inserted: &Inserted, outputs: &[ValueId]) -> Result<Graph, QuantizeError> {
    let graph = &inserted.graph;
    let mut b = GraphBuilder::new(graph.name());
    let mut map: Vec<ValueId> =
        graph.inputs().enumerate().map(|(i, (_, v))| b.input(&format!("input{i}"), graph.ty(v).clone())).collect();
    let mut steps: BTreeMap<ValueId, [ValueId; 3]> = BTreeMap::new();
    for (i, real) in inserted.real.values().enumerate() {
        let one = TensorType::new(DType::F32, &[1]);
        steps.insert(*real, ["step", "least", "most"].map(|what| b.input(&format!("{what}{i}"), one.clone())));
    }
    for (_, node) in graph.nodes() {
        let inputs: Vec<ValueId> = node.inputs.iter().map(|v| map[v.0]).collect();
        let rounded = matches!(node.op, Op::Quantize(_)) && graph.users()[node.output().0].len() == 1;
        if let Some(&[step, least, most]) = steps.get(&node.output()) {
            let mut v = inputs[0];
            let calls = [(BinaryKind::Max, least), (BinaryKind::Min, most), (BinaryKind::Mul, step)];
            for (kind, operand) in calls {
                v = b.node(&node.name, Binary { kind }, &[v, operand])?;
            }
            map.push(v);
        } else if let Some([step, ..]) = steps.get(&graph_user(graph, node.output())).filter(|_| rounded) {
            let v = b.node(&node.name, Binary { kind: BinaryKind::Div }, &[inputs[0], *step])?;
            map.push(b.node(&node.name, Unary::new(UnaryKind::Round), &[v])?);
        } else {
            map.extend(b.node_outputs(&node.name, node.op.clone(), &inputs)?);
        }
    }
    for (i, v) in outputs.iter().enumerate() {
        b.output(&format!("value{i}"), map[v.0]);
    }
    Ok(b.finish()?)
}

/// The output of a value's first user; the value itself if it has no user.
fn graph_user(graph: &Graph, v: ValueId) -> ValueId {
    graph.users()[v.0].first().map_or(v, |user| graph.node(*user).output())
}
