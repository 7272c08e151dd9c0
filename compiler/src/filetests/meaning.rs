//! Checks that a program means the same before and after, so that no wrong result becomes a file's output.

use crate::graph::{self, Graph, NodeId, Tensor};
use crate::schedule::{Schedule, Step};
use crate::suite::{Numbers, difference};
use crate::te::{Array, ops::RegionProgram};
use crate::tir::{self, Function};

/// Largest relative difference of floats whose operations have another order.
const ROUNDING: f64 = 1e-5;

/// Data for a graph's inputs, none if sizes are symbolic.
pub fn data(g: &Graph) -> Option<Vec<Tensor>> {
    let mut numbers = Numbers::new(7);
    let known = g.inputs().all(|(_, v)| g.ty(v).shape().is_some());
    known.then(|| g.inputs().map(|(_, v)| numbers.tensor(g.ty(v))).collect())
}

/// Checks that a graph's text leads to the same graph.
pub fn reads_back(g: &Graph) -> Result<(), String> {
    let (text, blobs) = graph::text::print_with_blobs(g);
    let same = graph::text::parse(&text, &blobs).as_ref() == Ok(g);
    if same { Ok(()) } else { Err(format!("the text does not read back to the same graph:\n{g}")) }
}

/// Checks that a function's text leads to the same function.
pub fn function_reads_back(f: &Function) -> Result<(), String> {
    let same = tir::parse(&f.to_string()).as_ref() == Ok(f);
    if same { Ok(()) } else { Err(format!("the text does not read back to the same function:\n{f}")) }
}

/// Compares the results of two graphs: floats within rounding, integers exactly, or within one step if they stand for
/// results that were floats before.
pub fn same_results(before: &Graph, after: &Graph, exact: bool) -> Result<(), String> {
    reads_back(after)?;
    let Some(inputs) = data(before) else { return Ok(()) };
    let results = |g: &Graph| graph::eval(g, &inputs).map_err(|e| e.to_string());
    for ((want, got), (name, _)) in results(before)?.iter().zip(&results(after)?).zip(before.outputs()) {
        let float = want.dtype() == graph::DType::F32;
        let most = if float { ROUNDING } else { f64::from(u8::from(!exact)) };
        let apart = difference(got, want);
        if apart > most {
            return Err(format!("output {name} differs by {apart} after the passes:\n{after}"));
        }
    }
    Ok(())
}

/// Compares a scheduled function with the one that its schedule began with; the trace and the text must lead to it too.
pub fn same_function(plain: &Function, s: &Schedule) -> Result<(), String> {
    let f = s.function();
    let args = tilewright_tensor::testing::inputs(plain);
    let run = |f: &Function| tir::run(f, &args).map_err(|e| format!("{e}\n{f}"));
    if run(plain)? != run(f)? {
        return Err(format!("the scheduled function has another result:\n{f}"));
    }
    function_reads_back(f)?;
    let text = serde_json::to_string(s.trace()).map_err(|e| e.to_string())?;
    let steps: Vec<Step> = serde_json::from_str(&text).map_err(|e| e.to_string())?;
    let mut again = Schedule::new(plain.clone());
    again.replay(&steps).map_err(|e| e.to_string())?;
    if again.function() != f {
        return Err(format!("the trace leads to another function:\n{}", again.function()));
    }
    Ok(())
}

/// Compares a lowered tensor expression with the graph's reference.
pub fn same_expression(g: &Graph, nodes: &[NodeId], region: &RegionProgram, f: &Function) -> Result<(), String> {
    let inputs = data(g).ok_or("its sizes are symbolic")?;
    let values = graph::eval_all(g, &inputs).map_err(|e| e.to_string())?;
    let array = |t: &Tensor| Array {
        dtype: t.dtype(),
        shape: t.shape().iter().map(|&n| n as i64).collect(),
        bytes: t.to_bytes(),
    };
    let args: Vec<Array> = region.inputs.iter().map(|v| array(&values[v.0])).collect();
    let got = tir::run(f, &args).map_err(|e| e.to_string())?;
    for (a, v) in got.iter().zip(&region.outputs) {
        let want = &values[v.0];
        let got = Tensor::from_bytes(a.dtype, want.shape(), &a.bytes).ok_or("the result has another size")?;
        let apart = difference(&got, want);
        if apart > if want.dtype() == graph::DType::F32 { ROUNDING } else { 0.0 } {
            let name = nodes.first().map_or("", |n| &g.node(*n).name);
            return Err(format!("{name} differs by {apart} from the graph's evaluation:\n{f}"));
        }
    }
    Ok(())
}
