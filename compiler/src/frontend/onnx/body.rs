//! Imports the nodes of a graph, of its branches, and of the functions that it calls.
//!
//! A call becomes the nodes of the function, and `If` the nodes of the branch that its condition selects. Their names
//! start with the name of the node that they replace. Imported functions count against the memory limit of the import,
//! so a file whose functions call each other many times is rejected instead of growing without bound.

use super::context::{Context, Scope, declared_types};
use super::function::{Call, domain, full_name};
use super::node::NodeContext;
use super::proto::{FunctionProto, GraphProto, NodeProto, OperatorSetIdProto};
use super::used::{Used, check_names};
use super::{OPSETS, PAGE, ops, order};
use crate::frontend::error::{ImportError, UnsupportedNode};
use crate::frontend::reason::Reason;
use prost::Message;
use std::collections::{BTreeSet, HashSet};
use std::rc::Rc;

/// Maximum nesting depth of calls and branches.
const DEPTH: usize = 32;

/// Bytes counted for a node in a function, in addition to its text, because it can become many nodes of the graph.
const NODE_BYTES: usize = 4096;

/// The version of the default domain's operator set; `None` if the file does not import it.
///
/// # Errors
/// If the version is not supported, or two versions are named.
pub(super) fn opset(imports: &[OperatorSetIdProto]) -> Result<Option<i64>, String> {
    let mut own = imports.iter().filter(|o| domain(&o.domain).is_empty()).map(|o| o.version);
    let Some(version) = own.next() else { return Ok(None) };
    if let Some(other) = own.find(|&other| other != version) {
        return Err(format!("it names two operator sets, {version} and {other}; keep one"));
    }
    if !OPSETS.contains(&version) {
        let (first, last) = (OPSETS.start(), OPSETS.end());
        return Err(format!("its operator set is {version}; sets {first} to {last} are supported"));
    }
    Ok(Some(version))
}

fn operator_name(n: &NodeProto) -> String {
    full_name(&n.domain, &n.op_type, &n.overload)
}

fn node_name(n: &NodeProto, i: usize) -> String {
    let names = std::iter::once(&n.name).chain(n.output.first());
    names.into_iter().find(|s| !s.is_empty()).cloned().unwrap_or_else(|| format!("#{i}"))
}

impl<'a> Context<'a> {
    /// Imports nodes into the innermost scope.
    pub fn nodes(&mut self, nodes: &[NodeProto]) -> Result<(), ImportError> {
        let order = order::order(nodes).map_err(|e| match self.scope().prefix.strip_suffix('/') {
            Some(within) => self.malformed(format!("in `{within}` {e}")),
            None => self.malformed(e),
        })?;
        for i in order {
            let call = self.scope().call.clone();
            let label = format!("{}{}", self.scope().prefix, node_name(&nodes[i], i));
            match call.map(|call| call.bound(&nodes[i])).transpose() {
                Ok(bound) => self.node(bound.as_ref().unwrap_or(&nodes[i]), &label)?,
                Err(reason) => return Err(self.wrong(&nodes[i], &label, reason)),
            }
        }
        Ok(())
    }

    /// Fails if operators have no import function. Lists all of them, including those in called functions, but not
    /// those in branches, because only one of two branches is imported.
    pub fn check_operators(&self, nodes: &[NodeProto]) -> Result<(), ImportError> {
        let (mut unknown, mut domains) = (Vec::new(), BTreeSet::new());
        let mut called = HashSet::new();
        let mut left = vec![(self.scope().prefix.clone(), nodes)];
        while let Some((prefix, nodes)) = left.pop() {
            for (i, n) in nodes.iter().enumerate() {
                let (operator, label) = (operator_name(n), format!("{prefix}{}", node_name(n, i)));
                if let Some(f) = self.functions.of(n) {
                    if called.insert(operator) {
                        left.push((format!("{label}/"), &f.node));
                    }
                } else if ops::find(&operator).is_none() && !self.calls_function(n) {
                    unknown.push(UnsupportedNode::new(label, operator, ops::names()));
                    domains.insert(domain(&n.domain).to_string());
                }
            }
        }
        if unknown.is_empty() {
            return Ok(());
        }
        let (supported, page) = (ops::all().len(), PAGE);
        let domains = domains.into_iter().filter(|domain| !domain.is_empty()).collect();
        Err(ImportError::Unsupported { file: self.file.into(), nodes: unknown, supported, page, domains })
    }

    fn wrong(&self, proto: &NodeProto, label: &str, reason: impl Into<Reason>) -> ImportError {
        // An error within a graph of the node names the node there.
        self.inner.take().unwrap_or_else(|| {
            let (file, node, operator) = (self.file.into(), label.into(), operator_name(proto));
            let error = ImportError::Node { file, node, operator, reason: reason.into().0 };
            self.net.error(error, self.outermost())
        })
    }

    fn node(&mut self, proto: &NodeProto, label: &str) -> Result<(), ImportError> {
        if let Some(f) = self.functions.of(proto) {
            return self.call(f, proto, label);
        }
        let Some(operator) = ops::find(&operator_name(proto)) else {
            self.check_operators(std::slice::from_ref(proto))?;
            let opset = *OPSETS.end();
            self.begin(label);
            let mut node = NodeContext { cx: self, proto, opset, used: Used::default() };
            return node.packed().map_err(|reason| self.wrong(proto, label, reason));
        };
        self.operator(operator, proto, label).map_err(|reason| self.wrong(proto, label, reason))
    }

    fn operator(&mut self, operator: &ops::Operator, proto: &NodeProto, name: &str) -> Result<(), Reason> {
        check_names(proto, operator)?;
        let opset = match (self.scope().opset, domain(&proto.domain)) {
            (Some(set), _) => set,
            (None, "") => return Err("the function that it is in does not name its operator set".into()),
            // Operators of other domains do not depend on it.
            (None, _) => *OPSETS.end(),
        };
        self.begin(name);
        let mut node = NodeContext { cx: self, proto, opset, used: Used::default() };
        let imported = (operator.import)(&mut node);
        node.used.misread()?;
        imported?;
        node.used.check(proto, operator, opset)
    }

    /// Begins to build a node.
    pub(super) fn begin(&mut self, label: &str) {
        let is_repeated = self.scope().call.is_some();
        self.net.begin(label, is_repeated);
    }

    /// Enters a scope; the error is reported for the node.
    fn enter(&mut self, scope: Scope) -> Result<(), Reason> {
        if self.scopes.len() > DEPTH {
            return Err(format!("more than {DEPTH} nested calls and branches are not supported").into());
        }
        self.scopes.push(scope);
        Ok(())
    }

    /// Leaves the innermost scope and gives the node's outputs the values that these names have in it.
    fn leave<'n>(&mut self, outputs: impl Iterator<Item = &'n String>, proto: &NodeProto) -> Result<(), Reason> {
        let named = proto.output.iter().zip(outputs).filter(|(name, _)| !name.is_empty());
        let made = named.map(|(name, inner)| Ok((name, self.meaning(inner)?))).collect::<Result<Vec<_>, String>>();
        self.scopes.pop();
        for (name, meaning) in made? {
            self.define(name, meaning)?;
        }
        Ok(())
    }

    fn call(&mut self, f: &'a FunctionProto, proto: &NodeProto, label: &str) -> Result<(), ImportError> {
        self.enter_call(f, proto, label).map_err(|reason| self.wrong(proto, label, reason))?;
        self.nodes(&f.node)?;
        self.leave(f.output.iter(), proto).map_err(|reason| self.wrong(proto, label, reason))
    }

    fn enter_call(&mut self, f: &FunctionProto, proto: &NodeProto, label: &str) -> Result<(), Reason> {
        let call = Call::new(f, proto)?;
        let calls = |scope: &Scope| scope.call.as_ref().is_some_and(|outer| outer.function == call.function);
        if self.scopes.iter().any(calls) {
            return Err(format!("the model's function `{}` calls itself, which is not supported", call.function).into());
        }
        let count = f.node.len();
        let each = NODE_BYTES.saturating_add(label.len().saturating_mul(16));
        self.net.room.take(count.checked_mul(each), || format!("becomes {count} more nodes"))?;
        let text = f.node.iter().map(Message::encoded_len).fold(proto.encoded_len(), usize::saturating_add);
        self.net.room.take(Some(text), || format!("becomes {text} more bytes of nodes"))?;
        let mut scope = Scope {
            opset: opset(&f.opset_import).map_err(|e| format!("function `{}`: {e}", call.function))?,
            prefix: format!("{label}/"),
            types: declared_types(self.packed, f.value_info.iter()),
            ..Scope::default()
        };
        for (name, given) in f.input.iter().zip(&proto.input).filter(|(_, given)| !given.is_empty()) {
            if scope.names.insert(name.clone(), self.meaning(given)?).is_some() {
                return Err(
                    format!("operands of the model's function `{}` share the name `{name}`", call.function).into()
                );
            }
        }
        scope.call = Some(Rc::new(call));
        self.enter(scope)
    }

    /// Imports a node's graph in place of the node.
    pub(super) fn branch(&mut self, graph: &GraphProto, proto: &NodeProto, label: &str) -> Result<(), Reason> {
        check_outputs(graph, proto)?;
        self.enter_branch(graph, label)?;
        self.inside(graph)?;
        self.leave(graph.output.iter().map(|info| &info.name), proto)
    }

    /// Imports the nodes of a node's graph, whose scope is the innermost one.
    pub(super) fn inside(&mut self, graph: &GraphProto) -> Result<(), Reason> {
        let imported = self.check_operators(&graph.node).and_then(|()| self.nodes(&graph.node));
        imported.map_err(|error| {
            self.inner.set(Some(error));
            Reason(String::new())
        })
    }

    /// Enters the scope of a node's graph.
    pub(super) fn enter_branch(&mut self, graph: &GraphProto, label: &str) -> Result<(), Reason> {
        let outer = self.scope();
        let (opset, call, types) = (outer.opset, outer.call.clone(), declared_types(self.packed, graph.declared()));
        self.enter(Scope { opset, call, types, prefix: format!("{label}/"), open: true, ..Scope::default() })?;
        Ok(self.constants(graph, true)?)
    }
}

/// Checks that a branch has as many outputs as its node.
pub(super) fn check_outputs(graph: &GraphProto, proto: &NodeProto) -> Result<(), Reason> {
    let (given, made) = (proto.output.len(), graph.output.len());
    if given > made {
        return Err(format!("it has {given} outputs, but its branch has {made}").into());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
