//! `quantize`: from a float model to one that runs completely on the accelerator.

use std::path::Path;

use tilewright_runtime::npy;
use tilewright_runtime::tensor::{DType, Tensor};

use crate::models::{carried, digits};
use crate::{fine, refused, tilewright};

fn lenet() -> String {
    carried("lenet-mnist/model.onnx")
}

/// Quantizes lenet with the digits as samples, and returns the output.
fn quantized(dir: &Path, options: &[&str]) -> String {
    let model = lenet();
    let digits = digits();
    fine(dir, &[&["quantize", &model, "--calibrate", &digits, "-o", "q.onnx"][..], options].concat())
}

#[test]
fn lenet_is_quantized_and_runs_on_the_accelerator() {
    let dir = tempfile::tempdir().unwrap();
    let (digits, labels) = (digits(), carried("digits/labels.npy"));
    for method in ["auto", "min-max", "percentile", "mse", "entropy"] {
        let evaluation = ["--eval", &digits, "--labels", &labels, "--report", "r.json", "--method", method];
        let text = quantized(dir.path(), &evaluation);
        assert!(text.contains("accuracy      float 100.00 %, quantized 100.00 %, loss 0.00 points\n"), "{text}");
        assert!(text.starts_with("layer ") && text.contains("/c1/Conv") | text.contains("/Relu "), "{text}");
        let report = std::fs::read_to_string(dir.path().join("r.json")).unwrap();
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        assert_eq!((&report["method"], &report["samples"]), (&method.into(), &32.into()));
        let layers = report["layers"].as_array().unwrap();
        assert_eq!(layers.len(), 8);
        assert!(layers.iter().all(|l| l["sqnr_db"].as_f64().unwrap() > 20.0), "{method}: {layers:?}");
        assert_eq!((&report["accuracy_float"], &report["accuracy_quantized"]), (&1.0.into(), &1.0.into()));
        let run = ["run", "q.onnx", "--device", "fsim", "--input", &digits, "--labels", &labels, "--json"];
        let found: serde_json::Value = serde_json::from_str(&fine(dir.path(), &run)).unwrap();
        assert_eq!((&found["accuracy"], &found["outputs"][0]["name"]), (&1.0.into(), &"logits".into()));
        assert_eq!(found["offloaded_macs_fraction"], 1.0, "{method}");
    }
    let text = quantized(dir.path(), &["--method", "mse", "--equalize", "--bias-correction", "--per-tensor"]);
    assert!(text.contains("equalization  "), "{text}");
}

/// Layers that are kept in float do not run on the accelerator. Weak layers are listed with the option that keeps them.
#[test]
fn layers_are_kept_in_floats_and_weights_have_seven_bits() {
    let dir = tempfile::tempdir().unwrap();
    let options =
        ["--method", "min-max", "--weights", "7", "--keep-float", "/Relu", "--weak", "45", "--report", "r.json"];
    let text = quantized(dir.path(), &options);
    assert!(text.contains("stays float   /c1/Conv (conv2d), /Relu (clip)\n"), "{text}");
    assert!(text.contains("; with --keep-float "), "{text}");
    let report = std::fs::read_to_string(dir.path().join("r.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!((&report["weight_bits"], &report["weak"][0]["name"].is_string()), (&7.into(), &true));
    let run = [
        "run",
        "q.onnx",
        "--device",
        "fsim",
        "--input",
        &digits(),
        "--labels",
        &carried("digits/labels.npy"),
        "--json",
    ];
    let found: serde_json::Value = serde_json::from_str(&fine(dir.path(), &run)).unwrap();
    assert_eq!(found["accuracy"], 1.0);
    let offloaded = found["offloaded_macs_fraction"].as_f64().unwrap();
    assert!(offloaded > 0.3 && offloaded < 1.0, "{offloaded}");
}

/// An input that is also an output stays unchanged, with its position and name.
#[test]
fn an_input_that_is_an_output_is_exact() {
    let dir = tempfile::tempdir().unwrap();
    let case = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/06-quantize-input-as-output");
    let [model, calibrate, input] = ["model.onnx", "calibrate.npz", "input_0.npy"].map(|name| format!("{case}/{name}"));
    fine(dir.path(), &["quantize", &model, "--calibrate", &calibrate, "-o", "q.onnx"]);
    let run = ["run", "q.onnx", "--device", "fsim", "--input", &input, "--output-dir", "out", "--json"];
    let found: serde_json::Value = serde_json::from_str(&fine(dir.path(), &run)).unwrap();
    let names: Vec<_> = found["outputs"].as_array().unwrap().iter().map(|o| &o["name"]).collect();
    assert_eq!(names, ["y", "x"]);
    let read = |path: &Path| npy::read(path).unwrap().to_f64();
    let (y, x) = (read(&dir.path().join("out/y.npy")), read(&dir.path().join("out/x.npy")));
    let [expected_y, expected_x] = [0, 1].map(|i| read(&Path::new(case).join(format!("expected_{i}.npy"))));
    let most = expected_y.iter().fold(0f64, |m, v| m.max(v.abs()));
    assert!(y.iter().zip(&expected_y).all(|(a, b)| (a - b).abs() < 0.02 * most));
    assert_eq!(x, expected_x);
}

/// Sizes that the model leaves open come from the samples.
#[test]
fn open_sizes_are_those_of_the_samples() {
    let dir = tempfile::tempdir().unwrap();
    let case = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/14-input-without-shape");
    let [model, sample] = ["model.onnx", "input_0.npy"].map(|name| format!("{case}/{name}"));
    let text = fine(dir.path(), &["quantize", &model, "--calibrate", &sample, "-o", "q.onnx"]);
    assert!(text.contains("written       q.onnx"), "{text}");
}

#[test]
fn a_float_model_says_that_nothing_is_offloaded() {
    let dir = tempfile::tempdir().unwrap();
    let run = |options: &[&str]| {
        let model = lenet();
        let digits = digits();
        let outcome = tilewright(dir.path(), &[&["run", &model, "--input", &digits][..], options].concat());
        assert_eq!(outcome.code, 0);
        outcome.stderr
    };
    let note = format!(
        "note: nothing of {0} can be offloaded: it computes in floats, but the accelerator computes in int8; make an \
         int8 model with tilewright quantize {0} --calibrate SAMPLES -o OUT.onnx\n",
        lenet()
    );
    assert_eq!(run(&["--device", "fsim"]), note);
    assert_eq!(run(&["--device", "cpu"]), "");
    assert_eq!(run(&["--device", "fsim", "--offload", "none"]), "");
}

/// `--preprocess` converts bytes to floats; axes of size 1 can be missing.
#[test]
fn bytes_are_scaled() {
    let dir = tempfile::tempdir().unwrap();
    let floats = npy::read(Path::new(&digits())).unwrap();
    let bytes = floats.to_f64().iter().map(|x| (x * 255.0).round() as u8).collect();
    npy::write(&dir.path().join("b.npy"), &Tensor::new(DType::U8, vec![32, 28, 28], bytes).unwrap()).unwrap();
    let method = ["--method", "min-max"];
    let (a, b) = (quantized(dir.path(), &method), {
        let arguments =
            ["quantize", &lenet(), "--calibrate", "b.npy", "--preprocess", "mean=0,scale=255", "-o", "q.onnx"];
        fine(dir.path(), &[&arguments[..], &method].concat())
    });
    assert_eq!(a, b);
    // `run` accepts the same arrays.
    let run = |input: &str, options: &[&str]| {
        let model = lenet();
        fine(
            dir.path(),
            &[&["run", &model, "--device", "cpu", "--output-dir", "out", "--input", input][..], options].concat(),
        );
        npy::read(&dir.path().join("out/logits.npy")).unwrap().to_f64()
    };
    let (real, scaled) = (run(&digits(), &[]), run("b.npy", &["--preprocess", "mean=0,scale=255"]));
    assert!(real.iter().zip(&scaled).all(|(a, b)| (a - b).abs() < 1e-3));
    let refusal = "arrays accept only --preprocess mean=M,scale=S; the other keys are for pictures";
    refused(dir.path(), &["run", &lenet(), "--input", "b.npy", "--preprocess", "crop=0.5"], refusal);
}

#[test]
fn what_does_not_fit_is_named_and_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path();
    let write = |name: &str, t: Tensor| npy::write(&path.join(name), &t).unwrap();
    write("wide.npy", Tensor::from_f32(vec![2, 1, 28, 29], &[0.0; 2 * 28 * 29]).unwrap());
    write("none.npy", Tensor::from_f32(vec![0, 1, 28, 28], &[]).unwrap());
    write("words.npy", Tensor::new(DType::I64, vec![1, 1, 28, 28], vec![0; 8 * 784]).unwrap());
    write("nan.npy", Tensor::from_f32(vec![1, 1, 28, 28], &[f32::NAN; 784]).unwrap());
    write("few.npy", Tensor::new(DType::U8, vec![3], vec![1; 3]).unwrap());
    write("large.npy", Tensor::new(DType::U8, vec![32], vec![10; 32]).unwrap());
    std::fs::write(path.join("text.npy"), "1 2 3").unwrap();
    std::fs::create_dir(path.join("empty")).unwrap();
    let (model, good) = (lenet(), digits());
    let wrong = |data: &str, message: &str| {
        refused(path, &["quantize", &model, "--calibrate", data, "-o", "q.onnx"], message);
    };
    let takes = "but the model needs f32 1x1x28x28, or a multiple of its first dimension";
    wrong("wide.npy", &format!("wide.npy: input input is f32 2x1x28x29, {takes}"));
    wrong("none.npy", &format!("none.npy: input input is f32 0x1x28x28, {takes}"));
    wrong("words.npy", &format!("words.npy: input input is i64 1x1x28x28, {takes}"));
    wrong(
        "nan.npy",
        &format!(
            "{model}: value input is not finite for calibration sample 0; leave that sample out, or look at the model with it"
        ),
    );
    wrong(
        "text.npy",
        "text.npy is not a usable NumPy file: it does not start with NumPy's magic bytes; \
         write it with numpy.save or numpy.savez",
    );
    wrong(
        "empty",
        "empty has no pictures; put .png, .jpg, .webp, .bmp or .gif files there, or give a .npy or .npz file",
    );
    std::fs::create_dir(path.join("broken")).unwrap();
    std::fs::write(path.join("broken/a.png"), "no picture").unwrap();
    let outcome = tilewright(path, &["quantize", &model, "--calibrate", "broken", "-o", "q.onnx"]);
    let expected = "error: broken/a.png is not a picture that can be read: ";
    assert!(outcome.code == 2 && outcome.stderr.starts_with(expected), "{}", outcome.stderr);
    refused(
        path,
        &["quantize", &model, "--calibrate", &good, "-o", "q.onnx", "--crops", "4"],
        &format!("--crops is for a folder of pictures, but {good} is not a folder"),
    );
    wrong("no.npy", "cannot read no.npy: No such file or directory (os error 2)");
    let labeled = |labels: &str, message: &str| {
        let data = ["--eval", &good, "--labels", labels];
        let arguments = ["quantize", &model, "--calibrate", &good, "-o", "q.onnx"];
        refused(path, &[&arguments[..], &data].concat(), message);
    };
    labeled("few.npy", "few.npy: 3 labels given for 32 answers; the label file must have one integer for each");
    labeled("large.npy", "large.npy: label 0 is 10, but the model's first output has 10 classes; use 0 to 9");
    let qdq = carried("lenet-mnist/model_qdq_perchannel.onnx");
    let outcome = tilewright(path, &["quantize", &qdq, "--calibrate", &good, "-o", "q.onnx"]);
    assert_eq!(outcome.code, 2);
    let expected = format!("error: {qdq}: the model is quantized already: node `");
    assert!(outcome.stderr.starts_with(&expected), "{}", outcome.stderr);
    refused(
        path,
        &["quantize", &model, "--calibrate", &good, "-o", "no/q.onnx"],
        "cannot write no/q.onnx: No such file or directory (os error 2)",
    );
    refused(
        path,
        &["quantize", &model, "--calibrate", &good, "-o", "q.onnx", "--percentile", "99"],
        "--percentile is for --method percentile",
    );
    refused(
        path,
        &["quantize", &model, "--calibrate", &good, "-o", "q.onnx", "--method", "percentile", "--percentile", "50"],
        "--percentile: attribute `percentile` must be above 50 and at most 100",
    );
    assert!(!path.join("q.onnx").exists() && !path.join("no").exists());
}

#[test]
fn files_that_would_replace_each_other_and_keys_for_pictures_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (model, samples) = (lenet(), digits());
    let refusal = |arguments: &[&str]| {
        let outcome = tilewright(dir.path(), &[&["quantize", &model, "--calibrate", &samples][..], arguments].concat());
        assert_eq!(outcome.code, 2, "{arguments:?}");
        assert!(std::fs::read_dir(dir.path()).unwrap().next().is_none(), "{arguments:?} left a file");
        outcome.stderr
    };
    assert!(
        refusal(&["-o", "a.onnx", "--report", "a.onnx"])
            .contains("--report and --output both name a.onnx; give two different files")
    );
    assert!(refusal(&["-o", &model]).contains("is the model itself; give another file"));
    assert!(refusal(&["-o", "a.tflite"]).contains("--output a.tflite has the wrong extension; the result is ONNX"));
    let error = refusal(&["-o", "a.onnx", "--preprocess", "fit=pad"]);
    assert!(error.contains("--preprocess fit is for pictures; arrays accept only mean and scale"), "{error}");
}
