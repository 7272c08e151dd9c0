//! Exports a compiled model as one shared library: the artifact as data, and a function that opens it with the C
//! interface of the runtime library (`include/tilewright.h`), which a program links next to it.
//!
//! | file | contents |
//! |---|---|
//! | `libNAME.so` | the artifact, with all parameters, and `NAME_open` |
//! | `NAME.h` | the function's declaration |

use std::path::{Path, PathBuf};
use std::process::Command;

use tilewright_hw::process;
use tilewright_runtime::artifact::Artifact;

use super::export::identifier;

/// Why no shared library was made.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// The header would have the name of the interface's own.
    #[error("{file}: its header would be tilewright.h, as that of the runtime library is; choose another name")]
    Name {
        /// The library's file.
        file: String,
    },
    /// No linker for the processor.
    #[error("no linker for {target} is installed (tried {tried}); install one: apt-get install lld, or {package}")]
    NoLinker {
        /// The processor.
        target: String,
        /// Programs that were looked for.
        tried: String,
        /// The package with the architecture's own linker.
        package: &'static str,
    },
    /// The linker failed.
    #[error("{linker}: {reason}")]
    Linker {
        /// The program.
        linker: String,
        /// What it says.
        reason: String,
    },
    /// The object could not be made.
    #[error("model {model}: {reason}")]
    Object {
        /// The model.
        model: String,
        /// What the code generator says.
        reason: String,
    },
}

/// Architectures: how their targets begin, the prefix of their own linkers, and the package with those.
const ARCHITECTURES: [(&str, &str, &str); 4] = [
    ("x86_64", "x86_64-linux-gnu-", "binutils-x86-64-linux-gnu"),
    ("aarch64", "aarch64-linux-gnu-", "binutils-aarch64-linux-gnu"),
    ("arm", "arm-linux-gnueabihf-", "binutils-arm-linux-gnueabihf"),
    ("riscv64", "riscv64-linux-gnu-", "binutils-riscv64-linux-gnu"),
];

/// A linker for one architecture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Linker {
    /// The program.
    pub program: String,
    /// Its version, in its own words.
    pub version: String,
}

impl Linker {
    /// Finds a linker for a target (`riscv64-linux-gnu`): LLVM's, which links for all, or the architecture's own.
    ///
    /// # Errors
    /// [`LibraryError::NoLinker`].
    pub fn find(target: &str) -> Result<Linker, LibraryError> {
        let known = ARCHITECTURES.iter().find(|(start, ..)| target.starts_with(start)).unwrap_or(&ARCHITECTURES[0]);
        let mut tried = vec!["ld.lld-19".to_string(), "ld.lld".to_string(), format!("{}ld", known.1)];
        if target.starts_with(std::env::consts::ARCH) {
            tried.push("ld".into());
        }
        let version = |program: &String| {
            let output = Command::new(program).arg("--version").output().ok().filter(|found| found.status.success())?;
            let text = String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_string();
            Some(Linker { program: program.clone(), version: text })
        };
        tried.iter().find_map(version).ok_or_else(|| LibraryError::NoLinker {
            target: target.into(),
            tried: tried.join(", "),
            package: known.2,
        })
    }

    /// Links an object to a shared library in `folder`, and returns its bytes. What the object lacks stays for the
    /// program that links the library.
    fn share(&self, object: &[u8], soname: &str, folder: &Path) -> Result<Vec<u8>, LibraryError> {
        let failed = |reason: String| LibraryError::Linker { linker: self.program.clone(), reason };
        let dir = tempfile::Builder::new().prefix(".tilewright-").tempdir_in(folder);
        let dir = dir.map_err(|error| failed(format!("{}: {error}", folder.display())))?;
        let (from, to) = (dir.path().join("model.o"), dir.path().join("model.so"));
        std::fs::write(&from, object).map_err(|error| failed(format!("{}: {error}", from.display())))?;
        let mut command = Command::new(&self.program);
        command.args(["-shared", "--build-id=none", "-z", "noexecstack", "-soname", soname, "-o"]).arg(&to).arg(&from);
        let output = process::output(&mut command).map_err(|error| failed(error.to_string()))?;
        if !output.status.success() {
            return Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_string()));
        }
        std::fs::read(&to).map_err(|error| failed(format!("{}: {error}", to.display())))
    }
}

/// Makes an object file with the bytes of an artifact and a function that opens them, under this name.
pub type MakeObject<'a> = dyn Fn(&str, &[u8]) -> Result<Vec<u8>, String> + 'a;

/// The library and its header, for the file `output`, whose name without `lib` and `.so` becomes the model's name.
///
/// # Errors
/// [`LibraryError`].
pub fn files(
    artifact: &Artifact,
    output: &Path,
    linker: &Linker,
    object: &MakeObject,
) -> Result<Vec<(PathBuf, Vec<u8>)>, LibraryError> {
    let file = output.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let name = name_of(&file);
    if name == "tilewright" {
        return Err(LibraryError::Name { file });
    }
    let model = || artifact.manifest.model.clone();
    let object = object(&name, &artifact.encode()).map_err(|reason| LibraryError::Object { model: model(), reason })?;
    let folder = tilewright_runtime::files::folder_of(output);
    let library = linker.share(&object, &file, folder)?;
    Ok(vec![
        (output.to_path_buf(), library),
        (folder.join(format!("{name}.h")), header(artifact, &name, &file).into_bytes()),
    ])
}

/// The model's name for the name of a library's file.
fn name_of(file: &str) -> String {
    let stem = file.split(".so").next().unwrap_or_default();
    identifier(stem.strip_prefix("lib").unwrap_or(stem))
}

fn header(artifact: &Artifact, name: &str, file: &str) -> String {
    let (upper, model) = (name.to_uppercase(), super::export::comment(&artifact.manifest.model));
    format!(
        "/* Model {model}, in {file}. Link that library and libtilewright_runtime, or libtilewright_sim for simulators.\n \
         */\n#ifndef {upper}_H\n#define {upper}_H\n\n#include \"tilewright.h\"\n\n#ifdef __cplusplus\nextern \"C\" \
         {{\n#endif\n\n/* Opens the model, as tw_artifact_open does with a file. The caller frees the value with \
         tw_value_free. */\ntw_status {name}_open(tw_value *out);\n\n#ifdef __cplusplus\n}}\n#endif\n\n#endif\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_the_file() {
        for (file, name) in [("libresnet8.so", "resnet8"), ("net.so.1", "net"), ("lib8bit.so", "model_8bit")] {
            assert_eq!(name_of(file), name);
        }
    }

    #[test]
    fn a_missing_linker_is_named_with_its_package() {
        let error =
            LibraryError::NoLinker { target: "arm".into(), tried: "ld.lld".into(), package: ARCHITECTURES[2].2 };
        let text = error.to_string();
        assert!(text.contains("apt-get install lld, or binutils-arm-linux-gnueabihf"), "{text}");
    }
}
