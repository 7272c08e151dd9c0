//! Loads CPU object code from memory: relocatable ELF for x86-64, aarch64, armv7 or riscv64 (`machine`), bound only to a
//! fixed table of imports.
//!
//! No linker, compiler or file is needed. Code is mapped writable, relocated, and only then made executable and
//! read-only; no page is ever both. An object that needs something that the loader does not support (thread-local
//! storage, common symbols, indirect functions, constructors) is rejected by name. The loader cannot check code itself:
//! verify a checksum before you load code from elsewhere, and never load object code of unknown origin.
//!
//! Unwind tables are not registered, so loaded code must not be unwound through.

mod imports;
mod layout;
mod machine;
mod memory;
mod relocate;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::marker::PhantomData;

use thiserror::Error;

pub use imports::{HELPERS_OF_ARM32, ImportTable};
pub use layout::{Needs, needs};
use machine::Machine;

/// Why object code could not be loaded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LoadError {
    /// The bytes are not a relocatable ELF object for this processor.
    #[error("object code is damaged or of the wrong kind: {0}; compile the model again")]
    Format(String),
    /// The object uses something that the loader does not support.
    #[error("object code uses {what} ({name}), which the loader does not support; compile it without")]
    Unsupported {
        /// The feature.
        what: &'static str,
        /// Section or symbol.
        name: String,
    },
    /// A name that is neither defined nor imported.
    #[error("object code calls `{0}`, which is not among the imports that the runtime provides")]
    Unresolved(String),
    /// A relocation whose target is out of reach, or that is outside its section.
    #[error("object code has a relocation of type {kind} at {section}+{offset:#x} that cannot be applied: {reason}")]
    Relocation {
        /// Section.
        section: String,
        /// Offset in the section.
        offset: u64,
        /// ELF's number of the type.
        kind: u32,
        /// Why not.
        reason: String,
    },
    /// The system provided no memory, or rejected its protection.
    #[error("cannot map {bytes} bytes for object code: {reason}")]
    Memory {
        /// Size of the image.
        bytes: usize,
        /// The system's message.
        reason: String,
    },
    /// This machine cannot run the code.
    #[error(
        "object code can be loaded only on x86-64, aarch64, armv7 and riscv64 with Unix, which this machine is not; for \
         WebAssembly, compile the model with --emit wasm"
    )]
    Host,
}

/// Code that can be called as long as this lives: a loaded object, or functions that are in the program already.
#[derive(Debug)]
pub struct CpuModule {
    /// Keeps a loaded object mapped.
    _image: Option<memory::Image>,
    /// Addresses.
    functions: HashMap<String, usize>,
}

impl CpuModule {
    /// Loads a relocatable object.
    ///
    /// # Errors
    /// [`LoadError`]; nothing stays mapped then.
    pub fn load(bytes: &[u8], imports: &ImportTable) -> Result<CpuModule, LoadError> {
        let machine = Machine::here().ok_or(LoadError::Host)?;
        let plan = layout::plan(bytes, machine)?;
        let mut image = memory::Image::new(plan.size)?;
        let base = image.base();
        relocate::fill(&plan, image.bytes_mut(), base, imports)?;
        image.protect(plan.code_end, plan.constants_end)?;
        image.begin(plan.code_end);
        let functions = plan.functions.into_iter().map(|(name, offset)| (name, base as usize + offset)).collect();
        Ok(CpuModule { _image: Some(image), functions })
    }

    /// Functions that are in the program, by their addresses; in WebAssembly, by their indices in its table.
    ///
    /// # Safety
    /// Each is a function `extern "C" fn(args: *const *mut u8) -> i32`, and stays.
    pub unsafe fn linked(functions: HashMap<String, usize>) -> CpuModule {
        CpuModule { _image: None, functions }
    }

    /// The names of its functions, sorted.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.functions.keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }

    /// The function of that name.
    pub fn function(&self, name: &str) -> Option<CpuFunction<'_>> {
        self.functions.get(name).map(|&address| CpuFunction { address, module: PhantomData })
    }
}

/// A function of a module.
#[derive(Debug, Clone, Copy)]
pub struct CpuFunction<'a> {
    address: usize,
    module: PhantomData<&'a CpuModule>,
}

impl CpuFunction<'_> {
    /// Calls it as an `extern "C" fn(args: *const *mut u8) -> i32` and returns its result.
    ///
    /// # Safety
    /// The object code comes from a trusted code generator, the function has this signature, and `args` are as many
    /// valid, sufficiently large and aligned pointers as it takes; memory that it writes overlaps no other argument.
    pub unsafe fn call(&self, args: &[*mut u8]) -> i32 {
        // SAFETY: the address is that of a function of the module, which is borrowed; the rest is the caller's promise.
        unsafe { memory::call(self.address, args) }
    }
}
