//! `tune`: searches for plans of a model's layers that take fewer cycles, or less time on the CPU.

use std::fmt::Write as _;
#[cfg(feature = "llvm")]
use std::io::Read as _;
#[cfg(feature = "llvm")]
use std::path::Path;
use std::path::PathBuf;
#[cfg(feature = "llvm")]
use std::process::{Command, Stdio};
use std::time::Duration;
#[cfg(feature = "llvm")]
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::{Value, json};
#[cfg(feature = "llvm")]
use tilewright::model::ModelFile;
use tilewright::model::tuned::cpu::CpuTuning;
use tilewright::model::tuned::{self, TuneRequest};
use tilewright::model::{self, Options};
use tilewright_compiler::graph::Graph;

use super::compilation::ImportArgs;
use super::tuned::TunedOption;
use super::{Hw, Progress, Verdict, note, write_or_print};

/// Arguments of `tune`.
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("limit").required(true).multiple(true)))]
pub struct Tune {
    /// The model (.onnx, .tflite, zoo:NAME)
    #[arg(value_parser = ModelFile::parse)]
    file: ModelFile,
    #[command(flatten)]
    hw: Hw,
    /// Where the layers run that are tuned: on the accelerator, timed with the cycle model (csim), or on this machine's
    /// CPU, by measured times (cpu)
    #[arg(long, value_enum, default_value = "csim")]
    device: TunedDevice,
    /// Number of trials, including those that the log already has
    #[arg(long, value_name = "N", group = "limit", value_parser = clap::value_parser!(u32).range(1..))]
    trials: Option<u32>,
    /// Time for the search, such as 90s, 5m or 1h
    #[arg(long, value_name = "TIME", group = "limit", value_parser = time)]
    time: Option<Duration>,
    /// The log: a line is appended for each trial. If it exists, its trials are not repeated
    #[arg(long, value_name = "FILE")]
    log: PathBuf,
    /// Seed of the random decisions
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Optimization level, as for compile: 2 or 3
    #[arg(short = 'O', value_name = "LEVEL", default_value_t = 3, value_parser = clap::value_parser!(u8).range(2..=3))]
    level: u8,
    /// Tune only the layer that contains this node
    #[arg(long, value_name = "NODE")]
    layer: Option<String>,
    /// Threads [default: one per hardware thread]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    #[command(flatten)]
    tuned: TunedOption,
    #[command(flatten)]
    import: ImportArgs,
    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
}

/// Where the layers run that are tuned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum TunedDevice {
    /// The accelerator.
    Csim,
    /// The CPU.
    Cpu,
}

/// Arguments of `measure-artifact`.
#[derive(clap::Args)]
pub struct MeasureArtifact {
    /// The artifact
    file: PathBuf,
}

/// Parses a time: a number with the unit s, m or h.
fn time(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text} is not a time; write for example 90s, 5m or 1h");
    let unit = text.chars().last().ok_or_else(wrong)?;
    let seconds = match unit {
        's' => 1.0,
        'm' => 60.0,
        'h' => 3600.0,
        _ => return Err(wrong()),
    };
    let number: f64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    match Duration::try_from_secs_f64(number * seconds) {
        Ok(time) if !time.is_zero() => Ok(time),
        Ok(_) => Err("the time must be longer than 0".into()),
        Err(_) => Err(wrong()),
    }
}

impl Tune {
    pub fn run(self) -> Result<Verdict> {
        let config = self.hw.load()?;
        let graph = model::import(&self.file, self.import.options(&self.file.sample_shapes())?)?;
        let records = self.tuned.read()?.load(&config)?;
        let options = Options { level: self.level, records: records.get(), ..Options::new(&config) };
        let threads =
            self.threads.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from);
        let request = TuneRequest {
            options,
            log: &self.log,
            seed: self.seed,
            threads,
            trials: self.trials.map(|n| n as usize),
            time: self.time,
            layer: self.layer.as_deref(),
        };
        let all = self.trials.map_or(0, |n| n as usize);
        if self.device == TunedDevice::Cpu {
            return self.run_on_cpu(graph, &request, all);
        }
        let progress = Progress::new("tune", all);
        let tuning = tuned::tune(graph, &request, &mut |p| {
            progress.step(&format!("{} cycles", p.best), p.trials, all.max(p.trials));
        });
        progress.end();
        let tuning = tuning.with_context(|| self.file.display().to_string())?;
        for (reason, n) in &tuning.skipped {
            note(&format!("{}: {n} line(s) skipped: {reason}", self.log.display()));
        }
        if tuning.report.stale > 0 {
            note(&format!(
                "{}: {} trials are not used: their decisions now take other cycles, because the compiler has changed",
                self.log.display(),
                tuning.report.stale
            ));
        }
        let text = if self.json { format!("{}\n", tuning.json()) } else { tuning.text(self.file.display(), &self.log) };
        write_or_print(None, text.as_bytes())?;
        Ok(Verdict::Fine)
    }

    #[cfg(feature = "llvm")]
    fn run_on_cpu(&self, graph: Graph, request: &TuneRequest, all: usize) -> Result<Verdict> {
        let progress = Progress::new("tune", all);
        let tuning = tuned::cpu::tune_cpu(graph, request, &mut measure, &mut |n| {
            progress.step("trials on the CPU", n, all.max(n));
        });
        progress.end();
        let tuning = tuning.with_context(|| self.file.display().to_string())?;
        for (reason, n) in &tuning.skipped {
            note(&format!("{}: {n} line(s) skipped: {reason}", self.log.display()));
        }
        let text = if self.json { format!("{}\n", cpu_json(&tuning)) } else { self.cpu_text(&tuning) };
        write_or_print(None, text.as_bytes())?;
        Ok(Verdict::Fine)
    }

    #[cfg(not(feature = "llvm"))]
    fn run_on_cpu(&self, _: Graph, _: &TuneRequest, _: usize) -> Result<Verdict> {
        anyhow::bail!("this program was built without LLVM; build it with the feature `llvm`")
    }

    #[cfg(feature = "llvm")]
    fn cpu_text(&self, tuning: &CpuTuning) -> String {
        let [before, after] = tuning.ns();
        let mut text = format!(
            "{}: {:.1} us for the tuned layers, {:.1} us before ({:+.1} %)\n",
            self.file.display(),
            after as f64 / 1e3,
            before as f64 / 1e3,
            percent(before, after)
        );
        let report = &tuning.report;
        let known = if report.known > 0 { format!(", {} known before", report.known) } else { String::new() };
        let _ = writeln!(
            text,
            "{} trials{known}, {} different layers; log in {}",
            report.trials,
            report.layers.len(),
            self.log.display()
        );
        for ((name, places), layer) in tuning.layers.iter().zip(&report.layers) {
            let [Some(before), Some(after)] = layer.ns else { continue };
            if after < before {
                let times = if *places > 1 { format!(", {places} times") } else { String::new() };
                let gain = (before - after) as f64 / 1e3;
                let _ = writeln!(text, "  {name}{times}: {gain:.1} us less; {}", layer.decisions);
            }
        }
        let _ = writeln!(text, "use them with: --tuned {}", self.log.display());
        text
    }
}

#[cfg(feature = "llvm")]
fn percent(before: u64, after: u64) -> f64 {
    100.0 * (after as f64 / before.max(1) as f64 - 1.0)
}

/// Seconds after which a measurement is given up.
#[cfg(feature = "llvm")]
const MOST_SECONDS: u64 = 60;

/// Measures an artifact in a process of its own; `None` if that fails or takes too long.
#[cfg(feature = "llvm")]
fn measure(artifact: &Path) -> Option<u64> {
    let mut child = Command::new(std::env::current_exe().ok()?)
        .arg("measure-artifact")
        .arg(artifact)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let start = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if start.elapsed().as_secs() < MOST_SECONDS => std::thread::sleep(Duration::from_millis(2)),
            _ => {
                // The child can have ended in between.
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    };
    let mut text = String::new();
    child.stdout.take()?.read_to_string(&mut text).ok()?;
    text.trim().parse().ok().filter(|_| status.success())
}

impl MeasureArtifact {
    #[cfg(feature = "llvm")]
    pub fn run(self) -> Result<Verdict> {
        let artifact = tilewright_runtime::artifact::Artifact::read(&self.file)?;
        write_or_print(None, format!("{}\n", tuned::cpu::measured_ns(artifact)?).as_bytes())?;
        Ok(Verdict::Fine)
    }

    #[cfg(not(feature = "llvm"))]
    pub fn run(self) -> Result<Verdict> {
        anyhow::bail!("{}: this program was built without LLVM; build it with the feature `llvm`", self.file.display())
    }
}

#[cfg(feature = "llvm")]
fn cpu_json(tuning: &CpuTuning) -> Value {
    let layer = |((name, places), layer): (&(String, usize), &tilewright_compiler::tune::MeasuredResult)| {
        json!({
            "layer": name,
            "places": places,
            "trials": layer.trials,
            "ns_before": layer.ns[0],
            "ns": layer.ns[1],
            "decisions": layer.decisions,
        })
    };
    let [before, after] = tuning.ns();
    json!({
        "ns_before": before,
        "ns": after,
        "trials": tuning.report.trials,
        "known_trials": tuning.report.known,
        "skipped_lines": tuning.skipped,
        "layers": tuning.layers.iter().zip(&tuning.report.layers).map(layer).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(time("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(time("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(time("1h"), Ok(Duration::from_secs(3600)));
        for wrong in ["", "5", "m", "-1s", "1d", "nans", "infh", "1é"] {
            assert!(time(wrong).unwrap_err().contains("is not a time"), "{wrong}");
        }
        assert_eq!(time("0s").unwrap_err(), "the time must be longer than 0");
    }
}
