//! [`CudaBackend`]: compiles regions of a graph to CUDA C.

use std::collections::HashMap;
use tilewright_runtime::artifact::Place;

use tilewright_compiler::backend::{Backend, BackendError, Entry, Listing, ObjectCode, Operand};
use tilewright_compiler::graph::{Graph, NodeId, Op};
use tilewright_compiler::groups::{groups, is_elementwise};
use tilewright_compiler::schedule::Schedule;
use tilewright_compiler::te::ops::{self, RegionProgram};
use tilewright_compiler::tir;
use tilewright_runtime::cuda::{CudaCode, CudaEntry};

use crate::library::{LEAST, Least, with_library};
use crate::schedule;
use crate::{FunctionKernels, PRELUDE, emit};

/// Most nodes in one function. Scheduling time grows with the square of their number.
const MOST_JOINED: usize = 32;

/// Width of floats in GPU memory. All arithmetic is in 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// 32 bits, as in the graph.
    #[default]
    F32,
    /// 16 bits, with a 10-bit fraction.
    F16,
}

/// Generates CUDA C for any GPU. Its only object is a [`CudaCode`].
#[derive(Debug, Clone, Copy, Default)]
pub struct CudaBackend {
    /// The width of floats.
    pub precision: Precision,
}

impl Backend for CudaBackend {
    fn name(&self) -> &'static str {
        "cuda"
    }

    fn place(&self) -> Place {
        Place::Cuda
    }

    fn of_region(&self, _number: usize) -> Box<dyn Backend> {
        // The code of each region is compiled by itself where it runs.
        Box::new(*self)
    }

    fn compile(&self, graph: &Graph, nodes: &[NodeId]) -> Result<ObjectCode, BackendError> {
        self.compile_from(graph, nodes, LEAST)
    }

    fn forms(&self) -> &'static [&'static str] {
        &[CUDA]
    }

    fn listings(&self, graph: &Graph, nodes: &[NodeId], forms: &[&str]) -> Result<Vec<Listing>, BackendError> {
        let half = self.precision == Precision::F16;
        let mut known: HashMap<String, String> = HashMap::new();
        let mut listings = Vec::new();
        for nodes in nodes_of_functions(graph, nodes) {
            let Group { region, function, symbol } = Group::of(graph, &nodes)?;
            let symbol = known.entry(function.to_string()).or_insert(symbol).clone();
            let (kernels, schedule) = best(&symbol, function, half)?;
            let mut code = Vec::new();
            if forms.contains(&CUDA) {
                let library = with_library(&symbol, &region.program, half, LEAST).map(|(_, with)| with.source);
                code.push((CUDA, format!("{PRELUDE}\n{}{}", kernels.source, library.unwrap_or_default())));
            }
            let steps = schedule.trace().to_vec();
            let function = schedule.into_function();
            listings.push(Listing { nodes, program: region.program, steps, function, code });
        }
        Ok(listings)
    }
}

/// The form of code that is listed.
const CUDA: &str = "cuda";

/// Returns the groups of nodes that become functions.
pub(crate) fn nodes_of_functions(graph: &Graph, nodes: &[NodeId]) -> Vec<Vec<NodeId>> {
    groups(graph, nodes, MOST_JOINED, |op| is_elementwise(op) || matches!(op, Op::Reshape(_)))
}

/// What a group of nodes computes.
pub(crate) struct Group {
    pub region: RegionProgram,
    pub function: tir::Function,
    /// Name of the function, if no group before it computes the same.
    pub symbol: String,
}

impl Group {
    pub fn of(graph: &Graph, nodes: &[NodeId]) -> Result<Group, BackendError> {
        let last = nodes[nodes.len() - 1];
        let node = graph.node(last);
        let unsupported = |e: &dyn std::fmt::Display| BackendError::Unsupported {
            node: node.name.clone(),
            op: node.op.name().into(),
            reason: e.to_string(),
        };
        let region = ops::program(graph, "entry", nodes, &node.outputs).map_err(|e| unsupported(&e))?;
        let function = tir::lower(&region.program).map_err(|e| unsupported(&e))?;
        Ok(Group { region, function, symbol: format!("tw_{}_{}", last.0, node.op.name()) })
    }
}

impl CudaBackend {
    /// Compiles with library products for sizes of at least `least`.
    pub(crate) fn compile_from(
        &self,
        graph: &Graph,
        nodes: &[NodeId],
        least: Least,
    ) -> Result<ObjectCode, BackendError> {
        let half = self.precision == Precision::F16;
        let mut code = CudaCode { source: PRELUDE.to_string() + "\n", half, entries: Vec::new() };
        // Networks repeat their blocks. Nodes with the same computation on the same shapes share kernels.
        let mut known: HashMap<String, (String, u64)> = HashMap::new();
        let mut entries = Vec::new();
        for nodes in nodes_of_functions(graph, nodes) {
            let Group { region, function, symbol } = Group::of(graph, &nodes)?;
            let text = function.to_string();
            let (symbol, workspace) = match known.get(&text) {
                Some(found) => found.clone(),
                None => {
                    let (kernels, _) = best(&symbol, function, half)?;
                    code.source += &kernels.source;
                    let mut workspace = kernels.workspace_bytes;
                    let mut library = Vec::new();
                    if let Some((calls, with)) = with_library(&symbol, &region.program, half, least) {
                        code.source += &with.source;
                        workspace = workspace.max(with.workspace_bytes);
                        library = calls;
                    }
                    code.entries.push(CudaEntry { symbol: symbol.clone(), launches: kernels.launches, library });
                    known.insert(text, (symbol.clone(), workspace));
                    (symbol, workspace)
                }
            };
            let inputs = region.inputs.iter().map(|v| Operand::Value(*v)).collect();
            let workspace_bytes = workspace as usize;
            entries.push(Entry { symbol, nodes, inputs, outputs: region.outputs, object: 0, workspace_bytes });
        }
        let target = if half { "CUDA C, floats of 16 bits" } else { "CUDA C" };
        Ok(ObjectCode { objects: vec![code.encode()], target: target.into(), entries, constants: Vec::new() })
    }
}

/// Returns the kernels of a function with the best schedule that can be emitted, and that schedule.
fn best(symbol: &str, f: tir::Function, half: bool) -> Result<(FunctionKernels, Schedule), BackendError> {
    if let Some(tiled) = schedule::tiled(f.clone())
        && let Ok(kernels) = emit(symbol, tiled.function(), half)
    {
        return Ok((kernels, tiled));
    }
    let scheduled = schedule::scheduled(f);
    let kernels = emit(symbol, scheduled.function(), half)
        .map_err(|e| BackendError::Codegen { entry: symbol.into(), message: e.to_string() })?;
    Ok((kernels, scheduled))
}
