//! From a model file to an artifact, with everything that a person can ask for. The command line and Python make the
//! request, and sessions that compile for the shapes that they meet use the parts.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use tilewright_compiler::graph::Graph;
use tilewright_hw::config::HwConfig;
use tilewright_runtime::artifact::Artifact;

use super::build::{Built, Fallback, ImportOptions, Offload, Options, Precision, Sources, build_traced, import_traced};
use super::error::ModelError;
use super::file::ModelFile;
use super::listing::{Layer, Stage};
use super::plans::{Loaded, Tuned};
use super::schedules::{self, GivenSchedule, ScheduleFile};
use crate::device::{DeviceKind, ModelRunner};

/// Called with each pass's name and the graph's text after it.
pub type DumpIr<'a> = dyn FnMut(&str, &str) + 'a;

/// What computes the operators that the accelerator does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FallbackKind {
    /// The CPU.
    Cpu,
    /// The GPU.
    Cuda,
}

/// What a compilation was asked for, apart from the model, the configuration and the device.
#[derive(Debug, Clone)]
pub struct CompileRequest {
    /// What the accelerator computes; without it, all that it can.
    pub offload: Option<Offload>,
    /// What computes the rest; without it, what the device says.
    pub fallback: Option<FallbackKind>,
    /// Float width in a GPU's memory.
    pub precision: Option<Precision>,
    /// Use measured CPU times of this machine instead of the model of the configuration's host.
    pub measure: bool,
    /// Optimization level, 0 to 3.
    pub level: u8,
    /// Whether to dump the graph after each pass.
    pub dump_ir: bool,
    /// Folder with schedules of layers.
    pub schedules: Option<PathBuf>,
    /// Which plans of layers that were found earlier to use.
    pub tuned: Tuned,
    /// Keep every accelerator layer's result in the artifact.
    pub keep_values: bool,
    /// Target of the CPU code.
    pub processor: Option<String>,
    /// Prefix of the CPU code's function names.
    pub symbols: Option<String>,
    /// Whether the artifact may need more memory than the configuration has.
    pub any_memory: bool,
    /// Stages of the layers to list.
    pub stages: Vec<Stage>,
}

impl Default for CompileRequest {
    fn default() -> CompileRequest {
        CompileRequest {
            offload: None,
            fallback: None,
            precision: None,
            measure: false,
            level: 2,
            dump_ir: false,
            schedules: None,
            tuned: Tuned::Shipped,
            keep_values: false,
            processor: None,
            symbols: None,
            any_memory: false,
            stages: Vec::new(),
        }
    }
}

/// A compiled model.
pub struct Compiled {
    /// The artifact.
    pub artifact: Artifact,
    /// The schedules of layers of the accelerator.
    pub schedules: Vec<ScheduleFile>,
    /// The listed layers.
    pub layers: Vec<Layer>,
    /// How records of plans were used.
    pub replay: tilewright_compiler::records::Replay,
    /// Number of lines of the log that are not used, by reason.
    pub skipped: std::collections::BTreeMap<String, usize>,
    /// Seconds to read the model.
    pub load_s: f64,
    /// Seconds to compile it.
    pub compile_s: f64,
}

impl CompileRequest {
    /// What computes the operators that the accelerator does not.
    fn fallback(&self, device: DeviceKind) -> Result<Fallback> {
        let on_gpu = match (self.fallback, device.model_runner()) {
            (Some(FallbackKind::Cpu), Some(ModelRunner::Gpu)) => {
                bail!("--fallback cpu does not go with --device cuda; use --device cpu")
            }
            (Some(FallbackKind::Cuda), Some(ModelRunner::Cpu)) => {
                bail!("--fallback cuda does not go with --device cpu; use --device cuda")
            }
            (fallback, runner) => fallback == Some(FallbackKind::Cuda) || runner == Some(ModelRunner::Gpu),
        };
        if !on_gpu && self.precision.is_some() {
            bail!("--precision is for a GPU; add --device cuda or --fallback cuda");
        }
        Ok(if on_gpu { Fallback::Cuda(self.precision.unwrap_or_default()) } else { Fallback::Cpu })
    }

    /// Reads a model file and compiles it for a device. The artifact has the file's names of values, and what the file
    /// says of its inputs and outputs.
    ///
    /// # Errors
    /// Errors of import and compilation, which name the file, and options that contradict the device.
    pub fn compile_file(
        &self,
        file: &ModelFile,
        import: &ImportOptions,
        config: &HwConfig,
        device: DeviceKind,
        dump: &mut DumpIr,
    ) -> Result<Compiled> {
        let prepared = self.prepare(config, device)?;
        let started = Instant::now();
        let (graph, sources) = import_traced(file, import.clone())?;
        let load_s = started.elapsed().as_secs_f64();
        let options = self.options(config, &prepared);
        let compiled =
            CompileRequest::build(graph, &options, &prepared, dump).with_context(|| file.display().to_string())?;
        let mut compiled = Compiled { load_s, ..compiled };
        describe(&mut compiled.artifact, file, &sources)?;
        Ok(compiled)
    }

    /// Compiles a graph for a device.
    ///
    /// # Errors
    /// The same as [`CompileRequest::compile_file`], apart from the import.
    pub fn compile_graph(
        &self,
        graph: Graph,
        config: &HwConfig,
        device: DeviceKind,
        dump: &mut DumpIr,
    ) -> Result<Compiled> {
        let prepared = self.prepare(config, device)?;
        Ok(CompileRequest::build(graph, &self.options(config, &prepared), &prepared, dump)?)
    }

    /// What can be refused before a model is read.
    pub(super) fn prepare(&self, config: &HwConfig, device: DeviceKind) -> Result<Prepared> {
        let accelerator = device.is_accelerator();
        Ok(Prepared {
            offload: match self.offload.unwrap_or_default() {
                Offload::All => Offload::all_if(accelerator),
                Offload::Auto if accelerator => Offload::Auto,
                Offload::Auto | Offload::None => Offload::None,
            },
            fallback: self.fallback(device)?,
            records: self.tuned.load(config, self.processor.as_deref())?,
            schedules: self.schedules.as_deref().map(schedules::read).transpose()?.unwrap_or_default(),
        })
    }

    /// The options of a compilation.
    pub(super) fn options<'a>(&'a self, config: &'a HwConfig, prepared: &'a Prepared) -> Options<'a> {
        Options {
            config,
            offload: prepared.offload,
            fallback: prepared.fallback,
            processor: self.processor.as_deref(),
            symbols: self.symbols.as_deref(),
            any_shape: false,
            other_shapes: None,
            measure: self.measure,
            level: self.level,
            dump_ir: self.dump_ir,
            keep_values: self.keep_values,
            any_memory: self.any_memory,
            stages: &self.stages,
            schedules: &prepared.schedules,
            records: prepared.records.get(),
        }
    }

    fn build(graph: Graph, options: &Options, prepared: &Prepared, dump: &mut DumpIr) -> Result<Compiled, ModelError> {
        let started = Instant::now();
        let Built { artifact, schedules, layers, replay, .. } = build_traced(graph, options, dump)?;
        Ok(Compiled {
            artifact,
            schedules,
            layers,
            replay,
            skipped: prepared.records.skipped.clone(),
            load_s: 0.0,
            compile_s: started.elapsed().as_secs_f64(),
        })
    }
}

/// What the options of a request mean for a configuration and a device.
pub(super) struct Prepared {
    offload: Offload,
    fallback: Fallback,
    records: Loaded,
    schedules: Vec<GivenSchedule>,
}

/// Adds what a model file says of its values, inputs and outputs.
pub(super) fn describe(artifact: &mut Artifact, file: &ModelFile, sources: &Sources) -> Result<(), ModelError> {
    sources.annotate(&mut artifact.manifest);
    artifact.manifest.about = file.about()?;
    Ok(())
}
