//! Artifacts of models whose inputs can have several shapes: the model is compiled for some of them, and all share the
//! blobs.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use super::manifest::{BlobId, Manifest, StepKind};
use super::{Artifact, ArtifactError, Dim, OpenValue, Rows};
use crate::buffer::AlignedBytes;
use crate::tensor::{DType, Tensor, TensorRef, shape_text};

/// Whether the model's inputs have these shapes.
fn has_shapes(manifest: &Manifest, shapes: &[&[usize]]) -> bool {
    manifest.input_values().iter().map(|value| &value.shape[..]).eq(shapes.iter().copied())
}

/// Larger shapes that inputs can be padded to, and what is left of the outputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Larger {
    /// A shape for each input.
    pub shapes: Vec<Vec<usize>>,
    /// For each output, dimensions and how many of their elements are kept.
    pub kept: Vec<Vec<(usize, usize)>>,
}

impl Larger {
    /// The inputs with zeros behind their elements.
    pub fn pad(&self, inputs: &[TensorRef]) -> Vec<Tensor> {
        let pad = |(shape, input): (&Vec<usize>, &TensorRef)| {
            let (size, count) = (input.dtype.size(), shape.iter().product::<usize>());
            let mut bytes = vec![0; count * size];
            copy_corner(input.shape, shape, size, |small, large, len| {
                bytes[large..large + len].copy_from_slice(&input.bytes[small..small + len]);
            });
            Tensor { dtype: input.dtype, shape: shape.clone(), bytes: bytes.into() }
        };
        self.shapes.iter().zip(inputs).map(pad).collect()
    }

    /// The shape of an output without the padding.
    pub fn kept_shape(&self, output: usize, shape: &[usize]) -> Vec<usize> {
        let mut shape = shape.to_vec();
        for (axis, size) in self.kept.get(output).into_iter().flatten() {
            shape[*axis] = *size;
        }
        shape
    }

    /// The outputs without the padding.
    pub fn cut(&self, outputs: Vec<Tensor>) -> Vec<Tensor> {
        let cut = |(place, output): (usize, Tensor)| {
            let shape = self.kept_shape(place, &output.shape);
            if shape == output.shape {
                return output;
            }
            let size = output.dtype.size();
            let mut bytes = vec![0; shape.iter().product::<usize>() * size];
            copy_corner(&shape, &output.shape, size, |small, large, len| {
                bytes[small..small + len].copy_from_slice(&output.bytes[large..large + len]);
            });
            Tensor { dtype: output.dtype, shape, bytes: bytes.into() }
        };
        outputs.into_iter().enumerate().map(cut).collect()
    }
}

/// The size that a name has in these shapes of the inputs.
fn size_of<'a>(symbol: &str, inputs: &[OpenValue], shapes: impl Iterator<Item = &'a [usize]>) -> Option<usize> {
    let mut dims = inputs.iter().zip(shapes).flat_map(|(input, shape)| input.dims.iter().zip(shape));
    dims.find_map(|(dim, size)| matches!(dim, Dim::Symbol(name) if name == symbol).then_some(*size))
}

/// Calls `copy` with the first bytes in the smaller and in the larger tensor, and the number of bytes, for all rows of
/// the smaller one, which is the first corner of the larger.
fn copy_corner(small: &[usize], large: &[usize], size: usize, mut copy: impl FnMut(usize, usize, usize)) {
    if small.contains(&0) {
        return;
    }
    let Some(last) = small.last() else { return copy(0, 0, size) };
    let outer: usize = small[..small.len() - 1].iter().product();
    for row in 0..outer {
        // The row's place in each dimension, innermost first.
        let (mut rest, mut at, mut strides) = (row, [0, 0], [small[small.len() - 1], large[large.len() - 1]]);
        for axis in (0..small.len() - 1).rev() {
            let place = rest % small[axis];
            rest /= small[axis];
            at = [at[0] + place * strides[0], at[1] + place * strides[1]];
            strides = [strides[0] * small[axis], strides[1] * large[axis]];
        }
        copy(at[0] * size, at[1] * size, last * size);
    }
}

impl Artifact {
    /// The smallest shapes that the artifact has the model for and that inputs of these shapes can be padded to. `None`
    /// if there are none, or if it has the model for these shapes.
    pub fn larger(&self, shapes: &[&[usize]]) -> Option<Larger> {
        let inputs = self.inputs();
        let fits = |manifest: &&Manifest| {
            let suits = |(dim, (size, given)): (&Dim, (&usize, &usize))| match dim {
                Dim::Symbol(name) if given < size => manifest.buckets.iter().any(|bucket| bucket.symbol == *name),
                _ => given == size,
            };
            let values = manifest.input_values();
            let mut each = inputs.iter().zip(values.iter().zip(shapes));
            each.all(|(input, (value, shape))| input.dims.iter().zip(value.shape.iter().zip(*shape)).all(suits))
        };
        let elements = |manifest: &&Manifest| {
            manifest.input_values().iter().map(|v| v.shape.iter().product::<usize>()).fold(0, usize::saturating_add)
        };
        let found = self.manifest.of_each_shape().filter(fits).min_by_key(elements)?;
        let padded: Vec<Vec<usize>> = found.input_values().iter().map(|value| value.shape.clone()).collect();
        if padded.iter().map(Vec::as_slice).eq(shapes.iter().copied()) {
            return None;
        }
        let mut kept = vec![Vec::new(); found.outputs.len()];
        for bucket in &found.buckets {
            let size = size_of(&bucket.symbol, &inputs, shapes.iter().copied())?;
            for (kept, rows) in kept.iter_mut().zip(&bucket.outputs) {
                kept.extend(rows.map(|rows| (rows.axis, size * rows.each)));
            }
        }
        Some(Larger { shapes: padded, kept })
    }

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

    /// The same artifact. Blobs that are equal to some of `other`, such as weights of the same model, are in memory once.
    #[must_use]
    pub fn sharing(mut self, other: &Artifact) -> Artifact {
        let known: HashMap<&str, &Arc<AlignedBytes>> =
            other.manifest.blobs.iter().map(|info| info.sha256.as_str()).zip(&other.blobs).collect();
        for (info, blob) in self.manifest.blobs.iter().zip(&mut self.blobs) {
            if let Some(same) = known.get(info.sha256.as_str()).filter(|same| same[..] == blob[..]) {
                *blob = Arc::clone(same);
            }
        }
        self
    }

    /// The model compiled for these shapes of its inputs, if the artifact has it; the blobs are shared.
    pub fn for_shapes(&self, shapes: &[&[usize]]) -> Option<Artifact> {
        Some(self.of_part(self.manifest.of_each_shape().find(|manifest| has_shapes(manifest, shapes))?))
    }

    /// A part of this artifact, the model for one shape or a region, as an artifact; the blobs are shared.
    pub(crate) fn of_part(&self, part: &Manifest) -> Artifact {
        let mut manifest = part.clone();
        manifest.blobs.clone_from(&self.manifest.blobs);
        manifest.parameters.clone_from(&self.manifest.parameters);
        manifest.variants.clear();
        manifest.open_inputs.clear();
        manifest.buckets.clear();
        Artifact { manifest, ..self.clone() }
    }

    /// Whether the model is compiled for these shapes of its inputs alone.
    pub fn inputs_have(&self, shapes: &[&[usize]]) -> bool {
        self.manifest.variants.is_empty() && has_shapes(&self.manifest, shapes)
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

    /// A manifest without blobs of its own, for an artifact that has this one's from this number on.
    pub fn with_blobs_from(&self, first: u32) -> Manifest {
        let mut manifest = self.clone();
        manifest.each_blob(&mut |id| id.0 += first);
        manifest.blobs.clear();
        manifest.parameters = None;
        manifest
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
            step.kind.regions_mut().into_iter().for_each(|region| region.each_blob(change));
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
        for manifest in self.of_each_shape() {
            let shapes: Vec<&[usize]> =
                manifest.outputs.iter().map(|id| manifest.values[id.0 as usize].shape.as_slice()).collect();
            for bucket in &manifest.buckets {
                let sizes = manifest.input_values();
                let size = size_of(&bucket.symbol, &self.open_inputs, sizes.iter().map(|value| &value.shape[..]));
                let size = size.ok_or_else(|| format!("no input has the size {}", bucket.symbol))?;
                let fits = |(rows, shape): (&Option<Rows>, &&[usize])| {
                    rows.is_none_or(|rows| shape.get(rows.axis).copied() == size.checked_mul(rows.each))
                };
                if bucket.outputs.len() != shapes.len() || !bucket.outputs.iter().zip(&shapes).all(fits) {
                    return Err(format!("the rows of {} are not in the outputs", bucket.symbol));
                }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::{Bucket, ValueId, ValueInfo};

    /// Two inputs whose open size has one name.
    fn of_sizes(sizes: [usize; 2]) -> Artifact {
        let value = |size: usize| ValueInfo::new("", DType::I8, vec![size, 2]);
        let symbol = "n".to_string();
        let bucket = Bucket { symbol, outputs: vec![Some(Rows { axis: 0, each: 1 })] };
        let manifest = Manifest {
            values: sizes.map(value).to_vec(),
            inputs: vec![ValueId(0), ValueId(1)],
            outputs: vec![ValueId(0)],
            buckets: vec![bucket],
            open_inputs: vec![open(), open()],
            ..Manifest::new("two", "test")
        };
        Artifact::new("two", manifest, Vec::new()).unwrap()
    }

    fn open() -> OpenValue {
        let dims = vec![Dim::Symbol("n".into()), Dim::Size(2)];
        OpenValue { name: String::new(), dtype: DType::I8, dims }
    }

    /// An artifact can give a name two sizes; inputs are padded only if both are large enough.
    #[test]
    fn every_input_fits_its_larger_shape() {
        let shapes: [&[usize]; 2] = [&[3, 2], &[3, 2]];
        let larger = of_sizes([5, 4]).larger(&shapes).unwrap();
        assert_eq!(larger, Larger { shapes: vec![vec![5, 2], vec![4, 2]], kept: vec![vec![(0, 3)]] });
        for smaller in [[5, 2], [2, 5], [2, 2]] {
            assert_eq!(of_sizes(smaller).larger(&shapes), None, "{smaller:?}");
        }
        assert_eq!(of_sizes([3, 3]).larger(&shapes), None, "the model is there for these shapes");
    }

    #[test]
    fn what_is_padded_is_cut_again() {
        let larger = Larger { shapes: vec![vec![3, 3, 2]], kept: vec![vec![(0, 2), (1, 1)]] };
        let bytes: Vec<u8> = (1..=4).collect();
        let given = TensorRef { dtype: DType::I8, shape: &[2, 1, 2], bytes: &bytes };
        let padded = larger.pad(&[given]);
        assert_eq!(padded[0].bytes[..], [1, 2, 0, 0, 0, 0, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let cut = larger.cut(padded);
        assert_eq!((&cut[0].shape[..], &cut[0].bytes[..]), (&[2, 1, 2][..], &bytes[..]));
    }
}
