//! Model file to artifact: import, passes, placement, code.

use std::path::Path;

use tilewright_compiler::backend::Backend;
use tilewright_compiler::cost::{Analytic, CostOracle};
use tilewright_compiler::frontend;
pub use tilewright_compiler::frontend::{Format, Sizes, Sources};
use tilewright_compiler::graph::{Graph, NodeId};
pub use tilewright_compiler::partition::Offload;
use tilewright_compiler::partition::{self, partition_by};
use tilewright_compiler::passes::pipelines::cpu_passes;
use tilewright_compiler::passes::{self, OptLevel, Pass, optimize};
use tilewright_hw::config::HwConfig;
use tilewright_runtime::artifact::{About, Artifact, Value};
use tilewright_runtime::tensor::DType;

use super::clock::Timed;
use super::compile::{CompileError, compile};
use super::error::ModelError;
use super::measure::Measured;

/// How wide floats are in a GPU's memory; they are computed with in 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// As in the model.
    #[default]
    F32,
    /// 16 bits.
    F16,
}

impl Precision {
    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Precision::F32 => "f32",
            Precision::F16 => "f16",
        }
    }
}

/// What computes that which the accelerator does not get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fallback {
    /// This machine's processor.
    #[default]
    Cpu,
    /// A GPU of the machine that the artifact runs on.
    Cuda(Precision),
}

/// How a model is compiled.
#[derive(Debug, Clone, Copy)]
pub struct Options<'c> {
    /// The accelerator.
    pub config: &'c HwConfig,
    /// What the accelerator gets.
    pub offload: Offload,
    /// What the rest is computed by.
    pub fallback: Fallback,
    /// The processor that CPU code is made for, as [`Processor::named`](tilewright_llvm::Processor::named) has them; else this
    /// machine's.
    pub processor: Option<&'c str>,
    /// What the names of the CPU code's functions begin with, so that several models may be linked into one program.
    pub symbols: Option<&'c str>,
    /// Whether the CPU's times are measured on this machine; else they are those of the model of the configuration's host.
    pub measure: bool,
    /// Level of optimisation, 0 to 3.
    pub level: u8,
    /// Whether the graph is printed after each pass.
    pub dump_ir: bool,
    /// Whether what every layer of the accelerator writes can be looked at after a run.
    pub keep_values: bool,
}

impl<'c> Options<'c> {
    /// What is done where nothing else is asked for: everything that the accelerator can compute goes there, at level 2.
    pub fn new(config: &'c HwConfig) -> Options<'c> {
        let (offload, fallback) = (Offload::All, Fallback::Cpu);
        Options {
            config,
            offload,
            fallback,
            processor: None,
            symbols: None,
            measure: false,
            level: 2,
            dump_ir: false,
            keep_values: false,
        }
    }
}

/// Imports a model. Dimensions that it leaves open get the sizes given, the outermost ones else 1.
///
/// # Errors
/// [`ModelError`], naming the file.
pub fn import(file: &Path, sizes: &Sizes) -> Result<Graph, ModelError> {
    Ok(frontend::import_sized(file, sizes)?)
}

/// The same, with what the file calls the graph's values.
///
/// # Errors
/// As [`import`].
pub fn import_traced(file: &Path, sizes: &Sizes) -> Result<(Graph, Sources), ModelError> {
    Ok(frontend::import_traced(file, sizes)?)
}

/// What a model's file says of its inputs and outputs beside their types.
///
/// # Errors
/// [`ModelError::Import`] where it cannot be read.
pub fn about(file: &Path) -> Result<About, ModelError> {
    Ok(frontend::about(file)?)
}

/// A graph as text that parses back.
pub fn text(graph: &Graph) -> String {
    tilewright_compiler::graph::text::print(graph)
}

/// An artifact with the graph that it was made of.
#[derive(Debug)]
pub struct Built {
    /// The graph behind all passes.
    pub graph: Graph,
    /// The node of the graph that each of the manifest's nodes is.
    pub nodes: Vec<NodeId>,
    /// The artifact.
    pub artifact: Artifact,
}

/// Compiles a graph; `dump` is told each pass's name and the graph's text after it, where the options ask for it.
///
/// # Errors
/// [`ModelError::Pass`] or [`ModelError::Compile`].
pub fn build(graph: Graph, options: &Options, dump: &mut dyn FnMut(&str, &str)) -> Result<Artifact, ModelError> {
    Ok(build_traced(graph, options, dump)?.artifact)
}

/// The same, with the graph behind all passes.
///
/// # Errors
/// As [`build`].
pub fn build_traced(graph: Graph, options: &Options, dump: &mut dyn FnMut(&str, &str)) -> Result<Built, ModelError> {
    let mut after = |pass: &'static str, graph: &Graph| dump(pass, &text(graph));
    if options.dump_ir {
        after("import", &graph);
    }
    let passes =
        passes::Options { dump: if options.dump_ir { Some(&mut after) } else { None }, ..passes::Options::default() };
    let (graph, report) = optimize(graph, opt_level(options.level), passes)?;
    let (offload, keep_values) = (options.offload, options.keep_values);
    let of_level = partition::Options::of_level(opt_level(options.level));
    let split = partition::Options { offload, keep_values, ..of_level };
    let host = match options.fallback {
        Fallback::Cpu => cpu_backend(options.processor, options.symbols)?,
        Fallback::Cuda(precision) => cuda_backend(precision)?,
    };
    let analytic = Analytic { config: options.config };
    let measured = match options.measure {
        true => Some(Measured::new(&graph, analytic, cpu_backend(None, None)?.as_ref())?),
        false => None,
    };
    let costs: &dyn CostOracle = measured.as_ref().map_or(&analytic, |measured| measured);
    let mut partition = partition_by(&graph, options.config, split, &Timed { config: options.config, costs });
    if offload != Offload::None {
        partition.tell(&report.notes);
    }
    // What can be looked at after a run has the model's own layout; a GPU's products take either.
    let rewritten = !keep_values && options.fallback == Fallback::Cpu;
    let passes = if rewritten { cpu_passes(opt_level(options.level)) } else { Vec::new() };
    let artifact = compile(&graph, &partition, options.config, host.as_ref(), &passes)?;
    let nodes = partition.explanations.iter().map(|explanation| explanation.node).collect();
    Ok(Built { graph, nodes, artifact })
}

fn opt_level(level: u8) -> OptLevel {
    match level {
        0 => OptLevel::O0,
        1 => OptLevel::O1,
        2 => OptLevel::O2,
        _ => OptLevel::O3,
    }
}

/// The passes of a level of optimisation.
pub fn passes(level: u8) -> Vec<Box<dyn Pass>> {
    passes::pipelines::passes(opt_level(level))
}

/// The inputs of a graph, as those of its artifact will be.
///
/// # Errors
/// [`CompileError::OpenShape`].
pub fn inputs(graph: &Graph) -> Result<Vec<Value>, CompileError> {
    let input = |(name, id): (&str, _)| {
        let ty = graph.ty(id);
        let found = ty.shape().zip(DType::from_name(ty.dtype.name()));
        let open = || CompileError::OpenShape { value: name.to_string(), shape: ty.to_string() };
        let (shape, dtype) = found.ok_or_else(open)?;
        Ok(Value { name: name.to_string(), dtype, shape, constant: None, source: None })
    };
    graph.inputs().map(input).collect()
}

/// An object of bytes under a symbol, for a processor by its name.
///
/// # Errors
/// What the code generator says, also where this program has none.
#[cfg(feature = "llvm")]
pub fn data_object(processor: &str, symbol: &str, bytes: &[u8]) -> Result<Vec<u8>, String> {
    let processor = tilewright_llvm::Processor::named(processor).map_err(|e| e.to_string())?;
    processor.data_object(symbol, bytes).map_err(|e| e.to_string())
}

/// An object of bytes: no code generator is in this program.
///
/// # Errors
/// Always.
#[cfg(not(feature = "llvm"))]
pub fn data_object(_: &str, _: &str, _: &[u8]) -> Result<Vec<u8>, String> {
    Err("this program was built without LLVM; build it with the feature `llvm`".to_string())
}

/// The code generator for a processor by its name, or for this machine's; what it made before it takes from the cache.
#[cfg(feature = "llvm")]
fn cpu_backend(processor: Option<&str>, symbols: Option<&str>) -> Result<Box<dyn Backend>, CompileError> {
    use tilewright_llvm::{LlvmBackend, Processor};
    let mut backend = match processor {
        Some(name) => LlvmBackend::for_processor(Processor::named(name).map_err(|e| {
            tilewright_compiler::backend::BackendError::Toolchain { backend: "cpu", message: e.to_string() }
        })?),
        None => LlvmBackend::new()?,
    };
    if let Some(prefix) = symbols {
        backend = backend.with_symbols(prefix);
    }
    // Without a place for it nothing is kept.
    Ok(Box::new(match tilewright_sim::rtl::default_cache_dir() {
        Ok(folder) => backend.with_cache(folder),
        Err(_) => backend,
    }))
}

/// The code generator for GPUs.
#[cfg(feature = "cuda")]
fn cuda_backend(precision: Precision) -> Result<Box<dyn Backend>, CompileError> {
    let precision = match precision {
        Precision::F32 => tilewright_cuda::Precision::F32,
        Precision::F16 => tilewright_cuda::Precision::F16,
    };
    Ok(Box::new(tilewright_cuda::CudaBackend { precision }))
}

/// The code generator for GPUs: there is none in this program.
#[cfg(not(feature = "cuda"))]
fn cuda_backend(_: Precision) -> Result<Box<dyn Backend>, CompileError> {
    let message = "this program was built without it; build it with the feature `cuda`".to_string();
    Err(tilewright_compiler::backend::BackendError::Toolchain { backend: "cuda", message }.into())
}

/// The code generator for this machine's processor: there is none in this program.
#[cfg(not(feature = "llvm"))]
fn cpu_backend(_: Option<&str>, _: Option<&str>) -> Result<Box<dyn Backend>, CompileError> {
    Err(tilewright_compiler::backend::BackendError::Toolchain {
        backend: "llvm",
        message: "this program was built without it; build it with the feature `llvm`".to_string(),
    }
    .into())
}
