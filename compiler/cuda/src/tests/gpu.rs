//! Runs kernels on a GPU, if there is one, and on the stand-in.

use std::path::Path;
use std::process::Command;

use half::f16;
use tilewright_compiler::backend::Operand;
use tilewright_compiler::graph::{DType, Graph, Tensor, ValueId, eval};
use tilewright_compiler::suite::{difference, problems};
use tilewright_runtime::cuda::Gpu;
use tilewright_testing::standin::{Library, StandIn};

use super::{ANY, compile, models, nvrtc};
use crate::{CudaBackend, Precision};

/// Returns a tensor's bytes as stored in GPU memory.
fn stored(tensor: &Tensor, precision: Precision) -> Vec<u8> {
    match (precision, tensor.as_slice::<f32>()) {
        (Precision::F16, Ok(values)) => values.iter().flat_map(|v| f16::from_f32(*v).to_le_bytes()).collect(),
        _ => tensor.to_bytes(),
    }
}

/// Returns the tensor for bytes read from GPU memory.
fn loaded(bytes: &[u8], dtype: DType, shape: &[usize], precision: Precision) -> Tensor {
    if (dtype, precision) != (DType::F32, Precision::F16) {
        return Tensor::from_bytes(dtype, shape, bytes).unwrap();
    }
    let values: Vec<f32> = bytes.chunks_exact(2).map(|b| f16::from_le_bytes([b[0], b[1]]).to_f32()).collect();
    Tensor::from_fn(shape, |i| values[i])
}

/// Returns the outputs of a graph, with or without library products.
fn run(gpu: &Gpu, precision: Precision, graph: &Graph, inputs: &[Tensor], library: bool, cache: &Path) -> Vec<Tensor> {
    let (mut code, entries) = compile(&CudaBackend { precision }, graph, ANY);
    if !library {
        code.entries.iter_mut().for_each(|entry| entry.library.clear());
    }
    let program = gpu.load(&code, Some(cache)).unwrap();
    let values: Vec<_> = (0..graph.value_count())
        .map(|i| {
            let ty = graph.ty(ValueId(i));
            let mut memory = gpu.allocate(ty.element_count().unwrap() * ty.dtype.size_bytes()).unwrap();
            let constant = graph.constant(ValueId(i)).map(|c| stored(c, precision));
            let given = constant.or_else(|| inputs.get(i).map(|t| stored(t, precision)));
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
        let half = (ty.dtype, precision) == (DType::F32, Precision::F16);
        bytes.truncate(if half { bytes.len() / 2 } else { bytes.len() });
        loaded(&bytes, ty.dtype, &ty.shape().unwrap(), precision)
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
    // The large network has too many products for a CPU.
    let networks = if gpu.name().contains("stand-in") { models::graphs() } else { models::all_graphs() };
    let networks = networks.into_iter().map(|(name, graph)| {
        let inputs = models::inputs(&graph);
        (name, graph, inputs)
    });
    let mut wrong = Vec::new();
    let cache = tempfile::tempdir().unwrap();
    for (name, graph, inputs) in suite.chain(networks) {
        let of_floats = (0..graph.value_count()).any(|v| graph.ty(ValueId(v)).dtype == DType::F32);
        // Integer-only graphs are the same for every float width, and the expressions of the large network take hours.
        let both = of_floats && name != models::LARGE.0;
        let widths: &[Precision] = if both { &[Precision::F32, Precision::F16] } else { &[Precision::F32] };
        for &precision in widths {
            let want = match precision {
                Precision::F32 => eval(&graph, &inputs).unwrap(),
                Precision::F16 => models::rounded_between_steps(&graph, &inputs, ANY),
            };
            for library in [false, true] {
                for (g, w) in run(&gpu, precision, &graph, &inputs, library, cache.path()).iter().zip(&want) {
                    // CUDA has its own float functions. A difference in the last bits can move an integer computed from
                    // floats by a step, or change which 16-bit float is nearest, and later steps amplify that.
                    // Integer-only results are exact.
                    let most = match (w.dtype(), precision) {
                        (DType::F32, Precision::F32) => 1e-4,
                        (DType::F32 | DType::F64, Precision::F16) => 2e-2,
                        (DType::F64, Precision::F32) => 1e-12,
                        _ if of_floats => 1.0,
                        _ => 0.0,
                    };
                    let d = difference(g, w);
                    if d.is_nan() || d > most {
                        wrong.push(format!("{name} ({precision:?}, library: {library}): differs by {d}"));
                    }
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
