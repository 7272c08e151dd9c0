//! Checks the stages that a back end lists.

use crate::backend::{Backend, Listing};
use crate::graph::{Graph, NodeId};
use crate::schedule::{Schedule, text};
use crate::{te, tir};

/// Checks that the stages of every function of a graph parse back from their texts, and that the steps lead from the
/// expression to the loops. Returns the number of functions.
///
/// # Errors
/// The first function that fails, and why.
pub fn check_listings(backend: &dyn Backend, graph: &Graph) -> Result<usize, String> {
    let nodes: Vec<NodeId> = graph.nodes().map(|(id, _)| id).collect();
    let listings = backend.listings(graph, &nodes, &[]).map_err(|e| e.to_string())?;
    for listing in &listings {
        let last = listing.nodes.last().map_or("", |node| &graph.node(*node).name);
        check(listing).map_err(|e| format!("{last}: {e}"))?;
    }
    Ok(listings.len())
}

fn check(listing: &Listing) -> Result<(), String> {
    // Texts are compared, because a NaN does not equal itself.
    let expression = listing.program.to_string();
    let program = te::text::parse(&expression).map_err(|e| format!("{e}\n{expression}"))?;
    let loops = listing.function.to_string();
    let function = tir::parse(&loops).map_err(|e| format!("{e}\n{loops}"))?;
    if program.to_string() != expression || function.to_string() != loops {
        return Err("a text parses to something else".into());
    }
    let plain = tir::lower(&program).map_err(|e| e.to_string())?;
    let mut schedule = Schedule::with_intrinsics(plain, &function.intrinsics);
    for step in &listing.steps {
        let step = text::parse(&step.to_string())?;
        schedule.apply(step).map_err(|e| e.to_string())?;
    }
    let replayed = schedule.into_function().to_string();
    if replayed != loops { Err(format!("the steps lead to\n{replayed}\ninstead of\n{loops}")) } else { Ok(()) }
}
