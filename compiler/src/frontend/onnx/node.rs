//! Imports one node of the file.

use super::context::{Context, Named};
use super::proto::NodeProto;
use super::tensor::{self, Element};
use super::used::Used;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::SemanticBuilder;
use crate::graph::op::{BinaryKind, Narrow, ShiftSign};
use crate::graph::{DType, Tensor, ValueId};
use std::ops::{Deref, DerefMut};

pub(super) struct NodeContext<'c, 'a> {
    pub cx: &'c mut Context<'a>,
    pub proto: &'c NodeProto,
    /// The operator set that its operator belongs to.
    pub opset: i64,
    pub used: Used,
}

impl Deref for NodeContext<'_, '_> {
    type Target = SemanticBuilder;

    fn deref(&self) -> &SemanticBuilder {
        &self.cx.net
    }
}

impl DerefMut for NodeContext<'_, '_> {
    fn deref_mut(&mut self) -> &mut SemanticBuilder {
        &mut self.cx.net
    }
}

impl NodeContext<'_, '_> {
    pub fn opset(&self) -> i64 {
        self.opset
    }

    pub fn has_input(&self, i: usize) -> bool {
        self.used.operand(i);
        self.proto.input.get(i).is_some_and(|s| !s.is_empty())
    }

    pub fn input(&mut self, i: usize) -> Result<ValueId, Reason> {
        self.used.operand(i);
        let name = self.proto.input.get(i).filter(|s| !s.is_empty());
        let name = name.ok_or_else(|| Reason(format!("operand {i} is missing")))?;
        Ok(self.cx.value(name)?)
    }

    /// An operand with the element type that it has in the file; [`NodeContext::input`] returns int8 for uint8.
    pub fn plain(&mut self, i: usize) -> Result<ValueId, Reason> {
        let v = self.input(i)?;
        self.as_plain(v)
    }

    /// What an operand is: a tensor, a sequence, or an optional value that is not there.
    pub fn meaning(&mut self, i: usize) -> Result<Named, Reason> {
        self.used.operand(i);
        let name = self.proto.input.get(i).filter(|s| !s.is_empty());
        let name = name.ok_or_else(|| Reason(format!("operand {i} is missing")))?;
        match self.cx.meaning(name)? {
            // The error says what is left out.
            Named::LeftOut(_) => Ok(Named::Value(self.cx.value(name)?)),
            found => Ok(found),
        }
    }

    /// The element type of an operand in the file, as far as it is known; otherwise that of the graph.
    pub fn element(&self, i: usize) -> Result<Element, Reason> {
        self.used.operand(i);
        let name = self.proto.input.get(i).ok_or_else(|| Reason(format!("operand {i} is missing")))?;
        Ok(self.cx.element(name).ok_or_else(|| format!("`{name}` is not defined"))?)
    }

    /// An attribute that is an element type; `None` if it is not set.
    pub fn element_attribute(&self, name: &str) -> Result<Option<Element>, Reason> {
        let Some(number) = self.int(name) else { return Ok(None) };
        let number = i32::try_from(number).map_err(|_| format!("its attribute `{name}` is not an element type"))?;
        let element = tensor::element(number).map_err(|e| format!("its attribute `{name}`: {e}"))?;
        Ok(Some(element))
    }

    /// Converts a value to an element type of the file, and notes that the node's output has it. Floats out of range of
    /// 8 bits become the greatest ones with `saturate`.
    pub fn converted(&mut self, v: ValueId, to: Element, saturate: bool) -> Result<ValueId, Reason> {
        if let Some(name) = self.proto.output.first().filter(|name| !name.is_empty()) {
            self.cx.note(name, to);
        }
        if let Some(float) = to.float {
            let v = self.cast("float", v, DType::F32)?;
            let saturate = saturate && float.size() == 1;
            return self.node("", Narrow { float, saturate }, &[v]);
        }
        let Some(bits) = to.bits else { return self.cast("", v, to.dtype) };
        let floats = self.ty(v).dtype.is_float();
        let v = if floats { self.cast("whole", v, DType::I64)? } else { v };
        let v = self.cast("byte", v, to.dtype)?;
        // The low bits, with the sign if there is one.
        let kinds = [("left", BinaryKind::ShiftLeft), ("", BinaryKind::ShiftRight)];
        let unused = Tensor::from_fn(&[], |_| (8 - bits) as i64);
        let unused = self.made("unused", unused);
        let unused = self.cast("unused", unused, to.dtype)?;
        kinds.into_iter().try_fold(v, |v, (suffix, kind)| self.binary(suffix, kind, v, unused))
    }

    /// An operand as [`NodeContext::plain`] gives it, if it is there.
    pub fn optional(&mut self, i: usize) -> Result<Option<ValueId>, Reason> {
        if self.has_input(i) { self.plain(i).map(Some) } else { Ok(None) }
    }

    fn as_plain(&mut self, v: ValueId) -> Result<ValueId, Reason> {
        if self.unsigned(v) { self.node("unsigned", ShiftSign {}, &[v]) } else { Ok(v) }
    }

    /// The value of a constant operand, as in the file.
    pub fn constant_input(&self, i: usize) -> Result<Tensor, Reason> {
        let name = self.proto.input.get(i).ok_or_else(|| Reason(format!("operand {i} is missing")))?;
        self.known(i).ok_or_else(|| {
            self.cx.must_know(name);
            Reason(format!("operand {i}, `{name}`, must be a constant"))
        })
    }

    /// The value of an operand, as in the file, if it is known.
    pub fn known(&self, i: usize) -> Option<Tensor> {
        self.used.operand(i);
        self.cx.known(self.proto.input.get(i)?)
    }

    /// The single number in a constant operand.
    pub fn number(&self, i: usize) -> Result<f64, Reason> {
        let t = self.constant_input(i)?;
        match t.doubles()[..] {
            [one] => Ok(one),
            _ => Err(Reason(format!("operand {i} must be one number, found {}", t.ty()))),
        }
    }

    /// The only element of a constant integer operand.
    pub fn whole(&self, i: usize) -> Result<i64, Reason> {
        match self.integers(i)?.as_slice() {
            [one] => Ok(*one),
            several => Err(Reason(format!("operand {i} must be one number, found {}", several.len()))),
        }
    }

    /// The elements of a constant integer operand.
    pub fn integers(&self, i: usize) -> Result<Vec<i64>, Reason> {
        let t = self.constant_input(i)?;
        if !DType::INTEGERS.contains(&t.dtype()) {
            return Err(format!("operand {i} must be integers, found {}", t.ty()).into());
        }
        let far = |x: i128| Reason(format!("operand {i}: {x} does not fit in 64 bits with a sign"));
        t.ints().into_iter().map(|x| i64::try_from(x).map_err(|_| far(x))).collect()
    }

    /// The elements of a constant float operand.
    pub fn floats(&self, i: usize) -> Result<Vec<f32>, Reason> {
        let t = self.constant_input(i)?;
        match t.dtype().is_float() {
            true => Ok(t.doubles().iter().map(|&x| x as f32).collect()),
            false => Err(format!("operand {i} must be floats, found {}", t.ty()).into()),
        }
    }

    /// Makes `v` the node's output.
    pub fn output(&mut self, v: ValueId) -> Result<(), Reason> {
        if let Some(s) = self.proto.output.iter().skip(1).find(|s| !s.is_empty()) {
            return Err(format!("only its first output is supported, not `{s}`").into());
        }
        self.outputs(&[v])
    }

    /// Makes these values the node's outputs; values that the file does not name are dropped.
    pub fn outputs(&mut self, values: &[ValueId]) -> Result<(), Reason> {
        let names = &self.proto.output;
        if names.iter().all(String::is_empty) {
            return Err("it has no output".into());
        }
        if let Some(more) = names.iter().skip(values.len()).find(|s| !s.is_empty()) {
            return Err(format!("its output `{more}` is not supported").into());
        }
        for (name, &v) in names.iter().zip(values).filter(|(n, _)| !n.is_empty()) {
            // uint8 continues as int8.
            let v = if self.ty(v).dtype == DType::U8 {
                let shifted = self.node("signed", ShiftSign {}, &[v])?;
                self.cx.unsigned.insert(shifted);
                shifted
            } else {
                v
            };
            self.cx.define(name, Named::Value(v))?;
        }
        Ok(())
    }

    /// Makes `v` the first output. Reading any other output of the node is an error.
    pub fn outputs_first(&mut self, v: ValueId) -> Result<(), Reason> {
        for name in self.proto.output.iter().skip(1).filter(|s| !s.is_empty()) {
            let maker = format!("node `{}` ({})", self.name(), self.proto.op_type);
            self.cx.define(name, Named::LeftOut(maker))?;
        }
        let name = self.proto.output.first().filter(|s| !s.is_empty()).ok_or("it has no output")?;
        Ok(self.cx.define(name, Named::Value(v))?)
    }

    /// Defines the node's output as a tensor, a sequence, or an optional value that is not there.
    pub fn output_meaning(&mut self, meaning: Named) -> Result<(), Reason> {
        self.output_meanings(vec![meaning])
    }

    /// The same for several outputs.
    pub fn output_meanings(&mut self, meanings: Vec<Named>) -> Result<(), Reason> {
        let names = &self.proto.output;
        if let Some(more) = names.iter().skip(meanings.len()).find(|s| !s.is_empty()) {
            return Err(format!("its output `{more}` is not supported").into());
        }
        let named = names.iter().zip(meanings).filter(|(name, _)| !name.is_empty());
        for (name, meaning) in named {
            self.cx.define(name, meaning)?;
        }
        Ok(())
    }

    /// Makes a known tensor, for which memory is reserved already, the node's output.
    pub fn output_known(&mut self, t: Tensor) -> Result<(), Reason> {
        let name = self.proto.output.first().filter(|s| !s.is_empty()).ok_or("it has no output")?;
        Ok(self.cx.define(name, Named::Constant(t))?)
    }

    pub fn unsigned(&self, v: ValueId) -> bool {
        self.cx.unsigned.contains(&v)
    }

    /// Makes `v` the node's output; it is uint8 in the file if `data` is.
    pub fn output_like(&mut self, v: ValueId, data: ValueId) -> Result<(), Reason> {
        self.mark_like(v, data);
        self.output(v)
    }

    /// Notes that `v` is uint8 in the file if `data` is.
    pub fn mark_like(&mut self, v: ValueId, data: ValueId) {
        if self.unsigned(data) {
            self.cx.unsigned.insert(v);
        }
    }
}
