//! Normalizations.

use crate::frontend::onnx::node::NodeContext;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::norm::{self, Affine, LocalResponse};

fn epsilon(n: &NodeContext) -> f32 {
    n.float("epsilon").unwrap_or(1e-5)
}

/// Operands 1 and 2: a factor and, where there is one, a term.
fn affine(n: &mut NodeContext) -> Result<Affine, Reason> {
    let scale = n.plain(1)?;
    let bias = n.optional(2)?;
    Ok(Affine { scale, bias })
}

pub(super) fn batch(n: &mut NodeContext) -> Result<(), Reason> {
    n.only("training_mode", 0)?;
    let data = n.plain(0)?;
    // With only batch and channels, no dimension could have statistics of its own.
    if n.ty(data).rank() == 2 {
        n.without_effect("spatial");
    } else {
        n.only("spatial", 1)?;
    }
    let parameters = [n.plain(1)?, n.plain(2)?, n.plain(3)?, n.plain(4)?];
    let epsilon = epsilon(n);
    let v = norm::batch(n, data, parameters, epsilon)?;
    // Training statistics are not computed, but files name them.
    let names = n.proto.output.iter().skip(1).filter(|s| !s.is_empty()).count();
    if names > 0 && n.opset() >= 14 {
        return n.output(v);
    }
    n.outputs_first(v)
}

pub(super) fn layer(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let axis = n.axis_attribute(-1, n.ty(data).rank())?;
    let (by, epsilon) = (affine(n)?, epsilon(n));
    let outputs = norm::layer(n, data, axis, by, epsilon)?;
    n.outputs(&outputs)
}

pub(super) fn rms(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let axis = n.axis_attribute(-1, n.ty(data).rank())?;
    let (scale, epsilon) = (n.plain(1)?, epsilon(n));
    let v = norm::rms(n, data, axis, scale, epsilon)?;
    n.output(v)
}

pub(super) fn instance(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let by = Affine { scale: n.plain(1)?, bias: Some(n.plain(2)?) };
    let epsilon = epsilon(n);
    let v = norm::instance(n, data, by, epsilon)?;
    n.output(v)
}

pub(super) fn group(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let groups = n.int("num_groups").and_then(|g| usize::try_from(g).ok()).filter(|&g| g > 0);
    let groups = groups.ok_or("its num_groups must be positive")?;
    let by = Affine { scale: n.plain(1)?, bias: Some(n.plain(2)?) };
    let (by_group, epsilon) = (n.opset() < 21, epsilon(n));
    let v = norm::group(n, data, groups, by, by_group, epsilon)?;
    n.output(v)
}

pub(super) fn local_response(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let by = LocalResponse {
        size: n.int("size").and_then(|s| usize::try_from(s).ok()).ok_or("its size must be from 1 to 65535")?,
        alpha: n.float("alpha").unwrap_or(1e-4),
        beta: n.float("beta").unwrap_or(0.75),
        bias: n.float("bias").unwrap_or(1.0),
    };
    let v = norm::local_response(n, data, by)?;
    n.output(v)
}

pub(super) fn mean_variance(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let axes = n.ints("axes").map_or_else(|| vec![0, 2, 3], <[i64]>::to_vec);
    let axes = n.axes(&axes, n.ty(data).rank())?;
    let [v, ..] = norm::standard(n, data, &axes, 1e-9)?;
    n.output(v)
}

pub(super) fn lp(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let axis = n.axis_attribute(-1, n.ty(data).rank())?;
    let p = n.int("p").unwrap_or(2);
    let v = norm::lp(n, data, axis, p)?;
    n.output(v)
}
