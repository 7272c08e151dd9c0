//! The option `--params` of commands that read artifacts.

use std::path::{Path, PathBuf};

use anyhow::Result;
use tilewright_runtime::artifact::{Artifact, ParametersAt};

/// Where the parameters of an artifact are.
#[derive(clap::Args)]
pub struct ParamsOption {
    /// File with the artifact's parameters, if `compile --params` wrote them apart [default: in the artifact's folder,
    /// under the name that the artifact gives]
    #[arg(long, value_name = "FILE")]
    params: Option<PathBuf>,
}

impl ParamsOption {
    /// Whether it was given.
    pub fn is_given(&self) -> bool {
        self.params.is_some()
    }

    /// Reads and checks the bytes of the artifact at `path`, which messages call `shown`, and its parameters.
    pub fn decode(&self, path: &Path, shown: &str, bytes: &[u8]) -> Result<Artifact> {
        let at = self.params.as_deref().map_or(ParametersAt::Beside(path), ParametersAt::File);
        Ok(Artifact::decode_with(shown, bytes, at)?)
    }
}
