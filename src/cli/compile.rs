//! `compile`: a model file to an artifact, objects, a library or C.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use tilewright::device::{DeviceKind, load_hw};
use tilewright::examine::fit::Fit;
use tilewright::model::export;
use tilewright::model::library;
use tilewright::model::listing::{self, Layer, Stage};
use tilewright::model::wasm::{self, WasmLinker};
use tilewright::model::{self, ModelFile, Shapes};
use tilewright_hw::flow::board::Board;
use tilewright_runtime::files;

use super::compilation::{Compilation, Compiled, FallbackKind, Offload};
use super::{Hw, Verdict, write_or_print};

/// Arguments of `compile`.
#[derive(clap::Args)]
pub struct Compile {
    /// The model (.onnx, .pt2, .tflite, zoo:NAME)
    #[arg(value_parser = ModelFile::parse)]
    file: ModelFile,
    /// Compile for several sizes of an open dimension; given several times, for all combinations
    #[arg(long, value_name = "SYMBOL=SIZE,SIZE…")]
    shapes: Vec<String>,
    /// Let inputs of other sizes be padded to the next size of --shapes that is larger, where the model computes the rows of
    /// that size independently of each other
    #[arg(long, requires = "shapes")]
    bucket: bool,
    /// Artifact to write; with --emit object or c, the folder for the files, whose names start with the folder's name; with
    /// --emit so, the library, named libNAME.so; with --emit wasm, the module, named NAME.wasm
    #[arg(short, long, value_name = "FILE|FOLDER", required_unless_present_any = ["dump", "board"])]
    output: Option<PathBuf>,
    /// What to write: an artifact, object files with C and a header for your own programs, portable C99 alone, a shared
    /// library for programs that link the runtime library, or a WebAssembly module for Node and web pages [default:
    /// artifact]
    #[arg(long, value_enum)]
    emit: Option<Emit>,
    /// Write the parameters (weights and other constants) to this file, apart from the code; the artifact names the file
    /// and its checksum
    #[arg(long, value_name = "FILE", requires = "output")]
    params: Option<PathBuf>,
    /// Target of the CPU code: x86_64-linux-gnu, aarch64-linux-gnu, armv7-linux-gnueabihf or riscv64-linux-gnu [default:
    /// this machine]
    #[arg(long, value_name = "TARGET[,cpu=NAME][,+FEATURE]…")]
    cpu_target: Option<String>,
    #[command(flatten)]
    hw: Hw,
    /// Compile for this board (a name, or the path of a folder with a board.toml), and say whether the model fits its
    /// memory and how fast it is there; without -o, nothing is written; the exit code is 1 if it does not fit
    #[arg(long, value_name = "NAME|DIR", conflicts_with = "name")]
    board: Option<String>,
    /// Print the answer of --board as one JSON object on standard output
    #[arg(long, requires = "board")]
    json: bool,
    #[command(flatten)]
    compilation: Compilation,
    /// Print where each operator runs and why, and its cost there and elsewhere
    #[arg(long)]
    explain: bool,
    /// Write stages of every layer as text into the folder --dump-dir, one file for each layer and stage
    #[arg(long, value_enum, value_name = "STAGE,…", value_delimiter = ',', requires = "dump_dir")]
    dump: Vec<Dumped>,
    /// Folder for the files of --dump
    #[arg(long, value_name = "DIR", requires = "dump")]
    dump_dir: Option<PathBuf>,
    /// Dump only the layer of this node; can be given several times
    #[arg(long, value_name = "NODE", requires = "dump")]
    dump_layer: Vec<String>,
}

/// A stage that `compile` dumps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Dumped {
    /// Tensor expression: what the layer, or on the accelerator a tile of it, computes.
    Te,
    /// Loops after the schedule.
    Tir,
    /// Steps that made these loops from the tensor expression.
    Schedule,
    /// LLVM IR of CPU functions, before LLVM's passes.
    Llvm,
    /// Assembly of CPU functions, instructions of the accelerator.
    Asm,
    /// CUDA C of GPU functions.
    Cuda,
    /// PTX of GPU functions for compute capability 7.5; needs NVRTC.
    Ptx,
}

impl From<Dumped> for Stage {
    fn from(dumped: Dumped) -> Stage {
        match dumped {
            Dumped::Te => Stage::Te,
            Dumped::Tir => Stage::Tir,
            Dumped::Schedule => Stage::Schedule,
            Dumped::Llvm => Stage::Llvm,
            Dumped::Asm => Stage::Asm,
            Dumped::Cuda => Stage::Cuda,
            Dumped::Ptx => Stage::Ptx,
        }
    }
}

/// What `compile` writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Emit {
    /// An artifact.
    Artifact,
    /// Object files, C and a header.
    Object,
    /// Portable C99 without heap or operating system; with --offload all, also the accelerator's programs and a driver.
    C,
    /// A shared library with the artifact in it and a header, for programs that link the runtime library.
    So,
    /// A WebAssembly module with the artifact in it, for the JavaScript package; --cpu-target wasm32 leaves SIMD out.
    Wasm,
}

impl Compile {
    pub fn run(mut self) -> Result<Verdict> {
        if self.cpu_target.is_some() && self.compilation.measure {
            bail!("--measure measures this machine's CPU, but --cpu-target names another; leave one of them out");
        }
        let on_wasm = self.cpu_target.as_deref().map(|target| target.split(',').next() == Some(wasm::TARGET));
        match (self.emit, on_wasm) {
            (Some(Emit::Wasm), None) => self.cpu_target = Some(format!("{},+simd128", wasm::TARGET)),
            (Some(Emit::Wasm), Some(false)) => bail!("--emit wasm writes code for wasm32; leave out --cpu-target"),
            (Some(Emit::Wasm), Some(true)) | (_, None | Some(false)) => {}
            (_, Some(true)) => bail!("--cpu-target wasm32 is for WebAssembly modules; add --emit wasm"),
        }
        if self.emit == Some(Emit::Wasm) && self.compilation.measure {
            bail!("--measure measures this machine's CPU, but --emit wasm is for others; leave out --measure");
        }
        self.compilation.processor = self.cpu_target.clone();
        self.compilation.stages = self.stages();
        match (self.emit, self.output.clone()) {
            (Some(Emit::Object | Emit::C), Some(folder)) => self.export(&folder),
            (Some(Emit::Object), None) => bail!("--emit object needs a folder for its files; add --output FOLDER"),
            (Some(Emit::C), None) => bail!("--emit c needs a folder for its files; add --output FOLDER"),
            (Some(Emit::So), None) => bail!("--emit so needs a file for the library; add --output libNAME.so"),
            (Some(Emit::Wasm), None) => bail!("--emit wasm needs a file for the module; add --output NAME.wasm"),
            (_, output) => self.artifact(output.as_deref()),
        }
    }

    /// The stages to dump. Without NVRTC, CUDA C takes the place of PTX.
    fn stages(&self) -> Vec<Stage> {
        let mut stages: Vec<Stage> = self.dump.iter().map(|stage| Stage::from(*stage)).collect();
        let on_gpu = self.compilation.fallback == Some(FallbackKind::Cuda);
        if on_gpu
            && stages.contains(&Stage::Ptx)
            && let Err(reason) = listing::check_ptx()
        {
            super::note(&format!("--dump ptx writes CUDA C instead of PTX: {reason}"));
            stages.retain(|stage| *stage != Stage::Ptx);
            stages.push(Stage::Cuda);
        }
        stages.sort_unstable();
        stages.dedup();
        stages
    }

    /// Writes the dump, if one is wanted.
    fn dump(&self, layers: &[Layer]) -> Result<()> {
        let Some(folder) = &self.dump_dir else { return Ok(()) };
        let list = listing::files(layers, &self.compilation.stages, &self.dump_layer)
            .with_context(|| self.file.display().to_string())?;
        let list = write_files(folder, list)?;
        let count = layers.iter().filter(|layer| listing::is_chosen(layer, &self.dump_layer)).count();
        super::say(&format!("{}: {} files of {count} layers", folder.display(), list.len()));
        Ok(())
    }

    /// Writes the model as object files or C and a header into a folder. Everything runs on the CPU, unless the
    /// accelerator is asked for by --offload.
    fn export(mut self, folder: &Path) -> Result<Verdict> {
        let elsewhere = [
            (self.params.is_some(), "--params"),
            (self.board.is_some(), "--board"),
            (self.compilation.fallback == Some(FallbackKind::Cuda), "--fallback cuda"),
            (self.compilation.measure, "--measure"),
            (!self.shapes.is_empty(), "--shapes"),
        ];
        if let Some((_, option)) = elsewhere.iter().find(|(given, _)| *given) {
            let emit = if self.emit == Some(Emit::C) { "c" } else { "object" };
            bail!("--emit {emit} writes code of the CPU and the accelerator for one shape; leave out {option}");
        }
        if self.emit == Some(Emit::C) {
            if self.cpu_target.is_some() {
                bail!("--emit c is for every processor; leave out --cpu-target");
            }
            self.compilation.processor = Some(model::C99.to_string());
        }
        files::check_folder(folder).with_context(|| format!("cannot write into {}", folder.display()))?;
        let stem = folder.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = export::identifier(&stem.unwrap_or_default());
        self.compilation.symbols = Some(name.clone());
        // Constants are data, which is the same for every processor of an architecture.
        let own = format!("{}-linux-gnu", std::env::consts::ARCH);
        let target = self.cpu_target.clone().unwrap_or(own);
        let config = self.hw.load()?;
        self.check_dump()?;
        let offloads = matches!(self.compilation.offload, Some(Offload::All | Offload::Auto));
        let device = if offloads { DeviceKind::FSIM } else { DeviceKind::CPU };
        let Compiled { artifact, layers, load_s, compile_s, .. } =
            self.compilation.compile_listed(&self.file, &config, device, false, &[])?;
        self.dump(&layers)?;
        if self.explain {
            write_or_print(None, tilewright::examine::explain::table(&artifact.manifest).as_bytes())?;
        }
        let constants = |symbol: &str, bytes: &[u8]| model::data_object(&target, symbol, bytes);
        let list = export::files(&artifact, &name, &constants)?;
        let list = write_files(folder, list)?;
        super::say(&format!(
            "{}: {} files, {} steps, {} bytes; read in {load_s:.3} s, compiled in {compile_s:.3} s; {name}.h says \
             what to link",
            folder.display(),
            list.len(),
            artifact.manifest.steps.len(),
            list.iter().map(|(_, bytes)| bytes.len()).sum::<usize>(),
        ));
        Ok(Verdict::Fine)
    }

    fn artifact(mut self, output: Option<&Path>) -> Result<Verdict> {
        if let Some(output) = output {
            if files::same(output, &self.file) {
                bail!("--output {} is the model itself; give another file", output.display());
            }
            files::check_writable(output).with_context(|| format!("cannot write {}", output.display()))?;
        }
        if let Some(params) = &self.params {
            if files::same(params, &self.file) || output.is_some_and(|output| files::same(params, output)) {
                bail!("--params {} is the model or the artifact itself; give another file", params.display());
            }
            files::check_writable(params).with_context(|| format!("cannot write {}", params.display()))?;
        }
        self.check_dump()?;
        let target = self.cpu_target.clone().unwrap_or(format!("{}-linux-gnu", std::env::consts::ARCH));
        if self.emit == Some(Emit::So) {
            if self.params.is_some() {
                bail!("--emit so writes the parameters into the library; leave out --params");
            }
            // Found before anything is compiled.
            library::Linker::find(&target)?;
        }
        if self.emit == Some(Emit::Wasm) {
            if self.params.is_some() {
                bail!("--emit wasm writes the parameters into the module; leave out --params");
            }
            WasmLinker::find()?;
        }
        let board = self.board.as_deref().map(Board::load).transpose()?;
        let config = match &self.board {
            Some(board) => load_hw(board)?,
            None => self.hw.load()?,
        };
        self.compilation.any_memory = board.is_some();
        let Compiled { artifact, layers, load_s, compile_s, .. } =
            self.compilation.compile_shapes(&self.file, &config, &self.sizes()?)?;
        self.dump(&layers)?;
        if let Some(board) = board {
            let fit = Fit::of(&artifact, &board, &config)?;
            let text = if self.json { format!("{}\n", fit.json()) } else { fit.table() };
            write_or_print(None, text.as_bytes())?;
            if !fit.fits() {
                return Ok(Verdict::No);
            }
        }
        match (output, &self.params) {
            (Some(output), _) if self.emit == Some(Emit::So) => {
                let object = |name: &str, bytes: &[u8]| model::library_object(&target, name, bytes);
                let list = library::files(&artifact, output, &library::Linker::find(&target)?, &object)?;
                files::write_together(&list)
                    .map_err(|(path, error)| anyhow!(error).context(format!("cannot write {}", path.display())))?;
            }
            (Some(output), _) if self.emit == Some(Emit::Wasm) => {
                let module = wasm::module(&artifact, &WasmLinker::find()?, files::folder_of(output))?;
                files::write_whole(output, &[&module]).with_context(|| format!("cannot write {}", output.display()))?;
            }
            (Some(output), Some(params)) => {
                artifact.write_apart(output, params)?;
                if files::folder_of(output).canonicalize()? != files::folder_of(params).canonicalize()? {
                    super::note(&format!(
                        "{} is not in the folder of {}; give it with --params where the artifact is used",
                        params.display(),
                        output.display()
                    ));
                }
            }
            (Some(output), None) => artifact.write(output)?,
            (None, _) => {}
        }
        self.compilation.advise(&artifact, &self.file);
        if self.explain {
            write_or_print(None, tilewright::examine::explain::table(&artifact.manifest).as_bytes())?;
        }
        super::say(&format!(
            "{}: {} steps, {} bytes of data and code; read in {load_s:.3} s, compiled in {compile_s:.3} s",
            output.unwrap_or(&self.file).display(),
            artifact.manifest.steps.len(),
            artifact.blob_bytes()
        ));
        Ok(Verdict::Fine)
    }

    /// The sizes of `--shapes`.
    fn sizes(&self) -> Result<Shapes> {
        let mut all: Vec<(String, Vec<usize>)> = Vec::new();
        for text in &self.shapes {
            let wrong =
                || anyhow!("--shapes {text} is not of the form SYMBOL=SIZE,SIZE; sizes are whole numbers above 0");
            let (symbol, sizes) = text.split_once('=').ok_or_else(wrong)?;
            let size = |text: &str| text.parse::<usize>().ok().filter(|n| *n > 0);
            let sizes: Vec<usize> = sizes.split(',').map(size).collect::<Option<_>>().ok_or_else(wrong)?;
            if all.iter().any(|(known, _)| known == symbol) {
                bail!("--shapes gives {symbol} twice; give all of its sizes at once");
            }
            all.push((symbol.to_string(), sizes));
        }
        Ok(Shapes { sizes: all, bucket: self.bucket })
    }

    /// Checks that the dump can be written, before anything is compiled.
    fn check_dump(&self) -> Result<()> {
        let Some(folder) = &self.dump_dir else { return Ok(()) };
        files::check_folder(folder).with_context(|| format!("--dump-dir: cannot write into {}", folder.display()))
    }
}

/// Writes files into a folder, all or none. Returns their paths and contents.
fn write_files(folder: &Path, list: Vec<(String, Vec<u8>)>) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let list: Vec<(PathBuf, Vec<u8>)> = list.into_iter().map(|(name, bytes)| (folder.join(name), bytes)).collect();
    files::write_together(&list)
        .map_err(|(path, error)| anyhow!(error).context(format!("cannot write {}", path.display())))?;
    Ok(list)
}
