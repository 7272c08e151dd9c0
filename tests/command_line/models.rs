//! `run`, `compile` and `inspect` of models and artifacts.

use std::path::{Path, PathBuf};
use std::process::Command;

use tilewright_runtime::tensor::Tensor;

use crate::{fine, refused, tilewright};

pub fn carried(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/models").join(name);
    path.to_str().expect("the path is text").to_string()
}

pub fn lenet() -> String {
    carried("lenet-mnist/model_qdq_perchannel.onnx")
}

pub fn digits() -> String {
    carried("digits/digits.npy")
}

/// A folder with lenet compiled for 1x16x16 as `l.twa`.
fn compiled() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fine(dir.path(), &["compile", &lenet(), "-o", "l.twa"]);
    dir
}

pub fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect("standard output is one JSON object")
}

#[test]
fn a_model_and_its_artifact_give_the_same_outputs_and_figures() {
    let dir = compiled();
    let labels = carried("digits/labels.npy");
    let outputs = |file: &str, out: &str| {
        let arguments = ["run", file, "--device", "fsim", "--input", &digits(), "--labels", &labels];
        let text = fine(dir.path(), &[&arguments[..], &["--output-dir", out, "--json"]].concat());
        (json(&text), std::fs::read(dir.path().join(out).join("logits.npy")).unwrap())
    };
    let (report, bytes) = outputs(&lenet(), "a");
    assert_eq!(outputs("l.twa", "b").1, bytes);
    assert_eq!(bytes.len(), 128 + 32 * 10 * 4);
    assert_eq!(report["device"], "fsim");
    assert_eq!(report["runs"], 32);
    assert_eq!(report["macs"], 32 * 516_160);
    assert_eq!(report["cycles"], serde_json::Value::Null);
    assert_eq!(report["utilization"], serde_json::Value::Null);
    assert_eq!(report["accuracy"], 1.0);
    assert_eq!(report["dram"], "latency=64,bandwidth=8,shared=true,row=0,burst=0");
    assert!(report["wall_s"].as_f64().unwrap() > 0.0);
    assert!(report["offloaded_macs_fraction"].as_f64().unwrap() >= 0.99);
    let nodes = report["nodes"].as_array().unwrap();
    assert!(nodes.iter().any(|node| node["op"] == "conv2d" && node["where"] == "accel"));
    assert!(
        nodes
            .iter()
            .all(|node| !node["name"].as_str().unwrap().is_empty() && !node["why"].as_str().unwrap().is_empty())
    );
    assert_eq!(report["outputs"][0]["name"], "logits");
    assert_eq!(report["outputs"][0]["shape"], serde_json::json!([32, 10]));
}

#[test]
fn the_rtl_counts_cycles_and_heeds_the_memory_model() {
    let dir = compiled();
    let cycles = |dram: &str| {
        let text =
            fine(dir.path(), &["run", "l.twa", "--device", "rtl", "--input", &digits(), "--dram", dram, "--json"]);
        json(&text)["cycles"].as_u64().unwrap()
    };
    assert!(cycles("latency=10") < cycles("latency=400"));
}

#[test]
fn every_level_and_no_offload_give_the_same_outputs() {
    let dir = tempfile::tempdir().unwrap();
    let outputs = |options: &[&str]| {
        let arguments = ["run", &lenet(), "--input", &digits(), "--output-dir", "out", "--device", "fsim"];
        fine(dir.path(), &[&arguments[..], options].concat());
        std::fs::read(dir.path().join("out/logits.npy")).unwrap()
    };
    let expected = outputs(&["-O2"]);
    for options in [&["-O1"][..], &["-O3"], &["--offload", "none"]] {
        assert_eq!(outputs(options), expected, "{options:?}");
    }
}

#[test]
fn inspect_and_disasm_read_artifacts() {
    let dir = compiled();
    let text = fine(dir.path(), &["inspect", "l.twa"]);
    assert!(text.contains("\nhardware   1x16x16 ("), "{text}");
    assert!(text.contains("\ninput      input: f32 1x1x28x28\n"), "{text}");
    let manifest = json(&fine(dir.path(), &["inspect", "l.twa", "--json"]));
    assert_eq!(manifest["hardware"]["name"], "1x16x16");
    let program = fine(dir.path(), &["disasm", "l.twa"]);
    assert!(program.lines().any(|line| line.starts_with("gemm ")), "{program}");
    std::fs::write(dir.path().join("p.tw"), program).unwrap();
    fine(dir.path(), &["asm", "p.tw", "-o", "p.bin"]);
    let graph = fine(dir.path(), &["inspect", &lenet()]);
    assert!(graph.contains("quantize"), "{graph}");
}

#[test]
fn the_graph_is_shown_after_every_pass_and_every_operator_is_explained() {
    let dir = tempfile::tempdir().unwrap();
    let outcome = tilewright(dir.path(), &["compile", &lenet(), "-o", "l.twa", "--dump-ir", "--explain"]);
    assert_eq!(outcome.code, 0);
    assert!(outcome.stderr.starts_with("// import\n"));
    assert!(outcome.stderr.matches("\n// ").count() >= 5);
    assert!(outcome.stdout.starts_with("node ") && outcome.stdout.contains("the accelerator has no quantize"));
}

#[test]
fn inputs_are_made_up_where_that_is_asked_for() {
    let dir = compiled();
    let run = |options: &[&str]| {
        let text = fine(dir.path(), &[&["run", "l.twa", "--json", "--input", "random"][..], options].concat());
        serde_json::from_str::<serde_json::Value>(&text).unwrap()["outputs"].clone()
    };
    assert_eq!(run(&[]), run(&[]));
    // The given inputs are used, so no input is filled.
    let given = fine(dir.path(), &["run", "l.twa", "--json", "--input", &digits()]);
    let given: serde_json::Value = serde_json::from_str(&given).unwrap();
    assert_eq!(run(&["--input", &digits()]), given["outputs"]);
    assert_ne!(run(&[]), given["outputs"]);
}

#[test]
fn inputs_that_do_not_fit_are_named() {
    let dir = compiled();
    let run = |options: &[&str], message: &str| {
        refused(dir.path(), &[&["run", "l.twa"][..], options].concat(), message);
    };
    run(&[], "input input (f32 1x1x28x28) is missing; give it with --input input=FILE, or use --input random");
    run(&["--input", &format!("image={}", digits())], "the model has no input image; it has input");
    let labels = carried("digits/labels.npy");
    let takes = "input input is i64 32, but the model needs f32 1x1x28x28, or a multiple of its first dimension";
    run(&["--input", &labels], &format!("{labels}: {takes}"));
    run(&["--input", "no.npy"], "cannot read no.npy: No such file or directory (os error 2)");
    std::fs::write(dir.path().join("text.npy"), "1 2 3").unwrap();
    run(
        &["--input", "text.npy"],
        "text.npy is not a usable NumPy file: it does not start with NumPy's magic bytes; \
         write it with numpy.save or numpy.savez",
    );
    run(
        &["--input", &digits(), "--labels", &digits()],
        &format!("{}: 25088 labels given for 32 answers; the label file must have one integer for each", digits()),
    );
    run(&["--step", "--input", &digits()], "--step is for programs, but l.twa is a model");
    let bad = |name: &str, labels: &Tensor, message: &str| {
        tilewright_runtime::npy::write(&dir.path().join(name), labels).unwrap();
        run(&["--input", &digits(), "--labels", name], &format!("{name}: {message}"));
    };
    bad(
        "float.npy",
        &Tensor::from_f32(vec![32], &[0.0; 32]).unwrap(),
        "the labels are f32; the label file must have integers, of type i8 to i64 or u8 to u64",
    );
    let mut values = [9; 32];
    values[31] = 10;
    bad(
        "far.npy",
        &Tensor::from_i8(vec![32], &values).unwrap(),
        "label 31 is 10, but the model's first output has 10 classes; use 0 to 9",
    );
}

#[test]
fn options_that_would_change_nothing_are_refused() {
    let dir = compiled();
    let run = |options: &[&str], message: &str| {
        refused(dir.path(), &[&["run", "l.twa"][..], options].concat(), message);
    };
    let why = "for compiling, but l.twa is already compiled; compile the model again with it";
    run(&["--offload", "none"], &format!("--offload is {why}"));
    run(&["-O2", "--dump-ir", "--bind", "n=1"], &format!("-O, --dump-ir and --bind are {why}"));
    refused(
        dir.path(),
        &["disasm", "l.twa", "--hw", "1x16x16"],
        "--hw is for streams, but l.twa is an artifact, which contains its configuration",
    );
    std::fs::copy(lenet(), dir.path().join("l.onnx")).unwrap();
    refused(
        dir.path(),
        &["inspect", "l.onnx", "--json"],
        "--json is for artifacts, but l.onnx is a model; compile it first",
    );
    run(&["--data", "0=x", "--read", "0:1=x"], "--data and --read are for programs, but l.twa is a model");
}

/// The device is opened last, because that can mean a build: an output that cannot be written is an error before that.
#[test]
fn outputs_that_cannot_be_written_are_refused_before_the_run() {
    let dir = compiled();
    let run = |out: &str, message: &str| {
        let options = ["--input", &digits(), "--output-dir", out, "--device", "rtl"];
        refused(dir.path(), &[&["run", "l.twa"][..], &options].concat(), message);
    };
    run("l.twa", "--output-dir l.twa is a file; name a folder, or one to create");
    run("l.twa/out", "--output-dir l.twa/out cannot be written: Not a directory (os error 20)");
    std::fs::create_dir_all(dir.path().join("o/logits.npy")).unwrap();
    run("o", "--output-dir o cannot be written: o/logits.npy is not a plain file");
    assert_eq!(std::fs::read_dir(dir.path().join("o")).unwrap().count(), 1);
}

#[test]
fn models_that_cannot_be_read_are_named_and_leave_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let whole = std::fs::read(lenet()).unwrap();
    std::fs::write(dir.path().join("cut.onnx"), &whole[..whole.len() / 2]).unwrap();
    std::fs::write(dir.path().join("x.bin"), [0xff, 0x00, 0xfe]).unwrap();
    std::fs::write(dir.path().join("x.tflite"), [0xff, 0x00, 0xfe]).unwrap();
    let message = "cut.onnx is not a usable model: it is no ONNX file: \
                   failed to decode Protobuf message: ModelProto.graph: buffer underflow";
    refused(dir.path(), &["run", "cut.onnx"], message);
    refused(dir.path(), &["compile", "cut.onnx", "-o", "out.twa"], message);
    // A file's name does not decide what it is.
    for file in ["x.bin", "x.tflite"] {
        let kind =
            "a file of unknown kind; models are read from ONNX (.onnx), PyTorch (.pt2) or TFLite (.tflite) files";
        let message = format!("{file} is not a usable model: it looks like {kind}");
        refused(dir.path(), &["compile", file, "-o", "out.twa"], &message);
    }
    refused(
        dir.path(),
        &["compile", &lenet(), "-o", "out.twa", "--bind", "batch=2"],
        &format!("{} has no open dimension batch; it has none", lenet()),
    );
    assert!(!dir.path().join("out.twa").exists());
    // The path of the artifact is checked first.
    std::fs::copy(lenet(), dir.path().join("own.onnx")).unwrap();
    let message = "--output ./own.onnx is the model itself; give another file";
    refused(dir.path(), &["compile", "own.onnx", "-o", "./own.onnx"], message);
    assert_eq!(std::fs::read(lenet()).unwrap(), std::fs::read(dir.path().join("own.onnx")).unwrap());
    let message = "cannot write no/out.twa: No such file or directory (os error 2)";
    refused(dir.path(), &["compile", "cut.onnx", "-o", "no/out.twa"], message);
}

#[test]
fn files_that_are_no_model_are_told_by_what_they_look_like() {
    let dir = tempfile::tempdir().unwrap();
    let formats = "models are read from ONNX (.onnx), PyTorch (.pt2) or TFLite (.tflite) files, artifacts from .twa files, programs \
                   for the accelerator from .tw files, or from any with --program";
    for (file, bytes, kind) in [
        ("README.md", &b"# Words\n\nload it\n"[..], "a text"),
        ("empty", b"", "an empty file"),
        ("net.pt", b"\x80\x02}q\0.", "a Python pickle, as PyTorch writes"),
        ("x.bin", &[0xff, 0, 0xfe], "a file of unknown kind"),
    ] {
        std::fs::write(dir.path().join(file), bytes).unwrap();
        refused(dir.path(), &["run", file], &format!("{file} looks like {kind}; {formats}"));
    }
    std::fs::write(dir.path().join("page.onnx"), "<!doctype html>\n").unwrap();
    refused(dir.path(), &["run", "page.onnx"], &format!("page.onnx looks like an HTML or XML document; {formats}"));
    let message = "page.onnx is not a usable model: it looks like an HTML or XML document; models are read from ONNX \
         (.onnx), PyTorch (.pt2) or TFLite (.tflite) files";
    refused(dir.path(), &["compile", "page.onnx", "-o", "out.twa"], message);
    // A model can have any file name.
    std::fs::copy(lenet(), dir.path().join("0a1b2c")).unwrap();
    assert!(fine(dir.path(), &["run", "0a1b2c", "--input", "random"]).contains("logits"));
    // A program can have any file name if an option says what it is.
    std::fs::write(dir.path().join("copy.txt"), "load mem=out rows=2 row_bytes=16 row_stride=16\n").unwrap();
    let text = fine(dir.path(), &["run", "copy.txt", "--program"]);
    assert!(text.contains("retired 1 load"), "{text}");
    refused(
        dir.path(),
        &["run", &lenet(), "--program"],
        &format!("--program is for programs, but {} is a model", lenet()),
    );
    // Long lists of errors end with a count.
    std::fs::write(dir.path().join("words.tw"), "word\n".repeat(253)).unwrap();
    let outcome = tilewright(dir.path(), &["run", "words.tw"]);
    assert_eq!(outcome.stderr.matches("is not an instruction").count(), 20);
    assert!(outcome.stderr.ends_with("\nand 233 more\n"), "{}", outcome.stderr);
}

#[test]
fn artifacts_that_do_not_fit_are_refused() {
    let dir = compiled();
    let whole = std::fs::read(dir.path().join("l.twa")).unwrap();
    let mut bytes = whole.clone();
    bytes[whole.len() / 2] ^= 1;
    std::fs::write(dir.path().join("damaged.twa"), &bytes).unwrap();
    let mut bytes = whole.clone();
    bytes[8] += 2;
    std::fs::write(dir.path().join("newer.twa"), &bytes).unwrap();
    for file in ["damaged.twa", "newer.twa"] {
        for command in ["run", "inspect", "disasm"] {
            let outcome = tilewright(dir.path(), &[command, file]);
            assert_eq!(outcome.code, 2);
            let start = format!("error: {file} ");
            assert!(outcome.stderr.starts_with(&start), "{}", outcome.stderr);
        }
    }
    refused(
        dir.path(),
        &["run", "newer.twa"],
        "newer.twa has format version 3, but this program has 2; compile the model again with this program",
    );
    // Reported before the simulator of another configuration is built.
    let other = ["run", "l.twa", "--hw", "4x16x16", "--device", "rtl", "--waves", "w.fst", "--input", &digits()];
    assert_eq!(tilewright(dir.path(), &other).code, 2);
    assert!(!dir.path().join("w.fst").exists());
    let outcome = tilewright(dir.path(), &["run", "l.twa", "--hw", "1x8x8", "--input", &digits()]);
    assert_eq!(outcome.code, 2);
    assert!(
        outcome.stderr.starts_with("error: l.twa was compiled for configuration 1x16x16 (")
            && outcome.stderr.ends_with(
                "; run it without --hw to use its own configuration, or compile the model again for the device's configuration\n"
            ),
        "{}",
        outcome.stderr
    );
    let outcome = tilewright(dir.path(), &["run", "l.twa", "--device", "cpu", "--input", &digits()]);
    assert_eq!(outcome.code, 2);
    assert!(
        outcome.stderr.ends_with(
            "runs on an accelerator; give a device with --device, or compile the model with --offload none\n"
        )
    );
}

#[test]
fn a_missing_tool_is_named() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("p.tw"), "load\n").unwrap();
    let output = Command::new(PathBuf::from(env!("CARGO_BIN_EXE_tilewright")))
        .args(["run", "p.tw", "--device", "rtl"])
        .env("PATH", dir.path())
        .current_dir(dir.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "error: verilator: is not installed; install Verilator 5.006 or newer (apt-get install verilator), \
         or use --device fsim\n"
    );
}

#[test]
fn the_worst_stalls_of_a_model_are_the_same_on_the_cycle_model_and_the_design() {
    let dir = tempfile::tempdir().unwrap();
    let stalls = |device: &str| {
        let arguments = ["run", &lenet(), "--device", device, "--input", &digits(), "--top-stalls", "20"];
        json(&fine(dir.path(), &[&arguments[..], &["--json"]].concat()))["stalls"].clone()
    };
    let csim = stalls("csim");
    let worst = csim["worst"].as_array().unwrap();
    assert_eq!(worst.len(), 20);
    assert!(worst.windows(2).all(|pair| pair[0]["cycles"].as_u64() >= pair[1]["cycles"].as_u64()));
    // Nodes of the model, and the units that gave the awaited tokens.
    assert!(worst.iter().all(|stall| stall["layer"].as_str().unwrap().starts_with('/')), "{csim}");
    assert!(worst.iter().any(|stall| !stall["tokens_of"].as_array().unwrap().is_empty()), "{csim}");
    assert_eq!(csim, stalls("rtl"));
}

#[test]
fn a_network_without_products_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let model = carried("tflite-ops/tanh.tflite");
    let run = ["run", &model, "--input", "random", "--device", "csim"];
    let text = fine(dir.path(), &run);
    assert!(text.contains("\nMACs          0 (the network has no products)\n") && !text.contains('%'), "{text}");
    let report = json(&fine(dir.path(), &[&run[..], &["--json"]].concat()));
    assert!(
        report["cycles"].is_u64() && report["utilization"].is_null() && report["offloaded_macs_fraction"].is_null()
    );
    fine(dir.path(), &["compile", &model, "-o", "t.twa"]);
    let page = fine(dir.path(), &["inspect", "t.twa"]);
    assert!(page.contains("\nMACs       0 a run: the network has no products\n"), "{page}");
}

#[test]
fn a_model_is_compiled_for_values_of_its_inputs() {
    let dir = tempfile::tempdir().unwrap();
    let case = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/16-values-of-inputs");
    let file = |name: &str| case.join(name).to_str().unwrap().to_string();
    let (model, axes) = (file("model.onnx"), format!("axes={}", file("input_1.npy")));
    let x = format!("x={}", file("input_0.npy"));
    let (shape, scales) = (format!("shape={}", file("input_2.npy")), format!("scales={}", file("input_3.npy")));
    let inputs = ["--input", &x, "--input", &axes, "--input", &shape, "--input", &scales];
    // Data at hand are enough to run it, and a compiled model has its values.
    fine(dir.path(), &[&["run", &model, "--device", "cpu", "--output-dir", "a"], &inputs[..]].concat());
    let values = ["--value", "axes=-1", "--value", "shape=1,1,4,-1", "--value", &scales];
    fine(dir.path(), &[&["compile", &model, "--offload", "none", "-o", "m.twa"], &values[..]].concat());
    fine(dir.path(), &[&["run", "m.twa", "--device", "cpu", "--output-dir", "b"], &inputs[..]].concat());
    let read = |folder: &str| std::fs::read(dir.path().join(folder).join("y.npy")).unwrap();
    assert_eq!(read("a"), read("b"));

    let refused = |values: &[&str], message: &str| {
        refused(dir.path(), &[&["compile", &model, "-o", "n.twa"], values].concat(), message);
    };
    let node = format!("{model}: node `s` (ReduceSum): operand 1, `axes`, must be a constant");
    let remedy = "it follows from the input `axes`, and the model can be compiled for one value: --value axes=NUMBERS";
    refused(&[], &format!("{node}; {remedy}"));
    let neither = "--value axes=some: it is neither numbers with commas between them nor a .npy file";
    refused(&["--value", "axes=some"], neither);
    refused(&["--value", "axes"], "--value axes is not of the form INPUT=NUMBERS");
    let given = "has an input axes of i64[1], which the value given for it";
    refused(&["--value", "axes=1,2"], &format!("{model} {given}, i64[2], does not suit"));
    let other = format!("axes={}", file("input_0.npy"));
    refused(&["--value", &other], &format!("{model} {given}, f32[2,3,4], does not suit"));
    let twice = "--value gives axes two values; give it one";
    refused(&["--value", "axes=1", "--value", "axes=1"], twice);
    assert!(!dir.path().join("n.twa").exists());
}

#[test]
fn regions_are_listed_and_have_no_code_in_c() {
    let dir = tempfile::tempdir().unwrap();
    let case = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/16-loop-until/model.onnx");
    let model = case.to_str().unwrap();
    fine(dir.path(), &["compile", model, "-o", "m.twa"]);
    let text = fine(dir.path(), &["inspect", "m.twa"]);
    assert!(text.contains("MACs       48 a run, 0.00 % on the accelerator"), "{text}");
    assert!(
        text.contains("step 0     y: loop   a region, until its condition is false\n  step 0     y/n: cpu"),
        "{text}"
    );
    let message = "step y repeats or chooses a part of the model, for which only artifacts have code; compile it with \
                   --emit artifact, so or wasm";
    refused(dir.path(), &["compile", model, "--emit", "c", "-o", "m"], message);
}
