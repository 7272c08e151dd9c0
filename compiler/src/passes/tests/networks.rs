//! Whole networks through the pipelines.

use super::*;
use crate::frontend::import;
use std::path::Path;

fn lenet(model: &str) -> Graph {
    import(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/models/lenet-mnist").join(model)).unwrap()
}

fn npy(path: &Path) -> Tensor {
    Tensor::try_from(&tilewright_runtime::npy::read(path).unwrap()).unwrap()
}

const QDQ: [&str; 2] = ["model_qdq_perchannel.onnx", "model_qdq_pertensor.onnx"];

#[test]
fn quantized_lenet_becomes_integer() {
    for model in QDQ {
        for level in [OptLevel::O0, OptLevel::O2] {
            let (g, _) = optimize(lenet(model), level, Options::default()).unwrap();
            for (_, n) in g.nodes() {
                let float = n.inputs.iter().any(|&v| g.ty(v).dtype == DType::F32);
                assert!(!float || n.op.name() == "quantize", "{model}, {level:?}: {} is float\n{g}", n.name);
            }
        }
    }
}

/// Each operator gets the operands of the float network, so that errors do not accumulate.
fn each_operator_is_within_a_step(folder: &Path, model: &str, least: usize) {
    let x = npy(&folder.join(model.replace(".onnx", ".input_0.npy")));
    let g = import(&folder.join(model)).unwrap();
    let real = eval_all(&g, std::slice::from_ref(&x)).unwrap();
    let quantized: std::collections::HashMap<&str, &Tensor> = g
        .nodes()
        .filter(|(_, n)| n.op.name() == "quantize")
        .map(|(_, n)| (n.name.as_str(), real[n.output().0].as_ref()))
        .collect();
    let (h, _) = optimize(g.clone(), OptLevel::O2, Options::default()).unwrap();
    let (mut values, mut compared, mut different, mut all) = (vec![x.clone()], 0, 0, 0);
    for (_, n) in h.nodes() {
        let operands: Vec<&Tensor> = n.inputs.iter().map(|v| &values[v.0]).collect();
        let mut out = n.op.eval(&operands).unwrap().pop().unwrap();
        if let Some(&expected) = quantized.get(n.name.as_str()) {
            assert!(steps(&out, expected) <= 1, "{model}: {} ({})", n.name, n.op.name());
            let (f, e) = (out.as_slice::<i8>().unwrap(), expected.as_slice::<i8>().unwrap());
            let apart = f.iter().zip(e).filter(|(a, b)| a != b).count();
            assert!(apart * 1000 <= f.len().max(1000), "{model}: {} ({}): {apart} of {}", n.name, n.op.name(), f.len());
            different += apart;
            all += f.len();
            compared += 1;
            out = expected.clone();
        }
        values.push(out);
    }
    println!("{model}: {compared} operators, {different} of {all} values differ by a step");
    assert!(compared >= least, "{model}: only {compared} operators compared\n{h}");
    assert!(different * 1000 <= all, "{model}: {different} of {all} differ");
}

#[test]
fn each_operator_of_quantized_lenet_is_within_a_step() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/models/lenet-mnist");
    for model in QDQ {
        each_operator_is_within_a_step(&folder, model, 5);
    }
}

#[test]
fn each_operator_of_larger_quantized_networks_is_within_a_step() {
    for (folder, least) in [("vit-tiny-mnist", 60), ("efficientnet-lite0", 55)] {
        let Some(path) = tilewright_testing::model(folder) else { continue };
        each_operator_is_within_a_step(&path, "model_qdq_perchannel.onnx", least);
    }
}

#[test]
fn quantized_lenet_keeps_its_accuracy() {
    let (Some(images), Some(labels)) = (
        tilewright_testing::model("data/mnist_test1000_x.npy"),
        tilewright_testing::model("data/mnist_test1000_y.npy"),
    ) else {
        return;
    };
    let (images, labels) = (npy(&images), npy(&labels));
    let pixels = images.as_slice::<u8>().unwrap();
    let label = |i: usize| match labels.data() {
        crate::graph::TensorData::U8(v) => usize::from(v[i]),
        crate::graph::TensorData::I64(v) => v[i] as usize,
        crate::graph::TensorData::I32(v) => v[i] as usize,
        _ => panic!("labels are {}", labels.ty()),
    };
    let (g, _) = optimize(lenet(QDQ[0]), OptLevel::O2, Options::default()).unwrap();
    let mut right = 0;
    for i in 0..1000 {
        let x = Tensor::from_fn(&[1, 1, 28, 28], |k| f32::from(pixels[i * 784 + k]) / 255.0);
        let y = eval(&g, &[x]).unwrap();
        let y = y[0].as_slice::<f32>().unwrap();
        right += usize::from((0..10).fold(0, |best, k| if y[k] > y[best] { k } else { best }) == label(i));
    }
    assert!((961..=967).contains(&right), "{right} of 1000");
}

#[test]
fn integer_networks_are_not_changed_by_passes() {
    for folder in ["resnet8-cifar10", "anomaly-autoencoder"] {
        let Some(path) = tilewright_testing::model(folder) else { continue };
        let g = import(&path.join("model_int8.tflite")).unwrap();
        let x = npy(&path.join("model_int8-tflite.input_0.npy"));
        let y = npy(&path.join("model_int8-tflite.expected_0.npy"));
        for level in [OptLevel::O0, OptLevel::O3] {
            let (h, _) = optimize(g.clone(), level, Options::default()).unwrap();
            assert_eq!(eval(&h, std::slice::from_ref(&x)).unwrap()[0], y, "{folder}");
        }
    }
}

#[test]
fn quantized_efficientnet_becomes_integer_and_keeps_its_answer() {
    let Some(path) = tilewright_testing::model("efficientnet-lite0") else { return };
    let (g, _) =
        optimize(import(&path.join("model_qdq_perchannel.onnx")).unwrap(), OptLevel::O2, Options::default()).unwrap();
    for (_, n) in g.nodes() {
        let float = n.inputs.iter().any(|&v| g.ty(v).dtype == DType::F32);
        assert!(!float || n.op.name() == "quantize", "{} ({}) is float", n.name, n.op.name());
    }
    let y = eval(&g, &[npy(&path.join("model_qdq_perchannel.input_0.npy"))]).unwrap();
    let expected = npy(&path.join("model_qdq_perchannel.expected_0.npy"));
    let best = |t: &Tensor| {
        let v = t.as_slice::<f32>().unwrap();
        (0..v.len()).fold(0, |best, k| if v[k] > v[best] { k } else { best })
    };
    assert_eq!(best(&y[0]), best(&expected));
    assert!(crate::suite::difference(&y[0], &expected) < 0.05);
}

/// Parsing the printed text gives the same graph, also after the passes.
#[test]
fn networks_survive_their_text() {
    use crate::graph::text;
    for model in ["model.onnx", QDQ[0]] {
        for g in [lenet(model), optimize(lenet(model), OptLevel::O3, Options::default()).unwrap().0] {
            let (t, blobs) = text::print_with_blobs(&g);
            assert_eq!(text::parse(&t, &blobs).unwrap(), g);
        }
    }
}
