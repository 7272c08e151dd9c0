//! Packed steps: functions that the program has registered.

use crate::artifact::{Manifest, Step};
use crate::function::Function;
use crate::tensor::{DType, Tensor, shape_text};
use crate::value::Value;
use bytes::Bytes;

/// A function with the types of what it reads and writes.
pub(super) struct Packed {
    function: Function,
    inputs: Vec<(DType, Vec<usize>)>,
    outputs: Vec<(String, DType, Vec<usize>)>,
}

impl Packed {
    pub fn new(function: Function, step: &Step, manifest: &Manifest) -> Packed {
        let value = |id: &crate::artifact::ValueId| &manifest.values[id.0 as usize];
        let inputs = step.inputs.iter().map(value).map(|value| (value.dtype, value.shape.clone()));
        let outputs =
            step.outputs.iter().map(value).map(|value| (value.name.clone(), value.dtype, value.shape.clone()));
        Packed { function, inputs: inputs.collect(), outputs: outputs.collect() }
    }

    /// Calls the function with copies of the inputs, so that it can keep them, and copies what it returns: a tensor, or
    /// a list with one for each output.
    ///
    /// # Errors
    /// What the function reports, or how its result differs from the outputs.
    pub fn call(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]]) -> Result<(), String> {
        let given = self.inputs.iter().zip(inputs);
        let tensor = |((dtype, shape), bytes): (&(DType, Vec<usize>), &&[u8])| {
            Value::Tensor(Tensor { dtype: *dtype, shape: shape.clone(), bytes: Bytes::copy_from_slice(bytes) })
        };
        let given: Vec<Value> = given.map(tensor).collect();
        let result = self.function.call(&given).map_err(|error| error.to_string())?;
        let results = match &result {
            Value::List(values) => values,
            one => std::slice::from_ref(one),
        };
        let name = self.function.name();
        if results.len() != outputs.len() {
            return Err(format!(
                "{name} returned {} values, but the step has {} outputs",
                results.len(),
                outputs.len()
            ));
        }
        for ((result, (output, dtype, shape)), bytes) in results.iter().zip(&self.outputs).zip(outputs) {
            match result {
                Value::Tensor(tensor) if tensor.dtype == *dtype && tensor.shape == *shape => {
                    bytes.copy_from_slice(&tensor.bytes);
                }
                other => {
                    let wanted = shape_text(shape);
                    return Err(format!("{name} returned {other} for {output}, which is {dtype} {wanted}"));
                }
            }
        }
        Ok(())
    }
}
