//! Exports a compiled model to a C program: sources and object files with its code, its constants, and a function that
//! runs all steps.
//!
//! | file | contents |
//! |---|---|
//! | `NAME.h` | the function, the sizes of inputs, outputs and workspace, and the imports that the code needs |
//! | `NAME.c` | the function, which calls each step |
//! | `NAME_code0.o` | the steps' code, one object per region |
//! | `NAME_constants.o` | weights and other constants |
//! | `tilewright_imports.c` | functions that the code calls in addition to the C library, for one thread |
//!
//! If the code is C99, `NAME_code0.c` and `NAME_constants.c` take the places of the objects, and no imports are needed.
//!
//! If steps run on the accelerator, there are also:
//!
//! | file | contents |
//! |---|---|
//! | `NAME_device.c` | instruction streams and constants, which are written into the accelerator's memory |
//! | `tw_accelerator.c`, `tw_accelerator.h` | the driver: runs programs through registers and memory |
//! | `tilewright_hw.h` | the registers |

mod accelerator;
mod error;
mod text;

use std::collections::HashMap;
use std::fmt::Write;

use tilewright_runtime::artifact::{Artifact, BlobId, StepKind, ValueId, ValueInfo};
use tilewright_runtime::loader::{HELPERS_OF_ARM32, ImportTable, needs};
use tilewright_runtime::placement::{Buffer, place};
use tilewright_runtime::tensor::shape_text;

use accelerator::OnAccelerator;
pub use error::ExportError;
pub(super) use text::comment;
use text::words;

/// Alignment of constants and buffers.
const ALIGN: u64 = 64;

/// Target of code that is C99.
pub const C99: &str = "C99";

/// Source of the imports for one thread.
const IMPORTS: &str = include_str!("export/tilewright_imports.c");

/// Turns a name into a C identifier: letters, digits and underscores, starting with a letter.
pub fn identifier(name: &str) -> String {
    let plain: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if plain.starts_with(|c: char| c.is_ascii_alphabetic()) { plain } else { format!("model_{plain}") }
}

/// Location of a value while the function runs.
#[derive(Debug, Clone, Copy)]
enum Location {
    Input(usize),
    Output(usize),
    Constant(u64),
    Space(u64),
}

impl Location {
    fn expression(self) -> String {
        match self {
            Location::Input(i) => format!("(void *)inputs[{i}]"),
            Location::Output(i) => format!("outputs[{i}]"),
            Location::Constant(at) => format!("(void *)(constants + {at})"),
            Location::Space(at) => format!("space + {at}"),
        }
    }
}

/// Makes an object file with some bytes under a symbol.
pub type MakeObject<'a> = dyn Fn(&str, &[u8]) -> Result<Vec<u8>, String> + 'a;

/// The exported files of a model. `name` must be a C identifier; `constants` makes an object file for the artifact's
/// processor.
///
/// # Errors
/// [`ExportError`].
pub fn files(artifact: &Artifact, name: &str, constants: &MakeObject) -> Result<Vec<(String, Vec<u8>)>, ExportError> {
    let manifest = &artifact.manifest;
    let model = || manifest.model.clone();
    // If all outputs are constants or inputs, there is no code.
    let (target, objects) =
        manifest.cpu.as_ref().map_or(("any processor", &[][..]), |cpu| (&cpu.target[..], &cpu.objects[..]));
    let mut files = Vec::new();
    let laid = Laid::out(artifact)?;
    if let Some(device) = &laid.device {
        files.push((format!("{name}_device.c"), device.data(artifact, name).into_bytes()));
        files.extend(accelerator::driver_files());
    }
    if target == C99 {
        for (i, object) in objects.iter().enumerate() {
            files.push((format!("{name}_code{i}.c"), artifact.blob(*object).to_vec()));
        }
        files.push((format!("{name}_constants.c"), words(&format!("{name}_constants"), &laid.constants).into_bytes()));
        files.push((format!("{name}.h"), laid.header(artifact, name, target, &[]).into_bytes()));
        files.push((format!("{name}.c"), laid.source(artifact, name, target).into_bytes()));
        return Ok(files);
    }
    let allowed: Vec<&str> = ImportTable::standard().names().chain(HELPERS_OF_ARM32.iter().copied()).collect();
    let mut imports: Vec<String> = Vec::new();
    for (i, object) in objects.iter().enumerate() {
        let bytes = artifact.blob(*object);
        for import in needs(bytes).map_err(|source| ExportError::Object { model: model(), source })?.imports {
            if !allowed.contains(&import.as_str()) {
                return Err(ExportError::Import { model: model(), import });
            }
            if !imports.contains(&import) {
                imports.push(import);
            }
        }
        files.push((format!("{name}_code{i}.o"), bytes.to_vec()));
    }
    imports.sort_unstable();
    let symbol = format!("{name}_constants");
    let object =
        constants(&symbol, &laid.constants).map_err(|reason| ExportError::Constants { model: model(), reason })?;
    files.push((format!("{symbol}.o"), object));
    files.push((format!("{name}.h"), laid.header(artifact, name, target, &imports).into_bytes()));
    files.push((format!("{name}.c"), laid.source(artifact, name, target).into_bytes()));
    files.push(("tilewright_imports.c".to_string(), IMPORTS.as_bytes().to_vec()));
    Ok(files)
}

/// Memory layout of all values.
struct Laid<'a> {
    /// The accelerator's part, if there is one.
    device: Option<OnAccelerator<'a>>,
    locations: HashMap<ValueId, Location>,
    constants: Vec<u8>,
    /// Bytes of the workspace, including the scratch memory that all steps share.
    space: u64,
    /// Offset of the scratch memory in the workspace.
    scratch: u64,
}

impl<'a> Laid<'a> {
    fn out(artifact: &'a Artifact) -> Result<Laid<'a>, ExportError> {
        let device = OnAccelerator::of(artifact)?;
        let manifest = &artifact.manifest;
        let mut locations = HashMap::new();
        let mut constants = Vec::new();
        let mut blobs: HashMap<BlobId, u64> = HashMap::new();
        for (at, id) in manifest.inputs.iter().enumerate() {
            locations.insert(*id, Location::Input(at));
        }
        let mut constant = |id: &ValueId| {
            let blob = manifest.values[id.0 as usize].constant?;
            Some(Location::Constant(*blobs.entry(blob).or_insert_with(|| {
                constants.resize(constants.len().next_multiple_of(ALIGN as usize), 0);
                let at = constants.len() as u64;
                constants.extend_from_slice(artifact.blob(blob));
                at
            })))
        };
        for (at, id) in manifest.outputs.iter().enumerate() {
            let location = constant(id).unwrap_or(Location::Output(at));
            locations.entry(*id).or_insert(location);
        }
        // Values between steps are in the workspace from their first to their last use.
        let mut lives: Vec<(ValueId, Buffer)> = Vec::new();
        let mut known: HashMap<ValueId, usize> = HashMap::new();
        let (mut scratch_bytes, mut functions) = (0, HashMap::new());
        for (at, step) in manifest.steps.iter().enumerate() {
            match &step.kind {
                StepKind::Cpu { function, object, workspace_bytes } => {
                    if *functions.entry(function.clone()).or_insert(*object) != *object {
                        return Err(ExportError::Twice { model: manifest.model.clone(), function: function.clone() });
                    }
                    scratch_bytes = scratch_bytes.max(*workspace_bytes);
                }
                StepKind::Accel(_) => {}
                StepKind::If { .. } | StepKind::Loop { .. } => {
                    return Err(ExportError::Flow { step: step.name.clone() });
                }
                _ => return Err(ExportError::Step { step: step.name.clone() }),
            }
            for id in step.inputs.iter().chain(&step.outputs) {
                if let Some(location) = constant(id) {
                    locations.entry(*id).or_insert(location);
                }
                if locations.contains_key(id) {
                    continue;
                }
                let bytes = manifest.values[id.0 as usize].bytes() as u64;
                let live = *known.entry(*id).or_insert_with(|| {
                    lives.push((*id, Buffer { bytes, first: at, last: at }));
                    lives.len() - 1
                });
                lives[live].1.last = at;
            }
        }
        let buffers: Vec<Buffer> = lives.iter().map(|(_, buffer)| *buffer).collect();
        let placed = place(&buffers, ALIGN);
        for ((id, _), offset) in lives.iter().zip(&placed.offsets) {
            locations.insert(*id, Location::Space(*offset));
        }
        let scratch = placed.bytes.next_multiple_of(ALIGN);
        // At least one byte, since C has no empty arrays.
        Ok(Laid { device, locations, constants, space: (scratch + scratch_bytes).max(1), scratch })
    }

    fn header(&self, artifact: &Artifact, name: &str, target: &str, imports: &[String]) -> String {
        let (manifest, upper) = (&artifact.manifest, name.to_uppercase());
        let driver = match &self.device {
            Some(_) => format!(", {name}_device.c, tw_accelerator.c"),
            None => String::new(),
        };
        let link = match target == C99 {
            true => format!(
                "Compile {name}.c, {name}_code*.c{driver} and {name}_constants.c for a little-endian processor, \
                 without joining\n * products and sums (-std=c99 or -ffp-contract=off). They need no operating system and \
                 no heap, and of the\n * C library only memcpy and math.h."
            ),
            false => format!(
                "Link {name}.c, {name}_code*.o{driver}, {name}_constants.o, tilewright_imports.c (or your own functions instead)\n \
                 * and -lm. The code calls: {}.",
                if imports.is_empty() { "nothing".to_string() } else { imports.join(", ") },
            ),
        };
        let mut text = format!(
            "/* Model {} for {target}, by {}.\n *\n * {link}\n */\n#ifndef {upper}_H\n#define {upper}_H\n\n{}#ifdef \
             __cplusplus\nextern \"C\" {{\n#endif\n",
            comment(&manifest.model),
            comment(&manifest.producer),
            self.device.as_ref().map_or("", |_| "#include \"tw_accelerator.h\"\n\n"),
        );
        let names = manifest.output_names.iter().map(String::as_str);
        let inputs = manifest.inputs.iter().map(|id| (id, None));
        let outputs = manifest.outputs.iter().zip(names.map(Some).chain(std::iter::repeat(None)));
        list(&mut text, artifact, (&upper, "INPUT"), &inputs.collect::<Vec<_>>());
        list(&mut text, artifact, (&upper, "OUTPUT"), &outputs.collect::<Vec<_>>());
        text.push_str(&self.device.as_ref().map_or_else(String::new, |device| device.header(name, &upper)));
        let status = match &self.device {
            Some(_) => "0, or a number below 0 that tw_accelerator.h explains",
            None => "0",
        };
        let state = match &self.device {
            Some(_) => "One thread at a time can use an accelerator",
            None => "The function keeps no state:\n * several threads can call it, each with a workspace of its own",
        };
        let _ = write!(
            text,
            "\n/* Working memory of the function, aligned to {ALIGN} bytes; uninitialized before a call, not used \
             after it. */\n#define {upper}_WORKSPACE_BYTES {}\n\n\
             /* Runs the model. inputs and outputs point to the tensors in the order above: dense, row-major, \
             little-endian and\n * aligned to their elements; an output must not overlap another tensor.\n * Returns \
             {status}. {state}. */\n\
             {};\n\n\
             #ifdef __cplusplus\n}}\n#endif\n\n#endif\n",
            self.space,
            self.signature(name)
        );
        text
    }

    /// The declaration of the function that runs the model.
    fn signature(&self, name: &str) -> String {
        let accelerator = if self.device.is_some() { "tw_accelerator *accelerator, " } else { "" };
        format!("int {name}_run({accelerator}const void *const *inputs, void *const *outputs, void *workspace)")
    }

    fn source(&self, artifact: &Artifact, name: &str, target: &str) -> String {
        let manifest = &artifact.manifest;
        let pointer = |id: &ValueId| self.locations.get(id).map_or_else(|| "0".to_string(), |at| at.expression());
        let mut text = format!(
            "/* Model {} for {target}, by {}. */\n#include <stdint.h>\n#include <string.h>\n\n#include \"{name}.h\"\n\n\
             extern const {} {name}_constants[];\n\n",
            comment(&manifest.model),
            comment(&manifest.producer),
            if target == C99 { "uint64_t" } else { "unsigned char" },
        );
        let mut declared = Vec::new();
        for step in &manifest.steps {
            let StepKind::Cpu { function, .. } = &step.kind else { continue };
            if !declared.contains(&function) {
                let _ = writeln!(text, "int32_t {function}(void *const *arguments);");
                declared.push(function);
            }
        }
        let mut check = String::new();
        if let Some(device) = &self.device {
            text.push_str(&device.source(artifact, name));
            check = format!(
                "    if (accelerator->model != {name}_constants) {{\n        return TW_ACCELERATOR_CLOSED;\n    }}\n"
            );
        }
        let _ = write!(
            text,
            "\n{}\n{{\n    \
             const unsigned char *const constants = (const unsigned char *){name}_constants;\n    unsigned char *const space = workspace;\n    \
             int32_t status = 0;\n    (void)inputs;\n    (void)outputs;\n    (void)constants;\n    (void)space;\n{check}",
            self.signature(name)
        );
        for (at, step) in manifest.steps.iter().enumerate() {
            if let Some(device) = self.device.as_ref().filter(|_| matches!(step.kind, StepKind::Accel(_))) {
                let [inputs, outputs] =
                    [&step.inputs, &step.outputs].map(|ids| ids.iter().map(pointer).collect::<Vec<_>>());
                let call = device.call(at, name, &inputs, &outputs);
                let _ = write!(text, "    {{\n        /* {} */\n{call}    }}\n", comment(&step.name));
                continue;
            }
            let StepKind::Cpu { function, .. } = &step.kind else { continue };
            let values = step.inputs.iter().chain(&step.outputs).map(pointer);
            let arguments: Vec<String> = values.chain([Location::Space(self.scratch).expression()]).collect();
            let _ = write!(
                text,
                "    {{\n        /* {} */\n        void *const arguments[] = {{\n            {},\n        }};\n        \
                 status = {function}(arguments);\n        if (status != 0) {{\n            return status;\n        }}\n    }}\n",
                comment(&step.name),
                arguments.join(",\n            ")
            );
        }
        // Outputs that no step writes: inputs, constants, and values that are already another output.
        for (at, id) in manifest.outputs.iter().enumerate() {
            if !matches!(self.locations.get(id), Some(Location::Output(own)) if *own == at) {
                let bytes = manifest.values[id.0 as usize].bytes();
                let _ = writeln!(text, "    memcpy(outputs[{at}], {}, {bytes});", pointer(id));
            }
        }
        text.push_str("    return status;\n}\n");
        text
    }
}

/// Writes the number and sizes of the inputs or outputs.
fn list(text: &mut String, artifact: &Artifact, (upper, kind): (&str, &str), ids: &[(&ValueId, Option<&str>)]) {
    let _ = write!(text, "\n#define {upper}_{kind}S {}\n", ids.len());
    for (i, (id, name)) in ids.iter().enumerate() {
        let value: &ValueInfo = &artifact.manifest.values[id.0 as usize];
        let (name, shape) = (comment(name.unwrap_or(&value.name)), shape_text(&value.shape));
        let _ = writeln!(text, "/* {name}: {} {shape} */", value.dtype);
        let _ = writeln!(text, "#define {upper}_{kind}_{i}_BYTES {}", value.bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_identifiers_and_comments_stay_closed() {
        assert_eq!(identifier("lenet-5.int8"), "lenet_5_int8");
        assert_eq!(identifier("8bit"), "model_8bit");
        assert_eq!(identifier(""), "model_");
        assert_eq!(comment("a*/b/*c\nd"), "a* /b/ *c d");
    }

    /// The C file provides every standard import.
    #[test]
    fn the_imports_of_c_are_those_of_the_runtime() {
        for name in ImportTable::standard().names() {
            assert!(IMPORTS.contains(name), "tilewright_imports.c does not mention {name}");
        }
    }
}
