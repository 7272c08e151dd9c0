//! The text and JSON reports of `bisect`.

use serde_json::json;

use super::{Bisection, Suspect};

impl Bisection {
    /// The report as text; `file` names the model.
    pub fn text(&self, file: &str) -> String {
        let mut text = format!(
            "{file}: {} patches, {} graphs evaluated in {} run(s)\n",
            self.patches, self.evaluations, self.runs
        );
        for stretch in &self.stretches {
            let [first, last] = stretch.patches;
            let promise = if stretch.exact { "change no answer" } else { "replace floats by integers" };
            let change = match &stretch.largest {
                Some((output, largest)) => format!("{output} changes by at most {largest}"),
                None => "nothing changes".to_string(),
            };
            text += &format!("patches {first} to {last} {promise}: {change} (allowed: {})\n", stretch.tolerance);
        }
        match &self.suspect {
            None => text += "no patch changes the answer\n",
            Some(suspect) => text += &suspect_text(suspect),
        }
        text
    }

    /// The report as one JSON object; `file` names the model.
    pub fn json(&self, file: &str) -> serde_json::Value {
        let stretches: Vec<_> = self
            .stretches
            .iter()
            .map(|s| {
                json!({ "first": s.patches[0], "last": s.patches[1], "exact": s.exact,
                        "output": s.largest.as_ref().map(|l| &l.0), "largest": s.largest.as_ref().map(|l| l.1),
                        "tolerance": { "steps": s.tolerance.steps, "relative": s.tolerance.relative } })
            })
            .collect();
        let suspect = self.suspect.as_ref().map(|s| {
            json!({ "number": s.number, "pass": s.applied.pass, "patch": s.applied.what, "node": s.applied.node,
                    "before": s.before, "after": s.after, "run": s.run, "output": s.output, "index": s.difference.index,
                    "was": s.difference.values[0], "is": s.difference.values[1], "differing": s.difference.differing,
                    "elements": s.difference.elements, "largest": s.difference.largest })
        });
        json!({ "model": file, "runs": self.runs, "patches": self.patches, "evaluations": self.evaluations, "stretches": stretches,
                "suspect": suspect })
    }
}

fn suspect_text(suspect: &Suspect) -> String {
    let Suspect { number, applied, before, after, run, output, difference } = suspect;
    let or_nothing = |list: &[String]| if list.is_empty() { "nothing".to_string() } else { list.join(", ") };
    format!(
        "patch {number} changes the answer: pass {}, {} at {}\n  before      {}\n  after       {}\n  \
         {output}{:?} of run {} changes from {} to {}; {} of {} elements differ, by at most {}\n",
        applied.pass,
        applied.what,
        applied.node,
        or_nothing(before),
        or_nothing(after),
        difference.index,
        run + 1,
        difference.values[0],
        difference.values[1],
        difference.differing,
        difference.elements,
        difference.largest
    )
}
