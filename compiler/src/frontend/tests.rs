//! Networks of the repository and of the folder that `TILEWRIGHT_MODELS` names, against their expected outputs.

use super::*;
use crate::graph::{Tensor, TensorData, eval};
use std::path::PathBuf;

mod bad_files;
mod onnx_errors;
mod onnx_models;
mod onnx_nodes;
mod onnx_page;
mod tflite_models;

/// A folder of the repository's test models.
fn models(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/models").join(folder)
}

fn npy(path: &Path) -> Tensor {
    let t = tilewright_runtime::npy::read(path).unwrap();
    Tensor::try_from(&t).unwrap()
}

/// Inputs `STEM.input_N.npy` and expected outputs `STEM.expected_N.npy`.
fn vectors(folder: &Path, stem: &str) -> (Vec<Tensor>, Vec<Tensor>) {
    let all = |kind: &str| {
        let path = |i: usize| folder.join(format!("{stem}.{kind}_{i}.npy"));
        (0..).map(path).take_while(|p| p.exists()).map(|p| npy(&p)).collect::<Vec<_>>()
    };
    (all("input"), all("expected"))
}

/// The greatest difference of integer tensors, of one type or of a narrower one.
fn steps(a: &Tensor, b: &Tensor) -> i64 {
    assert_eq!(a.shape(), b.shape());
    let list = |t: &Tensor| match t.data() {
        TensorData::I8(v) => v.iter().map(|&x| i64::from(x)).collect::<Vec<_>>(),
        TensorData::U8(v) => v.iter().map(|&x| i64::from(x)).collect(),
        TensorData::I32(v) => v.iter().map(|&x| i64::from(x)).collect(),
        TensorData::I64(v) => v.clone(),
        _ => panic!("{} is no integer tensor", t.ty()),
    };
    list(a).iter().zip(list(b)).map(|(x, y)| (x - y).abs()).max().unwrap_or(0)
}

/// The greatest difference of float tensors, over the greatest magnitude expected.
fn relative(found: &Tensor, expected: &Tensor) -> f32 {
    assert_eq!(found.ty(), expected.ty());
    let (f, e) = (found.as_slice::<f32>().unwrap(), expected.as_slice::<f32>().unwrap());
    let difference = f.iter().zip(e).map(|(x, y)| (x - y).abs()).fold(0.0, f32::max);
    difference / e.iter().fold(0.0, |m, x| f32::max(m, x.abs()))
}

fn run(folder: &Path, model: &str) -> (Vec<Tensor>, Vec<Tensor>) {
    let g = import(&folder.join(model)).unwrap();
    let stem = model.strip_suffix(".onnx").map_or_else(|| model.replace(".tflite", "-tflite"), str::to_owned);
    let (inputs, expected) = vectors(folder, &stem);
    assert!(!expected.is_empty());
    (eval(&g, &inputs).unwrap(), expected)
}
