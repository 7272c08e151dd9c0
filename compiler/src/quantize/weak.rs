//! Finds layers with much noise, and measures what the outputs gain if they stay float.

use super::plan::Plan;
use super::trial::{Representation, Trial};
use super::{MEASURED, QuantizeError, QuantizeRequest, Quantized, Told, ValueResults};
use crate::graph::{NodeId, ValueId};
use std::collections::BTreeSet;

/// Maximum number of layers to try in float. Each try compiles and runs a network.
const MOST_TRIED: usize = 4;

/// A layer with a low signal-to-noise ratio.
#[derive(Debug, Clone, PartialEq)]
pub struct Weak {
    /// The layer's name.
    pub name: String,
    /// Signal-to-noise ratio of its result, in decibels.
    pub sqnr_db: f64,
    /// Signal-to-noise ratio of the network's outputs, in decibels, as quantized and with this layer in float, if that
    /// was tried.
    pub outputs_db: Option<(f64, f64)>,
}

/// Layers of a quantized network with a signal-to-noise ratio below that of the options, sorted by what the outputs
/// gain if the layer stays float.
pub(super) fn weak(
    request: &QuantizeRequest,
    kept: &BTreeSet<NodeId>,
    found: &ValueResults,
    quantized: &Quantized,
    told: &mut Told,
) -> Result<Vec<Weak>, QuantizeError> {
    let weak: Vec<usize> =
        (0..quantized.layers.len()).filter(|&i| quantized.layers[i].sqnr_db < request.options.weak_db).collect();
    if weak.is_empty() {
        return Ok(Vec::new());
    }
    let inserted = request.inserted(&found.params, &found.seen)?;
    let values: Vec<ValueId> = inserted.real.keys().copied().collect();
    let mut trial = Trial::new(request, &inserted, MEASURED)?;
    let all = trial.samples();
    let integers = |v: ValueId| found.params.get(&v).copied().map(Representation::Integers);
    let mut costs = Vec::with_capacity(weak.len());
    for (n, &i) in weak.iter().enumerate() {
        let value = values[i];
        let most = found.seen.get(&value).map_or(1.0, |s| s.peaks.iter().copied().fold(0.0, f32::max));
        let float = |v| if v == value { Some(Representation::Float(most)) } else { integers(v) };
        costs.push((trial.cost(0..all.min(4), &float)?.iter().sum::<f64>(), i));
        told("weigh layers", n + 1, weak.len());
    }
    costs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let before = decibels(&trial.network_cost(request, &inserted)?);
    let mut list = Vec::with_capacity(costs.len());
    let mut tried = 0;
    for (_, i) in costs {
        let layer = &quantized.layers[i];
        let maker = request.graph.def_node(values[i]).map(|(id, _)| id).filter(|_| tried < MOST_TRIED);
        let mut outputs_db = None;
        if let Some(id) = maker {
            tried += 1;
            told("try floats", tried, MOST_TRIED);
            let more: BTreeSet<NodeId> = kept | &request.plan.makers(request.graph, id);
            outputs_db = Some((before, with_floats(request, found, &trial, &more)?));
        }
        list.push(Weak { name: layer.name.clone(), sqnr_db: layer.sqnr_db, outputs_db });
    }
    let gain = |w: &Weak| w.outputs_db.map_or(f64::NEG_INFINITY, |(before, after)| after - before);
    list.sort_by(|a, b| gain(b).total_cmp(&gain(a)));
    Ok(list)
}

/// Signal-to-noise ratio of the outputs with these nodes in float.
fn with_floats(
    request: &QuantizeRequest,
    found: &ValueResults,
    trial: &Trial,
    kept: &BTreeSet<NodeId>,
) -> Result<f64, QuantizeError> {
    let plan = Plan::keeping(request.graph, kept);
    let request = QuantizeRequest { plan: &plan, ..*request };
    Ok(decibels(&trial.network_cost(&request, &request.inserted(&found.params, &found.seen)?)?))
}

/// Converts costs of samples to a signal-to-noise ratio over all of them, in decibels.
fn decibels(costs: &[f64]) -> f64 {
    -10.0 * costs.iter().sum::<f64>().log10()
}
