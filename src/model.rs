//! Model file to artifact: import, passes, placement, code.

use std::collections::BTreeMap;
use std::path::Path;

use tilewright_compiler::backend::Backend;
use tilewright_compiler::frontend::{self, ImportError};
use tilewright_compiler::graph::{Dim, Graph, GraphError};
use tilewright_compiler::partition::{Offload, partition};
use tilewright_compiler::passes::{self, OptLevel, PassError, optimize};
use tilewright_hw::config::HwConfig;
use tilewright_runtime::artifact::Artifact;

use crate::compile::{CompileError, compile};

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
    /// A pass went wrong.
    #[error(transparent)]
    Pass(#[from] PassError),
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

/// Compiles a graph; `dump` is told each pass's name and the graph's text after it, where the options ask for it.
///
/// # Errors
/// [`ModelError::Pass`] or [`ModelError::Compile`].
pub fn build(graph: Graph, options: &Options, dump: &mut dyn FnMut(&str, &str)) -> Result<Artifact, ModelError> {
    let level = match options.level {
        0 => OptLevel::O0,
        1 => OptLevel::O1,
        2 => OptLevel::O2,
        _ => OptLevel::O3,
    };
    let mut after = |pass: &'static str, graph: &Graph| dump(pass, &text(graph));
    if options.dump_ir {
        after("import", &graph);
    }
    let passes = passes::Options { stop_after: None, dump: if options.dump_ir { Some(&mut after) } else { None } };
    let (graph, _) = optimize(graph, level, passes)?;
    let offload = if options.offload { Offload::All } else { Offload::None };
    let partition = partition(&graph, options.config, offload);
    Ok(compile(&graph, &partition, options.config, cpu_backend()?.as_ref())?)
}

/// The code generator for this machine's processor.
#[cfg(feature = "llvm")]
fn cpu_backend() -> Result<Box<dyn Backend>, CompileError> {
    Ok(Box::new(tilewright_llvm::LlvmBackend::new()?))
}

/// The code generator for this machine's processor: there is none in this program.
#[cfg(not(feature = "llvm"))]
fn cpu_backend() -> Result<Box<dyn Backend>, CompileError> {
    Err(tilewright_compiler::backend::BackendError::Toolchain {
        backend: "llvm",
        message: "this program was built without it; build it with the feature `llvm`".to_string(),
    }
    .into())
}
