//! Measures the first run of networks at new shapes: what compiling for a shape takes, and what sharing CPU code between
//! shapes saves and costs.
//!
//! The accelerator's programs of a further shape take plans over from shapes before it. Their cycles, by the cycle model,
//! are compared with those of the network compiled for the shape alone.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use mimalloc::MiMalloc;
use tilewright::device::{self, DeviceKind, Extras};
use tilewright::model::inference::made_up;
use tilewright::model::{self, CompileRequest, Jit, ModelFile, Sizes};
use tilewright_hw::config::HwConfig;
use tilewright_runtime::SharedDevice;
use tilewright_runtime::artifact::{Artifact, OpenValue, ValueInfo};
use tilewright_runtime::function::AnyError;
use tilewright_runtime::registry::Registry;
use tilewright_runtime::session::{DynamicSession, Session, Specialize, TensorRef};
use tilewright_runtime::tensor::Tensor;

/// The program's allocator.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Shapes of each network.
const COUNT: usize = 20;

/// Runs of a shape; the fastest counts.
const RUNS: usize = 9;

/// A network, and the sizes of its inputs for shape `number`.
struct Network {
    name: &'static str,
    sizes: fn(usize) -> Vec<Vec<usize>>,
}

const NETWORKS: [Network; 3] = [
    Network { name: "resnet8-open/model_qdq.onnx", sizes: |n| vec![vec![1 + n % 2, 3, 24 + 4 * (n % 7), 20 + 3 * n]] },
    Network { name: "bert-open/model.onnx", sizes: |n| vec![vec![1 + n % 3, 5 + 11 * n % 92]; 2] },
    Network { name: "ppocr-cls/model.onnx", sizes: |n| vec![vec![1, 3, 48 + 16 * (n % 5), 64 + 32 * (n / 5)]] },
];

/// A model that the session and the bench share: the bench compares its artifacts with others.
struct Shared(Arc<Jit>);

impl Specialize for Shared {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn inputs(&self) -> &[OpenValue] {
        self.0.inputs()
    }

    fn specialize(&self, inputs: &[TensorRef]) -> Result<Artifact, AnyError> {
        self.0.specialize(inputs)
    }
}

/// The geometric mean.
fn mean(ratios: &[f64]) -> f64 {
    (ratios.iter().map(|x| x.ln()).sum::<f64>() / ratios.len() as f64).exp()
}

fn main() {
    let config = HwConfig::default();
    for Network { name, sizes } in NETWORKS {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/models").join(name);
        let file = ModelFile::from(&*file);
        for level in [1, 2] {
            // Caches of code would hide what a shape takes.
            let folder = tempfile::tempdir().expect("a folder");
            // SAFETY: no other thread runs yet.
            unsafe { std::env::set_var("XDG_CACHE_HOME", folder.path()) };
            let request = CompileRequest { level, ..CompileRequest::default() };
            let jit = request.jit(&file, Sizes::default(), &config, DeviceKind::FSIM).expect("the network is read");
            let jit = Arc::new(jit);
            let inputs = model::open_inputs(&file).expect("the network is read");
            let open = |kind| {
                let inner = device::open(kind, &config, Extras::default(), &|_| {}).expect("the device opens");
                SharedDevice::new(inner.expect("a simulator"))
            };
            let (device, timed) = (open(DeviceKind::FSIM), open(DeviceKind::CSIM));
            let shared = Box::new(Shared(jit.clone()));
            let mut session = DynamicSession::new(shared, Registry::global(), Some(device.clone()));
            let mut first = Vec::new();
            let (mut slower, mut more_cycles) = (Vec::new(), Vec::new());
            for number in 0..COUNT {
                let shapes = sizes(number);
                let values = inputs.iter().zip(&shapes).map(|(input, shape)| {
                    let (name, dtype, shape) = (input.name.clone(), input.dtype, shape.clone());
                    ValueInfo::new(&name, dtype, shape)
                });
                let values: Vec<ValueInfo> = values.collect();
                let given: Vec<Tensor> = made_up(&values.iter().collect::<Vec<_>>());
                let begun = Instant::now();
                session.run(&given).expect("it runs");
                first.push(begun.elapsed().as_secs_f64() * 1e3);
                if number % 5 == 4 {
                    let named = inputs.iter().map(|input| input.name.clone()).zip(shapes).collect();
                    let sizes = Sizes { inputs: named, ..Sizes::default() }.into();
                    let own = request.compile_file(&file, &sizes, &config, DeviceKind::FSIM, &mut |_, _| {});
                    let own = own.expect("the network compiles").artifact;
                    let cycles = |artifact: Artifact| {
                        let on = Session::on(artifact, Registry::global(), Some(timed.clone()));
                        on.expect("it opens").run(&given).expect("it runs").1.cycles()
                    };
                    let further = jit
                        .specialize(&given.iter().map(TensorRef::from).collect::<Vec<_>>())
                        .expect("the network compiles");
                    if let Some((further, own)) = cycles(further).zip(cycles(own.clone())) {
                        more_cycles.push(further as f64 / own as f64);
                    }
                    let mut own = Session::on(own, Registry::global(), Some(device.clone())).expect("it opens");
                    own.run(&given).expect("it runs");
                    let best = |run: &mut dyn FnMut()| {
                        let times = (0..RUNS).map(|_| {
                            let begun = Instant::now();
                            run();
                            begun.elapsed().as_secs_f64()
                        });
                        times.fold(f64::INFINITY, f64::min)
                    };
                    let shared = best(&mut || drop(session.run(&given).expect("it runs")));
                    slower.push(shared / best(&mut || drop(own.run(&given).expect("it runs"))));
                }
            }
            let mut later = first[COUNT / 2..].to_vec();
            later.sort_by(f64::total_cmp);
            println!(
                "{name:28} -O{level}: first runs of {COUNT} shapes: {} ms; of the last {}: median {:.0}, most {:.0} ms; \
                 a run takes {:.2} of that of code for its shape{}",
                first.iter().map(|ms| format!("{ms:.0}")).collect::<Vec<_>>().join(" "),
                later.len(),
                later[later.len() / 2],
                later[later.len() - 1],
                mean(&slower),
                match more_cycles.iter().copied().reduce(f64::max) {
                    Some(most) => format!(", {:.3} of its cycles, at most {most:.3}", mean(&more_cycles)),
                    None => String::new(),
                }
            );
        }
    }
}
