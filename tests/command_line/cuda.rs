//! Code for a GPU: made anywhere, run where there is one.

use tilewright_runtime::cuda;

use super::{fine, refused, tilewright};

const LENET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/models/lenet-mnist/model_qdq_perchannel.onnx");

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
        "--precision is for a GPU; give --device cuda or --fallback cuda too",
    );
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
