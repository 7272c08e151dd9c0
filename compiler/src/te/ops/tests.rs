use super::program;
use crate::graph::{DType, Tensor, eval};
use crate::suite::{difference, problems, special_numbers};
use crate::te::Array;
use crate::tir::evaluate;

pub(super) fn array(t: &Tensor) -> Array {
    let shape = t.shape().iter().map(|&n| n as i64).collect();
    Array { dtype: t.dtype(), shape, bytes: t.to_bytes() }
}

pub(super) fn tensor(a: &Array) -> Tensor {
    let shape: Vec<usize> = a.shape.iter().map(|&n| n as usize).collect();
    Tensor::from_bytes(a.dtype, &shape, &a.bytes).expect("as many bytes as the shape says")
}

#[test]
fn every_operator_equals_the_graph_evaluation() {
    for p in problems(1, 6).unwrap().into_iter().chain([special_numbers().unwrap()]) {
        let want = eval(&p.graph, &p.inputs).unwrap();
        let nodes: Vec<_> = p.graph.nodes().map(|(id, _)| id).collect();
        let outputs: Vec<_> = p.graph.outputs().iter().map(|o| o.1).collect();
        let region = program(&p.graph, "problem", &nodes, &outputs).unwrap();
        let args: Vec<Array> = region.inputs.iter().map(|v| array(&p.inputs[v.0])).collect();
        let got = evaluate(&region.program, &args).unwrap_or_else(|e| panic!("{}: {e}", p.name));
        let most = if want[0].dtype() == DType::F32 { 1e-5 } else { 0.0 };
        let d = difference(&tensor(&got[0]), &want[0]);
        assert!(d <= most, "{}: differs by {d}\n{}", p.name, crate::graph::text::print(&p.graph));
    }
}

/// The tensor expression of every operator is read back from its text.
#[test]
fn texts_of_all_operators_read_back() {
    let mut checked = 0;
    for problem in problems(3, 1).unwrap() {
        let g = &problem.graph;
        let nodes: Vec<_> =
            g.nodes().filter(|(_, n)| !matches!(n.op, crate::graph::Op::Constant(_))).map(|(id, _)| id).collect();
        let outputs: Vec<_> = g.outputs().iter().map(|o| o.1).collect();
        let Ok(region) = program(g, "program", &nodes, &outputs) else { continue };
        let text = region.program.to_string();
        assert_eq!(crate::te::text::parse(&text).as_ref(), Ok(&region.program), "{text}");
        checked += 1;
    }
    assert!(checked > 50, "{checked}");
}
