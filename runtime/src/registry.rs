//! Packed functions: the host functions that a step can call, all with one signature and found by name.

use std::collections::HashMap;
use std::sync::Arc;

/// A packed function: it reads the bytes of each input and writes the bytes of each output.
pub type PackedFn = dyn Fn(&[&[u8]], &mut [&mut [u8]]) -> Result<(), String> + Send + Sync;

/// Functions by name. A later function replaces an earlier one of the same name.
#[derive(Clone, Default)]
pub struct Registry {
    functions: HashMap<String, Arc<PackedFn>>,
}

impl Registry {
    /// An empty registry.
    pub fn new() -> Registry {
        Registry::default()
    }

    /// Adds a function.
    pub fn add(
        &mut self,
        name: impl Into<String>,
        function: impl Fn(&[&[u8]], &mut [&mut [u8]]) -> Result<(), String> + Send + Sync + 'static,
    ) {
        self.functions.insert(name.into(), Arc::new(function));
    }

    /// The function of that name.
    pub fn get(&self, name: &str) -> Option<Arc<PackedFn>> {
        self.functions.get(name).cloned()
    }

    /// The names, sorted.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.functions.keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Registry").field(&self.names()).finish()
    }
}
