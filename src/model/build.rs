//! Model file to artifact: import, passes, placement, code.

use std::collections::BTreeMap;
use std::path::Path;

use tilewright_compiler::backend::Backend;
use tilewright_compiler::cost::{Analytic, CostOracle};
use tilewright_compiler::frontend;
pub use tilewright_compiler::frontend::{Datum, ImportOptions, Sizes, Sources, format_of, known_formats};
use tilewright_compiler::graph::{Graph, NodeId};
pub use tilewright_compiler::partition::Offload;
use tilewright_compiler::partition::{self, Partition, partition_by};
use tilewright_compiler::passes::pipelines::cpu_passes;
use tilewright_compiler::passes::{self, OptLevel, Pass, optimize};
use tilewright_compiler::records::{OtherShapes, Records, Replay};
use tilewright_hw::config::HwConfig;
use tilewright_runtime::artifact::{About, Artifact, ValueInfo};
use tilewright_runtime::tensor::DType;

use super::clock::{CycleModel, Timed};
use super::compile::{CompileError, check_memory, compile_listed};
use super::error::ModelError;
use super::listing::{Layer, Stage};
use super::measure::Measured;
use super::plans;
use super::schedules::{self, GivenSchedule, ScheduleFile};

/// Float width in a GPU's memory; arithmetic is always 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// 32 bits, as in the model.
    #[default]
    F32,
    /// 16 bits.
    F16,
}

impl Precision {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Precision::F32 => "f32",
            Precision::F16 => "f16",
        }
    }
}

/// What computes the operators that the accelerator does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fallback {
    /// The CPU.
    #[default]
    Cpu,
    /// A GPU of the machine that the artifact runs on.
    Cuda(Precision),
}

/// Options of compilation.
#[derive(Debug, Clone, Copy)]
pub struct Options<'c> {
    /// The accelerator.
    pub config: &'c HwConfig,
    /// What the accelerator computes.
    pub offload: Offload,
    /// What computes the remaining operators.
    pub fallback: Fallback,
    /// Target of the CPU code, a name for [`Processor::named`](tilewright_llvm::Processor::named); without it, this
    /// machine.
    pub processor: Option<&'c str>,
    /// Prefix of the CPU code's function names, so that several models can be linked into one program.
    pub symbols: Option<&'c str>,
    /// Whether CPU code is shared by shapes of the model: it is compiled twice at most, instead of for each shape, but runs
    /// a little slower. The code for the first shape is not shared.
    pub any_shape: bool,
    /// Plans of the model's first shape, which are taken over where they fit. If there are none, this is the first shape.
    pub other_shapes: Option<&'c OtherShapes>,
    /// Use measured CPU times of this machine instead of the model of the configuration's host.
    pub measure: bool,
    /// Optimization level, 0 to 3.
    pub level: u8,
    /// Whether to print the graph after each pass.
    pub dump_ir: bool,
    /// Whether to keep every accelerator layer's result, for inspection after a run.
    pub keep_values: bool,
    /// Whether the artifact may need more device memory than the configuration has, because its size is looked at later.
    pub any_memory: bool,
    /// Stages of the layers to list.
    pub stages: &'c [Stage],
    /// Schedules of layers of the accelerator, in place of the compiler's.
    pub schedules: &'c [GivenSchedule],
    /// Plans of layers that were found earlier, for the accelerator and for this machine's processor, which the levels 2
    /// and 3 use.
    pub records: Option<&'c Records>,
}

impl<'c> Options<'c> {
    /// The default options: offload everything that the accelerator can compute, at level 2, with the records that
    /// this program brings along.
    pub fn new(config: &'c HwConfig) -> Options<'c> {
        let (offload, fallback) = (Offload::All, Fallback::Cpu);
        Options {
            config,
            offload,
            fallback,
            processor: None,
            symbols: None,
            any_shape: false,
            other_shapes: None,
            measure: false,
            level: 2,
            dump_ir: false,
            keep_values: false,
            any_memory: false,
            stages: &[],
            schedules: &[],
            records: plans::shipped(config),
        }
    }
}

/// Imports a model. Open dimensions get the given sizes; open outermost dimensions without a size become 1.
///
/// # Errors
/// [`ModelError`], which names the file.
pub fn import(file: &Path, options: impl Into<ImportOptions>) -> Result<Graph, ModelError> {
    Ok(frontend::import_with(file, options)?)
}

/// Like [`import`], and also returns the file's names of the graph's values.
///
/// # Errors
/// Same as [`import`].
pub fn import_traced(file: &Path, options: impl Into<ImportOptions>) -> Result<(Graph, Sources), ModelError> {
    Ok(frontend::import_traced(file, options)?)
}

/// Reads a model file's metadata of inputs and outputs, beyond their types.
///
/// # Errors
/// [`ModelError::Import`] if the file cannot be read.
pub fn about(file: &Path) -> Result<About, ModelError> {
    Ok(frontend::about(file)?)
}

/// Prints a graph as text that parses back.
pub fn text(graph: &Graph) -> String {
    tilewright_compiler::graph::text::print(graph)
}

/// An artifact with the graph that it was compiled from.
#[derive(Debug)]
pub struct Built {
    /// The graph after all passes.
    pub graph: Graph,
    /// For each node of the manifest, its node in the graph.
    pub nodes: Vec<NodeId>,
    /// The artifact.
    pub artifact: Artifact,
    /// The schedules of the accelerator's layers.
    pub schedules: Vec<ScheduleFile>,
    /// The layers, if the options ask for some of their stages.
    pub layers: Vec<Layer>,
    /// How records were used.
    pub replay: Replay,
}

/// Compiles a graph. If the options ask for it, `dump` receives each pass's name and the graph's text after the pass.
///
/// # Errors
/// [`ModelError::Pass`] or [`ModelError::Compile`].
pub fn build(graph: Graph, options: &Options, dump: &mut dyn FnMut(&str, &str)) -> Result<Artifact, ModelError> {
    Ok(build_traced(graph, options, dump)?.artifact)
}

/// Like [`build`], and also returns the graph after all passes.
///
/// # Errors
/// Same as [`build`].
pub fn build_traced(graph: Graph, options: &Options, dump: &mut dyn FnMut(&str, &str)) -> Result<Built, ModelError> {
    let host = match options.fallback {
        Fallback::Cpu => cpu_backend(options)?,
        Fallback::Cuda(precision) => cuda_backend(precision)?,
    };
    let (graph, mut partition) = partitioned(graph, options, dump)?;
    let keep_values = options.keep_values;
    let clock = CycleModel { config: options.config };
    schedules::give(&mut partition, &graph, options.config, options.schedules, Some(&clock))?;
    // Kept values need the model's own layout. Products on a GPU work with either layout.
    let rewritten = !keep_values && options.fallback == Fallback::Cpu;
    let passes = if rewritten { cpu_passes(opt_level(options.level)) } else { Vec::new() };
    let regions = regions(&graph, options)?;
    let (artifact, layers) =
        compile_listed(&graph, &partition, options.config, host.as_ref(), &passes, options.stages, &regions)?;
    if !options.any_memory {
        check_memory(&artifact, options.config)?;
    }
    let nodes = partition.explanations.iter().map(|explanation| explanation.node).collect();
    let (schedules, mut replay) = (schedules::all(&partition), partition.replay);
    replay.add(host.replay());
    Ok(Built { graph, nodes, artifact, schedules, layers, replay })
}

/// Compiles the regions of a graph's nodes. The passes have changed them already.
fn regions(graph: &Graph, options: &Options) -> Result<BTreeMap<NodeId, Vec<Artifact>>, ModelError> {
    let (mut all, mut count) = (BTreeMap::new(), 0);
    for (id, node) in graph.nodes().filter(|(_, node)| !node.op.regions().is_empty()) {
        let compiled = node.op.regions().into_iter().map(|region| {
            // The functions of all regions have names of their own.
            count += 1;
            let symbols = format!("{}_region{count}", options.symbols.unwrap_or("model"));
            let inside = Options {
                symbols: Some(&symbols),
                dump_ir: false,
                keep_values: false,
                schedules: &[],
                any_memory: true,
                ..*options
            };
            build(region.as_ref().clone(), &inside, &mut |_, _| {})
        });
        all.insert(id, compiled.collect::<Result<_, _>>()?);
    }
    Ok(all)
}

/// Applies the passes to a graph, and splits it. If the options ask for it, `dump` receives each pass's name and the
/// graph's text after the pass.
///
/// # Errors
/// [`ModelError::Pass`], [`ModelError::Measure`], or [`ModelError::Compile`] if times cannot be measured.
pub fn partitioned(
    graph: Graph,
    options: &Options,
    dump: &mut dyn FnMut(&str, &str),
) -> Result<(Graph, Partition), ModelError> {
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
    let analytic = Analytic { config: options.config };
    let measured = match options.measure {
        true => {
            let here = Options { processor: None, symbols: None, records: None, any_shape: false, ..*options };
            Some(Measured::new(&graph, analytic, cpu_backend(&here)?.as_ref())?)
        }
        false => None,
    };
    let costs: &dyn CostOracle = measured.as_ref().map_or(&analytic, |measured| measured);
    let oracle = Timed { config: options.config, costs, records: options.records, other_shapes: options.other_shapes };
    let mut partition = partition_by(&graph, options.config, split, &oracle);
    if offload != Offload::None {
        partition.tell(&report.notes);
    }
    Ok((graph, partition))
}

/// The optimization level of a number.
pub(super) fn opt_level(level: u8) -> OptLevel {
    match level {
        0 => OptLevel::O0,
        1 => OptLevel::O1,
        2 => OptLevel::O2,
        _ => OptLevel::O3,
    }
}

/// The passes of an optimization level.
pub fn passes(level: u8) -> Vec<Box<dyn Pass>> {
    passes::pipelines::passes(opt_level(level))
}

/// The inputs of a graph, as they will be in its artifact.
///
/// # Errors
/// [`CompileError::OpenShape`].
pub fn inputs(graph: &Graph) -> Result<Vec<ValueInfo>, CompileError> {
    let input = |(name, id): (&str, _)| {
        let ty = graph.ty(id);
        let found = ty.shape().zip(DType::from_name(ty.dtype.name()));
        let open = || CompileError::OpenShape { value: name.to_string(), shape: ty.to_string() };
        let (shape, dtype) = found.ok_or_else(open)?;
        Ok(ValueInfo::new(name, dtype, shape))
    };
    graph.inputs().map(input).collect()
}

/// Makes an object file with `bytes` under a symbol, for a processor by its name.
///
/// # Errors
/// The code generator's error, or that this program was built without one.
#[cfg(feature = "llvm")]
pub fn data_object(processor: &str, symbol: &str, bytes: &[u8]) -> Result<Vec<u8>, String> {
    let processor = tilewright_llvm::Processor::named(processor).map_err(|e| e.to_string())?;
    processor.data_object(symbol, bytes).map_err(|e| e.to_string())
}

/// Makes an object file with an artifact and a function that opens it, for a processor by its name
/// ([`Processor::library_object`](tilewright_llvm::Processor::library_object)).
///
/// # Errors
/// The code generator's error, or that this program was built without one.
#[cfg(feature = "llvm")]
pub fn library_object(processor: &str, name: &str, artifact: &[u8]) -> Result<Vec<u8>, String> {
    let processor = tilewright_llvm::Processor::named(processor).map_err(|e| e.to_string())?;
    processor.library_object(name, artifact).map_err(|e| e.to_string())
}

/// Fails, because this program was built without a code generator.
///
/// # Errors
/// Always.
#[cfg(not(feature = "llvm"))]
pub fn library_object(_: &str, _: &str, _: &[u8]) -> Result<Vec<u8>, String> {
    Err("this program was built without LLVM; build it with the feature `llvm`".to_string())
}

/// Fails, because this program was built without a code generator.
///
/// # Errors
/// Always.
#[cfg(not(feature = "llvm"))]
pub fn data_object(_: &str, _: &str, _: &[u8]) -> Result<Vec<u8>, String> {
    Err("this program was built without LLVM; build it with the feature `llvm`".to_string())
}

/// The code generator for a processor by its name, or for this machine. It caches the code that it generates.
#[cfg(feature = "llvm")]
fn cpu_backend(options: &Options) -> Result<Box<dyn Backend>, CompileError> {
    let Options { processor, symbols, any_shape, level, .. } = *options;
    let records = options.records.filter(|_| level >= 2);
    if processor == Some(C99) {
        return c99_backend(symbols);
    }
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
    if let Some(records) = records {
        backend = backend.with_records(records.clone());
    }
    if any_shape {
        backend = backend.for_any_shape();
    }
    // Without a cache folder, nothing is cached.
    Ok(Box::new(match tilewright_sim::rtl::default_cache_dir() {
        Ok(folder) => backend.with_cache(folder),
        Err(_) => backend,
    }))
}

/// The name of portable C99 as a processor in [`Options::processor`].
pub const C99: &str = "c99";

/// The generator of portable C99.
#[cfg(all(feature = "llvm", feature = "cuda"))]
fn c99_backend(symbols: Option<&str>) -> Result<Box<dyn Backend>, CompileError> {
    Ok(Box::new(tilewright_cuda::C99Backend { prefix: symbols.unwrap_or("model").to_string() }))
}

/// Fails, because this program was built without the writer of C.
#[cfg(all(feature = "llvm", not(feature = "cuda")))]
fn c99_backend(_: Option<&str>) -> Result<Box<dyn Backend>, CompileError> {
    let message = "this program was built without it; build it with the feature `cuda`, which writes C".to_string();
    Err(tilewright_compiler::backend::BackendError::Toolchain { backend: "c", message }.into())
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

/// Fails, because this program was built without the code generator for GPUs.
#[cfg(not(feature = "cuda"))]
fn cuda_backend(_: Precision) -> Result<Box<dyn Backend>, CompileError> {
    let message = "this program was built without it; build it with the feature `cuda`".to_string();
    Err(tilewright_compiler::backend::BackendError::Toolchain { backend: "cuda", message }.into())
}

/// Fails, because this program was built without the code generator for CPUs.
#[cfg(not(feature = "llvm"))]
fn cpu_backend(_: &Options) -> Result<Box<dyn Backend>, CompileError> {
    Err(tilewright_compiler::backend::BackendError::Toolchain {
        backend: "llvm",
        message: "this program was built without it; build it with the feature `llvm`".to_string(),
    }
    .into())
}
