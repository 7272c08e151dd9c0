//! The result of a search, as text and as JSON.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};
use tilewright_compiler::tune::LayerResult;

use super::Tuning;

impl Tuning {
    /// The result as text, for the model's file and the log.
    pub fn text(&self, file: &str, log: &Path) -> String {
        let report = &self.report;
        let [before, after] = report.cycles;
        let mut text = format!("{}: {} cycles, {} before ({:+.2} %)\n", file, after, before, percent(before, after));
        let known = if report.known > 0 { format!(", {} known before", report.known) } else { String::new() };
        let rate = |n: usize, seconds: f64| if seconds > 0.0 { n as f64 / seconds } else { 0.0 };
        let _ = writeln!(
            text,
            "{} trials{known}, {:.0} a second on each core, {} different layers; log in {}",
            report.trials,
            rate(report.trials, report.seconds),
            report.layers.len(),
            log.display()
        );
        if report.alone > 0 {
            let _ = writeln!(
                text,
                "they are the best of {} plans that were timed without neighbors, {:.0} a second on each core, and of {} \
                 that were estimated, {:.0} a second",
                report.alone,
                rate(report.alone, report.alone_seconds),
                report.estimated,
                rate(report.estimated, report.estimate_seconds)
            );
        }
        if report.exhausted {
            text += "the search ended because no other plan is worth a trial\n";
        }
        let mut better: Vec<(&LayerResult, u64)> =
            report.layers.iter().map(|l| (l, l.gain)).filter(|(_, gain)| *gain > 0).collect();
        better.sort_by_key(|(_, gain)| std::cmp::Reverse(*gain));
        for (layer, gain) in better {
            let times = if layer.places > 1 { format!(", {} times", layer.places) } else { String::new() };
            let _ = writeln!(text, "  {}{times}: {} cycles less; {}", layer.name, gain, layer.decisions);
        }
        let _ = writeln!(text, "use them with: --tuned {}", log.display());
        text
    }

    /// The result as one JSON object.
    pub fn json(&self) -> Value {
        let Tuning { report, skipped } = self;
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
            "exhausted": report.exhausted,
            "skipped_lines": skipped,
            "trial_seconds": report.seconds,
            "timed_alone": report.alone,
            "timed_alone_seconds": report.alone_seconds,
            "estimated": report.estimated,
            "estimate_seconds": report.estimate_seconds,
            "layers": report.layers.iter().map(layer).collect::<Vec<_>>(),
        })
    }
}

fn percent(before: u64, after: u64) -> f64 {
    100.0 * (after as f64 / before.max(1) as f64 - 1.0)
}
