//! Measures the overhead of a session's call over the kernels that it runs: the smallest network on this machine's
//! processor with one thread, compared with calling the same functions in sequence on separate buffers.

use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group};
use tilewright::model::inference::made_up;
use tilewright::model::{self, Offload, Options, Sizes};
use tilewright_c::{TW_NONE, TW_OK, tw_artifact_open_bytes, tw_payload, tw_session_open, tw_session_run, tw_value};
use tilewright_hw::config::HwConfig;
use tilewright_runtime::artifact::{Artifact, StepKind};
use tilewright_runtime::buffer::AlignedBytes;
use tilewright_runtime::dlpack::{CPU, DLDevice, DLTensor};
use tilewright_runtime::loader::{CpuModule, ImportTable};
use tilewright_runtime::npy;
use tilewright_runtime::registry::Registry;
use tilewright_runtime::session::Session;
use tilewright_runtime::tensor::Tensor;
use tilewright_runtime::threads::Threads;

const LENET: &str = "tests/models/lenet-mnist/model_qdq_perchannel.onnx";

/// Number of rounds, and calls per round.
const ROUNDS: usize = 200;
const CALLS: u32 = 50;

fn network() -> (Artifact, Vec<Tensor>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(LENET);
    let graph = model::import(&path, Sizes::default()).expect("the network is read");
    let config = HwConfig::load("1x16x16").expect("a preset");
    let options = Options { offload: Offload::None, ..Options::new(&config) };
    let artifact = model::build(graph, &options, &mut |_, _| {}).expect("the network compiles");
    let inputs = made_up(&artifact.manifest.input_values());
    (artifact, inputs)
}

/// A network's functions with their tensors.
struct Kernels {
    modules: Vec<CpuModule>,
    /// Module, name and pointers of each step.
    calls: Vec<(usize, String, Vec<*mut u8>)>,
    /// The buffers to which the pointers point: values, then workspaces.
    buffers: Vec<AlignedBytes>,
}

// SAFETY: the pointers point to the buffers in the same struct, which nothing else refers to.
unsafe impl Send for Kernels {}

impl Kernels {
    fn new(artifact: &Artifact, inputs: &[Tensor]) -> Kernels {
        let manifest = &artifact.manifest;
        let objects = &manifest.cpu.as_ref().expect("code for the processor").objects;
        let imports = ImportTable::standard();
        let load = |object| CpuModule::load(artifact.blob(object), &imports).expect("the code is loaded");
        let modules: Vec<CpuModule> = objects.iter().map(|object| load(*object)).collect();
        let mut buffers: Vec<AlignedBytes> = manifest
            .values
            .iter()
            .map(|value| match value.constant {
                Some(blob) => AlignedBytes::copy_of(artifact.blob(blob)),
                None => AlignedBytes::zeroed(value.bytes()),
            })
            .collect();
        for (id, tensor) in manifest.inputs.iter().zip(inputs) {
            buffers[id.0 as usize].copy_from_slice(&tensor.bytes);
        }
        let mut calls = Vec::new();
        for step in &manifest.steps {
            let StepKind::Cpu { function, object, workspace_bytes } = &step.kind else {
                panic!("{} is no step of the processor's", step.name)
            };
            let values = step.inputs.iter().chain(&step.outputs);
            let mut args: Vec<*mut u8> = values.map(|id| buffers[id.0 as usize].as_mut_ptr()).collect();
            let mut workspace = AlignedBytes::zeroed(usize::try_from(*workspace_bytes).expect("it has room"));
            args.push(workspace.as_mut_ptr());
            buffers.push(workspace);
            calls.push((*object as usize, function.clone(), args));
        }
        Kernels { modules, calls, buffers }
    }

    fn run(&mut self) {
        for (module, name, args) in &self.calls {
            let function = self.modules[*module].function(name).expect("it is there");
            // SAFETY: the code comes from the toolkit's own code generator. Pointers are to inputs, outputs and
            // workspace in its order, with the sizes in the manifest. They live as long as `self`, and no step reads
            // what it writes.
            assert_eq!(unsafe { function.call(black_box(args)) }, 0, "{name}");
        }
    }
}

/// The network's session behind the C interface, with the caller's memory for its tensors.
struct InC {
    session: tw_value,
    shapes: Vec<Vec<i64>>,
    buffers: Vec<AlignedBytes>,
    tensors: Vec<DLTensor>,
    inputs: usize,
}

// SAFETY: the pointers point to the memory in the same struct, which nothing else refers to.
unsafe impl Send for InC {}

impl InC {
    fn new(artifact: &Artifact, inputs: &[Tensor]) -> InC {
        let none = tw_value { kind: TW_NONE, reserved: 0, data: tw_payload { integer: 0 } };
        let (mut opened, mut session, file) = (none, none, artifact.encode());
        // SAFETY: all pointers are to local variables of these types.
        unsafe {
            assert_eq!(tw_artifact_open_bytes(file.as_ptr().cast(), file.len(), &mut opened), TW_OK);
            assert_eq!(tw_session_open(opened, none, &mut session), TW_OK);
        }
        let manifest = &artifact.manifest;
        let ids = manifest.inputs.iter().chain(&manifest.outputs);
        let values: Vec<_> = ids.map(|id| &manifest.values[id.0 as usize]).collect();
        let mut made = InC {
            session,
            shapes: values.iter().map(|value| value.shape.iter().map(|axis| *axis as i64).collect()).collect(),
            buffers: values.iter().map(|value| AlignedBytes::zeroed(value.bytes())).collect(),
            tensors: Vec::new(),
            inputs: inputs.len(),
        };
        for (buffer, input) in made.buffers.iter_mut().zip(inputs) {
            buffer.copy_from_slice(&input.bytes);
        }
        for ((value, shape), buffer) in values.iter().zip(&mut made.shapes).zip(&mut made.buffers) {
            made.tensors.push(DLTensor {
                data: buffer.as_mut_ptr().cast(),
                device: DLDevice { device_type: CPU, device_id: 0 },
                ndim: shape.len() as i32,
                dtype: value.dtype.into(),
                shape: shape.as_mut_ptr(),
                strides: std::ptr::null_mut(),
                byte_offset: 0,
            });
        }
        made
    }

    fn run(&mut self) {
        let (inputs, outputs) = self.tensors.split_at(self.inputs);
        // SAFETY: the tensors describe the buffers in the same struct, and no two of them overlap.
        let status =
            unsafe { tw_session_run(self.session, inputs.as_ptr(), inputs.len(), outputs.as_ptr(), outputs.len()) };
        assert_eq!(status, TW_OK);
    }
}

/// The network's session in a process of Python, which runs it whenever it gets a line.
struct InPython {
    child: Child,
    lines: BufReader<ChildStdout>,
    _folder: tempfile::TempDir,
}

impl InPython {
    /// With the package in the folder that TILEWRIGHT_PYTHON_PACKAGE names; without it, there is none.
    fn new(artifact: &Artifact, inputs: &[Tensor]) -> Option<InPython> {
        let package = std::env::var_os("TILEWRIGHT_PYTHON_PACKAGE")?;
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = tempfile::tempdir().expect("a folder");
        let (model, input) = (folder.path().join("lenet.twa"), folder.path().join("input.npy"));
        artifact.write(&model).expect("the artifact is written");
        npy::write(&input, &inputs[0]).expect("the input is written");
        let mut child = Command::new(root.join(".venv/bin/python"))
            .arg(root.join("scripts/bench_call.py"))
            .args([&model, &input])
            .arg(CALLS.to_string())
            .env("PYTHONPATH", package)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python starts");
        let lines = BufReader::new(child.stdout.take().expect("a pipe"));
        Some(InPython { child, lines, _folder: folder })
    }

    /// Microseconds of a call.
    fn round(&mut self) -> f64 {
        let mut line = String::new();
        self.child.stdin.as_mut().expect("a pipe").write_all(b"\n").expect("Python waits");
        self.lines.read_line(&mut line).expect("Python answers");
        line.trim().parse().expect("a number")
    }
}

impl Drop for InPython {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn calls(criterion: &mut Criterion) {
    let (artifact, inputs) = network();
    let mut session = Session::new(artifact.clone(), &Registry::new(), None).expect("the network opens");
    let mut kernels = Kernels::new(&artifact, &inputs);
    let mut in_c = InC::new(&artifact, &inputs);
    let pool = Threads::new(1).expect("a thread");
    let mut group = criterion.benchmark_group("lenet on cpu, 1 thread");
    group.bench_function("a session's call", |b| {
        pool.install(|| b.iter(|| session.run(black_box(&inputs)).expect("it runs")));
    });
    group.bench_function("its kernels", |b| {
        pool.install(|| b.iter(|| kernels.run()));
    });
    group.finish();
    pool.install(|| compare(&artifact, &mut session, &mut kernels, &mut in_c, &inputs));
}

/// Prints the overhead of a call, in Rust, in C and in Python. All are measured alternately, so that disturbances affect all.
fn compare(artifact: &Artifact, session: &mut Session, kernels: &mut Kernels, in_c: &mut InC, inputs: &[Tensor]) {
    let (outputs, _) = session.run(inputs).expect("it runs");
    kernels.run();
    in_c.run();
    for (buffer, output) in in_c.buffers[inputs.len()..].iter().zip(&outputs) {
        assert_eq!(output.bytes, buffer[..], "C and Rust give the same");
    }
    for (id, output) in artifact.manifest.outputs.iter().zip(&outputs) {
        assert_eq!(output.bytes, kernels.buffers[id.0 as usize][..], "kernels and session compute the same");
    }
    let each = |time: Duration| time.as_secs_f64() * 1e6 / f64::from(CALLS);
    let mut in_python = InPython::new(artifact, inputs);
    let mut rounds: Vec<[f64; 5]> = (0..ROUNDS)
        .map(|_| {
            let begun = Instant::now();
            (0..CALLS).for_each(|_| drop(black_box(session.run(black_box(inputs)))));
            let call = each(begun.elapsed());
            let begun = Instant::now();
            (0..CALLS).for_each(|_| kernels.run());
            let alone = each(begun.elapsed());
            let begun = Instant::now();
            (0..CALLS).for_each(|_| in_c.run());
            let in_c = each(begun.elapsed());
            let in_python = in_python.as_mut().map_or(alone, InPython::round);
            [call - alone, call, alone, in_c - alone, in_python - alone]
        })
        .collect();
    let mut sorted = |part: usize| {
        rounds.sort_by(|a, b| a[part].total_cmp(&b[part]));
        [ROUNDS / 10, ROUNDS / 2, ROUNDS - 1 - ROUNDS / 10].map(|at| rounds[at][part])
    };
    let ([low, above, high], [_, call, _], [_, alone, _]) = (sorted(0), sorted(1), sorted(2));
    let [low_c, above_c, high_c] = sorted(3);
    println!(
        "a session's call takes {above:.2} us above its {} kernels ({low:.2} to {high:.2} in eight of ten rounds): {call:.2} us, and \
         they alone {alone:.2} us",
        kernels.calls.len()
    );
    println!("in C it takes {above_c:.2} us above them ({low_c:.2} to {high_c:.2})");
    let [low_py, above_py, high_py] = sorted(4);
    match in_python {
        Some(_) => println!("in Python it takes {above_py:.2} us above them ({low_py:.2} to {high_py:.2})"),
        None => println!("in Python: not measured; `make bench-call` builds the package for it"),
    }
}

criterion_group!(benches, calls);

fn main() {
    benches();
    Criterion::default().configure_from_args().final_summary();
}
