//! Values whose number of rows is known only when the model has run: NonZero, NonMaxSuppression and their like.
//!
//! In the graph such a value has room for the most rows that there can be, and the number is a value of its own. What is
//! computed from it must keep the rows apart ([`rows`](crate::rows)); an output gets the number as a further output.

use crate::frontend::error::ImportError;
use crate::graph::{GraphBuilder, GraphError, ValueId};
use crate::rows::{self, Rows};
use std::collections::{BTreeSet, HashMap};
use tilewright_runtime::artifact::Counted;

/// What an import has found.
#[derive(Default)]
pub(super) struct CountedValues {
    /// Values with the dimension of their rows, and the number of these.
    made: Vec<(ValueId, usize, ValueId)>,
    /// Values whose sizes nodes of the file have read, with the nodes' names.
    measured: Vec<(String, ValueId)>,
}

impl CountedValues {
    /// Notes a value with rows.
    pub fn add(&mut self, value: ValueId, axis: usize, count: ValueId) {
        self.made.push((value, axis, count));
    }

    /// Notes that a node reads the sizes of a value.
    pub fn measure(&mut self, node: &str, value: ValueId) {
        self.measured.push((node.into(), value));
    }

    /// Makes the numbers of the outputs' rows outputs, too.
    ///
    /// # Errors
    /// [`ImportError::Malformed`] with the first node that needs all rows, or their number.
    pub fn count_outputs(&self, graph: &mut GraphBuilder, file: &str) -> Result<Vec<Counted>, ImportError> {
        if self.made.is_empty() {
            return Ok(Vec::new());
        }
        let refused = |reason: String| ImportError::malformed(file, reason);
        let broken = |source: GraphError| ImportError::Graph { file: file.into(), source: Box::new(source) };
        let (probe, places) = graph.clone().finish_numbered().map_err(broken)?;
        let mut all: HashMap<ValueId, (Rows, ValueId)> = HashMap::new();
        // Values with the same number have the same rows.
        let counts: BTreeSet<ValueId> = self.made.iter().map(|(_, _, count)| *count).collect();
        for count in counts {
            let own = self.made.iter().filter(|(_, _, other)| *other == count);
            let from: Vec<(ValueId, usize)> = own.map(|(value, axis, _)| (places.of(*value), *axis)).collect();
            let known = rows::of_values(&probe, &from).map_err(|mixed| {
                let why =
                    "the number of these rows is known only when the model has run, so that this is not supported";
                refused(format!("{mixed}; {why}"))
            })?;
            all.extend(known.into_iter().map(|(value, rows)| (value, (rows, count))));
        }
        if let Some((node, _)) = self.measured.iter().find(|(_, value)| all.contains_key(&places.of(*value))) {
            return Err(refused(format!(
                "node `{node}` reads the sizes of a value whose number of rows is known only when the model has run, which is not \
                 supported"
            )));
        }
        let mut counted = Vec::new();
        let mut numbers: Vec<(ValueId, usize)> = Vec::new();
        let outputs: Vec<(String, ValueId)> = probe.outputs().to_vec();
        for (output, (name, value)) in outputs.iter().enumerate() {
            let Some((Rows { axis, each }, number)) = all.get(value) else { continue };
            let known = numbers.iter().find(|(other, _)| other == number).map(|(_, place)| *place);
            let count = known.unwrap_or_else(|| {
                let place = outputs.len() + numbers.len();
                let names = std::iter::once(format!("{name}_count")).chain((2..).map(|k| format!("{name}_count{k}")));
                let free = names.into_iter().find(|name| outputs.iter().all(|(other, _)| other != name));
                graph.output(&free.unwrap_or_default(), *number);
                numbers.push((*number, place));
                place
            });
            counted.push(Counted { output, axis: *axis, each: *each, count });
        }
        Ok(counted)
    }
}
