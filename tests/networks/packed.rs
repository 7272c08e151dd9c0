//! Models that call functions of the program.

use std::collections::BTreeMap;

use tilewright::device::DeviceKind;
use tilewright::model::quantize::{Prepared, QuantizeOptions};
use tilewright::model::{self, ImportOptions, Offload, Options};
use tilewright_compiler::frontend::onnx;
use tilewright_compiler::graph::op::{Attr, Packed};
use tilewright_compiler::graph::{DType, Graph, GraphBuilder, Tensor, TensorType, eval};
use tilewright_compiler::passes::{OptLevel, optimize};
use tilewright_hw::config::HwConfig;
use tilewright_runtime::artifact::{Artifact, Place, StepKind};
use tilewright_runtime::registry::Registry;
use tilewright_runtime::session::Session;
use tilewright_runtime::value::Value;
use tilewright_runtime::{Function, tensor};

use crate::{eight_channels, open, run};

/// Scales each pixel by its largest channel, and counts the pixels whose largest channel is above a threshold.
fn peaks() -> Function {
    Function::new("tests.Peaks", |args| {
        args.count(2, Some(2))?;
        let x = Tensor::try_from(args.get::<tensor::Tensor>(0)?)?;
        let attributes = args.get::<BTreeMap<String, Value>>(1)?;
        let threshold = *<&f64>::try_from(attributes.get("above").ok_or("needs `above`")?)? as f32;
        let (shape, values) = (x.shape().to_vec(), x.as_slice::<f32>()?);
        let [_, channels, pixels] = [shape[0], shape[1], shape[2] * shape[3]];
        let peak = |pixel: usize| (0..channels).map(|c| values[c * pixels + pixel]).fold(0f32, f32::max);
        let scaled = Tensor::from_fn(&shape, |i| values[i] / (1.0 + peak(i % pixels)));
        let count = (0..pixels).filter(|&pixel| peak(pixel) > threshold).count() as i64;
        let results = [scaled, Tensor::vector(vec![count])];
        Ok(results.iter().map(|t| Value::Tensor(t.into())).collect())
    })
}

/// A convolution, the function, and another convolution of its first result.
fn network() -> Graph {
    let mut b = GraphBuilder::new("peaks");
    let x = b.input("x", TensorType::new(DType::F32, &[1, 8, 12, 10]));
    let first = eight_channels(&mut b, x, 1, 1);
    let types = vec![b.ty(first).clone(), TensorType::new(DType::I64, &[1])];
    let attributes = BTreeMap::from([("above".to_string(), Attr::Float(0.5))]);
    let op = Packed { function: "tests.Peaks".into(), attributes, types };
    let found = b.node_outputs("peaks", op.into(), &[first]).unwrap();
    let second = eight_channels(&mut b, found[0], 1, 2);
    b.output("y", second);
    b.output("count", found[1]);
    b.finish().unwrap()
}

fn built(graph: &Graph, offload: Offload, level: u8) -> Artifact {
    let config = HwConfig::default();
    let options = Options { offload, level, ..Options::new(&config) };
    model::build(graph.clone(), &options, &mut |_, _| {}).unwrap()
}

#[test]
fn a_function_runs_between_the_accelerators_programs() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("peaks.onnx");
    std::fs::write(&file, onnx::write(&network()).unwrap()).unwrap();
    let options = || ImportOptions { packed: ["tests".to_string()].into(), ..ImportOptions::default() };
    let x = Tensor::from_fn(&[1, 8, 12, 10], |i| ((i * 29) % 101) as f32 / 50.0 - 1.0);

    let e = Session::new(built(&model::import(&file, options()).unwrap(), Offload::None, 2), &Registry::new(), None);
    let e = e.err().unwrap().to_string();
    let missing =
        "step peaks calls the function tests.Peaks, which is not registered; register it before the model is opened";
    assert_eq!(e, missing);

    Registry::global().add(peaks());
    let prepared = Prepared::read(&file, options()).unwrap();
    let config = HwConfig::default();
    let engine = model::quantize::Compiled::new(&config);
    let (samples, how) = ([vec![x.clone()]], QuantizeOptions::default());
    let done = prepared.quantize(&samples, &how, &engine, &mut |_, _, _| {});
    std::fs::write(&file, onnx::write(&done.unwrap().graph).unwrap()).unwrap();
    let graph = model::import(&file, options()).unwrap();

    for level in [0, 2, 3] {
        let artifact = built(&graph, Offload::All, level);
        let steps: Vec<_> = artifact.manifest.steps.iter().map(|step| &step.kind).collect();
        let at = steps.iter().position(|kind| matches!(kind, StepKind::Packed { .. })).unwrap();
        let accel = |steps: &[&StepKind]| steps.iter().any(|kind| matches!(kind, StepKind::Accel(_)));
        assert!(accel(&steps[..at]) && accel(&steps[at..]), "-O{level}");
        let node = artifact.manifest.nodes.iter().find(|node| node.op == "packed").unwrap();
        assert_eq!((node.place, node.why.as_str()), (Place::Cpu, "a function of the program, tests.Peaks"));
        assert_eq!(node.values.iter().flatten().count(), 2);

        let optimized = optimize(graph.clone(), OptLevel::O2, Default::default());
        let expected = eval(&optimized.unwrap().0, std::slice::from_ref(&x)).unwrap();
        let expected: Vec<tensor::Tensor> = expected.iter().map(Into::into).collect();
        for device in [DeviceKind::FSIM, DeviceKind::CSIM] {
            let found = run(artifact.clone(), &config, device, &[(&x).into()]).outputs;
            assert_eq!(found, expected, "-O{level} on {device}");
        }
        let on_cpu = run(built(&graph, Offload::None, level), &config, DeviceKind::CPU, &[(&x).into()]).outputs;
        assert_eq!(on_cpu, expected, "-O{level} on the CPU");
        let mut session = Session::new(artifact, Registry::global(), open(DeviceKind::FSIM, &config).unwrap()).unwrap();
        Registry::global().add(Function::new("tests.Peaks", |_| Err("broken".into())));
        assert_eq!(session.run(&[(&x).into()]).unwrap().0, expected, "a session keeps the function that it found");
        Registry::global().add(peaks());
    }
}
