//! Schedules of a model's layers: as files, and back from files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tilewright_compiler::cost::Clock;
use tilewright_compiler::graph::Graph;
use tilewright_compiler::partition::{AccelRegion, Code, Partition};
use tilewright_compiler::schedule::file::{self, File};
use tilewright_compiler::te::ops::Library;
use tilewright_compiler::te::text::Names;
use tilewright_driver::DriverError;
use tilewright_hw::config::HwConfig;

use super::error::ModelError;
use super::file_names::stems;

/// The schedule of a layer.
#[derive(Debug, Clone, PartialEq)]
pub struct ScheduleFile {
    /// Name of the layer: that of its last node.
    pub layer: String,
    /// Name of its file, without the ending `.te`.
    pub stem: String,
    /// The expression and the steps.
    pub file: File,
}

/// A file with the schedule of a layer.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenSchedule {
    /// The file.
    pub path: PathBuf,
    /// What it says.
    pub file: Arc<File>,
}

/// Reads the schedules of a folder: its files `*.te`.
///
/// # Errors
/// [`ModelError::Schedule`]: the folder cannot be read or has no such files, or a file is wrong.
pub fn read(folder: &Path) -> Result<Vec<GivenSchedule>, ModelError> {
    let fail = |path: &Path, reason: String| ModelError::Schedule { path: path.to_path_buf(), reason };
    let list = std::fs::read_dir(folder).map_err(|e| fail(folder, format!("the folder cannot be read: {e}")))?;
    let mut paths = list.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>();
    let paths = paths.as_mut().map_err(|e| fail(folder, format!("the folder cannot be read: {e}")))?;
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "te"));
    paths.sort();
    if paths.is_empty() {
        return Err(fail(
            folder,
            "the folder has no .te files; write some with `tilewright schedule --of MODEL`".into(),
        ));
    }
    let one = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).map_err(|e| fail(path, format!("the file cannot be read: {e}")))?;
        let file = file::parse_with(&text, &Names { sizes: &[], operators: &Library })
            .map_err(|e| fail(path, e.to_string()))?;
        Ok(GivenSchedule { path: path.clone(), file: Arc::new(file) })
    };
    paths.iter().map(one).collect()
}

/// Returns the schedules of the accelerator's layers, in the order in which they run.
pub fn all(partition: &Partition) -> Vec<ScheduleFile> {
    let layers: Vec<_> =
        accelerated(partition).flat_map(|region| region.layers.iter().zip(&region.schedules)).collect();
    let stems = stems(&layers.iter().map(|(end, _)| end.name.as_str()).collect::<Vec<_>>());
    let mut found = Vec::new();
    for ((end, built), stem) in layers.into_iter().zip(stems) {
        if let Some(schedule) = &built.schedule {
            found.push(ScheduleFile { layer: end.name.clone(), stem, file: schedule.file() });
        }
    }
    found
}

/// Builds the programs of a partition again, with these schedules in place of those of the layers that the files are
/// named for.
///
/// # Errors
/// [`ModelError::Schedule`]: a file is named for no layer of the accelerator, or its steps do not become
/// instructions.
pub fn give(
    partition: &mut Partition,
    graph: &Graph,
    config: &HwConfig,
    given: &[GivenSchedule],
    clock: Option<&dyn Clock>,
) -> Result<(), ModelError> {
    if given.is_empty() {
        return Ok(());
    }
    let there = all(partition);
    let stem = |given: &GivenSchedule| given.path.file_stem().map(|s| s.to_string_lossy().into_owned());
    for one in given {
        if there.iter().all(|layer| Some(&layer.stem) != stem(one).as_ref()) {
            let names: Vec<String> = there.iter().map(|layer| format!("{}.te", layer.stem)).collect();
            let reason = match names.as_slice() {
                [] => "no layer of this model runs on the accelerator".into(),
                names => format!("no layer of the accelerator has this name; there are: {}", names.join(", ")),
            };
            return Err(ModelError::Schedule { path: one.path.clone(), reason });
        }
    }
    let of = |layer: &str| {
        let stem_of = &there.iter().find(|there| there.layer == layer)?.stem;
        given.iter().find(|given| stem(given).as_ref() == Some(stem_of))
    };
    for region in &mut partition.regions {
        let Code::Accel(region) = &mut region.code else { continue };
        let file = |layer: &str| of(layer).map(|given| Arc::clone(&given.file));
        region.reschedule(graph, config, &file, clock).map_err(|error| {
            let folder = given[0].path.parent().map(Path::to_path_buf).unwrap_or_default();
            let path = of(&error.layer).map_or(folder, |given| given.path.clone());
            let reason = match &error.source {
                DriverError::Rule { what, .. } => format!("layer {}: {what}", error.layer),
                _ => error.to_string(),
            };
            ModelError::Schedule { path, reason }
        })?;
        for (end, built) in region.layers.iter().zip(&region.schedules) {
            let Some(given) = of(&end.name) else { continue };
            for e in partition.explanations.iter_mut().filter(|e| built.nodes.contains(&e.node)) {
                e.why = format!("by the schedule {}", given.path.display());
            }
        }
    }
    Ok(())
}

fn accelerated(partition: &Partition) -> impl Iterator<Item = &AccelRegion> {
    partition.regions.iter().filter_map(|region| match &region.code {
        Code::Accel(region) => Some(region.as_ref()),
        Code::Cpu | Code::Own => None,
    })
}
