use super::*;

/// Single operators; softmax may differ by one step.
const OPERATORS: &[&str] = &[
    "add",
    "add_relu",
    "avgpool2x2",
    "avgpool3x3_same",
    "conv1x1",
    "conv3x3_dil2",
    "conv3x3_s2_same_relu6",
    "conv3x3_s2_valid",
    "conv3x3_same_relu",
    "conv7x7_s2",
    "dwconv3x3",
    "dwconv3x3_s2_relu6",
    "dwconv5x5_mult2",
    "fully_connected",
    "global_mean",
    "inverted_residual",
    "maxpool3x3_s2",
    "pad",
    "reshape",
    "residual_block",
    "softmax",
    "transpose",
];

#[test]
fn single_operators_equal_the_reference_kernels() {
    let folder = models("tflite-ops");
    let mut wrong = Vec::new();
    for name in OPERATORS {
        let g = import(&folder.join(format!("{name}.tflite"))).unwrap();
        let (inputs, expected) = vectors(&folder, name);
        let found = eval(&g, &inputs).unwrap();
        assert_eq!(found.len(), expected.len());
        assert!(!expected.is_empty(), "{name} has no expected output");
        let worst = found.iter().zip(&expected).map(|(f, e)| steps(f, e)).max().unwrap();
        if worst > i64::from(*name == "softmax") {
            wrong.push(format!("{name}: {worst} steps"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_file_of_a_supported_operator_is_tested() {
    for entry in std::fs::read_dir(models("tflite-ops")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if let Some(stem) = name.strip_suffix(".tflite") {
            assert!(OPERATORS.contains(&stem), "{name} is not in the list");
        }
    }
}

#[test]
fn int8_networks_equal_the_reference_kernels() {
    for (folder, model) in [
        ("resnet8-cifar10", "model_int8.tflite"),
        ("anomaly-autoencoder", "model_int8.tflite"),
        ("kws-dscnn", "model_int8.tflite"),
        ("vww-mobilenet-96", "model_int8.tflite"),
        ("mobilenetv2-1.0-224", "model_ptq_int8.tflite"),
    ] {
        let Some(path) = tilewright_testing::model(folder) else { continue };
        let (found, expected) = run(&path, model);
        assert_eq!(steps(&found[0], &expected[0]), 0, "{folder}");
    }
}

#[test]
fn float_networks_are_close() {
    for (folder, model) in [("resnet8-cifar10", "model_float.tflite"), ("anomaly-autoencoder", "model_float.tflite")] {
        let Some(path) = tilewright_testing::model(folder) else { continue };
        let (found, expected) = run(&path, model);
        let r = relative(&found[0], &expected[0]);
        assert!(r < 1e-4, "{folder}: {r}");
    }
}

#[test]
fn float_layers_with_int8_weights_quantize_their_rows() {
    let Some(path) = tilewright_testing::model("anomaly-autoencoder") else { return };
    let (found, expected) = run(&path, "model_dynrange.tflite");
    let (f, e) = (found[0].as_slice::<f32>().unwrap(), expected[0].as_slice::<f32>().unwrap());
    let worst = f.iter().zip(e).map(|(x, y)| (x - y).abs()).fold(0.0, f32::max);
    assert!(worst < 1e-5, "{worst}");
}
