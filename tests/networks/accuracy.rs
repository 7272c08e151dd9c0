//! Accuracy on labeled data.

use std::path::Path;

use tilewright::device::DeviceKind;
use tilewright::model::inference;
use tilewright_runtime::npy;
use tilewright_runtime::tensor::{DType, Tensor};

use crate::resnet::PRESETS;
use crate::{carried, compiled, run};

fn accuracy(model: &Path, hw: &str, inputs: Tensor, labels: &Tensor) -> f64 {
    let (artifact, config) = compiled(model, hw, DeviceKind::FSIM);
    let results = run(artifact, &config, DeviceKind::FSIM, &[inputs]);
    inference::accuracy(&results.outputs[0], labels).unwrap()
}

/// CIFAR-10 pictures in the form of the int8 network's input: brightness minus 128.
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
fn the_vision_transformer_reads_the_digits_as_well_as_the_reference() {
    let Some(digits) = tilewright_testing::model("data/mnist_test1000_x.npy") else { return };
    let Some(labels) = tilewright_testing::model("data/mnist_test1000_y.npy") else { return };
    let Some(model) = tilewright_testing::model("vit-tiny-mnist/model_qdq_perchannel.onnx") else { return };
    let (digits, labels) = (npy::read(&digits).unwrap(), npy::read(&labels).unwrap());
    let values: Vec<f32> = digits.bytes.iter().map(|value| f32::from(*value) / 255.0).collect();
    let inputs = Tensor::from_f32(vec![labels.len(), 1, 28, 28], &values).unwrap();
    let found = 100.0 * accuracy(&model, "1x16x16", inputs, &labels);
    println!("{} on 1,000 digits: {found:.1} %", model.display());
    assert!((found - 96.4).abs() <= 0.3 + 1e-9, "{found} %, the reference gives 96.4 %");
}

/// The photos in the form of the network's input: channels first, minus 127, divided by 128.
#[test]
#[ignore = "long; make test-full runs it"]
fn quantized_efficientnet_names_what_the_float_network_does() {
    let Some(photos) = tilewright_testing::model("data/photos224_x.npy") else { return };
    let Some(folder) = tilewright_testing::model("efficientnet-lite0") else { return };
    let photos = npy::read(&photos).unwrap();
    let count = photos.shape[0];
    let pixel = |i: usize| (f32::from(photos.bytes[i]) - 127.0) / 128.0;
    let size = 224 * 224;
    let at = |i: usize| (i / (3 * size), i / size % 3, i % size);
    let place = |(n, c, p): (usize, usize, usize)| (n * size + p) * 3 + c;
    let values: Vec<f32> = (0..count * 3 * size).map(|i| pixel(place(at(i)))).collect();
    let inputs = Tensor::from_f32(vec![count, 3, 224, 224], &values).unwrap();
    let names = |model: &str, device| -> Vec<usize> {
        let (artifact, config) = compiled(&folder.join(model), "1x16x16", device);
        let found = run(artifact, &config, device, std::slice::from_ref(&inputs)).outputs[0].to_f64();
        let best = |v: &[f64]| (0..v.len()).fold(0, |best, k| if v[k] > v[best] { k } else { best });
        found.chunks(1000).map(best).collect()
    };
    assert_eq!(names("model_qdq_perchannel.onnx", DeviceKind::FSIM), names("model.onnx", DeviceKind::CPU));
    assert_eq!(count, 12);
}

#[test]
fn nearly_all_of_larger_quantized_networks_is_offloaded() {
    for (name, least) in [("efficientnet-lite0", 0.99), ("vit-tiny-mnist", 0.95)] {
        let Some(model) = tilewright_testing::model(&format!("{name}/model_qdq_perchannel.onnx")) else { return };
        for hw in ["1x16x16", "1x32x32"] {
            let (artifact, _) = compiled(&model, hw, DeviceKind::FSIM);
            let (offloaded, all) = (artifact.manifest.offloaded_macs(), artifact.manifest.macs());
            println!("{name} on {hw}: {:.2} % of {all} MACs", 100.0 * offloaded as f64 / all as f64);
            assert!(offloaded as f64 >= least * all as f64, "{name} on {hw}: {offloaded} of {all} MACs");
        }
    }
}

/// Whole quantized networks give the same class as the reference, and the same outputs on every device.
#[test]
fn larger_quantized_networks_name_what_the_reference_does() {
    for name in ["efficientnet-lite0", "vit-tiny-mnist"] {
        let Some(model) = tilewright_testing::model(&format!("{name}/model_qdq_perchannel.onnx")) else { return };
        let expected = crate::arrays(&model, "expected")[0].to_f64();
        let best = |v: &[f64]| (0..v.len()).fold(0, |best, k| if v[k] > v[best] { k } else { best });
        let outputs = |device| {
            let (artifact, config) = compiled(&model, "1x16x16", device);
            run(artifact, &config, device, &crate::arrays(&model, "input")).outputs
        };
        let (cpu, fsim) = (outputs(DeviceKind::CPU), outputs(DeviceKind::FSIM));
        assert_eq!(best(&cpu[0].to_f64()), best(&expected), "{name}");
        assert_eq!(cpu, fsim, "{name}");
    }
}

#[test]
fn nearly_all_of_lenet_is_offloaded() {
    for model in ["perchannel", "pertensor"] {
        let (artifact, _) =
            compiled(&carried(&format!("lenet-mnist/model_qdq_{model}.onnx")), "1x16x16", DeviceKind::FSIM);
        let (offloaded, all) = (artifact.manifest.offloaded_macs(), artifact.manifest.macs());
        assert!(offloaded as f64 >= 0.99 * all as f64, "{offloaded} of {all} MACs");
    }
}

/// All devices compute the same integers, so a network gives the same outputs on all of them.
#[test]
fn lenet_gives_the_same_outputs_on_every_device() {
    let digits = npy::read(&carried("digits/digits.npy")).unwrap();
    let model = carried("lenet-mnist/model_qdq_perchannel.onnx");
    let outputs = |hw: &str, device| {
        let (artifact, config) = compiled(&model, hw, device);
        run(artifact, &config, device, std::slice::from_ref(&digits)).outputs
    };
    let expected = outputs("1x16x16", DeviceKind::CPU);
    assert_eq!(expected[0].shape, [32, 10]);
    for hw in PRESETS {
        assert_eq!(outputs(hw, DeviceKind::FSIM), expected, "{hw} on fsim");
    }
    assert_eq!(outputs("1x16x16", DeviceKind::RTL), expected, "rtl");
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
    let expected = outputs("1x16x16", DeviceKind::CPU);
    for hw in PRESETS {
        assert_eq!(outputs(hw, DeviceKind::RTL), expected, "{hw}");
    }
}
