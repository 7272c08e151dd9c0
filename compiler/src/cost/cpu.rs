//! A cost model of the host's processor. Products run at the rate for their type; all other work is counted in scalar
//! operations of the operators' tensor expressions. If the memory traffic takes longer, it determines the time.

use super::macs;
use crate::graph::{DType, Graph, NodeId, Op};
use crate::te::{BinOp, Combiner, Definition, Expr, Func, ops};
use tilewright_hw::config::HostSection;

/// Nests with fewer innermost iterations run on one thread.
pub const PARALLEL_WORK: i64 = 1 << 17;

/// Returns the microseconds for some nodes, computed by one function, or `None` if a size is symbolic.
pub(super) fn us(graph: &Graph, nodes: &[NodeId], host: &HostSection) -> Option<f64> {
    let mut cycles = 0.0;
    for &id in nodes {
        let node = graph.node(id);
        let macs = macs(graph, id);
        let (operations, iterations) = operations(graph, id, macs > 0)?;
        let int8 = node.inputs.first().is_some_and(|v| graph.ty(*v).dtype != DType::F32);
        let rate = if int8 { host.int8_macs_per_cycle } else { host.f32_macs_per_cycle };
        let cores = if iterations.max(macs) >= PARALLEL_WORK as u64 { f64::from(host.cores) } else { 1.0 };
        cycles += (macs as f64 / rate + operations as f64 / host.ops_per_cycle) / cores;
    }
    let memory = bytes(graph, nodes)? as f64 / host.bytes_per_cycle;
    Some(cycles.max(memory) / host.cpu_clock_mhz + host.call_us)
}

/// Returns the bytes of the values that the nodes read and write, without values that only they use.
fn bytes(graph: &Graph, nodes: &[NodeId]) -> Option<u64> {
    let users = graph.users();
    let inside = |v| graph.def_node(v).is_some_and(|(id, _)| nodes.contains(&id));
    let mut values = Vec::new();
    for &id in nodes {
        let node = graph.node(id);
        values.extend(node.inputs.iter().copied().filter(|v| !inside(*v)));
        let leaves = |v: &_| graph.is_output(*v) || users[v.0].iter().any(|user| !nodes.contains(user));
        values.extend(node.outputs.iter().copied().filter(leaves));
    }
    values.sort_unstable();
    values.dedup();
    values.into_iter().map(|v| value_bytes(graph, v)).sum()
}

/// Returns the size of a value in its dense form, in bytes.
fn value_bytes(graph: &Graph, v: crate::graph::ValueId) -> Option<u64> {
    let ty = graph.ty(v);
    Some(ty.element_count()? as u64 * ty.dtype.size_bytes() as u64)
}

/// Returns the number of scalar operations of a node, and the innermost iterations of its largest nest. Sums of a
/// product are left out, because they count as multiply-accumulates.
fn operations(graph: &Graph, id: NodeId, product: bool) -> Option<(u64, u64)> {
    let node = graph.node(id);
    if matches!(node.op, Op::Constant(_)) {
        return Some((0, 0));
    }
    let region = ops::program(graph, "work", &[id], &node.outputs).ok()?;
    let (mut total, mut most) = (0u64, 0u64);
    for tensor in &region.program.tensors {
        let elements: i64 = tensor.shape().iter().product();
        let (iterations, each) = match &tensor.definition {
            Definition::Input => continue,
            Definition::Reduce { combiner: Combiner::Sum, .. } if product => continue,
            Definition::Compute(e) => (elements, count(e)),
            Definition::Reduce { axes, value, .. } => {
                (elements.saturating_mul(axes.iter().map(|a| a.extent).product()), count(value) + 1)
            }
        };
        let iterations = iterations.max(0) as u64;
        total = total.saturating_add(iterations.saturating_mul(each + 1));
        most = most.max(iterations);
    }
    Some((total, most))
}

/// Returns the number of operations in an expression, including loads. Indices do not count, because loops increment
/// them.
fn count(e: &Expr) -> u64 {
    match e {
        Expr::Int(..) | Expr::Float(..) | Expr::Var(_) => 0,
        Expr::Load { .. } => 1,
        Expr::Binary(op, a, b) => count(a) + count(b) + if matches!(op, BinOp::Div | BinOp::Mod) { 10 } else { 1 },
        Expr::Select(c, a, b) => count(c) + count(a).max(count(b)) + 1,
        Expr::Cast(_, a) | Expr::Bitcast(_, a) | Expr::Pick(_, a) => count(a) + 1,
        Expr::Call(f, args) => args.iter().map(count).sum::<u64>() + weight(*f),
    }
}

/// Returns the number of operations that a function takes.
fn weight(f: Func) -> u64 {
    match f {
        Func::Exp | Func::Log | Func::Sin | Func::Cos | Func::Tanh | Func::Erf | Func::Pow => 20,
        Func::Sqrt => 10,
        Func::Floor | Func::Ceil | Func::RoundEven | Func::RoundAway | Func::Abs => 2,
        // A 64-bit product, rounding and two shifts. The functions below do parts of this.
        Func::ScaleDouble | Func::ScaleSingle => 8,
        Func::OffsetClamp => 3,
        Func::DoublingHighMul => 4,
        Func::RoundingShift => 4,
    }
}
