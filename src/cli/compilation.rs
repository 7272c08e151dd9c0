//! Options of reading and compiling a model, which several commands share, and what they do.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Result, anyhow, bail};
use tilewright::device::DeviceKind;
pub(super) use tilewright::model::Compiled;
use tilewright::model::ModelFile;
use tilewright::model::listing::Stage;
use tilewright::model::schedules::ScheduleFile;
use tilewright::model::{self, CompileRequest, Datum, ImportOptions, Shapes, Sizes, Sources};
use tilewright_compiler::graph::Tensor;
use tilewright_hw::config::HwConfig;
use tilewright_runtime::artifact::Artifact;
use tilewright_runtime::npy;

use super::tuned::TunedOption;

/// Options of compilation.
#[derive(clap::Args)]
pub struct Compilation {
    /// Operators for the accelerator: all that it can compute (all), those that are faster there than on the modeled
    /// host (auto), or none [default: all]
    #[arg(long, value_enum)]
    pub(super) offload: Option<Offload>,
    /// What computes the remaining operators: the CPU, or a GPU of the machine that runs the artifact [default: cpu;
    /// with --device cuda: cuda]
    #[arg(long, value_enum)]
    pub(super) fallback: Option<FallbackKind>,
    /// Float width in the GPU's memory; arithmetic is always 32 bits [default: f32]
    #[arg(long, value_enum)]
    precision: Option<Width>,
    /// Use measured CPU times of this machine instead of the model of the configuration's host
    #[arg(long)]
    pub(super) measure: bool,
    /// Optimization level: 0 one program per layer, 1 joins neighbors, 2 folds and picks tiles by cost, 3 also fuses
    /// into tiles and keeps results on the chip [default: 2]
    #[arg(short = 'O', value_name = "LEVEL", value_parser = clap::value_parser!(u8).range(0..=3))]
    level: Option<u8>,
    /// Print the graph to standard error after each pass
    #[arg(long)]
    dump_ir: bool,
    /// Folder with schedules (.te) of layers of the accelerator, as `tilewright schedule --of` writes them; they replace
    /// the compiler's
    #[arg(long, value_name = "DIR")]
    schedules: Option<PathBuf>,
    #[command(flatten)]
    tuned: TunedOption,
    /// Keep every accelerator layer's result in the artifact, for run --dump-tensors and diff
    #[arg(long)]
    keep_values: bool,
    #[command(flatten)]
    import: ImportArgs,
    /// Target of the CPU code; set only by `compile`.
    #[arg(skip)]
    pub(super) processor: Option<String>,
    /// Prefix of the CPU code's function names.
    #[arg(skip)]
    pub(super) symbols: Option<String>,
    /// Whether the artifact may need more memory than the configuration has; set only by `compile`.
    #[arg(skip)]
    pub(super) any_memory: bool,
    /// Stages of the layers to list; set only by `compile`.
    #[arg(skip)]
    pub(super) stages: Vec<Stage>,
}

/// Options of reading a model.
#[derive(clap::Args)]
pub struct ImportArgs {
    /// Size of an open dimension of the model, by its symbol
    #[arg(long, value_name = "SYMBOL=SIZE")]
    bind: Vec<String>,
    /// Shape of an input with open dimensions
    #[arg(long, value_name = "INPUT=SIZExSIZE…")]
    shape: Vec<String>,
    /// Value of an input that an operator needs as a constant, such as axes or a size: numbers with commas between them, or
    /// an array (.npy); the model is compiled for this value alone
    #[arg(long, value_name = "INPUT=NUMBERS")]
    value: Vec<String>,
    /// Call functions of the program for the operators of this ONNX domain; a function's name is the operator's, with
    /// its domain
    #[arg(long, value_name = "DOMAIN")]
    packed: Vec<String>,
}

/// What the accelerator computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Offload {
    /// Every operator that it can compute.
    All,
    /// Operators that are faster there, including layout conversions and transfers.
    Auto,
    /// Nothing.
    None,
}

/// What computes the operators that the accelerator does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum FallbackKind {
    /// The CPU.
    Cpu,
    /// The GPU.
    Cuda,
}

/// Width of floats in a GPU's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Width {
    /// 32 bits.
    F32,
    /// 16 bits.
    F16,
}

impl Width {
    /// The compiler's type for this width.
    pub fn precision(self) -> model::Precision {
        match self {
            Width::F32 => model::Precision::F32,
            Width::F16 => model::Precision::F16,
        }
    }
}

impl Offload {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Offload::All => "all",
            Offload::Auto => "auto",
            Offload::None => "none",
        }
    }
}

impl From<Offload> for model::Offload {
    fn from(offload: Offload) -> model::Offload {
        match offload {
            Offload::All => model::Offload::All,
            Offload::Auto => model::Offload::Auto,
            Offload::None => model::Offload::None,
        }
    }
}

impl From<FallbackKind> for model::FallbackKind {
    fn from(fallback: FallbackKind) -> model::FallbackKind {
        match fallback {
            FallbackKind::Cpu => model::FallbackKind::Cpu,
            FallbackKind::Cuda => model::FallbackKind::Cuda,
        }
    }
}

/// Prints the graph after a pass.
fn dump(stage: &str, text: &str) {
    eprintln!("// {stage}\n{text}");
}

/// The value of `--value`: integers, floats or truth values, or an array's file.
fn value_of(text: &str) -> Result<Tensor, String> {
    if Path::new(text).extension().is_some_and(|suffix| suffix == "npy") {
        let array = npy::read(Path::new(text)).map_err(|e| e.to_string())?;
        return Tensor::try_from(&array).map_err(|e| e.to_string());
    }
    fn all<T: FromStr>(text: &str) -> Option<Vec<T>> {
        text.split(',').map(|part| part.trim().parse().ok()).collect()
    }
    let value = None
        .or_else(|| all::<i64>(text).map(Tensor::vector))
        .or_else(|| all::<f32>(text).map(Tensor::vector))
        .or_else(|| all::<bool>(text).map(Tensor::vector));
    value.ok_or_else(|| "it is neither numbers with commas between them nor a .npy file".to_string())
}

impl ImportArgs {
    /// What is given on the command line, plus the shapes of the available input data.
    pub fn options(&self, data: &[Datum]) -> Result<ImportOptions> {
        let mut sizes = Sizes { data: data.to_vec(), ..Sizes::default() };
        let whole = |text: &str| text.parse::<usize>().ok().filter(|n| *n > 0);
        for text in &self.bind {
            let (symbol, size) =
                text.split_once('=').ok_or_else(|| anyhow!("--bind {text} is not of the form SYMBOL=SIZE"))?;
            let size = whole(size).ok_or_else(|| anyhow!("--bind {text}: the size is not a whole number above 0"))?;
            if sizes.symbols.insert(symbol.to_string(), size).is_some() {
                bail!("--bind gives {symbol} two sizes; give it one");
            }
        }
        for text in &self.shape {
            // A name can contain an equals sign, a size cannot.
            let (input, shape) =
                text.rsplit_once('=').ok_or_else(|| anyhow!("--shape {text} is not of the form INPUT=SIZExSIZE"))?;
            let shape: Option<Vec<usize>> = shape.split(['x', ',']).map(whole).collect();
            let shape = shape.ok_or_else(|| anyhow!("--shape {text}: a size is not a whole number above 0"))?;
            if sizes.inputs.insert(input.to_string(), shape).is_some() {
                bail!("--shape gives {input} two shapes; give it one");
            }
        }
        let mut values = BTreeMap::new();
        for text in &self.value {
            let (input, value) =
                text.split_once('=').ok_or_else(|| anyhow!("--value {text} is not of the form INPUT=NUMBERS"))?;
            let value = value_of(value).map_err(|reason| anyhow!("--value {text}: {reason}"))?;
            if values.insert(input.to_string(), value).is_some() {
                bail!("--value gives {input} two values; give it one");
            }
        }
        Ok(ImportOptions { sizes, values, packed: self.packed.iter().cloned().collect() })
    }
}

impl Compilation {
    /// Names of the options that were given; they have no effect if nothing is compiled.
    pub fn given(&self) -> Vec<&'static str> {
        let options = [
            (self.offload.is_some(), "--offload"),
            (self.fallback.is_some(), "--fallback"),
            (self.precision.is_some(), "--precision"),
            (self.measure, "--measure"),
            (self.level.is_some(), "-O"),
            (self.dump_ir, "--dump-ir"),
            (self.schedules.is_some(), "--schedules"),
            (self.tuned.is_given(), "--tuned"),
            (self.keep_values, "--keep-values"),
            (!self.import.bind.is_empty(), "--bind"),
            (!self.import.shape.is_empty(), "--shape"),
            (!self.import.value.is_empty(), "--value"),
            (!self.import.packed.is_empty(), "--packed"),
        ];
        options.into_iter().filter(|(given, _)| *given).map(|(_, name)| name).collect()
    }

    /// Names of the given options that the graph passes do not use.
    pub fn beside_passes(&self) -> Vec<&'static str> {
        self.given()
            .into_iter()
            .filter(|name| !["-O", "--bind", "--shape", "--value", "--packed"].contains(name))
            .collect()
    }

    /// Whether `--keep-values` was given.
    pub fn keeps_values(&self) -> bool {
        self.keep_values
    }

    /// Optimization level.
    pub fn level(&self) -> u8 {
        self.level.unwrap_or(2)
    }

    /// How a model is read, with the shapes of the available input data.
    pub fn import(&self, data: &[Datum]) -> Result<ImportOptions> {
        self.import.options(data)
    }

    /// Prints advice if a float model leaves nothing to the accelerator.
    pub fn advise(&self, artifact: &Artifact, file: &ModelFile) {
        if self.offload != Some(Offload::None)
            && let Some(advice) = tilewright::model::quantize::advice(&artifact.manifest, file.display())
        {
            super::note(&advice);
        }
    }

    /// Maps compiled values to their names in the model file.
    pub fn sources(&self, file: &ModelFile, data: &[Datum]) -> Result<Sources> {
        Ok(tilewright::model::import_traced(file, self.import(data)?)?.1)
    }

    /// The options as a request of the library.
    fn request(&self, keep_values: bool) -> Result<CompileRequest> {
        Ok(CompileRequest {
            offload: self.offload.map(Into::into),
            fallback: self.fallback.map(Into::into),
            precision: self.precision.map(Width::precision),
            measure: self.measure,
            level: self.level(),
            dump_ir: self.dump_ir,
            schedules: self.schedules.clone(),
            tuned: self.tuned.read()?,
            keep_values: keep_values || self.keep_values,
            processor: self.processor.clone(),
            symbols: self.symbols.clone(),
            any_memory: self.any_memory,
            stages: self.stages.clone(),
        })
    }

    /// Imports and compiles a model; returns the artifact and the seconds of both steps. Open dimensions get the sizes
    /// of `data`. `keep_values` keeps every layer's result even if the options do not ask for it.
    pub fn compile(
        &self,
        file: &ModelFile,
        config: &HwConfig,
        device: DeviceKind,
        keep_values: bool,
        data: &[Datum],
    ) -> Result<(Artifact, f64, f64)> {
        let Compiled { artifact, load_s, compile_s, .. } =
            self.compile_listed(file, config, device, keep_values, data)?;
        Ok((artifact, load_s, compile_s))
    }

    /// Returns the schedules of a model's layers on the accelerator.
    pub fn schedules(&self, file: &ModelFile, config: &HwConfig) -> Result<Vec<ScheduleFile>> {
        Ok(self.compile_listed(file, config, DeviceKind::FSIM, false, &[])?.schedules)
    }

    /// Compiles a model for these sizes of its open dimensions, in addition to those of the options.
    pub(super) fn compile_shapes(&self, file: &ModelFile, config: &HwConfig, shapes: &Shapes) -> Result<Compiled> {
        let import = self.import(&file.sample_shapes())?;
        let compiled =
            self.request(false)?.compile_shapes(file, &import, shapes, config, DeviceKind::FSIM, &mut dump)?;
        self.tuned.tell(&compiled.replay, compiled.skipped.clone());
        Ok(compiled)
    }

    /// Like [`Compilation::compile`], and also returns the listed layers.
    pub(super) fn compile_listed(
        &self,
        file: &ModelFile,
        config: &HwConfig,
        device: DeviceKind,
        keep_values: bool,
        data: &[Datum],
    ) -> Result<Compiled> {
        let sample = if data.is_empty() { file.sample_shapes() } else { Vec::new() };
        let import = self.import(if data.is_empty() { &sample } else { data })?;
        self.compile_import(file, config, device, keep_values, &import)
    }

    /// Reads and compiles a model.
    fn compile_import(
        &self,
        file: &ModelFile,
        config: &HwConfig,
        device: DeviceKind,
        keep_values: bool,
        import: &ImportOptions,
    ) -> Result<Compiled> {
        let request = self.request(keep_values)?;
        if let (Some(Offload::Auto), Some(runner)) = (self.offload, device.model_runner()) {
            super::note(&format!(
                "--offload auto has no effect on device {device}, where everything runs on the {}",
                runner.name()
            ));
        }
        let compiled = request.compile_file(file, import, config, device, &mut dump)?;
        self.tuned.tell(&compiled.replay, compiled.skipped.clone());
        Ok(compiled)
    }
}
