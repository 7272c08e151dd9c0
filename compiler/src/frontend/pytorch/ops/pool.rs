//! Pools over lines, images and volumes.

use super::convolution::{check_steps, each};
use super::{with_batch, without_batch};
use crate::frontend::pytorch::context::Value;
use crate::frontend::pytorch::node::NodeContext;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::SemanticBuilder;
use crate::frontend::semantic::conv::{as_data, as_image};
use crate::frontend::semantic::volume::{self, Sliding3};
use crate::frontend::semantic::window::{self, Padding, Sliding, Window};
use crate::graph::op::{BinaryKind, Gather, Layout, MaxPool2d, ReduceKind, Resample};
use crate::graph::{DType, Tensor, TensorType, ValueId};

/// A pool's data as images or volumes with a batch.
struct Pool {
    data: ValueId,
    /// Dimensions over which the window moves.
    dims: usize,
    kernel: Vec<usize>,
    strides: Vec<usize>,
    pads: Vec<usize>,
    dilations: Vec<usize>,
    round_up: bool,
    is_single: bool,
}

/// The number of dimensions in an operator's name.
fn dims(n: &NodeContext) -> usize {
    let of = |dims: &usize| n.proto.target.contains(&format!("{dims}d"));
    [1, 2, 3].into_iter().find(of).unwrap_or(2)
}

fn pool(n: &mut NodeContext) -> Result<Pool, Reason> {
    let dims = dims(n);
    let given = n.tensor("self")?;
    let (data, is_single) = with_batch(n, given, dims + 2)?;
    if n.ty(data).rank() != dims + 2 {
        return Err(format!("its data must have {} or {} dimensions, found {}", dims + 1, dims + 2, n.ty(data)).into());
    }
    let kernel = each(n, "kernel_size", 1, dims)?;
    let given = n.ints("stride")?.unwrap_or_default();
    let strides = if given.is_empty() { kernel.clone() } else { each(n, "stride", 1, dims)? };
    let (pads, dilations) = (each(n, "padding", 0, dims)?, each(n, "dilation", 1, dims)?);
    check_steps(&strides)?;
    check_steps(&dilations)?;
    let round_up = n.flag("ceil_mode", false)?;
    Ok(Pool { data, dims, kernel, strides, pads, dilations, round_up, is_single })
}

impl Pool {
    /// The window over images.
    fn sliding(&self) -> Sliding {
        let image = |list: &[usize], default| if let &[w] = list { [default, w] } else { [list[0], list[1]] };
        let pads = image(&self.pads, 0);
        Sliding {
            kernel: image(&self.kernel, 1),
            strides: image(&self.strides, 1),
            dilations: image(&self.dilations, 1),
            padding: Padding::Given([pads[0], pads[1], pads[0], pads[1]]),
            round_up: self.round_up,
        }
    }

    /// Applies a pool of images.
    fn apply(
        &self,
        n: &mut NodeContext,
        mut f: impl FnMut(&mut SemanticBuilder, ValueId, [usize; 2], &Window) -> Result<ValueId, Reason>,
    ) -> Result<Value, Reason> {
        let v = if self.dims == 3 {
            let three = |list: &[usize]| [list[0], list[1], list[2]];
            let p = three(&self.pads);
            let by = Sliding3 {
                kernel: three(&self.kernel),
                strides: three(&self.strides),
                dilations: three(&self.dilations),
                pads: Some([p[0], p[1], p[2], p[0], p[1], p[2]]),
                padding: Padding::Valid,
                round_up: self.round_up,
            };
            volume::pooled(n, self.data, by, f)?
        } else {
            let (image, line) = as_image(n, "image", self.data)?;
            let by = self.sliding();
            let w = window::window(&n.ty(image).clone(), by)?;
            let v = f(n, image, by.kernel, &w)?;
            as_data(n, v, line)?
        };
        Ok(without_batch(n, v, self.is_single)?.into())
    }
}

fn greatest(n: &mut SemanticBuilder, v: ValueId, kernel: [usize; 2], w: &Window) -> Result<ValueId, Reason> {
    let Window { strides, pads, dilations, .. } = *w;
    n.node("pool", MaxPool2d { kernel, strides, pads, dilations, layout: Layout::Nchw }, &[v])
}

pub(super) fn max(n: &mut NodeContext) -> Result<Value, Reason> {
    pool(n)?.apply(n, greatest)
}

/// The greatest elements, and their places in their images.
pub(super) fn max_with_indices(n: &mut NodeContext) -> Result<Value, Reason> {
    let of = pool(n)?;
    let values = of.apply(n, greatest)?;
    if of.dims == 3 {
        // Places in volumes are left out; a program that uses them is refused there.
        return Ok(Value::List(vec![values, Value::None]));
    }
    let by = of.sliding();
    let w = window::window(&n.ty(of.data).clone(), by)?;
    let places = window::greatest_places(n, of.data, by.kernel, &w, false)?;
    let shape = n.shape(of.data)?;
    let area = n.made("area", Tensor::scalar((shape[2] * shape[3]) as i64));
    let places = n.binary("places", BinaryKind::Mod, places, area)?;
    let places = without_batch(n, places, of.is_single)?;
    Ok(Value::List(vec![values, places.into()]))
}

pub(super) fn average(n: &mut NodeContext) -> Result<Value, Reason> {
    let counts_pads = n.flag("count_include_pad", true)?;
    let divisor = n.optional_int("divisor_override")?;
    let of = pool(n)?;
    let Some(divisor) = divisor else {
        return of.apply(n, |n, v, kernel, w| window::averages(n, "pool", v, kernel, w, counts_pads));
    };
    if of.dims != 2 || of.round_up {
        return Err("divisor_override is supported for images without ceil_mode".into());
    }
    // Averages of padded windows, times their number of elements.
    let Value::Tensor(v) = of.apply(n, |n, v, kernel, w| window::averages(n, "pool", v, kernel, w, true))? else {
        return Err("its operand is no tensor".into());
    };
    let dtype = n.ty(v).dtype;
    let factor = of.kernel.iter().product::<usize>() as f64 / divisor as f64;
    let factor = n.numeral("factor", factor, dtype)?;
    Ok(n.binary("", BinaryKind::Mul, v, factor)?.into())
}

/// For each dimension of an adaptive pool, its first place and count of elements for each result.
fn spans(size: usize, out: usize) -> Vec<(usize, usize)> {
    (0..out)
        .map(|i| (i * size / out, ((i + 1) * size).div_ceil(out)))
        .map(|(first, end)| (first, end - first))
        .collect()
}

/// Applies a function to each dimension whose size changes, with its spans.
fn adaptive(
    n: &mut NodeContext,
    f: impl Fn(&mut NodeContext, ValueId, usize, &[(usize, usize)]) -> Result<ValueId, Reason>,
) -> Result<Value, Reason> {
    let dims = dims(n);
    let given = n.tensor("self")?;
    let rank = n.ty(given).rank();
    let first = rank.checked_sub(dims).ok_or("its data have too few dimensions")?;
    let sizes = n.value("output_size")?;
    let sizes: Vec<Option<usize>> = match sizes {
        Value::List(list) => {
            list.iter().map(|v| if let Value::Int(x) = v { usize::try_from(*x).ok() } else { None }).collect()
        }
        Value::Int(x) => vec![usize::try_from(x).ok(); dims],
        _ => return Err("it has no output_size".into()),
    };
    let sizes = if sizes.len() == 1 { vec![sizes[0]; dims] } else { sizes };
    let mut v = given;
    for (i, out) in sizes.into_iter().enumerate().take(dims) {
        let (axis, size) = (first + i, n.shape(v)?[first + i]);
        let out = out.unwrap_or(size);
        if out == 0 || size == 0 {
            return Err("its data and its result must not be empty".into());
        }
        n.reserve(&TensorType::new(DType::I64, &[out, 2]))?;
        if out != size {
            v = f(n, v, axis, &spans(size, out))?;
        }
    }
    Ok(v.into())
}

pub(super) fn adaptive_average(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = n.tensor("self")?;
    let rank = n.ty(v).rank();
    let sizes = n.ints("output_size")?.unwrap_or_default();
    if sizes.iter().all(|&s| s == 1) && dims(n) == 2 && rank == 4 {
        return Ok(window::global_averages(n, "", v)?.into());
    }
    adaptive(n, |n, v, axis, spans| {
        if spans.len() == 1 {
            return n.reduce("mean", ReduceKind::Mean, &[axis], true, v);
        }
        let taps = spans.iter().map(|(_, count)| *count).max().unwrap_or(1);
        let shape = [spans.len(), taps];
        let at = |i: usize| (spans[i / taps], i % taps);
        let index = n.table("index", &shape, |i| {
            let ((first, count), tap) = at(i);
            (first + tap.min(count - 1)) as i32
        })?;
        let weight = n.table("weight", &shape, |i| {
            let ((_, count), tap) = at(i);
            if tap < count { 1.0 / count as f32 } else { 0.0 }
        })?;
        n.node("averages", Resample { axis }, &[v, index, weight])
    })
}

pub(super) fn adaptive_max(n: &mut NodeContext) -> Result<Value, Reason> {
    let outputs = n.proto.outputs.len();
    let v = adaptive(n, |n, v, axis, spans| {
        let taps = spans.iter().map(|(_, count)| *count).max().unwrap_or(1);
        let index = n.table("index", &[spans.len(), taps], |i| {
            let (first, count) = spans[i / taps];
            (first + (i % taps).min(count - 1)) as i64
        })?;
        let windows = n.node("windows", Gather { axis }, &[v, index])?;
        n.reduce("greatest", ReduceKind::Max, &[axis + 1], false, windows)
    })?;
    if outputs < 2 {
        return Ok(v);
    }
    // The places of the elements are left out; a program that uses them is refused there.
    Ok(Value::List(vec![v, Value::None]))
}
