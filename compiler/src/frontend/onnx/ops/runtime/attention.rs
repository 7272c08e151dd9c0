//! Attention of ONNX Runtime.

use crate::frontend::onnx::node::NodeContext;
use crate::frontend::onnx::ops::integer;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::attention::{self as semantic, Attended, Rotary};
use crate::frontend::semantic::movement::part;
use crate::frontend::semantic::product::matrices;
use crate::graph::op::{Add, BinaryKind, Concat, Select};
use crate::graph::{DType, ValueId};

/// Queries, keys and values, with the operands that every form of attention has.
struct Operands {
    q: ValueId,
    k: ValueId,
    v: ValueId,
    past: Option<[ValueId; 2]>,
    /// The operand that says which keys count.
    mask: usize,
    /// The operand that is added to the scores.
    bias: Option<usize>,
}

/// Builds the attention with the node's attributes.
fn attended(n: &mut NodeContext, of: Operands) -> Result<Attended, Reason> {
    let heads = n.int("num_heads");
    let length = |n: &NodeContext, v: ValueId| -> Result<usize, Reason> {
        let shape = n.shape(v)?;
        Ok(shape[shape.len() - 2])
    };
    let rank = |n: &NodeContext, v: ValueId, least: usize| match n.ty(v).rank() {
        rank if (least..=4).contains(&rank) => Ok(()),
        _ => Err(Reason(format!(
            "its queries, keys and values must have 3 or 4 dimensions, past ones 4, found {}",
            n.ty(v)
        ))),
    };
    [of.q, of.k, of.v].into_iter().try_for_each(|v| rank(n, v, 3))?;
    of.past.into_iter().flatten().try_for_each(|v| rank(n, v, 4))?;
    let batch = n.shape(of.q)?[0];
    let before = of.past.map_or(Ok(0), |[k, _]| length(n, k))?;
    let (rows, columns) = (length(n, of.q)?, before + length(n, of.k)?);
    let mut mask = mask(n, of.mask, [batch, rows, columns])?;
    if let Some(bias) = of.bias.map(|i| n.optional(i)).transpose()?.flatten() {
        if n.shape(bias)?.last() != Some(&columns) {
            return Err(format!("what is added to its scores must have {columns} columns, found {}", n.ty(bias)).into());
        }
        mask = Some(match mask {
            Some(mask) => n.node("mask/bias", Add {}, &[mask, bias])?,
            None => bias,
        });
    }
    let is_causal = n.int("unidirectional").unwrap_or(0) != 0;
    let scale = n.float("scale").filter(|scale| *scale != 0.0);
    let Operands { q, k, v, past, .. } = of;
    let of = semantic::Attention { q, k, v, past, mask, lengths: None, heads: [heads; 2], scale, is_causal, cap: 0.0 };
    semantic::attention(n, of)
}

/// What is added to the scores for an operand that says which keys count: `[B, 1, 1 or S, T]`.
fn mask(n: &mut NodeContext, i: usize, sizes: [usize; 3]) -> Result<Option<ValueId>, Reason> {
    let [batch, rows, columns] = sizes;
    // Without a mask it has no effect.
    let filter = n.float("mask_filter_value").unwrap_or(-10000.0);
    let Some(mask) = n.optional(i)? else { return Ok(None) };
    let shape = n.shape(mask)?;
    let mask = n.cast("mask", mask, DType::I32)?;
    let counts = match *shape.as_slice() {
        // How many keys of each batch count, and from which on.
        [size] if size == batch || size == 2 * batch => {
            let places = n.table("places", &[columns], |i| i as i32)?;
            let bound = |n: &mut NodeContext, start: usize| -> Result<ValueId, Reason> {
                let v = part(n, "mask/bound", mask, 0, start, batch)?;
                n.reshape("mask/bound", v, &[batch, 1, 1, 1])
            };
            let end = bound(n, 0)?;
            let within = n.binary("mask/within", BinaryKind::Less, places, end)?;
            if size == batch {
                within
            } else {
                let start = bound(n, batch)?;
                let behind = n.binary("mask/behind", BinaryKind::LessEqual, start, places)?;
                n.binary("mask/between", BinaryKind::And, within, behind)?
            }
        }
        _ => {
            let shape = match *shape.as_slice() {
                [b, t] if t == columns => [b, 1, 1, t],
                [b, s, t] if s == rows && t == columns => [b, 1, s, t],
                _ => {
                    let ty = n.ty(mask);
                    return Err(format!(
                        "its mask, operand {i}, is {ty}; it must be [{batch}], [{}], [{batch},{columns}] or \
                         [{batch},{rows},{columns}]",
                        2 * batch
                    )
                    .into());
                }
            };
            let v = n.reshape("mask/shape", mask, &shape)?;
            let zero = n.table("mask/zero", &[], |_| 0i32)?;
            n.binary("mask/counts", BinaryKind::Less, zero, v)?
        }
    };
    let (keep, drop) = (n.scalar("keep", 0.0), n.scalar("drop", filter));
    Ok(Some(n.node("mask/added", Select {}, &[counts, keep, drop])?))
}

/// The two tensors of an operand `[2, B, heads, S, D]`.
fn pair(n: &mut NodeContext, i: usize) -> Result<Option<[ValueId; 2]>, Reason> {
    let Some(both) = n.optional(i)? else { return Ok(None) };
    let shape = n.shape(both)?;
    if shape.len() != 5 || shape[0] != 2 {
        return Err(format!("operand {i} must be keys and values [2,B,heads,S,D], found {}", n.ty(both)).into());
    }
    let mut one = |at: usize| {
        let v = part(n, "past", both, 0, at, 1)?;
        n.reshape("past", v, &shape[1..])
    };
    Ok(Some([one(0)?, one(1)?]))
}

/// Columns of these widths.
fn columns(n: &mut NodeContext, v: ValueId, widths: [usize; 3]) -> Result<[ValueId; 3], Reason> {
    let shape = n.shape(v)?;
    let axis = n.axis(-1, shape.len())?;
    let total = widths.iter().try_fold(0usize, |sum, &width| sum.checked_add(width));
    let total = total.ok_or("its queries, keys and values have too many columns")?;
    if shape[axis] != total {
        return Err(format!("its queries, keys and values need {total} columns, found {}", n.ty(v)).into());
    }
    let mut start = 0;
    let mut next = |n: &mut NodeContext, what: &str, width: usize| {
        start += width;
        part(n, what, v, axis, start - width, width)
    };
    Ok([next(n, "q", widths[0])?, next(n, "k", widths[1])?, next(n, "v", widths[2])?])
}

/// The widths of queries, keys and values: those that the node gives, or a third of all columns each.
fn widths(n: &NodeContext, total: usize) -> Result<[usize; 3], Reason> {
    match n.ints("qkv_hidden_sizes") {
        None => Ok([total / 3; 3]),
        Some(list) => {
            let list: Option<Vec<usize>> = list.iter().map(|&v| usize::try_from(v).ok()).collect();
            let list = list.and_then(|list| <[usize; 3]>::try_from(list).ok());
            list.ok_or_else(|| Reason("its qkv_hidden_sizes must be 3 sizes".into()))
        }
    }
}

/// Attention of queries, keys and values that are columns of one tensor, with past and mask as operands; outputs are the
/// result, and keys and values `[2, B, heads, S, D]`.
fn of_product(
    n: &mut NodeContext,
    product: ValueId,
    [mask, past]: [usize; 2],
    bias: Option<usize>,
) -> Result<(), Reason> {
    let shape = n.shape(product)?;
    if shape.len() != 3 {
        return Err(format!("its data must have 3 dimensions, found {}", n.ty(product)).into());
    }
    let widths = widths(n, shape[2])?;
    let [q, k, v] = columns(n, product, widths)?;
    let past = pair(n, past)?;
    let Attended { y, present, .. } = attended(n, Operands { q, k, v, past, mask, bias })?;
    if n.proto.output.get(1).is_none_or(String::is_empty) {
        return n.output(y);
    }
    let mut apart = [y; 2];
    for (part, v) in apart.iter_mut().zip(present) {
        let shape = [&[1], n.shape(v)?.as_slice()].concat();
        *part = n.reshape("present", v, &shape)?;
    }
    let present = n.node("present", Concat { axis: 0 }, &apart)?;
    n.outputs(&[y, present])
}

/// `Attention`: data, weights of queries, keys and values side by side, their bias, mask, past, and what is added to the
/// scores.
pub(in crate::frontend::onnx) fn attention(n: &mut NodeContext) -> Result<(), Reason> {
    n.only("do_rotary", 0)?;
    n.only("past_present_share_buffer", 0)?;
    let (data, weight) = (n.plain(0)?, n.input(1)?);
    let bias = n.optional(2)?;
    let mut v = matrices(n, data, weight)?;
    if let Some(bias) = bias {
        v = n.add("qkv", v, bias)?;
    }
    of_product(n, v, [3, 4], Some(5))
}

/// `QAttention`: the same with bytes: data, weights, bias, their scales, mask, their zero points, past.
pub(in crate::frontend::onnx) fn quantized(n: &mut NodeContext) -> Result<(), Reason> {
    n.only("do_rotary", 0)?;
    let v = integer::floats(n, [0, 1], [3, 4], [6, 7], 2)?;
    of_product(n, v, [5, 8], None)
}

/// `MultiHeadAttention`: queries, keys, values, their bias, mask, what is added to the scores, and past keys and values.
/// Without keys and values, the queries are all three, `[B, S, heads, 3, D]`; without values, the keys are both.
pub(in crate::frontend::onnx) fn multi_head(n: &mut NodeContext) -> Result<(), Reason> {
    let q = n.plain(0)?;
    let operands = [n.optional(1)?, n.optional(2)?];
    let mut split = |v: ValueId, count: usize| -> Result<Vec<ValueId>, Reason> {
        let &[b, s, heads, parts, d] = n.shape(v)?.as_slice() else {
            return Err(format!("what holds {count} tensors must have 5 dimensions, found {}", n.ty(v)).into());
        };
        if parts != count {
            return Err(format!("dimension 3 of {} must be {count}", n.ty(v)).into());
        }
        let one = |i| {
            let part = part(n, "part", v, 3, i, 1)?;
            n.reshape("part", part, &[b, s, heads * d])
        };
        (0..count).map(one).collect()
    };
    let [mut q, mut k, mut v] = match operands {
        [Some(k), Some(v)] => [q, k, v],
        [Some(both), None] => {
            let parts = split(both, 2)?;
            [q, parts[0], parts[1]]
        }
        [None, Some(_)] => return Err("it has values, operand 2, but no keys, operand 1".into()),
        [None, None] => {
            let parts = split(q, 3)?;
            [parts[0], parts[1], parts[2]]
        }
    };
    if let Some(bias) = n.optional(3)? {
        let width = |n: &NodeContext, v: ValueId| -> Result<usize, Reason> { Ok(n.shape(v)?[2]) };
        for v in [q, k, v] {
            if n.ty(v).rank() != 3 {
                return Err(format!(
                    "with a bias, its queries, keys and values must have 3 dimensions, found {}",
                    n.ty(v)
                )
                .into());
            }
        }
        let widths = [width(n, q)?, width(n, k)?, width(n, v)?];
        let terms = columns(n, bias, widths)?;
        [q, k, v] = [n.add("q/bias", q, terms[0])?, n.add("k/bias", k, terms[1])?, n.add("v/bias", v, terms[2])?];
    }
    let past = match [n.optional(6)?, n.optional(7)?] {
        [Some(keys), Some(values)] => Some([keys, values]),
        [None, None] => None,
        _ => return Err("its past_key and past_value, operands 6 and 7, must be given together".into()),
    };
    let Attended { y, present, .. } = attended(n, Operands { q, k, v, past, mask: 4, bias: Some(5) })?;
    n.outputs(&[y, present[0], present[1]])
}

/// `RotaryEmbedding`: data, the position of each row or of the first, cosines, sines.
pub(in crate::frontend::onnx) fn rotary(n: &mut NodeContext) -> Result<(), Reason> {
    n.only("is_packed_batching", 0)?;
    if n.float("scale").is_some_and(|scale| scale != 1.0) {
        return Err("its scale must be 1".into());
    }
    let (data, tables) = (n.plain(0)?, [n.plain(2)?, n.plain(3)?]);
    let shape = n.shape(data)?;
    let rows = if shape.len() == 4 { shape[2] } else { shape.get(1).copied().unwrap_or(1) };
    let mut places = n.plain(1)?;
    if n.ty(places).rank() == 1 {
        if n.shape(places)? != [1] {
            return Err(format!("the position of its first row must be one number, found {}", n.ty(places)).into());
        }
        let from = n.table("rows", &[1, rows], |i| i as i64)?;
        places = n.add("places", places, from)?;
    }
    let turned = usize::try_from(n.int("rotary_embedding_dim").unwrap_or(0)).unwrap_or(0);
    let depth = 2 * n.shape(tables[0])?.last().copied().unwrap_or(0);
    let heads = match n.int("num_heads").filter(|heads| *heads != 0) {
        None if turned == 0 && depth > 0 => shape.last().map(|width| (width / depth) as i64),
        given => given,
    };
    let is_interleaved = n.int("interleaved").unwrap_or(0) != 0;
    let v = semantic::rotary(n, Rotary { data, tables, places: Some(places), heads, turned, is_interleaved })?;
    n.output(v)
}
