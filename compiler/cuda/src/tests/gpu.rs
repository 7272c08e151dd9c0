//! Kernels on a GPU, where there is one, and on the stand-in.

use std::path::Path;
use std::process::Command;

use tilewright_compiler::backend::Operand;
use tilewright_compiler::graph::{DType, Graph, Tensor, ValueId, eval};
use tilewright_compiler::suite::{difference, problems};
use tilewright_runtime::cuda::Gpu;
use tilewright_testing::standin::{Library, StandIn};

use super::{ANY, compile, models, nvrtc};
use crate::CudaBackend;

/// The outputs of a graph of 32-bit floats or integers, with a library's products or without.
fn run(gpu: &Gpu, graph: &Graph, inputs: &[Tensor], library: bool, cache: &Path) -> Vec<Tensor> {
    let (mut code, entries) = compile(&CudaBackend::default(), graph, ANY);
    if !library {
        code.entries.iter_mut().for_each(|entry| entry.library.clear());
    }
    let program = gpu.load(&code, Some(cache)).unwrap();
    let values: Vec<_> = (0..graph.value_count())
        .map(|i| {
            let ty = graph.ty(ValueId(i));
            let bytes = ty.element_count().unwrap() * ty.dtype.size_bytes();
            let mut memory = gpu.allocate(bytes).unwrap();
            let given =
                graph.constant(ValueId(i)).map(|c| c.to_bytes()).or_else(|| inputs.get(i).map(|t| t.to_bytes()));
            gpu.write(&mut memory, 0, &given.unwrap_or_default()).unwrap();
            memory
        })
        .collect();
    for e in &entries {
        let workspace = gpu.allocate(e.workspace_bytes).unwrap();
        let entry = code.entries.iter().find(|c| c.symbol == e.symbol).unwrap();
        let read = e.inputs.iter().map(|o| match o {
            Operand::Value(v) => values[v.0].address(),
            Operand::Own(_) => panic!("it makes no constants"),
        });
        let written = e.outputs.iter().map(|v| values[v.0].address());
        gpu.launch(&program, entry, &read.collect::<Vec<_>>(), &written.collect::<Vec<_>>(), workspace.address())
            .unwrap();
        gpu.wait().unwrap();
    }
    let outputs = graph.outputs().iter().map(|(_, v)| {
        let ty = graph.ty(*v);
        let mut bytes = vec![0; ty.element_count().unwrap() * ty.dtype.size_bytes()];
        gpu.read(&values[v.0], 0, &mut bytes).unwrap();
        Tensor::from_bytes(ty.dtype, &ty.shape().unwrap(), &bytes).unwrap()
    });
    outputs.collect()
}

#[test]
fn suite_and_networks_on_a_gpu_equal_the_graph_evaluation() {
    nvrtc::preload();
    let gpu = match Gpu::open() {
        Ok(gpu) => gpu,
        Err(error) => return tilewright_testing::skip(&format!("needs a GPU: {error}")),
    };
    let suite = problems(100, 4).unwrap().into_iter().map(|p| (p.name, p.graph, p.inputs));
    // The large one has too many products for a processor.
    let networks = if gpu.name().contains("stand-in") { models::graphs() } else { models::all_graphs() };
    let networks = networks.into_iter().map(|(name, graph)| {
        let inputs = models::inputs(&graph);
        (name, graph, inputs)
    });
    let mut wrong = Vec::new();
    let cache = tempfile::tempdir().unwrap();
    for (name, graph, inputs) in suite.chain(networks) {
        let want = eval(&graph, &inputs).unwrap();
        let of_floats = (0..graph.value_count()).any(|v| graph.ty(ValueId(v)).dtype == DType::F32);
        for library in [false, true] {
            for (g, w) in run(&gpu, &graph, &inputs, library, cache.path()).iter().zip(&want) {
                // Functions of floats are CUDA's own, whose last bits may move an integer that is made of them by a step; what is
                // made of integers alone is exact.
                let most = match w.dtype() {
                    DType::F32 => 1e-4,
                    _ if of_floats => 1.0,
                    _ => 0.0,
                };
                let d = difference(g, w);
                if d.is_nan() || d > most {
                    wrong.push(format!("{name} (library: {library}): differs by {d}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[ignore = "compiles every kernel with the host's compiler: some minutes"]
fn suite_and_networks_run_on_the_stand_in() {
    let stand_in = StandIn::new(&[Library::Driver, Library::Nvrtc, Library::CublasLt]);
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "tests::gpu::suite_and_networks_on_a_gpu_equal_the_graph_evaluation", "--nocapture"]);
    stand_in.apply(&mut command);
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && !out.contains("skipped"), "{:?} {out}{err}", output.status);
    assert!(stand_in.calls().iter().any(|call| call.starts_with("product")), "no library's product ran");
}
