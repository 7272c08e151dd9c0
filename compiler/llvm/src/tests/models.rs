//! Compares networks and single operators from files with the graph's evaluation and with expected outputs.

use std::path::{Path, PathBuf};

use tilewright_compiler::frontend::import;
use tilewright_compiler::graph::{Tensor, eval};
use tilewright_compiler::passes::{self, OptLevel};
use tilewright_compiler::suite::{difference, tolerance};

use super::run;
use crate::LlvmBackend;

fn npy(path: &Path) -> Tensor {
    Tensor::try_from(&tilewright_runtime::npy::read(path).unwrap()).unwrap()
}

/// Reads the inputs or expected outputs of a model file.
fn arrays(file: &Path, kind: &str) -> Vec<Tensor> {
    let stem = file.file_stem().unwrap().to_string_lossy().into_owned();
    let folder = file.parent().unwrap();
    let suffixed = folder.join(format!("{stem}-tflite.{kind}_0.npy")).exists();
    let stem =
        if suffixed && file.extension().is_some_and(|e| e == "tflite") { format!("{stem}-tflite") } else { stem };
    let path = |i: usize| folder.join(format!("{stem}.{kind}_{i}.npy"));
    (0..).map(path).take_while(|p| p.exists()).map(|p| npy(&p)).collect()
}

/// Returns the largest difference from the graph's evaluation allowed for a type: float sums have no fixed order.
fn most(t: &Tensor) -> f64 {
    tolerance(t.dtype())
}

/// Runs a file at several levels. `allowed` is the difference from the expected outputs.
fn check(backend: &LlvmBackend, file: &Path, allowed: f64) {
    let (inputs, expected) = (arrays(file, "input"), arrays(file, "expected"));
    assert!(!expected.is_empty(), "{} has no expected outputs", file.display());
    for level in [OptLevel::O0, OptLevel::O2] {
        let graph = import(file).unwrap_or_else(|e| panic!("{e}"));
        let graph = passes::optimize(graph, level, passes::Options::default()).unwrap_or_else(|e| panic!("{e}")).0;
        let want = eval(&graph, &inputs).unwrap();
        let got = run(backend, &graph, &inputs);
        for ((g, w), e) in got.iter().zip(&want).zip(&expected) {
            let (a, b) = (difference(g, w), difference(g, e));
            assert!(a <= most(w), "{} at {level:?}: {a} from the graph's evaluation", file.display());
            assert!(b <= allowed, "{} at {level:?}: {b} from the expected output", file.display());
        }
    }
}

fn repository(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/models").join(folder)
}

#[test]
fn single_operators_of_files_equal_the_expected_outputs() {
    let backend = LlvmBackend::new().unwrap();
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(repository("tflite-ops")).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    files.retain(|f| f.extension().is_some_and(|e| e == "tflite"));
    assert_eq!(files.len(), 41);
    for file in &files {
        let stem = file.file_stem().unwrap().to_string_lossy().into_owned();
        check(&backend, file, if stem.contains("softmax") { 1.0 } else { 0.0 });
    }
}

#[test]
fn lenet_runs() {
    let backend = LlvmBackend::new().unwrap();
    check(&backend, &repository("lenet-mnist").join("model.onnx"), 1e-4);
    for name in ["model_qdq_perchannel.onnx", "model_qdq_pertensor.onnx"] {
        check(&backend, &repository("lenet-mnist").join(name), 0.03);
    }
}

#[test]
fn integers_with_zero_points_of_the_run_equal_those_of_onnx_runtime() {
    check(&LlvmBackend::new().unwrap(), &repository("onnx-runtime").join("dynamic.onnx"), 1e-5);
}

/// Recurrences of all kinds, sums of products and scattered updates.
#[test]
fn recurrences_equal_those_of_onnx_runtime() {
    check(&LlvmBackend::new().unwrap(), &repository("onnx-runtime").join("recurrent.onnx"), 1e-5);
}

#[test]
fn networks_in_operator_form_equal_onnx_runtime() {
    let backend = LlvmBackend::new().unwrap();
    for name in ["operators_u8.onnx", "operators_s8.onnx"] {
        check(&backend, &repository("onnx-runtime").join(name), 1e-6);
    }
}

/// Leaky relus after convolutions, and averages, many of them halfway between two integers. The error of a float sum
/// decides these, so floats must be added in the runtime's order.
#[test]
fn slopes_and_averages_equal_those_of_onnx_runtime() {
    let (backend, file) = (LlvmBackend::new().unwrap(), repository("onnx-runtime").join("slopes.onnx"));
    let graph = passes::optimize(import(&file).unwrap(), OptLevel::O2, passes::Options::default()).unwrap().0;
    let (found, expected) = (run(&backend, &graph, &arrays(&file, "input")), arrays(&file, "expected"));
    assert_eq!(found.len(), 4);
    for (f, e) in found.iter().zip(&expected) {
        assert_eq!(difference(f, e), 0.0);
    }
}

#[test]
fn networks_of_the_model_folder_run() {
    let backend = LlvmBackend::new().unwrap();
    if let Some(folder) = tilewright_testing::model("resnet8-cifar10") {
        check(&backend, &folder.join("model_int8.tflite"), 1.0);
        check(&backend, &folder.join("model_float.tflite"), 1e-4);
        check(&backend, &folder.join("model.onnx"), 1e-4);
    }
    if let Some(folder) = tilewright_testing::model("anomaly-autoencoder") {
        check(&backend, &folder.join("model_int8.tflite"), 0.0);
        check(&backend, &folder.join("model_float.tflite"), 1e-4);
        check(&backend, &folder.join("model_dynrange.tflite"), 1e-4);
    }
}
