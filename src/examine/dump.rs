//! Writes every value of a run to a folder of `.npy` files with an index.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};
use tempfile::TempDir;
use tilewright_runtime::artifact::{Image, Manifest, Packing, ValueId};
use tilewright_runtime::{files, npy};

use crate::model::file_names::file_names;
use crate::model::values::{Hidden, Visible, values};

/// Value of the key `format` in the index.
pub const FORMAT: &str = "tilewright-tensors";
/// File name of the index.
pub const INDEX: &str = "index.json";

/// Why values could not be written.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// The path is a file, not a folder.
    #[error("{path} is a file; name a folder, or one to create")]
    File {
        /// The file.
        path: PathBuf,
    },
    /// The folder contains something else.
    #[error("{path} is not empty and not a tensor dump; name another folder, or empty this one")]
    Foreign {
        /// The folder.
        path: PathBuf,
    },
    /// A system error.
    #[error("{path} cannot be written: {source}; name a writable folder")]
    Io {
        /// The folder or file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// Writes values to a temporary folder, which replaces the target when it is complete.
pub struct Dump {
    target: PathBuf,
    folder: TempDir,
    visible: Vec<Visible>,
    hidden: Vec<Hidden>,
    names: Vec<String>,
    /// Index in `visible` of each value.
    place: Vec<Option<usize>>,
    failed: Option<DumpError>,
}

impl Dump {
    /// Prepares a dump of `runs` runs of a model. The target does not change before [`Dump::finish`], which replaces an
    /// earlier dump there.
    ///
    /// # Errors
    /// [`DumpError`] if the target is something else or cannot be written.
    pub fn new(target: &Path, manifest: &Manifest, runs: usize) -> Result<Dump, DumpError> {
        let at = |path: &Path| {
            let path = path.to_path_buf();
            move |source| DumpError::Io { path, source }
        };
        check_target(target)?;
        files::check_folder(target).map_err(at(target))?;
        let parent = target.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::create_dir_all(parent).map_err(at(parent))?;
        let folder = tempfile::Builder::new().prefix(".tilewright-").tempdir_in(parent).map_err(at(parent))?;
        let (visible, hidden) = values(manifest);
        let names = file_names(&visible.iter().map(|v| v.name.as_str()).collect::<Vec<_>>(), "npy");
        let mut place = vec![None; manifest.values.len()];
        for (index, (value, name)) in visible.iter().zip(&names).enumerate() {
            place[value.id.0 as usize] = Some(index);
            let of = value.value(manifest);
            let header = npy::encode_header(of.dtype, &stacked(&of.shape, runs));
            let path = folder.path().join(name);
            fs::write(&path, header).map_err(at(&path))?;
        }
        let target = target.to_path_buf();
        Ok(Dump { target, folder, visible, hidden, names, place, failed: None })
    }

    /// Records a value of the current run, as [`tilewright_runtime::session::Session::run_watched`] reports it.
    /// [`Dump::finish`] returns its errors.
    pub fn take(&mut self, id: ValueId, bytes: &[u8]) {
        let Some(index) = self.place[id.0 as usize].filter(|_| self.failed.is_none()) else { return };
        // Opens the file each time, since a large model has more values than a process can have open files.
        let file = OpenOptions::new().append(true).open(self.folder.path().join(&self.names[index]));
        if let Err(source) = file.and_then(|mut file| file.write_all(bytes)) {
            self.failed = Some(DumpError::Io { path: self.target.join(&self.names[index]), source });
        }
    }

    /// Writes the index, including `about`, and moves the folder to the target.
    ///
    /// # Errors
    /// [`DumpError::Io`], also for errors of [`Dump::take`]; in that case nothing is left behind.
    pub fn finish(mut self, manifest: &Manifest, about: Json) -> Result<Summary, DumpError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let index = self.index(manifest, about);
        let at = |source| DumpError::Io { path: self.target.clone(), source };
        fs::write(self.folder.path().join(INDEX), format!("{index:#}\n")).map_err(at)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(self.folder.path(), fs::Permissions::from_mode(0o755)).map_err(at)?;
        }
        check_target(&self.target)?;
        // Removes an earlier dump only after the new one is in place.
        let earlier = self.target.exists().then(|| self.folder.path().with_extension("earlier"));
        if let Some(earlier) = &earlier {
            fs::rename(&self.target, earlier).map_err(at)?;
        }
        if let Err(source) = fs::rename(self.folder.path(), &self.target) {
            if let Some(earlier) = &earlier {
                fs::rename(earlier, &self.target).map_err(at)?;
            }
            return Err(at(source));
        }
        if let Some(earlier) = &earlier {
            fs::remove_dir_all(earlier).map_err(at)?;
        }
        let summary = Summary { written: self.visible.len(), hidden: self.hidden.len() };
        // The folder was renamed, so there is nothing to remove.
        let _ = self.folder.keep();
        Ok(summary)
    }

    fn index(&self, manifest: &Manifest, about: Json) -> Json {
        let op = |node: Option<usize>| node.map(|node| manifest.nodes[node].op.clone());
        let values: Vec<Json> = self
            .visible
            .iter()
            .zip(&self.names)
            .map(|(visible, file)| {
                let value = visible.value(manifest);
                let source = value.source.as_ref();
                json!({
                    "name": visible.name, "file": file, "output": value.name,
                    "tensor": source.map(|s| &s.tensor),
                    "aliases": source.map_or(&[][..], |s| &s.aliases),
                    "node": visible.node.map(|node| &manifest.nodes[node].name), "op": op(visible.node),
                    "dtype": value.dtype.name(), "shape": value.shape,
                    "scale": source.and_then(|s| s.quantization).map(|q| q.0),
                    "zero_point": source.and_then(|s| s.quantization).map(|q| q.1),
                    "uint8_less_128": source.is_some_and(|s| s.unsigned) && value.dtype.name() == "i8",
                    "where": visible.place(manifest).map_or("input".to_string(), |place| place.to_string()),
                    "step": visible.step.map(|step| &manifest.steps[step].name),
                    "device_layout": layout(visible.packing(manifest)),
                })
            })
            .collect();
        let absent: Vec<Json> = self
            .hidden
            .iter()
            .map(|hidden| {
                let node = &manifest.nodes[hidden.node];
                let why = match &hidden.step {
                    Some(step) => format!("fused: it never leaves step {step}"),
                    None => "nothing is left of it to compute".to_string(),
                };
                json!({ "node": node.name, "op": node.op, "where": node.place.to_string(), "why": why })
            })
            .collect();
        let mut index = json!({ "format": FORMAT, "version": 1, "model": manifest.model });
        if let (Json::Object(index), Json::Object(about)) = (&mut index, about) {
            index.extend(about);
            index.insert("values".into(), values.into());
            index.insert("absent".into(), absent.into());
        }
        index
    }
}

/// Number of values in a dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// Values written.
    pub written: usize,
    /// Nodes whose values stay inside their step.
    pub hidden: usize,
}

/// The shape of `runs` tensors concatenated along the first dimension.
pub fn stacked(shape: &[usize], runs: usize) -> Vec<usize> {
    match shape.split_first() {
        Some((first, rest)) => [&[first * runs], rest].concat(),
        None if runs > 1 => vec![runs],
        None => Vec::new(),
    }
}

fn check_target(target: &Path) -> Result<(), DumpError> {
    let path = target.to_path_buf();
    let Ok(found) = fs::metadata(target) else { return Ok(()) };
    if !found.is_dir() {
        return Err(DumpError::File { path });
    }
    let mut entries = match fs::read_dir(target) {
        Ok(entries) => entries,
        Err(source) => return Err(DumpError::Io { path, source }),
    };
    let ours = || fs::read(target.join(INDEX)).is_ok_and(|bytes| is_index(&bytes));
    if entries.next().is_some() && !ours() {
        return Err(DumpError::Foreign { path });
    }
    Ok(())
}

fn is_index(bytes: &[u8]) -> bool {
    serde_json::from_slice::<Json>(bytes).is_ok_and(|index| index["format"] == FORMAT)
}

/// Describes the layout that the device used; the files always use the model's own layout.
fn layout(packing: Packing) -> Json {
    let image = |order: &str, i: Image| json!({ "order": order, "block": i.block, "n": i.n, "c": i.c, "h": i.h, "w": i.w, "pads": i.pads });
    match packing {
        Packing::Dense => json!("dense"),
        Packing::Nhwc(i) => image("nhwc", i),
        Packing::Nchw(i) => image("nchw", i),
    }
}
