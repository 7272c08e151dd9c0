//! `run`: runs a model, an artifact or a program on a device.

mod answers;
mod arguments;
mod memory;
mod model;
mod outputs;
mod stepper;

use anyhow::{Result, bail};
use tilewright::device::stream;
use tilewright::model::{format_of, known_formats};
use tilewright_runtime::artifact::Artifact;

pub use arguments::{Run, refuse};

use super::{Verdict, read_file};

impl Run {
    pub fn run(self) -> Result<Verdict> {
        let bytes = read_file(&self.file)?;
        let file = self.file.display();
        let is_artifact = Artifact::is_one(&bytes);
        if self.program && (is_artifact || format_of(&bytes).is_ok()) {
            bail!("--program is for programs, but {file} is a model");
        }
        let is_program = self.program || stream::is_one(&bytes) || self.has_extension("tw");
        let is_model = match format_of(&bytes) {
            _ if is_program || is_artifact => is_artifact,
            Ok(_) => true,
            Err(kind) => bail!(
                "{file} looks like {kind}; models are read from {} files, artifacts from .twa files, programs for the \
                 accelerator from .tw files, or from any with --program",
                known_formats()
            ),
        };
        if is_model {
            let unused = [(!self.data.is_empty(), "--data"), (!self.read.is_empty(), "--read"), (self.step, "--step")];
            refuse(&unused, &format!("for programs, but {file} is a model"))?;
            if is_artifact {
                let unused: Vec<_> = self.compilation.given().into_iter().map(|name| (true, name)).collect();
                refuse(
                    &unused,
                    &format!("for compiling, but {file} is already compiled; compile the model again with it"),
                )?;
            }
            model::run(&self, &bytes)
        } else {
            let mut unused = vec![
                (!self.input.is_empty(), "--input"),
                (self.preprocess.is_some(), "--preprocess"),
                (self.class_names.is_some(), "--class-names"),
                (self.labels.is_some(), "--labels"),
                (self.output_dir.is_some(), "--output-dir"),
                (self.dump_tensors.is_some(), "--dump-tensors"),
            ];
            refuse(&unused, &format!("for models, but {file} is a program; use --data and --read"))?;
            unused = vec![(self.explain, "--explain"), (self.params.is_given(), "--params")];
            unused.extend(self.compilation.given().into_iter().map(|name| (true, name)));
            refuse(&unused, &format!("for models, but {file} is a program; leave it out"))?;
            if self.step {
                unused = vec![(self.trace.is_some(), "--trace"), (self.top_stalls.is_some(), "--top-stalls")];
                refuse(&unused, "for complete runs; leave out --step")?;
            }
            stepper::run(&self, &bytes)
        }
    }
}
