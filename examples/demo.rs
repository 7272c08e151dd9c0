//! A trained network reads handwritten digits twice: on the accelerator's RTL, and on this machine's processor.
//!
//! `make demo` runs it. The digits appear in the terminal with the answers, then come cycles, utilization and times.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use tilewright::devices::{self, DeviceKind};
use tilewright::inference::{self, Results};
use tilewright::{dram, model};
use tilewright_hw::config::HwConfig;
use tilewright_runtime::artifact::Artifact;
use tilewright_runtime::npy;
use tilewright_runtime::registry::Registry;
use tilewright_runtime::session::Session;
use tilewright_runtime::tensor::Tensor;

const MODEL: &str = "tests/models/lenet-mnist/model_qdq_perchannel.onnx";
const HW: &str = "1x16x16";
/// Digits beside each other in 80 columns.
const PER_ROW: usize = 6;
/// Pixels of a side, and of the empty margin around a digit.
const SIDE: usize = 28;
const MARGIN: usize = 4;

fn main() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let digits = npy::read(&root.join("tests/models/digits/digits.npy"))?;
    let labels = npy::read(&root.join("tests/models/digits/labels.npy"))?;
    let config = HwConfig::load(HW)?;
    println!("A network reads {} handwritten digits, on accelerator {HW} and on the CPU.\n", labels.len());

    let started = Instant::now();
    let compile = |offload| -> Result<Artifact> {
        let graph = model::import(&root.join(MODEL), &Default::default())?;
        let options = model::Options { offload, ..model::Options::new(&config) };
        Ok(model::build(graph, &options, &mut |_, _| {})?)
    };
    let (on_accel, on_cpu) = (compile(true)?, compile(false)?);
    let compile_s = started.elapsed().as_secs_f64();

    let started = Instant::now();
    let device = devices::open(DeviceKind::Rtl, &config, None, &tell).context("the simulator of the RTL")?;
    let build_s = started.elapsed().as_secs_f64();
    tell("");

    let (rtl, rtl_s) = run("RTL", on_accel.clone(), device, &digits)?;
    let (cpu, cpu_s) = run("CPU", on_cpu, None, &digits)?;
    let (rtl_answers, cpu_answers) = (rtl.outputs[0].argmax_last(), cpu.outputs[0].argmax_last());
    show_digits(&digits, &labels, &rtl_answers);

    let right = |output: &Tensor| inference::accuracy(output, &labels);
    let same = rtl_answers.iter().zip(&cpu_answers).filter(|(a, b)| a == b).count();
    let bits = if rtl.outputs == cpu.outputs { ", outputs equal bit for bit" } else { "" };
    let runs = rtl.runs() as u64;
    let cycles = rtl.cycles().context("the RTL counts cycles")?;
    let utilization = rtl.utilization(&on_accel, config.macs_per_cycle()).unwrap_or(0.0);
    let manifest = &on_accel.manifest;
    let share = manifest.offloaded_macs() as f64 / manifest.macs().max(1) as f64;
    let micros = cycles as f64 / runs as f64 / config.host.clock_mhz;
    println!(
        "right answers     RTL {:.1} %, CPU {:.1} %",
        100.0 * right(&rtl.outputs[0])?,
        100.0 * right(&cpu.outputs[0])?
    );
    println!("agreement         RTL and CPU give the same answer for {same} of {runs} digits{bits}");
    println!("cycles            {} a digit, {:.0} us at {} MHz", cycles / runs, micros, config.host.clock_mhz);
    println!("utilization       {:.1} % of {} MACs a cycle", 100.0 * utilization, config.macs_per_cycle());
    println!("offloaded         {:.2} % of {} MACs a digit", 100.0 * share, manifest.macs());
    println!("memory            {}", dram::text(&config.dram, config.bus_bytes()));
    println!("simulating        {rtl_s:.2} s, {:.2} million cycles a second", cycles as f64 / rtl.wall_s() / 1e6);
    println!("on the CPU        {cpu_s:.4} s");
    println!("compiling         {compile_s:.2} s");
    println!("simulator's build {build_s:.1} s (kept for the next time)");
    ensure!(same as u64 == runs, "the RTL and the CPU disagree");
    Ok(())
}

fn run(
    what: &str,
    artifact: Artifact,
    device: Option<Box<dyn tilewright_hw::device::Device>>,
    digits: &Tensor,
) -> Result<(Results, f64)> {
    let values: Vec<_> =
        artifact.manifest.inputs.iter().map(|id| artifact.manifest.values[id.0 as usize].clone()).collect();
    let runs = inference::split(&values.iter().collect::<Vec<_>>(), std::slice::from_ref(digits))?;
    let mut session = Session::new(artifact, &Registry::new(), device)?;
    let started = Instant::now();
    let results = inference::run(&mut session, &runs, |done| tell(&format!("{what}: digit {done} of {}", runs.len())))?;
    tell("");
    Ok((results, started.elapsed().as_secs_f64()))
}

/// Prints the digits without their margins, two rows of pixels to a line, each block of them with the answers below.
fn show_digits(digits: &Tensor, labels: &Tensor, answers: &[usize]) {
    let side = (SIDE - 2 * MARGIN) / 2;
    // The mean of two by two pixels decides.
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

/// Shows what is being done, on a terminal.
fn tell(what: &str) {
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[K{what}");
        let _ = std::io::stderr().flush();
    }
}
