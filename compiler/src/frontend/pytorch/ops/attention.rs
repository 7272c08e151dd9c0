//! Attention.

use crate::frontend::pytorch::context::Value;
use crate::frontend::pytorch::node::NodeContext;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::attention::{self, Attention};
use crate::graph::op::{Expand, ReduceKind, Select};
use crate::graph::{DType, ValueId};

/// Data as `[B, heads, S, D]`: dimensions in front are joined, or added.
fn four(n: &mut NodeContext, name: &str) -> Result<(ValueId, Vec<usize>), Reason> {
    let v = n.tensor(name)?;
    let shape = n.shape(v)?;
    let v = to_four(n, name, v, &shape)?;
    Ok((v, shape))
}

fn to_four(n: &mut NodeContext, name: &str, v: ValueId, shape: &[usize]) -> Result<ValueId, Reason> {
    let to = match shape {
        [s, d] => vec![1, 1, *s, *d],
        [b, s, d] => vec![*b, 1, *s, *d],
        [.., h, s, d] => vec![shape[..shape.len() - 3].iter().product(), *h, *s, *d],
        _ => return Err(format!("its {name} must have 2 dimensions or more, found {}", n.ty(v)).into()),
    };
    n.reshape(name, v, &to)
}

pub(super) fn attention(n: &mut NodeContext) -> Result<Value, Reason> {
    n.ignore(&["enable_gqa"]);
    if n.number("dropout_p")?.unwrap_or(0.0) != 0.0 {
        return Err("it drops elements, as in training; export the module after `eval()`".into());
    }
    let ((q, shape), (k, _), (v, values)) = (four(n, "query")?, four(n, "key")?, four(n, "value")?);
    let mask = match n.optional("attn_mask")? {
        Some(mask) => {
            let mut own = n.shape(mask)?;
            let keys = n.shape(k)?[2];
            let mut mask = mask;
            if let Some(last) = own.last_mut().filter(|last| **last == 1 && keys != 1) {
                // One column is for all keys.
                *last = keys;
                mask = n.node("mask/wide", Expand { shape: own.clone() }, &[mask])?;
            }
            if own.len() > 4 {
                return Err(format!("its mask must have up to 4 dimensions, found {}", n.ty(mask)).into());
            }
            // A mask of three dimensions has the batch in front, as three-dimensional queries have.
            Some(if own.len() == 3 && shape.len() == 3 { to_four(n, "mask", mask, &own)? } else { mask })
        }
        None => None,
    };
    let scale = n.number("scale")?.map(|scale| scale as f32);
    if let Some(scale) = scale.filter(|scale| *scale < 0.0) {
        return Err(format!("its scale {scale} must not be negative").into());
    }
    let is_causal = n.flag("is_causal", false)?;
    let of = Attention { q, k, v, past: None, mask, lengths: None, heads: [None; 2], scale, is_causal, cap: 0.0 };
    let mut attended = attention::attention(n, of)?;
    if let Some(mask) = mask.filter(|&mask| n.ty(mask).dtype == DType::Bool && n.ty(mask).rank() >= 2) {
        // A query that sees no key has the result 0.
        let rank = n.ty(mask).rank();
        let number = n.cast("mask/number", mask, DType::I32)?;
        let any = n.reduce("mask/any", ReduceKind::Max, &[rank - 1], true, number)?;
        let any = n.cast("mask/some", any, DType::Bool)?;
        let zero = n.zero_like(attended.y)?;
        attended.y = n.node("seen", Select {}, &[any, attended.y, zero])?;
    }
    let mut out = shape.clone();
    if let (Some(last), Some(depth)) = (out.last_mut(), values.last()) {
        *last = *depth;
    }
    Ok(n.reshape("shape", attended.y, &out)?.into())
}

/// The form of programs after `run_decompositions()` for CPUs; what training needs is left out.
pub(super) fn flash(n: &mut NodeContext) -> Result<Value, Reason> {
    let v = attention(n)?;
    Ok(Value::List(vec![v, Value::None]))
}
