//! `tune`: searches for plans of a model's layers that take fewer cycles, or less time on the CPU.

#[cfg(feature = "llvm")]
mod on_cpu;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use tilewright::model::tuned::{self, TuneRequest};
use tilewright::model::{self, ModelFile, Options};

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

    #[cfg(not(feature = "llvm"))]
    fn run_on_cpu(&self, _: tilewright_compiler::graph::Graph, _: &TuneRequest, _: usize) -> Result<Verdict> {
        anyhow::bail!("this program was built without LLVM; build it with the feature `llvm`")
    }
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
