//! Compiles generated kernels with NVIDIA's compiler, which does not need a GPU.

use std::path::{Path, PathBuf};

use tilewright_compiler::suite::problems;
use tilewright_runtime::cuda::{CudaError, Form, Library, compile as nvrtc, compile_cached, load_from};

use super::{ANY, compile, models};
use crate::library::LEAST;
use crate::{CudaBackend, Precision};

/// The compute capability of the oldest GPUs that NVRTC 13 supports.
const OLDEST: Form = Form::Ptx(75);

/// Returns whether NVRTC is installed. If not, the calling test skips.
fn has_nvrtc() -> bool {
    preload();
    let found = Library::Nvrtc.is_present();
    if !found {
        tilewright_testing::skip("needs NVRTC; run `scripts/setup.sh --cuda`");
    }
    found
}

/// Loads the NVRTC of the Python package from the project's environment, if it is there, so that it is found by its
/// name.
pub fn preload() {
    let venv = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/lib");
    let list = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten();
        entries.filter_map(|e| Some(e.ok()?.path())).collect()
    };
    let packages = list(&venv).into_iter().flat_map(|python| list(&python.join("site-packages/nvidia")));
    let mut files: Vec<PathBuf> = packages.flat_map(|package| list(&package.join("lib"))).collect();
    files.retain(|f| {
        let name = f.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libnvrtc.so") || name.starts_with("libnvrtc-builtins.so")
    });
    // The compiler loads its built-ins by name, so load them first.
    files.sort();
    for file in &files {
        // SAFETY: these are CUDA's libraries from the Python package.
        unsafe { load_from(file) };
    }
}

#[test]
fn every_operator_compiles_to_ptx() {
    if !has_nvrtc() {
        return;
    }
    for precision in [Precision::F32, Precision::F16] {
        let backend = CudaBackend { precision };
        // Compile all in one source, because starting the compiler takes longest.
        let mut source = crate::PRELUDE.to_string();
        for (i, p) in problems(100, 4).unwrap().iter().enumerate() {
            let (code, _) = compile(&backend, &p.graph, ANY);
            let kernels = code.source.strip_prefix(crate::PRELUDE).unwrap();
            source += &format!("namespace g{i} {{\n{}\n}}\n", kernels.replace("extern \"C\" ", ""));
        }
        let ptx = nvrtc(&source, OLDEST).unwrap_or_else(|e| panic!("{e}"));
        assert!(String::from_utf8_lossy(&ptx).matches(".entry").count() > 100);
    }
}

#[test]
fn networks_compile_to_ptx_and_machine_code() {
    if !has_nvrtc() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, graph) in models::all_graphs() {
        let (code, _) = compile(&CudaBackend::default(), &graph, LEAST);
        let ptx = nvrtc(&code.source, OLDEST).unwrap_or_else(|e| panic!("{name}: {e}"));
        let ptx = String::from_utf8_lossy(&ptx).into_owned();
        for launch in code.entries.iter().flat_map(|e| &e.launches) {
            assert!(ptx.contains(&format!(".entry {}(", launch.kernel)), "{name}: {}", launch.kernel);
        }
        if name == "lenet" {
            let form = Form::Cubin(90);
            let first = compile_cached(Some(folder.path()), &code.source, form).unwrap_or_else(|e| panic!("{e}"));
            assert!(first.starts_with(b"\x7fELF"));
            let file = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
            assert_eq!(compile_cached(Some(folder.path()), &code.source, form).unwrap(), first);
            // A truncated file is compiled again.
            std::fs::write(&file, &first[..first.len() / 2]).unwrap();
            assert_eq!(compile_cached(Some(folder.path()), &code.source, form).unwrap(), first);
        }
    }
}

#[test]
fn what_the_compiler_refuses_is_an_error_with_its_words() {
    if !has_nvrtc() {
        return;
    }
    let error = nvrtc("__global__ void k() { nonsense; }", OLDEST).unwrap_err();
    assert!(matches!(&error, CudaError::Compile { log } if log.contains("nonsense")), "{error}");
    let error = nvrtc("__global__ void k() {}", Form::Cubin(999)).unwrap_err().to_string();
    assert!(error.contains("does not support compute capability 99.9") && error.contains("newer NVRTC"), "{error}");
}
