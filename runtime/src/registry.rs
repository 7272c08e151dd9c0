//! Functions by name: what packed steps call, and what opens devices.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use crate::builtin;
use crate::function::Function;

/// Functions by name. A later function replaces an earlier one of the same name. Copies refer to the same registry.
#[derive(Clone, Default)]
pub struct Registry {
    functions: Arc<RwLock<HashMap<String, Function>>>,
}

impl Registry {
    /// An empty registry.
    pub fn new() -> Registry {
        Registry::default()
    }

    /// The process's registry, which C and Python use.
    pub fn global() -> &'static Registry {
        static GLOBAL: LazyLock<Registry> = LazyLock::new(Registry::new);
        &GLOBAL
    }

    /// Adds a function under its name.
    pub fn add(&self, function: Function) {
        let mut functions = self.functions.write().unwrap_or_else(PoisonError::into_inner);
        let replaced = functions.insert(function.name().to_string(), function);
        // Dropping a function can call back, and the callback can use the registry.
        drop(functions);
        drop(replaced);
    }

    /// Removes a function; sessions that were opened before still call it. Returns whether there was one.
    pub fn remove(&self, name: &str) -> bool {
        let mut functions = self.functions.write().unwrap_or_else(PoisonError::into_inner);
        let removed = functions.remove(name);
        drop(functions);
        removed.is_some()
    }

    /// The function of that name: one that was added, or one that every registry has ([`builtin`]).
    pub fn get(&self, name: &str) -> Option<Function> {
        let added = self.functions.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        added.or_else(|| builtin::get(name))
    }

    /// The names, sorted.
    pub fn names(&self) -> Vec<String> {
        let functions = self.functions.read().unwrap_or_else(PoisonError::into_inner);
        let mut names: Vec<String> = functions.keys().cloned().collect();
        names.sort_unstable();
        names
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Registry").field(&self.names()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};
    use std::time::Duration;

    use super::*;
    use crate::value::Value;

    /// Tells what the registry has when it is dropped.
    struct Looks(Registry, Sender<Vec<String>>);

    impl Drop for Looks {
        fn drop(&mut self) {
            self.1.send(self.0.names()).expect("the test waits");
        }
    }

    #[test]
    fn a_function_that_is_dropped_can_use_the_registry() {
        let (send, seen) = channel();
        std::thread::spawn(move || {
            let registry = Registry::new();
            let function = || {
                let looks = Looks(registry.clone(), send.clone());
                Function::new("f", move |_| Ok(Value::Integer(looks.0.names().len() as i64)))
            };
            registry.add(function());
            registry.add(function());
            assert!(registry.remove("f"));
            assert!(!registry.remove("f"));
        });
        let next = || seen.recv_timeout(Duration::from_secs(10)).expect("the drop ends");
        assert_eq!(next(), ["f"]);
        assert!(next().is_empty());
    }
}
