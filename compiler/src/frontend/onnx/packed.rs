//! Imports nodes of domains that the caller names: each calls a function that the program registers under the
//! operator's full name.
//!
//! Nothing is known of such an operator, so the file must tell the types of its results (`value_info`).

use super::context::Context;
use super::function::{domain, full_name};
use super::node::NodeContext;
use super::proto::{AttributeProto, NodeProto};
use super::used::{TYPES, held};
use crate::frontend::reason::Reason;
use crate::graph::op::{Attr, Packed};
use crate::graph::{Op, TensorType};
use std::collections::BTreeMap;

impl Context<'_> {
    /// Whether nodes of this operator become calls of functions.
    pub fn calls_function(&self, node: &NodeProto) -> bool {
        self.packed.iter().any(|named| domain(named) == domain(&node.domain))
    }

    /// The type of a value by the innermost graph that declares it, with the sizes of the inputs' symbols.
    fn declared(&self, name: &str) -> Result<TensorType, Reason> {
        let ty = self.scope().types.get(name);
        let ty = ty.ok_or_else(|| {
            format!(
                "the type of its output `{name}` is not known; declare element type and shape in the file's value_info, \
                 as ONNX's shape inference does for known operators"
            )
        })?;
        let ty = ty.clone()?.bind(&self.bound);
        match ty.dims.iter().find(|dim| dim.known().is_none()) {
            None => Ok(ty),
            Some(open) => Err(format!(
                "its output `{name}` is {ty}, but no input has the size `{open}`; declare it as a number or as the \
                 symbol of an input's size"
            )
            .into()),
        }
    }
}

impl NodeContext<'_, '_> {
    /// Imports the node as a call of a function.
    pub fn packed(&mut self) -> Result<(), Reason> {
        let outputs = self.proto.output.iter().enumerate().map(|(i, name)| match name.is_empty() {
            true => Err(format!("its output {i} has no name, so that its type is not known; name it").into()),
            false => self.cx.declared(name),
        });
        let types = outputs.collect::<Result<Vec<_>, Reason>>()?;
        let given = self.proto.input.iter().rposition(|name| !name.is_empty()).map_or(0, |last| last + 1);
        let left_out = |i| Reason(format!("its operand {i} is left out, but functions take all operands"));
        let mut inputs = Vec::with_capacity(given);
        for i in 0..given {
            if !self.has_input(i) {
                return Err(left_out(i));
            }
            inputs.push(self.plain(i)?);
        }
        let mut attributes = BTreeMap::new();
        for a in &self.proto.attribute {
            if attributes.insert(a.name.clone(), attribute(a)?).is_some() {
                return Err(format!("its attribute `{}` is given twice", a.name).into());
            }
        }
        let function = full_name(&self.proto.domain, &self.proto.op_type, &self.proto.overload);
        let op = Op::Packed(Packed { function, attributes, types });
        let name = self.name().to_owned();
        let values = self.graph.node_outputs(&name, op, &inputs)?;
        self.outputs(&values)
    }
}

/// The value of an attribute.
fn attribute(a: &AttributeProto) -> Result<Attr, Reason> {
    let text = |bytes: &[u8]| match std::str::from_utf8(bytes) {
        Ok(text) => Ok(Attr::Text(text.into())),
        Err(_) => Err(Reason(format!("its attribute `{}` is not UTF-8", a.name))),
    };
    Ok(match held(a) {
        1 => Attr::Float(a.f),
        0 | 2 => Attr::Int(a.i),
        3 => text(&a.s)?,
        6 => Attr::List(a.floats.iter().map(|x| Attr::Float(*x)).collect()),
        7 => Attr::List(a.ints.iter().map(|i| Attr::Int(*i)).collect()),
        8 => Attr::List(a.strings.iter().map(|s| text(s)).collect::<Result<_, _>>()?),
        other => {
            let known = TYPES.get(other).map_or_else(|| format!("number {other}"), |t| (*t).into());
            return Err(format!(
                "its attribute `{}` is of type {known}; functions get numbers, texts and lists of them: make it an \
                 operand",
                a.name
            )
            .into());
        }
    })
}

#[cfg(test)]
mod tests;
