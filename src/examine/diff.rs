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
use tilewright_runtime::tensor::{Tensor, shape_text};

use crate::model::values::{Hidden, Visible, values};

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
    /// Values that are not even of one type: each with its type on both sides.
    pub unlike: Vec<(Visible, [String; 2])>,
    /// Values of the first side that the other does not show.
    pub alone: usize,
}

impl Comparison {
    /// Whether nothing differs of what both show.
    pub fn is_equal(&self) -> bool {
        self.unlike.is_empty() && self.first().is_none()
    }

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
