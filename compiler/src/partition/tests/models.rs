//! Whole networks, where the folder of models is there.

use super::{check, on_cpu, presets, run};
use crate::frontend::import;
use crate::graph::{Tensor, eval_all};
use crate::partition::{Offload, partition};
use std::path::PathBuf;
use tilewright_runtime::npy;

/// The model's path and its input, or a line that says that the test is skipped.
fn model(name: &str, stem: &str) -> Option<(PathBuf, PathBuf)> {
    let Some(folder) = std::env::var_os("TILEWRIGHT_MODELS") else {
        println!("skipped: {name} needs TILEWRIGHT_MODELS");
        return None;
    };
    let folder = PathBuf::from(folder).join(name);
    Some((folder.join(format!("{stem}.tflite")), folder.join(format!("{stem}-tflite.input_0.npy"))))
}

fn offload(name: &str, cpu_ops: &[&str]) {
    let Some((file, input)) = model(name, "model_int8") else { return };
    let graph = import(&file).unwrap();
    let input = npy::read(&input).unwrap();
    let input = Tensor::try_from(&input).unwrap();
    let expected = eval_all(&graph, std::slice::from_ref(&input)).unwrap();
    for config in presets() {
        let parts = check(&graph, &config, std::slice::from_ref(&input));
        let cpu = on_cpu(&parts);
        let mut ops: Vec<&str> = cpu.iter().filter_map(|line| line.split(' ').next()).collect();
        ops.dedup();
        assert_eq!(ops, cpu_ops, "{}: {cpu:#?}", config.name);
        assert!(run(&graph, &config, &parts, std::slice::from_ref(&input), &expected) > 0);
    }
}

#[test]
fn resnet8_runs_on_every_preset() {
    offload("resnet8-cifar10", &["softmax"]);
}

#[test]
fn the_autoencoder_runs_on_every_preset() {
    offload("anomaly-autoencoder", &[]);
}

#[test]
fn nothing_is_offloaded_when_asked() {
    let Some((file, _)) = model("resnet8-cifar10", "model_int8") else { return };
    let graph = import(&file).unwrap();
    let parts = partition(&graph, &presets()[0], Offload::None);
    assert_eq!((parts.regions.len(), on_cpu(&parts).len()), (1, parts.explanations.len()));
}
