//! Small models that once gave wrong results, each in a folder of `tests/cases`. They run on the CPU and the
//! simulators, and on the RTL if the accelerator computes them.

use std::path::{Path, PathBuf};

use tilewright::device::DeviceKind;
use tilewright::model::{self, Datum, Offload, Options, Sizes};
use tilewright_hw::config::HwConfig;
use tilewright_runtime::artifact::{Artifact, Place};
use tilewright_runtime::npy;
use tilewright_runtime::tensor::{DType, Tensor};

use crate::run;

/// The configuration for all cases. Other tests of the suite also build its RTL.
const HW: &str = "1x16x16";

/// Cases whose outputs are floats of a quantized network, with the scale of the outputs. They can differ by one step.
const STEPS: &[(&str, f64)] = &[("13-mul-behind-conv", 0.180_433_27), ("13-maxpool-behind-conv", 0.081_940_65)];

/// Cases that the tests of the command line run, because they need more than `run`.
const ELSEWHERE: &[&str] = &["06-quantize-input-as-output"];

/// Cases whose integer product the accelerator computes.
const OFFLOADED: &[&str] = &["02-dense-ties", "05-factor-beyond-2-31", "13-mul-behind-conv", "13-maxpool-behind-conv"];

struct Case {
    name: String,
    model: PathBuf,
    inputs: Vec<Tensor>,
    expected: Vec<Tensor>,
}

/// Arrays `NAME_0.npy`, `NAME_1.npy`, … of a folder.
fn arrays(folder: &Path, name: &str) -> Vec<Tensor> {
    let files = (0..).map(|i| folder.join(format!("{name}_{i}.npy"))).take_while(|file| file.exists());
    files.map(|file| npy::read(&file).unwrap()).collect()
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let folders = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let mut cases: Vec<Case> = folders
        .map(|folder| {
            let model = ["model.onnx", "model.pt2", "model.tflite"]
                .map(|file| folder.join(file))
                .into_iter()
                .find(|f| f.exists());
            Case {
                name: folder.file_name().unwrap().to_string_lossy().into(),
                model: model.unwrap_or_else(|| panic!("{} has no model", folder.display())),
                inputs: arrays(&folder, "input"),
                expected: arrays(&folder, "expected"),
            }
        })
        .filter(|case| !ELSEWHERE.contains(&case.name.as_str()))
        .collect();
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(cases.len() >= 25, "only {} cases were found", cases.len());
    cases
}

fn compiled(case: &Case, device: DeviceKind) -> Result<(Artifact, HwConfig), String> {
    let config = HwConfig::load(HW).unwrap();
    let data = case.inputs.iter().map(|t| Datum::of(None, t)).collect();
    let sizes = Sizes { data, ..Sizes::default() };
    let (graph, sources) = model::import_traced(&case.model, &sizes).map_err(|e| e.to_string())?;
    let options = Options { offload: Offload::all_if(device != DeviceKind::CPU), ..Options::new(&config) };
    let mut artifact = model::build(graph, &options, &mut |_, _| {}).map_err(|e| e.to_string())?;
    // Tells which outputs have a number of rows that depends on the data.
    sources.annotate(&mut artifact.manifest);
    Ok((artifact, config))
}

/// Returns what is wrong with an output, if anything. Integers must be equal, floats within `allowed` (`None`: 1e-4 of
/// the largest, 1e-12 with doubles), NaN and infinities in the same places.
fn wrong(found: &Tensor, expected: &Tensor, allowed: Option<f64>) -> Option<String> {
    if (found.dtype, &found.shape) != (expected.dtype, &expected.shape) {
        return Some(format!("{} {:?}, expected {} {:?}", found.dtype, found.shape, expected.dtype, expected.shape));
    }
    let (a, b) = (found.to_f64(), expected.to_f64());
    // Floats cannot represent all 64-bit integers.
    if !expected.dtype.is_float() && found.bytes != expected.bytes && a == b {
        return Some("integers differ beyond what a float holds".into());
    }
    let largest = b.iter().copied().filter(|v| v.is_finite()).fold(0f64, |m, v| m.max(v.abs()));
    let share = if expected.dtype == DType::F64 { 1e-12 } else { 1e-4 };
    let allowed = if expected.dtype.is_float() { allowed.unwrap_or(share * largest) } else { 0.0 };
    let same = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= allowed;
    let count = a.iter().zip(&b).filter(|(a, b)| !same(**a, **b)).count();
    let at = a.iter().zip(&b).position(|(a, b)| !same(*a, *b))?;
    Some(format!("{count} of {} differ, the first at {at}: {}, expected {}", a.len(), a[at], b[at]))
}

/// Runs the cases that `chosen` selects.
#[track_caller]
fn check(device: DeviceKind, chosen: impl Fn(&Case) -> bool) {
    let mut faults = Vec::new();
    for case in cases().iter().filter(|case| chosen(case)) {
        let name = &case.name;
        let (artifact, config) = match compiled(case, device) {
            Ok(compiled) => compiled,
            Err(e) => {
                faults.push(format!("{name}: {e}"));
                continue;
            }
        };
        let offloaded = artifact.manifest.nodes.iter().any(|n| n.place == Place::Accel);
        if device != DeviceKind::CPU && OFFLOADED.contains(&name.as_str()) && !offloaded {
            faults.push(format!("{name}: nothing runs on the accelerator"));
        }
        let outputs = run(artifact, &config, device, &case.inputs).outputs;
        let allowed = STEPS.iter().find(|(n, _)| n == name).map(|(_, step)| 1.001 * step);
        if outputs.len() != case.expected.len() {
            faults.push(format!("{name}: {} outputs, expected {}", outputs.len(), case.expected.len()));
        }
        for (i, (found, expected)) in outputs.iter().zip(&case.expected).enumerate() {
            faults.extend(wrong(found, expected, allowed).map(|what| format!("{name}: output {i}: {what}")));
        }
    }
    assert!(faults.is_empty(), "on {device}:\n{}", faults.join("\n"));
}

#[test]
fn cases_come_out_right_on_the_cpu() {
    check(DeviceKind::CPU, |_| true);
}

/// The functional simulator, followed by the cycle model.
#[test]
fn cases_come_out_right_on_fsim() {
    check(DeviceKind::FSIM, |_| true);
}

#[test]
fn cases_come_out_right_on_the_rtl() {
    check(DeviceKind::RTL, |case| OFFLOADED.contains(&case.name.as_str()));
}
