//! Speed of the cycle model on a whole layer, in cycles: with values, with strict checks, and with timing only. Time of
//! what each run costs: a device, and a program of one instruction.

mod convolution;

use convolution::Results;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tilewright_hw::HwConfig;
use tilewright_hw::device::{Command, Device};
use tilewright_sim::{Csim, CsimOptions};

fn bench(c: &mut Criterion) {
    let config = HwConfig::load("1x16x16").expect("a preset");
    let mut group = c.benchmark_group("csim 3x3 convolution 1x16x16, whole layer, cycles");
    let all = CsimOptions::default();
    for (name, options) in [
        ("values", all),
        ("values, strict", CsimOptions { strict: true, ..all }),
        ("times alone", CsimOptions { timing_only: true, ..all }),
    ] {
        let mut device = Csim::new(config.clone(), 8 << 20, options);
        let mut image = vec![0; 8 << 20];
        convolution::fill(&mut image);
        // Write like a host, so that strict mode counts the bytes as written.
        device.write(0, &image).expect("inside memory");
        let command = convolution::stream(&config, &mut device, Results::Bytes);
        let report = device.run(&command).expect("runs");
        assert_eq!(report.trap, None);
        group.throughput(Throughput::Elements(report.cycles.unwrap_or(0)));
        group.bench_function(name, |b| b.iter(|| device.run(&command).expect("runs")));
    }
    group.finish();

    let options = CsimOptions { timing_only: true, ..all };
    let mut device = Csim::new(config.clone(), 1 << 23, options);
    let command = convolution::stream(&config, &mut device, Results::Bytes);
    let short = Command { insns: 1, ..command };
    let mut group = c.benchmark_group("csim, times alone");
    group.bench_function("new device with 8 MiB", |b| b.iter(|| Csim::new(config.clone(), 1 << 23, options)));
    group.bench_function("one instruction", |b| b.iter(|| device.run(&short).expect("runs")));
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
