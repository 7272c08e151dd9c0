//! `inspect`: describes an artifact or a model.

use anyhow::{Result, bail};
use tilewright::model::ModelFile;
use tilewright::targets::Targets;
use tilewright_runtime::artifact::{Artifact, Manifest, OpenValue, StepKind};
use tilewright_runtime::cuda::{CudaCall, CudaCode, Numbers};
use tilewright_runtime::tensor::shape_text;

use super::{ParamsOption, Verdict, read_file, write_or_print};

/// Arguments of `inspect`.
#[derive(clap::Args)]
pub struct Inspect {
    /// A compiled artifact, or a model (.onnx, .pt2, .tflite, zoo:NAME)
    #[arg(value_parser = ModelFile::parse, required_unless_present = "targets")]
    file: Option<ModelFile>,
    /// List what this build compiles for (CPUs, GPUs, configurations, boards) and the devices that it runs on, with
    /// what each needs
    #[arg(long, conflicts_with_all = ["file", "params"])]
    targets: bool,
    #[command(flatten)]
    params: ParamsOption,
    /// Print the artifact's manifest, or the list of --targets, as one JSON object
    #[arg(long)]
    json: bool,
}

impl Inspect {
    pub fn run(self) -> Result<Verdict> {
        let Some(file) = &self.file else {
            let targets = Targets::collect()?;
            let text = if self.json { format!("{}\n", targets.json()) } else { targets.text() };
            write_or_print(None, text.as_bytes())?;
            return Ok(Verdict::Fine);
        };
        let bytes = read_file(file)?;
        let text = if Artifact::is_one(&bytes) {
            let artifact = self.params.decode(file, file.display(), &bytes)?;
            if self.json { format!("{}\n", serde_json::to_string(&artifact.manifest)?) } else { describe(&artifact) }
        } else {
            if self.json {
                bail!("--json is for artifacts, but {} is a model; compile it first", file.display());
            }
            let graph = tilewright::model::import(file, tilewright::model::Sizes::default())?;
            tilewright::model::text(&graph)
        };
        write_or_print(None, text.as_bytes())?;
        Ok(Verdict::Fine)
    }
}

fn describe(artifact: &Artifact) -> String {
    let m = &artifact.manifest;
    let mut text = format!("model      {}\nwritten by {}\n", m.model, m.producer);
    match &m.hardware {
        Some(hardware) => text += &format!("hardware   {} ({:016x})\n", hardware.name, hardware.hash),
        None => text += "hardware   none\n",
    }
    if let Some(cpu) = &m.cpu {
        text += &format!("cpu        {}\n", cpu.target);
    }
    if !m.variants.is_empty() {
        let open = |input: &OpenValue| format!("{}: {} {}", input.name, input.dtype, input.dims_text());
        let inputs = artifact.inputs().iter().map(open).collect::<Vec<_>>().join(", ");
        text += &format!("shapes     {}, of {inputs}; what follows is the first\n", m.of_each_shape().count());
        for manifest in m.of_each_shape() {
            let shapes = manifest.input_values().iter().map(|value| shape_text(&value.shape)).collect::<Vec<_>>();
            text += &format!("           {}\n", shapes.join(" and "));
        }
        let padded: std::collections::BTreeSet<&str> =
            m.of_each_shape().flat_map(|manifest| &manifest.buckets).map(|bucket| bucket.symbol.as_str()).collect();
        if !padded.is_empty() {
            let padded = padded.into_iter().collect::<Vec<_>>().join(" and ");
            text += &format!("padded     along {padded} to the next of these shapes\n");
        }
    }
    let inputs = m.inputs.iter().map(|id| ("input", m.values[id.0 as usize].name.as_str(), *id));
    for (what, name, id) in inputs.chain(m.named_outputs().map(|(name, id)| ("output", name, id))) {
        let value = &m.values[id.0 as usize];
        text += &format!("{what:<10} {name}: {} {}\n", value.dtype, shape_text(&value.shape));
    }
    text += &match m.offloaded_share() {
        Some(share) => format!("MACs       {} a run, {:.2} % on the accelerator\n", m.macs(), 100.0 * share),
        None => "MACs       0 a run: the network has no products\n".into(),
    };
    text += &format!("data       {} blobs, {} bytes", m.blobs.len(), artifact.blob_bytes());
    if let Some(parameters) = &m.parameters {
        let bytes: u64 = m.blobs.iter().filter(|blob| blob.apart).map(|blob| blob.len).sum();
        text += &format!(", of which {bytes} bytes are parameters in {}", parameters.file);
    }
    text += "\n";
    let need = artifact.device_need();
    if need.total() > 0 {
        text += &format!(
            "memory     {} bytes of the accelerator's: weights {}, instructions {}, tensors {} (each alone: {})\n",
            need.total(),
            need.constants,
            need.streams,
            need.tensors,
            need.apart
        );
    }
    text += &steps(artifact, m, 0);
    for (index, step) in m.steps.iter().enumerate() {
        let StepKind::Accel(accel) = &step.kind else { continue };
        text += &format!("\ntensors of step {index}: first byte, bytes, layers that need it\n");
        for t in &accel.tensors {
            let b = t.buffer;
            text += &format!("  {:>10} {:>10}  {:>3} to {:<3}  {}\n", t.offset, b.bytes, b.first, b.last, t.name);
        }
    }
    text + "\n" + &tilewright::examine::explain::table(m)
}

/// Describes the product that cuBLASLt computes instead of a GPU step's kernel, if it is installed.
fn product_of(artifact: &Artifact, code: u32, entry: &str) -> String {
    let Some(id) = artifact.manifest.cuda.get(code as usize) else { return String::new() };
    let Ok(code) = CudaCode::decode(artifact.blob(*id)) else { return String::new() };
    let calls = code.entries.into_iter().filter(|e| e.symbol == entry).flat_map(|e| e.library);
    let products = calls.filter_map(|call| match call {
        CudaCall::Product(p) => {
            let numbers = match p.numbers {
                Numbers::F32 => "float32",
                Numbers::F16 => "float16",
                Numbers::I8 => "int8",
            };
            let batch = if p.batch > 1 { format!("{} x ", p.batch) } else { String::new() };
            Some(format!(", or with cuBLASLt: {batch}{} x {} x {} of {numbers}", p.rows, p.columns, p.steps))
        }
        CudaCall::Launch(_) => None,
    });
    products.collect()
}

/// The steps of a model or a region, a line each.
fn steps(artifact: &Artifact, part: &Manifest, depth: usize) -> String {
    let mut text = String::new();
    for (index, step) in part.steps.iter().enumerate() {
        let how = match &step.kind {
            StepKind::Cpu { function, .. } => format!("cpu    {function}"),
            StepKind::Packed { function, .. } => format!("packed {function}"),
            StepKind::Cuda { entry, code, .. } => format!("cuda   {entry}{}", product_of(artifact, *code, entry)),
            StepKind::If { .. } => "if     one of two regions".to_string(),
            StepKind::Loop { collects, .. } if *collects > 0 => {
                format!("loop   a region, {collects} times")
            }
            StepKind::Loop { .. } => "loop   a region, until its condition is false".to_string(),
            StepKind::Accel(accel) => {
                let insns = artifact.blob(accel.stream).len() / tilewright_hw::isa::INSN_BYTES;
                format!("accel  {insns} instructions, {} bytes of constants", artifact.blob(accel.constants).len())
            }
        };
        text += &format!("{}step {index:<5} {}: {how}\n", "  ".repeat(depth), step.name);
        for region in step.kind.regions() {
            text += &steps(artifact, region, depth + 1);
        }
    }
    text
}
