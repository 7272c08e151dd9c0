//! Determines the scale of every value that becomes an integer.

use super::plan::{Plan, Role};
use super::range::Params;
use crate::graph::{Graph, Op, ValueId};
use std::collections::BTreeMap;

/// Parameters of probabilities: from 0 to 255/256.
const PROBABILITY: Params = Params { scale: 1.0 / 256.0, zero_point: -128 };

/// Parts of a concatenation share a scale if no part's range is more than this many times another's.
const ALIKE: f32 = 2.0;

/// Ranges of the values that have their own scale.
pub(super) type Ranges = BTreeMap<ValueId, (f32, f32)>;

/// Scale and zero point of each quantized value.
pub(super) fn scales(graph: &Graph, plan: &Plan, ranges: &Ranges) -> BTreeMap<ValueId, Params> {
    let fixed = |v: ValueId| graph.def_node(v).is_some_and(|(n, _)| plan.roles[n.0] == Role::Softmax);
    let mut group: Vec<ValueId> = plan.like.clone();
    for (_, node) in graph.nodes().filter(|(_, n)| matches!(n.op, Op::Concat(_)) && plan.quantized[n.output().0]) {
        let members: Vec<ValueId> = node.inputs.iter().chain(&node.outputs).map(|v| group[v.0]).collect();
        let widths: Option<Vec<f32>> = members.iter().map(|v| ranges.get(v).map(|r| r.1 - r.0)).collect();
        let Some(widths) = widths else { continue };
        let (least, most) = widths.iter().fold((f32::INFINITY, 0f32), |(a, b), &w| (a.min(w), b.max(w)));
        if most <= ALIKE * least && !members.iter().any(|&v| fixed(v)) {
            group.iter_mut().filter(|g| members.contains(g)).for_each(|g| *g = members[0]);
        }
    }
    let mut whole: BTreeMap<ValueId, (f32, f32)> = BTreeMap::new();
    for (v, (lo, hi)) in ranges {
        let r = whole.entry(group[v.0]).or_insert((0.0, 0.0));
        *r = (r.0.min(*lo), r.1.max(*hi));
    }
    let quantized = (0..graph.value_count()).map(ValueId).filter(|v| plan.quantized[v.0]);
    let params = |v: ValueId| match whole.get(&group[v.0]) {
        _ if fixed(group[v.0]) => Some(PROBABILITY),
        Some((lo, hi)) => Some(Params::asymmetric(*lo, *hi)),
        None => None,
    };
    quantized.filter_map(|v| Some((v, params(v)?))).collect()
}
