//! Inserts quantization into a float network: `quantize` and `dequantize` after every value that becomes an integer,
//! and integers with a `dequantize` for weights, biases and constant operands.
//!
//! An output of the network that only moves elements of an input, of a constant or of a float value is computed from
//! the value before its quantization, so it is exact.

use super::QuantizeError;
use super::plan::{Plan, Role};
use super::range::{Params, WeightBits};
use crate::graph::op::{Dequantize, QuantRounding, Quantize};
use crate::graph::{DType, Graph, GraphBuilder, GraphError, Node, NodeId, Op, Tensor, ValueId};
use std::collections::BTreeMap;

/// A quantized network.
#[derive(Debug, Clone)]
pub(super) struct Inserted {
    /// The network. It still computes in floats between `quantize` and `dequantize`.
    pub graph: Graph,
    /// For each quantized value of the float network, its dequantized value in this one.
    pub real: BTreeMap<ValueId, ValueId>,
}

/// How weights are quantized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WeightForm {
    /// One scale per output channel instead of one for all.
    pub per_channel: bool,
    /// Number of bits.
    pub bits: WeightBits,
}

impl WeightForm {
    /// The form for an operator's weights. A grouped transposed convolution gets one scale for all channels, because a
    /// channel of the file's weights belongs to a channel of each group.
    pub fn of(self, op: &Op) -> WeightForm {
        let grouped = matches!(op, Op::ConvTranspose2d(c) if c.groups > 1);
        WeightForm { per_channel: self.per_channel && !grouped, ..self }
    }
}

/// Weights as symmetric integers, with one scale per output channel, or one for all.
pub(super) struct Weights {
    /// Integers, in the shape of the weights.
    pub integers: Vec<i8>,
    /// Scales.
    pub scales: Vec<f32>,
}

impl Weights {
    /// Quantizes weights `[O, …]` for data with this scale and an optional bias.
    pub fn new(
        weight: &Tensor,
        bias: Option<&[f32]>,
        data_scale: f32,
        form: WeightForm,
    ) -> Result<Weights, GraphError> {
        let w = floats(weight)?;
        let channels = weight.shape().first().copied().unwrap_or(1).max(1);
        let each = (w.len() / channels).max(1);
        // Lower limit of the scale, so that the bias takes at most 30 bits in steps of the sum.
        let room = |c: usize| bias.map_or(0.0, |b| b[c].abs() / data_scale / (1u32 << 30) as f32);
        let most = |w: &[f32]| w.iter().fold(0f32, |m, x| m.max(x.abs()));
        let mut scales: Vec<f32> =
            w.chunks(each).enumerate().map(|(c, w)| Params::symmetric(most(w), form.bits).scale.max(room(c))).collect();
        if !form.per_channel {
            scales = vec![scales.iter().copied().fold(0.0, f32::max)];
        }
        let at = |i: usize| scales[if scales.len() > 1 { i / each } else { 0 }];
        let greatest = f32::from(form.bits.greatest());
        let integer = |(i, x): (usize, &f32)| (x / at(i)).round_ties_even().clamp(-greatest, greatest) as i8;
        Ok(Weights { integers: w.iter().enumerate().map(integer).collect(), scales })
    }

    /// The scale of an output channel.
    pub fn scale(&self, channel: usize) -> f32 {
        self.scales[if self.scales.len() > 1 { channel } else { 0 }]
    }
}

struct Insert<'g> {
    graph: &'g Graph,
    plan: &'g Plan,
    params: &'g BTreeMap<ValueId, Params>,
    b: GraphBuilder,
    map: Vec<Option<ValueId>>,
    /// For values that outputs can be computed from: the value without quantization.
    exact: Vec<Option<ValueId>>,
    form: WeightForm,
}

/// Inserts integers where the plan has them. `biases` are added to the biases of products.
pub(super) fn insert(
    graph: &Graph,
    plan: &Plan,
    params: &BTreeMap<ValueId, Params>,
    biases: &BTreeMap<NodeId, Vec<f32>>,
    form: WeightForm,
) -> Result<Inserted, QuantizeError> {
    let b = GraphBuilder::new(graph.name());
    let none = vec![None; graph.value_count()];
    let mut insert = Insert { graph, plan, params, b, map: none.clone(), exact: none, form };
    let mut real = BTreeMap::new();
    let leaving = leaving(graph, plan);
    for (name, v) in graph.inputs() {
        insert.map[v.0] = Some(insert.b.input(name, graph.ty(v).clone()));
        insert.exact[v.0] = insert.map[v.0];
    }
    for (_, v) in graph.inputs() {
        insert.quantized(v, &mut real)?;
    }
    for (id, node) in graph.nodes() {
        let operands = match plan.roles[id.0] {
            Role::Constant => {
                if let Some(t) = graph.constant(node.output()) {
                    insert.map[node.output().0] = Some(insert.b.constant(&node.name, t.clone()));
                    insert.exact[node.output().0] = insert.map[node.output().0];
                }
                continue;
            }
            Role::Product => insert.product(node, biases.get(&id).map(Vec::as_slice))?,
            Role::Join => node.inputs.iter().map(|&v| insert.joined(node, v)).collect::<Result<Vec<_>, _>>()?,
            _ => node.inputs.iter().map(|&v| insert.operand(v)).collect::<Result<Vec<_>, _>>()?,
        };
        let results = insert.b.node_outputs(&node.name, node.op.clone(), &operands)?;
        for (&v, r) in node.outputs.iter().zip(results) {
            insert.map[v.0] = Some(r);
            if leaving[v.0] {
                insert.exact[v.0] = insert.exact(node, plan.roles[id.0], &operands, r)?;
            }
            insert.quantized(v, &mut real)?;
        }
    }
    for (name, v) in graph.outputs() {
        let v = match insert.exact[v.0] {
            Some(exact) => exact,
            None => insert.operand(*v)?,
        };
        insert.b.output(name, v);
    }
    let (graph, _) = crate::passes::run(insert.b.finish()?, &[Box::new(crate::passes::DeadCode)], Default::default())?;
    // Removing dead constants renumbers values, so find them by name.
    let names: BTreeMap<&str, ValueId> = graph.nodes().map(|(_, n)| (n.name.as_str(), n.output())).collect();
    let real = real.into_iter().filter_map(|(v, name)| Some((v, *names.get(name.as_str())?))).collect();
    Ok(Inserted { graph, real })
}

/// The operands whose elements an operator moves unchanged.
fn moved<'n>(op: &Op, operands: &'n [ValueId]) -> &'n [ValueId] {
    match op {
        Op::Concat(_) => operands,
        _ => operands.get(..1).unwrap_or_default(),
    }
}

/// For each value, whether it is an output or an output only moves its elements.
fn leaving(graph: &Graph, plan: &Plan) -> Vec<bool> {
    let mut leaving = vec![false; graph.value_count()];
    graph.outputs().iter().for_each(|(_, v)| leaving[v.0] = true);
    for (id, node) in graph.nodes().rev() {
        if moves(plan.roles[id.0], &node.op) && leaving[node.output().0] {
            moved(&node.op, &node.inputs).iter().for_each(|v| leaving[v.0] = true);
        }
    }
    leaving
}

fn moves(role: Role, op: &Op) -> bool {
    role == Role::Move || matches!(op, Op::Concat(_)) && role == Role::Join
}

impl Insert<'_> {
    /// The value of a node without quantization: `result` if its operands are not quantized, else a copy of the node on
    /// operands without quantization; `None` if the node computes integers.
    fn exact(
        &mut self,
        node: &Node,
        role: Role,
        operands: &[ValueId],
        result: ValueId,
    ) -> Result<Option<ValueId>, GraphError> {
        if role == Role::Float {
            return Ok(Some(result));
        }
        if !moves(role, &node.op) {
            return Ok(None);
        }
        let data = moved(&node.op, &node.inputs);
        let Some(data) = data.iter().map(|v| self.exact[v.0]).collect::<Option<Vec<_>>>() else { return Ok(None) };
        if operands.starts_with(&data) {
            return Ok(Some(result));
        }
        let copy = [&data, &operands[data.len()..]].concat();
        Ok(Some(self.b.node(&node.name, node.op.clone(), &copy)?))
    }

    fn operand(&self, v: ValueId) -> Result<ValueId, GraphError> {
        self.map[v.0].ok_or_else(|| GraphError::Invalid(format!("`{}` is not defined yet", self.graph.value_name(v))))
    }

    /// Adds `quantize` and `dequantize` after a value if the plan quantizes it; its users then read the dequantized
    /// value.
    fn quantized(&mut self, v: ValueId, real: &mut BTreeMap<ValueId, String>) -> Result<(), GraphError> {
        let Some(p) = self.params.get(&v).filter(|_| self.plan.quantized[v.0]) else { return Ok(()) };
        let name = self.graph.value_name(v).to_string();
        let from = self.operand(v)?;
        let (scale, zero_point) = (vec![p.scale], vec![p.zero_point]);
        let q = Quantize {
            scale: scale.clone(),
            zero_point: zero_point.clone(),
            axis: 0,
            rounding: QuantRounding::HalfEven,
            dtype: DType::I8,
        };
        let q = self.b.node(&format!("{name}/quantize"), q, &[from])?;
        let d = self.b.node(&format!("{name}/dequantize"), Dequantize { scale, zero_point, axis: 0 }, &[q])?;
        real.insert(v, self.b.def(d).map(|n| n.name.clone()).unwrap_or_default());
        self.map[v.0] = Some(d);
        Ok(())
    }

    fn product(&mut self, node: &Node, more: Option<&[f32]>) -> Result<Vec<ValueId>, GraphError> {
        let lost = || GraphError::Invalid(format!("`{}` has no constant weights", node.name));
        let data = self.operand(node.inputs[0])?;
        let scale = self.params.get(&node.inputs[0]).ok_or_else(lost)?.scale;
        let weight = self.graph.constant(node.inputs[1]).ok_or_else(lost)?;
        let channels = weight.shape().first().copied().unwrap_or(0);
        let mut bias = match node.inputs.get(2) {
            Some(&v) => Some(floats(self.graph.constant(v).ok_or_else(lost)?)?.to_vec()),
            None => None,
        };
        if let Some(more) = more {
            let bias = bias.get_or_insert_with(|| vec![0.0; channels]);
            bias.iter_mut().zip(more).for_each(|(b, m)| *b += m);
        }
        let w = Weights::new(weight, bias.as_deref(), scale, self.form.of(&node.op))?;
        let integers =
            self.b.constant(&format!("{}/weight", node.name), Tensor::from_fn(weight.shape(), |i| w.integers[i]));
        let zero_point = vec![0; w.scales.len()];
        let d = Dequantize { scale: w.scales.clone(), zero_point: zero_point.clone(), axis: 0 };
        let mut operands = vec![data, self.b.node(&format!("{}/weight/dequantize", node.name), d, &[integers])?];
        if let Some(bias) = bias {
            let steps: Vec<f32> = w.scales.iter().map(|s| s * scale).collect();
            let step = |c: usize| f64::from(steps[if steps.len() > 1 { c } else { 0 }]);
            // `as` saturates.
            let integer = |(c, b): (usize, &f32)| (f64::from(*b) / step(c)).round_ties_even() as i32;
            let integers = Tensor::vector(bias.iter().enumerate().map(integer).collect());
            let integers = self.b.constant(&format!("{}/bias", node.name), integers);
            let d = Dequantize { scale: steps, zero_point, axis: 0 };
            operands.push(self.b.node(&format!("{}/bias/dequantize", node.name), d, &[integers])?);
        }
        Ok(operands)
    }

    /// An operand of a node that combines activations. A constant becomes integers too; a constant matrix counts as
    /// weights.
    fn joined(&mut self, node: &Node, v: ValueId) -> Result<ValueId, GraphError> {
        let Some(t) = self.graph.constant(v).cloned() else { return self.operand(v) };
        let x = floats(&t)?;
        let fold = |f: fn(f32, f32) -> f32| x.iter().copied().fold(0f32, f);
        let (lo, hi) = (fold(f32::min), fold(f32::max));
        let p = match self.form.bits {
            WeightBits::Seven if matches!(node.op, Op::MatMul(_)) => Params::symmetric(hi.max(-lo), WeightBits::Seven),
            _ => Params::asymmetric(lo, hi),
        };
        let name = format!("{}/{}", node.name, self.graph.value_name(v));
        let integers = self.b.constant(&name, Tensor::from_fn(t.shape(), |i| p.quantize(x[i])));
        let d = Dequantize { scale: vec![p.scale], zero_point: vec![p.zero_point], axis: 0 };
        self.b.node(&format!("{name}/dequantize"), d, &[integers])
    }
}

/// The elements of a float tensor.
pub(super) fn floats(t: &Tensor) -> Result<&[f32], GraphError> {
    t.as_slice::<f32>().map_err(|e| GraphError::Invalid(e.to_string()))
}
