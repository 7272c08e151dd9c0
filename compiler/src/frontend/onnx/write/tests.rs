//! Written files are read again and must compute the same.

use super::*;
use crate::frontend::{Sizes, onnx};
use crate::graph::op::{QuantRounding, Quantize, Relu, Transpose};
use crate::graph::{GraphBuilder, eval, text};
use crate::quantize::layout::to_nchw;
use crate::suite::{self, Problem};

fn read(bytes: &[u8]) -> Graph {
    onnx::import(bytes, "written.onnx", None, Sizes::default()).unwrap_or_else(|e| panic!("{e}"))
}

/// The problem with all operands after the first as constants.
fn frozen(p: &Problem) -> (Graph, Vec<Tensor>) {
    let mut b = GraphBuilder::new("frozen");
    let mut map = Vec::new();
    for (i, (name, v)) in p.graph.inputs().enumerate() {
        map.push(if i == 0 { b.input(name, p.graph.ty(v).clone()) } else { b.constant(name, p.inputs[i].clone()) });
    }
    for (_, node) in p.graph.nodes() {
        let inputs: Vec<_> = node.inputs.iter().map(|v| map[v.0]).collect();
        map.extend(b.node_outputs(&node.name, node.op.clone(), &inputs).unwrap());
    }
    for (name, v) in p.graph.outputs() {
        b.output(name, map[v.0]);
    }
    (b.finish().unwrap(), p.inputs[..1].to_vec())
}

#[test]
fn operators_are_written_and_read_again() {
    let (mut right, mut none) = (std::collections::BTreeSet::new(), std::collections::BTreeSet::new());
    for p in suite::problems(7, 4).unwrap() {
        let (graph, inputs) = frozen(&p);
        let graph = to_nchw(&graph).unwrap();
        let want = eval(&graph, &inputs).unwrap();
        let bytes = match write(&graph) {
            Ok(bytes) => bytes,
            Err(e) => {
                assert!(matches!(e, WriteError::NoForm { .. }), "{}: {e}", p.name);
                none.insert(p.graph.name().to_string());
                continue;
            }
        };
        let again = read(&bytes);
        let names = |g: &Graph| g.outputs().iter().map(|(n, _)| n.clone()).collect::<Vec<_>>();
        assert_eq!(names(&again), names(&graph), "{}", p.name);
        let got = eval(&again, &inputs).unwrap_or_else(|e| panic!("{}: {e}\n{}", p.name, text::print(&graph)));
        let far = suite::difference(&got[0], &want[0]);
        assert!(far <= 1e-5, "{}: {far}\n{}\n{}", p.name, text::print(&graph), text::print(&again));
        right.insert(p.graph.name().to_string());
    }
    println!("written and read again: {right:?}; no form: {none:?}");
    assert!(right.len() >= 25, "{right:?}");
    let float = ["conv2d", "dense", "conv_transpose2d", "matmul", "add", "quantize", "dequantize", "resample"];
    assert!(float.iter().all(|op| right.contains(*op)), "{right:?}");
}

#[test]
fn images_change_their_order_and_nothing_else() {
    let mut tried = 0;
    for p in suite::problems(11, 2).unwrap() {
        let turned = to_nchw(&p.graph).unwrap();
        let nhwc = turned.nodes().any(|(_, n)| format!("{:?}", n.op).contains("Nhwc"));
        // Integer forms that no float network has are not converted.
        if nhwc {
            continue;
        }
        tried += 1;
        let (a, b) = (eval(&p.graph, &p.inputs).unwrap(), eval(&turned, &p.inputs).unwrap());
        assert!(suite::difference(&b[0], &a[0]) <= 1e-6, "{}", p.name);
    }
    assert!(tried > 40, "{tried}");
}

#[test]
fn what_has_no_form_is_named() {
    let mut b = GraphBuilder::new("g");
    let x = b.input("x", TensorType::new(DType::F32, &[4]));
    let q = Quantize {
        scale: vec![1.0],
        zero_point: vec![0],
        axis: 0,
        rounding: QuantRounding::HalfAway,
        dtype: DType::I8,
    };
    let q = b.node("q", q, &[x]).unwrap();
    b.output("y", q);
    let e = write(&b.finish().unwrap()).unwrap_err().to_string();
    let expected =
        "node `q` (quantize) cannot be written as ONNX: it rounds ties away from zero, but QuantizeLinear to even";
    assert_eq!(e, expected);
    let mut b = GraphBuilder::new("g");
    let open = TensorType { dtype: DType::F32, dims: vec![crate::graph::Dim::Symbol("n".into())] };
    let x = b.input("x", open);
    let y = b.node("r", Relu {}, &[x]).unwrap();
    b.output("y", y);
    let e = write(&b.finish().unwrap()).unwrap_err().to_string();
    assert_eq!(e, "`x` has the open shape f32[n], which cannot be written; bind its sizes first");
}

/// Outputs that are inputs, constants, or a value with two names still get their names.
#[test]
fn every_output_has_its_name() {
    let mut b = GraphBuilder::new("g");
    let x = b.input("x", TensorType::new(DType::F32, &[1, 2]));
    let c = b.constant("c", Tensor::new(&[2], vec![1f32, 2.0]).unwrap());
    let t = b.node("x2", Transpose { perm: vec![1, 0] }, &[x]).unwrap();
    for (name, v) in [("same", x), ("const", c), ("a", t), ("b", t), ("x2", t), ("x", x)] {
        b.output(name, v);
    }
    let g = b.finish().unwrap();
    let again = read(&write(&g).unwrap());
    let x = Tensor::new(&[1, 2], vec![3f32, 4.0]).unwrap();
    assert_eq!(eval(&again, std::slice::from_ref(&x)).unwrap(), eval(&g, &[x]).unwrap());
    assert!(again.outputs().iter().map(|(n, _)| n.as_str()).eq(["same", "const", "a", "b", "x2", "x"]));
}

/// The file would define the name twice.
#[test]
fn an_output_with_the_name_of_another_value_is_refused() {
    let mut b = GraphBuilder::new("g");
    let x = b.input("x", TensorType::new(DType::F32, &[2]));
    let y = b.node("y", Relu {}, &[x]).unwrap();
    b.output("x", y);
    let e = write(&b.finish().unwrap()).unwrap_err().to_string();
    assert_eq!(e, "output `x` has the name of another value, but names are unique in ONNX; rename it");
}

#[test]
fn regions_are_written_and_read_again() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cases");
    let x = Tensor::from_fn(&[3, 4], |i| ((i * 29) % 17) as f32 / 17.0);
    let images = Tensor::from_fn(&[2, 3, 4], |i| ((i * 37) % 23) as f32 / 11.0 - 1.0);
    let given = [vec![x, Tensor::scalar(50i64), Tensor::scalar(0.01f32)], vec![images]];
    for (name, inputs) in ["16-loop-until", "16-scan-and-branch"].into_iter().zip(given) {
        let graph = read(&std::fs::read(folder.join(name).join("model.onnx")).unwrap());
        let again = read(&write(&graph).unwrap());
        let ends = |g: &Graph| g.outputs().iter().map(|(n, v)| (n.clone(), g.ty(*v).clone())).collect::<Vec<_>>();
        assert_eq!(ends(&again), ends(&graph));
        assert_eq!(eval(&again, &inputs).unwrap(), eval(&graph, &inputs).unwrap(), "{}", text::print(&again));
    }
}

/// The numbers of rows are made again when the file is read.
#[test]
fn rows_that_are_counted_are_written_as_the_operators_that_count_them() {
    use crate::frontend::onnx::testing::network;
    let nodes = [("NonZero", &["x"][..], &["p"][..], &[][..]), ("Unique", &["x"], &["u", "i"], &[])];
    let both = [&nodes[..], &[("Neg", &["u"], &["n"], &[]), ("Add", &["p", "p"], &["y"], &[])]].concat();
    let g = read(&network(&both, &[6], 1, &[], 17));
    let again = read(&write(&g).unwrap());
    let names = |g: &Graph| g.outputs().iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&g), ["y", "y_count"]);
    assert_eq!(names(&again), names(&g));
    let x = Tensor::vector(vec![0f32, 2.0, 0.0, -1.0, 2.0, 0.5]);
    assert_eq!(eval(&again, std::slice::from_ref(&x)).unwrap(), eval(&g, &[x]).unwrap());
}
