//! Calls of packed functions from compiled models: what a function is given, and what it must return.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::function::Function;
use crate::tensor::{DType, Tensor, shape_text};
use crate::value::Value;

/// An attribute of a node of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Attribute {
    /// An integer.
    Integer(i64),
    /// A number; written as text, since JSON has no infinities.
    Float(#[serde(with = "as_text")] f64),
    /// A text.
    String(String),
    /// A list.
    List(Vec<Attribute>),
}

/// Attributes by name.
pub type Attributes = BTreeMap<String, Attribute>;

impl From<&Attribute> for Value {
    fn from(attribute: &Attribute) -> Value {
        match attribute {
            Attribute::Integer(value) => Value::Integer(*value),
            Attribute::Float(value) => Value::Float(*value),
            Attribute::String(text) => Value::String(text.clone()),
            Attribute::List(list) => list.iter().map(Value::from).collect(),
        }
    }
}

mod as_text {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(value)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        std::borrow::Cow::<str>::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

/// A tensor that a packed function must return.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    /// Its name in messages.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Lengths of the axes, slowest first.
    pub shape: Vec<usize>,
}

/// A function as a node of a model calls it: with the node's operands, then, if the node has attributes, with a map of
/// them. It returns a tensor, or a list with one for each output.
#[derive(Debug, Clone)]
pub struct PackedCall {
    function: Function,
    attributes: Option<Value>,
    outputs: Vec<Output>,
}

impl PackedCall {
    /// A call of `function`.
    pub fn new(function: Function, attributes: &Attributes, outputs: Vec<Output>) -> PackedCall {
        let values = || attributes.iter().map(|(name, value)| (name.as_str(), value.into())).collect();
        PackedCall { function, attributes: (!attributes.is_empty()).then(values), outputs }
    }

    /// Calls the function. The tensors that it returns have the types and shapes of the outputs.
    ///
    /// # Errors
    /// What the function reports, or how its result differs from the outputs.
    pub fn call(&self, inputs: impl IntoIterator<Item = Tensor>) -> Result<Vec<Tensor>, String> {
        let given: Vec<Value> = inputs.into_iter().map(Value::Tensor).chain(self.attributes.clone()).collect();
        let results = match self.function.call(&given).map_err(|error| error.to_string())? {
            Value::List(values) => values,
            one => vec![one],
        };
        let (name, wanted, found) = (self.function.name(), self.outputs.len(), results.len());
        if found != wanted {
            return Err(format!("{name} returned {found} values, but the node has {wanted} outputs"));
        }
        let pairs = results.into_iter().zip(&self.outputs);
        pairs
            .map(|(result, output)| match result {
                Value::Tensor(tensor) if tensor.dtype == output.dtype && tensor.shape == output.shape => Ok(tensor),
                other => {
                    let wanted = format!("{} {}", output.dtype, shape_text(&output.shape));
                    Err(format!("{name} returned {other} for {}, which is {wanted}", output.name))
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_the_same_after_a_manifest() {
        let list = vec![Attribute::Integer(1), Attribute::Float(f64::NEG_INFINITY), Attribute::String("a".into())];
        let attributes = Attributes::from([
            ("list".into(), Attribute::List(list)),
            ("whole".into(), Attribute::Float(1.0)),
            ("small".into(), Attribute::Float(f64::from(0.1f32))),
        ]);
        let text = serde_json::to_string(&attributes).unwrap();
        assert_eq!(serde_json::from_str::<Attributes>(&text).unwrap(), attributes, "{text}");
    }

    #[test]
    fn a_function_gets_operands_and_attributes_and_returns_its_outputs() {
        let scale = Function::new("scale", |args| {
            let (x, attributes) = (args.get::<Tensor>(0)?, args.option::<BTreeMap<String, Value>>(1)?);
            let by = attributes.and_then(|a| a.get("by")).map_or(Ok(&1), <&i64>::try_from)?;
            let bytes: Vec<i8> = x.bytes.iter().map(|&b| b as i8 * *by as i8).collect();
            Ok(Value::Tensor(Tensor::from_i8(x.shape.clone(), &bytes).ok_or("too large")?))
        });
        let x = || Tensor::from_i8(vec![2], &[1, -2]).unwrap();
        let output = |shape: &[usize]| Output { name: "y".into(), dtype: DType::I8, shape: shape.to_vec() };
        let call = |attributes: &Attributes, outputs| PackedCall::new(scale.clone(), attributes, outputs).call([x()]);
        let by = |n| Attributes::from([("by".into(), Attribute::Integer(n))]);
        assert_eq!(call(&by(3), vec![output(&[2])]).unwrap(), [Tensor::from_i8(vec![2], &[3, -6]).unwrap()]);
        assert_eq!(call(&Attributes::new(), vec![output(&[2])]).unwrap(), [x()]);
        let wrong = call(&by(1), vec![output(&[3])]).unwrap_err();
        assert_eq!(wrong, "scale returned i8 2 for y, which is i8 3");
        let wrong = call(&by(1), vec![output(&[2]), output(&[2])]).unwrap_err();
        assert_eq!(wrong, "scale returned 1 values, but the node has 2 outputs");
    }
}
