//! What a module tells of a model's inputs and outputs.

use crate::artifact::{Dim, Manifest, OpenValue, ValueId};
use crate::tensor::DType;
use crate::value::Value;

/// A map with `name`, `dtype` and `shape`.
fn description(name: &str, dtype: DType, shape: Value) -> Value {
    Value::from_iter([("name", name.into()), ("dtype", dtype.name().into()), ("shape", shape)])
}

/// Descriptions of a model's inputs.
pub(super) fn inputs(inputs: &[OpenValue]) -> Value {
    let size = |dim: &Dim| match dim {
        Dim::Size(size) => Value::Integer(*size as i64),
        Dim::Symbol(name) => name.as_str().into(),
    };
    inputs.iter().map(|v| description(&v.name, v.dtype, v.dims.iter().map(size).collect())).collect()
}

/// Descriptions of a model's outputs; a size that differs between the shapes is no value.
pub(super) fn outputs(manifest: &Manifest) -> Value {
    let output = |(place, (name, id)): (usize, (&str, ValueId))| {
        let value = &manifest.values[id.0 as usize];
        let in_variant =
            |variant: &Manifest| variant.outputs.get(place).map(|id| variant.values[id.0 as usize].shape.clone());
        let others: Vec<_> = manifest.variants.iter().filter_map(in_variant).collect();
        let size = |(axis, size): (usize, &usize)| match others.iter().all(|shape| shape.get(axis) == Some(size)) {
            true => Value::Integer(*size as i64),
            false => Value::None,
        };
        description(name, value.dtype, value.shape.iter().enumerate().map(size).collect())
    };
    manifest.named_outputs().enumerate().map(output).collect()
}
