//! Compiled layers as text, stage by stage: tensor expression, loops, schedule, generated code.

use std::collections::BTreeSet;

use tilewright_compiler::backend::{Backend, BackendError, Listing};
use tilewright_compiler::graph::{Graph, NodeId};
use tilewright_compiler::partition::AccelRegion;
use tilewright_compiler::schedule::Step;
use tilewright_hw::config::HwConfig;
use tilewright_hw::isa::print_program;
use tilewright_runtime::artifact::Place;

use super::file_names::stems;

/// A stage of a layer's way to code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The tensor expression: what is computed when the model runs.
    Te,
    /// The loops after the schedule.
    Tir,
    /// The steps from the plain loops of the tensor expression to these loops.
    Schedule,
    /// LLVM IR of CPU functions, before LLVM's passes.
    Llvm,
    /// Assembly of CPU functions, and the accelerator's instructions.
    Asm,
    /// CUDA C of GPU functions.
    Cuda,
    /// PTX of GPU functions.
    Ptx,
}

impl Stage {
    /// All stages.
    pub const ALL: [Stage; 7] =
        [Stage::Te, Stage::Tir, Stage::Schedule, Stage::Llvm, Stage::Asm, Stage::Cuda, Stage::Ptx];

    /// Its name on the command line; for generated code also the name of the back end's form.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Te => "te",
            Stage::Tir => "tir",
            Stage::Schedule => "schedule",
            Stage::Llvm => "llvm",
            Stage::Asm => "asm",
            Stage::Cuda => "cuda",
            Stage::Ptx => "ptx",
        }
    }

    /// Ending of its files.
    fn ending(self, place: Place) -> &'static str {
        match (self, place) {
            (Stage::Llvm, _) => "ll",
            (Stage::Asm, Place::Accel) => "tw",
            (Stage::Asm, _) => "s",
            (Stage::Cuda, _) => "cu",
            (stage, _) => stage.name(),
        }
    }
}

/// A layer of the accelerator, or the nodes of one function of the CPU or the GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// The names of its nodes. The last one names the layer.
    pub nodes: Vec<String>,
    /// Where it runs.
    pub place: Place,
    /// Its texts.
    pub texts: Vec<Text>,
}

/// A stage of a layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// The stage.
    pub stage: Stage,
    /// The text.
    pub text: String,
}

/// Why there is nothing to list.
#[derive(Debug, thiserror::Error)]
pub enum ListingError {
    /// The model has no such layer.
    #[error("--dump-layer {name}: the model has no such layer; its layers are {}", layers.join(", "))]
    NoLayer {
        /// The name.
        name: String,
        /// The names of all layers.
        layers: Vec<String>,
    },
    /// No listed layer has the stage.
    #[error(
        "--dump {}: no layer here has this stage; they run on {}, and have {}{}",
        stage.name(), places.join(" and "), found.join(", "), remedy(*stage)
    )]
    NoStage {
        /// The stage.
        stage: Stage,
        /// Where the layers run.
        places: Vec<String>,
        /// The stages that they have.
        found: Vec<&'static str>,
    },
}

fn remedy(stage: Stage) -> &'static str {
    match stage {
        Stage::Cuda | Stage::Ptx => "; compile for a GPU with --fallback cuda",
        Stage::Llvm => "; move layers to the CPU with --offload none",
        _ => "; leave it out",
    }
}

impl Layer {
    /// Its name: that of its last node.
    pub fn name(&self) -> &str {
        self.nodes.last().map_or("", |name| name)
    }
}

/// Returns the stages that layers in a place can have.
fn stages_of(place: Place) -> &'static [Stage] {
    match place {
        Place::Accel => &[Stage::Te, Stage::Tir, Stage::Schedule, Stage::Asm],
        Place::Cpu => &[Stage::Te, Stage::Tir, Stage::Schedule, Stage::Llvm, Stage::Asm],
        Place::Cuda => &[Stage::Te, Stage::Tir, Stage::Schedule, Stage::Cuda, Stage::Ptx],
    }
}

/// Returns the files of some layers, with their names: those that `only` names by one of their nodes, or all if it is
/// empty.
///
/// # Errors
/// [`ListingError`] for a name of no layer, or a stage that no such layer has.
pub fn files(layers: &[Layer], stages: &[Stage], only: &[String]) -> Result<Vec<(String, Vec<u8>)>, ListingError> {
    if let Some(name) = only.iter().find(|name| !layers.iter().any(|layer| layer.nodes.contains(name))) {
        let layers = layers.iter().map(|layer| layer.name().to_string()).collect();
        return Err(ListingError::NoLayer { name: name.clone(), layers });
    }
    let chosen = |layer: &&Layer| is_chosen(layer, only);
    let listed: Vec<&Layer> = layers.iter().filter(chosen).collect();
    let places: BTreeSet<String> = listed.iter().map(|layer| layer.place.to_string()).collect();
    let possible: BTreeSet<Stage> = listed.iter().flat_map(|layer| stages_of(layer.place)).copied().collect();
    if let Some(stage) = stages.iter().find(|stage| !possible.contains(stage)) {
        let found = possible.iter().map(|stage| stage.name()).collect();
        return Err(ListingError::NoStage { stage: *stage, places: places.into_iter().collect(), found });
    }
    // Names are those of a dump of all layers, so that a layer's files have the same names in every dump.
    let stems = stems(&layers.iter().map(Layer::name).collect::<Vec<_>>());
    let mut files = Vec::new();
    for (layer, stem) in layers.iter().zip(stems).filter(|(layer, _)| chosen(layer)) {
        for text in layer.texts.iter().filter(|text| stages.contains(&text.stage)) {
            let name = format!("{stem}.{}", text.stage.ending(layer.place));
            files.push((name, text.text.clone().into_bytes()));
        }
    }
    Ok(files)
}

/// Whether one of the layer's nodes is in `only`, or `only` is empty.
pub fn is_chosen(layer: &Layer, only: &[String]) -> bool {
    only.is_empty() || layer.nodes.iter().any(|node| only.contains(node))
}

/// Returns those texts of a scheduled tensor expression that `stages` names.
fn scheduled(stages: &[Stage], texts: [String; 3]) -> impl Iterator<Item = Text> {
    let all = [Stage::Te, Stage::Tir, Stage::Schedule].into_iter().zip(texts);
    let wanted: Vec<_> = all.filter(|(stage, _)| stages.contains(stage)).collect();
    wanted.into_iter().map(move |(stage, text)| Text { stage, text })
}

fn lines(steps: &[Step]) -> String {
    steps.iter().map(|step| format!("{step}\n")).collect()
}

/// Ends a text with a line break.
fn ended(text: impl ToString) -> String {
    let mut text = text.to_string();
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// Lists the functions that a back end makes of nodes.
pub(super) fn of_host(
    backend: &dyn Backend,
    graph: &Graph,
    nodes: &[NodeId],
    stages: &[Stage],
) -> Result<Vec<Layer>, BackendError> {
    let wants_ptx = stages.contains(&Stage::Ptx);
    let mut forms: Vec<&str> = stages.iter().map(|stage| stage.name()).collect();
    if wants_ptx {
        forms.push(Stage::Cuda.name());
    }
    let mut layers = Vec::new();
    for Listing { nodes, program, steps, function, code } in backend.listings(graph, nodes, &forms)? {
        let nodes: Vec<String> = nodes.iter().map(|node| graph.node(*node).name.clone()).collect();
        let made = [ended(program), ended(function), lines(&steps)];
        let mut texts: Vec<Text> = scheduled(stages, made).collect();
        for (form, text) in code {
            if wants_ptx && form == Stage::Cuda.name() {
                let entry = nodes.last().cloned().unwrap_or_default();
                let ptx = ptx(&text).map_err(|message| BackendError::Codegen { entry, message })?;
                texts.push(Text { stage: Stage::Ptx, text: ended(ptx) });
            }
            if let Some(stage) = stages.iter().find(|stage| stage.name() == form) {
                texts.push(Text { stage: *stage, text: ended(text) });
            }
        }
        layers.push(Layer { nodes, place: backend.place(), texts });
    }
    Ok(layers)
}

/// Lists the layers of a program of the accelerator.
pub(super) fn of_accel(
    graph: &Graph,
    region: &AccelRegion,
    config: &HwConfig,
    stages: &[Stage],
) -> Result<Vec<Layer>, BackendError> {
    let failed = |entry: &str, message: String| BackendError::Codegen { entry: entry.to_string(), message };
    let insns = region.program.decode(config).map_err(|(index, e)| {
        failed("the accelerator's program", format!("instruction {index} cannot be decoded: {e}"))
    })?;
    let mut layers = Vec::new();
    for (index, (layer, end)) in region.schedules.iter().zip(&region.layers).enumerate() {
        let nodes: Vec<String> = layer.nodes.iter().map(|node| graph.node(*node).name.clone()).collect();
        let mut texts = Vec::new();
        if let Some(schedule) = &layer.schedule {
            let mapping = schedule.mapping(config).map_err(|e| failed(&end.name, e.to_string()))?;
            let made = [ended(&schedule.program), ended(mapping.function()), lines(&schedule.steps)];
            texts.extend(scheduled(stages, made));
        }
        if stages.contains(&Stage::Asm) {
            let own = insns.iter().enumerate().filter(|(place, _)| region.insn_layers.of(*place) == Some(index));
            let text = print_program(&own.map(|(_, insn)| *insn).collect::<Vec<_>>());
            texts.push(Text { stage: Stage::Asm, text });
        }
        layers.push(Layer { nodes, place: Place::Accel, texts });
    }
    Ok(layers)
}

/// Checks that [`Stage::Ptx`] can be listed.
///
/// # Errors
/// NVRTC is not installed, or the program was built without CUDA; with the remedy.
#[cfg(feature = "cuda")]
pub fn check_ptx() -> Result<(), String> {
    tilewright_runtime::cuda::Library::Nvrtc.need().map_err(|e| e.to_string())
}

/// Fails, because this program was built without CUDA.
///
/// # Errors
/// Always.
#[cfg(not(feature = "cuda"))]
pub fn check_ptx() -> Result<(), String> {
    Err("this program was built without CUDA; build it with the feature `cuda`".to_string())
}

/// The oldest compute capability that all supported versions of NVRTC know.
#[cfg(feature = "cuda")]
const CAPABILITY: u32 = 75;

#[cfg(feature = "cuda")]
fn ptx(source: &str) -> Result<String, String> {
    use tilewright_runtime::cuda::{Form, compile};
    let text = compile(source, Form::Ptx(CAPABILITY)).map_err(|e| e.to_string())?;
    Ok(String::from_utf8_lossy(&text).trim_end_matches('\0').to_string())
}

#[cfg(not(feature = "cuda"))]
fn ptx(_: &str) -> Result<String, String> {
    check_ptx().map(|()| String::new())
}
