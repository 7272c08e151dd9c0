//! Runs a network over samples and observes its values.

use super::histogram::{Extremes, Histogram};
use super::{Engine, QuantizeError, RunnableNetwork};
use crate::graph::{Def, Graph, GraphBuilder, GraphError, Tensor, ValueId};

/// A network that returns selected values, in their order.
pub(super) struct Probe {
    network: Box<dyn RunnableNetwork>,
    values: Vec<ProbedValue>,
}

/// A selected value: the network's input or output with this number.
enum ProbedValue {
    Input(usize),
    Output(usize),
}

impl Probe {
    /// Prepares a network that returns `values`; errors call it by `form`.
    pub fn new(
        engine: &dyn Engine,
        graph: &Graph,
        values: &[ValueId],
        form: &'static str,
    ) -> Result<Probe, QuantizeError> {
        let mut outputs = Vec::new();
        let probed = values.iter().map(|&v| match graph.value(v).def {
            Def::Input(i) => ProbedValue::Input(i),
            Def::Node(..) => {
                outputs.push(v);
                ProbedValue::Output(outputs.len() - 1)
            }
        });
        let values = probed.collect();
        let graph = exposed(graph, &outputs)?;
        let network = engine.open(&graph).map_err(|reason| QuantizeError::Open { form, reason })?;
        Ok(Probe { network, values })
    }

    /// Computes the values for a sample.
    pub fn run(&mut self, sample: &[Tensor], index: usize) -> Result<Vec<Tensor>, QuantizeError> {
        let failed = |reason: String| QuantizeError::Run { sample: index, reason };
        let mut found: Vec<Option<Tensor>> = self.network.run(sample).map_err(failed)?.into_iter().map(Some).collect();
        let pick = |value: &ProbedValue| match value {
            ProbedValue::Input(i) => sample.get(*i).cloned(),
            ProbedValue::Output(i) => found.get_mut(*i).and_then(Option::take),
        };
        let values: Option<Vec<Tensor>> = self.values.iter().map(pick).collect();
        values.ok_or_else(|| failed("the network gave fewer values than asked for".into()))
    }
}

/// The network with these values as its outputs.
fn exposed(graph: &Graph, values: &[ValueId]) -> Result<Graph, GraphError> {
    let mut b = GraphBuilder::new(graph.name());
    let mut map: Vec<ValueId> = graph.inputs().map(|(name, v)| b.input(name, graph.ty(v).clone())).collect();
    for (_, node) in graph.nodes() {
        let inputs: Vec<_> = node.inputs.iter().map(|v| map[v.0]).collect();
        map.extend(b.node_outputs(&node.name, node.op.clone(), &inputs)?);
    }
    for (i, v) in values.iter().enumerate() {
        b.output(&format!("value{i}"), map[v.0]);
    }
    b.finish()
}

/// Statistics of a value over all samples.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    /// How often each part of its range occurs.
    pub histogram: Histogram,
    /// The mean of each channel, which is dimension 1; the mean of everything if there is no such dimension.
    pub means: Vec<f64>,
    /// The greatest magnitude of each channel.
    pub peaks: Vec<f32>,
}

/// Observes values over all samples, twice: first for their ranges, then for their histograms.
pub(super) fn observe(
    engine: &dyn Engine,
    graph: &Graph,
    values: &[ValueId],
    samples: &[Vec<Tensor>],
    told: &mut dyn FnMut(usize),
) -> Result<Vec<Seen>, QuantizeError> {
    let mut probe = Probe::new(engine, graph, values, "float")?;
    let mut extremes = vec![Extremes::NONE; values.len()];
    let mut means: Vec<Vec<f64>> = vec![Vec::new(); values.len()];
    let mut peaks: Vec<Vec<f32>> = vec![Vec::new(); values.len()];
    for (index, sample) in samples.iter().enumerate() {
        for (i, t) in probe.run(sample, index)?.iter().enumerate() {
            let x = t.as_slice::<f32>().map_err(|e| QuantizeError::Run { sample: index, reason: e.to_string() })?;
            if !extremes[i].add(x) {
                let value = graph.value_name(values[i]).to_string();
                return Err(QuantizeError::NotFinite { value, sample: index });
            }
            add_channels(&mut means[i], &mut peaks[i], t.shape(), x, samples.len());
        }
        told(index + 1);
    }
    let mut histograms: Vec<Histogram> = extremes.iter().map(|e| Histogram::new(e.lo, e.hi)).collect();
    for (index, sample) in samples.iter().enumerate() {
        for (h, t) in histograms.iter_mut().zip(probe.run(sample, index)?) {
            h.add(t.as_slice::<f32>().map_err(|e| QuantizeError::Run { sample: index, reason: e.to_string() })?);
        }
        told(samples.len() + index + 1);
    }
    let channels = means.into_iter().zip(peaks);
    let seen = histograms.into_iter().zip(channels);
    Ok(seen.map(|(histogram, (means, peaks))| Seen { histogram, means, peaks }).collect())
}

fn add_channels(means: &mut Vec<f64>, peaks: &mut Vec<f32>, shape: &[usize], x: &[f32], samples: usize) {
    let channels = shape.get(1).copied().unwrap_or(1).max(1);
    let inner: usize = shape.iter().skip(2).product::<usize>().max(1);
    means.resize(channels, 0.0);
    peaks.resize(channels, 0.0);
    let each = (x.len() / channels).max(1) as f64 * samples as f64;
    for (i, row) in x.chunks(inner).enumerate() {
        let c = i % channels;
        means[c] += row.iter().map(|&x| f64::from(x)).sum::<f64>() / each;
        peaks[c] = row.iter().fold(peaks[c], |m, x| m.max(x.abs()));
    }
}

/// Signal and noise of a value: the sums of squares of its float value and of its error.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Energy {
    pub signal: f64,
    pub noise: f64,
}

impl Energy {
    /// Adds values, with their quantized counterparts.
    pub fn add(&mut self, float: &[f32], quantized: &[f32]) {
        for (&a, &b) in float.iter().zip(quantized) {
            let (a, b) = (f64::from(a), f64::from(b));
            self.signal += a * a;
            self.noise += (a - b) * (a - b);
        }
    }

    /// Signal-to-noise ratio in decibels; infinite without noise.
    pub fn decibels(&self) -> f64 {
        10.0 * (self.signal / self.noise).log10()
    }
}

/// Compares pairs of values of two networks.
pub(super) fn compare(
    engine: &dyn Engine,
    (float, a): (&Graph, &[ValueId]),
    (quantized, b): (&Graph, &[ValueId]),
    samples: &[Vec<Tensor>],
    told: &mut dyn FnMut(usize),
) -> Result<Vec<Energy>, QuantizeError> {
    let mut left = Probe::new(engine, float, a, "float")?;
    let mut right = Probe::new(engine, quantized, b, "quantized")?;
    let mut energies = vec![Energy::default(); a.len()];
    for (index, sample) in samples.iter().enumerate() {
        let pairs = left.run(sample, index)?.into_iter().zip(right.run(sample, index)?);
        for (e, (x, y)) in energies.iter_mut().zip(pairs) {
            let failed = |e: crate::graph::OpError| QuantizeError::Run { sample: index, reason: e.to_string() };
            e.add(x.as_slice::<f32>().map_err(failed)?, y.as_slice::<f32>().map_err(failed)?);
        }
        told(index + 1);
    }
    Ok(energies)
}
