//! Speed of the Verilated design on a convolution, in cycles.

mod convolution;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tilewright_hw::HwConfig;
use tilewright_hw::device::Device;
use tilewright_sim::{Fsim, Rtl, RtlOptions};

fn bench(c: &mut Criterion) {
    let config = HwConfig::load("1x16x16").expect("a preset");
    let mut device = match Rtl::new(config.clone(), 8 << 20, &RtlOptions::default()) {
        Ok(device) => device,
        Err(e) => {
            println!("skipped: {e}");
            return;
        }
    };
    convolution::fill(device.memory_mut());
    let command = convolution::stream(&config, &mut device, convolution::Results::Sums);
    let report = device.run(&command).expect("runs");
    let mut fsim = Fsim::new(config.clone(), 8 << 20);
    convolution::fill(fsim.memory_mut());
    let command_there = convolution::stream(&config, &mut fsim, convolution::Results::Sums);
    let expected = fsim.run(&command_there).expect("runs");
    assert_eq!((report.trap, report.retired, report.macs), (None, expected.retired, expected.macs));
    let mut group = c.benchmark_group("rtl 3x3 convolution 1x16x16, cycles");
    group.throughput(Throughput::Elements(report.cycles.unwrap_or(0)));
    group.sample_size(10);
    group.bench_function("run", |b| b.iter(|| device.run(&command).expect("runs")));
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
