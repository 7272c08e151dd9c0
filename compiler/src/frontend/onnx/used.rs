//! Tracks what an import function reads of its node. Anything else is rejected, unless it cannot affect the result.

use super::ops::Operator;
use super::proto::{AttributeProto, NodeProto};
use crate::frontend::reason::Reason;
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeSet;

/// Indices of the attributes and operands that were read.
#[derive(Default)]
pub(super) struct Used {
    attributes: RefCell<BTreeSet<usize>>,
    operands: RefCell<BTreeSet<usize>>,
    /// The error for the first attribute that was read as a different type than it has in the file.
    misread: OnceCell<Reason>,
}

/// Names of attribute types, by their numbers in the format.
pub(super) const TYPES: [&str; 15] = [
    "UNDEFINED",
    "FLOAT",
    "INT",
    "STRING",
    "TENSOR",
    "GRAPH",
    "FLOATS",
    "INTS",
    "STRINGS",
    "TENSORS",
    "GRAPHS",
    "SPARSE_TENSOR",
    "SPARSE_TENSORS",
    "TYPE_PROTO",
    "TYPE_PROTOS",
];

/// Type number of an attribute's value; files in the first version of the format do not store it.
pub(super) fn held(a: &AttributeProto) -> usize {
    let fields = [
        (a.f != 0.0, 1),
        (a.i != 0, 2),
        (!a.s.is_empty(), 3),
        (a.t.is_some(), 4),
        (a.g.is_some(), 5),
        (!a.floats.is_empty(), 6),
        (!a.ints.is_empty(), 7),
        (!a.strings.is_empty(), 8),
        (a.sparse_tensor.is_some(), 11),
    ];
    let said = usize::try_from(a.r#type).unwrap_or(usize::MAX);
    if said != 0 { said } else { fields.iter().find(|(holds, _)| *holds).map_or(0, |(_, n)| *n) }
}

/// The value of an attribute, for messages.
fn value(a: &AttributeProto) -> String {
    const MOST: usize = 8;
    fn list<T>(all: &[T], one: impl Fn(&T) -> String) -> String {
        let shown: Vec<String> = all.iter().take(MOST).map(one).collect();
        format!("[{}{}]", shown.join(", "), if all.len() > MOST { ", …" } else { "" })
    }
    let word = |s: &Vec<u8>| format!("`{}`", String::from_utf8_lossy(s).chars().take(80).collect::<String>());
    match held(a) {
        1 => a.f.to_string(),
        0 | 2 => a.i.to_string(),
        3 => word(&a.s),
        6 => list(&a.floats, f32::to_string),
        7 => list(&a.ints, i64::to_string),
        8 => list(&a.strings, word),
        other => TYPES.get(other).map_or_else(|| format!("type {other}"), |t| format!("type {t}")),
    }
}

impl Used {
    /// Marks an operand as read.
    pub fn operand(&self, i: usize) {
        self.operands.borrow_mut().insert(i);
    }

    /// Marks an attribute as read.
    pub fn attribute<'n>(&self, node: &'n NodeProto, name: &str) -> Option<&'n AttributeProto> {
        let (i, attribute) = node.attribute.iter().enumerate().find(|(_, a)| a.name == name)?;
        self.attributes.borrow_mut().insert(i);
        Some(attribute)
    }

    /// Like [`Used::attribute`], for an attribute of type `wanted`. In an attribute of another type this type's field
    /// is empty, so the error is kept for [`Used::misread`], which rejects the node.
    pub fn typed<'n>(&self, node: &'n NodeProto, name: &str, wanted: usize) -> Option<&'n AttributeProto> {
        let attribute = self.attribute(node, name)?;
        let found = held(attribute);
        if found != 0 && found != wanted {
            let known = TYPES.get(found).map_or_else(|| format!("number {found}"), |t| (*t).into());
            let reason = format!("its attribute `{name}` is of type {known}; it must be of type {}", TYPES[wanted]);
            self.misread.get_or_init(|| Reason(reason));
            return None;
        }
        Some(attribute)
    }

    /// Fails if an attribute was read as a different type than it has.
    pub fn misread(&mut self) -> Result<(), Reason> {
        self.misread.take().map_or(Ok(()), Err)
    }

    /// Fails if the import function did not read an attribute or operand.
    pub fn check(&mut self, node: &NodeProto, operator: &Operator, opset: i64) -> Result<(), Reason> {
        let (attributes, operands) = (self.attributes.get_mut(), self.operands.get_mut());
        let name = operator.name;
        let remedy = "remove it, or convert the model to an operator set whose";
        for (i, a) in node.attribute.iter().enumerate().filter(|(i, _)| !attributes.contains(i)) {
            if node.attribute[..i].iter().any(|other| other.name == a.name) {
                return Err(format!("its attribute `{}` is given twice", a.name).into());
            }
            if !operator.ignored.contains(&a.name.as_str()) {
                let (attribute, value) = (&a.name, value(a));
                return Err(format!(
                    "its attribute `{attribute}` of {value} has no meaning for {name} in operator set {opset}; {remedy} \
                     {name} has it"
                )
                .into());
            }
        }
        for (i, operand) in node.input.iter().enumerate().filter(|(i, _)| !operands.contains(i)) {
            if !operand.is_empty() {
                return Err(format!(
                    "its operand {i}, `{operand}`, has no meaning for {name} in operator set {opset}; {remedy} {name} has it"
                )
                .into());
            }
        }
        Ok(())
    }
}

/// Fails for attributes that the operator has in no operator set, and for attributes without a value of their own.
pub(super) fn check_names(node: &NodeProto, operator: &Operator) -> Result<(), Reason> {
    let known = || operator.attributes.iter().chain(operator.ignored).copied();
    for a in &node.attribute {
        if !known().any(|name| name == a.name) {
            let mut all: Vec<&str> = known().collect();
            all.sort_unstable();
            let known = if all.is_empty() { "none".into() } else { all.join(", ") };
            let (attribute, name) = (&a.name, operator.name);
            return Err(format!("its attribute `{attribute}` is not supported; {name} has {known}").into());
        }
        if !a.ref_attr_name.is_empty() {
            let (name, of) = (&a.name, &a.ref_attr_name);
            return Err(format!(
                "its attribute `{name}` refers to the attribute `{of}` of a function, but the node is in none; \
                 give it a value"
            )
            .into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
