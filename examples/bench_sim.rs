//! Prints the cycles of ResNet-18's layers on the cycle model, and the speed of the simulators (`make bench-sim`).
//!
//! With `--rtl`, the Verilated design also runs the layers, and must take as many cycles. Fails if the layers exceed
//! their limits.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use tilewright::model::inference::made_up;
use tilewright::model::shapes::{self, LAYERS, Layer};
use tilewright::model::{self, Options};
use tilewright_hw::config::HwConfig;
use tilewright_hw::device::Device;
use tilewright_runtime::artifact::Artifact;
use tilewright_runtime::registry::Registry;
use tilewright_runtime::session::Session;
use tilewright_sim::{Csim, CsimOptions, Fsim, Rtl, RtlOptions};

/// Limit for the cycles of all layers, each counted as often as it occurs.
const MOST: f64 = 7.0e6;
/// Minimum share of the array for each 3x3 layer with stride 1.
const LEAST_SHARE: f64 = 93.0;
/// Cycles that VTA's RTL takes for the same layers in Verilator.
const VTA: f64 = 7.73e6;
/// Cycles by a timing model of this design's contract.
const MODEL: f64 = 6.69e6;

fn main() -> ExitCode {
    match tables(std::env::args().any(|a| a == "--rtl")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn tables(rtl: bool) -> Result<()> {
    let config = HwConfig::load("1x16x16")?;
    layers(&config, rtl)?;
    println!();
    speeds(&config, rtl)
}

fn compiled(name: &str, config: &HwConfig) -> Result<Artifact> {
    let options = Options { level: 3, ..Options::new(config) };
    Ok(model::build(shapes::quantized(name)?, &options, &mut |_, _| {})?)
}

fn csim(config: &HwConfig, options: CsimOptions) -> Box<dyn Device> {
    Box::new(Csim::new(config.clone(), config.memory_bytes(), options))
}

fn verilated(config: &HwConfig) -> Result<Box<dyn Device>> {
    Ok(Box::new(Rtl::new(config.clone(), config.memory_bytes(), &RtlOptions::default())?))
}

/// Processor seconds of this thread, which do not depend on other programs on the machine.
fn processor_s() -> Result<f64> {
    let path = "/proc/thread-self/schedstat";
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
    let nanoseconds: f64 = text.split_whitespace().next().unwrap_or("").parse().with_context(|| path)?;
    Ok(nanoseconds / 1e9)
}

/// Cycles of one run, number of multiplications, and processor seconds of the fastest run.
fn run(artifact: &Artifact, device: Box<dyn Device>, repeats: usize) -> Result<(Option<u64>, u64, f64)> {
    let inputs = made_up(&artifact.manifest.input_values());
    let mut session = Session::new(artifact.clone(), &Registry::new(), Some(device))?;
    let (mut cycles, mut macs, mut seconds) = (None, 0, f64::INFINITY);
    for _ in 0..repeats {
        let before = processor_s()?;
        let (_, report) = session.run(&inputs)?;
        seconds = seconds.min(processor_s()? - before);
        cycles = report.cycles();
        macs = report.steps.iter().map(|s| s.macs).sum();
    }
    Ok((cycles, macs, seconds))
}

/// Cycles of a layer by itself, from device memory to device memory.
fn measured(name: &str, config: &HwConfig, rtl: bool) -> Result<u64> {
    let artifact = compiled(name, config)?;
    let strict = CsimOptions { strict: true, ..CsimOptions::default() };
    let cycles = run(&artifact, csim(config, strict), 1)?.0.with_context(|| format!("{name} has no cycles"))?;
    if rtl {
        let design = run(&artifact, verilated(config)?, 1)?.0;
        if design != Some(cycles) {
            bail!("{name}: the cycle model takes {cycles} cycles, the Verilated design {design:?}");
        }
    }
    Ok(cycles)
}

fn layers(config: &HwConfig, rtl: bool) -> Result<()> {
    let array = u64::from(config.batch * config.block_in * config.block_out);
    let bus = config.bus_bits;
    println!(
        "Layers of ResNet-18 on {}, bus of {bus} bits, latency {}, each from device memory to device memory with bias, \
         requantization and bounds{}",
        config.name,
        config.dram.latency,
        if rtl { "; the Verilated design takes the same cycles" } else { "" }
    );
    println!("| layer | shape | times | least | cycles | array | with a sum | array |");
    println!("|---|---|---|---|---|---|---|---|");
    let mut sums = [0; 3];
    for layer in LAYERS {
        let Layer { name, size, channels, out, kernel, stride, times } = *layer;
        let least = layer.macs() / array;
        let [plain, add] = [measured(name, config, rtl)?, measured(&format!("{name}-add"), config, rtl)?];
        let share = |cycles: u64| 100.0 * least as f64 / cycles as f64;
        println!(
            "| {name} | {size}x{size}x{channels} to {out}, {kernel}x{kernel}, step {stride} | {times} | {least} | {plain} | \
             {:.1} % | {add} | {:.1} % |",
            share(plain),
            share(add)
        );
        if kernel == 3 && stride == 1 && share(plain) < LEAST_SHARE {
            bail!("{name} keeps the array busy for {:.1} % of its cycles, not {LEAST_SHARE} %", share(plain));
        }
        for (sum, cycles) in sums.iter_mut().zip([least, plain, add]) {
            *sum += times * cycles;
        }
    }
    let mega = |cycles: f64| cycles / 1e6;
    let [least, plain, add] = sums.map(|n| n as f64);
    println!(
        "by occurrence: {:.3} million cycles ({:.1} % of the array), with sums {:.3}; least possible {:.3}; \
         a timing model of this design {:.2}; VTA's RTL {:.2}",
        mega(plain),
        100.0 * least / plain,
        mega(add),
        mega(least),
        mega(MODEL),
        mega(VTA)
    );
    if plain > MOST {
        bail!("the layers take {:.3} million cycles, more than {:.3}", mega(plain), mega(MOST));
    }
    Ok(())
}

/// Speed of the simulators on the whole of ResNet-18.
fn speeds(config: &HwConfig, rtl: bool) -> Result<()> {
    let artifact = compiled("resnet18", config)?;
    let (cycles, macs, seconds) = run(&artifact, csim(config, CsimOptions::default()), 3)?;
    let cycles = cycles.context("resnet18 has no cycles")?;
    let rate = |seconds: f64| cycles as f64 / seconds / 1e6;
    let true_macs = artifact.manifest.offloaded_macs();
    let array = u64::from(config.batch * config.block_in * config.block_out);
    println!(
        "ResNet-18, its {} million multiplications on the accelerator: {:.3} million cycles, {:.1} % of the array; rates of \
         one core's time, the few operators on the CPU included",
        true_macs / 1_000_000,
        cycles as f64 / 1e6,
        100.0 * true_macs as f64 / (array * cycles) as f64
    );
    println!("cycle model with values: {:.1} million cycles a second", rate(seconds));
    let timing = CsimOptions { timing_only: true, ..CsimOptions::default() };
    let (alone, _, seconds) = run(&artifact, csim(config, timing), 3)?;
    if alone != Some(cycles) {
        bail!("resnet18: {cycles} cycles with values, {alone:?} without");
    }
    println!("cycle model, times alone: {:.0} million cycles a second", rate(seconds));
    let (_, _, seconds) = run(&artifact, Box::new(Fsim::new(config.clone(), config.memory_bytes())), 3)?;
    println!("functional simulator: {:.1} billion multiplications a second", macs as f64 / seconds / 1e9);
    if rtl {
        let (design, _, seconds) = run(&artifact, verilated(config)?, 1)?;
        if design != Some(cycles) {
            bail!("resnet18: the cycle model takes {cycles} cycles, the Verilated design {design:?}");
        }
        println!("Verilated design: {:.2} million cycles a second, the same cycles", rate(seconds));
    }
    Ok(())
}
