//! Sessions, and their runs on the caller's memory.

use tilewright_runtime::dlpack::{DLTensor, View};
use tilewright_runtime::module::SessionModule;
use tilewright_runtime::session::{TensorMut, TensorRef};
use tilewright_runtime::{Module, SessionError};

use crate::error::{Failure, TW_BUSY, TW_FAILED, TW_INVALID_ARGUMENT, array, guard, tw_status};
use crate::value::{put_value, tw_value};

/// Opens a session of an artifact. `device` is a string as `--device` accepts it, a device of
/// [`tw_device_open`](crate::tw_device_open), or no value if nothing runs on an accelerator.
///
/// # Safety
/// `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_session_open(artifact: tw_value, device: tw_value, out: *mut tw_value) -> tw_status {
    guard(|| {
        if out.is_null() {
            return Err(Failure::null("out"));
        }
        let (held, device) = (artifact.held()?, device.take()?);
        let session = <&Module>::try_from(&held.value)?.function("session")?.call(&[device])?;
        // SAFETY: the caller's promise.
        unsafe { put_value(out, || session) }
    })
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Failure {
        let status = match &error {
            SessionError::Busy => TW_BUSY,
            error if error.is_of_arguments() => TW_INVALID_ARGUMENT,
            _ => TW_FAILED,
        };
        Failure::new(status, error.to_string())
    }
}

/// Runs a session once: reads the inputs from the caller's memory and writes the outputs to it, in the model's order.
/// Element types and shapes must be the model's, and elements contiguous.
///
/// # Safety
/// `inputs` and `outputs` point to `input_count` and `output_count` valid tensors; no other thread writes the inputs,
/// and nobody else uses the outputs, until the call ends. An output does not overlap with another or with an input.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_session_run(
    session: tw_value,
    inputs: *const DLTensor,
    input_count: usize,
    outputs: *const DLTensor,
    output_count: usize,
) -> tw_status {
    guard(|| {
        let held = session.held()?;
        let module = <&Module>::try_from(&held.value)?;
        let wrong =
            || Failure::new(TW_INVALID_ARGUMENT, format!("it is a module of kind {}, no session", module.kind()));
        let session = module.downcast::<SessionModule>().ok_or_else(wrong)?;
        // SAFETY: the caller's promise.
        let (inputs, outputs) =
            unsafe { (array(inputs, input_count, "inputs")?, array(outputs, output_count, "outputs")?) };
        // SAFETY: the caller's promise.
        let views =
            |tensors: &[DLTensor]| tensors.iter().map(|t| unsafe { View::of(t) }).collect::<Result<Vec<_>, _>>();
        let (inputs, outputs) = (views(inputs)?, views(outputs)?);
        let inputs: Vec<TensorRef> = inputs
            .iter()
            .map(|view| TensorRef {
                dtype: view.dtype,
                shape: &view.shape,
                // SAFETY: the caller's promise.
                bytes: unsafe { std::slice::from_raw_parts(view.data, view.len) },
            })
            .collect();
        let mut outputs: Vec<TensorMut> = outputs
            .iter()
            .map(|view| TensorMut {
                dtype: view.dtype,
                shape: &view.shape,
                // SAFETY: the caller's promise.
                bytes: unsafe { std::slice::from_raw_parts_mut(view.data, view.len) },
            })
            .collect();
        session.run_into(&inputs, &mut outputs)?;
        Ok(())
    })
}
