//! `packed`: a function that the program has registered by name.

use super::attr::{Attr, AttrReader};
use crate::graph::tensor::runtime_dtype;
use crate::graph::{OpError, Tensor, TensorType};
use std::collections::BTreeMap;
use tilewright_runtime::Registry;
use tilewright_runtime::packed::{Attribute, Attributes, Output, PackedCall};

/// Calls a function that the program has registered, with any number of operands. Nothing is known of what it computes,
/// so no pass evaluates it or looks through it.
///
/// Its attributes are any names with numbers, texts, and lists of them; the text form has the function's name and the
/// attributes as a list of pairs.
#[derive(Debug, Clone, PartialEq)]
pub struct Packed {
    /// The function's name.
    pub function: String,
    /// What the function gets in addition to the operands.
    pub attributes: BTreeMap<String, Attr>,
    /// The types of what it returns.
    pub types: Vec<TensorType>,
}

impl Packed {
    /// The operator's name in the text form.
    pub const NAME: &'static str = "packed";

    pub(crate) fn infer(&self, _: &[&TensorType]) -> Result<Vec<TensorType>, OpError> {
        if self.types.is_empty() {
            return Err(OpError::attribute("function", "must return at least one tensor"));
        }
        Ok(self.types.clone())
    }

    /// Calls the function of the process's registry.
    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Vec<Tensor>, OpError> {
        let failed = |reason| OpError::Function { function: self.function.clone(), reason };
        let function = Registry::global().get(&self.function);
        let function = function.ok_or_else(|| failed("it is not registered; register it first".to_string()))?;
        let output = |(index, ty): (usize, &TensorType)| {
            let name = format!("result {index}");
            let open = || OpError::Symbolic { operand: name.clone(), found: ty.clone() };
            Ok(Output { shape: ty.shape().ok_or_else(open)?, name, dtype: runtime_dtype(ty.dtype) })
        };
        let outputs = self.types.iter().enumerate().map(output).collect::<Result<_, OpError>>()?;
        let call = PackedCall::new(function, &self.values(), outputs);
        let results = call.call(inputs.iter().map(|t| (*t).into())).map_err(failed)?;
        results.iter().map(Tensor::try_from).collect()
    }

    /// The attributes, as the function gets them.
    pub fn values(&self) -> Attributes {
        self.attributes.iter().map(|(name, attr)| (name.clone(), attribute(attr))).collect()
    }

    /// The same function with symbols of its types replaced by sizes.
    pub(crate) fn bind(&self, sizes: &BTreeMap<String, usize>) -> Packed {
        Packed { types: self.types.iter().map(|ty| ty.bind(sizes)).collect(), ..self.clone() }
    }

    pub(crate) fn attrs(&self) -> Vec<(&'static str, Attr)> {
        let pair = |(name, value): (&String, &Attr)| Attr::List(vec![Attr::Text(name.clone()), value.clone()]);
        let mut all = vec![("function", Attr::Text(self.function.clone()))];
        if !self.attributes.is_empty() {
            all.push(("attributes", Attr::List(self.attributes.iter().map(pair).collect())));
        }
        all
    }

    /// The operator with these attributes. It has no types yet; the reader of the text adds them.
    pub(crate) fn from_attrs(r: &mut AttrReader) -> Option<Packed> {
        let function = r.take("function");
        let pairs = match r.attrs.remove("attributes") {
            None => Vec::new(),
            Some(Attr::List(pairs)) => pairs,
            Some(other) => vec![other],
        };
        let mut attributes = BTreeMap::new();
        for pair in pairs {
            match pair {
                Attr::List(pair) if matches!(pair.as_slice(), [Attr::Text(_), _]) => {
                    let mut pair = pair.into_iter();
                    if let (Some(Attr::Text(name)), Some(value)) = (pair.next(), pair.next())
                        && attributes.insert(name.clone(), numbers(value)).is_some()
                    {
                        r.errors.push(format!("attribute `{name}` of the function is given twice"));
                    }
                }
                other => r.errors.push(format!("`attributes` must be pairs of a name and a value, found {other}")),
            }
        }
        Some(Packed { function: function?, attributes, types: Vec::new() })
    }
}

/// An attribute, as the function gets it.
fn attribute(attr: &Attr) -> Attribute {
    match attr {
        Attr::Int(value) => Attribute::Integer(*value),
        Attr::Float(value) => Attribute::Float(f64::from(*value)),
        Attr::Text(text) | Attr::Word(text) => Attribute::String(text.clone()),
        Attr::List(list) => Attribute::List(list.iter().map(attribute).collect()),
    }
}

/// An attribute as it was printed: the text form writes infinities and NaN as words.
fn numbers(attr: Attr) -> Attr {
    match attr {
        Attr::Word(word) if matches!(word.as_str(), "inf" | "-inf" | "NaN") => {
            word.parse().map_or(Attr::Word(word), Attr::Float)
        }
        Attr::List(list) => Attr::List(list.into_iter().map(numbers).collect()),
        other => other,
    }
}
