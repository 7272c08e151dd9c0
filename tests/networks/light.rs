//! Architectures whose weights are made by nodes of the graph. They test importers, shapes and memory, not numbers:
//! their outputs do not depend on the input.

use tilewright::device::DeviceKind;
use tilewright::model::{self, Offload, Options, Sizes};
use tilewright_hw::config::HwConfig;
use tilewright_runtime::tensor::{Tensor, largest_distance};

use crate::run;

/// File, the first value of its output, and whether it is small enough for every run.
const NETWORKS: &[(&str, f64, bool)] = &[
    ("bvlc_alexnet", 0.001, true),
    ("densenet121", 0.460_954_9, false),
    ("inception_v1", 0.001, false),
    ("inception_v2", 0.001, false),
    ("resnet50", 0.001, false),
    ("shufflenet", 0.001, true),
    ("squeezenet", 0.001, true),
    ("vgg19", 0.001, false),
    ("zfnet512", 0.001, false),
];

/// Returns the numbers of a file with one tensor of floats. Only the tensor's name follows the data.
fn expected(file: &std::path::Path, count: usize) -> Vec<f32> {
    let bytes = std::fs::read(file).unwrap();
    // Tag 9, raw data, with its length.
    let mut length = Vec::new();
    let mut n = count * 4;
    while n > 0x7f {
        length.push((n & 0x7f | 0x80) as u8);
        n >>= 7;
    }
    length.push(n as u8);
    let mark: Vec<u8> = [0x4a].into_iter().chain(length).collect();
    let at = bytes.windows(mark.len()).position(|w| w == mark).unwrap() + mark.len();
    bytes[at..at + count * 4].chunks(4).map(|c| f32::from_le_bytes(c.try_into().unwrap())).collect()
}

fn check(small: bool) {
    let Some(folder) = tilewright_testing::model("onnx-light") else { return };
    let config = HwConfig::load("1x16x16").unwrap();
    for (name, first, _) in NETWORKS.iter().filter(|n| n.2 == small) {
        let graph = model::import(&folder.join(format!("light_{name}.onnx")), Sizes::default()).unwrap();
        let options = Options { offload: Offload::None, ..Options::new(&config) };
        let artifact = model::build(graph, &options, &mut |_, _| {}).unwrap();
        let values: Vec<f32> = (0..3 * 224 * 224).map(|i| (i * 7919 % 1000) as f32 / 500.0 - 1.0).collect();
        let input = Tensor::from_f32(vec![1, 3, 224, 224], &values).unwrap();
        let found = run(artifact, &config, DeviceKind::CPU, &[input]).outputs[0].to_f64();
        let expected = expected(&folder.join(format!("light_{name}_output_0.pb")), found.len());
        let most = largest_distance(found.iter().copied(), expected.iter().map(|&e| e.into()));
        println!("{name}: {most:.1e} from the expected output");
        assert!(most < 1e-5 && (found[0] - first).abs() < 1e-5, "{name}: {most}");
    }
}

#[test]
fn small_architectures_give_their_outputs() {
    check(true);
}

#[test]
#[ignore = "long; make test-full runs it"]
fn large_architectures_give_their_outputs() {
    check(false);
}

#[test]
fn the_list_is_the_folder() {
    let Some(folder) = tilewright_testing::model("onnx-light") else { return };
    let files = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut found: Vec<String> =
        files.filter_map(|f| Some(f.strip_prefix("light_")?.strip_suffix(".onnx")?.to_string())).collect();
    found.sort();
    assert_eq!(found, NETWORKS.iter().map(|n| n.0).collect::<Vec<_>>());
}

/// Every architecture can be imported, has only known shapes, and passes the optimization.
#[test]
fn every_architecture_imports() {
    let Some(folder) = tilewright_testing::model("onnx-light") else { return };
    for (name, ..) in NETWORKS {
        let graph = model::import(&folder.join(format!("light_{name}.onnx")), Sizes::default()).unwrap();
        assert!((0..graph.value_count()).all(|v| graph.ty(tilewright_compiler::graph::ValueId(v)).shape().is_some()));
    }
}
