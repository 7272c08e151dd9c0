//! Integer products and the requantization of their sums.

use super::constants::vector;
use super::forms::Forms;
use super::pieces::StraightLine;
use super::{Group, PerTensor, requantize};
use crate::graph::op::{Binary, BinaryKind, Conv2d, ConvTranspose2d, Dense, QMatMul};
use crate::graph::{Dim, Op, Tensor, ValueId};
use crate::passes::{Patch, Ref};

/// Sums of an integer product.
struct Sums {
    acc: Ref,
    /// Their channel dimension.
    axis: usize,
    /// The requantizations of each channel: one, or two to take the maximum or minimum of.
    branches: Vec<Vec<Branch>>,
}

/// A requantization of a channel's sums.
#[derive(Clone, Copy)]
struct Branch {
    bias: i32,
    /// The real value of a step of the sums.
    step: f64,
    /// The greatest magnitude of a sum plus the bias.
    most: f64,
}

impl Branch {
    /// A requantization to a constant, which sums of magnitude up to `most` change by at most an eighth of an output
    /// step. `None` if no 31-bit bias achieves that.
    fn constant(real: f64, out_scale: f64, most: f64) -> Option<Branch> {
        if real == 0.0 {
            return Some(Branch { bias: 0, step: 0.0, most });
        }
        // Steps so small that the rounding of the bias is not visible either.
        let step = out_scale / f64::from(1 << 16).max(8.0 * most);
        let room = f64::from(1 << 30);
        let bias = (real / step).round();
        // A constant beyond all 8-bit results saturates, so it need not be exact.
        let fits = most <= room && (bias.abs() <= room || room * step >= 512.0 * out_scale);
        let bias = bias.clamp(-room, room);
        fits.then(|| Branch { bias: bias as i32, step, most: bias.abs() + most })
    }
}

/// Rewrites a product, and the operators after it, to integers.
///
/// # Errors
/// The reason if that is not possible.
pub(super) fn rewrite(g: &Group, forms: &Forms) -> Result<Patch, String> {
    let data = "has data that are not an int8 tensor dequantized with one scale";
    let (data, from) = g.dequantized(g.core.inputs[0]).ok_or(data)?;
    let (mut p, sums) = match &g.core.op {
        Op::MatMul(_) => matrices(g, (data, from), forms)?,
        _ => layer(g, (data, from), forms)?,
    };
    let v = finish(g, &mut p, &sums, forms)?;
    Ok(g.finish(p, v))
}

/// A convolution or fully connected layer.
fn layer(g: &Group, (data, from): (ValueId, PerTensor), forms: &Forms) -> Result<(Patch, Sums), String> {
    let Weights { shape, less: mut w, scales, zero } =
        weights(g, g.core.inputs[1]).ok_or("has weights that are not int8 constants dequantized by output channel")?;
    let steps: Vec<f64> = scales.iter().map(|&s| f64::from(from.scale) * f64::from(s)).collect();
    let bias = match g.core.inputs.get(2) {
        Some(&b) => vector(g.view, b, steps.len()).ok_or("has a bias that is not a vector of finite constants")?,
        None => vec![0.0; steps.len()],
    };
    let per_channel = w.len().checked_div(steps.len()).filter(|&n| n > 0).ok_or("has no weights")?;
    let mut branches = Vec::with_capacity(steps.len());
    for (((lines, step), bias), w) in forms.lines().zip(steps).zip(bias).zip(w.chunks_mut(per_channel)) {
        let fitted = fit(&lines, (step, bias), w, f64::from(g.out.scale)).ok_or(COARSE)?;
        branches.push(fitted);
    }
    // Weights that do not fit 8 bits and share no zero point are stored as i32 less their zero points.
    let bytes = zero.map(|zero| w.iter().map(|&w| i8::try_from(w + zero).ok()).collect::<Option<Vec<i8>>>());
    let weight = match bytes {
        Some(bytes) => bytes.and_then(|bytes| Tensor::new(&shape, bytes)),
        None => Tensor::new(&shape, w),
    };
    let weight = weight.ok_or("has weights that do not fit a byte less their zero point")?;
    let zero = zero.unwrap_or(0);
    let (op, axis): (Op, usize) = match &g.core.op {
        Op::Conv2d(c) => {
            let op = Conv2d { data_zero_point: from.zero_point, weight_zero_point: zero, ..c.clone() };
            (op.into(), c.layout.channel_axis())
        }
        Op::ConvTranspose2d(c) => {
            let axis = c.layout.channel_axis();
            let op = ConvTranspose2d { data_zero_point: from.zero_point, weight_zero_point: zero, ..c.clone() };
            (op.into(), axis)
        }
        _ => (Dense { data_zero_point: from.zero_point, weight_zero_point: zero }.into(), 1),
    };
    let mut p = Patch::new(if matches!(g.core.op, Op::Dense(_)) { "dense" } else { "conv2d" });
    let weight = p.constant(&g.label("weight"), weight);
    let acc = p.node(&g.label(&g.core.name), op, &[data.into(), weight]);
    Ok((p, Sums { acc, axis, branches }))
}

/// A product of two activations.
fn matrices(g: &Group, (a, qa): (ValueId, PerTensor), forms: &Forms) -> Result<(Patch, Sums), String> {
    let other = "has a second operand that is not an int8 tensor dequantized with one scale";
    let (b, qb) = g.dequantized(g.core.inputs[1]).ok_or(other)?;
    let axis = g.view.graph.ty(g.core.output()).rank().saturating_sub(1);
    let depth = g.view.graph.ty(a).dims.last().and_then(Dim::known).ok_or("has unknown sizes")?;
    let step = f64::from(qa.scale) * f64::from(qb.scale);
    // The greatest magnitude of a sum of products of bytes less their zero points.
    let most = depth as f64 * 255.0 * 255.0;
    let out = f64::from(g.out.scale);
    let branch = |line: &StraightLine| {
        if line.factor == 0.0 {
            return Branch::constant(line.term, out, most);
        }
        let step = step * line.factor;
        let bias = in_steps(line.term, step);
        let fits = bias.abs() + most <= f64::from(i32::MAX) && (bias * step - line.term).abs() <= 0.25 * out;
        fits.then_some(Branch { bias: bias as i32, step, most: bias.abs() + most })
    };
    let channel = |lines: Vec<StraightLine>| lines.iter().map(branch).collect::<Option<Vec<Branch>>>();
    let branches = forms.lines().map(channel).collect::<Option<Vec<_>>>().ok_or(COARSE)?;
    let mut p = Patch::new("qmatmul");
    let op = QMatMul { a_zero_point: qa.zero_point, b_zero_point: qb.zero_point };
    let acc = p.node(&g.label(&g.core.name), op, &[a.into(), b.into()]);
    Ok((p, Sums { acc, axis, branches }))
}

/// Reason: the bias cannot be expressed in steps of the sums.
const COARSE: &str = "has 32-bit sums whose step is too coarse, or too fine, for what is added to them";

/// Converts the sums of a product to results of the group's operator.
///
/// The maximum or minimum of two lines is that of two requantizations of the same sums: each is rounded once, and
/// rounding keeps the order of numbers. Bounds are clamps if all channels share them, and otherwise maxima or minima
/// with a constant, for the same reason.
fn finish(g: &Group, p: &mut Patch, sums: &Sums, forms: &Forms) -> Result<Ref, String> {
    let range = "needs a factor that is too large for 32 bits";
    let out = f64::from(g.out.scale);
    let one = |p: &mut Patch, name: &str, i: usize| {
        let bias = sums.branches.iter().map(|b| b[i].bias).collect();
        let factors: Vec<(f64, f64)> = sums.branches.iter().map(|b| (b[i].step / out, b[i].most)).collect();
        requantize(g, p, name, (sums.acc, sums.axis), bias, &factors).ok_or(range)
    };
    // The bound that is applied last comes first.
    let bounds = [(BinaryKind::Min, "greatest", &forms.hi), (BinaryKind::Max, "least", &forms.lo)];
    let mut bounds: Vec<_> = bounds.into_iter().filter(|(.., list)| shared(list).is_none()).collect();
    let name = if bounds.is_empty() { g.name().to_string() } else { g.label("unbounded") };
    let mut v = match &forms.second {
        None => one(p, &name, 0)?,
        Some((kind, _)) => {
            let (above, below) = (one(p, &g.label("above"), 0)?, one(p, &g.label("below"), 1)?);
            p.node(&name, Binary { kind: *kind }, &[above, below])
        }
    };
    let mut shape = vec![1; g.view.graph.ty(g.core.output()).rank() - sums.axis];
    while let Some((kind, label, list)) = bounds.pop() {
        shape[0] = list.len();
        let values = p.constant(&g.label(label), Tensor::from_fn(&shape, |i| list[i] as i8));
        let name = if bounds.is_empty() { g.name().to_string() } else { g.label(&format!("{label}/held")) };
        v = p.node(&name, Binary { kind }, &[v, values]);
    }
    Ok(v)
}

/// A real value in steps, rounded.
fn in_steps(real: f64, step: f64) -> f64 {
    // A line with factor 0 has steps of size 0.
    if real == 0.0 { 0.0 } else { (real / step).round() }
}

/// The integer shared by all channels, if they do share one.
pub(super) fn shared(list: &[i32]) -> Option<i32> {
    let (first, others) = list.split_first()?;
    others.iter().all(|x| x == first).then_some(*first)
}

/// The requantizations of a channel: one for each line of its sums, with step and bias as integers.
///
/// If the weights of a channel are almost dead, its steps are so small that the bias leaves no room for the sum. Then
/// the steps are made coarser by a power of two and the weights are rounded to them, if that changes results by less
/// than a quarter of an output step. `w` are the weights less their zero point; those of a constant channel become 0.
fn fit(lines: &[StraightLine], (step, bias): (f64, f64), w: &mut [i32], out_scale: f64) -> Option<Vec<Branch>> {
    if lines.iter().all(|line| line.factor == 0.0) {
        w.fill(0);
        return lines.iter().map(|line| Branch::constant(line.term, out_scale, 0.0)).collect();
    }
    // The real values of a step and of the bias for each line.
    let exact: Vec<(f64, f64)> = lines.iter().map(|l| (step * l.factor, bias * l.factor + l.term)).collect();
    for k in 0..31 {
        let by = f64::from(1u32 << k);
        let shifted = |w: i32| (f64::from(w) / by).round();
        let sum: f64 = w.iter().map(|&w| shifted(w).abs() * 255.0).sum();
        let branch = |(line, &(step, real)): (&StraightLine, &(f64, f64))| {
            if line.factor == 0.0 {
                return Branch::constant(real, out_scale, sum);
            }
            let (step, bias) = (step * by, in_steps(real, step * by));
            let most = bias.abs() + sum;
            (most <= f64::from(i32::MAX)).then_some(Branch { bias: bias as i32, step, most })
        };
        let Some(branches) = lines.iter().zip(&exact).map(branch).collect::<Option<Vec<Branch>>>() else { continue };
        let lost = |((exact, real), b): (&(f64, f64), &Branch)| {
            let of = |w: i32| (f64::from(w) * exact - shifted(w) * b.step).abs() * 255.0;
            w.iter().map(|&w| of(w)).sum::<f64>() + (f64::from(b.bias) * b.step - real).abs()
        };
        let moving = lines.iter().zip(exact.iter().zip(&branches)).filter(|(line, _)| line.factor != 0.0);
        if moving.map(|(_, pair)| lost(pair)).any(|lost| lost > 0.25 * out_scale) {
            return None;
        }
        if k > 0 {
            w.iter_mut().for_each(|w| *w = shifted(*w) as i32);
        }
        return Some(branches);
    }
    None
}

/// Weights of an integer product.
struct Weights {
    shape: Vec<usize>,
    /// The weights less their zero points.
    less: Vec<i32>,
    /// One scale per output channel.
    scales: Vec<f32>,
    /// The zero point to add so that they fit bytes: 0 if they fit already, else the one that all channels share;
    /// `None` if they share none.
    zero: Option<i32>,
}

fn weights(g: &Group, v: ValueId) -> Option<Weights> {
    let node = g.view.def(v)?;
    let Op::Dequantize(d) = &node.op else { return None };
    let t = g.view.graph.constant(node.inputs[0])?;
    let w = t.as_slice::<i8>().ok()?;
    let channels = *t.shape().first()?;
    let several = d.scale.len() > 1;
    if several && d.axis != 0 || d.zero_point.iter().any(|z| !(-128..=127).contains(z)) {
        return None;
    }
    let at = |i: usize| if several { i } else { 0 };
    let scales = (0..channels).map(|c| d.scale[at(c)]).collect();
    let per_channel = t.len().checked_div(channels)?;
    let less: Vec<i32> = (0..t.len()).map(|i| i32::from(w[i]) - d.zero_point[at(i / per_channel)]).collect();
    let first = *d.zero_point.first()?;
    let zero = if less.iter().all(|&w| i8::try_from(w).is_ok()) {
        Some(0)
    } else {
        d.zero_point.iter().all(|&z| z == first).then_some(first)
    };
    Some(Weights { shape: t.shape().to_vec(), less, scales, zero })
}
