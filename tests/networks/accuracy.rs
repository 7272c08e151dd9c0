//! Accuracy over labelled data.

use std::path::Path;

use tilewright::devices::DeviceKind;
use tilewright::inference;
use tilewright_runtime::npy;
use tilewright_runtime::tensor::{DType, Tensor};

use crate::resnet::PRESETS;
use crate::{carried, compiled, run};

fn accuracy(model: &Path, hw: &str, inputs: Tensor, labels: &Tensor) -> f64 {
    let (artifact, config) = compiled(model, hw, DeviceKind::Fsim);
    let results = run(artifact, &config, DeviceKind::Fsim, &[inputs]);
    inference::accuracy(&results.outputs[0], labels).unwrap()
}

/// CIFAR-10 pictures as the int8 network takes them: brightness less 128.
#[test]
fn resnet8_is_right_on_as_many_pictures_as_the_reference() {
    let Some(model) = tilewright_testing::model("resnet8-cifar10/model_int8.tflite") else { return };
    let data = |name: &str| {
        npy::read(&tilewright_testing::model(&format!("data/cifar10_test1000_{name}.npy")).unwrap()).unwrap()
    };
    let (pictures, labels) = (data("x"), data("y"));
    let bytes = pictures.bytes.iter().map(|value| value.wrapping_sub(128)).collect();
    let inputs = Tensor::new(DType::I8, pictures.shape, bytes).unwrap();
    let found = 100.0 * accuracy(&model, "1x16x16", inputs, &labels);
    println!("resnet8 on 1,000 CIFAR-10 pictures: {found:.1} %");
    assert!((found - 76.9).abs() < 0.05, "{found} %, the reference kernels give 76.9 %");
}

#[test]
fn lenet_reads_the_digits_as_well_as_the_reference() {
    let Some(digits) = tilewright_testing::model("data/mnist_test1000_x.npy") else { return };
    let Some(labels) = tilewright_testing::model("data/mnist_test1000_y.npy") else { return };
    let (digits, labels) = (npy::read(&digits).unwrap(), npy::read(&labels).unwrap());
    let values: Vec<f32> = digits.bytes.iter().map(|value| f32::from(*value) / 255.0).collect();
    let inputs = Tensor::from_f32(vec![labels.len(), 1, 28, 28], &values).unwrap();
    for (model, reference) in [("perchannel", 96.4), ("pertensor", 96.6)] {
        let model = carried(&format!("lenet-mnist/model_qdq_{model}.onnx"));
        let found = 100.0 * accuracy(&model, "1x16x16", inputs.clone(), &labels);
        println!("{} on 1,000 digits: {found:.1} %", model.display());
        assert!((found - reference).abs() <= 0.3 + 1e-9, "{found} %, the reference gives {reference} %");
    }
}

#[test]
fn nearly_all_of_lenet_is_offloaded() {
    for model in ["perchannel", "pertensor"] {
        let (artifact, _) =
            compiled(&carried(&format!("lenet-mnist/model_qdq_{model}.onnx")), "1x16x16", DeviceKind::Fsim);
        let (offloaded, all) = (artifact.manifest.offloaded_macs(), artifact.manifest.macs());
        assert!(offloaded as f64 >= 0.99 * all as f64, "{offloaded} of {all} MACs");
    }
}

/// All devices compute the same integers, so a network gives the same outputs on all.
#[test]
fn lenet_gives_the_same_outputs_on_every_device() {
    let digits = npy::read(&carried("digits/digits.npy")).unwrap();
    let model = carried("lenet-mnist/model_qdq_perchannel.onnx");
    let outputs = |hw: &str, device| {
        let (artifact, config) = compiled(&model, hw, device);
        run(artifact, &config, device, std::slice::from_ref(&digits)).outputs
    };
    let expected = outputs("1x16x16", DeviceKind::Cpu);
    assert_eq!(expected[0].shape, [32, 10]);
    for hw in PRESETS {
        assert_eq!(outputs(hw, DeviceKind::Fsim), expected, "{hw} on fsim");
    }
    assert_eq!(outputs("1x16x16", DeviceKind::Rtl), expected, "rtl");
}

#[test]
#[ignore = "long; make test-full runs it"]
fn lenet_gives_the_same_outputs_on_the_rtl_of_every_preset() {
    let digits = npy::read(&carried("digits/digits.npy")).unwrap();
    let model = carried("lenet-mnist/model_qdq_pertensor.onnx");
    let outputs = |hw: &str, device| {
        let (artifact, config) = compiled(&model, hw, device);
        run(artifact, &config, device, std::slice::from_ref(&digits)).outputs
    };
    let expected = outputs("1x16x16", DeviceKind::Cpu);
    for hw in PRESETS {
        assert_eq!(outputs(hw, DeviceKind::Rtl), expected, "{hw}");
    }
}
