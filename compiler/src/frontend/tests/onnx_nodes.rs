//! ONNX's node tests for the operators that can be imported. All operands except the first become constants.

use super::*;
use crate::frontend::onnx::testing::{frozen, operators, tensor_file};
use tilewright_runtime::tensor::{self as runtime, near};

/// Reasons why cases are refused, and how many cases have each.
const REFUSED: &[(&str, usize)] = &[
    ("element type", 2),
    ("must have one or two dimensions in addition to batch and channels", 1),
    ("its attribute `training_mode` of 1 is not supported", 2),
    ("is a sequence", 2),
];

/// Cases with the results of ONNX's evaluator, which uses the fractional size for `align_corners`. ONNX Runtime and
/// this importer use the whole number of pixels (docs/onnx.md).
const OF_THE_EVALUATOR: &[&str] =
    &["test_resize_downsample_scales_cubic_align_corners", "test_resize_downsample_scales_linear_align_corners"];

#[test]
fn node_tests_give_their_results() {
    let Some(archive) = tilewright_testing::model("onnx-node-core.tar.xz") else { return };
    let folder = tempfile::tempdir().unwrap();
    let status = std::process::Command::new("tar").arg("xf").arg(&archive).arg("-C").arg(folder.path()).status();
    assert!(status.unwrap().success(), "tar cannot read {}", archive.display());
    let mut cases: Vec<PathBuf> =
        std::fs::read_dir(folder.path().join("onnx-node-core")).unwrap().map(|e| e.unwrap().path()).collect();
    cases.sort();
    let (mut right, mut wrong, mut refused) = (0, Vec::new(), vec![0; REFUSED.len()]);
    let mut other = Vec::new();
    for case in cases {
        let model = std::fs::read(case.join("model.onnx")).unwrap();
        if !operators(&model).iter().all(|o| onnx::supports(o)) {
            continue;
        }
        let name = case.file_name().unwrap().to_str().unwrap().to_owned();
        let files = |kind: &str| {
            let path = |i: usize| case.join(format!("test_data_set_0/{kind}_{i}.pb"));
            (0..).map(path).take_while(|p| p.exists()).map(|p| std::fs::read(p).unwrap()).collect::<Vec<_>>()
        };
        let (inputs, outputs) = (files("input"), files("output"));
        // Half precision is computed in single precision.
        let half = ["float16", "FLOAT16", "fp16"].iter().any(|h| name.contains(h));
        let most = if half { 1e-2 } else { 1e-4 };
        match import_and_run(&model, &inputs, &outputs, 1, most).or_else(|e| match e.contains("must be a constant") {
            true => import_and_run(&model, &inputs, &outputs, 0, most),
            false => Err(e),
        }) {
            Ok(()) => right += 1,
            Err(e) if e.starts_with("result Tensor") && OF_THE_EVALUATOR.contains(&name.as_str()) => other.push(name),
            Err(e) => match REFUSED.iter().position(|(reason, _)| e.contains(reason)) {
                Some(i) => refused[i] += 1,
                None => wrong.push(format!("{name}: {e}")),
            },
        }
    }
    assert_eq!(other, OF_THE_EVALUATOR);
    assert!(wrong.is_empty(), "{right} right, {} wrong:\n{}", wrong.len(), wrong.join("\n"));
    let found: Vec<_> = REFUSED.iter().zip(&refused).map(|((reason, _), &n)| (*reason, n)).collect();
    assert_eq!(found, REFUSED, "{right} right");
    println!("{right} node tests right");
    assert!(right >= 693, "{right}");
}

fn import_and_run(model: &[u8], inputs: &[Vec<u8>], outputs: &[Vec<u8>], left: usize, most: f32) -> Result<(), String> {
    let g = onnx::import(&frozen(model, inputs, left), "case", None, Sizes::default()).map_err(|e| e.to_string())?;
    let given: Option<Vec<Tensor>> = inputs.iter().take(g.inputs().len()).map(|b| tensor_file(b)).collect();
    let found = eval(&g, &given.ok_or("input of an unknown type")?).map_err(|e| e.to_string())?;
    if found.len() != outputs.len() {
        return Err(format!("{} results, expected {}", found.len(), outputs.len()));
    }
    for (f, e) in found.iter().zip(outputs) {
        let e = tensor_file(e).ok_or("output of an unknown type")?;
        if f.ty() != e.ty() {
            return Err(format!("result is {}, expected {}", f.ty(), e.ty()));
        }
        let near = match f.ty().dtype {
            dtype if dtype.is_float() => {
                let [found, expected] = [f, &e].map(|t| runtime::Tensor::from(t).to_f64());
                found.iter().zip(&expected).all(|(&x, &y)| near(x, y, most.into()))
            }
            _ => *f == e,
        };
        if !near {
            return Err(format!("result {f:?}, expected {e:?}"));
        }
    }
    Ok(())
}
