//! The accelerator's steps in an exported model: where their programs are in the accelerator's memory, and the tables
//! from which `tw_accelerator.c` runs them.

use std::fmt::Write;

use tilewright_driver::{ALIGN, Block, DeviceMemory, DriverError, Role, place};
use tilewright_hw::HwConfig;
use tilewright_hw::isa::c_header;
use tilewright_runtime::artifact::{AccelStep, Artifact, Packing, StepKind, ValueId};

use super::error::ExportError;
use super::text::words;

/// The driver and what it includes.
pub(super) fn driver_files() -> Vec<(String, Vec<u8>)> {
    vec![
        ("tw_accelerator.c".into(), include_bytes!("tw_accelerator.c").to_vec()),
        ("tw_accelerator.h".into(), include_bytes!("tw_accelerator.h").to_vec()),
        ("tilewright_hw.h".into(), c_header().into_bytes()),
    ]
}

/// A step's program with its place in the accelerator's memory.
struct Program<'a> {
    step: &'a AccelStep,
    /// Number of the step in the artifact.
    at: usize,
    regions: Vec<Block>,
    stream: Block,
}

/// All programs of a model in the accelerator's memory. Tensors between layers are in one block, which the programs use
/// in turn.
pub(super) struct OnAccelerator<'a> {
    config: HwConfig,
    programs: Vec<Program<'a>>,
    /// Bytes of the accelerator's memory that the model takes.
    pub bytes: u64,
}

impl<'a> OnAccelerator<'a> {
    /// `None` if no step runs on an accelerator.
    pub fn of(artifact: &'a Artifact) -> Result<Option<OnAccelerator<'a>>, ExportError> {
        let manifest = &artifact.manifest;
        let failed = |reason: String| ExportError::Accelerator { model: manifest.model.clone(), reason };
        let steps = manifest.steps.iter().enumerate();
        let steps: Vec<(usize, &AccelStep)> = steps
            .filter_map(|(at, step)| match &step.kind {
                StepKind::Accel(accel) => Some((at, accel)),
                _ => None,
            })
            .collect();
        let Some(hardware) = manifest.hardware.as_ref().filter(|_| !steps.is_empty()) else { return Ok(None) };
        let config = HwConfig::parse(&hardware.name, &hardware.toml).map_err(|e| failed(e.to_string()))?;
        let mut memory = DeviceMemory::new(config.memory_bytes(), &config);
        let full = |error: DriverError| failed(error.to_string());
        let shared = steps.iter().flat_map(|(_, step)| &step.program.regions).filter(|r| r.role == Role::Scratch);
        let tensors = match shared.map(|region| region.bytes).max() {
            Some(bytes) => memory.plan(&[("tensors".into(), bytes)], ALIGN).map_err(full)?.pop(),
            None => None,
        };
        let (mut programs, mut bytes) = (Vec::new(), tensors.map_or(0, |block| block.addr + block.bytes));
        for (at, step) in steps {
            let stream = artifact.blob(step.stream).len() as u64;
            let (regions, stream) = place(&mut memory, &step.program.regions, stream, tensors).map_err(full)?;
            bytes = regions.iter().chain([&stream]).map(|block| block.addr + block.bytes).fold(bytes, u64::max);
            programs.push(Program { step, at, regions, stream });
        }
        Ok(Some(OnAccelerator { config, programs, bytes }))
    }

    /// The source with streams and constants.
    pub fn data(&self, artifact: &Artifact, name: &str) -> String {
        let blobs = self.programs.iter().enumerate().flat_map(|(i, program)| {
            let step = program.step;
            [(format!("{name}_stream{i}"), step.stream), (format!("{name}_data{i}"), step.constants)]
        });
        blobs.fold("#include <stdint.h>\n".to_string(), |text, (symbol, blob)| {
            text + "\n" + &words(&symbol, artifact.blob(blob))
        })
    }

    /// The part of the model's header about the accelerator.
    pub fn header(&self, name: &str, upper: &str) -> String {
        format!(
            "\n/* Bytes of the accelerator's memory that the model takes. */\n#define {upper}_ACCELERATOR_BYTES {}\n\n\
             /* Checks that the accelerator has the configuration {}, and writes the model's programs and constants\n * into \
             its memory. Call this once before {name}_run, and again if the memory lost its contents or another model \
             was opened.\n * Returns 0 or one of tw_accelerator.h's codes. */\n\
             int {name}_open(tw_accelerator *accelerator);\n",
            self.bytes, self.config.name
        )
    }

    /// The tables, and the function that opens the model.
    pub fn source(&self, artifact: &Artifact, name: &str) -> String {
        let mut text = String::new();
        for (i, program) in self.programs.iter().enumerate() {
            let (step, regions) = (program.step, &program.step.program.regions);
            let _ = write!(
                text,
                "extern const uint64_t {name}_stream{i}[], {name}_data{i}[];\n\
                 static const tw_accelerator_region {name}_regions{i}[] = {{"
            );
            for (block, region) in program.regions.iter().zip(regions) {
                let _ = write!(text, "\n    {{{}u, {}u}},", block.addr, region.bytes);
            }
            let insns = artifact.blob(step.stream).len() / tilewright_hw::isa::INSN_BYTES;
            let _ = write!(
                text,
                "\n}};\nstatic const tw_accelerator_program {name}_program{i} = {{{}u, {insns}u, {}u, \
                 {name}_regions{i}}};\n",
                program.stream.addr,
                regions.len()
            );
            let of = |at: usize, ids: &[ValueId]| artifact.manifest.values[ids[at].0 as usize].bytes();
            let whole = &artifact.manifest.steps[program.at];
            let inputs = step.program.inputs.iter().zip(&step.inputs).enumerate();
            let outputs = step.program.outputs.iter().zip(&step.outputs).enumerate();
            let tensors = inputs
                .map(|(at, pair)| (pair, of(at, &whole.inputs)))
                .chain(outputs.map(|(at, pair)| (pair, of(at, &whole.outputs))));
            let _ = write!(text, "static const tw_accelerator_tensor {name}_tensors{i}[] = {{");
            for ((binding, packing), bytes) in tensors {
                let at = program.regions[binding.region.0 as usize].addr + binding.offset;
                let (layout, image) = match packing {
                    Packing::Dense => ("DENSE", None),
                    Packing::Nhwc(image) => ("NHWC", Some(image)),
                    Packing::Nchw(image) => ("NCHW", Some(image)),
                };
                let sizes = image.map_or([0; 7], |i| [i.n, i.c, i.h, i.w, i.block, i.pads[0], i.pads[1]]);
                let sizes: String = sizes.iter().map(|size| format!("{size}, ")).collect();
                let fill = image.map_or(0, |image| image.fill as u8);
                let _ = write!(text, "\n    {{{at}u, {bytes}u, TW_ACCELERATOR_{layout}, {sizes}{fill}}},");
            }
            text.push_str("\n};\n");
        }
        let _ = write!(
            text,
            "\nint {name}_open(tw_accelerator *accelerator)\n{{\n    int status = tw_accelerator_open(accelerator, \
             0x{:x}u, {}u, {}u);\n    if (status != TW_ACCELERATOR_DONE) {{\n        return status;\n    }}\n",
            self.config.hash(),
            self.config.bases,
            self.bytes
        );
        for (i, program) in self.programs.iter().enumerate() {
            for (at, symbol, blob) in [
                (program.regions[0].addr, "data", program.step.constants),
                (program.stream.addr, "stream", program.step.stream),
            ] {
                let _ = writeln!(
                    text,
                    "    accelerator->write_memory(accelerator->context, {at}u, {name}_{symbol}{i}, {}u);",
                    artifact.blob(blob).len()
                );
            }
        }
        text + &format!("    accelerator->model = {name}_constants;\n    return TW_ACCELERATOR_DONE;\n}}\n")
    }

    /// The statements of a step: inputs to the accelerator, the program, outputs from it.
    pub fn call(&self, at: usize, name: &str, inputs: &[String], outputs: &[String]) -> String {
        let Some(i) = self.programs.iter().position(|program| program.at == at) else { return String::new() };
        let tensors = |first: usize, function: &str, pointers: &[String]| {
            pointers.iter().enumerate().fold(String::new(), |text, (k, pointer)| {
                let k = first + k;
                text + &format!("        {function}(accelerator, &{name}_tensors{i}[{k}], {pointer});\n")
            })
        };
        format!(
            "{}        status = tw_accelerator_run(accelerator, &{name}_program{i});\n        if (status != \
             TW_ACCELERATOR_DONE) {{\n            return status;\n        }}\n{}",
            tensors(0, "tw_accelerator_write", inputs),
            tensors(inputs.len(), "tw_accelerator_read", outputs),
        )
    }
}
