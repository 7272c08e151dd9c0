//! Modules: named groups of functions. An artifact is one, and so are each of its sessions and each device.

mod artifact;
mod described;
mod device;
mod session;

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::function::{AnyError, CallError, Function};

pub use artifact::ArtifactModule;
pub use device::{DeviceModule, open_device};
pub use session::SessionModule;

/// What the type behind a module provides.
pub trait Functions: Any + Send + Sync {
    /// What it is, in one word, for example `artifact`.
    fn kind(&self) -> &'static str;

    /// Its name in messages.
    fn name(&self) -> String;

    /// The names of its functions.
    fn names(&self) -> Vec<String>;

    /// Makes the function of that name, or `None` if there is none. The module keeps it for later calls.
    ///
    /// # Errors
    /// Why the function cannot be made, for example that its code cannot be loaded.
    fn find(self: Arc<Self>, name: &str) -> Result<Option<Function>, AnyError>;
}

/// A named group of functions, which are made when they are first looked up. Copies refer to the same module.
#[derive(Clone)]
pub struct Module {
    functions: Arc<dyn Functions>,
    /// Functions that were looked up.
    found: Arc<Mutex<HashMap<String, Function>>>,
}

impl Module {
    /// A module of these functions.
    pub fn new(functions: impl Functions) -> Module {
        Module { functions: Arc::new(functions), found: Arc::default() }
    }

    /// What it is, in one word, for example `artifact`.
    pub fn kind(&self) -> &'static str {
        self.functions.kind()
    }

    /// Its name in messages.
    pub fn name(&self) -> String {
        self.functions.name()
    }

    /// The names of its functions, sorted.
    pub fn names(&self) -> Vec<String> {
        let mut names = self.functions.names();
        names.sort_unstable();
        names
    }

    /// The function of that name.
    ///
    /// # Errors
    /// [`CallError::Unknown`], or [`CallError::Failed`] if it cannot be made.
    pub fn function(&self, name: &str) -> Result<Function, CallError> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(function) = found.get(name) {
            return Ok(function.clone());
        }
        let made = self.functions.clone().find(name).map_err(|error| CallError::of(name, error))?;
        let unknown = || CallError::Unknown { of: self.name(), name: name.to_string(), known: self.names() };
        let function = made.ok_or_else(unknown)?;
        found.insert(name.to_string(), function.clone());
        Ok(function)
    }

    /// The object behind it, if it is of type `T`.
    pub fn downcast<T: Functions>(&self) -> Option<&T> {
        let any: &dyn Any = self.functions.as_ref();
        any.downcast_ref()
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Module({} {})", self.kind(), self.name())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    struct Counting(AtomicUsize);

    impl Functions for Counting {
        fn kind(&self) -> &'static str {
            "counting"
        }

        fn name(&self) -> String {
            "a count".into()
        }

        fn names(&self) -> Vec<String> {
            vec!["made".into(), "broken".into()]
        }

        fn find(self: Arc<Self>, name: &str) -> Result<Option<Function>, AnyError> {
            let made = self.0.fetch_add(1, Ordering::Relaxed) as i64;
            match name {
                "made" => Ok(Some(Function::new(name, move |_| Ok(made.into())))),
                "broken" => Err("it is broken".into()),
                _ => Ok(None),
            }
        }
    }

    #[test]
    fn functions_are_made_once_when_they_are_looked_up() {
        let module = Module::new(Counting(AtomicUsize::new(7)));
        let copy = module.clone();
        for module in [&module, &copy, &module] {
            assert_eq!(module.function("made").unwrap().call(&[]).unwrap().to_string(), "7");
        }
        assert_eq!(module.downcast::<Counting>().unwrap().0.load(Ordering::Relaxed), 8);
        assert_eq!(module.function("broken").unwrap_err().to_string(), "broken: it is broken");
        let unknown = module.function("other").unwrap_err().to_string();
        assert_eq!(unknown, "no function of a count is named other; there are: broken, made");
    }
}
