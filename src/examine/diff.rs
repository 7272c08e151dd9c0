//! Compares two runs of a model, or a run with arrays, value by value in the order of the graph.

mod compare;
mod ordinary;
mod place;
mod reference;
mod report;
mod request;
mod tolerance;

pub use compare::{Difference, compare};
pub use ordinary::{Departure, Outputs, departure};
pub use place::{ComputedBy, Spot, Written, spot};
pub use reference::{Reference, ReferenceError};
pub use report::{Parted, Report};
pub use request::{CompileFor, DiffRequest, Knows, Model, Refused, Right, RunsFor, diff};
pub use tolerance::{Tolerance, ToleranceError};

use tilewright_hw::config::HwConfig;
use tilewright_hw::device::Device;
use tilewright_runtime::artifact::{Artifact, Manifest};
use tilewright_runtime::registry::Registry;
use tilewright_runtime::session::{Session, SessionError};
use tilewright_runtime::tensor::{Tensor, shape_text};

use crate::model::values::{Hidden, Visible, values};

/// A model on a device, with the values of its last run.
pub struct Side {
    /// None once the side is closed.
    session: Option<Session>,
    artifact: Artifact,
    config: HwConfig,
    visible: Vec<Visible>,
    hidden: Vec<Hidden>,
    found: Vec<Option<Tensor>>,
}

impl Side {
    /// Prepares an artifact on a device.
    ///
    /// # Errors
    /// Errors of the session.
    pub fn new(artifact: Artifact, config: &HwConfig, device: Option<Box<dyn Device>>) -> Result<Side, SessionError> {
        let (visible, hidden) = values(&artifact.manifest);
        let session = Some(Session::new(artifact.clone(), Registry::global(), device)?);
        Ok(Side { session, artifact, config: config.clone(), visible, hidden, found: Vec::new() })
    }

    /// The artifact that it runs.
    pub fn artifact(&self) -> &Artifact {
        &self.artifact
    }

    /// Closes the device, which another side may need; the values of the last run stay.
    pub fn close(&mut self) {
        self.session = None;
    }

    /// Its configuration.
    pub fn config(&self) -> &HwConfig {
        &self.config
    }

    /// The visible values of the model, in the order of the graph.
    pub fn visible(&self) -> &[Visible] {
        &self.visible
    }

    /// Nodes whose values are not visible.
    pub fn hidden(&self) -> &[Hidden] {
        &self.hidden
    }

    /// Runs the model once and keeps every value.
    ///
    /// # Errors
    /// Errors of the session; [`SessionError::NoDevice`] if the side is closed.
    pub fn run(&mut self, inputs: &[Tensor]) -> Result<(), SessionError> {
        let manifest: Manifest = self.artifact.manifest.clone();
        let first = || manifest.steps.first().map_or_else(String::new, |step| step.name.clone());
        let session = self.session.as_mut().ok_or_else(|| SessionError::NoDevice { step: first() })?;
        let mut found = vec![None; manifest.values.len()];
        session.run_watched(inputs, &mut |id, bytes| {
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

/// The other side of a comparison.
pub enum Other<'s> {
    /// Another run.
    Side(&'s Side),
    /// Arrays, and the index of the run to take from them.
    Arrays(&'s Reference, usize),
}

/// Result of comparing one run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Comparison {
    /// The values that both sides have, in the order of the graph, each with its difference if there is one.
    pub values: Vec<(Visible, Option<Difference>)>,
    /// Values with different types or shapes, each with those of both sides.
    pub unlike: Vec<(Visible, [String; 2])>,
    /// Number of values that only the first side shows.
    pub alone: usize,
}

impl Comparison {
    /// Whether all values that both sides show are equal.
    pub fn is_equal(&self) -> bool {
        self.unlike.is_empty() && self.first().is_none()
    }

    /// The first value that differs.
    pub fn first(&self) -> Option<(&Visible, &Difference)> {
        self.values.iter().find_map(|(value, difference)| Some((value, difference.as_ref()?)))
    }

    /// Number of values that differ.
    pub fn differing(&self) -> usize {
        self.values.iter().filter(|(_, difference)| difference.is_some()).count()
    }
}

/// Compares the last run of `a`, value by value.
///
/// # Errors
/// [`ReferenceError`] if an array does not match its value.
pub fn compare_all(a: &Side, other: &Other, tolerance: &Tolerance) -> Result<Comparison, ReferenceError> {
    let manifest = &a.artifact().manifest;
    let mut comparison = Comparison::default();
    for value in &a.visible {
        let Some(mine) = a.tensor(value) else { continue };
        let theirs = match other {
            Other::Side(b) => {
                let same = b.visible.iter().find(|v| v.name == value.name);
                same.and_then(|v| b.tensor(v)).cloned()
            }
            Other::Arrays(arrays, run) => arrays.of_run(manifest, value, *run)?,
        };
        match theirs {
            Some(theirs) if theirs.dtype != mine.dtype || theirs.shape != mine.shape => {
                let types = [mine, &theirs].map(|t| format!("{} {}", t.dtype, shape_text(&t.shape)));
                comparison.unlike.push((value.clone(), types));
            }
            Some(theirs) => comparison.values.push((value.clone(), compare(mine, &theirs, tolerance))),
            None => comparison.alone += 1,
        }
    }
    Ok(comparison)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{model, model::inference};
    use tilewright_compiler::graph::op::Relu;
    use tilewright_compiler::graph::{DType, GraphBuilder, TensorType};

    /// A model of one operator on the CPU, after a run.
    fn side(dtype: DType, shape: &[usize]) -> Side {
        let mut b = GraphBuilder::new("one");
        let x = b.input("x", TensorType::new(dtype, shape));
        let y = b.node("y", Relu {}, &[x]).unwrap();
        b.output("out", y);
        let config = HwConfig::default();
        let options = model::Options { offload: model::Offload::None, ..model::Options::new(&config) };
        let artifact = model::build(b.finish().unwrap(), &options, &mut |_, _| {}).unwrap();
        let inputs = inference::made_up(&artifact.manifest.input_values());
        let mut side = Side::new(artifact, &config, None).unwrap();
        side.run(&inputs).unwrap();
        side
    }

    #[test]
    fn a_value_of_another_shape_is_a_difference() {
        let a = side(DType::F32, &[1, 4]);
        let same = compare_all(&a, &Other::Side(&side(DType::F32, &[1, 4])), &Tolerance::default()).unwrap();
        assert!(same.is_equal() && !same.values.is_empty());
        let other = compare_all(&a, &Other::Side(&side(DType::F32, &[2, 4])), &Tolerance::default()).unwrap();
        assert!(!other.is_equal());
        assert_eq!((other.values.len(), other.alone), (0, 0));
        let found: Vec<_> = other.unlike.iter().map(|(value, types)| (value.name.as_str(), types.clone())).collect();
        assert_eq!(found[0], ("x", ["f32 1x4".to_string(), "f32 2x4".to_string()]));
    }
}
