//! Artifacts of models whose inputs can have several shapes: the model is compiled for some of them, and all share the
//! blobs.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::manifest::{BlobId, Manifest, StepKind};
use super::{Artifact, ArtifactError};
use crate::tensor::{DType, shape_text};

/// The size of a dimension.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Dim {
    /// A number.
    Size(usize),
    /// The name of a size that is known when the model runs.
    Symbol(String),
}

impl Dim {
    /// The size, if it is known.
    pub fn size(&self) -> Option<usize> {
        if let Dim::Size(size) = self { Some(*size) } else { None }
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Size(size) => write!(f, "{size}"),
            Dim::Symbol(name) => f.write_str(name),
        }
    }
}

/// An input or output whose sizes can be open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenValue {
    /// Its name.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Sizes of its dimensions.
    pub dims: Vec<Dim>,
}

impl OpenValue {
    /// Its sizes as text, such as `1x3xHxW`.
    pub fn dims_text(&self) -> String {
        self.dims.iter().map(Dim::to_string).collect::<Vec<_>>().join("x")
    }
}

impl Artifact {
    /// One artifact that has the model compiled for the shapes of all of these; equal blobs are stored once. `inputs`
    /// are the model's inputs with their open sizes. Of several artifacts for the same shapes, the first is used.
    ///
    /// # Errors
    /// [`ArtifactError::Damaged`] if there is none, or if they are of different models.
    pub fn of_shapes(inputs: Vec<OpenValue>, artifacts: &[Artifact]) -> Result<Artifact, ArtifactError> {
        let Some(first) = artifacts.first() else {
            return Err(ArtifactError::Damaged { path: String::new(), what: "it has the model for no shape".into() });
        };
        let mut blobs: Vec<Vec<u8>> = Vec::new();
        let mut known: HashMap<&str, BlobId> = HashMap::new();
        let mut manifests: Vec<Manifest> = Vec::new();
        for artifact in artifacts {
            if manifests.iter().any(|other| same_shapes(other, &artifact.manifest)) {
                continue;
            }
            let mut manifest = artifact.manifest.clone();
            let mut moved = Vec::with_capacity(manifest.blobs.len());
            for (info, bytes) in artifact.manifest.blobs.iter().zip(artifact.blobs.iter()) {
                moved.push(match known.entry(&info.sha256) {
                    Entry::Occupied(entry) => *entry.get(),
                    Entry::Vacant(entry) => {
                        blobs.push(bytes.to_vec());
                        *entry.insert(BlobId(blobs.len() as u32 - 1))
                    }
                });
            }
            manifest.each_blob(&mut |id| *id = moved[id.0 as usize]);
            manifest.blobs.clear();
            manifest.parameters = None;
            manifests.push(manifest);
        }
        let mut manifest = manifests.remove(0);
        (manifest.variants, manifest.open_inputs) = (manifests, inputs);
        Artifact::new(&first.path, manifest, blobs)
    }

    /// The model compiled for these shapes of its inputs, if the artifact has it; the blobs are shared.
    pub fn for_shapes(&self, shapes: &[&[usize]]) -> Option<Artifact> {
        let has =
            |manifest: &&Manifest| manifest.input_values().iter().map(|v| &v.shape[..]).eq(shapes.iter().copied());
        let mut manifest = self.manifest.of_each_shape().find(has)?.clone();
        manifest.blobs.clone_from(&self.manifest.blobs);
        manifest.parameters.clone_from(&self.manifest.parameters);
        manifest.variants.clear();
        manifest.open_inputs.clear();
        Some(Artifact { path: self.path.clone(), manifest, blobs: self.blobs.clone() })
    }

    /// The shapes that the artifact has the model for, and what to do for others, in words.
    pub fn known_shapes(&self) -> String {
        let of = |manifest: &Manifest| {
            manifest.input_values().iter().map(|value| shape_text(&value.shape)).collect::<Vec<_>>().join(" and ")
        };
        let known: Vec<String> = self.manifest.of_each_shape().map(of).collect();
        format!("it has the model for {}; compile it with --shapes for others", known.join(", "))
    }

    /// The model's inputs; where it is compiled for several sizes, a dimension has a name.
    pub fn inputs(&self) -> Vec<OpenValue> {
        if !self.manifest.open_inputs.is_empty() {
            return self.manifest.open_inputs.clone();
        }
        let values = self.manifest.input_values().into_iter();
        let value = |v: &super::ValueInfo| OpenValue {
            name: v.name.clone(),
            dtype: v.dtype,
            dims: v.shape.iter().map(|size| Dim::Size(*size)).collect(),
        };
        values.map(value).collect()
    }
}

fn same_shapes(a: &Manifest, b: &Manifest) -> bool {
    a.input_values().iter().map(|v| &v.shape).eq(b.input_values().iter().map(|v| &v.shape))
}

impl Manifest {
    /// The model for each of its shapes, this manifest's own first.
    pub fn of_each_shape(&self) -> impl Iterator<Item = &Manifest> {
        std::iter::once(self).chain(&self.variants)
    }

    /// Calls `change` with every reference to a blob, except those of the model for other shapes.
    fn each_blob(&mut self, change: &mut dyn FnMut(&mut BlobId)) {
        self.cuda.iter_mut().for_each(&mut *change);
        self.cpu.iter_mut().flat_map(|cpu| &mut cpu.objects).for_each(&mut *change);
        self.values.iter_mut().filter_map(|value| value.constant.as_mut()).for_each(&mut *change);
        for step in &mut self.steps {
            if let StepKind::Accel(accel) = &mut step.kind {
                change(&mut accel.stream);
                change(&mut accel.constants);
            }
        }
    }

    /// Checks what the model's shapes have in common: names and types of inputs and outputs, and the hardware.
    ///
    /// # Errors
    /// The first difference, as text.
    pub(super) fn check_variants(&self) -> Result<(), String> {
        fn ends(manifest: &Manifest) -> impl Iterator<Item = (&str, DType)> {
            let inputs = manifest.input_values().into_iter().map(|v| (v.name.as_str(), v.dtype));
            let output = |(name, id): (_, super::ValueId)| (name, manifest.values[id.0 as usize].dtype);
            inputs.chain(manifest.named_outputs().map(output))
        }
        let hash = |manifest: &Manifest| manifest.hardware.as_ref().map(|hardware| hardware.hash);
        for (index, variant) in self.variants.iter().enumerate() {
            if !variant.variants.is_empty() {
                return Err(format!("variant {index} has variants of its own"));
            }
            let ranks = |m: &Manifest| m.input_values().iter().map(|v| v.shape.len()).collect::<Vec<_>>();
            let hardware = hash(variant).zip(hash(self));
            if !ends(variant).eq(ends(self))
                || variant.inputs.len() != self.inputs.len()
                || ranks(variant) != ranks(self)
                || hardware.is_some_and(|(one, other)| one != other)
            {
                return Err(format!("variant {index} is of another model or of other hardware"));
            }
        }
        let open = &self.open_inputs;
        let fits = |manifest: &Manifest| {
            let values = manifest.input_values();
            values.len() == open.len()
                && values.iter().zip(open).all(|(value, open)| {
                    let sizes = || value.shape.iter().zip(&open.dims);
                    value.name == open.name
                        && value.dtype == open.dtype
                        && value.shape.len() == open.dims.len()
                        && sizes().all(|(size, dim)| dim.size().is_none_or(|known| known == *size))
                })
        };
        if !open.is_empty() && !self.of_each_shape().all(fits) {
            return Err("the inputs with open sizes are not those of the model".into());
        }
        Ok(())
    }
}
