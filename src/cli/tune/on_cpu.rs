//! `tune --device cpu`: the search by measured times.

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tilewright::model::tuned::cpu::CpuTuning;
use tilewright::model::tuned::{self, TuneRequest};
use tilewright_compiler::graph::Graph;

use super::Tune;
use crate::cli::{Progress, Verdict, note, write_or_print};

impl Tune {
    pub(super) fn run_on_cpu(&self, graph: Graph, request: &TuneRequest, all: usize) -> Result<Verdict> {
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

fn percent(before: u64, after: u64) -> f64 {
    100.0 * (after as f64 / before.max(1) as f64 - 1.0)
}

/// Seconds after which a measurement is given up.
const MOST_SECONDS: u64 = 60;

/// Measures an artifact in a process of its own; `None` if that fails or takes too long.
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
