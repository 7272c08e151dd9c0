//! Model file to artifact: import, passes, placement, code.

use std::collections::BTreeMap;
use std::path::Path;

use tilewright_compiler::backend::{Backend, BackendError};
use tilewright_compiler::frontend::{self, ImportError};
use tilewright_compiler::graph::{Dim, Graph, GraphError};
use tilewright_hw::config::HwConfig;
use tilewright_runtime::artifact::Artifact;

use crate::compile::{CompileError, all_on_cpu, compile};

/// Why a model did not become an artifact.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The file cannot be imported.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// Sizes given for open dimensions do not fit.
    #[error("{file}: {source}; give other sizes with --bind SYMBOL=SIZE")]
    Bind {
        /// The file.
        file: String,
        /// What does not fit.
        source: Box<GraphError>,
    },
    /// A symbol that the model has not.
    #[error("{file} has no open dimension {symbol}; it has {}", if known.is_empty() { "none".to_string() } else { known.join(", ") })]
    Symbol {
        /// The file.
        file: String,
        /// The symbol given.
        symbol: String,
        /// The model's.
        known: Vec<String>,
    },
    /// The graph does not compile.
    #[error(transparent)]
    Compile(#[from] CompileError),
}

/// How a model is compiled.
#[derive(Debug, Clone, Copy)]
pub struct Options<'c> {
    /// The accelerator.
    pub config: &'c HwConfig,
    /// Whether the accelerator gets what it can compute.
    pub offload: bool,
    /// Level of optimisation, 0 to 3.
    pub level: u8,
    /// Whether the graph is printed after each pass.
    pub dump_ir: bool,
}

/// Imports a model. Dimensions that it leaves open get the sizes given, or 1 as a batch of its own.
///
/// # Errors
/// [`ModelError`], naming the file.
pub fn import(file: &Path, sizes: &BTreeMap<String, usize>) -> Result<Graph, ModelError> {
    let graph = frontend::import(file)?;
    let mut all: BTreeMap<String, usize> = BTreeMap::new();
    for (_, id) in graph.inputs() {
        for (axis, dim) in graph.ty(id).dims.iter().enumerate() {
            if let Dim::Symbol(symbol) = dim
                && axis == 0
            {
                all.insert(symbol.clone(), 1);
            }
        }
    }
    let symbols: Vec<String> = graph
        .inputs()
        .flat_map(|(_, id)| graph.ty(id).dims.clone())
        .filter_map(|dim| match dim {
            Dim::Symbol(symbol) => Some(symbol),
            Dim::Fixed(_) => None,
        })
        .collect();
    let name = || file.display().to_string();
    if let Some(symbol) = sizes.keys().find(|symbol| !symbols.contains(symbol)) {
        return Err(ModelError::Symbol { file: name(), symbol: symbol.clone(), known: symbols });
    }
    all.extend(sizes.iter().map(|(symbol, size)| (symbol.clone(), *size)));
    if symbols.is_empty() {
        return Ok(graph);
    }
    graph.bind(&all).map_err(|source| ModelError::Bind { file: name(), source: Box::new(source) })
}

/// A graph as text that parses back.
pub fn text(graph: &Graph) -> String {
    tilewright_compiler::graph::text::print(graph)
}

/// Compiles a graph; `dump` is told each stage's name and text where the options ask for it.
///
/// # Errors
/// [`ModelError::Compile`].
pub fn build(graph: Graph, options: &Options, dump: &mut dyn FnMut(&str, &str)) -> Result<Artifact, ModelError> {
    if options.dump_ir {
        dump("import", &text(&graph));
    }
    let backend = cpu_backend()?;
    let placement = all_on_cpu(&graph, "nothing is offloaded");
    Ok(compile(&graph, &placement, backend.as_ref())?)
}

/// The code generator for this machine's processor.
fn cpu_backend() -> Result<Box<dyn Backend>, CompileError> {
    Err(BackendError::Toolchain {
        backend: "llvm",
        message: "this program was built without it; build it with the feature `llvm`".to_string(),
    }
    .into())
}
