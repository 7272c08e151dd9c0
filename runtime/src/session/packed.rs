//! Packed steps: functions that the program has registered.

use bytes::Bytes;

use crate::artifact::{Manifest, Step, ValueId, ValueInfo};
use crate::function::Function;
use crate::packed::{Attributes, Output, PackedCall};
use crate::tensor::Tensor;

/// A function with the tensors that it reads and writes.
pub(super) struct Packed {
    call: PackedCall,
    inputs: Vec<ValueInfo>,
}

impl Packed {
    pub fn new(function: Function, attributes: &Attributes, step: &Step, manifest: &Manifest) -> Packed {
        let value = |id: &ValueId| manifest.values[id.0 as usize].clone();
        let output = |id| {
            let ValueInfo { name, dtype, shape, .. } = value(id);
            Output { name, dtype, shape }
        };
        let call = PackedCall::new(function, attributes, step.outputs.iter().map(output).collect());
        Packed { call, inputs: step.inputs.iter().map(value).collect() }
    }

    /// Calls the function with copies of the inputs, so that it can keep them, and copies what it returns.
    ///
    /// # Errors
    /// As [`PackedCall::call`].
    pub fn call(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]]) -> Result<(), String> {
        let tensor = |(value, bytes): (&ValueInfo, &&[u8])| {
            let bytes = Bytes::copy_from_slice(bytes);
            Tensor { dtype: value.dtype, shape: value.shape.clone(), bytes }
        };
        let results = self.call.call(self.inputs.iter().zip(inputs).map(tensor))?;
        for (result, output) in results.iter().zip(outputs) {
            output.copy_from_slice(&result.bytes);
        }
        Ok(())
    }
}
