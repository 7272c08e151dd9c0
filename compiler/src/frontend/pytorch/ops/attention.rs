//! Attention.

use crate::frontend::pytorch::context::Value;
use crate::frontend::pytorch::node::NodeContext;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::attention::{self, Attention};
use crate::graph::ValueId;

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
            let own = n.shape(mask)?;
            // A mask of three dimensions has the batch in front, as three-dimensional queries have.
            Some(if own.len() == 3 && shape.len() == 3 { to_four(n, "mask", mask, &own)? } else { mask })
        }
        None => None,
    };
    let scale = n.number("scale")?.map(|scale| scale as f32);
    let is_causal = n.flag("is_causal", false)?;
    let of = Attention { q, k, v, past: None, mask, lengths: None, heads: [None; 2], scale, is_causal, cap: 0.0 };
    let attended = attention::attention(n, of)?;
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
