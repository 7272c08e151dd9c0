//! `tune`: searches for plans of a model's layers that take fewer cycles.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tilewright::model::tuned::{self, TuneRequest, Tuning};
use tilewright::model::{self, Options};
use tilewright_compiler::tune::{LayerResult, Report};

use super::compile::OpenSizes;
use super::tuned::TunedOption;
use super::{Hw, ModelFile, Progress, Verdict, note, write_or_print};

/// Arguments of `tune`.
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("limit").required(true).multiple(true)))]
pub struct Tune {
    /// The model (.onnx, .tflite, zoo:NAME)
    #[arg(value_parser = ModelFile::parse)]
    file: ModelFile,
    #[command(flatten)]
    hw: Hw,
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
    sizes: OpenSizes,
    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
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
        let graph = model::import(&self.file, &self.sizes.sizes(&self.file.sample_shapes())?)?;
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
        let progress = Progress::new("tune", all);
        let tuning = tuned::tune(graph, &request, &mut |p| {
            progress.step(&format!("{} cycles", p.best), p.trials, all.max(p.trials));
        });
        progress.end();
        let tuning = tuning.with_context(|| self.file.display().to_string())?;
        for (reason, n) in &tuning.skipped {
            note(&format!("{}: {n} lines skipped: {reason}", self.log.display()));
        }
        if tuning.report.stale > 0 {
            note(&format!(
                "{}: {} trials are not used: their decisions now take other cycles, because the compiler has changed",
                self.log.display(),
                tuning.report.stale
            ));
        }
        let text = if self.json { format!("{}\n", json(&tuning)) } else { self.text(&tuning.report) };
        write_or_print(None, text.as_bytes())?;
        Ok(Verdict::Fine)
    }

    fn text(&self, report: &Report) -> String {
        let [before, after] = report.cycles;
        let mut text = format!(
            "{}: {} cycles, {} before ({:+.2} %)\n",
            self.file.display(),
            after,
            before,
            percent(before, after)
        );
        let known = if report.known > 0 { format!(", {} known before", report.known) } else { String::new() };
        let rate = |n: usize, seconds: f64| if seconds > 0.0 { n as f64 / seconds } else { 0.0 };
        let _ = writeln!(
            text,
            "{} trials{known}, {:.0} a second on each core, {} different layers; log in {}",
            report.trials,
            rate(report.trials, report.seconds),
            report.layers.len(),
            self.log.display()
        );
        let _ = writeln!(
            text,
            "they are the best of {} plans that were timed without neighbors, {:.0} a second on each core, and of {} \
             that were estimated, {:.0} a second",
            report.alone,
            rate(report.alone, report.alone_seconds),
            report.estimated,
            rate(report.estimated, report.estimate_seconds)
        );
        let mut better: Vec<(&LayerResult, u64)> =
            report.layers.iter().map(|l| (l, l.gain)).filter(|(_, gain)| *gain > 0).collect();
        better.sort_by_key(|(_, gain)| std::cmp::Reverse(*gain));
        for (layer, gain) in better {
            let times = if layer.places > 1 { format!(", {} times", layer.places) } else { String::new() };
            let _ = writeln!(text, "  {}{times}: {} cycles less; {}", layer.name, gain, layer.decisions);
        }
        let _ = writeln!(text, "use them with: --tuned {}", self.log.display());
        text
    }
}

fn percent(before: u64, after: u64) -> f64 {
    100.0 * (after as f64 / before.max(1) as f64 - 1.0)
}

fn json(tuning: &Tuning) -> Value {
    let Tuning { report, skipped } = tuning;
    let layer = |l: &LayerResult| {
        json!({
            "layer": l.name,
            "places": l.places,
            "combinations": l.combinations,
            "trials": l.trials,
            "gain": l.gain,
            "decisions": l.decisions,
        })
    };
    json!({
        "cycles_before": report.cycles[0],
        "cycles": report.cycles[1],
        "trials": report.trials,
        "known_trials": report.known,
        "stale_trials": report.stale,
        "skipped_lines": skipped,
        "trial_seconds": report.seconds,
        "timed_alone": report.alone,
        "timed_alone_seconds": report.alone_seconds,
        "estimated": report.estimated,
        "estimate_seconds": report.estimate_seconds,
        "layers": report.layers.iter().map(layer).collect::<Vec<_>>(),
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
