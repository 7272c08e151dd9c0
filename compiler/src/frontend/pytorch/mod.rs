//! Programs of PyTorch: archives that `torch.export.save` writes.
//!
//! A program is a graph of ATen operators, as traced or after `run_decompositions()`. Sizes that it leaves open are bound at
//! import. Operators that change a tensor in place are followed through views of it. Half precision is single precision
//! here. Nothing of an archive is executed: weights that are stored as pickles are read as tensors only.

mod archive;
mod context;
mod expression;
mod node;
mod ops;
mod pickle;
mod schema;
mod storage;
mod structure;
mod views;

use super::error::{ImportError, UnsupportedNode};
use super::room::Room;
use super::semantic::SemanticBuilder;
use super::sources::{self, Sources};
use super::{Format, ImportOptions, ModelFile};
use crate::graph::{Graph, TensorType};
use archive::Archive;
use context::Context;
use schema::{Argument, Program};
use tilewright_runtime::artifact::{About, Edge};

/// The page that lists the operators.
const PAGE: &str = "docs/pytorch.md";

/// Bytes of constants and names that the import of any file may make, beside sixteen times those of the file.
const ROOM: usize = 64 << 20;

/// Operators that can be imported, with their overloads.
pub fn operators() -> Vec<[String; 2]> {
    ops::described()
}

/// PyTorch's exported programs as a format of models.
pub struct Pytorch;

impl Format for Pytorch {
    fn name(&self) -> &'static str {
        "PyTorch"
    }

    fn suffix(&self) -> &'static str {
        ".pt2"
    }

    fn page(&self) -> &'static str {
        PAGE
    }

    fn recognizes(&self, bytes: &[u8]) -> bool {
        archive::is_archive(bytes)
    }

    fn import(&self, file: &ModelFile, options: &ImportOptions) -> Result<(Graph, Sources), ImportError> {
        import_traced(file.bytes, file.name, options)
    }

    fn open_inputs(&self, file: &ModelFile, _: &ImportOptions) -> Result<Vec<(String, TensorType)>, ImportError> {
        let malformed = |reason: String| ImportError::malformed(file.name, reason);
        let mut room = Room::of(file.bytes.len(), ROOM);
        let mut archive = Archive::open(file.bytes, &mut room).map_err(malformed)?;
        let program = program(&mut archive, &mut room).map_err(malformed)?;
        context::declared_inputs(&program).map_err(malformed)
    }

    fn about(&self, bytes: &[u8]) -> Option<About> {
        let mut room = Room::of(bytes.len(), ROOM);
        let program = program(&mut Archive::open(bytes, &mut room).ok()?, &mut room).ok()?;
        let edge = |name: &str| {
            let float = program.graph_module.graph.tensor_values.get(name).and_then(|meta| meta.dtype.narrowed());
            Edge { floats: float, ..Edge::default() }
        };
        let inputs = context::user_inputs(&program).map(|(name, _)| edge(name)).collect();
        let outputs = context::user_outputs(&program).into_iter().filter_map(|argument| match argument {
            Argument::AsTensor(of) => Some(edge(&of.name)),
            _ => None,
        });
        Some(About { inputs, outputs: outputs.collect(), class_names: Vec::new() })
    }
}

/// Reads an archive's program.
fn program(archive: &mut Archive, room: &mut Room) -> Result<Program, String> {
    let text = archive.program(room)?;
    let program = schema::program(&text)?;
    if program.schema_version.major > schema::VERSION {
        let (found, known) = (program.schema_version.major, schema::VERSION);
        return Err(format!(
            "its schema has version {found}, which is newer than {known}; export it with torch 2.15 or older"
        ));
    }
    Ok(program)
}

/// The graph of an archive, and what the file calls its values; `file` is its name for messages.
///
/// # Errors
/// If the file is damaged, or has unsupported operators; the error lists all of them.
pub fn import_traced(bytes: &[u8], file: &str, options: &ImportOptions) -> Result<(Graph, Sources), ImportError> {
    let malformed = |reason: String| ImportError::malformed(file, reason);
    let mut room = Room::of(bytes.len(), ROOM);
    let mut archive = Archive::open(bytes, &mut room).map_err(malformed)?;
    let program = program(&mut archive, &mut room).map_err(malformed)?;
    check_operators(&program, file, &mut room)?;
    let stored = archive.payloads(&mut room).map_err(malformed)?;
    let net = SemanticBuilder::new("main", room);
    let graph = &program.graph_module.graph;
    let mut cx = Context::new(file, net, graph, archive);
    let values = cx.inputs(&program, stored, options)?;
    cx.nodes()?;
    cx.outputs(&program).map_err(malformed)?;
    let Context { net, traced, .. } = cx;
    let (graph, places, counted) = net.finish(file)?;
    let tensors = traced.into_iter().map(|(name, value)| sources::Tensor {
        name,
        value: places.of(value),
        unsigned: false,
        quantization: None,
    });
    let sources = Sources::new(&graph, tensors, &values).with_counted(counted);
    Ok((graph, sources))
}

/// Fails if the program has operators that are not supported, and lists all of them.
fn check_operators(program: &Program, file: &str, room: &mut Room) -> Result<(), ImportError> {
    let mut unsupported = Vec::new();
    let mut graphs = vec![&program.graph_module.graph];
    while let Some(graph) = graphs.pop() {
        // Traced programs keep nodes that no one uses.
        let used = graph.used(ops::changes);
        for node in graph.nodes.iter().zip(used).filter_map(|(node, used)| used.then_some(node)) {
            graphs.extend(node.inputs.iter().filter_map(|input| match &input.arg {
                Argument::AsGraph(of) => Some(&of.graph),
                _ => None,
            }));
            if ops::find(&node.target).is_none() {
                let (name, operator) = (context::node_name(node), ops::short_name(&node.target));
                room.take_for(name.len() + operator.len(), "operators").map_err(|e| ImportError::malformed(file, e))?;
                unsupported.push(UnsupportedNode::new(name.into(), operator.into(), ops::names()));
            }
        }
    }
    if unsupported.is_empty() {
        return Ok(());
    }
    let (supported, page) = (ops::names().count(), PAGE);
    Err(ImportError::Unsupported { file: file.into(), nodes: unsupported, supported, page, domains: Vec::new() })
}
