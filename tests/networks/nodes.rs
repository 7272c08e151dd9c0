//! The node tests of ONNX compiled for the CPU, with all operands as inputs of the network.

use std::path::{Path, PathBuf};
use std::process::Command;

use tilewright::device::{self, DeviceKind, Extras};
use tilewright::model::{self, Offload, Options, Sizes};
use tilewright_compiler::frontend::onnx::read_tensor;
use tilewright_hw::config::HwConfig;
use tilewright_runtime::registry::Registry;
use tilewright_runtime::session::Session;
use tilewright_runtime::tensor::{Tensor, near};

/// Result of a case.
enum Outcome {
    Right,
    /// The importer rejects it, or an element type of an operand or result is not supported; with the reason.
    Refused(String),
    Wrong(String),
}

/// Reasons for rejected cases, each with the number of cases.
const REFUSED: &[(&str, usize)] = &[
    ("must be a constant", 134),
    ("element type", 2),
    ("must have one or two dimensions in addition to batch and channels", 1),
    ("`training_mode` of 1 is not supported", 2),
    ("is a sequence", 2),
];

fn tensors(case: &Path, kind: &str) -> Result<Vec<Tensor>, String> {
    let path = |i: usize| case.join(format!("test_data_set_0/{kind}_{i}.pb"));
    let files = (0..).map(path).take_while(|p| p.exists());
    files.map(|p| Ok(Tensor::from(&read_tensor(&std::fs::read(p).unwrap())?))).collect()
}

fn run(case: &Path, config: &HwConfig) -> Outcome {
    let graph = match model::import(&case.join("model.onnx"), Sizes::default()) {
        Ok(graph) => graph,
        Err(e) => return Outcome::Refused(e.to_string()),
    };
    let (inputs, expected) = match (tensors(case, "input"), tensors(case, "output")) {
        (Ok(inputs), Ok(expected)) => (inputs, expected),
        (Err(e), _) | (_, Err(e)) => return Outcome::Refused(e),
    };
    let options = Options { offload: Offload::None, ..Options::new(config) };
    let artifact = match model::build(graph, &options, &mut |_, _| {}) {
        Ok(artifact) => artifact,
        Err(e) => return Outcome::Wrong(format!("does not compile: {e}")),
    };
    let device = device::open(DeviceKind::CPU, config, Extras::default(), &|_| {}).unwrap();
    let mut session = match Session::new(artifact, &Registry::new(), device) {
        Ok(session) => session,
        Err(e) => return Outcome::Wrong(format!("does not load: {e}")),
    };
    let found = match session.run(&inputs) {
        Ok((found, _)) => found,
        Err(e) => return Outcome::Wrong(format!("does not run: {e}")),
    };
    let half = ["float16", "FLOAT16", "fp16"].iter().any(|h| case.to_string_lossy().contains(h));
    let most = if half { 1e-2 } else { 1e-4 };
    if found.len() != expected.len() {
        return Outcome::Wrong(format!("{} outputs, expected {}", found.len(), expected.len()));
    }
    for (f, e) in found.iter().zip(&expected) {
        if (f.dtype, &f.shape) != (e.dtype, &e.shape) {
            return Outcome::Wrong(format!("{:?} {:?}, expected {:?} {:?}", f.dtype, f.shape, e.dtype, e.shape));
        }
        if !f.to_f64().iter().zip(&e.to_f64()).all(|(&x, &y)| near(x, y, most)) {
            return Outcome::Wrong(format!("{:?}, expected {:?}", f.to_f64(), e.to_f64()));
        }
    }
    Outcome::Right
}

#[test]
fn node_tests_give_their_results_on_the_cpu() {
    let Some(archive) = tilewright_testing::model("onnx-node-core.tar.xz") else { return };
    let folder = tempfile::tempdir().unwrap();
    let status = Command::new("tar").arg("xf").arg(&archive).arg("-C").arg(folder.path()).status().unwrap();
    assert!(status.success(), "tar cannot read {}", archive.display());
    let entries = std::fs::read_dir(folder.path().join("onnx-node-core")).unwrap();
    let mut cases: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
    cases.sort();
    let config = HwConfig::load("1x16x16").unwrap();
    let (mut right, mut refused, mut wrong) = (0, vec![0; REFUSED.len()], Vec::new());
    for case in &cases {
        match run(case, &config) {
            Outcome::Right => right += 1,
            Outcome::Refused(reason) => match REFUSED.iter().position(|(part, _)| reason.contains(part)) {
                Some(i) => refused[i] += 1,
                None => wrong.push(format!("{}: refused: {reason}", case.file_name().unwrap().to_string_lossy())),
            },
            Outcome::Wrong(e) => {
                let text: String = e.chars().take(300).collect();
                wrong.push(format!("{}: {text}", case.file_name().unwrap().to_string_lossy()));
            }
        }
    }
    println!("{right} node tests right on the cpu, refused {refused:?}");
    assert!(wrong.is_empty(), "{right} right, {} wrong:\n{}", wrong.len(), wrong.join("\n"));
    let expected: Vec<usize> = REFUSED.iter().map(|(_, count)| *count).collect();
    assert_eq!((right, refused), (561, expected));
}
