//! `tune`: searches for plans of a model's layers that take fewer cycles, or less time on the CPU.

#[cfg(feature = "llvm")]
mod on_cpu;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tilewright::device::{DeviceKind, Extras, Spec, is_exact, names, open};
use tilewright::model::tuned::{self, TuneRequest};
use tilewright::model::{self, ModelFile, Options};

use super::compilation::ImportArgs;
use super::tuned::TunedOption;
use super::{Hw, Progress, Verdict, note, progress, write_or_print};

/// Arguments of `tune`.
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("limit").required(true).multiple(true)))]
pub struct Tune {
    /// The model (.onnx, .pt2, .tflite, zoo:NAME)
    #[arg(value_parser = ModelFile::parse)]
    file: ModelFile,
    #[command(flatten)]
    hw: Hw,
    #[arg(
        long,
        default_value = "csim",
        value_name = "DEVICE",
        help = format!(
            "What is tuned for: the accelerator, with trials on {}, or the code of this machine's CPU, by measured times \
             (cpu)",
            tilewright::device::help(Spec::may_count_cycles)
        )
    )]
    device: DeviceKind,
    /// With the device of a server: tune the code of the server's CPU, by times that are measured there
    #[arg(long)]
    upload: bool,
    /// With --upload, the server's processor, as for compile: TARGET[,cpu=NAME][,+FEATURE]… [default: this machine's]
    #[arg(long, value_name = "TARGET", requires = "upload")]
    cpu_target: Option<String>,
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
        let processor = self.cpu_target.as_deref();
        let records = self.tuned.read()?.load(&config, processor)?;
        let options = Options { level: self.level, records: records.get(), processor, ..Options::new(&config) };
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
        if self.upload && self.device.lender().is_none() {
            bail!("--upload is for the CPU of a server; use --device remote:HOST:PORT");
        }
        if self.upload || self.device == DeviceKind::CPU {
            return self.run_on_cpu(graph, &request, all);
        }
        if !self.device.spec().may_count_cycles() {
            let there = names(|spec| spec.may_count_cycles() || spec.name == "cpu");
            bail!("{} counts no cycles by which plans could be compared; use --device {there}", self.device);
        }
        // The cycle model needs no values, and threads do not wait for each other.
        let device = match self.device {
            DeviceKind::CSIM => None,
            kind => open(kind, &config, Extras::default(), &progress::tell)?.zip(Some(is_exact(kind)?)),
        };
        let progress = Progress::new("tune", all);
        let mut told = |p: tilewright_compiler::tune::Progress| {
            progress.step(&format!("{} cycles", p.best), p.trials, all.max(p.trials));
        };
        let tuning = match device {
            Some((device, exact)) => tuned::tune_on(graph, &request, device, exact, &mut told),
            None => tuned::tune(graph, &request, &mut told),
        };
        progress.end();
        let tuning = tuning.with_context(|| self.file.display().to_string())?;
        for (reason, n) in &tuning.skipped {
            note(&format!("{}: {n} line(s) skipped: {reason}", self.log.display()));
        }
        if tuning.report.stale > 0 {
            note(&format!(
                "{}: {} trials are not used: their decisions now take other cycles, because the compiler or the device has \
                 changed",
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
