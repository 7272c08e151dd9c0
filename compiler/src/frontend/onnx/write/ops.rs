//! Writes each operator.

use super::super::proto::{AttributeProto, NodeProto};
use super::super::tensor::number;
use super::{OPSET, WriteError, Writer, float, int, ints, word};
use crate::graph::op::{
    ArgReduce, Attr, BinaryKind, Conv2d, ConvTranspose2d, Layout, Packed, QuantRounding, ReduceKind, Unary, UnaryKind,
};
use crate::graph::{DType, Graph, Node, Op, Tensor, ValueId};
use tilewright_runtime::builtin;

/// An attribute of a function of the program.
fn attribute(node: &Node, name: &str, value: &Attr) -> Result<AttributeProto, WriteError> {
    let named = |kind| AttributeProto { name: name.into(), r#type: kind, ..Default::default() };
    let whole = |list: &[Attr]| list.iter().map(|a| if let Attr::Int(i) = a { Some(*i) } else { None }).collect();
    let float = |a: &Attr| if let Attr::Float(x) = a { Some(*x) } else { None };
    let text = |a: &Attr| if let Attr::Text(t) = a { Some(t.clone().into_bytes()) } else { None };
    Ok(match value {
        Attr::Int(i) => int(name, *i),
        Attr::Float(x) => self::float(name, *x),
        Attr::Text(t) | Attr::Word(t) => AttributeProto { s: t.clone().into_bytes(), ..named(3) },
        Attr::List(list) => {
            if let Some(ints) = whole(list) {
                AttributeProto { ints, ..named(7) }
            } else if let Some(floats) = list.iter().map(float).collect() {
                AttributeProto { floats, ..named(6) }
            } else if let Some(strings) = list.iter().map(text).collect() {
                AttributeProto { strings, ..named(8) }
            } else {
                let reason = format!("its attribute `{name}` is a list of different kinds, which ONNX does not have");
                return Err(WriteError::NoForm { node: node.name.clone(), op: node.op.name(), reason });
            }
        }
    })
}

/// The operator that a function of the runtime computes.
fn selection(function: &str) -> Option<&'static str> {
    Some(match function {
        builtin::NON_MAX_SUPPRESSION => "NonMaxSuppression",
        builtin::NON_ZERO => "NonZero",
        builtin::COMPRESS => "Compress",
        builtin::UNIQUE => "Unique",
        _ => return None,
    })
}

/// Whether a value is the number of rows of a function's results; reading the written operator makes it again.
pub(super) fn is_row_count(graph: &Graph, v: ValueId) -> bool {
    graph.def_node(v).is_some_and(|(_, node)| match &node.op {
        Op::Packed(op) => selection(&op.function).is_some() && node.outputs.last() == Some(&v),
        _ => false,
    })
}

impl Writer<'_> {
    /// Writes a call of a function as an operator of the domain that its name begins with.
    pub(super) fn packed(&mut self, node: &Node, op: &Packed) -> Result<(), WriteError> {
        let mut input = Vec::with_capacity(node.inputs.len());
        for &v in &node.inputs {
            input.push(self.value(v)?);
        }
        if let Some(op_type) = selection(&op.function) {
            return self.selection(node, op, (op_type, input));
        }
        let mut output = Vec::with_capacity(node.outputs.len());
        for &v in &node.outputs {
            let name = self.result_name(node, v);
            self.declared.push(self.info(&name, v)?);
            output.push(name);
        }
        let (domain, name) = op.function.rsplit_once('.').unwrap_or(("", &op.function));
        let (op_type, overload) = name.split_once(':').unwrap_or((name, ""));
        if !domain.is_empty() {
            self.domains.insert(domain.into());
        }
        let attribute = op.attributes.iter().map(|(name, value)| attribute(node, name, value));
        self.written.push(NodeProto {
            input,
            output,
            name: node.name.clone(),
            op_type: op_type.into(),
            attribute: attribute.collect::<Result<_, _>>()?,
            domain: domain.into(),
            overload: overload.into(),
        });
        Ok(())
    }

    /// Writes a function of the runtime as the operator that it computes, which has no result for the number of rows.
    fn selection(&mut self, node: &Node, op: &Packed, (op_type, input): (&str, Vec<String>)) -> Result<(), WriteError> {
        let results = &node.outputs[..node.outputs.len().saturating_sub(1)];
        let output = results.iter().map(|&v| self.result_name(node, v)).collect();
        let given = op.attributes.iter().filter(|(name, _)| *name != "most");
        let attribute = given.map(|(name, value)| attribute(node, name, value)).collect::<Result<_, _>>()?;
        let (name, op_type) = (node.name.clone(), op_type.into());
        self.written.push(NodeProto { input, output, name, op_type, attribute, ..NodeProto::default() });
        Ok(())
    }

    /// Writes a node whose result is named `out`.
    pub(super) fn node(&mut self, node: &Node, out: &str) -> Result<(), WriteError> {
        let no_form = |reason: String| WriteError::NoForm { node: node.name.clone(), op: node.op.name(), reason };
        let nchw = |layout: Layout| match layout {
            Layout::Nchw => Ok(()),
            Layout::Nhwc => Err(no_form("its images are [N, H, W, C], but ONNX only has [N, C, H, W]".into())),
        };
        if let Op::Constant(c) = &node.op {
            self.constant_named(out, &c.value);
            return Ok(());
        }
        let computes = matches!(
            node.op,
            Op::Conv2d(_)
                | Op::ConvTranspose2d(_)
                | Op::Dense(_)
                | Op::AvgPool2d(_)
                | Op::GlobalAvgPool(_)
                | Op::Resample(_)
                | Op::Clip(_)
                | Op::Pad(_)
        );
        let dtype = node.inputs.first().map_or(DType::F32, |v| self.graph.ty(*v).dtype);
        if computes && !dtype.is_float() {
            return Err(no_form("it works on integers, but only its float form can be written".into()));
        }
        match &node.op {
            Op::Conv2d(op) => {
                nchw(op.layout)?;
                return self.conv(node, op, out);
            }
            Op::ConvTranspose2d(op) => {
                nchw(op.layout)?;
                return self.conv_transpose(node, op, out);
            }
            _ => {}
        }
        let no_bits = format!("operator set {OPSET} has no operators on the bits of integers");
        let mut operands = Vec::with_capacity(node.inputs.len());
        for &v in &node.inputs {
            operands.push(self.value(v)?);
        }
        let inputs: Vec<&str> = operands.iter().map(String::as_str).collect();
        let list = |v: &[usize]| v.iter().map(|&n| n as i64).collect::<Vec<_>>();
        match &node.op {
            Op::Dense(_) => self.emit("Gemm", &inputs, out, vec![int("transB", 1)]),
            Op::MatMul(_) => self.emit("MatMul", &inputs, out, vec![]),
            Op::Add(_) => self.emit("Add", &inputs, out, vec![]),
            Op::Binary(b) => {
                use BinaryKind::{And, Or, ShiftLeft, ShiftRight, Xor};
                let direction = match b.kind {
                    And | Or | Xor if dtype != DType::Bool => return Err(no_form(no_bits)),
                    ShiftLeft | ShiftRight if !dtype.is_unsigned() => {
                        return Err(no_form("ONNX only shifts integers without a sign".into()));
                    }
                    ShiftLeft => "LEFT",
                    ShiftRight => "RIGHT",
                    kind => {
                        self.emit(binary(kind), &inputs, out, vec![]);
                        return Ok(());
                    }
                };
                self.emit("BitShift", &inputs, out, vec![word("direction", direction)]);
            }
            Op::Unary(u) if u.kind == UnaryKind::Not && dtype != DType::Bool => return Err(no_form(no_bits)),
            Op::Unary(u) => self.unary(u, (inputs[0], dtype), out),
            Op::Cast(c) => self.emit("Cast", &inputs, out, vec![int("to", number(c.dtype).into())]),
            Op::Select(_) => self.emit("Where", &inputs, out, vec![]),
            Op::Relu(_) => self.emit("Relu", &inputs, out, vec![]),
            Op::Clip(c) if c.lo == 0.0 && c.hi == f32::INFINITY => self.emit("Relu", &inputs, out, vec![]),
            Op::Clip(c) => {
                let mut bound = |x: f32, name: &str| {
                    if x.is_finite() { self.number(&format!("{out}/{name}"), x, dtype) } else { String::new() }
                };
                let (lo, hi) = (bound(c.lo, "min"), bound(c.hi, "max"));
                self.emit("Clip", &[inputs[0], &lo, &hi], out, vec![]);
            }
            Op::Expand(e) => {
                let shape = self.integers(&format!("{out}/shape"), &list(&e.shape));
                self.emit("Expand", &[inputs[0], &shape], out, vec![]);
            }
            Op::Reduce(r) => {
                let keep = int("keepdims", r.keep_dims.into());
                let name = match r.kind {
                    ReduceKind::Sum => {
                        let axes = self.integers(&format!("{out}/axes"), &list(&r.axes));
                        self.emit("ReduceSum", &[inputs[0], &axes], out, vec![keep]);
                        return Ok(());
                    }
                    ReduceKind::Mean => "ReduceMean",
                    ReduceKind::Max => "ReduceMax",
                    ReduceKind::Min => "ReduceMin",
                };
                self.emit(name, &inputs, out, vec![ints("axes", &r.axes), keep]);
            }
            Op::ArgReduce(a) => self.arg(a, inputs[0], out),
            Op::Concat(c) => self.emit("Concat", &inputs, out, vec![int("axis", c.axis as i64)]),
            Op::Slice(s) => {
                let starts = list(&s.starts);
                let end = |i: usize| {
                    let end = starts[i] + s.sizes[i] as i64 * s.steps[i];
                    // A negative end counts from the end; a slice that steps back to element 0 must end before
                    // everything.
                    if end < 0 { i64::MIN + 1 } else { end }
                };
                let ends: Vec<i64> = (0..starts.len()).map(end).collect();
                let axes: Vec<i64> = (0..starts.len() as i64).collect();
                let names = [("starts", &starts), ("ends", &ends), ("axes", &axes), ("steps", &s.steps)]
                    .map(|(name, v)| self.integers(&format!("{out}/{name}"), v));
                self.emit("Slice", &[inputs[0], &names[0], &names[1], &names[2], &names[3]], out, vec![]);
            }
            Op::Gather(g) => self.emit("Gather", &inputs, out, vec![int("axis", g.axis as i64)]),
            Op::GatherElements(g) => self.emit("GatherElements", &inputs, out, vec![int("axis", g.axis as i64)]),
            Op::Resample(r) => self.resample(node, r.axis, inputs[0], out)?,
            Op::MaxPool2d(p) => {
                nchw(p.layout)?;
                let window = [
                    ("kernel_shape", &p.kernel[..]),
                    ("strides", &p.strides),
                    ("pads", &p.pads),
                    ("dilations", &p.dilations),
                ];
                self.emit("MaxPool", &inputs, out, window.map(|(n, v)| ints(n, v)).to_vec());
            }
            Op::AvgPool2d(p) => {
                nchw(p.layout)?;
                let window = [("kernel_shape", &p.kernel[..]), ("strides", &p.strides), ("pads", &p.pads)];
                let mut attributes = window.map(|(n, v)| ints(n, v)).to_vec();
                attributes.push(int("count_include_pad", p.count_include_pad.into()));
                self.emit("AveragePool", &inputs, out, attributes);
            }
            Op::GlobalAvgPool(p) => {
                nchw(p.layout)?;
                self.emit("GlobalAveragePool", &inputs, out, vec![]);
            }
            Op::Pad(p) => {
                let pads: Vec<i64> = list(&p.before).into_iter().chain(list(&p.after)).collect();
                let pads = self.integers(&format!("{out}/pads"), &pads);
                let value = self.number(&format!("{out}/value"), p.value, dtype);
                self.emit("Pad", &[inputs[0], &pads, &value], out, vec![]);
            }
            Op::Reshape(r) => {
                let shape = self.integers(&format!("{out}/shape"), &r.shape);
                self.emit("Reshape", &[inputs[0], &shape], out, vec![]);
            }
            Op::Transpose(t) => self.emit("Transpose", &inputs, out, vec![ints("perm", &t.perm)]),
            Op::Softmax(s) if dtype.is_float() => {
                let mut data = inputs[0].to_string();
                if s.beta != 1.0 {
                    let beta = self.number(&format!("{out}/beta"), s.beta, dtype);
                    data = self.part(&format!("{out}/scaled"), "Mul", &[&data, &beta], vec![]);
                }
                self.emit("Softmax", &[&data], out, vec![int("axis", s.axis as i64)]);
            }
            Op::LayerNorm(norm) => {
                let mut operands: Vec<String> = inputs.iter().map(|name| name.to_string()).collect();
                if operands.len() == 1 {
                    // ONNX has no form without a scale.
                    let sizes =
                        self.graph.ty(node.inputs[0]).shape().ok_or_else(|| no_form("its sizes are open".into()))?;
                    operands
                        .push(self.constant(&format!("{out}/scale"), &Tensor::from_fn(&sizes[norm.axis..], |_| 1f32)));
                }
                let operands: Vec<&str> = operands.iter().map(String::as_str).collect();
                let epsilon = float("epsilon", norm.epsilon);
                self.emit("LayerNormalization", &operands, out, vec![int("axis", norm.axis as i64), epsilon]);
            }
            Op::Quantize(q) => {
                if q.rounding != QuantRounding::HalfEven {
                    return Err(no_form("it rounds ties away from zero, but QuantizeLinear to even".into()));
                }
                let (scale, zero_point) = self.parameters(out, q.dtype, &q.scale, &q.zero_point);
                let zero_point = zero_point.unwrap_or_default();
                let axis = int("axis", q.axis as i64);
                self.emit("QuantizeLinear", &[inputs[0], &scale, &zero_point], out, vec![axis]);
            }
            Op::Dequantize(d) => {
                let dtype = self.graph.ty(node.inputs[0]).dtype;
                // In ONNX a zero point has the type of its tensor, and that of 32-bit integers is 0.
                let legal = match dtype {
                    DType::I8 => -128..=127,
                    DType::U8 => 0..=255,
                    _ => 0..=0,
                };
                if let Some(zero) = d.zero_point.iter().find(|zero| !legal.contains(*zero)) {
                    return Err(no_form(format!("{zero} is not a zero point of {dtype} in ONNX")));
                }
                self.dequantize(out, inputs[0], dtype, &d.scale, &d.zero_point, d.axis as i64);
            }
            _ => return Err(no_form("it is an operator that ONNX does not have".into())),
        }
        Ok(())
    }

    fn conv(&mut self, node: &Node, op: &Conv2d, out: &str) -> Result<(), WriteError> {
        let data = self.value(node.inputs[0])?;
        let perm = [0, 3, 1, 2];
        let turned = self.turned(node.inputs[1], &|t| t.transposed(&perm), 0)?;
        let weight = match turned {
            Some(name) => name,
            None => {
                let w = self.value(node.inputs[1])?;
                self.part(&format!("{out}/weight"), "Transpose", &[&w], vec![ints("perm", &perm)])
            }
        };
        let mut operands = vec![data, weight];
        if let Some(&b) = node.inputs.get(2) {
            operands.push(self.value(b)?);
        }
        let kernel = self.graph.ty(node.inputs[1]).shape().unwrap_or_default();
        let attributes = vec![
            ints("kernel_shape", kernel.get(1..3).unwrap_or_default()),
            ints("strides", &op.strides),
            ints("pads", &op.pads),
            ints("dilations", &op.dilations),
            int("group", op.groups as i64),
        ];
        let operands: Vec<&str> = operands.iter().map(String::as_str).collect();
        self.emit("Conv", &operands, out, attributes);
        Ok(())
    }

    fn conv_transpose(&mut self, node: &Node, op: &ConvTranspose2d, out: &str) -> Result<(), WriteError> {
        let no_form = |reason: &str| WriteError::NoForm {
            node: node.name.clone(),
            op: node.op.name(),
            reason: reason.to_string(),
        };
        let data = self.value(node.inputs[0])?;
        let (w, x) = (self.graph.ty(node.inputs[1]).shape(), self.graph.ty(node.inputs[0]).shape());
        let (w, x) = w.zip(x).ok_or_else(|| no_form("its sizes are open"))?;
        let g = op.groups.max(1);
        // [O, KH, KW, I/g] to [I, O/g, KH, KW].
        let (o, i) = (w[0] / g, w[3]);
        let turn = |t: &Tensor| {
            let apart = t.reshaped(&[g, o, w[1], w[2], i])?.transposed(&[0, 4, 1, 2, 3])?;
            apart.reshaped(&[g * i, o, w[1], w[2]])
        };
        let weight = self.turned(node.inputs[1], &turn, 1)?.ok_or_else(|| no_form("its weights are not constant"))?;
        let (mut pads, mut more) = ([op.pads[0], op.pads[1], 0, 0], [0, 0]);
        for d in 0..2 {
            let whole = (x[d + 2].max(1) - 1) * op.strides[d] + (w[d + 1] - 1) * op.dilations[d] + 1;
            let have = whole.saturating_sub(op.pads[d]);
            pads[d + 2] = have.saturating_sub(op.size[d]);
            more[d] = op.size[d].saturating_sub(have);
        }
        let mut operands = vec![data, weight];
        if let Some(&b) = node.inputs.get(2) {
            operands.push(self.value(b)?);
        }
        let attributes = vec![
            ints("kernel_shape", &w[1..3]),
            ints("strides", &op.strides),
            ints("pads", &pads),
            ints("output_padding", &more),
            ints("dilations", &op.dilations),
            int("group", op.groups as i64),
        ];
        let operands: Vec<&str> = operands.iter().map(String::as_str).collect();
        self.emit("ConvTranspose", &operands, out, attributes);
        Ok(())
    }

    fn unary(&mut self, u: &Unary, (x, dtype): (&str, DType), out: &str) {
        use UnaryKind::*;
        let plain = match u.kind {
            Abs => "Abs",
            Neg => "Neg",
            Sign => "Sign",
            Not => "Not",
            Exp => "Exp",
            Log => "Log",
            Sqrt => "Sqrt",
            Reciprocal => "Reciprocal",
            Floor => "Floor",
            Ceil => "Ceil",
            Round => "Round",
            Sin => "Sin",
            Cos => "Cos",
            Tanh => "Tanh",
            Erf => "Erf",
            Sigmoid => "Sigmoid",
            Softplus => "Softplus",
            Softsign => "Softsign",
            HardSwish => "HardSwish",
            LeakyRelu => return self.emit("LeakyRelu", &[x], out, vec![float("alpha", u.alpha)]),
            Elu => return self.emit("Elu", &[x], out, vec![float("alpha", u.alpha)]),
            HardSigmoid => {
                let attributes = vec![float("alpha", u.alpha), float("beta", u.beta)];
                return self.emit("HardSigmoid", &[x], out, attributes);
            }
            // In parts, because operator set 17 does not have these.
            Silu => {
                let s = self.part(&format!("{out}/sigmoid"), "Sigmoid", &[x], vec![]);
                return self.emit("Mul", &[x, &s], out, vec![]);
            }
            Mish => {
                let s = self.part(&format!("{out}/softplus"), "Softplus", &[x], vec![]);
                let t = self.part(&format!("{out}/tanh"), "Tanh", &[&s], vec![]);
                return self.emit("Mul", &[x, &t], out, vec![]);
            }
            Gelu => {
                let root = self.number(&format!("{out}/root"), std::f32::consts::FRAC_1_SQRT_2, dtype);
                let v = self.part(&format!("{out}/scaled"), "Mul", &[x, &root], vec![]);
                let v = self.part(&format!("{out}/erf"), "Erf", &[&v], vec![]);
                return self.half_of_one_more((x, dtype), &v, out);
            }
            GeluTanh => {
                let [a, b] = [crate::graph::op::GELU_A, crate::graph::op::GELU_B];
                let (a, b) = (
                    self.number(&format!("{out}/a"), a as f32, dtype),
                    self.number(&format!("{out}/b"), b as f32, dtype),
                );
                let v = self.part(&format!("{out}/square"), "Mul", &[x, x], vec![]);
                let v = self.part(&format!("{out}/cube"), "Mul", &[&v, x], vec![]);
                let v = self.part(&format!("{out}/part"), "Mul", &[&v, &b], vec![]);
                let v = self.part(&format!("{out}/sum"), "Add", &[x, &v], vec![]);
                let v = self.part(&format!("{out}/scaled"), "Mul", &[&v, &a], vec![]);
                let v = self.part(&format!("{out}/tanh"), "Tanh", &[&v], vec![]);
                return self.half_of_one_more((x, dtype), &v, out);
            }
        };
        self.emit(plain, &[x], out, vec![]);
    }

    /// `x * (1 + v) / 2`.
    fn half_of_one_more(&mut self, (x, dtype): (&str, DType), v: &str, out: &str) {
        let (one, half) =
            (self.number(&format!("{out}/one"), 1.0, dtype), self.number(&format!("{out}/half"), 0.5, dtype));
        let v = self.part(&format!("{out}/more"), "Add", &[v, &one], vec![]);
        let v = self.part(&format!("{out}/product"), "Mul", &[x, &v], vec![]);
        self.emit("Mul", &[&v, &half], out, vec![]);
    }

    fn arg(&mut self, a: &ArgReduce, x: &str, out: &str) {
        let attributes = vec![
            int("axis", a.axis as i64),
            int("keepdims", a.keep_dims.into()),
            int("select_last_index", a.last.into()),
        ];
        let op = if a.greatest { "ArgMax" } else { "ArgMin" };
        if a.dtype == DType::I64 {
            return self.emit(op, &[x], out, attributes);
        }
        let index = self.part(&format!("{out}/index"), op, &[x], attributes);
        self.emit("Cast", &[&index], out, vec![int("to", number(a.dtype).into())]);
    }

    /// Writes a sum over taps, each a `Gather` times weights.
    fn resample(&mut self, node: &Node, axis: usize, x: &str, out: &str) -> Result<(), WriteError> {
        let no_form =
            |reason: &str| WriteError::NoForm { node: node.name.clone(), op: node.op.name(), reason: reason.into() };
        let constant = |v: ValueId| self.graph.constant(v).cloned().ok_or_else(|| no_form("its taps are not constant"));
        let (index, weight) = (constant(node.inputs[1])?, constant(node.inputs[2])?);
        let (places, factors) = match (index.as_slice::<i32>(), weight.as_slice::<f32>()) {
            (Ok(p), Ok(f)) => (p, f),
            _ => return Err(no_form("its weights are not floats")),
        };
        let taps = index.shape().get(1).copied().unwrap_or(0);
        let to = index.shape()[0];
        let mut shape = vec![1; self.graph.ty(node.inputs[0]).rank()];
        shape[axis] = to;
        let mut sum: Option<String> = None;
        for t in 0..taps {
            let at = |i: usize| i * taps + t;
            let chosen =
                self.integers(&format!("{out}/index"), &(0..to).map(|i| places[at(i)].into()).collect::<Vec<_>>());
            let v = self.part(&format!("{out}/tap"), "Gather", &[x, &chosen], vec![int("axis", axis as i64)]);
            let w = self.constant(&format!("{out}/weight"), &Tensor::from_fn(&shape, |i| factors[at(i)]));
            let v = self.part(&format!("{out}/weighted"), "Mul", &[&v, &w], vec![]);
            sum = Some(match sum {
                Some(s) => self.part(&format!("{out}/sum"), "Add", &[&s, &v], vec![]),
                None => v,
            });
        }
        let sum = sum.ok_or_else(|| no_form("it has no taps"))?;
        self.emit("Identity", &[&sum], out, vec![]);
        Ok(())
    }
}

fn binary(kind: BinaryKind) -> &'static str {
    match kind {
        BinaryKind::Sub => "Sub",
        BinaryKind::Mul => "Mul",
        BinaryKind::Div => "Div",
        BinaryKind::Mod => "Mod",
        BinaryKind::Min => "Min",
        BinaryKind::Max => "Max",
        BinaryKind::Pow => "Pow",
        BinaryKind::And => "And",
        BinaryKind::Or => "Or",
        BinaryKind::Xor => "Xor",
        BinaryKind::ShiftLeft | BinaryKind::ShiftRight => "BitShift",
        BinaryKind::Equal => "Equal",
        BinaryKind::Less => "Less",
        BinaryKind::LessEqual => "LessOrEqual",
    }
}
