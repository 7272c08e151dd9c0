//! Calls of operators in the text of tensor expressions.
//!
//! ```text
//! sum = conv2d(x, w, pads = [1, 1, 1, 1])
//! output y: i8[1, 28, 28, 64] = requantize(sum, bias, multiplier, shift, axis = 3)
//! ```
//!
//! A call defines a tensor: operands are tensors, attributes have names. The type of the result follows from them; if
//! it is written, it is checked. The operators are those of [`ops::operators`](super::ops::operators).

use super::ops::{Call, CallError};
use super::read::{Parsed, Reader};
use super::{DType, Definition, Name, Tensor, TensorRef};
use crate::graph::op::Attr;

/// Deepest nesting of lists.
const MAX_LISTS: usize = 4;

impl Reader<'_> {
    /// Returns whether a call comes next: a name without a type, or with a type whose dimensions are plain numbers.
    pub(super) fn starts_call(&mut self) -> bool {
        let at = self.mark();
        let plain = self.word("").is_ok() && self.eat("=");
        self.back(at);
        let typed = self.head().is_ok() && self.integer().is_ok();
        self.back(at);
        plain || typed
    }

    /// Reads a call. Returns the tensors of its stages, then its result.
    pub(super) fn call(&mut self, tensors: &[Tensor]) -> Parsed<Vec<Tensor>> {
        let start = self.mark();
        let name = self.word("a tensor's name")?;
        let declared = self.declared()?;
        self.expect("=")?;
        let at = self.mark();
        let operator = self.word("an operator")?;
        self.expect("(")?;
        let refuse = |r: &Self, e: CallError| r.refuse_at(at, e.to_string());
        let mut call = match Call::of(operator.as_str()) {
            Ok(call) => call,
            Err(e) => return refuse(self, e),
        };
        let mut args: Vec<TensorRef> = Vec::new();
        for argument in self.separated(")", |r| r.argument(tensors))? {
            match argument {
                Argument::Operand(tensor) => args.push(tensor),
                Argument::Attribute(name, value) => call = call.set(name.as_str(), value),
            }
        }
        let stages = match call.stages(&name, &args) {
            Ok(stages) => stages,
            Err(e) => return refuse(self, e),
        };
        let end = self.mark();
        self.back(at);
        for stage in &stages {
            let sums = if let Definition::Reduce { axes, .. } = &stage.definition { axes.as_slice() } else { &[] };
            self.counted([&stage.axes, sums].concat())?;
            self.small(stage.axes.clone())?;
        }
        self.back(end);
        if let (Some((dtype, shape)), Some(result)) = (declared, stages.last())
            && (dtype, &shape) != (result.dtype, &result.shape())
        {
            let found = result.shape();
            let message = format!("{name} is {}{found:?}, but {dtype}{shape:?} is written here", result.dtype);
            return self.refuse_at(start, message);
        }
        Ok(stages)
    }

    /// Reads the type of a result, if it is written.
    fn declared(&mut self) -> Parsed<Option<(DType, Vec<i64>)>> {
        if !self.eat(":") {
            return Ok(None);
        }
        let dtype = self.dtype()?;
        self.expect("[")?;
        Ok(Some((dtype, self.separated("]", Self::extent)?)))
    }

    fn argument(&mut self, tensors: &[Tensor]) -> Parsed<Argument> {
        let at = self.mark();
        let name = self.word("a tensor, or `ATTRIBUTE = VALUE`")?;
        if self.eat("=") {
            return Ok(Argument::Attribute(name, self.attribute(0)?));
        }
        if self.eat("(") {
            let message = format!("an operand is the name of a tensor; call {name} above, in a definition of its own");
            return self.refuse_at(at, message);
        }
        match tensors.iter().find(|t| t.name == name) {
            Some(t) => Ok(Argument::Operand(t.reference())),
            None => self.fail_at(at, "the name of a tensor above, or `ATTRIBUTE = VALUE`"),
        }
    }

    /// Reads the value of an attribute.
    fn attribute(&mut self, depth: usize) -> Parsed<Attr> {
        const EXPECTED: &str = "a number, a word or a list such as [1, 1]";
        if self.eat("[") {
            if depth == MAX_LISTS {
                return self.fail(EXPECTED);
            }
            return Ok(Attr::List(self.separated("]", |r| r.attribute(depth + 1))?));
        }
        let at = self.mark();
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "_-+.".contains(c))).unwrap_or(rest.len());
        let word = &rest[..end];
        let value = match word.trim_start_matches(['-', '+']).chars().next() {
            Some(c) if c.is_ascii_digit() => {
                word.parse().map(Attr::Int).ok().or_else(|| word.parse().map(Attr::Float).ok())
            }
            Some(_) => Some(Attr::Word(word.into())),
            None => None,
        };
        match value {
            Some(value) => {
                self.back(at + end);
                Ok(value)
            }
            None => self.fail_at(at, EXPECTED),
        }
    }
}

/// An argument of a call.
enum Argument {
    Operand(TensorRef),
    Attribute(Name, Attr),
}
