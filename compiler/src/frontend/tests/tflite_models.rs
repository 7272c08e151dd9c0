use super::*;

/// Single operators whose results may differ by a step: their tables are made by another `exp`.
const ONE_STEP: &[&str] = &["softmax", "logistic"];

#[test]
fn single_operators_equal_the_reference_kernels() {
    let folder = models("tflite-ops");
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .filter_map(|f| f.unwrap().file_name().to_str()?.strip_suffix(".tflite").map(str::to_owned))
        .collect();
    names.sort();
    assert_eq!(names.len(), 41);
    let mut wrong = Vec::new();
    for name in &names {
        let g = match import(&folder.join(format!("{name}.tflite"))) {
            Ok(g) => g,
            Err(e) => {
                wrong.push(e.to_string());
                continue;
            }
        };
        let (inputs, expected) = vectors(&folder, name);
        let found = eval(&g, &inputs).unwrap();
        assert_eq!(found.len(), expected.len());
        assert!(!expected.is_empty(), "{name} has no expected output");
        let worst = found.iter().zip(&expected).map(|(f, e)| steps(f, e)).max().unwrap();
        if worst > i64::from(ONE_STEP.contains(&name.as_str())) {
            wrong.push(format!("{name}: {worst} steps"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
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
