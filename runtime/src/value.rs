//! The values that cross a language or a wire: arguments and results of functions.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;

use crate::function::Function;
use crate::module::Module;
use crate::tensor::{Tensor, shape_text};

/// A value of one of a few kinds. Copies of tensors, bytes, functions and modules share what they refer to.
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// No value: the result of a function that has none.
    #[default]
    None,
    /// An integer, also a truth value (0 or 1).
    Integer(i64),
    /// A real number.
    Float(f64),
    /// A text.
    String(String),
    /// Uninterpreted bytes.
    Bytes(Bytes),
    /// A tensor in the host's memory.
    Tensor(Tensor),
    /// A function.
    Function(Function),
    /// A module.
    Module(Module),
    /// Values by position.
    List(Vec<Value>),
    /// Values by name.
    Map(BTreeMap<String, Value>),
}

/// The kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Kind {
    /// No value.
    None = 0,
    /// An integer.
    Integer = 1,
    /// A real number.
    Float = 2,
    /// A text.
    String = 3,
    /// Uninterpreted bytes.
    Bytes = 4,
    /// A tensor.
    Tensor = 5,
    /// A function.
    Function = 6,
    /// A module.
    Module = 7,
    /// A list.
    List = 8,
    /// A map.
    Map = 9,
}

impl Kind {
    /// The word for it in messages.
    pub fn text(self) -> &'static str {
        match self {
            Kind::None => "no value",
            Kind::Integer => "an integer",
            Kind::Float => "a float",
            Kind::String => "a string",
            Kind::Bytes => "bytes",
            Kind::Tensor => "a tensor",
            Kind::Function => "a function",
            Kind::Module => "a module",
            Kind::List => "a list",
            Kind::Map => "a map",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// A value of another kind than a function takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is {found} where {wanted} is expected")]
pub struct WrongKind {
    /// The value's kind.
    pub found: Kind,
    /// The kind that is expected.
    pub wanted: Kind,
}

impl Value {
    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self {
            Value::None => Kind::None,
            Value::Integer(_) => Kind::Integer,
            Value::Float(_) => Kind::Float,
            Value::String(_) => Kind::String,
            Value::Bytes(_) => Kind::Bytes,
            Value::Tensor(_) => Kind::Tensor,
            Value::Function(_) => Kind::Function,
            Value::Module(_) => Kind::Module,
            Value::List(_) => Kind::List,
            Value::Map(_) => Kind::Map,
        }
    }

    /// Whether it is no value.
    pub fn is_none(&self) -> bool {
        matches!(self, Value::None)
    }

    fn wrong(&self, wanted: Kind) -> WrongKind {
        WrongKind { found: self.kind(), wanted }
    }
}

/// Conversions from a type to a value, and back by reference.
macro_rules! conversions {
    ($($ty:ty = $kind:ident),* $(,)?) => {
        $(
            impl From<$ty> for Value {
                fn from(value: $ty) -> Value {
                    Value::$kind(value)
                }
            }

            impl<'v> TryFrom<&'v Value> for &'v $ty {
                type Error = WrongKind;

                fn try_from(value: &'v Value) -> Result<&'v $ty, WrongKind> {
                    match value {
                        Value::$kind(inner) => Ok(inner),
                        _ => Err(value.wrong(Kind::$kind)),
                    }
                }
            }
        )*
    };
}

conversions! {
    i64 = Integer,
    f64 = Float,
    String = String,
    Bytes = Bytes,
    Tensor = Tensor,
    Function = Function,
    Module = Module,
    Vec<Value> = List,
    BTreeMap<String, Value> = Map,
}

impl From<()> for Value {
    fn from((): ()) -> Value {
        Value::None
    }
}

/// A count that may be missing.
impl From<Option<u64>> for Value {
    fn from(count: Option<u64>) -> Value {
        count.map_or(Value::None, |count| Value::Integer(count as i64))
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Integer(value.into())
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::String(text.to_string())
    }
}

impl FromIterator<Value> for Value {
    fn from_iter<I: IntoIterator<Item = Value>>(values: I) -> Value {
        Value::List(values.into_iter().collect())
    }
}

impl<K: Into<String>> FromIterator<(K, Value)> for Value {
    fn from_iter<I: IntoIterator<Item = (K, Value)>>(values: I) -> Value {
        // One by one: `collect` would sort first, with code of its own for each iterator.
        let mut map = BTreeMap::new();
        for (name, value) in values {
            map.insert(name.into(), value);
        }
        Value::Map(map)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::None => f.write_str("none"),
            Value::Integer(value) => write!(f, "{value}"),
            // With a point or an exponent, so that it is told from an integer.
            Value::Float(value) => write!(f, "{value:?}"),
            Value::String(text) => write!(f, "{text:?}"),
            Value::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
            Value::Tensor(tensor) => write!(f, "{} {}", tensor.dtype, shape_text(&tensor.shape)),
            Value::Function(function) => write!(f, "function {}", function.name()),
            Value::Module(module) => write!(f, "module {}", module.name()),
            Value::List(values) => {
                f.write_str("[")?;
                for (index, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", if index == 0 { "" } else { ", " })?;
                }
                f.write_str("]")
            }
            Value::Map(values) => {
                f.write_str("{")?;
                for (index, (name, value)) in values.iter().enumerate() {
                    write!(f, "{}{name:?}: {value}", if index == 0 { "" } else { ", " })?;
                }
                f.write_str("}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_written_and_told_from_others() {
        let double = Function::new("double", |args| Ok(Value::Integer(2 * args.get::<i64>(0)?)));
        let values = [
            (Value::None, "none"),
            (Value::Integer(-3), "-3"),
            (Value::Float(2.0), "2.0"),
            (Value::from("a \"b\""), "\"a \\\"b\\\"\""),
            (Value::Bytes(Bytes::from_static(&[1, 2, 3])), "3 bytes"),
            (Value::Tensor(Tensor::from_i8(vec![1, 2], &[1, 2]).unwrap()), "i8 1x2"),
            (Value::Function(double), "function double"),
            (Value::from_iter([Value::from(true), Value::None]), "[1, none]"),
            (Value::from_iter([("x", Value::Integer(1)), ("a", Value::Float(0.5))]), "{\"a\": 0.5, \"x\": 1}"),
        ];
        for (index, (value, text)) in values.iter().enumerate() {
            assert_eq!(value.to_string(), *text);
            for (other, (_, _)) in values.iter().enumerate() {
                assert_eq!(value.kind() == values[other].0.kind(), index == other);
            }
        }
        assert_eq!(<&i64>::try_from(&values[1].0), Ok(&-3));
        let wrong = <&f64>::try_from(&values[1].0).unwrap_err();
        assert_eq!(wrong.to_string(), "it is an integer where a float is expected");
    }
}
