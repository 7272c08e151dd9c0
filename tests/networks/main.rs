//! Trained networks and single operators end to end: from the model file to outputs on every device, compared with the
//! results of other runtimes.

mod accuracy;
mod cases;
mod cycles;
mod depthwise;
mod dynamic;
mod float;
mod flow;
mod levels;
mod light;
mod memory;
mod mutated;
mod nodes;
mod offload;
mod operators;
mod packed;
mod quantized;
mod random;
mod random_onnx;
mod resnet;
mod shapes;
mod small;
mod tflite;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use tilewright::device::{self, DeviceKind, Extras};
use tilewright::model::inference::{self, Results};
use tilewright::model::{self, Offload, Options, Sizes};
use tilewright_compiler::graph::op::{Conv2d, Layout};
use tilewright_compiler::graph::{self as compiler_graph, GraphBuilder, ValueId};
use tilewright_hw::config::HwConfig;
use tilewright_hw::device::{Device, DeviceError};
use tilewright_runtime::artifact::Artifact;
use tilewright_runtime::npy;
use tilewright_runtime::registry::Registry;
use tilewright_runtime::session::{RunReport, Session};
use tilewright_runtime::tensor::{DType, Tensor, largest_distance};
use tilewright_sim::{Rtl, RtlOptions};

/// A convolution with these pads on all sides, without zero points.
fn convolution(layout: Layout, stride: usize, pad: usize) -> Conv2d {
    Conv2d {
        strides: [stride; 2],
        pads: [pad; 4],
        dilations: [1, 1],
        groups: 1,
        layout,
        data_zero_point: 0,
        weight_zero_point: 0,
    }
}

/// A 3x3 convolution of floats `[N, C, H, W]` with eight channels in and out; `seed` determines the weights.
fn eight_channels(b: &mut GraphBuilder, x: ValueId, stride: usize, seed: usize) -> ValueId {
    let weight = |i: usize| ((i * 37 + seed * 11) % 17) as f32 / 34.0 - 0.24;
    let w = b.constant("w", compiler_graph::Tensor::from_fn(&[8, 3, 3, 8], weight));
    b.node("conv", convolution(Layout::Nchw, stride, 1), &[x, w]).unwrap()
}

/// Path of a model in the repository.
fn carried(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/models").join(name)
}

/// The inputs or expected outputs of a model, in order.
fn arrays(model: &Path, kind: &str) -> Vec<Tensor> {
    let stem = model.file_stem().unwrap().to_string_lossy().to_string();
    // Single operators have a folder per format. In other folders, the names of TFLite's arrays contain the format.
    let suffixes = ["-tflite", ""];
    for suffix in suffixes {
        let files = (0..).map(|i| model.with_file_name(format!("{stem}{suffix}.{kind}_{i}.npy")));
        let found: Vec<Tensor> = files.take_while(|file| file.exists()).map(|file| npy::read(&file).unwrap()).collect();
        if !found.is_empty() {
            return found;
        }
    }
    panic!("{} has no {kind}", model.display());
}

/// Compiles a model for a preset; nothing is offloaded for the CPU.
fn compiled(model: &Path, hw: &str, device: DeviceKind) -> (Artifact, HwConfig) {
    compiled_at(2, model, hw, device)
}

/// Key of a compiled model: level, model, configuration, and whether nodes can be offloaded.
type Known = HashMap<(u8, PathBuf, String, bool), Arc<OnceLock<Artifact>>>;

/// Compiles at an optimization level. Tests of this program that ask for the same artifact share it.
fn compiled_at(level: u8, model: &Path, hw: &str, device: DeviceKind) -> (Artifact, HwConfig) {
    static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);
    let config = HwConfig::load(hw).unwrap();
    let offloads = device != DeviceKind::CPU;
    let key = (level, model.to_path_buf(), hw.to_string(), offloads);
    let known = Arc::clone(KNOWN.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default());
    let build = || {
        let data = arrays(model, "input").into_iter().map(|t| (None, t.shape).into()).collect();
        let sizes = Sizes { data, ..Sizes::default() };
        let graph = model::import(model, &sizes).unwrap_or_else(|e| panic!("{e}"));
        let options = Options { offload: Offload::all_if(offloads), level, ..Options::new(&config) };
        model::build(graph, &options, &mut |_, _| {}).unwrap_or_else(|e| panic!("{}: {e}", model.display()))
    };
    (known.get_or_init(build).clone(), config)
}

/// Runs a compiled model once per set of inputs.
///
/// What runs on the RTL also runs on the cycle model, which must agree on values, cycles, counters, bytes, and each
/// instruction's start, end and stalls. The first run on the functional simulator is also repeated on the cycle model,
/// so that every program is checked strictly.
fn run(artifact: Artifact, config: &HwConfig, device: DeviceKind, inputs: &[Tensor]) -> Results {
    if device == DeviceKind::FSIM {
        let [modeled, found] =
            [DeviceKind::CSIM, device].map(|device| run_on(artifact.clone(), config, device, inputs, 1));
        assert!(modeled.outputs == found.outputs, "the cycle model computes other values");
    }
    if device != DeviceKind::RTL {
        return run_on(artifact, config, device, inputs, usize::MAX);
    }
    let modeled = run_on(artifact.clone(), config, DeviceKind::CSIM, inputs, usize::MAX);
    let found = run_on(artifact, config, device, inputs, usize::MAX);
    assert_eq!(modeled.reports.len(), found.reports.len());
    for (number, (a, b)) in modeled.reports.iter().zip(&found.reports).enumerate() {
        let steps = |report: &RunReport| -> Vec<_> {
            report.steps.iter().map(|s| (s.place, s.cycles, s.macs, s.bytes, s.counters)).collect()
        };
        assert_eq!(steps(a), steps(b), "run {number}: the cycle model, and the design");
        for (a, b) in a.steps.iter().zip(&b.steps) {
            assert_eq!(a.spans.len(), b.spans.len(), "run {number}");
            let other = a.spans.iter().zip(&b.spans).find(|(a, b)| a != b);
            assert_eq!(other, None, "run {number}: the cycle model, and the design");
        }
    }
    assert!(modeled.outputs == found.outputs, "the cycle model computes other values");
    found
}

/// Runs at most `most` of the sets of inputs.
fn run_on(artifact: Artifact, config: &HwConfig, device: DeviceKind, inputs: &[Tensor], most: usize) -> Results {
    let runs = inference::split(&artifact.manifest.input_values(), inputs).unwrap_or_else(|e| panic!("{e}"));
    let device = open(device, config).unwrap_or_else(|e| panic!("{e}"));
    let mut session = Session::new(artifact, Registry::global(), device).unwrap_or_else(|e| panic!("{e}"));
    inference::run(&mut session, &runs[..most.min(runs.len())], |_| {}).unwrap_or_else(|e| panic!("{e}"))
}

/// Makes a device with as many checks as possible: a strict cycle model, and RTL with assertions. The configuration in
/// which most networks run has no assertions, because there speed matters more.
fn open(kind: DeviceKind, config: &HwConfig) -> Result<Option<Box<dyn Device>>, DeviceError> {
    let spans = matches!(kind, DeviceKind::CSIM | DeviceKind::RTL);
    if kind == DeviceKind::RTL && config.name != "1x16x16" {
        let options = RtlOptions { assertions: true, spans, ..RtlOptions::default() };
        return Ok(Some(Box::new(Rtl::new(config.clone(), config.memory_bytes(), &options)?)));
    }
    let extras = Extras { strict: kind == DeviceKind::CSIM, spans, ..Extras::default() };
    device::open(kind, config, extras, &|_| {})
}

/// Runs a model on its own inputs and returns the largest difference from its expected outputs.
fn difference(model: &Path, hw: &str, device: DeviceKind) -> f64 {
    let (artifact, config) = compiled(model, hw, device);
    let found = run(artifact, &config, device, &arrays(model, "input")).outputs;
    largest(&found, &arrays(model, "expected"))
}

/// Returns the largest difference between tensors of equal shapes and types. Files can store 64-bit numbers as bytes.
fn largest(found: &[Tensor], expected: &[Tensor]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let mut most = 0f64;
    for (a, b) in found.iter().zip(expected) {
        assert_eq!(a.shape, b.shape);
        assert!(a.dtype == b.dtype || (a.dtype, b.dtype) == (DType::I64, DType::U8), "{} and {}", a.dtype, b.dtype);
        most = most.max(largest_distance(a.to_f64(), b.to_f64()));
    }
    most
}

#[test]
fn what_is_no_number_differs_from_every_number() {
    let tensor = |values: &[f32]| [Tensor::from_f32(vec![values.len()], values).unwrap()];
    let wanted = tensor(&[1.0, 2.0]);
    assert_eq!(largest(&tensor(&[f32::NAN, 2.0]), &wanted), f64::INFINITY);
    assert_eq!(largest(&tensor(&[1.0, f32::NAN]), &wanted), f64::INFINITY);
    assert_eq!(largest(&tensor(&[1.0, 4.0]), &wanted), 2.0);
}
