//! Loads CPU object code from memory: relocatable ELF for x86-64, aarch64, armv7 or riscv64 (`machine`), bound only to a
//! fixed table of imports.
//!
//! No linker, compiler or file is needed. Code is mapped writable, relocated, and only then made executable and
//! read-only; no page is ever both. An object that needs something that the loader does not support (thread-local
//! storage, common symbols, indirect functions, constructors) is rejected by name. The loader cannot check code itself:
//! verify a checksum before you load code from elsewhere, and never load object code of unknown origin.
//!
//! Unwind tables are not registered, so loaded code must not be unwound through.

mod error;
mod imports;
mod layout;
mod machine;
mod memory;
mod relocate;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::marker::PhantomData;

pub use error::LoadError;
pub use imports::{HELPERS_OF_ARM32, ImportTable};
pub use layout::{Needs, needs};
use machine::Machine;

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
