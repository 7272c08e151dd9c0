//! Names of the outputs, from the structure that the program returns: keys of dictionaries and fields of results.

use super::schema::{Argument, Program};
use serde::Deserialize;
use std::collections::HashSet;

/// A node of a tree of values; leaves have no type.
#[derive(Debug, Deserialize)]
struct Tree {
    r#type: Option<String>,
    context: Option<String>,
    #[serde(default)]
    children_spec: Vec<Tree>,
}

/// How deep structures are at most.
const DEPTH: usize = 32;

impl Tree {
    /// The path of each leaf; `None` for places in lists.
    fn paths(&self, at: &mut Vec<Option<String>>, all: &mut Vec<Vec<Option<String>>>) {
        if self.r#type.is_none() {
            all.push(at.clone());
            return;
        }
        if at.len() >= DEPTH {
            return;
        }
        let keys = self.context.as_deref().and_then(|text| serde_json::from_str::<Vec<String>>(text).ok());
        let keys = keys.filter(|keys| keys.len() == self.children_spec.len());
        for (i, child) in self.children_spec.iter().enumerate() {
            at.push(keys.as_ref().map(|keys| keys[i].clone()));
            child.paths(at, all);
            at.pop();
        }
    }
}

/// A name for each output: its key in the structure that the program returns, if it has one, or its name in the program.
/// Names that are taken get a number.
pub(super) fn output_names(program: &Program, outputs: &[&Argument]) -> Vec<String> {
    let call = program.graph_module.module_call_graph.iter().find(|call| call.fqn.is_empty());
    let spec = call.and_then(|call| call.signature.as_ref()).map(|signature| signature.out_spec.as_str());
    // The version of the text comes first.
    let tree = spec.and_then(|text| serde_json::from_str::<(serde_json::Value, Tree)>(text).ok());
    let mut paths = Vec::new();
    if let Some((_, tree)) = &tree {
        tree.paths(&mut Vec::new(), &mut paths);
    }
    let mut taken = HashSet::new();
    let name = |(i, argument): (usize, &&Argument)| {
        let keys = paths.get(i).filter(|_| paths.len() == outputs.len());
        let keys: Vec<&str> = keys.into_iter().flatten().flatten().map(String::as_str).collect();
        let own = match (keys.as_slice(), argument) {
            ([], Argument::AsTensor(of)) => of.name.clone(),
            ([], _) => format!("output_{i}"),
            (keys, _) => keys.join("_"),
        };
        let mut name = own.clone();
        let mut number = 1;
        while !taken.insert(name.clone()) {
            name = format!("{own}_{number}");
            number += 1;
        }
        name
    };
    outputs.iter().enumerate().map(name).collect()
}
