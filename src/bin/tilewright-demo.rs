//! A demo of two trained networks, each on the accelerator and on this machine's CPU: one reads handwritten digits, the
//! other classifies photos.
//!
//! `make demo` runs it. It prints the digits with the answers, the photos as a table of classes, and cycles,
//! utilization and times below.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use tilewright::device::{self, DeviceKind, Extras};
use tilewright::model::classes::{self, Guess};
use tilewright::model::inference::{self, Results};
use tilewright::{device::dram, model, model::picture, model::zoo};
use tilewright_hw::config::HwConfig;
use tilewright_hw::device::Device;
use tilewright_runtime::artifact::Artifact;
use tilewright_runtime::npy;
use tilewright_runtime::registry::Registry;
use tilewright_runtime::session::Session;
use tilewright_runtime::tensor::Tensor;

const HW: &str = "1x16x16";
/// Digits next to each other in 80 columns.
const PER_ROW: usize = 6;
/// Side of a digit in pixels, and width of its empty margin.
const SIDE: usize = 28;
const MARGIN: usize = 4;
/// The photos, each with the class that another runtime computes with this network and its probability there
/// (`photos/README.md`).
const PHOTOS: &[(&str, &str, f64)] = &[
    ("chelsea.png", "tiger cat", 0.39),
    ("coffee.png", "espresso", 0.95),
    ("rocket.jpg", "missile", 0.33),
    ("camera.png", "tripod", 0.93),
    ("china.jpg", "palace", 0.39),
];
/// Tolerance of a probability; other bicubic filters and decoders change it by less.
const NEAR: f64 = 0.03;
/// Least utilization of the multipliers for a network of this size; the digits' network is too small for it.
const LEAST_UTILIZATION: f64 = 0.35;
/// Index of the photo that runs on the RTL.
const ON_RTL: usize = 1;

fn main() -> Result<()> {
    let config = HwConfig::load(HW)?;
    let started = Instant::now();
    rtl(&config)?;
    tell("");
    println!("simulator of the RTL ready in {:.1} s (kept for the next time)\n", started.elapsed().as_secs_f64());
    digits(&config)?;
    photos(&config)
}

/// Compiles a network with or without offloading; returns the artifact and the seconds.
fn compile(network: &str, config: &HwConfig, offload: bool) -> Result<(Artifact, f64)> {
    let started = Instant::now();
    let file = zoo::find(network)?.extract(&tilewright_sim::rtl::default_cache_dir()?)?;
    let graph = model::import(&file, model::Sizes::default())?;
    let options = model::Options { offload: model::Offload::all_if(offload), ..model::Options::new(config) };
    let artifact = model::build(graph, &options, &mut |_, _| {})?;
    Ok((artifact, started.elapsed().as_secs_f64()))
}

fn rtl(config: &HwConfig) -> Result<Option<Box<dyn Device>>> {
    device::open(DeviceKind::RTL, config, Extras::default(), &tell).context("the simulator of the RTL")
}

/// Prints the figures of a run on the RTL; returns the utilization of the multipliers.
fn figures(config: &HwConfig, artifact: &Artifact, results: &Results, one: &str) -> Result<f64> {
    let cycles = results.cycles().context("the RTL counts cycles")?;
    let utilization = results.utilization(artifact, config.macs_per_cycle()).unwrap_or(0.0);
    let (manifest, runs) = (&artifact.manifest, results.runs() as u64);
    let share = manifest.offloaded_macs() as f64 / manifest.macs().max(1) as f64;
    let millis = cycles as f64 / runs as f64 / config.host.clock_mhz / 1e3;
    println!("cycles            {} {one}, {millis:.2} ms at {} MHz", cycles / runs, config.host.clock_mhz);
    println!("utilization       {:.1} % of {} MACs a cycle", 100.0 * utilization, config.macs_per_cycle());
    println!("offloaded         {:.2} % of {} MACs {one}", 100.0 * share, manifest.macs());
    println!("memory            {}", dram::text(&config.dram, config.bus_bytes()));
    Ok(utilization)
}

fn digits(config: &HwConfig) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let digits = npy::read(&root.join("tests/models/digits/digits.npy"))?;
    let labels = npy::read(&root.join("tests/models/digits/labels.npy"))?;
    println!("A network reads {} handwritten digits, on accelerator {HW} and on the CPU.\n", labels.len());
    let (on_accel, accel_s) = compile("lenet-int8", config, true)?;
    let (on_cpu, cpu_compile_s) = compile("lenet-int8", config, false)?;
    let (rtl, rtl_s) = run("RTL: digit", on_accel.clone(), rtl(config)?, &digits)?;
    let (cpu, cpu_s) = run("CPU: digit", on_cpu, None, &digits)?;
    let (rtl_answers, cpu_answers) = (rtl.outputs[0].argmax_last(), cpu.outputs[0].argmax_last());
    show_digits(&digits, &labels, &rtl_answers);

    let right = |output: &Tensor| inference::accuracy(output, &labels);
    let same = rtl_answers.iter().zip(&cpu_answers).filter(|(a, b)| a == b).count();
    let bits = if rtl.outputs == cpu.outputs { ", outputs equal bit for bit" } else { "" };
    let runs = rtl.runs();
    println!(
        "right answers     RTL {:.1} %, CPU {:.1} %",
        100.0 * right(&rtl.outputs[0])?,
        100.0 * right(&cpu.outputs[0])?
    );
    println!("agreement         RTL and CPU give the same answer for {same} of {runs} digits{bits}");
    figures(config, &on_accel, &rtl, "a digit")?;
    let speed = rtl.cycles().unwrap_or(0) as f64 / rtl.wall_s() / 1e6;
    println!("simulating        {rtl_s:.2} s, {speed:.2} million cycles a second");
    println!("on the CPU        {cpu_s:.4} s");
    println!("compiling         {:.2} s\n", accel_s + cpu_compile_s);
    ensure!(same == runs, "the RTL and the CPU disagree");
    Ok(())
}

fn photos(config: &HwConfig) -> Result<()> {
    let entry = zoo::find("efficientnet-lite0-int8")?;
    let names = classes::names(entry.class_names);
    println!(
        "Another, {}, names {} photos on the functional simulator and the CPU, {} on the RTL.\n",
        entry.name,
        PHOTOS.len(),
        PHOTOS[ON_RTL].0
    );
    let (on_accel, accel_s) = compile(entry.name, config, true)?;
    let (on_cpu, cpu_compile_s) = compile(entry.name, config, false)?;
    let input = on_accel.manifest.inputs.first().context("the network takes a picture")?;
    let input = &on_accel.manifest.values[input.0 as usize];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/models/photos");
    let pictures = PHOTOS.iter().map(|(file, ..)| picture::read(&folder.join(file))).collect::<Result<Vec<_>, _>>()?;
    let all = entry.preprocess().tensor(&pictures, input, &Default::default())?;
    let one = entry.preprocess().tensor(&pictures[ON_RTL..=ON_RTL], input, &Default::default())?;

    let fsim_device = device::open(DeviceKind::FSIM, config, Extras::default(), &tell)?;
    let (fsim, fsim_s) = run("fsim: photo", on_accel.clone(), fsim_device, &all)?;
    let (cpu, cpu_s) = run("CPU: photo", on_cpu, None, &all)?;
    let (rtl, rtl_s) = run("RTL: photo", on_accel.clone(), rtl(config)?, &one)?;
    let answers =
        [&fsim, &cpu, &rtl].map(|results| classes::likeliest(&results.outputs[0], names.len(), &Default::default(), 3));

    println!("{:<12} {:<5} {:<58} expected", "photo", "on", "the likeliest three classes");
    let mut agree = true;
    for (index, (file, class, probability)) in PHOTOS.iter().enumerate() {
        let on_rtl = (index == ON_RTL).then(|| ("RTL", &answers[2][0]));
        for (device, row) in [("fsim", &answers[0][index]), ("CPU", &answers[1][index])].into_iter().chain(on_rtl) {
            let guess = |g: &Guess| format!("{} {:.1} %", names[g.class], 100.0 * g.probability);
            let list: Vec<String> = row.iter().map(guess).collect();
            let file = if device == "fsim" { file } else { "" };
            println!("{file:<12} {device:<5} {:<58} {class} {:.0} %", list.join(", "), 100.0 * probability);
            let first = row[0];
            agree &= names[first.class] == *class && (first.probability - probability).abs() <= NEAR;
        }
    }
    let row = all.shape[1..].iter().product::<usize>() * all.dtype.size();
    ensure!(one.bytes == all.bytes[ON_RTL * row..][..row], "the same photo became two inputs");
    let output = fsim.outputs[0].bytes.len() / PHOTOS.len();
    let same =
        fsim.outputs == cpu.outputs && rtl.outputs[0].bytes == fsim.outputs[0].bytes[ON_RTL * output..][..output];
    println!("\nagreement         outputs of all devices {}", if same { "equal bit for bit" } else { "DIFFER" });
    let utilization = figures(config, &on_accel, &rtl, "a photo")?;
    let per = |seconds: f64, photos: usize| seconds / photos as f64;
    println!(
        "seconds a photo   fsim {:.3}, CPU {:.3}, RTL {rtl_s:.2}",
        per(fsim_s, PHOTOS.len()),
        per(cpu_s, PHOTOS.len())
    );
    let speed = rtl.cycles().unwrap_or(0) as f64 / rtl.wall_s() / 1e6;
    println!("simulating        {speed:.2} million cycles a second on the RTL");
    println!("compiling         accelerator {accel_s:.2} s, CPU {cpu_compile_s:.2} s");
    ensure!(same, "the devices disagree");
    let least = 100.0 * LEAST_UTILIZATION;
    ensure!(utilization >= LEAST_UTILIZATION, "less than {least} % of the multipliers' time is used");
    ensure!(agree, "a photo's first class, or its probability, is not the expected one");
    Ok(())
}

fn run(what: &str, artifact: Artifact, device: Option<Box<dyn Device>>, inputs: &Tensor) -> Result<(Results, f64)> {
    let runs = inference::split(&artifact.manifest.input_values(), std::slice::from_ref(inputs))?;
    let mut session = Session::new(artifact, Registry::global(), device)?;
    let started = Instant::now();
    let results = inference::run(&mut session, &runs, |done| tell(&format!("{what} {done} of {}", runs.len())))?;
    tell("");
    Ok((results, started.elapsed().as_secs_f64()))
}

/// Prints the digits without their margins, two rows of pixels per line, with the answers below each block.
fn show_digits(digits: &Tensor, labels: &Tensor, answers: &[usize]) {
    let side = (SIDE - 2 * MARGIN) / 2;
    // Decides by the mean of two by two pixels.
    let dark = |digit: usize, y: usize, x: usize| {
        let pixel = |dy: usize, dx: usize| {
            digits.get_f64(digit * SIDE * SIDE + (MARGIN + 2 * y + dy) * SIDE + MARGIN + 2 * x + dx)
        };
        pixel(0, 0) + pixel(0, 1) + pixel(1, 0) + pixel(1, 1) > 1.4
    };
    let all: Vec<usize> = (0..answers.len()).collect();
    for row in all.chunks(PER_ROW) {
        for line in 0..side / 2 {
            let mut text = String::new();
            for &digit in row {
                for x in 0..side {
                    text.push(match (dark(digit, 2 * line, x), dark(digit, 2 * line + 1, x)) {
                        (true, true) => '█',
                        (true, false) => '▀',
                        (false, true) => '▄',
                        (false, false) => ' ',
                    });
                }
                text.push_str("   ");
            }
            println!("{}", text.trim_end());
        }
        let mut text = String::new();
        for &digit in row {
            let label = labels.get_f64(digit);
            let said = answers[digit];
            let word = if label == said as f64 { format!("it is {said}") } else { format!("{said}, not {label}") };
            text.push_str(&format!("{word:<width$}", width = side + 3));
        }
        println!("{}\n", text.trim_end());
    }
}

/// Shows the current activity on a terminal.
fn tell(what: &str) {
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[K{what}");
        let _ = std::io::stderr().flush();
    }
}
