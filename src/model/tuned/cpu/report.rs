//! The result of a search for CPU code, as text and as JSON.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};
use tilewright_compiler::tune::MeasuredResult;

use super::CpuTuning;

impl CpuTuning {
    /// The result as text, for the model's file and the log.
    pub fn text(&self, file: &str, log: &Path) -> String {
        let [before, after] = self.ns();
        let mut text = format!(
            "{file}: {:.1} us for the tuned layers, {:.1} us before ({:+.1} %)\n",
            after as f64 / 1e3,
            before as f64 / 1e3,
            100.0 * (after as f64 / before.max(1) as f64 - 1.0)
        );
        let report = &self.report;
        let known = if report.known > 0 { format!(", {} known before", report.known) } else { String::new() };
        let _ = writeln!(
            text,
            "{} trials{known}, {} different layers; log in {}",
            report.trials,
            report.layers.len(),
            log.display()
        );
        for ((name, places), layer) in self.layers.iter().zip(&report.layers) {
            let [Some(before), Some(after)] = layer.ns else { continue };
            if after < before {
                let times = if *places > 1 { format!(", {places} times") } else { String::new() };
                let gain = (before - after) as f64 / 1e3;
                let _ = writeln!(text, "  {name}{times}: {gain:.1} us less; {}", layer.decisions);
            }
        }
        let _ = writeln!(text, "use them with: --tuned {}", log.display());
        text
    }

    /// The result as one JSON object.
    pub fn json(&self) -> Value {
        let layer = |((name, places), layer): (&(String, usize), &MeasuredResult)| {
            json!({
                "layer": name,
                "places": places,
                "trials": layer.trials,
                "ns_before": layer.ns[0],
                "ns": layer.ns[1],
                "decisions": layer.decisions,
            })
        };
        let [before, after] = self.ns();
        json!({
            "ns_before": before,
            "ns": after,
            "trials": self.report.trials,
            "known_trials": self.report.known,
            "skipped_lines": self.skipped,
            "layers": self.layers.iter().zip(&self.report.layers).map(layer).collect::<Vec<_>>(),
        })
    }
}
