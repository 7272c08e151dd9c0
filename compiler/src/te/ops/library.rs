//! The operators by name: what each takes, and calls of them. `.te` files call operators through this file.
//!
//! The list comes from the graph's operators, whose expressions the builders next to this file write. In addition, each
//! function of `unary` and `binary` is an operator of its own: `tanh(x)` is `unary(x, kind = tanh)`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use thiserror::Error;

use super::build;
use crate::graph::TensorType;
use crate::graph::op::attr::AttrReader;
use crate::graph::op::{Attr, AttrValue, Attribute, Binary, Compute, Count, Op, Operand, Signature, Unary};
use crate::te::{Axis, Builder, Definition, Expr, Name, Operators, Tensor, TensorRef};

/// The attribute that selects a function.
const KIND: &str = "kind";
/// Parameters of functions, which only some have.
const PARAMETERS: [&str; 2] = ["alpha", "beta"];
/// Most bytes of a tensor.
const MOST_BYTES: i64 = 1 << 48;

/// An operator that can be called by name.
#[derive(Debug, Clone, PartialEq)]
pub struct Operator {
    /// The name in calls.
    pub name: &'static str,
    /// Operands and attributes of the graph's operator.
    pub signature: Signature,
    /// The function of the graph's operator that the name selects.
    pub kind: Option<&'static str>,
}

/// Why a call is none.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CallError {
    /// No operator has this name.
    #[error("there is no operator {name}; there are {}", names())]
    Unknown {
        /// The name.
        name: String,
    },
    /// Operands or attributes do not fit the operator.
    #[error("{operator}: {}", .reasons.join("; "))]
    Wrong {
        /// The operator's name.
        operator: &'static str,
        /// Everything that is wrong.
        reasons: Vec<String>,
    },
}

/// Returns the operators: first those of the graph, then the functions of `unary` and `binary`.
pub fn operators() -> &'static [Operator] {
    static OPERATORS: LazyLock<Vec<Operator>> = LazyLock::new(|| {
        // An expression is written as it is, and not as a call with its text.
        let signatures: Vec<Signature> = Op::signatures().into_iter().filter(|s| s.name != Compute::NAME).collect();
        let whole = |s: &Signature| Operator { name: s.name, signature: s.clone(), kind: None };
        let mut all: Vec<Operator> = signatures.iter().map(whole).collect();
        for signature in signatures.iter().filter(|s| [Unary::NAME, Binary::NAME].contains(&s.name)) {
            let words = signature.attributes.iter().find(|a| a.name == KIND).map_or(&[][..], |a| a.words);
            all.extend(words.iter().map(|&name| {
                let mut signature = signature.clone();
                signature.attributes.retain(|a| parameters(name).is_some_and(|n| PARAMETERS[..n].contains(&a.name)));
                // A function that has parameters needs them.
                signature.attributes.iter_mut().for_each(|a| a.default = None);
                Operator { name, signature, kind: Some(name) }
            }));
        }
        all
    });
    &OPERATORS
}

/// Returns how many parameters a function has, if it is one of `unary` or `binary`.
fn parameters(kind: &str) -> Option<usize> {
    let kind = Attr::Word(kind.into());
    let unary = crate::graph::op::UnaryKind::from_attr(&kind).map(|k| k.parameters());
    unary.or(crate::graph::op::BinaryKind::from_attr(&kind).map(|_| 0))
}

/// Returns all names, separated by commas.
fn names() -> String {
    operators().iter().map(|o| o.name).collect::<Vec<_>>().join(", ")
}

impl Operator {
    /// Returns the operator called `name`.
    ///
    /// # Errors
    /// [`CallError::Unknown`].
    pub fn named(name: &str) -> Result<&'static Operator, CallError> {
        operators().iter().find(|o| o.name == name).ok_or_else(|| CallError::Unknown { name: name.into() })
    }

    /// Returns how the operator is called, such as `dense(data, weight, [bias], data_zero_point = 0)`. Operands in
    /// brackets can be left out; attributes without a value must be given.
    pub fn form(&self) -> String {
        let operand = |o: &Operand| match o.count {
            Count::One => o.name.to_string(),
            Count::Optional => format!("[{}]", o.name),
            Count::Several => format!("{}, …", o.name),
        };
        let attribute = |a: &Attribute| match &a.default {
            Some(default) => format!("{} = {default}", a.name),
            None => format!("{} = …", a.name),
        };
        let s = &self.signature;
        let parts: Vec<String> = s.operands.iter().map(operand).chain(s.attributes.iter().map(attribute)).collect();
        format!("{}({})", self.name, parts.join(", "))
    }
}

/// A call of an operator, to be appended to a program.
///
/// ```
/// use tilewright_compiler::te::ops::{Call, CallError};
/// use tilewright_compiler::te::{Builder, DType};
/// let mut b = Builder::new("layer");
/// let x = b.input("x", DType::I8, &[1, 28, 28, 64]);
/// let w = b.input("w", DType::I8, &[32, 3, 3, 64]);
/// let sum = Call::of("conv2d")?.with("pads", [1, 1, 1, 1]).append(&mut b, "sum", &[x, w])?;
/// assert_eq!(sum.shape, [1, 28, 28, 32]);
/// let program = b.finish(&[sum]);
/// // The padded image is a tensor of its own.
/// assert!(program.tensor(&"sum.pad".into()).is_some());
/// # Ok::<(), CallError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    operator: &'static Operator,
    attributes: BTreeMap<String, Attr>,
    errors: Vec<String>,
}

impl Call {
    /// Starts a call of the operator called `name`, whose attributes have their defaults.
    ///
    /// # Errors
    /// [`CallError::Unknown`].
    pub fn of(name: &str) -> Result<Call, CallError> {
        Ok(Call { operator: Operator::named(name)?, attributes: BTreeMap::new(), errors: Vec::new() })
    }

    /// Gives an attribute a value.
    #[must_use]
    pub fn with(self, attribute: &str, value: impl AttrValue) -> Call {
        self.set(attribute, value.to_attr())
    }

    /// Gives an attribute a value as the text form writes it.
    #[must_use]
    pub fn set(mut self, attribute: &str, value: Attr) -> Call {
        if !self.operator.signature.attributes.iter().any(|a| a.name == attribute) {
            self.errors.push(format!("there is no attribute {attribute} in {}", self.operator.form()));
        } else if !in_range(&value) {
            self.errors.push(format!("attribute {attribute} has a number beyond 32 bits"));
        } else if self.attributes.insert(attribute.into(), value).is_some() {
            self.errors.push(format!("attribute {attribute} is given twice"));
        }
        self
    }

    /// Returns the graph's operator with its attributes.
    ///
    /// # Errors
    /// All attributes that are missing, unknown or wrong.
    pub fn op(self) -> Result<Op, CallError> {
        let Operator { signature, kind, .. } = self.operator;
        let mut reader = AttrReader { attrs: self.attributes, errors: Vec::new() };
        let mut errors = self.errors;
        let missing = signature.attributes.iter().filter(|a| a.default.is_none() && !reader.attrs.contains_key(a.name));
        errors.extend(missing.map(|a| format!("attribute {} is missing: {}", a.name, sentence(a.doc))));
        if errors.is_empty() {
            let given = |a: &Attribute| Some((a.name.to_string(), a.default.clone()?));
            // The defaults of the graph's operator come last: a function leaves out parameters that it does not have.
            let whole = Operator::named(signature.name)?;
            let defaults = signature.attributes.iter().chain(&whole.signature.attributes).filter_map(given);
            let kind = kind.map(|k| (KIND.to_string(), Attr::Word(k.into())));
            for (name, value) in defaults.chain(kind) {
                reader.attrs.entry(name).or_insert(value);
            }
            if let Some(op) = Op::from_attrs(signature.name, &mut reader) {
                return Ok(op);
            }
            errors.extend(reader.errors.into_iter().map(|e| {
                let of = |a: &&Attribute| e.starts_with(&format!("attribute `{}`", a.name));
                signature.attributes.iter().find(of).map_or(e.clone(), |a| format!("{e} ({})", sentence(a.doc)))
            }));
        }
        Err(CallError::Wrong { operator: self.operator.name, reasons: errors })
    }

    /// Appends the operator's result to a program, as a tensor called `name`, and before it the tensors of its stages,
    /// such as `name.pad`.
    ///
    /// # Errors
    /// What is wrong with the attributes, or with the number, types and shapes of the operands.
    pub fn append(self, b: &mut Builder, name: &str, args: &[TensorRef]) -> Result<TensorRef, CallError> {
        let operator = self.operator.name;
        let tensors = self.stages(&b.unique(name), args)?;
        b.append(tensors).ok_or_else(|| CallError::Wrong { operator, reasons: vec!["it computes nothing".into()] })
    }

    /// Returns the tensors that compute the operator: those of its stages, then the result, called `name`.
    fn stages(self, name: &Name, args: &[TensorRef]) -> Result<Vec<Tensor>, CallError> {
        let (operator, form) = (self.operator.name, self.operator.form());
        let wrong = |reason: String| CallError::Wrong { operator, reasons: vec![reason] };
        let op = self.op()?;
        let ty = |t: &TensorRef| {
            let size = |&n: &i64| usize::try_from(n).map_err(|_| wrong(format!("{} has a negative size", t.name)));
            Ok(TensorType::new(t.dtype, &t.shape.iter().map(size).collect::<Result<Vec<_>, _>>()?))
        };
        let types: Vec<TensorType> = args.iter().map(ty).collect::<Result<_, _>>()?;
        let inferred = op.infer(&types.iter().collect::<Vec<_>>());
        let result = inferred.map_err(|e| match e {
            crate::graph::OpError::Arity { .. } => wrong(format!("{e}; the form is {form}")),
            e => wrong(e.to_string()),
        })?;
        let known = result.first().and_then(TensorType::shape).ok_or_else(|| wrong("its size is unknown".into()))?;
        let shape: Vec<i64> = known.iter().map(|&n| i64::try_from(n).unwrap_or(i64::MAX)).collect();
        fits(&shape).map_err(wrong)?;
        // Operands have names that no stage has, so that the names of stages depend on the operator alone.
        let mut b = Builder::new(name.as_str());
        let operands: Vec<TensorRef> =
            args.iter().enumerate().map(|(i, t)| b.input(&format!("%{i}"), t.dtype, &t.shape)).collect();
        let built = build(&mut b, &op, &operands, &shape).ok_or_else(|| wrong(format!("the form is {form}")))?;
        let named = |of: &Name| match operands.iter().position(|t| t.name == *of) {
            Some(i) => args[i].name.clone(),
            None if *of == built.name => name.clone(),
            None => format!("{name}.{of}").into(),
        };
        let mut tensors = b.finish(std::slice::from_ref(&built)).tensors.split_off(operands.len());
        // The result is the last one.
        tensors.sort_by_key(|t| t.name == built.name);
        tensors.iter().try_for_each(|t| fits(&t.shape())).map_err(wrong)?;
        Ok(tensors.into_iter().map(|t| renamed(t, &named)).collect())
    }
}

/// The operators of the graph, for texts that call them.
///
/// ```
/// use tilewright_compiler::te::{ops::Library, text::{Names, parse_with}};
/// let text = "te t { input x: f32[8, 16] output y = softmax(x, axis = 1) }";
/// let program = parse_with(text, &Names { operators: &Library, ..Names::default() })?;
/// assert_eq!(program.tensor(&"y".into()).unwrap().shape(), [8, 16]);
/// # Ok::<(), tilewright_compiler::te::ParseError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Library;

impl Operators for Library {
    fn stages(
        &self,
        operator: &str,
        attributes: Vec<(Name, Attr)>,
        result: &Name,
        operands: &[TensorRef],
    ) -> Result<Vec<Tensor>, String> {
        let called = Call::of(operator).and_then(|call| {
            let set = |call: Call, (name, value): (Name, Attr)| call.set(name.as_str(), value);
            attributes.into_iter().fold(call, set).stages(result, operands)
        });
        called.map_err(|e| e.to_string())
    }
}

/// Checks the sizes of a tensor.
fn fits(shape: &[i64]) -> Result<(), String> {
    let elements = shape.iter().try_fold(8i64, |n, &d| if d > 0 { n.checked_mul(d) } else { None });
    match elements {
        Some(bytes) if bytes <= MOST_BYTES => Ok(()),
        _ => Err(format!("a tensor of shape {shape:?} has no elements, or more than any memory")),
    }
}

/// Returns whether all integers have 32 bits, so that sums of them do not overflow sizes.
fn in_range(value: &Attr) -> bool {
    match value {
        Attr::Int(i) => i32::try_from(*i).is_ok(),
        Attr::List(list) => list.iter().all(in_range),
        Attr::Float(_) | Attr::Word(_) | Attr::Text(_) => true,
    }
}

/// Returns the first sentence of a doc comment, without its dot.
fn sentence(doc: &str) -> String {
    let line = doc.split_whitespace().collect::<Vec<_>>().join(" ");
    line.split(". ").next().unwrap_or_default().trim_end_matches('.').to_string()
}

/// Returns a tensor with other names: its own, those of its axes, which begin with it, and those of what it reads.
pub(super) fn renamed(t: Tensor, named: &dyn Fn(&Name) -> Name) -> Tensor {
    let name = named(&t.name);
    let axis = |v: &Name| -> Name {
        v.as_str().strip_prefix(t.name.as_str()).map_or_else(|| v.clone(), |rest| format!("{name}{rest}").into())
    };
    let axes = |list: Vec<Axis>| list.into_iter().map(|a| Axis { var: axis(&a.var), ..a }).collect();
    let value = |e: Expr| {
        e.rewrite(&mut |e| match e {
            Expr::Var(v) => Expr::Var(axis(&v)),
            Expr::Load { buffer, dtype, indices } => Expr::Load { buffer: named(&buffer), dtype, indices },
            e => e,
        })
    };
    let definition = match t.definition {
        Definition::Input => Definition::Input,
        Definition::Compute(e) => Definition::Compute(value(e)),
        Definition::Reduce { axes: over, combiner, init, value: v } => {
            Definition::Reduce { axes: axes(over), combiner, init: value(init), value: value(v) }
        }
    };
    Tensor { axes: axes(t.axes), name: name.clone(), dtype: t.dtype, definition }
}

#[cfg(test)]
mod tests;
