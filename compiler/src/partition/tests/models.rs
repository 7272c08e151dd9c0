//! Tests whole networks, if the folder of models exists.

use super::{check, configs, fsim, on_cpu, presets, run};
use crate::frontend::import;
use crate::graph::{Graph, Tensor, eval_all};
use crate::partition::{Offload, partition};
use crate::passes::{OptLevel, Options, optimize};
use std::path::{Path, PathBuf};
use tilewright_runtime::npy;

/// Path and input of a model, if they exist.
fn model(name: &str, stem: &str) -> Option<(PathBuf, PathBuf)> {
    let folder = tilewright_testing::model(name)?;
    let tflite = folder.join(format!("{stem}.tflite"));
    if tflite.exists() {
        return Some((tflite, folder.join(format!("{stem}-tflite.input_0.npy"))));
    }
    Some((folder.join(format!("{stem}.onnx")), folder.join(format!("{stem}.input_0.npy"))))
}

/// Imports a model file and optimizes it to integer form.
fn integer(file: &Path) -> Graph {
    let graph = import(file).unwrap();
    optimize(graph, OptLevel::default(), Options::default()).unwrap().0
}

/// Runs a model on every preset. Only the named operators can stay on the CPU.
fn offload(name: &str, stem: &str, cpu_ops: &[&str]) {
    let Some((file, input)) = model(name, stem) else { return };
    let graph = integer(&file);
    let input = npy::read(&input).unwrap();
    let input = Tensor::try_from(&input).unwrap();
    let expected = eval_all(&graph, std::slice::from_ref(&input)).unwrap();
    for config in presets() {
        let parts = check(&graph, &config, std::slice::from_ref(&input));
        let cpu = on_cpu(&parts);
        let mut ops: Vec<&str> = cpu.iter().filter_map(|line| line.split(' ').next()).collect();
        ops.dedup();
        assert_eq!(ops, cpu_ops, "{}: {cpu:#?}", config.name);
        assert!(run(&graph, &config, &parts, std::slice::from_ref(&input), &expected, &fsim) > 0);
    }
}

#[test]
fn resnet8_runs_on_every_preset() {
    offload("resnet8-cifar10", "model_int8", &["softmax"]);
}

#[test]
fn the_autoencoder_runs_on_every_preset() {
    offload("anomaly-autoencoder", "model_int8", &[]);
}

#[test]
fn lenet_runs_on_every_preset() {
    for stem in ["model_qdq_perchannel", "model_qdq_pertensor"] {
        offload("lenet-mnist", stem, &["quantize", "dequantize"]);
    }
}

#[test]
fn nothing_is_offloaded_when_asked() {
    let Some((file, _)) = model("resnet8-cifar10", "model_int8") else { return };
    let graph = integer(&file);
    let parts = partition(&graph, &presets()[0], Offload::None);
    assert_eq!((parts.regions.len(), on_cpu(&parts).len()), (1, parts.explanations.len()));
}

/// TFLite files of single operators, which the repository carries.
#[test]
fn operators_of_files_run_on_every_configuration() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/models/tflite-ops");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "tflite"));
    files.sort();
    assert!(files.len() > 10);
    for file in files {
        let graph = integer(&file);
        let input = |i: usize| npy::read(&file.with_extension(format!("input_{i}.npy"))).unwrap();
        let inputs: Vec<Tensor> = (0..graph.inputs().len()).map(|i| Tensor::try_from(&input(i)).unwrap()).collect();
        for config in configs() {
            check(&graph, &config, &inputs);
        }
    }
}
