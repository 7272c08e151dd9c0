use tilewright_compiler::graph::{Graph, NodeId, eval};
use tilewright_compiler::suite::{check_listings, difference, problems, special_numbers, tolerance};
use tilewright_runtime::cuda::CudaCode;

use crate::CudaBackend;
use crate::library::Least;

mod gpu;
mod host;
mod models;
mod nvrtc;
mod scalars;
mod standin;
mod text;

use host::HostLibrary;

/// Uses a library for every product.
const ANY: Least = Least { rows: 1, columns: 1, steps: 1 };

/// Compiles a whole graph. Returns its code and entries.
fn compile(backend: &CudaBackend, graph: &Graph, least: Least) -> (CudaCode, Vec<tilewright_compiler::backend::Entry>) {
    let nodes: Vec<NodeId> = graph.nodes().map(|(id, _)| id).collect();
    let object = backend.compile_from(graph, &nodes, least).unwrap_or_else(|e| panic!("{e}"));
    let code = CudaCode::decode(&object.objects[0]).unwrap();
    for e in &object.entries {
        code.entry(&e.symbol, e.inputs.len(), e.outputs.len(), e.workspace_bytes as u64).unwrap();
    }
    (code, object.entries)
}

#[test]
fn every_operator_on_the_host_equals_the_graph_evaluation() {
    let problems = [problems(100, 4).unwrap(), vec![special_numbers().unwrap()]].concat();
    let graphs: Vec<&Graph> = problems.iter().map(|p| &p.graph).collect();
    let host = HostLibrary::new(&CudaBackend::default(), &graphs, ANY);
    let mut wrong = Vec::new();
    let mut products = 0;
    for (i, p) in problems.iter().enumerate() {
        let want = eval(&p.graph, &p.inputs).unwrap();
        products += host.products(i);
        let ways: &[bool] = if host.products(i) > 0 { &[false, true] } else { &[false] };
        for &library in ways {
            let got = host.run(i, &p.graph, &p.inputs, library);
            let most = tolerance(want[0].dtype());
            let d = difference(&got[0], &want[0]);
            if d.is_nan() || d > most {
                wrong.push(format!("{} (library: {library}): differs by {d}", p.name));
            }
        }
    }
    assert!(products > 25, "{products} problems have a product for a library");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn listed_steps_lead_from_expressions_to_loops() {
    for p in problems(100, 4).unwrap() {
        check_listings(&CudaBackend::default(), &p.graph).unwrap_or_else(|e| panic!("{}: {e}", p.name));
    }
}
