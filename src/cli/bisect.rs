//! `bisect`: finds the first rewrite of a model's graph that changes its result.

use anyhow::{Context, Result, bail};
use tilewright::examine::bisect::bisect;
use tilewright::examine::diff::Tolerance;
use tilewright::model::ModelFile;
use tilewright::model::given::Given;
use tilewright::model::picture::Preprocess;
use tilewright::{model, model::inference};
use tilewright_compiler::graph::Tensor;
use tilewright_runtime::artifact::Artifact;

use super::compilation::Compilation;
use super::{Verdict, read_file, write_or_print};

/// Arguments of `bisect`.
#[derive(clap::Args)]
pub struct Bisect {
    /// The model (.onnx, .pt2, .tflite, zoo:NAME)
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
        let shapes = given.data();
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
        let text = if self.json { format!("{}\n", found.json(&file)) } else { found.text(&file) };
        write_or_print(None, text.as_bytes())?;
        Ok(if found.suspect.is_some() { Verdict::No } else { Verdict::Fine })
    }
}
