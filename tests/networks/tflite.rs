//! TFLite networks of the folder, compared with the reference kernels on every device of their list.

use std::path::PathBuf;

use tilewright::device::DeviceKind;

use crate::{arrays, compiled, difference};

/// A quantized network: file, steps by which its outputs can differ, and devices to test.
struct Quantized {
    file: &'static str,
    steps: f64,
    devices: &'static [DeviceKind],
}

/// A softmax at the end can differ by one step.
const QUANTIZED: &[Quantized] = &[
    Quantized {
        file: "anomaly-autoencoder/model_int8.tflite",
        steps: 0.0,
        devices: &[DeviceKind::CPU, DeviceKind::FSIM, DeviceKind::RTL],
    },
    Quantized {
        file: "deeplabv3-mnv2-0.5/model_uint8.tflite",
        steps: 0.0,
        devices: &[DeviceKind::CPU, DeviceKind::FSIM],
    },
    Quantized {
        file: "kws-dscnn/model_int8.tflite",
        steps: 1.0,
        devices: &[DeviceKind::CPU, DeviceKind::FSIM, DeviceKind::RTL],
    },
    Quantized {
        file: "mobilenetv1-0.25-128/model_uint8.tflite",
        steps: 1.0,
        devices: &[DeviceKind::CPU, DeviceKind::FSIM],
    },
    Quantized {
        file: "mobilenetv2-1.0-224/model_ptq_int8.tflite",
        steps: 1.0,
        devices: &[DeviceKind::CPU, DeviceKind::FSIM],
    },
    Quantized {
        file: "mobilenetv2-1.0-224/model_uint8.tflite",
        steps: 1.0,
        devices: &[DeviceKind::CPU, DeviceKind::FSIM],
    },
    Quantized {
        file: "resnet8-cifar10/model_int8.tflite",
        steps: 1.0,
        devices: &[DeviceKind::CPU, DeviceKind::FSIM, DeviceKind::RTL],
    },
    Quantized {
        file: "vww-mobilenet-96/model_int8.tflite",
        steps: 1.0,
        devices: &[DeviceKind::CPU, DeviceKind::FSIM, DeviceKind::RTL],
    },
];

/// Float networks, and the allowed difference as a share of their outputs' largest magnitude. If some weights have 8
/// bits, the share is the difference between two sets of the reference's kernels.
const FLOAT: &[(&str, f64)] = &[
    ("anomaly-autoencoder/model_dynrange.tflite", 1e-4),
    ("anomaly-autoencoder/model_float.tflite", 1e-4),
    ("blazeface-short/model_fp16w.tflite", 1e-4),
    ("kws-dscnn/model_float.tflite", 0.007),
    ("resnet8-cifar10/model_float.tflite", 1e-4),
    ("vww-mobilenet-96/model_float.tflite", 1e-4),
];

fn wrong(device: DeviceKind, list: &[&Quantized]) -> Vec<String> {
    let mut wrong = Vec::new();
    for network in list.iter().filter(|n| n.devices.contains(&device)) {
        let Some(model) = tilewright_testing::model(network.file) else { return wrong };
        let found = difference(&model, "1x16x16", device);
        println!("{} on {device}: {found} steps", network.file);
        if found > network.steps {
            wrong.push(format!("{} on {device}: {found} steps, {} allowed", network.file, network.steps));
        }
    }
    wrong
}

#[test]
fn quantized_networks_equal_the_reference_on_every_device() {
    let all: Vec<&Quantized> = QUANTIZED.iter().collect();
    let wrong: Vec<String> = [DeviceKind::CPU, DeviceKind::FSIM, DeviceKind::RTL]
        .into_iter()
        .flat_map(|device| wrong(device, &all))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Networks that run for minutes on the RTL.
#[test]
#[ignore = "long; make test-full runs it"]
fn large_networks_equal_the_reference_on_the_rtl() {
    let large = QUANTIZED.iter().filter(|n| !n.devices.contains(&DeviceKind::RTL));
    let on_rtl: Vec<Quantized> =
        large.map(|n| Quantized { file: n.file, steps: n.steps, devices: &[DeviceKind::RTL] }).collect();
    let wrong = wrong(DeviceKind::RTL, &on_rtl.iter().collect::<Vec<_>>());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn nearly_all_of_every_quantized_network_is_offloaded() {
    for network in QUANTIZED {
        let Some(model) = tilewright_testing::model(network.file) else { return };
        let (artifact, _) = compiled(&model, "1x16x16", DeviceKind::FSIM);
        let (offloaded, all) = (artifact.manifest.offloaded_macs(), artifact.manifest.macs());
        assert!(offloaded as f64 >= 0.99 * all as f64, "{}: {offloaded} of {all} MACs", network.file);
    }
}

#[test]
fn float_networks_are_close() {
    let mut wrong = Vec::new();
    for (file, share) in FLOAT {
        let Some(model) = tilewright_testing::model(file) else { return };
        let magnitude =
            arrays(&model, "expected").iter().flat_map(|t| t.to_f64()).fold(0.0, |m: f64, v| m.max(v.abs()));
        let found = difference(&model, "1x16x16", DeviceKind::CPU) / magnitude;
        println!("{file}: {found:.1e} of the greatest magnitude");
        if found > *share {
            wrong.push(format!("{file}: {found}, {share} allowed"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_tflite_network_of_the_folder_is_in_a_list() {
    let Some(folder) = tilewright_testing::model("") else { return };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let inner = entry.unwrap().path();
        // Networks of one operator are in the repository, and another test runs them.
        if inner.is_dir() && !inner.ends_with("tflite-ops") {
            let files = std::fs::read_dir(&inner).unwrap().map(|e| e.unwrap().path());
            found.extend(files.filter(|f| f.extension().is_some_and(|e| e == "tflite")));
        }
    }
    let listed: Vec<&str> = QUANTIZED.iter().map(|n| n.file).chain(FLOAT.iter().map(|f| f.0)).collect();
    let missing: Vec<&PathBuf> = found.iter().filter(|f| !listed.iter().any(|name| f.ends_with(name))).collect();
    assert!(missing.is_empty(), "not in a list: {missing:?}");
    assert_eq!(found.len(), listed.len());
}
