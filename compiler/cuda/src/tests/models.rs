//! Networks that the repository carries, on the host.

use std::path::{Path, PathBuf};

use tilewright_compiler::frontend::{Sizes, import_sized};
use tilewright_compiler::graph::{DType, Graph, Tensor, eval};
use tilewright_compiler::passes::{self, OptLevel};
use tilewright_compiler::suite::{Numbers, difference};

use super::Host;
use crate::{CudaBackend, Precision};

/// Files with the name that tests call them by.
const FILES: [(&str, &str); 10] = [
    ("lenet", "lenet-mnist/model.onnx"),
    ("lenet int8", "lenet-mnist/model_qdq_perchannel.onnx"),
    ("lenet int8 by tensor", "lenet-mnist/model_qdq_pertensor.onnx"),
    ("operators", "onnx-runtime/operators_u8.onnx"),
    ("recurrent", "onnx-runtime/recurrent.onnx"),
    ("dynamic", "onnx-runtime/dynamic.onnx"),
    ("slopes", "onnx-runtime/slopes.onnx"),
    ("vit", "vit-tiny-mnist/model_qdq_perchannel.onnx"),
    ("ppocr", "ppocr-cls/model.onnx"),
    ("blazeface", "blazeface-short/model_fp16w.tflite"),
];

/// Too many products for a processor that plays a GPU; it is compiled alone.
const LARGE: (&str, &str) = ("efficientnet int8", "efficientnet-lite0/model_qdq_perchannel.onnx");

fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/models").join(path)
}

fn graph(path: &Path) -> Graph {
    // What a model leaves open is as its expected input has it.
    let input = path.with_file_name(format!("{}.input_0.npy", path.file_stem().unwrap().to_string_lossy()));
    let data = tilewright_runtime::npy::read(&input).ok().map(|t| (None, t.shape));
    let sizes = Sizes { data: data.into_iter().collect(), ..Sizes::default() };
    let graph = import_sized(path, &sizes).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    passes::optimize(graph, OptLevel::O2, passes::Options::default()).unwrap_or_else(|e| panic!("{e}")).0
}

/// All of them, with the single operators of TFLite.
pub fn graphs() -> Vec<(String, Graph)> {
    let mut list: Vec<(String, Graph)> =
        FILES.iter().map(|(name, path)| (name.to_string(), graph(&file(path)))).collect();
    let mut ops: Vec<PathBuf> = std::fs::read_dir(file("tflite-ops"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|f| f.extension().is_some_and(|e| e == "tflite"))
        .collect();
    ops.sort();
    list.extend(ops.iter().map(|f| (f.file_stem().unwrap().to_string_lossy().into_owned(), graph(f))));
    list
}

/// The same, and the large one.
pub fn all_graphs() -> Vec<(String, Graph)> {
    let mut list = graphs();
    list.push((LARGE.0.to_string(), graph(&file(LARGE.1))));
    list
}

/// Made-up inputs.
pub fn inputs(graph: &Graph) -> Vec<Tensor> {
    let mut numbers = Numbers::new(7);
    graph.inputs().map(|(_, v)| numbers.tensor(graph.ty(v))).collect()
}

/// Runs graphs at a precision and compares with their evaluation; gives the names of those that differ by more than `most`
/// says of an output.
fn check(precision: Precision, graphs: &[(String, Graph)], most: impl Fn(&str, &Tensor) -> f64) {
    let host = Host::new(&CudaBackend { precision }, &graphs.iter().map(|g| &g.1).collect::<Vec<_>>());
    let mut wrong = Vec::new();
    for (i, (name, graph)) in graphs.iter().enumerate() {
        let inputs = inputs(graph);
        let want = eval(graph, &inputs).unwrap();
        for (g, w) in host.run(i, graph, &inputs).iter().zip(&want) {
            let d = difference(g, w);
            if d.is_nan() || d > most(name, w) {
                wrong.push(format!("{name}: differs by {d}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn networks_on_the_host_equal_the_graph_evaluation() {
    // Averages of floats that lie half way between two integers: the error of a sum decides them.
    let most = |name: &str, want: &Tensor| match (name, want.dtype()) {
        (_, DType::F32) => 1e-4,
        ("slopes", _) => 1.0,
        _ => 0.0,
    };
    check(Precision::F32, &graphs(), most);
}

/// Ten bits of fraction: integers that are made of no floats stay exact.
#[test]
fn floats_of_16_bits_stay_near() {
    let graphs: Vec<_> =
        graphs().into_iter().filter(|(name, _)| ["lenet", "lenet int8", "vit"].contains(&name.as_str())).collect();
    assert_eq!(graphs.len(), 3);
    // Where activations are quantized on the way, some come out a step apart, and attention multiplies that.
    check(Precision::F16, &graphs, |name, _| if name == "vit" { 0.1 } else { 0.02 });
}

/// What the tests above run has tiles among it, bytes and floats.
#[test]
fn products_of_networks_come_in_tiles() {
    let waits = |(_, graph): &(String, Graph)| {
        super::compile(&CudaBackend::default(), graph).0.source.contains("__syncthreads")
    };
    let tiled: Vec<String> = graphs().into_iter().filter(waits).map(|g| g.0).collect();
    println!("{tiled:?}");
    for name in ["conv1x1", "conv3x3_same_relu", "ppocr", "blazeface"] {
        assert!(tiled.iter().any(|t| t == name), "{name} has no tiles; these have: {tiled:?}");
    }
}
