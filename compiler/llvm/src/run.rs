//! Runs one loop program on this machine.

use tilewright_compiler::te::Array;
use tilewright_compiler::tir::Function;
use tilewright_runtime::loader::{CpuModule, ImportTable, LoadError};

use crate::{EmitError, Processor, compile_functions};

/// Symbol of the function in its object.
const SYMBOL: &str = "f";

/// Fill of memory before the first run, so that reads of unwritten memory show.
const FILL: u64 = 0xa5a5_a5a5_a5a5_a5a5;

/// Alignment of the workspace, in bytes.
const ALIGN: usize = 64;

/// Why a loop program does not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// No code was generated.
    #[error(transparent)]
    Emit(#[from] EmitError),
    /// The object could not be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The inputs do not fit the parameters.
    #[error("function {function}: input {index} must have {expected} bytes, got {found}")]
    Input {
        /// The function.
        function: String,
        /// Position of the input, from 0.
        index: usize,
        /// Bytes of the parameter.
        expected: usize,
        /// Bytes of the input.
        found: usize,
    },
}

/// A loop program as object code, with memory for its data.
#[derive(Debug)]
pub struct Runner {
    module: CpuModule,
    function: Function,
    /// Memory of each parameter, and of the workspace. In words, so that any element is aligned.
    memory: Vec<Vec<u64>>,
}

impl Runner {
    /// Compiles a verified loop program for a processor that this machine can run, and loads it.
    ///
    /// # Errors
    /// The program uses something that CPU code does not support, or the object cannot be loaded.
    pub fn new(processor: &Processor, function: &Function) -> Result<Runner, RunError> {
        let (object, workspaces) =
            compile_functions(processor, &[(SYMBOL.into(), function.clone())]).map_err(|(_, e)| e)?;
        let module = CpuModule::load(&object, &ImportTable::standard())?;
        let words = |bytes: usize| vec![FILL; bytes.div_ceil(8) + ALIGN / 8 + 8];
        let mut memory: Vec<Vec<u64>> = function.params.iter().map(|b| words(b.size_bytes())).collect();
        memory.push(words(workspaces[0]));
        Ok(Runner { module, function: function.clone(), memory })
    }

    /// Copies the inputs into the memory of their parameters.
    ///
    /// # Errors
    /// [`RunError::Input`] if an input has another size than its parameter, or is missing.
    pub fn set_inputs(&mut self, inputs: &[Array]) -> Result<(), RunError> {
        for (index, (param, memory)) in self.function.inputs().iter().zip(&mut self.memory).enumerate() {
            let bytes = inputs.get(index).map_or(&[][..], |a| a.bytes.as_slice());
            if bytes.len() != param.size_bytes() {
                let (function, expected) = (self.function.name.to_string(), param.size_bytes());
                return Err(RunError::Input { function, index, expected, found: bytes.len() });
            }
            for (word, chunk) in memory.iter_mut().zip(bytes.chunks(8)) {
                let mut whole = [0; 8];
                whole[..chunk.len()].copy_from_slice(chunk);
                *word = u64::from_le_bytes(whole);
            }
        }
        Ok(())
    }

    /// Runs the program once on the inputs.
    ///
    /// # Safety
    /// No access of the program leaves its buffer. The evaluator ([`tilewright_compiler::tir::run`]) finds those that do.
    pub unsafe fn run(&mut self) {
        let mut args: Vec<*mut u8> = self.memory.iter_mut().map(|m| m.as_mut_ptr().cast()).collect();
        if let Some(workspace) = args.last_mut() {
            let ahead = workspace.align_offset(ALIGN);
            *workspace = workspace.wrapping_add(ahead);
        }
        if let Some(f) = self.module.function(SYMBOL) {
            // SAFETY: there is one pointer per parameter and one to the workspace, each to memory of at least its size
            // that nothing else uses, and the caller promises that no access leaves it.
            unsafe { f.call(&args) };
        }
    }

    /// Returns the outputs of the last run.
    pub fn outputs(&self) -> Vec<Array> {
        let inputs = self.function.inputs().len();
        let outputs = self.function.output_buffers().iter().zip(&self.memory[inputs..]);
        outputs
            .map(|(b, m)| {
                let bytes = m.iter().flat_map(|w| w.to_le_bytes()).take(b.size_bytes()).collect();
                Array { dtype: b.dtype, shape: b.shape.clone(), bytes }
            })
            .collect()
    }
}
