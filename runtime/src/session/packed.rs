//! Packed steps: functions that the program has registered.

use bytes::Bytes;

use crate::artifact::{Manifest, Step, ValueId, ValueInfo};
use crate::function::Function;
use crate::tensor::{Tensor, shape_text};
use crate::value::Value;

/// A function with the tensors that it reads and writes.
pub(super) struct Packed {
    function: Function,
    inputs: Vec<ValueInfo>,
    outputs: Vec<ValueInfo>,
}

impl Packed {
    pub fn new(function: Function, step: &Step, manifest: &Manifest) -> Packed {
        let values = |ids: &[ValueId]| ids.iter().map(|id| manifest.values[id.0 as usize].clone()).collect();
        Packed { function, inputs: values(&step.inputs), outputs: values(&step.outputs) }
    }

    /// Calls the function with copies of the inputs, so that it can keep them, and copies what it returns: a tensor, or
    /// a list with one for each output.
    ///
    /// # Errors
    /// What the function reports, or how its result differs from the outputs.
    pub fn call(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]]) -> Result<(), String> {
        let tensor = |(value, bytes): (&ValueInfo, &&[u8])| {
            let bytes = Bytes::copy_from_slice(bytes);
            Value::Tensor(Tensor { dtype: value.dtype, shape: value.shape.clone(), bytes })
        };
        let given: Vec<Value> = self.inputs.iter().zip(inputs).map(tensor).collect();
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
        for ((result, output), bytes) in results.iter().zip(&self.outputs).zip(outputs) {
            match result {
                Value::Tensor(tensor) if tensor.dtype == output.dtype && tensor.shape == output.shape => {
                    bytes.copy_from_slice(&tensor.bytes);
                }
                other => {
                    let wanted = format!("{} {}", output.dtype, shape_text(&output.shape));
                    return Err(format!("{name} returned {other} for {}, which is {wanted}", output.name));
                }
            }
        }
        Ok(())
    }
}
