//! Benchmarks through the library what `tilewright bench` compares: a network on this machine's processor with one and
//! two threads, and the whole comparison with the cycle model, with checked answers.

use std::hint::black_box;
use std::path::Path;

use criterion::{Criterion, criterion_group, criterion_main};
use tilewright::examine::bench::{Asked, BenchRequest, bench};
use tilewright::model::inference::made_up;
use tilewright::model::{self, Offload, Options, Sizes};
use tilewright_hw::config::HwConfig;
use tilewright_runtime::registry::Registry;
use tilewright_runtime::session::Session;
use tilewright_runtime::threads::Threads;

const LENET: &str = "tests/models/lenet-mnist/model_qdq_perchannel.onnx";

fn networks(criterion: &mut Criterion) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(LENET);
    let graph = model::import(&path, Sizes::default()).expect("the network is read");
    let config = HwConfig::load("1x16x16").expect("a preset");
    let options = Options { offload: Offload::None, ..Options::new(&config) };
    let artifact = model::build(graph.clone(), &options, &mut |_, _| {}).expect("the network compiles");
    let inputs = made_up(&artifact.manifest.input_values());

    let mut group = criterion.benchmark_group("lenet");
    for threads in [1, 2] {
        let pool = Threads::new(threads).expect("threads");
        let mut session = Session::new(artifact.clone(), &Registry::new(), None).expect("the network opens");
        group.bench_function(format!("cpu, {threads} threads"), |b| {
            pool.install(|| b.iter(|| session.run(black_box(&inputs)).expect("it runs")));
        });
    }
    let devices = ["csim", "cpu"].map(|name| Asked::parse(name).expect("a device"));
    let request = BenchRequest {
        devices: &devices,
        configs: std::slice::from_ref(&config),
        offload: Offload::All,
        level: 2,
        precision: Default::default(),
        threads: 1,
        warm_up: 1,
        repetitions: 1,
        compare_offload: false,
        tuned: &Default::default(),
    };
    group.sample_size(10);
    group.bench_function("comparison with csim", |b| {
        b.iter(|| {
            let found = bench(&graph, &inputs, &request, &|_, _, _| {}).expect("it is compared");
            assert!(found.columns.iter().all(|column| column.figures.as_ref().is_ok_and(|f| f.agrees)));
        });
    });
    group.finish();
}

criterion_group!(benches, networks);
criterion_main!(benches);
