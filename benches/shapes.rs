//! Measures the first run of networks at new shapes: what compiling for a shape takes, and what sharing CPU code between
//! shapes saves and costs.

use std::path::Path;
use std::time::Instant;

use tilewright::device::{self, DeviceKind, Extras};
use tilewright::model::inference::made_up;
use tilewright::model::{self, Jit, Options, Sizes};
use tilewright_hw::config::HwConfig;
use tilewright_runtime::SharedDevice;
use tilewright_runtime::artifact::ValueInfo;
use tilewright_runtime::registry::Registry;
use tilewright_runtime::session::{DynamicSession, Session};
use tilewright_runtime::tensor::Tensor;

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

fn main() {
    let config = HwConfig::default();
    for Network { name, sizes } in NETWORKS {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/models").join(name);
        for level in [1, 2] {
            // Caches of code would hide what a shape takes.
            let folder = tempfile::tempdir().expect("a folder");
            // SAFETY: no other thread runs yet.
            unsafe { std::env::set_var("XDG_CACHE_HOME", folder.path()) };
            let options = Options { level, ..Options::new(&config) };
            let jit = Jit::new(&file, Sizes::default(), &options).expect("the network is read");
            let inputs = model::open_inputs(&file).expect("the network is read");
            let inner = device::open(DeviceKind::FSIM, &config, Extras::default(), &|_| {}).expect("the device opens");
            let device = SharedDevice::new(inner.expect("a simulator"));
            let mut session = DynamicSession::new(Box::new(jit), Registry::global(), Some(device.clone()));
            let mut first = Vec::new();
            let mut slower = Vec::new();
            for number in 0..COUNT {
                let shapes = sizes(number);
                let values = inputs.iter().zip(&shapes).map(|(input, shape)| {
                    let (name, dtype, shape) = (input.name.clone(), input.dtype, shape.clone());
                    ValueInfo { name, dtype, shape, constant: None, source: None }
                });
                let values: Vec<ValueInfo> = values.collect();
                let given: Vec<Tensor> = made_up(&values.iter().collect::<Vec<_>>());
                let begun = Instant::now();
                session.run(&given).expect("it runs");
                first.push(begun.elapsed().as_secs_f64() * 1e3);
                if number % 5 == 4 {
                    let named = inputs.iter().map(|input| input.name.clone()).zip(shapes).collect();
                    let own = model::compile_file(&file, Sizes { inputs: named, ..Sizes::default() }, &options);
                    let own = own.expect("the network compiles");
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
            let mean = slower.iter().map(|x| x.ln()).sum::<f64>() / slower.len() as f64;
            println!(
                "{name:28} -O{level}: first runs of {COUNT} shapes: {} ms; of the last {}: median {:.0}, most {:.0} ms; \
                 a run takes {:.2} of that of code for its shape",
                first.iter().map(|ms| format!("{ms:.0}")).collect::<Vec<_>>().join(" "),
                later.len(),
                later[later.len() / 2],
                later[later.len() - 1],
                mean.exp()
            );
        }
    }
}
