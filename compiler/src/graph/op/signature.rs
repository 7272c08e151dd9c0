//! What each operator takes, as data: operands, and attributes with their defaults.

use super::attr::Attr;

/// How often an operand is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// Once.
    One,
    /// Once, or not at all.
    Optional,
    /// Once or more.
    Several,
}

/// An operand of an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operand {
    /// Its name in error messages.
    pub name: &'static str,
    /// How often it is given.
    pub count: Count,
}

/// An attribute of an operator.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribute {
    /// Its name.
    pub name: &'static str,
    /// What it means, one sentence or more.
    pub doc: &'static str,
    /// What it can be, in words.
    pub expected: &'static str,
    /// All values, if they are words.
    pub words: &'static [&'static str],
    /// The value if a call leaves it out. `None`: it must be given.
    pub default: Option<Attr>,
}

/// What an operator computes and takes.
#[derive(Debug, Clone, PartialEq)]
pub struct Signature {
    /// The operator's name.
    pub name: &'static str,
    /// What it computes; paragraphs are separated by empty lines.
    pub doc: &'static str,
    /// Its operands in order.
    pub operands: Vec<Operand>,
    /// Its attributes in the order of the text form.
    pub attributes: Vec<Attribute>,
}

/// Reads an operand of [`operator!`](super): `name`, `[optional]` or `{several}`.
macro_rules! operand {
    ($name:ident) => {
        $crate::graph::op::Operand { name: stringify!($name), count: $crate::graph::op::Count::One }
    };
    ([$name:ident]) => {
        $crate::graph::op::Operand { name: stringify!($name), count: $crate::graph::op::Count::Optional }
    };
    ({$name:ident}) => {
        $crate::graph::op::Operand { name: stringify!($name), count: $crate::graph::op::Count::Several }
    };
}
pub(super) use operand;
