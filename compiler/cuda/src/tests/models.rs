//! Runs the networks in the repository on the host.

use std::path::{Path, PathBuf};

use half::f16;
use tilewright_compiler::backend::Entry;
use tilewright_compiler::frontend::{Sizes, import_with};
use tilewright_compiler::graph::{DType, Graph, Tensor, ValueId, eval};
use tilewright_compiler::passes::{self, OptLevel};
use tilewright_compiler::suite::{Numbers, difference, tolerance};
use tilewright_compiler::te::{Array, ops};
use tilewright_compiler::tir::evaluate;

use super::HostLibrary;
use crate::library::{LEAST, Least};
use crate::{CudaBackend, Precision};

/// Names of networks in tests, and their files.
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

/// Networks that take the host a minute or more.
const LONG: [&str; 3] = ["vit", "ppocr", "blazeface"];

/// A network with too many products for a CPU that emulates a GPU. It is only compiled.
pub const LARGE: (&str, &str) = ("efficientnet int8", "efficientnet-lite0/model_qdq_perchannel.onnx");

fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/models").join(path)
}

fn graph(path: &Path) -> Graph {
    // Take sizes that the model leaves open from its expected input.
    let input = path.with_file_name(format!("{}.input_0.npy", path.file_stem().unwrap().to_string_lossy()));
    let data = tilewright_runtime::npy::read(&input).ok().map(|t| (None, t.shape).into());
    let sizes = Sizes { data: data.into_iter().collect(), ..Sizes::default() };
    let graph = import_with(path, &sizes).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    passes::optimize(graph, OptLevel::O2, passes::Options::default()).unwrap_or_else(|e| panic!("{e}")).0
}

/// Returns all networks except the large one, and the single operators of TFLite.
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

/// Returns the same, and the large network.
pub fn all_graphs() -> Vec<(String, Graph)> {
    let mut list = graphs();
    list.push((LARGE.0.to_string(), graph(&file(LARGE.1))));
    list
}

/// Returns random inputs.
pub fn inputs(graph: &Graph) -> Vec<Tensor> {
    let mut numbers = Numbers::new(7);
    graph.inputs().map(|(_, v)| numbers.tensor(graph.ty(v))).collect()
}

/// Evaluates the steps of a graph as tensor expressions, which give the same numbers as the kernels in the same order.
/// With `half`, floats between steps are rounded to 16 bits, as in GPU memory.
fn by_expressions(graph: &Graph, entries: &[Entry], inputs: &[Tensor], half: bool) -> Vec<Tensor> {
    let kept = |t: Tensor| match t.dtype() {
        DType::F32 if half => {
            let shape = t.shape().to_vec();
            let values: Vec<f32> = t.as_slice::<f32>().unwrap().iter().map(|v| f16::from_f32(*v).to_f32()).collect();
            Tensor::from_fn(&shape, |i| values[i])
        }
        _ => t,
    };
    let given = (0..graph.value_count()).map(|v| {
        let constant = graph.constant(ValueId(v)).map(|c| Tensor::clone(c));
        constant.or_else(|| inputs.get(v).cloned()).map(&kept)
    });
    let mut values: Vec<Option<Tensor>> = given.collect();
    for e in entries {
        let region = ops::program(graph, "step", &e.nodes, &e.outputs).unwrap();
        let arrays = region.inputs.iter().map(|v| {
            let t = values[v.0].as_ref().expect("steps are in order");
            Array { dtype: t.dtype(), shape: t.shape().iter().map(|n| *n as i64).collect(), bytes: t.to_bytes() }
        });
        let made = evaluate(&region.program, &arrays.collect::<Vec<_>>()).unwrap();
        for (v, array) in region.outputs.iter().zip(made) {
            let shape = graph.ty(*v).shape().unwrap();
            values[v.0] = Some(kept(Tensor::from_bytes(array.dtype, &shape, &array.bytes).unwrap()));
        }
    }
    graph.outputs().iter().map(|(_, v)| values[v.0].clone().expect("steps compute the outputs")).collect()
}

/// Evaluates a graph with 16-bit floats between steps. Products of at least `least` become steps with a library.
pub fn rounded_between_steps(graph: &Graph, inputs: &[Tensor], least: Least) -> Vec<Tensor> {
    let entries = super::compile(&CudaBackend { precision: Precision::F16 }, graph, least).1;
    by_expressions(graph, &entries, inputs, true)
}

/// Runs graphs at a precision, with and without library products, and compares the outputs with `wanted`. Fails for
/// differences above `most`.
fn check(
    precision: Precision,
    graphs: &[(String, Graph)],
    wanted: impl Fn(&str, &Graph, &[Tensor]) -> Vec<Tensor>,
    most: impl Fn(&str, &Tensor) -> f64,
) {
    let host = HostLibrary::new(&CudaBackend { precision }, &graphs.iter().map(|g| &g.1).collect::<Vec<_>>(), LEAST);
    let mut wrong = Vec::new();
    let mut with_products = 0;
    for (i, (name, graph)) in graphs.iter().enumerate() {
        let inputs = inputs(graph);
        let want = wanted(name, graph, &inputs);
        with_products += usize::from(host.products(i) > 0);
        let ways: &[bool] = if host.products(i) > 0 { &[false, true] } else { &[false] };
        for &library in ways {
            for (g, w) in host.run(i, graph, &inputs, library).iter().zip(&want) {
                let d = difference(g, w);
                if d.is_nan() || d > most(name, w) {
                    wrong.push(format!("{name} (library: {library}): differs by {d}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(with_products > 0, "no network has products for a library");
}

#[test]
fn networks_on_the_host_equal_the_graph_evaluation() {
    equal_the_graph_evaluation(|name| !LONG.contains(&name));
}

#[test]
#[ignore = "some minutes; make test-full runs it"]
fn larger_networks_on_the_host_equal_the_graph_evaluation() {
    equal_the_graph_evaluation(|name| LONG.contains(&name));
}

fn equal_the_graph_evaluation(taken: impl Fn(&str) -> bool) {
    let floats = |_: &str, want: &Tensor| tolerance(want.dtype());
    // In this network, averages of floats are halfway between two integers, so the error of a float sum decides the
    // result. The graph's evaluation sums in 64 bits and has no such error. Compare with the expressions, exactly.
    let wanted = |name: &str, graph: &Graph, inputs: &[Tensor]| match name {
        "slopes" => {
            let entries = super::compile(&CudaBackend::default(), graph, LEAST).1;
            by_expressions(graph, &entries, inputs, false)
        }
        _ => eval(graph, inputs).unwrap(),
    };
    let graphs: Vec<_> = graphs().into_iter().filter(|(name, _)| taken(name)).collect();
    check(Precision::F32, &graphs, wanted, floats);
}

/// Compares with expressions that round to 16 bits between steps in the same way, because a network can amplify
/// rounding. If activations are quantized on the way, some differ by a step from those with 32 bits, and attention
/// multiplies such differences.
#[test]
fn floats_of_16_bits_are_rounded_between_steps_alone() {
    round_between_steps(&["lenet", "lenet int8"]);
}

#[test]
#[ignore = "half a minute; make test-full runs it"]
fn floats_of_16_bits_of_a_larger_network_are_rounded_between_steps_alone() {
    round_between_steps(&["vit"]);
}

fn round_between_steps(names: &[&str]) {
    let graphs: Vec<_> = graphs().into_iter().filter(|(name, _)| names.contains(&name.as_str())).collect();
    assert_eq!(graphs.len(), names.len());
    let wanted = |_: &str, graph: &Graph, inputs: &[Tensor]| rounded_between_steps(graph, inputs, LEAST);
    check(Precision::F16, &graphs, wanted, |_, want| tolerance(want.dtype()));
}

/// Checks that the networks above cover tiled products, of bytes and of floats.
#[test]
fn products_of_networks_come_in_tiles() {
    let waits = |(_, graph): &(String, Graph)| {
        super::compile(&CudaBackend::default(), graph, LEAST).0.source.contains("__syncthreads")
    };
    let tiled: Vec<String> = graphs().into_iter().filter(waits).map(|g| g.0).collect();
    println!("{tiled:?}");
    for name in ["conv1x1", "conv3x3_same_relu", "ppocr", "blazeface"] {
        assert!(tiled.iter().any(|t| t == name), "{name} has no tiles; these have: {tiled:?}");
    }
}
