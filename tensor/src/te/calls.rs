//! Calls of operators in the text of tensor expressions.
//!
//! ```text
//! sum = conv2d(x, w, pads = [1, 1, 1, 1])
//! output y: i8[1, 28, 28, 64] = requantize(sum, bias, multiplier, shift, axis = 3)
//! ```
//!
//! A call defines a tensor: operands are tensors, attributes have names. The type of the result follows from them; if
//! it is written, it is checked. The operators are given to the parser, because they are the compiler's.

use std::fmt::{self, Debug};

use super::read::{Parsed, Reader};
use super::{DType, Definition, Name, Tensor, TensorRef};

/// An attribute as the text form writes it.
#[derive(Debug, Clone, PartialEq)]
pub enum Attr {
    /// An integer.
    Int(i64),
    /// A real number.
    Float(f32),
    /// A word such as `nhwc` or `true`.
    Word(String),
    /// Any text, in quotes.
    Text(String),
    /// A list.
    List(Vec<Attr>),
}

/// A text in quotes; quotes, backslashes and control characters are escaped as in Rust.
pub fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c.is_control() => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

impl fmt::Display for Attr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Attr::Int(i) => write!(f, "{i}"),
            Attr::Float(x) => write!(f, "{x:?}"),
            Attr::Word(w) => f.write_str(w),
            Attr::Text(text) => f.write_str(&quote(text)),
            Attr::List(v) => {
                f.write_str("[")?;
                for (i, a) in v.iter().enumerate() {
                    write!(f, "{}{a}", if i == 0 { "" } else { ", " })?;
                }
                f.write_str("]")
            }
        }
    }
}

/// The operators that texts can call.
pub trait Operators: Debug + Sync {
    /// Returns the tensors that compute a call of an operator: those of its stages, then the result, called `result`.
    ///
    /// # Errors
    /// There is no such operator, or the attributes or operands do not fit it.
    fn stages(
        &self,
        operator: &str,
        attributes: Vec<(Name, Attr)>,
        result: &Name,
        operands: &[TensorRef],
    ) -> Result<Vec<Tensor>, String>;
}

/// No operators: texts have every expression spelled out.
#[derive(Debug, Clone, Copy)]
pub struct NoOperators;

impl Operators for NoOperators {
    fn stages(&self, name: &str, _: Vec<(Name, Attr)>, _: &Name, _: &[TensorRef]) -> Result<Vec<Tensor>, String> {
        Err(format!("{name} is not known here; spell the expression out, as `tilewright schedule --steps` prints it"))
    }
}

/// Deepest nesting of lists.
const MAX_LISTS: usize = 4;

impl Reader<'_> {
    /// Returns whether a call comes next: a name without a type, or with a type that names no axes.
    pub(super) fn starts_call(&mut self) -> bool {
        let at = self.mark();
        let plain = self.word("").is_ok() && self.eat("=");
        self.back(at);
        let typed = self.head().is_ok() && !self.eat("]") && !self.starts_axis();
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
        let (mut args, mut attributes): (Vec<TensorRef>, Vec<(Name, Attr)>) = Default::default();
        for argument in self.separated(")", |r| r.argument(tensors))? {
            match argument {
                Argument::Operand(tensor) => args.push(tensor),
                Argument::Attribute(name, value) => attributes.push((name, value)),
            }
        }
        let stages = match self.operators.stages(operator.as_str(), attributes, &name, &args) {
            Ok(stages) => stages,
            Err(reason) => return self.refuse_at(at, reason),
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
            Some(_) => Some(self.size(&word.into()).map_or(Attr::Word(word.into()), Attr::Int)),
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
