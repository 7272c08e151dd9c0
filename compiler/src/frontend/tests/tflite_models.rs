use super::*;

/// Single operators whose results can differ by one step, because their tables are computed with another `exp`.
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
fn quantized_networks_equal_the_reference_kernels() {
    for (folder, model) in [
        ("resnet8-cifar10", "model_int8.tflite"),
        ("anomaly-autoencoder", "model_int8.tflite"),
        ("kws-dscnn", "model_int8.tflite"),
        ("vww-mobilenet-96", "model_int8.tflite"),
        ("mobilenetv1-0.25-128", "model_uint8.tflite"),
        ("mobilenetv2-1.0-224", "model_uint8.tflite"),
        ("mobilenetv2-1.0-224", "model_ptq_int8.tflite"),
        ("deeplabv3-mnv2-0.5", "model_uint8.tflite"),
    ] {
        let Some(path) = tilewright_testing::model(folder) else { continue };
        let (found, expected) = run(&path, model);
        assert_eq!(steps(&found[0], &expected[0]), 0, "{folder}/{model}");
    }
}

#[test]
fn float_networks_are_close() {
    // Networks with some 8-bit weights can differ by as much as two sets of the reference kernels do.
    for (folder, model, most) in [
        ("resnet8-cifar10", "model_float.tflite", 1e-4),
        ("anomaly-autoencoder", "model_float.tflite", 1e-4),
        ("vww-mobilenet-96", "model_float.tflite", 1e-4),
        ("blazeface-short", "model_fp16w.tflite", 1e-4),
        ("kws-dscnn", "model_float.tflite", 0.007),
        ("anomaly-autoencoder", "model_dynrange.tflite", 1e-5),
    ] {
        let Some(path) = tilewright_testing::model(folder) else { continue };
        let (found, expected) = run(&path, model);
        assert_eq!(found.len(), expected.len());
        for (f, e) in found.iter().zip(&expected) {
            let r = relative(f, e);
            println!("{folder}/{model}: {r:.1e}");
            assert!(r < most, "{folder}/{model}: {r}");
        }
    }
}
