use tilewright_compiler::backend::{Backend, Operand};
use tilewright_compiler::graph::{Graph, Tensor, eval};
use tilewright_compiler::suite::{check_listings, difference, problems, special_numbers, tolerance};
use tilewright_runtime::loader::{CpuModule, ImportTable};

use crate::LlvmBackend;

mod models;
mod products;
mod scalars;
mod shapes;

/// Runs a graph through object code, entry by entry, and prints how long it takes.
fn run(backend: &LlvmBackend, graph: &Graph, inputs: &[Tensor]) -> Vec<Tensor> {
    let nodes: Vec<_> = graph.nodes().map(|(id, _)| id).collect();
    let begin = std::time::Instant::now();
    let code = backend.compile(graph, &nodes).unwrap_or_else(|e| panic!("{e}"));
    let compiled = begin.elapsed();
    let load = |object: &Vec<u8>| CpuModule::load(object, &ImportTable::standard()).unwrap_or_else(|e| panic!("{e}"));
    let modules: Vec<CpuModule> = code.objects.iter().map(load).collect();
    let values: Vec<Vec<u64>> = (0..graph.value_count())
        .map(|i| {
            let v = tilewright_compiler::graph::ValueId(i);
            let bytes = match graph.constant(v) {
                Some(c) => c.to_bytes(),
                None if i < inputs.len() => inputs[i].to_bytes(),
                None => {
                    let n = graph.ty(v).element_count().unwrap() * graph.ty(v).dtype.size_bytes();
                    vec![0xa5; n]
                }
            };
            words(&bytes)
        })
        .collect();
    let own: Vec<Vec<u64>> = code.constants.iter().map(|c| words(&c.bytes)).collect();
    let mut times = Vec::new();
    for e in &code.entries {
        let mut workspace = vec![0xa5a5_a5a5_a5a5_a5a5u64; e.workspace_bytes / 8 + 16];
        let inputs = e.inputs.iter().map(|operand| match operand {
            Operand::Value(v) => values[v.0].as_ptr().cast_mut().cast::<u8>(),
            Operand::Own(i) => own[*i].as_ptr().cast_mut().cast(),
        });
        let outputs = e.outputs.iter().map(|v| values[v.0].as_ptr().cast_mut().cast());
        let args: Vec<*mut u8> = inputs.chain(outputs).collect();
        let space = workspace.as_mut_ptr() as usize;
        let args = [args, vec![space.next_multiple_of(64) as *mut u8]].concat();
        let f = modules[e.object].function(&e.symbol).expect("every entry is a function");
        // SAFETY: the arguments are the values that the entry names, of the right sizes, and a workspace of its size.
        assert_eq!(unsafe { f.call(&args) }, 0);
        // Run again to measure the time: entries keep no state and do not write their inputs.
        let begin = std::time::Instant::now();
        // SAFETY: the same as above.
        assert_eq!(unsafe { f.call(&args) }, 0);
        times.push((begin.elapsed(), &e.symbol));
    }
    let total: std::time::Duration = times.iter().map(|t| t.0).sum();
    let slowest = times.iter().max().map(|t| format!(", most in {} {:?}", t.1, t.0)).unwrap_or_default();
    println!("{}: compiled in {compiled:?}, runs in {total:?}{slowest}", graph.name());
    let outputs = graph.outputs().iter().map(|(_, v)| {
        let ty = graph.ty(*v);
        let bytes: Vec<u8> = values[v.0].iter().flat_map(|w| w.to_le_bytes()).collect();
        let shape = ty.shape().unwrap();
        let n = ty.element_count().unwrap() * ty.dtype.size_bytes();
        Tensor::from_bytes(ty.dtype, &shape, &bytes[..n]).unwrap()
    });
    outputs.collect()
}

fn words(bytes: &[u8]) -> Vec<u64> {
    let mut padded = bytes.to_vec();
    padded.resize(bytes.len().next_multiple_of(8) + 8, 0xa5);
    padded.chunks_exact(8).map(|c| c.iter().rev().fold(0, |w, &b| w << 8 | b as u64)).collect()
}

/// Runs a graph with one output through object code and compares the result with the graph's evaluation.
fn equals_evaluation(backend: &LlvmBackend, name: &str, graph: &Graph, inputs: &[Tensor]) {
    let want = eval(graph, inputs).unwrap();
    let got = run(backend, graph, inputs);
    let most = tolerance(want[0].dtype());
    let d = difference(&got[0], &want[0]);
    assert!(d <= most, "{name}: differs by {d}\n{}", tilewright_compiler::graph::text::print(graph));
}

#[test]
fn every_operator_equals_the_graph_evaluation() {
    let backend = LlvmBackend::new().unwrap();
    for p in problems(100, 4).unwrap().into_iter().chain([special_numbers().unwrap()]) {
        equals_evaluation(&backend, &p.name, &p.graph, &p.inputs);
    }
}

#[test]
fn listed_steps_lead_from_expressions_to_loops() {
    let backend = LlvmBackend::new().unwrap();
    for p in problems(100, 4).unwrap() {
        check_listings(&backend, &p.graph).unwrap_or_else(|e| panic!("{}: {e}", p.name));
    }
}

#[test]
fn every_form_of_code_is_listed() {
    let backend = LlvmBackend::new().unwrap();
    let graph = &problems(100, 1).unwrap()[0].graph;
    let nodes: Vec<_> = graph.nodes().map(|(id, _)| id).collect();
    for listing in backend.listings(graph, &nodes, backend.forms()).unwrap() {
        assert_eq!(listing.code.iter().map(|code| code.0).collect::<Vec<_>>(), backend.forms());
        assert!(listing.code[0].1.contains("define i32 @tw_") && listing.code[1].1.contains("tw_"));
    }
}
