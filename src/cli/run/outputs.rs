//! A model's outputs as files of a folder.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use tilewright_runtime::artifact::Manifest;
use tilewright_runtime::files;
use tilewright_runtime::npy;
use tilewright_runtime::tensor::Tensor;

/// Longest file name without its ending, in bytes; file systems end at 255.
const LONGEST: usize = 200;

/// Where each output goes.
pub struct OutputFiles {
    dir: PathBuf,
    paths: Vec<PathBuf>,
}

impl OutputFiles {
    /// Names a file for each output, and makes sure that all can be written, without writing any.
    pub fn plan(dir: &Path, manifest: &Manifest) -> Result<OutputFiles> {
        if std::fs::metadata(dir).is_ok_and(|found| !found.is_dir()) {
            bail!("--output-dir {} is a file; name a folder, or one that can be made", dir.display());
        }
        let names: Vec<&str> = manifest.outputs.iter().map(|id| manifest.values[id.0 as usize].name.as_str()).collect();
        let paths: Vec<PathBuf> = file_names(&names).iter().map(|name| dir.join(name)).collect();
        let mut there = paths.iter().filter(|path| path.exists());
        let tried = files::check_folder(dir).and_then(|()| there.try_for_each(|path| files::check_writable(path)));
        tried.with_context(|| format!("--output-dir {} cannot be written", dir.display()))?;
        Ok(OutputFiles { dir: dir.to_path_buf(), paths })
    }

    /// Writes all outputs, or none where one cannot be written; gives the files in order.
    pub fn write(self, outputs: &[Tensor]) -> Result<Vec<String>> {
        let dir = &self.dir;
        std::fs::create_dir_all(dir).with_context(|| format!("cannot make the folder {}", dir.display()))?;
        let names = self.paths.iter().map(|path| path.display().to_string()).collect();
        let files: Vec<(PathBuf, Vec<u8>)> = self.paths.into_iter().zip(outputs.iter().map(npy::encode)).collect();
        match files::write_together(&files) {
            Ok(()) => Ok(names),
            Err((path, error)) => Err(error).with_context(|| format!("cannot write {}", path.display())),
        }
    }
}

/// A file name for each output, no two the same. A name that can be a file's own stays; in others every character that may
/// mean something to a shell or file system becomes `_`, and a number tells apart what that makes equal.
fn file_names(outputs: &[&str]) -> Vec<String> {
    let plain = |name: &str| -> String {
        let safe = name.chars().map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' });
        let mut text: String = safe.collect::<String>().trim_start_matches('.').to_string();
        while text.len() > LONGEST {
            text.pop();
        }
        if text.is_empty() { "output".to_string() } else { text }
    };
    let mut found: Vec<Option<String>> = vec![None; outputs.len()];
    let mut taken = BTreeSet::new();
    for (slot, name) in found.iter_mut().zip(outputs) {
        if plain(name) == **name && taken.insert(name.to_string()) {
            *slot = Some(name.to_string());
        }
    }
    let rest = found.into_iter().zip(outputs).map(|(slot, name)| {
        slot.unwrap_or_else(|| {
            let text = plain(name);
            let numbered = (2..).map(|n| format!("{text}-{n}"));
            let free = std::iter::once(text.clone()).chain(numbered).find(|name| taken.insert(name.clone()));
            free.unwrap_or(text)
        })
    });
    rest.map(|name| format!("{name}.npy")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_output_has_a_file_of_its_own() {
        let names = ["a/b", "a_b", "a:b", "logits", "logits", "..", "", ".hidden", "hidden", "a_b-2"];
        let files =
            ["a_b-3", "a_b", "a_b-4", "logits", "logits-2", "output", "output-2", "hidden-2", "hidden", "a_b-2"];
        assert_eq!(file_names(&names), files.map(|name| format!("{name}.npy")));
        let long = "ü".repeat(400);
        let files = file_names(&[&long, &long]);
        assert!(files.iter().all(|file| file.len() < 255) && files[0] != files[1], "{files:?}");
    }
}
