//! Code for a GPU: it can be compiled anywhere, and runs if there is a GPU.

use std::path::Path;
use std::process::{Command, Stdio};

use tilewright_runtime::cuda;
use tilewright_testing::standin::{Library, StandIn};

use super::{Outcome, fine, refused, tilewright};

const LENET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/models/lenet-mnist/model_qdq_perchannel.onnx");
const FLOATS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/models/lenet-mnist/model.onnx");

#[test]
fn artifacts_for_a_gpu_are_made_without_one() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fine(dir, &["compile", LENET, "--offload", "none", "--fallback", "cuda", "-o", "gpu.tw"]);
    let text = fine(dir, &["inspect", "gpu.tw"]);
    assert!(text.contains("cuda   tw_") && !text.contains(": cpu    "), "{text}");
    refused(
        dir,
        &["compile", LENET, "--precision", "f16", "-o", "x.tw"],
        "--precision is for a GPU; add --device cuda or --fallback cuda",
    );
    refused(dir, &["bench", LENET, "--precision", "f16"], "--precision is for the device cuda; add cuda to --devices");
}

#[test]
fn a_machine_without_a_gpu_says_what_is_missing() {
    let Err(error) = cuda::available() else { return tilewright_testing::skip("this machine has a GPU") };
    let dir = tempfile::tempdir().unwrap();
    refused(dir.path(), &["run", LENET, "--device", "cuda"], &error.to_string());
    assert!(error.to_string().starts_with("device cuda is not available: "), "{error}");
    let doctor = tilewright(dir.path(), &["doctor"]).stdout;
    for name in ["cuda-driver", "nvrtc", "cublaslt", "gpu"] {
        assert!(doctor.lines().any(|line| line.split_whitespace().nth(1) == Some(name)), "{doctor}");
    }
}

#[test]
fn a_gpu_gives_what_the_cpu_gives() {
    if let Err(error) = cuda::available() {
        return tilewright_testing::skip(&format!("needs a GPU: {error}"));
    }
    let dir = tempfile::tempdir().unwrap();
    let outcome = tilewright(dir.path(), &["diff", LENET, "--a", "cpu", "--b", "cuda"]);
    assert_eq!(outcome.code, 0, "{}{}", outcome.stdout, outcome.stderr);
}

/// Calls the program with a stand-in for CUDA's libraries.
fn stood_in(stand_in: &StandIn, dir: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Outcome {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tilewright"));
    stand_in.apply(&mut command);
    command.args(arguments).current_dir(dir).stdin(Stdio::null()).envs(variables.iter().copied());
    Outcome::of(command.output().expect("the program starts"))
}

/// Like that, and the program must succeed: no call was wrong, and all resources are released at the end.
#[track_caller]
fn fine_with(stand_in: &StandIn, dir: &Path, arguments: &[&str]) -> String {
    let outcome = stood_in(stand_in, dir, arguments, &[]);
    assert_eq!((outcome.code, outcome.stderr.contains("stand-in")), (0, false), "{}{}", outcome.stdout, outcome.stderr);
    outcome.stdout
}

fn arrays(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut list: Vec<_> = entries
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).unwrap()))
        .collect();
    list.sort();
    list
}

#[test]
fn a_whole_model_runs_through_the_driver_and_stays_in_its_memory() {
    let stand_in = StandIn::new(&[Library::Driver, Library::Nvrtc]);
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fine(dir, &["run", LENET, "--device", "cpu", "--output-dir", "cpu", "--input", "random"]);
    fine_with(&stand_in, dir, &["run", LENET, "--device", "cuda", "--output-dir", "cuda", "--input", "random"]);
    let (on_cpu, on_gpu) = (arrays(&dir.join("cpu")), arrays(&dir.join("cuda")));
    assert!(!on_cpu.is_empty() && on_cpu == on_gpu, "the output is not the CPU's");
    let calls = stand_in.calls();
    let text = calls.join("\n");
    let at = |what: &str| (0..calls.len()).filter(|&i| calls[i].starts_with(what)).collect::<Vec<usize>>();
    // All constants and the input are copied to the GPU before the first kernel. After the last one, only the output is
    // copied back.
    let (launches, there, back) = (at("launch"), at("to the GPU"), at("to the host"));
    assert!(launches.len() > 4 && back.len() == 1, "{text}");
    assert!(there.iter().max() < launches.iter().min() && launches.iter().max() < back.first(), "{text}");
    // One allocation for everything, and no synchronization between kernels.
    assert_eq!(at("take").len(), 1, "{text}");
    let waits = at("wait").into_iter().filter(|w| launches.first() < Some(w) && Some(w) < launches.last());
    assert_eq!(waits.count(), 0, "{text}");
    // A dump copies every value to the host, bit for bit.
    fine(dir, &["run", LENET, "--device", "cpu", "--dump-tensors", "all_cpu", "--input", "random"]);
    fine_with(&stand_in, dir, &["run", LENET, "--device", "cuda", "--dump-tensors", "all_cuda", "--input", "random"]);
    let npy =
        |folder: &str| arrays(&dir.join(folder)).into_iter().filter(|f| f.0.ends_with(".npy")).collect::<Vec<_>>();
    let (a, b) = (npy("all_cpu"), npy("all_cuda"));
    let common: Vec<_> = a.iter().filter(|x| b.iter().any(|y| y.0 == x.0)).collect();
    assert!(common.len() > 2 && common.iter().all(|x| b.contains(x)), "{} of {}", common.len(), b.len());
}

#[test]
fn an_accelerator_shares_a_model_with_a_gpu() {
    let stand_in = StandIn::new(&[Library::Driver, Library::Nvrtc]);
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let run = ["--input", "random", "--output-dir"];
    fine(dir, &[&["run", LENET][..], &run, &["alone"]].concat());
    fine_with(&stand_in, dir, &[&["run", LENET, "--fallback", "cuda"][..], &run, &["shared"]].concat());
    assert!(arrays(&dir.join("alone")) == arrays(&dir.join("shared")), "the output is another");
    assert!(stand_in.calls().iter().any(|call| call.starts_with("launch")), "nothing ran on the GPU");
}

#[test]
fn floats_of_16_bits_take_half_of_the_memory() {
    let stand_in = StandIn::new(&[Library::Driver, Library::Nvrtc]);
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let mut taken = Vec::new();
    for (precision, folder) in [("f32", "wide"), ("f16", "narrow")] {
        let arguments =
            ["run", FLOATS, "--device", "cuda", "--precision", precision, "--input", "random", "--output-dir"];
        fine_with(&stand_in, dir, &[&arguments[..], &[folder]].concat());
        let calls = stand_in.calls();
        let bytes = calls.iter().find_map(|call| call.strip_prefix("take ")).expect("it takes memory");
        taken.push(bytes.parse::<f64>().unwrap());
    }
    assert!(taken[1] < 0.6 * taken[0], "{taken:?}");
    let read = |folder: &str| {
        let list = arrays(&dir.join(folder));
        let [(name, _)] = &list[..] else { panic!("it has one output") };
        let tensor = tilewright_runtime::npy::read(&dir.join(folder).join(name)).unwrap();
        (0..10).map(|i| tensor.get_f64(i)).collect::<Vec<f64>>()
    };
    let (wide, narrow) = (read("wide"), read("narrow"));
    let largest = wide.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    assert!(wide.iter().zip(&narrow).all(|(a, b)| (a - b).abs() < 0.02 * largest), "{wide:?} {narrow:?}");
    assert_ne!(wide, narrow);
}

#[test]
fn benches_and_doctor_see_the_stand_in_and_a_gpu_that_is_too_small_is_an_error() {
    let stand_in = StandIn::new(&[Library::Driver, Library::Nvrtc]);
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let arguments = ["bench", LENET, "--devices", "cpu,cuda", "--repetitions", "3", "--json"];
    let report = fine_with(&stand_in, dir, &arguments);
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let on_gpu = &report["devices"]["cuda"];
    assert_eq!(on_gpu["outputs_equal_cpu"], true, "{report}");
    let layers = on_gpu["layers"].as_array().unwrap();
    assert!(!layers.is_empty() && layers.iter().all(|l| l["latency_ms"]["median"].is_number()), "{on_gpu}");
    let narrow = ["bench", FLOATS, "--devices", "cuda", "--precision", "f16", "--repetitions", "1", "--json"];
    let narrow: serde_json::Value = serde_json::from_str(&fine_with(&stand_in, dir, &narrow)).unwrap();
    assert_eq!((&narrow["gpu_floats"], &narrow["devices"]["cuda"]["outputs_equal_cpu"]), (&"f16".into(), &true.into()));
    // It calls tools that cache their output in the home folder.
    let doctor = stood_in(&stand_in, dir, &["doctor"], &[("XDG_CACHE_HOME", "")]);
    assert!(doctor.stdout.contains("stand-in for tests (no GPU)"), "{}{}", doctor.stdout, doctor.stderr);
    let small = stood_in(
        &stand_in,
        dir,
        &["run", LENET, "--device", "cuda", "--input", "random"],
        &[("TILEWRIGHT_STANDIN_BYTES", "4096")],
    );
    assert_eq!(small.code, 2, "{}", small.stderr);
    assert!(
        small.stderr.starts_with("error: allocating ") && small.stderr.contains("OUT_OF_MEMORY"),
        "{}",
        small.stderr
    );
    let no_compiler = StandIn::new(&[Library::Driver]);
    let missing = stood_in(&no_compiler, dir, &["run", LENET, "--device", "cuda", "--input", "random"], &[]);
    assert_eq!(missing.code, 2, "{}", missing.stderr);
    assert!(missing.stderr.contains("nvrtc is not installed"), "{}", missing.stderr);
}

/// A driver of CUDA 11.0 with NVRTC 11.1 and cuBLASLt 11.0 can run and time kernels and products: no later function is
/// needed.
#[test]
fn the_oldest_libraries_run_kernels_and_time_them() {
    if cuda::Library::ALL.into_iter().any(cuda::Library::is_present) {
        return tilewright_testing::skip("this machine has CUDA's own libraries, which are found first");
    }
    let stand_in = StandIn::oldest(&[Library::Driver, Library::Nvrtc, Library::CublasLt]);
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let arguments = ["bench", LENET, "--devices", "cpu,cuda", "--repetitions", "1", "--warm-up", "0", "--json"];
    let report: serde_json::Value = serde_json::from_str(&fine_with(&stand_in, dir, &arguments)).unwrap();
    let on_gpu = &report["devices"]["cuda"];
    assert_eq!(on_gpu["outputs_equal_cpu"], true, "{report}");
    let layers = on_gpu["layers"].as_array().unwrap();
    let timed = |layer: &serde_json::Value| layer["latency_ms"]["median"].as_f64() > Some(0.0);
    assert!(layers.iter().any(timed), "{on_gpu}");
    let calls = stand_in.calls();
    for call in ["launch", "product"] {
        assert!(calls.iter().any(|c| c.starts_with(call)), "{call}: {}", calls.join("\n"));
    }
}

#[test]
fn products_are_cublaslts_where_it_is_installed() {
    let stand_in = StandIn::new(&[Library::Driver, Library::Nvrtc, Library::CublasLt]);
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    // The same artifact runs with and without the library.
    for (model, precision, artifact) in [(LENET, "f32", "q.twa"), (FLOATS, "f32", "f.twa"), (FLOATS, "f16", "h.twa")] {
        let arguments = ["compile", model, "--offload", "none", "--fallback", "cuda", "--precision", precision, "-o"];
        fine(dir, &[&arguments[..], &[artifact]].concat());
    }
    let text = fine(dir, &["inspect", "q.twa"]);
    assert!(
        text.contains(", or with cuBLASLt: ") && text.contains("cuBLASLt computes its product if it is installed"),
        "{text}"
    );
    for (artifact, kind) in [("q.twa", 3), ("f.twa", 0), ("h.twa", 2)] {
        let run = |folder: &str, wanted: &str| {
            let arguments =
                ["run", artifact, "--device", "cuda", "--input", "random", "--json", "--output-dir", folder];
            let outcome = stood_in(&stand_in, dir, &arguments, &[("TILEWRIGHT_CUBLASLT", wanted)]);
            let calm = !outcome.stderr.contains("stand-in");
            assert_eq!((outcome.code, calm), (0, true), "{artifact}: {}", outcome.stderr);
            let report: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
            let by = report["steps"].as_array().unwrap().iter().filter(|step| step["by"] == "cublaslt").count();
            let calls = stand_in.calls();
            let products =
                calls.iter().filter(|c| c.starts_with("product") && c.ends_with(&format!("type {kind}"))).count();
            (by, products, calls.iter().filter(|call| call.starts_with("choose")).count())
        };
        let (by, products, choices) = run("with", "1");
        assert!(by > 0 && by == products && (1..=products).contains(&choices), "{artifact}: {by} {products} {choices}");
        assert_eq!(run("without", "0"), (0, 0, 0), "{artifact}");
        let (with, without) = (arrays(&dir.join("with")), arrays(&dir.join("without")));
        let [(name, _)] = &with[..] else { panic!("it has one output") };
        if kind == 3 {
            assert!(with == without, "integers differ");
        }
        let read = |folder: &str| tilewright_runtime::npy::read(&dir.join(folder).join(name)).unwrap();
        let (a, b) = (read("with"), read("without"));
        let most = if kind == 2 { 5e-3 } else { 1e-5 };
        let largest = (0..10).map(|i| b.get_f64(i).abs()).fold(0.0, f64::max);
        let apart = (0..10).map(|i| (a.get_f64(i) - b.get_f64(i)).abs()).fold(0.0, f64::max);
        assert!(apart <= most * largest, "{artifact}: {apart} of {largest}");
    }
}
