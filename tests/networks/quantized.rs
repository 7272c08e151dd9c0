//! Float networks that the program quantizes itself.

use std::path::Path;

use tilewright::model::Sizes;
use tilewright::model::quantize::{
    self, Compiled, Method, MethodChoice, Prepared, QuantizeOptions, Quantized, Scaling,
};
use tilewright_compiler::graph::{Graph, Tensor};
use tilewright_compiler::quantize::Engine;
use tilewright_hw::config::HwConfig;
use tilewright_runtime::artifact::Edge;
use tilewright_runtime::npy;

fn options(method: MethodChoice) -> QuantizeOptions {
    QuantizeOptions { method, ..QuantizeOptions::default() }
}

/// Percentage points of accuracy that a network can lose.
const MOST_LOST: f64 = 0.5;

fn engine() -> Compiled {
    Compiled::new(&HwConfig::load("1x16x16").unwrap())
}

fn data(model: &Prepared, name: &str, mean: f32, scale: f32) -> Option<Vec<Vec<Tensor>>> {
    let array = npy::read(&tilewright_testing::model(&format!("data/{name}_x.npy"))?).unwrap();
    Some(quantize::samples(&model.inputs(), vec![(None, array)], Scaling { mean, scale }).unwrap())
}

fn run(model: &Prepared, samples: &[Vec<Tensor>], options: &QuantizeOptions) -> Quantized {
    model.quantize(samples, options, &engine(), &mut |_, _, _| {}).unwrap_or_else(|e| panic!("{e}"))
}

/// Quantizes a network, and reads it from the written file.
fn written(model: &Prepared, quantized: &Quantized, sample: &[Tensor]) -> Graph {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("q.onnx");
    model.write(&file, quantized, sample, &engine()).unwrap().finish().unwrap();
    tilewright::model::import(&file, Sizes::default()).unwrap()
}

/// Accuracy in percent of the float network, and of the quantized network as read from the written file.
fn accuracies(path: &Path, set: &str, scale: f32) -> Option<(f64, f64)> {
    let model = Prepared::read(path, Sizes::default()).unwrap();
    let calibration = data(&model, &format!("{set}_calib200"), 0.0, scale)?;
    let quantized = run(&model, &calibration, &options(MethodChoice::All(Method::Mse)));
    let again = written(&model, &quantized, &calibration[0]);
    let samples = data(&model, &format!("{set}_test1000"), 0.0, scale)?;
    let labels = npy::read(&tilewright_testing::model(&format!("data/{set}_test1000_y.npy"))?).unwrap();
    let labels = model.labels(&labels, "labels", samples.len()).unwrap();
    let of = |graph| 100.0 * quantize::accuracy(graph, &engine(), &samples, &labels, &mut |_| {}).unwrap();
    Some((of(model.graph()), of(&again)))
}

#[test]
#[ignore = "long; make test-full runs it"]
fn two_hundred_pictures_keep_the_accuracy() {
    let cases = [
        ("lenet-mnist/model.onnx", "mnist", 255.0),
        ("mnist-cntk/model.onnx", "mnist", 1.0),
        ("resnet8-cifar10/model.onnx", "cifar10", 1.0),
        ("resnet8-cifar10/model_float.tflite", "cifar10", 1.0),
    ];
    for (name, set, scale) in cases {
        let Some(path) = tilewright_testing::model(name) else { return };
        let Some((float, int8)) = accuracies(&path, set, scale) else { return };
        println!("{name} on 1,000 pictures: float {float:.1} %, quantized {int8:.1} %");
        assert!(float - int8 <= MOST_LOST + 1e-9, "{name}: float {float} %, quantized {int8} %");
    }
}

/// Calibrated on crops of five photos, the quantized efficientnet-lite0 (read from the written file) gives the same
/// classes as the float network on 12 other photos: with default options, and with bias correction.
#[test]
#[ignore = "long; make test-full runs it"]
fn efficientnet_names_what_the_float_network_does() {
    let Some(path) = tilewright_testing::model("efficientnet-lite0/model.onnx") else { return };
    let model = Prepared::read(&path, Sizes::default()).unwrap();
    let photos = crate::carried("photos");
    let preprocess = "mean=127,scale=128,crop=0.875".parse().unwrap();
    let array = quantize::folder(&photos, 4, &preprocess, &model.inputs(), &Edge::default()).unwrap();
    assert_eq!(array.shape, [20, 3, 224, 224]);
    let samples = quantize::samples(&model.inputs(), vec![(None, array)], Scaling { mean: 0.0, scale: 1.0 }).unwrap();
    let Some(tests) = data(&model, "photos224", 127.0, 128.0) else { return };
    let names = |graph: &Graph| -> Vec<usize> {
        let mut network = engine().open(graph).unwrap();
        let class = |sample: &Vec<Tensor>| {
            let y = network.run(sample).unwrap();
            let y = y[0].as_slice::<f32>().unwrap();
            (0..y.len()).fold(0, |best, k| if y[k] > y[best] { k } else { best })
        };
        tests.iter().map(class).collect()
    };
    let float = names(model.graph());
    for bias_correction in [false, true] {
        let quantized = run(&model, &samples, &QuantizeOptions { bias_correction, ..options(MethodChoice::Auto) });
        let int8 = names(&written(&model, &quantized, &samples[0]));
        let same = float.iter().zip(&int8).filter(|(a, b)| a == b).count();
        println!(
            "efficientnet-lite0, biases corrected {bias_correction}: {same} of {} photos as in floats",
            tests.len()
        );
        assert!(same >= 11, "biases corrected {bias_correction}: {float:?}\n{int8:?}");
    }
}
