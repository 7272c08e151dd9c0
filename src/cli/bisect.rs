//! `bisect`: finds the first rewrite of a model's graph that changes its result.

use anyhow::{Context, Result, bail};
use serde_json::json;
use tilewright::examine::bisect::{Bisection, Suspect, bisect};
use tilewright::examine::diff::Tolerance;
use tilewright::model::ModelFile;
use tilewright::model::picture::Preprocess;
use tilewright::{model, model::inference};
use tilewright_compiler::graph::Tensor;
use tilewright_runtime::artifact::Artifact;

use super::compilation::Compilation;
use super::run::Given;
use super::{Verdict, read_file, write_or_print};

/// Arguments of `bisect`.
#[derive(clap::Args)]
pub struct Bisect {
    /// The model (.onnx, .tflite, zoo:NAME)
    #[arg(value_parser = ModelFile::parse)]
    file: ModelFile,
    #[command(flatten)]
    compilation: Compilation,
    /// Data for an input: a .npy file, a .npz file with an array for each input, or a picture; without it, inputs are
    /// random
    #[arg(long, value_name = "[NAME=]FILE")]
    input: Vec<String>,
    /// How pictures become inputs: the same keys as for run
    #[arg(long, value_name = "KEY=VALUE,…")]
    preprocess: Option<Preprocess>,
    /// Largest allowed difference: steps between integers (1), a fraction of the greatest magnitude between floats
    /// (1e-4), or both (1,1e-4)
    #[arg(long, default_value = "0,1e-5", value_name = "STEPS|REL")]
    tolerance: Tolerance,
    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
}

impl Bisect {
    pub fn run(self) -> Result<Verdict> {
        let file = self.file.display().to_string();
        if Artifact::is_one(&read_file(&self.file)?) {
            bail!("{file} is compiled and no longer contains its graph; give the model that it was compiled from");
        }
        let unused = self.compilation.beside_passes();
        if !unused.is_empty() {
            bail!("{}: bisect runs only the graph passes, which do not use this; leave it out", unused.join(", "));
        }
        let given = Given::read(&self.input, self.file.entry())?;
        given.check(self.preprocess.as_ref())?;
        let shapes = given.shapes();
        let graph = model::import(&self.file, self.compilation.import(&shapes)?)?;
        let values = model::inputs(&graph).with_context(|| file.clone())?;
        let values: Vec<_> = values.iter().collect();
        let runs = if given.is_empty() {
            if !values.is_empty() {
                super::say("using random inputs; give real ones with --input");
            }
            vec![inference::made_up(&values)]
        } else {
            let preprocess = self.file.preprocess(self.preprocess.as_ref());
            given.runs(&values, &self.file.about()?, &preprocess)?
        };
        let of_run = |inputs: &Vec<_>| inputs.iter().map(Tensor::try_from).collect::<Result<Vec<_>, _>>();
        let runs = runs.iter().map(of_run).collect::<Result<Vec<_>, _>>().map_err(anyhow::Error::msg)?;
        let passes = model::passes(self.compilation.level());
        let found = bisect(&graph, &passes, &runs, &self.tolerance).with_context(|| file.clone())?;
        let text =
            if self.json { format!("{}\n", json(&file, runs.len(), &found)) } else { text(&file, runs.len(), &found) };
        write_or_print(None, text.as_bytes())?;
        Ok(if found.suspect.is_some() { Verdict::No } else { Verdict::Fine })
    }
}

fn text(file: &str, runs: usize, found: &Bisection) -> String {
    let mut text =
        format!("{file}: {} patches, {} graphs evaluated in {runs} run(s)\n", found.patches, found.evaluations);
    for stretch in &found.stretches {
        let [first, last] = stretch.patches;
        let promise = if stretch.exact { "change no answer" } else { "replace floats by integers" };
        let change = match &stretch.largest {
            Some((output, largest)) => format!("{output} changes by at most {largest}"),
            None => "nothing changes".to_string(),
        };
        text += &format!("patches {first} to {last} {promise}: {change} (allowed: {})\n", stretch.tolerance);
    }
    match &found.suspect {
        None => text += "no patch changes the answer\n",
        Some(suspect) => text += &suspect_text(suspect),
    }
    text
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

fn json(file: &str, runs: usize, found: &Bisection) -> serde_json::Value {
    let stretches: Vec<_> = found
        .stretches
        .iter()
        .map(|s| {
            json!({ "first": s.patches[0], "last": s.patches[1], "exact": s.exact,
                    "output": s.largest.as_ref().map(|l| &l.0), "largest": s.largest.as_ref().map(|l| l.1),
                    "tolerance": { "steps": s.tolerance.steps, "relative": s.tolerance.relative } })
        })
        .collect();
    let suspect = found.suspect.as_ref().map(|s| {
        json!({ "number": s.number, "pass": s.applied.pass, "patch": s.applied.what, "node": s.applied.node,
                "before": s.before, "after": s.after, "run": s.run, "output": s.output, "index": s.difference.index,
                "was": s.difference.values[0], "is": s.difference.values[1], "differing": s.difference.differing,
                "elements": s.difference.elements, "largest": s.difference.largest })
    });
    json!({ "model": file, "runs": runs, "patches": found.patches, "evaluations": found.evaluations, "stretches": stretches,
            "suspect": suspect })
}
