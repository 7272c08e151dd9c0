//! Measures how many plans of a layer `tune` draws and estimates in a second, and how many it times. The layers are
//! convolutions of ResNet-50 on 1x16x16, alone and together with their neighbors.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tilewright::model::clock::CycleModel;
use tilewright::model::{Options, partitioned, shapes};
use tilewright_compiler::tune::Candidates;
use tilewright_hw::config::HwConfig;

/// The layers: 1x1 and 3x3 convolutions of the first and the last part of the network.
const LAYERS: [usize; 4] = [2, 3, 46, 47];

fn candidates(criterion: &mut Criterion) {
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
        group.bench_function(format!("{name}: drawn and estimated"), |b| b.iter(|| black_box(candidates.draw())));
        let plans: Vec<_> = std::iter::repeat_with(|| candidates.draw()).flatten().take(64).collect();
        for (what, alone) in [("timed alone", true), ("timed with its neighbors", false)] {
            let mut next = plans.iter().cycle();
            group.bench_function(format!("{name}: {what}"), |b| {
                b.iter(|| {
                    let plan = next.next().expect("there are plans");
                    assert!(candidates.cycles(plan, alone, &clock).is_some(), "{} cannot be timed", plan.decisions());
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, candidates);
criterion_main!(benches);
