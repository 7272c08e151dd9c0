//! Measures how many plans of a layer `tune` draws and estimates in a second, and how many of the promising ones it times,
//! alone and together with their neighbors. The layers are convolutions of ResNet-50 on 1x16x16.

use std::hint::black_box;
use std::time::Duration;

use criterion::measurement::{Measurement, ValueFormatter, WallTime};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use mimalloc::MiMalloc;
use rustix::time::{ClockId, clock_gettime};
use tilewright::model::clock::CycleModel;
use tilewright::model::{Options, partitioned, shapes};
use tilewright_compiler::codegen::accel::Planned;
use tilewright_compiler::cost::Clock;
use tilewright_compiler::tune::Candidates;
use tilewright_hw::config::HwConfig;

/// The one of the program.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// The layers: 1x1 and 3x3 convolutions of the first and the last part of the network.
const LAYERS: [usize; 4] = [2, 3, 46, 47];

/// Number of decisions that are drawn for each layer.
const DRAWN: usize = 500_000;

/// Number of plans for which the compiler keeps its work, so that more of them are needed for a fair measurement.
const CACHED: usize = 512;

/// Measures the processor time of the thread, in which other programs of a busy machine do not count.
struct ThreadTime;

impl Measurement for ThreadTime {
    type Intermediate = Duration;
    type Value = Duration;

    fn start(&self) -> Duration {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
    }

    fn end(&self, start: Duration) -> Duration {
        self.start() - start
    }

    fn add(&self, a: &Duration, b: &Duration) -> Duration {
        *a + *b
    }

    fn zero(&self) -> Duration {
        Duration::ZERO
    }

    fn to_f64(&self, value: &Duration) -> f64 {
        value.as_nanos() as f64
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        WallTime.formatter()
    }
}

fn candidates(criterion: &mut Criterion<ThreadTime>) {
    let config = HwConfig::load("1x16x16").expect("a preset");
    let graph = shapes::quantized("resnet50").expect("the network is made");
    let options = Options { level: 2, records: None, ..Options::new(&config) };
    let (graph, partition) = partitioned(graph, &options, &mut |_, _| {}).expect("the network is partitioned");
    let clock = CycleModel { config: &config };
    let mut group = criterion.benchmark_group("candidates of ResNet-50");
    group.throughput(Throughput::Elements(1)).sample_size(20);
    for layer in LAYERS {
        let mut candidates = Candidates::new(&graph, &config, &partition, layer, 1).expect("there is such a layer");
        let name = candidates.name().to_string();
        group.bench_function(format!("{name}: estimated"), |b| {
            // Decisions that do not fit are drawn again.
            b.iter(|| {
                let plan = std::iter::repeat_with(|| candidates.draw()).flatten().next();
                black_box(candidates.estimate(plan.as_ref()))
            });
        });
        // The plans that a search times: those whose estimate is close to that of the compiler's plan.
        let limit = candidates.estimate(None) * 5 / 4;
        let drawn: Vec<_> = std::iter::repeat_with(|| candidates.draw()).take(DRAWN).flatten().collect();
        let plans: Vec<_> = drawn.into_iter().filter(|plan| candidates.estimate(Some(plan)) <= limit).collect();
        assert!(plans.len() > CACHED, "{name}: only {} plans", plans.len());
        let clock: &dyn Clock = &clock;
        let mut time = |what: &str, cycles: &dyn Fn(&Planned) -> Option<u64>| {
            let mut next = plans.iter().cycle();
            group.bench_function(format!("{name}: {what}"), |b| {
                b.iter(|| {
                    let plan = next.next().expect("there are plans");
                    assert!(cycles(plan).is_some(), "{} cannot be timed", plan.decisions());
                });
            });
        };
        time("timed alone", &|plan| candidates.cycles_alone(plan, clock));
        time("timed with its neighbors", &|plan| candidates.cycles(plan, clock));
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().with_measurement(ThreadTime);
    targets = candidates
}
criterion_main!(benches);
