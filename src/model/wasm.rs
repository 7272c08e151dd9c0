//! Exports a compiled model as one WebAssembly module, which the package in `js` runs in Node and in web pages.
//!
//! The module has the code of the CPU steps, position-independent: it is instantiated in the memory and the table of the
//! runtime, which is a module of its own (crate `ffi`). A custom section, [`SECTION`], has the artifact with all
//! parameters, without its code. The form is that of
//! [WebAssembly's tool conventions](https://github.com/WebAssembly/tool-conventions/blob/main/DynamicLinking.md).

use std::path::Path;
use std::process::Command;

use tilewright_hw::process;
use tilewright_runtime::artifact::{Artifact, ArtifactError, StepKind};
use tilewright_runtime::loader::ImportTable;

/// The processor's name, for [`Options::processor`](super::Options::processor).
pub const TARGET: &str = "wasm32";
/// Name of the custom section with the artifact.
pub const SECTION: &str = "tilewright.artifact";

/// An empty module: magic and version.
const EMPTY: &[u8] = b"\0asm\x01\0\0\0";

/// Why no module was made.
#[derive(Debug, thiserror::Error)]
pub enum WasmError {
    /// No linker.
    #[error(
        "no linker for WebAssembly is installed (tried {tried}); install one: apt-get install lld-19 or lld, or Rust by \
         rustup, which brings one along"
    )]
    NoLinker {
        /// Programs that were looked for.
        tried: String,
    },
    /// The linker failed.
    #[error("{linker}: {reason}")]
    Linker {
        /// The program.
        linker: String,
        /// What it says.
        reason: String,
    },
    /// A step that WebAssembly cannot run.
    #[error("step {step} runs on a GPU, which WebAssembly does not have; leave out --fallback cuda")]
    Gpu {
        /// The step.
        step: String,
    },
    /// The artifact without its code.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
}

/// A linker for WebAssembly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WasmLinker {
    program: String,
    flavor: &'static [&'static str],
    /// Its version, in its own words.
    pub version: String,
}

impl WasmLinker {
    /// Finds LLVM's linker, or the one that comes with Rust.
    ///
    /// # Errors
    /// [`WasmError::NoLinker`].
    pub fn find() -> Result<WasmLinker, WasmError> {
        const FLAVOR: &[&str] = &["-flavor", "wasm"];
        let mut candidates: Vec<(String, &[&str])> = vec![("wasm-ld-19".into(), &[]), ("wasm-ld".into(), &[])];
        candidates.extend(of_rust().map(|program| (program, FLAVOR)));
        for (program, flavor) in &candidates {
            if let Some(text) = output(Command::new(program).args(*flavor).arg("--version")) {
                let version = text.lines().next().unwrap_or_default().to_string();
                return Ok(WasmLinker { program: program.clone(), flavor, version });
            }
        }
        let tried: Vec<&str> = candidates.iter().map(|(program, _)| program.as_str()).collect();
        Err(WasmError::NoLinker { tried: tried.join(", ") })
    }

    /// Links objects to a position-independent module that exports `functions`.
    fn link(&self, objects: &[&[u8]], functions: &[&str], folder: &Path) -> Result<Vec<u8>, WasmError> {
        let failed = |reason: String| WasmError::Linker { linker: self.program.clone(), reason };
        let dir = tempfile::Builder::new().prefix(".tilewright-").tempdir_in(folder);
        let dir = dir.map_err(|error| failed(format!("{}: {error}", folder.display())))?;
        let write = |name: String, bytes: &[u8]| {
            let path = dir.path().join(name);
            std::fs::write(&path, bytes).map_err(|error| failed(format!("{}: {error}", path.display())))?;
            Ok::<_, WasmError>(path)
        };
        // Imports that the runtime provides; there are no threads.
        let table = ImportTable::standard();
        let provided: Vec<&str> = table.names().filter(|name| *name != "tw_parallel_for").collect();
        let provided = write("imports.txt".into(), provided.join("\n").as_bytes())?;
        let exports: Vec<String> = functions.iter().map(|name| format!("--export={name}")).collect();
        let exports = write("exports.rsp".into(), exports.join("\n").as_bytes())?;
        let to = dir.path().join("model.wasm");
        let mut command = Command::new(&self.program);
        command.args(self.flavor).args(["-shared", "--experimental-pic", "--import-memory", "--strip-all", "-o"]);
        command.arg(&to).arg(format!("--allow-undefined-file={}", provided.display()));
        command.arg(format!("@{}", exports.display()));
        for (i, object) in objects.iter().enumerate() {
            command.arg(write(format!("{i}.o"), object)?);
        }
        let output = process::output(&mut command).map_err(|error| failed(error.to_string()))?;
        if !output.status.success() {
            return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_string()));
        }
        std::fs::read(&to).map_err(|error| failed(format!("{}: {error}", to.display())))
    }
}

/// What a program prints, if it runs and succeeds.
fn output(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|found| found.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The linker that comes with Rust, if Rust is installed.
fn of_rust() -> Option<String> {
    let root = output(Command::new("rustc").args(["--print", "sysroot"]))?;
    let version = output(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "))?;
    let root = root.trim_end();
    Some(format!("{root}/lib/rustlib/{host}/bin/rust-lld"))
}

/// The module of an artifact whose CPU code is for [`TARGET`]; the names of its functions are unique. The linker's files
/// are in `folder` meanwhile.
///
/// # Errors
/// [`WasmError`].
pub fn module(artifact: &Artifact, linker: &WasmLinker, folder: &Path) -> Result<Vec<u8>, WasmError> {
    let manifest = &artifact.manifest;
    let (mut objects, mut functions) = (Vec::new(), Vec::new());
    for variant in manifest.parts() {
        for step in &variant.steps {
            match &step.kind {
                StepKind::Cuda { .. } => return Err(WasmError::Gpu { step: step.name.clone() }),
                StepKind::Cpu { function, .. } if !functions.contains(&function.as_str()) => functions.push(function),
                _ => {}
            }
        }
        let own = variant.cpu.iter().flat_map(|cpu| &cpu.objects);
        own.for_each(|object| {
            if !objects.contains(object) {
                objects.push(*object)
            }
        });
    }
    let mut module = EMPTY.to_vec();
    if !objects.is_empty() {
        let code: Vec<&[u8]> = objects.iter().map(|object| artifact.blob(*object)).collect();
        module = linker.link(&code, &functions, folder)?;
    }
    let mut without = artifact.clone();
    for object in objects {
        without = without.with_blob(object, Vec::new())?;
    }
    add_section(&mut module, SECTION, &without.encode());
    Ok(module)
}

/// Appends a custom section.
fn add_section(module: &mut Vec<u8>, name: &str, bytes: &[u8]) {
    let mut head = Vec::new();
    leb128(&mut head, name.len());
    head.extend_from_slice(name.as_bytes());
    module.push(0);
    leb128(module, head.len() + bytes.len());
    module.extend_from_slice(&head);
    module.extend_from_slice(bytes);
}

/// Appends an unsigned number in LEB128.
fn leb128(to: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_appended_with_its_length() {
        let mut module = EMPTY.to_vec();
        add_section(&mut module, "ab", &[7; 200]);
        // The length: one byte for that of the name, the name, the bytes.
        assert_eq!(module[8..14], [0, 0xcb, 0x01, 2, b'a', b'b']);
        assert_eq!(module.len(), 14 + 200);
    }

    #[test]
    fn a_missing_linker_is_named_with_its_package() {
        let text = WasmError::NoLinker { tried: "wasm-ld".into() }.to_string();
        assert!(text.contains("tried wasm-ld") && text.contains("apt-get install lld-19"), "{text}");
    }
}
