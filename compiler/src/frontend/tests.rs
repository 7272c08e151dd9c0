//! Networks of the repository and of the folder `TILEWRIGHT_MODELS`, compared with their expected outputs.

use super::*;
use crate::graph::{Tensor, TensorData, eval};
use std::path::PathBuf;
use tilewright_runtime::tensor::largest_distance;

mod bad_files;
mod onnx_einsum;
mod onnx_errors;
mod onnx_integer;
mod onnx_models;
mod onnx_nodes;
mod onnx_operators;
mod onnx_recurrent;
mod onnx_resize;
mod onnx_runtime;
mod onnx_scatter;
mod onnx_special;
mod operator_pages;
mod pytorch_files;
mod tflite_fields;
mod tflite_floats;
mod tflite_meaning;
mod tflite_models;
mod tflite_scales;
mod tflite_wide;

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

/// The greatest difference between two integer tensors, whose types can differ.
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

/// The greatest difference between two float tensors, divided by the greatest expected magnitude.
fn relative(found: &Tensor, expected: &Tensor) -> f64 {
    assert_eq!(found.ty(), expected.ty());
    let (f, e) = (found.as_slice::<f32>().unwrap(), expected.as_slice::<f32>().unwrap());
    let wide = |v: &[f32]| v.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
    largest_distance(wide(f), wide(e))
        / f64::from(e.iter().filter(|x| x.is_finite()).fold(0.0, |m, x| f32::max(m, x.abs())))
}

#[test]
fn what_is_no_number_differs_from_every_number() {
    let tensor = |v: &[f32]| Tensor::vector(v.to_vec());
    assert_eq!(relative(&tensor(&[f32::NAN, 2.0]), &tensor(&[1.0, 2.0])), f64::INFINITY);
    assert_eq!(relative(&tensor(&[1.0, 3.0]), &tensor(&[1.0, 2.0])), 0.5);
    // An infinite element does not count for the magnitude.
    let far = f32::INFINITY;
    assert_eq!(relative(&tensor(&[1.0, 3.0, far]), &tensor(&[1.0, 2.0, far])), 0.5);
}

fn run(folder: &Path, model: &str) -> (Vec<Tensor>, Vec<Tensor>) {
    let g = import(&folder.join(model)).unwrap();
    let stem = model.strip_suffix(".onnx").map_or_else(|| model.replace(".tflite", "-tflite"), str::to_owned);
    let (inputs, expected) = vectors(folder, &stem);
    assert!(!expected.is_empty());
    (eval(&g, &inputs).unwrap(), expected)
}
