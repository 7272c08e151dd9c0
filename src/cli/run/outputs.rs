//! Writes a model's outputs as files into a folder.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use tilewright::model::file_names::file_names;
use tilewright_runtime::artifact::Manifest;
use tilewright_runtime::files;
use tilewright_runtime::npy;
use tilewright_runtime::tensor::Tensor;

/// Path of each output's file.
pub struct OutputFiles {
    dir: PathBuf,
    paths: Vec<PathBuf>,
}

impl OutputFiles {
    /// Picks a file for each output and checks that all can be written, without writing any.
    pub fn plan(dir: &Path, manifest: &Manifest) -> Result<OutputFiles> {
        if std::fs::metadata(dir).is_ok_and(|found| !found.is_dir()) {
            bail!("--output-dir {} is a file; name a folder, or one to create", dir.display());
        }
        let names: Vec<&str> = manifest.named_outputs().map(|(name, _)| name).collect();
        let paths: Vec<PathBuf> = file_names(&names, "npy").iter().map(|name| dir.join(name)).collect();
        let mut there = paths.iter().filter(|path| path.exists());
        let tried = files::check_folder(dir).and_then(|()| there.try_for_each(|path| files::check_writable(path)));
        tried.with_context(|| format!("--output-dir {} cannot be written", dir.display()))?;
        Ok(OutputFiles { dir: dir.to_path_buf(), paths })
    }

    /// Writes all outputs, or none if one cannot be written; returns the paths in order.
    pub fn write(self, outputs: &[Tensor]) -> Result<Vec<String>> {
        let dir = &self.dir;
        std::fs::create_dir_all(dir).with_context(|| format!("cannot create the folder {}", dir.display()))?;
        let names = self.paths.iter().map(|path| path.display().to_string()).collect();
        let files: Vec<(PathBuf, Vec<u8>)> = self.paths.into_iter().zip(outputs.iter().map(npy::encode)).collect();
        match files::write_together(&files) {
            Ok(()) => Ok(names),
            Err((path, error)) => Err(error).with_context(|| format!("cannot write {}", path.display())),
        }
    }
}
