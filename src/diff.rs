//! Two runs of a model, or a run and arrays, compared value by value in the order of the graph.

mod compare;
mod ordinary;
mod place;
mod reference;
mod tolerance;

pub use compare::{Difference, compare};
pub use ordinary::{Departure, Outputs, departure};
pub use place::{Made, Spot, Written, spot};
pub use reference::{Reference, ReferenceError};
pub use tolerance::{Tolerance, ToleranceError};

use tilewright_hw::config::HwConfig;
use tilewright_hw::device::Device;
use tilewright_runtime::artifact::{Artifact, Manifest};
use tilewright_runtime::registry::Registry;
use tilewright_runtime::session::{Session, SessionError};
use tilewright_runtime::tensor::Tensor;

use crate::values::{Hidden, Visible, values};

/// A model on a device, with what it had in its values in the last run.
pub struct Side {
    session: Session,
    config: HwConfig,
    visible: Vec<Visible>,
    hidden: Vec<Hidden>,
    found: Vec<Option<Tensor>>,
}

impl Side {
    /// Makes an artifact ready on a device.
    ///
    /// # Errors
    /// The session's.
    pub fn new(artifact: Artifact, config: &HwConfig, device: Option<Box<dyn Device>>) -> Result<Side, SessionError> {
        let (visible, hidden) = values(&artifact.manifest);
        let session = Session::new(artifact, &Registry::new(), device)?;
        Ok(Side { session, config: config.clone(), visible, hidden, found: Vec::new() })
    }

    /// The artifact that it runs.
    pub fn artifact(&self) -> &Artifact {
        self.session.artifact()
    }

    /// Its configuration.
    pub fn config(&self) -> &HwConfig {
        &self.config
    }

    /// What it shows of the model, in the order of the graph.
    pub fn visible(&self) -> &[Visible] {
        &self.visible
    }

    /// Nodes whose values it does not show.
    pub fn hidden(&self) -> &[Hidden] {
        &self.hidden
    }

    /// Runs the model once and keeps every value.
    ///
    /// # Errors
    /// The session's.
    pub fn run(&mut self, inputs: &[Tensor]) -> Result<(), SessionError> {
        let manifest: Manifest = self.session.artifact().manifest.clone();
        let mut found = vec![None; manifest.values.len()];
        self.session.run_watched(inputs, &mut |id, bytes| {
            let value = &manifest.values[id.0 as usize];
            found[id.0 as usize] = Tensor::new(value.dtype, value.shape.clone(), bytes.to_vec());
        })?;
        self.found = found;
        Ok(())
    }

    /// A value of the last run.
    pub fn tensor(&self, value: &Visible) -> Option<&Tensor> {
        self.found.get(value.id.0 as usize)?.as_ref()
    }
}

/// What a run is compared with.
pub enum Other<'s> {
    /// Another run.
    Side(&'s Side),
    /// Arrays, and the run that they are of.
    Arrays(&'s Reference, usize),
}

/// What a comparison of one run found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Comparison {
    /// Names of the values that both have, in the order of the graph, each with how it differs.
    pub values: Vec<(Visible, Option<Difference>)>,
    /// Values of the first side that the other does not show.
    pub alone: usize,
}

impl Comparison {
    /// The first value that differs.
    pub fn first(&self) -> Option<(&Visible, &Difference)> {
        self.values.iter().find_map(|(value, difference)| Some((value, difference.as_ref()?)))
    }

    /// How many differ.
    pub fn differing(&self) -> usize {
        self.values.iter().filter(|(_, difference)| difference.is_some()).count()
    }
}

/// Compares the last run of `a`, value by value.
///
/// # Errors
/// [`ReferenceError`] where an array does not fit its value.
pub fn compare_all(a: &Side, other: &Other, tolerance: &Tolerance) -> Result<Comparison, ReferenceError> {
    let manifest = &a.artifact().manifest;
    let mut comparison = Comparison::default();
    for value in &a.visible {
        let Some(mine) = a.tensor(value) else { continue };
        let theirs = match other {
            Other::Side(b) => {
                let same = b.visible.iter().find(|v| v.name == value.name);
                same.and_then(|v| b.tensor(v)).filter(|t| t.dtype == mine.dtype && t.shape == mine.shape).cloned()
            }
            Other::Arrays(arrays, run) => arrays.of_run(manifest, value, *run)?,
        };
        match theirs {
            Some(theirs) => comparison.values.push((value.clone(), compare(mine, &theirs, tolerance))),
            None => comparison.alone += 1,
        }
    }
    Ok(comparison)
}
