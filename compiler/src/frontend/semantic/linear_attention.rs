//! Attention whose state does not grow with the sequence, and the causal convolution in front of it.

use super::SemanticBuilder;
use super::flow::Step;
use super::movement::part;
use crate::frontend::reason::Reason;
use crate::graph::op::{BinaryKind, Concat, Conv2d, Gather, Layout, MatMul, Transpose, UnaryKind};
use crate::graph::{DType, TensorType, ValueId};

/// Linear attention over `[batch, steps, heads * size]`. With a state S of each head, `[key size, value size]`, a step
/// is `S = d * S`, `S = S + k (x) u`, and gives `scale * q S`. The decay d is `exp(decay)`, or 1. The update u is v, or,
/// with `beta`, `beta * (v - k S)`.
#[derive(Debug, Clone, Copy)]
pub struct LinearAttention {
    pub query: ValueId,
    pub key: ValueId,
    pub value: ValueId,
    /// `[batch, heads, key size, value size]`; zeros if there is none.
    pub past: Option<ValueId>,
    /// Logarithms of decays, one for each head or for each element of the key.
    pub decay: Option<ValueId>,
    /// One for each head, or one for all.
    pub beta: Option<ValueId>,
    pub query_heads: usize,
    pub heads: usize,
    /// The inverse root of the key size if there is none.
    pub scale: Option<f32>,
}

/// The attention's result, `[batch, steps, query heads * value size]`, and the last state.
pub fn linear_attention(n: &mut SemanticBuilder, of: LinearAttention) -> Result<[ValueId; 2], Reason> {
    let (query_heads, heads) = (of.query_heads, of.heads);
    let shapes = [of.query, of.key, of.value].map(|v| n.shape(v));
    let [q, k, v] = shapes;
    let (q, k, v) = (q?, k?, v?);
    let (&[batch, steps, q_size], &[.., k_size], &[.., v_size]) = (q.as_slice(), k.as_slice(), v.as_slice()) else {
        return Err("its query, key and value must have 3 dimensions".into());
    };
    let suits = heads > 0 && query_heads > 0 && query_heads % heads == 0 && k_size % heads == 0 && v_size % heads == 0;
    if !suits || k.len() != 3 || v.len() != 3 || q_size % query_heads != 0 || q_size / query_heads != k_size / heads {
        return Err(format!(
            "its {query_heads} and {heads} heads do not suit {}, {} and {}",
            n.ty(of.query),
            n.ty(of.key),
            n.ty(of.value)
        )
        .into());
    }
    let (k_size, v_size, group) = (k_size / heads, v_size / heads, query_heads / heads);
    let scale = of.scale.unwrap_or_else(|| 1.0 / (k_size as f32).sqrt());
    // Queries of a group share their head's state.
    let query = n.reshape("query", of.query, &[batch, steps, heads, group, k_size])?;
    let scale = n.scalar("scale", scale);
    let query = n.binary("query/scaled", BinaryKind::Mul, query, scale)?;
    let key = n.reshape("key", of.key, &[batch, steps, heads, k_size, 1])?;
    let value = n.reshape("value", of.value, &[batch, steps, heads, 1, v_size])?;
    let mut captured = vec![query, key, value];
    if let Some(decay) = of.decay {
        let each = n.ty(decay).element_count().unwrap_or(0) / (batch * steps * heads).max(1);
        let decay = n.reshape("decay", decay, &[batch, steps, heads, each, 1])?;
        captured.push(n.unary("decay/exp", UnaryKind::Exp, decay)?);
    }
    if let Some(beta) = of.beta {
        let each = n.ty(beta).element_count().unwrap_or(0) / (batch * steps).max(1);
        captured.push(n.reshape("beta", beta, &[batch, steps, each, 1, 1])?);
    }
    let past = match of.past {
        Some(past) => past,
        None => n.table("past", &[batch, heads, k_size, v_size], |_| 0.0f32)?,
    };
    let has = (of.decay.is_some(), of.beta.is_some());
    let results = n.looped(steps, &[past], &captured, |n, at, state, all| {
        let mut own = Vec::with_capacity(all.len());
        for &v in all {
            own.push(n.node("now", Gather { axis: 1 }, &[v, at])?);
        }
        let (query, key) = (own[0], own[1]);
        let (mut state, mut update) = (state[0], own[2]);
        if has.0 {
            state = n.binary("decayed", BinaryKind::Mul, state, own[3])?;
        }
        if has.1 {
            let row = n.node("key/row", Transpose { perm: vec![0, 1, 3, 2] }, &[key])?;
            let known = n.node("known", MatMul {}, &[row, state])?;
            let new = n.binary("new", BinaryKind::Sub, update, known)?;
            update = n.binary("update", BinaryKind::Mul, own[own.len() - 1], new)?;
        }
        let product = n.binary("outer", BinaryKind::Mul, key, update)?;
        let state = n.add("state", state, product)?;
        let out = n.node("out", MatMul {}, &[query, state])?;
        Ok(Step { carried: vec![state], collected: vec![out] })
    })?;
    // [steps, batch, heads, group, value size]
    let out = n.node("out/batch", Transpose { perm: vec![1, 0, 2, 3, 4] }, &[results[1]])?;
    Ok([n.reshape("", out, &[batch, steps, query_heads * v_size])?, results[0]])
}

/// The convolution of each channel of `[batch, channels, length]` with the elements up to each place, and the last
/// elements, which the next part of the sequence begins with. `past` are those of the part before; zeros if there is none.
pub fn causal_convolution(
    n: &mut SemanticBuilder,
    data: ValueId,
    weight: ValueId,
    bias: Option<ValueId>,
    past: Option<ValueId>,
    silu: bool,
) -> Result<[ValueId; 2], Reason> {
    let (shape, kernel) = (n.shape(data)?, n.shape(weight)?);
    let (&[batch, channels, length], &[groups, 1, k @ (1..)]) = (shape.as_slice(), kernel.as_slice()) else {
        return Err(format!("its weight {} does not suit its data {}", n.ty(weight), n.ty(data)).into());
    };
    if groups != channels {
        return Err(format!("its weight has {groups} channels, but its data have {channels}").into());
    }
    let all = if k == 1 {
        data
    } else {
        let past = match past {
            Some(past) => past,
            None => n.table("past", &[batch, channels, k - 1], |_| 0.0f32)?,
        };
        let wanted = TensorType::new(DType::F32, &[batch, channels, k - 1]);
        if *n.ty(past) != wanted {
            return Err(format!("its past state must be {wanted}, found {}", n.ty(past)).into());
        }
        n.node("all", Concat { axis: 2 }, &[past, data])?
    };
    let image = n.reshape("image", all, &[batch, channels, 1, length + k - 1])?;
    let weight = n.weight_image(weight)?;
    let weight = n.transposed("weight", weight, &[0, 2, 3, 1])?;
    let op = Conv2d {
        strides: [1, 1],
        pads: [0; 4],
        dilations: [1, 1],
        groups: channels,
        layout: Layout::Nchw,
        data_zero_point: 0,
        weight_zero_point: 0,
    };
    let operands: Vec<ValueId> = [image, weight].into_iter().chain(bias).collect();
    let v = n.node("conv", op, &operands)?;
    let mut v = n.reshape("line", v, &shape)?;
    if silu {
        v = n.unary("", UnaryKind::Silu, v)?;
    }
    let present = part(n, "present", all, 2, length, k - 1);
    let present = if k == 1 { n.table("present", &[batch, channels, 0], |_| 0.0f32) } else { present };
    Ok([v, present?])
}
