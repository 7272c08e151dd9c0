//! Attention and rotary embeddings, built from products, sums and softmax.

use super::SemanticBuilder;
use crate::frontend::reason::Reason;
use crate::graph::op::{
    Add, BinaryKind, Concat, Expand, Gather, MatMul, Pad, Select, Slice, Softmax, Transpose, UnaryKind,
};
use crate::graph::{DType, ValueId};

/// Attention of queries to keys and values, `[B, heads, S, D]` or `[B, S, heads * D]`.
#[derive(Debug, Clone, Copy)]
pub struct Attention {
    pub q: ValueId,
    pub k: ValueId,
    pub v: ValueId,
    /// The keys and values of earlier steps, `[B, heads, S, D]`.
    pub past: Option<[ValueId; 2]>,
    /// What is added to the scores, or whether a key counts. It can leave out keys at the end, which then do not count.
    pub mask: Option<ValueId>,
    /// How many keys of each batch count.
    pub lengths: Option<ValueId>,
    /// Heads of queries, and of keys and values, for operands of three dimensions.
    pub heads: [Option<i64>; 2],
    /// Factor of the scores; without it, one by the root of D.
    pub scale: Option<f32>,
    /// A query sees no later keys.
    pub is_causal: bool,
    /// The scores become `cap * tanh(scores / cap)`; 0 leaves them as they are.
    pub cap: f32,
}

/// What attention computes on the way.
#[derive(Debug, Clone, Copy)]
pub struct Attended {
    pub y: ValueId,
    /// Keys and values with those of earlier steps.
    pub present: [ValueId; 2],
    /// The scores as products, after the cap, and after the masks.
    pub scores: [ValueId; 3],
    /// The scores after softmax.
    pub weights: ValueId,
}

/// Builds the attention.
pub fn attention(n: &mut SemanticBuilder, of: Attention) -> Result<Attended, Reason> {
    let Attention { q, k, v, .. } = of;
    let flat = n.ty(q).rank() == 3;
    let q = heads(n, "q", q, of.heads[0], "q_num_heads")?;
    let (mut k, mut v) =
        (heads(n, "k", k, of.heads[1], "kv_num_heads")?, heads(n, "v", v, of.heads[1], "kv_num_heads")?);
    let mut past = 0;
    if let Some([pk, pv]) = of.past {
        past = image(n, pk)?[2];
        k = n.node("k/present", Concat { axis: 2 }, &[pk, k])?;
        v = n.node("v/present", Concat { axis: 2 }, &[pv, v])?;
    }
    let present = [k, v];
    let [batch, count, rows, depth] = image(n, q)?;
    let (keys, values) = (shared(n, "keys", k, count)?, shared(n, "values", v, count)?);
    let columns = image(n, keys)?[2];
    let scale = of.scale.unwrap_or(1.0 / (depth as f32).sqrt()).sqrt();
    let scale = n.scalar("scale", scale);
    let q = n.binary("q/scaled", BinaryKind::Mul, q, scale)?;
    let keys = n.binary("k/scaled", BinaryKind::Mul, keys, scale)?;
    let keys = n.node("k/transpose", Transpose { perm: vec![0, 1, 3, 2] }, &[keys])?;
    let product = n.node("scores", MatMul {}, &[q, keys])?;
    let mut scores = product;
    if of.cap != 0.0 {
        let cap = n.scalar("softcap", of.cap);
        let v = n.binary("cap/div", BinaryKind::Div, scores, cap)?;
        let v = n.unary("cap/tanh", UnaryKind::Tanh, v)?;
        scores = n.binary("cap", BinaryKind::Mul, v, cap)?;
    }
    let capped = scores;
    if let Some(mask) = of.mask {
        let mut mask = added(n, mask)?;
        let mut shape = n.shape(mask)?;
        let wide = shape.last().copied().unwrap_or(columns);
        if wide < columns {
            let mut after = vec![0; shape.len()];
            after[shape.len() - 1] = columns - wide;
            let op = Pad { before: vec![0; shape.len()], after, value: f32::NEG_INFINITY };
            mask = n.node("mask/pad", op, &[mask])?;
            shape = n.shape(mask)?;
        }
        if shape.len() == 3 {
            shape.insert(0, 1);
            mask = n.reshape("mask/shape", mask, &shape)?;
        }
        scores = n.node("masked", Add {}, &[scores, mask])?;
    }
    if of.is_causal {
        let seen = |i: usize| if i % columns <= i / columns + past { 0.0 } else { f32::NEG_INFINITY };
        let mask = n.table("causal", &[rows, columns], seen)?;
        scores = n.node("causal", Add {}, &[scores, mask])?;
    }
    if let Some(lengths) = of.lengths {
        let lengths = n.cast("lengths", lengths, DType::I64)?;
        let lengths = n.reshape("lengths", lengths, &[batch, 1, 1, 1])?;
        let places = n.table("places", &[columns], |i| i as i64)?;
        let within = n.binary("within", BinaryKind::Less, places, lengths)?;
        let mask = added(n, within)?;
        scores = n.node("lengths/mask", Add {}, &[scores, mask])?;
    }
    let weights = n.node("softmax", Softmax::float(3, 1.0), &[scores])?;
    let mut y = n.node(if flat { "attended" } else { "" }, MatMul {}, &[weights, values])?;
    if flat {
        let depth = image(n, y)?[3];
        y = n.node("transpose", Transpose { perm: vec![0, 2, 1, 3] }, &[y])?;
        y = n.reshape("", y, &[batch, rows, count * depth])?;
    }
    Ok(Attended { y, present, scores: [product, capped, scores], weights })
}

/// `[B, S, heads * D]` as `[B, heads, S, D]`.
fn heads(
    n: &mut SemanticBuilder,
    what: &str,
    v: ValueId,
    count: Option<i64>,
    attribute: &str,
) -> Result<ValueId, Reason> {
    let shape = n.shape(v)?;
    match *shape.as_slice() {
        [_, _, _, _] => Ok(v),
        [b, s, hidden] => {
            let count = count.and_then(|h| usize::try_from(h).ok()).filter(|&h| h > 0 && hidden % h == 0);
            let count = count.ok_or_else(|| Reason(format!("its {attribute} must divide {hidden}")))?;
            let v = n.reshape(&format!("{what}/heads"), v, &[b, s, count, hidden / count])?;
            n.node(&format!("{what}/transpose"), Transpose { perm: vec![0, 2, 1, 3] }, &[v])
        }
        _ => Err(format!("its {what} must have 3 or 4 dimensions, found {}", n.ty(v)).into()),
    }
}

/// Repeats each head of keys or values for the queries that share it.
fn shared(n: &mut SemanticBuilder, what: &str, v: ValueId, count: usize) -> Result<ValueId, Reason> {
    let [b, h, s, d] = image(n, v)?;
    if h == count {
        return Ok(v);
    }
    if h == 0 || !count.is_multiple_of(h) {
        return Err(format!("its {count} heads of queries must be a multiple of its {h} heads of {what}").into());
    }
    let v = n.reshape(&format!("{what}/apart"), v, &[b, h, 1, s, d])?;
    let v = n.node(&format!("{what}/expand"), Expand { shape: vec![b, h, count / h, s, d] }, &[v])?;
    n.reshape(&format!("{what}/shared"), v, &[b, count, s, d])
}

fn image(n: &SemanticBuilder, v: ValueId) -> Result<[usize; 4], Reason> {
    n.shape(v)?.try_into().map_err(|_| Reason(format!("needs 4 dimensions, found {}", n.ty(v))))
}

/// A boolean mask as a term to add: 0 where it is true, else minus infinity.
fn added(n: &mut SemanticBuilder, mask: ValueId) -> Result<ValueId, Reason> {
    if n.ty(mask).dtype != DType::Bool {
        return Ok(mask);
    }
    let (keep, drop) = (n.scalar("keep", 0.0), n.scalar("drop", f32::NEG_INFINITY));
    n.node("mask", Select {}, &[mask, keep, drop])
}

/// `size` elements of the last dimension from `start` on, `step` apart.
fn columns(
    n: &mut SemanticBuilder,
    what: &str,
    v: ValueId,
    start: usize,
    size: usize,
    step: i64,
) -> Result<ValueId, Reason> {
    let mut sizes = n.shape(v)?;
    let last = sizes.len() - 1;
    let (mut starts, mut steps) = (vec![0; sizes.len()], vec![1; sizes.len()]);
    (starts[last], sizes[last], steps[last]) = (start, size, step);
    n.node(what, Slice { starts, sizes, steps }, &[v])
}

/// Rotary embeddings.
#[derive(Debug, Clone, Copy)]
pub struct Rotary {
    /// `[B, heads, S, D]` or `[B, S, heads * D]`.
    pub data: ValueId,
    /// Cosines and sines, `[B, S, D / 2]`, or with places `[most, D / 2]`.
    pub tables: [ValueId; 2],
    /// The row of the tables for each position, `[B, S]`.
    pub places: Option<ValueId>,
    /// Heads of data of three dimensions.
    pub heads: Option<i64>,
    /// How much of D is turned; 0 is all of it.
    pub turned: usize,
    /// Whether the two numbers that are turned together lie side by side, not half of D apart.
    pub is_interleaved: bool,
}

/// Turns pairs of numbers by angles that depend on the position.
pub fn rotary(n: &mut SemanticBuilder, of: Rotary) -> Result<ValueId, Reason> {
    let Rotary { data, tables: [mut cos, mut sin], .. } = of;
    let given = n.shape(data)?;
    if let Some(places) = of.places {
        cos = n.node("cos", Gather { axis: 0 }, &[cos, places])?;
        sin = n.node("sin", Gather { axis: 0 }, &[sin, places])?;
    }
    // [B, S, heads, D] for flat data, else [B, heads, S, D]; the tables have no heads.
    let count = of.heads;
    let (x, table_axis) = match *given.as_slice() {
        [_, _, _, _] => (data, 1),
        [b, s, hidden] => {
            let count = count.and_then(|h| usize::try_from(h).ok()).filter(|&h| h > 0 && hidden % h == 0);
            let count = count.ok_or_else(|| Reason(format!("its num_heads must divide {hidden}")))?;
            (n.reshape("heads", data, &[b, s, count, hidden / count])?, 2)
        }
        _ => return Err(format!("its data must have 3 or 4 dimensions, found {}", n.ty(data)).into()),
    };
    let shape = image(n, x)?;
    let depth = shape[3];
    let turned = if of.turned == 0 { depth } else { of.turned };
    if turned > depth || turned % 2 != 0 {
        return Err(format!("its rotary_embedding_dim {turned} must be even and at most {depth}").into());
    }
    let half = turned / 2;
    let mut tables = [cos, sin];
    for t in &mut tables {
        let mut to = n.shape(*t)?;
        if to.len() != 3 || to[2] < half {
            return Err(format!("its tables must have 3 dimensions and {half} columns, found {}", n.ty(*t)).into());
        }
        if to[2] > half {
            *t = columns(n, "table", *t, 0, half, 1)?;
            to[2] = half;
        }
        to.insert(table_axis, 1);
        *t = n.reshape("table", *t, &to)?;
    }
    let [cos, sin] = tables;
    let (second, step) = if of.is_interleaved { (1, 2) } else { (half, 1) };
    let a = columns(n, "a", x, 0, half, step)?;
    let b = columns(n, "b", x, second, half, step)?;
    let times = |n: &mut SemanticBuilder, x, t| n.binary("turn", BinaryKind::Mul, x, t);
    let (ac, bs, a_sin, bc) = (times(n, a, cos)?, times(n, b, sin)?, times(n, a, sin)?, times(n, b, cos)?);
    let first = n.binary("first", BinaryKind::Sub, ac, bs)?;
    let second = n.add("second", a_sin, bc)?;
    let mut parts = if of.is_interleaved {
        let apart = [shape[0], shape[1], shape[2], half, 1];
        let (f, s) = (n.reshape("f", first, &apart)?, n.reshape("s", second, &apart)?);
        let both = n.node("both", Concat { axis: 4 }, &[f, s])?;
        let mut joined = shape.to_vec();
        joined[3] = turned;
        vec![n.reshape("joined", both, &joined)?]
    } else {
        vec![first, second]
    };
    if turned < depth {
        parts.push(columns(n, "rest", x, turned, depth - turned, 1)?);
    }
    let v = if parts.len() == 1 { parts[0] } else { n.node("concat", Concat { axis: 3 }, &parts)? };
    n.reshape("", v, &given)
}
