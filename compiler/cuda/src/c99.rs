//! [`C99Backend`]: compiles regions of a graph to portable C99, for processors without an operating system.

use std::collections::HashMap;

use tilewright_compiler::backend::{Backend, BackendError, Entry, Listing, ObjectCode, Operand, in_region};
use tilewright_compiler::graph::{Graph, NodeId};
use tilewright_runtime::artifact::Place;

use crate::backend::{Group, nodes_of_functions};
use crate::schedule::serial;
use crate::{PRELUDE, emit_c};

/// The target of [`ObjectCode`] that is C99.
pub const C99_TARGET: &str = "C99";

/// Generates C99 that calls only functions of `math.h`, and uses neither a heap nor threads. Its only object is
/// the text.
#[derive(Debug, Clone, Default)]
pub struct C99Backend {
    /// Prefix of the names of functions.
    pub prefix: String,
}

impl Backend for C99Backend {
    fn name(&self) -> &'static str {
        "c"
    }

    fn place(&self) -> Place {
        Place::Cpu
    }

    fn of_region(&self, number: usize) -> Box<dyn Backend> {
        Box::new(C99Backend { prefix: in_region(&self.prefix, number) })
    }

    fn compile(&self, graph: &Graph, nodes: &[NodeId]) -> Result<ObjectCode, BackendError> {
        let mut source = format!("#define TW_C99\n{PRELUDE}\n");
        // Nodes with the same computation on the same shapes share a function.
        let mut known: HashMap<String, (String, usize)> = HashMap::new();
        let mut entries = Vec::new();
        for nodes in nodes_of_functions(graph, nodes) {
            let Group { region, function, symbol } = Group::of(graph, &nodes)?;
            let text = function.to_string();
            let (symbol, workspace_bytes) = match known.get(&text) {
                Some(found) => found.clone(),
                None => {
                    let symbol = format!("{}_{symbol}", self.prefix);
                    let made = emit_c(&symbol, serial(function).function())
                        .map_err(|e| BackendError::Codegen { entry: symbol.clone(), message: e.to_string() })?;
                    source += &made.source;
                    let found = (symbol, made.workspace_bytes as usize);
                    known.insert(text, found.clone());
                    found
                }
            };
            let inputs = region.inputs.iter().map(|v| Operand::Value(*v)).collect();
            entries.push(Entry { symbol, nodes, inputs, outputs: region.outputs, object: 0, workspace_bytes });
        }
        Ok(ObjectCode { objects: vec![source.into_bytes()], target: C99_TARGET.into(), entries, constants: Vec::new() })
    }

    fn forms(&self) -> &'static [&'static str] {
        &[C]
    }

    fn listings(&self, graph: &Graph, nodes: &[NodeId], forms: &[&str]) -> Result<Vec<Listing>, BackendError> {
        let list = |nodes: Vec<NodeId>| {
            let Group { region, function, symbol } = Group::of(graph, &nodes)?;
            let schedule = serial(function);
            let mut code = Vec::new();
            if forms.contains(&C) {
                let made = emit_c(&symbol, schedule.function());
                let made = made.map_err(|e| BackendError::Codegen { entry: symbol, message: e.to_string() })?;
                code.push((C, made.source));
            }
            let steps = schedule.trace().to_vec();
            Ok(Listing { nodes, program: region.program, steps, function: schedule.into_function(), code })
        };
        nodes_of_functions(graph, nodes).into_iter().map(list).collect()
    }
}

/// The form of code that is listed.
const C: &str = "c";
