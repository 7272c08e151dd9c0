//! Speed of the functional simulator on a convolution: only its products, and the whole layer.

mod convolution;

use convolution::Results;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tilewright_hw::HwConfig;
use tilewright_hw::device::Device;
use tilewright_sim::{Fsim, Kernel};

fn bench(c: &mut Criterion) {
    let config = HwConfig::load("1x16x16").expect("a preset");
    for (layer, results) in [("sums", Results::Sums), ("whole layer", Results::Bytes)] {
        let mut group = c.benchmark_group(format!("fsim 3x3 convolution 1x16x16, {layer}, multiply-accumulates"));
        for (name, kernel) in [("fastest", None), ("avx2", Some(Kernel::Avx2)), ("portable", Some(Kernel::Portable))] {
            let mut device = Fsim::new(config.clone(), 8 << 20);
            if let Some(kernel) = kernel {
                device = device.with_kernel(kernel);
            }
            convolution::fill(device.memory_mut());
            let command = convolution::stream(&config, &mut device, results);
            let report = device.run(&command).expect("runs");
            assert_eq!(report.trap, None);
            group.throughput(Throughput::Elements(report.macs));
            group.bench_function(name, |b| b.iter(|| device.run(&command).expect("runs")));
        }
        group.finish();
    }
}

criterion_group!(benches, bench);
criterion_main!(benches);
