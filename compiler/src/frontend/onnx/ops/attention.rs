//! Attention and RotaryEmbedding, built from products, sums and softmax.

use crate::frontend::onnx::node::{NodeContext, Reason};
use crate::graph::op::{Add, BinaryKind, Concat, Expand, Gather, MatMul, Select, Slice, Softmax, Transpose, UnaryKind};
use crate::graph::{DType, ValueId};

/// `[B, S, heads * D]` as `[B, heads, S, D]`.
fn heads(n: &mut NodeContext, what: &str, v: ValueId, attribute: &str) -> Result<ValueId, Reason> {
    let shape = n.shape(v)?;
    let count = n.int(attribute);
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
fn shared(n: &mut NodeContext, what: &str, v: ValueId, count: usize) -> Result<ValueId, Reason> {
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

fn image(n: &NodeContext, v: ValueId) -> Result<[usize; 4], Reason> {
    n.shape(v)?.try_into().map_err(|_| Reason(format!("needs 4 dimensions, found {}", n.ty(v))))
}

/// A boolean mask as a term to add: 0 where it is true, else minus infinity.
fn added(n: &mut NodeContext, mask: ValueId) -> Result<ValueId, Reason> {
    if n.ty(mask).dtype != DType::Bool {
        return Ok(mask);
    }
    let (keep, drop) = (n.scalar("keep", 0.0), n.scalar("drop", f32::NEG_INFINITY));
    n.node("mask", Select {}, &[mask, keep, drop])
}

pub(super) fn attention(n: &mut NodeContext) -> Result<(), Reason> {
    let (q, k, v) = (n.plain(0)?, n.plain(1)?, n.plain(2)?);
    let flat = n.ty(q).rank() == 3;
    let q = heads(n, "q", q, "q_num_heads")?;
    let (mut k, mut v) = (heads(n, "k", k, "kv_num_heads")?, heads(n, "v", v, "kv_num_heads")?);
    let mut past = 0;
    let pasts = [n.has_input(4), n.has_input(5)];
    if pasts[0] != pasts[1] {
        return Err("its past_key and past_value, operands 4 and 5, must be given together".into());
    }
    if pasts[0] {
        let (pk, pv) = (n.plain(4)?, n.plain(5)?);
        past = image(n, pk)?[2];
        k = n.node("k/present", Concat { axis: 2 }, &[pk, k])?;
        v = n.node("v/present", Concat { axis: 2 }, &[pv, v])?;
    }
    let present = [k, v];
    let [batch, count, rows, depth] = image(n, q)?;
    let (keys, values) = (shared(n, "keys", k, count)?, shared(n, "values", v, count)?);
    let columns = image(n, keys)?[2];
    let scale = n.float("scale").unwrap_or(1.0 / (depth as f32).sqrt()).sqrt();
    let scale = n.scalar("scale", scale);
    let q = n.binary("q/scaled", BinaryKind::Mul, q, scale)?;
    let keys = n.binary("k/scaled", BinaryKind::Mul, keys, scale)?;
    let keys = n.node("k/transpose", Transpose { perm: vec![0, 1, 3, 2] }, &[keys])?;
    let product = n.node("scores", MatMul {}, &[q, keys])?;
    let mut scores = product;
    let cap = n.float("softcap").unwrap_or(0.0);
    if cap != 0.0 {
        let cap = n.scalar("softcap", cap);
        let v = n.binary("cap/div", BinaryKind::Div, scores, cap)?;
        let v = n.unary("cap/tanh", UnaryKind::Tanh, v)?;
        scores = n.binary("cap", BinaryKind::Mul, v, cap)?;
    }
    let capped = scores;
    if n.has_input(3) {
        let mask = n.plain(3)?;
        let mut mask = added(n, mask)?;
        let mut shape = n.shape(mask)?;
        let wide = shape.last().copied().unwrap_or(columns);
        // A mask can leave out keys at the end, which then do not count.
        if wide < columns {
            let mut after = vec![0; shape.len()];
            after[shape.len() - 1] = columns - wide;
            let op = crate::graph::op::Pad { before: vec![0; shape.len()], after, value: f32::NEG_INFINITY };
            mask = n.node("mask/pad", op, &[mask])?;
            shape = n.shape(mask)?;
        }
        if shape.len() == 3 {
            shape.insert(0, 1);
            mask = n.reshape("mask/shape", mask, &shape)?;
        }
        scores = n.node("masked", Add {}, &[scores, mask])?;
    }
    if n.int("is_causal").unwrap_or(0) != 0 {
        let seen = |i: usize| if i % columns <= i / columns + past { 0.0 } else { f32::NEG_INFINITY };
        let mask = n.table("causal", &[rows, columns], seen)?;
        scores = n.node("causal", Add {}, &[scores, mask])?;
    }
    if n.has_input(6) {
        // Keys beyond the length of their batch do not count.
        let lengths = n.plain(6)?;
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
    let inside = match n.int("qk_matmul_output_mode").unwrap_or(0) {
        0 => product,
        1 => capped,
        2 => scores,
        3 => weights,
        other => return Err(format!("unknown qk_matmul_output_mode {other}; use 0 to 3").into()),
    };
    n.outputs(&[y, present[0], present[1], inside])
}

/// `size` elements of the last dimension from `start` on, `step` apart.
fn columns(
    n: &mut NodeContext,
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

pub(super) fn rotary(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.plain(0)?;
    let given = n.shape(data)?;
    let (mut cos, mut sin) = (n.plain(1)?, n.plain(2)?);
    if n.has_input(3) {
        let places = n.plain(3)?;
        cos = n.node("cos", Gather { axis: 0 }, &[cos, places])?;
        sin = n.node("sin", Gather { axis: 0 }, &[sin, places])?;
    }
    // [B, S, heads, D] for flat data, else [B, heads, S, D]; the tables have no heads.
    let count = n.int("num_heads");
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
    let turned = usize::try_from(n.int("rotary_embedding_dim").unwrap_or(0)).unwrap_or(0);
    let turned = if turned == 0 { depth } else { turned };
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
    let interleaved = n.int("interleaved").unwrap_or(0) != 0;
    let (second, step) = if interleaved { (1, 2) } else { (half, 1) };
    let a = columns(n, "a", x, 0, half, step)?;
    let b = columns(n, "b", x, second, half, step)?;
    let times = |n: &mut NodeContext, x, t| n.binary("turn", BinaryKind::Mul, x, t);
    let (ac, bs, a_sin, bc) = (times(n, a, cos)?, times(n, b, sin)?, times(n, a, sin)?, times(n, b, cos)?);
    let first = n.binary("first", BinaryKind::Sub, ac, bs)?;
    let second = n.add("second", a_sin, bc)?;
    let mut parts = if interleaved {
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
    let v = n.reshape("", v, &given)?;
    n.output(v)
}
