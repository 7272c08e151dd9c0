//! Passes that a program adds between the compiler's own.

use std::sync::{Arc, PoisonError, RwLock};

use super::pipelines::{OptLevel, own_passes};
use super::{Pass, PassFailure, Patch, View};
use crate::graph::{Graph, NodeId};

/// A pass of the program, which any thread can run.
type Shared = Arc<dyn Pass + Send + Sync>;

/// Passes in the order in which they were added, each with the name of the pass after which it runs.
static ADDED: RwLock<Vec<(String, Shared)>> = RwLock::new(Vec::new());

/// Why a pass cannot be added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddError {
    /// No pass has the name of the one after which it should run.
    #[error("there is no pass {after} after which {pass} could run; there are {}", known.join(", "))]
    Unknown {
        /// The pass to add.
        pass: String,
        /// The name of the other.
        after: String,
        /// The names of all passes.
        known: Vec<String>,
    },
    /// A pass has this name already.
    #[error("there is already a pass {pass}; give the other another name, or remove it first")]
    Twice {
        /// The name.
        pass: String,
    },
}

/// Adds a pass to the pipelines of all models that this program compiles from now on. It runs after the last pass named
/// `after`, at the optimization levels that have such a pass.
///
/// # Errors
/// [`AddError`].
pub fn add(after: &str, pass: Shared) -> Result<(), AddError> {
    let mut added = ADDED.write().unwrap_or_else(PoisonError::into_inner);
    let mut known: Vec<String> = Vec::new();
    let own = own_passes(OptLevel::O3);
    for name in own.iter().map(|pass| pass.name()).chain(added.iter().map(|(_, pass)| pass.name())) {
        if !known.iter().any(|k| k == name) {
            known.push(name.to_string());
        }
    }
    let name = pass.name().to_string();
    if known.contains(&name) {
        return Err(AddError::Twice { pass: name });
    }
    if !known.iter().any(|k| k == after) {
        return Err(AddError::Unknown { pass: name, after: after.to_string(), known });
    }
    added.push((after.to_string(), pass));
    Ok(())
}

/// Removes the pass of this name that the program added; returns whether there was one.
pub fn remove(name: &str) -> bool {
    let mut added = ADDED.write().unwrap_or_else(PoisonError::into_inner);
    let before = added.len();
    added.retain(|(_, pass)| pass.name() != name);
    added.len() < before
}

/// Whether the program added any.
pub fn any() -> bool {
    !ADDED.read().unwrap_or_else(PoisonError::into_inner).is_empty()
}

/// A list of passes with those that the program added.
pub(super) fn with_added(mut list: Vec<Box<dyn Pass>>) -> Vec<Box<dyn Pass>> {
    for (after, pass) in ADDED.read().unwrap_or_else(PoisonError::into_inner).iter() {
        if let Some(place) = list.iter().rposition(|pass| pass.name() == after) {
            list.insert(place + 1, Box::new(Added(pass.clone())));
        }
    }
    list
}

struct Added(Shared);

impl Pass for Added {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn exact(&self) -> bool {
        self.0.exact()
    }

    fn notes(&self, graph: &Graph) -> Vec<(String, String)> {
        self.0.notes(graph)
    }

    fn rewrite_graph(&self, graph: &Graph) -> Result<Option<Graph>, PassFailure> {
        self.0.rewrite_graph(graph)
    }

    fn rewrite(&self, view: &View, at: NodeId) -> Option<Patch> {
        self.0.rewrite(view, at)
    }
}

#[cfg(test)]
mod tests;
