//! Constants derived from the graph's constants, such as packed weights. They are computed at compile time by code for
//! this machine.

use std::collections::HashMap;

use tilewright_compiler::backend::{BackendError, OwnConstant};
use tilewright_compiler::graph::{Graph, ValueId};
use tilewright_compiler::schedule::Part;
use tilewright_compiler::tir::{Buffer, Function};
use tilewright_runtime::buffer::AlignedBytes;
use tilewright_runtime::loader::{CpuModule, ImportTable};

use crate::LlvmBackend;
use crate::schedule::schedule;

/// The derived constants of a region being compiled.
#[derive(Debug, Default)]
pub struct Constants {
    /// Functions with their symbols. Equal functions are compiled once.
    functions: Vec<(String, Function)>,
    places: HashMap<String, usize>,
    /// For each constant, its function and the values that the function reads.
    list: Vec<(usize, Vec<ValueId>)>,
    known: HashMap<(usize, Vec<ValueId>), usize>,
}

impl Constants {
    /// Adds the constant that `part` computes, and returns its number. `values` are the inputs of the whole function.
    pub fn add(&mut self, part: Part, values: &[ValueId]) -> usize {
        let function = *self.places.entry(part.function.to_string()).or_insert_with(|| {
            self.functions.push((format!("tw_constant_{}", self.functions.len()), part.function));
            self.functions.len() - 1
        });
        let inputs: Vec<ValueId> = part.inputs.iter().map(|i| values[*i]).collect();
        *self.known.entry((function, inputs.clone())).or_insert_with(|| {
            self.list.push((function, inputs));
            self.list.len() - 1
        })
    }

    /// Computes all constants.
    ///
    /// # Errors
    /// [`BackendError::Codegen`].
    pub fn compute(self, graph: &Graph, backend: &LlvmBackend) -> Result<Vec<OwnConstant>, BackendError> {
        if self.list.is_empty() {
            return Ok(Vec::new());
        }
        let failed = |message: String| BackendError::Codegen { entry: "the packed weights".into(), message };
        let output = |f: usize| -> Buffer { self.functions[f].1.output_buffers()[0].clone() };
        let scheduled: Vec<(String, Function)> =
            self.functions.iter().map(|(symbol, f)| (symbol.clone(), schedule(f.clone(), None))).collect();
        // The model may be compiled for another processor.
        let own = if backend.processor().runs_here() { None } else { Some(backend.here()?) };
        let (object, workspaces) =
            own.as_ref().unwrap_or(backend).code(&scheduled).map_err(|(_, e)| failed(e.to_string()))?;
        let module = CpuModule::load(&object, &ImportTable::standard()).map_err(|e| failed(e.to_string()))?;
        let memory = |bytes: usize| {
            AlignedBytes::try_zeroed(bytes).ok_or_else(|| failed(format!("not enough memory for {bytes} bytes")))
        };
        let mut made = Vec::with_capacity(self.list.len());
        for (function, inputs) in &self.list {
            let buffer = output(*function);
            let mut data = Vec::new();
            for value in inputs {
                let bytes = graph.constant(*value).map(|tensor| tensor.to_bytes()).unwrap_or_default();
                let mut aligned = memory(bytes.len())?;
                aligned.copy_from_slice(&bytes);
                data.push(aligned);
            }
            data.push(memory(buffer.size_bytes())?);
            data.push(memory(workspaces[*function])?);
            let args: Vec<*mut u8> = data.iter_mut().map(|bytes| bytes.as_mut_ptr()).collect();
            let code =
                module.function(&self.functions[*function].0).ok_or_else(|| failed("a function is missing".into()))?;
            // SAFETY: there is one pointer per parameter and one to the workspace, each to memory of its size.
            if unsafe { code.call(&args) } != 0 {
                return Err(failed("a function failed".into()));
            }
            let bytes = data[inputs.len()].to_vec();
            let name = inputs.first().map_or("", |v| graph.value_name(*v));
            let shape = buffer.shape.iter().map(|&n| n as usize).collect();
            made.push(OwnConstant { name: format!("{name} {}", buffer.name), dtype: buffer.dtype, shape, bytes });
        }
        Ok(made)
    }
}
