//! Plans of a model's layers at another shape of its inputs.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use crate::codegen::accel::space::Decisions;

/// The plan of a layer at another shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elsewhere {
    /// Its decisions.
    pub decisions: Decisions,
    /// Its place among the alternatives of the layer there, which are ordered by their estimates.
    pub rank: Option<usize>,
}

/// The plans that the layers of a model got at the shape that was compiled first, by the layers' names. Further shapes
/// take them over where they fit, in place of timing plans anew. Threads can share it.
#[derive(Default)]
pub struct OtherShapes(Mutex<HashMap<String, Elsewhere>>);

impl OtherShapes {
    /// Whether no shape was compiled yet.
    pub fn is_empty(&self) -> bool {
        self.with(|plans| plans.is_empty())
    }

    /// The plan of a layer at the first shape.
    pub fn find(&self, layer: &str) -> Option<Elsewhere> {
        self.with(|plans| plans.get(layer).cloned())
    }

    /// Keeps the plans of layers, unless there are plans already.
    pub fn keep(&self, layers: impl IntoIterator<Item = (String, Elsewhere)>) {
        let layers: Vec<_> = layers.into_iter().collect();
        self.with(|plans| {
            if plans.is_empty() {
                plans.extend(layers);
            }
        });
    }

    /// A thread that panicked leaves the plans complete.
    fn with<R>(&self, use_them: impl FnOnce(&mut HashMap<String, Elsewhere>) -> R) -> R {
        use_them(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Without the plans: options with other plans are the same options.
impl fmt::Debug for OtherShapes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OtherShapes")
    }
}
