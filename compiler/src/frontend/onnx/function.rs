//! Operators that a file defines itself: finds them, and binds attributes and operands in their calls.

use super::proto::{AttributeProto, FunctionProto, NodeProto};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

/// The functions of a file, by domain, name and overload.
pub(super) struct Functions<'a>(HashMap<[&'a str; 3], &'a FunctionProto>);

/// Normalizes a domain: the default domain has two names.
pub(super) fn domain(name: &str) -> &str {
    if name == "ai.onnx" { "" } else { name }
}

/// An operator's full name: its domain unless that is the default one, its name, and its overload.
pub(super) fn full_name(of: &str, name: &str, overload: &str) -> String {
    let domain = domain(of);
    let before = if domain.is_empty() { String::new() } else { format!("{domain}.") };
    let behind = if overload.is_empty() { String::new() } else { format!(":{overload}") };
    format!("{before}{name}{behind}")
}

impl<'a> Functions<'a> {
    /// # Errors
    /// If two functions have the same name.
    pub fn new(list: &'a [FunctionProto]) -> Result<Functions<'a>, String> {
        let mut known = HashMap::new();
        for f in list {
            match known.entry([domain(&f.domain), &f.name, &f.overload]) {
                Entry::Vacant(slot) => slot.insert(f),
                Entry::Occupied(_) => {
                    return Err(format!(
                        "two of its functions have the name `{}`",
                        full_name(&f.domain, &f.name, &f.overload)
                    ));
                }
            };
        }
        Ok(Functions(known))
    }

    /// The function that a node calls.
    pub fn of(&self, node: &NodeProto) -> Option<&'a FunctionProto> {
        self.0.get(&[domain(&node.domain), node.op_type.as_str(), node.overload.as_str()]).copied()
    }
}

/// The attributes and operands of a function in one call.
pub(super) struct Call {
    /// The function's full name.
    pub function: String,
    /// The function's attributes; `None` for one without a value.
    attributes: HashMap<String, Option<AttributeProto>>,
    /// Operands that the call leaves out.
    absent: HashSet<String>,
}

impl Call {
    /// # Errors
    /// If the node has operands, outputs or attributes that the function does not have.
    pub fn new(f: &FunctionProto, node: &NodeProto) -> Result<Call, String> {
        let function = full_name(&f.domain, &f.name, &f.overload);
        for (what, given, most) in
            [("operands", node.input.len(), f.input.len()), ("outputs", node.output.len(), f.output.len())]
        {
            if given > most {
                return Err(format!("it has {given} {what}, but the model's function `{function}` has {most}"));
            }
        }
        let mut attributes: HashMap<String, Option<AttributeProto>> =
            f.attribute.iter().map(|name| (name.clone(), None)).collect();
        attributes.extend(f.attribute_proto.iter().map(|a| (a.name.clone(), Some(a.clone()))));
        for a in &node.attribute {
            let slot = attributes.get_mut(&a.name);
            let none = || format!("the model's function `{function}` has no attribute `{}`", a.name);
            *slot.ok_or_else(none)? = Some(a.clone());
        }
        let given = |i: usize| node.input.get(i).is_some_and(|name| !name.is_empty());
        let absent = f.input.iter().enumerate().filter(|(i, _)| !given(*i)).map(|(_, name)| name.clone()).collect();
        Ok(Call { function, attributes, absent })
    }

    /// A node of the function's body, with the attributes and operands of this call.
    ///
    /// # Errors
    /// If it refers to an attribute that the function does not have.
    pub fn bound(&self, node: &NodeProto) -> Result<NodeProto, String> {
        let mut bound = node.clone();
        for name in &mut bound.input {
            if self.absent.contains(name) {
                name.clear();
            }
        }
        let mut attributes = Vec::with_capacity(bound.attribute.len());
        for a in bound.attribute {
            if a.ref_attr_name.is_empty() {
                attributes.push(a);
                continue;
            }
            let value = self.attributes.get(&a.ref_attr_name).ok_or_else(|| {
                let (name, of) = (&a.name, &a.ref_attr_name);
                format!("its attribute `{name}` refers to `{of}`, an attribute that `{}` does not have", self.function)
            })?;
            // An attribute without a value is dropped, so that the operator's default applies.
            attributes.extend(value.clone().map(|value| AttributeProto { name: a.name, ..value }));
        }
        bound.attribute = attributes;
        Ok(bound)
    }
}
