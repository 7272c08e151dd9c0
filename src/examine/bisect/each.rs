//! Judges patches one by one, each with the operand values from before all of them.
//!
//! A patch's new nodes compute from the values of the graph before the stretch. The result that replaces a value is
//! compared with that value. After that, the original value is used in its place, so a rounding step of one patch does
//! not reach the others.

use std::sync::Arc;

use tilewright_compiler::graph::{Graph, GraphError, Op, Tensor, ValueId, eval_all};
use tilewright_compiler::passes::{Change, Options, Pass, run};
use tilewright_runtime::tensor;

use super::error::BisectError;
use crate::examine::diff::{Difference, Tolerance, compare};

/// Steps that an operator's integers can differ from its floats.
pub const STEPS: u64 = 1;

/// One of this many elements can differ by such a step; two always can.
const ONE_OF: usize = 1000;

/// A patch with wrong results.
pub(super) struct WrongPatch {
    pub number: usize,
    pub run: usize,
    pub value: String,
    pub difference: Difference,
}

/// Values of a graph in each run, by [`ValueId`]; values that no comparison needs are absent.
type Values = Vec<Vec<Option<Arc<Tensor>>>>;

/// Finds the first of the patches after number `start`, up to `end`, with wrong results. `base` is the graph after
/// patch `start`.
pub(super) fn first(
    base: &Graph,
    graph: &Graph,
    passes: &[Box<dyn Pass>],
    runs: &[Vec<Tensor>],
    [start, end]: [usize; 2],
    allowed: &Tolerance,
) -> Result<Option<WrongPatch>, BisectError> {
    let of_run = |inputs: &Vec<Tensor>| {
        let values = eval_all(base, inputs).map_err(|e| failed(start, e))?;
        Ok(values.into_iter().map(Some).collect())
    };
    let mut values: Values = runs.iter().map(of_run).collect::<Result<_, BisectError>>()?;
    let mut found = Ok(None);
    let mut watch = |change: Change| {
        if change.number > start && matches!(found, Ok(None)) {
            found = step(&mut values, &change, allowed);
        }
    };
    run(graph.clone(), passes, Options { stop_after: Some(end), watch: Some(&mut watch), ..Options::default() })?;
    found
}

fn failed(patches: usize, source: GraphError) -> BisectError {
    BisectError::Eval { patches, source: Box::new(source) }
}

/// Replaces the values before a patch by those after it, and returns the patch if its results are wrong.
fn step(values: &mut Values, change: &Change, allowed: &Tolerance) -> Result<Option<WrongPatch>, BisectError> {
    let mut found = None;
    for (run, before) in values.iter_mut().enumerate() {
        let mut after: Vec<Option<Arc<Tensor>>> = vec![None; change.after.value_count()];
        for (v, place) in change.places.iter().enumerate() {
            if let Some(place) = place.filter(|_| !change.replaced.contains(&ValueId(v))) {
                after[place.0].clone_from(&before[v]);
            }
        }
        let old: Vec<bool> = after.iter().map(Option::is_some).collect();
        for (_, node) in change.after.nodes() {
            if node.outputs.iter().all(|v| after[v.0].is_some()) {
                continue;
            }
            if let Op::Constant(c) = &node.op {
                after[node.output().0] = Some(c.value.clone());
                continue;
            }
            let operands: Option<Vec<&Tensor>> = node.inputs.iter().map(|v| after[v.0].as_deref()).collect();
            let Some(operands) = operands else { continue };
            let error = |source| GraphError::Op { node: node.name.clone(), op: node.op.name(), source };
            let results = node.op.eval(&operands).map_err(|source| failed(change.number, error(source)))?;
            for (v, result) in node.outputs.iter().zip(results) {
                after[v.0] = Some(Arc::new(result));
            }
        }
        for &v in change.replaced {
            let Some(place) = change.places[v.0] else { continue };
            if let (Some(was), Some(is), None) = (&before[v.0], &after[place.0], &found) {
                let [was, is] = [was, is].map(|t| tensor::Tensor::from(t.as_ref()));
                found = difference(&was, &is, allowed).map(|difference| {
                    let value = change.before.value_name(v).to_string();
                    WrongPatch { number: change.number, run, value, difference }
                });
            }
            // A value that already existed keeps its own contents.
            if !old[place.0] {
                after[place.0].clone_from(&before[v.0]);
            }
        }
        *before = after;
    }
    Ok(found)
}

/// The difference of results beyond what is allowed: by more than a step, or by steps in too many elements.
fn difference(was: &tensor::Tensor, is: &tensor::Tensor, allowed: &Tolerance) -> Option<Difference> {
    compare(was, is, allowed).or_else(|| {
        let none = Tolerance { steps: 0, ..*allowed };
        compare(was, is, &none).filter(|d| d.differing > (d.elements / ONE_OF).max(2))
    })
}
