//! LinearAttention and CausalConvWithState.

use crate::frontend::onnx::node::NodeContext;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::linear_attention::{self, LinearAttention, causal_convolution};

pub(super) fn linear_attention(n: &mut NodeContext) -> Result<(), Reason> {
    n.without_effect("chunk_size");
    let heads = |n: &NodeContext, name: &str| {
        let count = n.int(name).and_then(|count| usize::try_from(count).ok()).filter(|count| *count > 0);
        count.ok_or_else(|| Reason(format!("its attribute `{name}` must be above 0")))
    };
    let (query_heads, heads) = (heads(n, "q_num_heads")?, heads(n, "kv_num_heads")?);
    let rule = n.word("update_rule").unwrap_or_else(|| "gated_delta".into());
    let (gated, delta) = match rule.as_str() {
        "linear" => (false, false),
        "gated" => (true, false),
        "delta" => (false, true),
        "gated_delta" => (true, true),
        other => return Err(format!("unknown update_rule `{other}`; use linear, gated, delta or gated_delta").into()),
    };
    let (query, key, value) = (n.plain(0)?, n.plain(1)?, n.plain(2)?);
    let past = n.optional(3)?;
    let needed = |n: &mut NodeContext, i: usize, is_needed: bool| {
        let given = n.optional(i)?;
        if is_needed && given.is_none() {
            return Err(Reason(format!("operand {i} is missing; its update_rule {rule} needs it")));
        }
        Ok(given.filter(|_| is_needed))
    };
    let (decay, beta) = (needed(n, 4, gated)?, needed(n, 5, delta)?);
    let scale = n.float("scale").filter(|scale| *scale != 0.0);
    let of = LinearAttention { query, key, value, past, decay, beta, query_heads, heads, scale };
    let results = linear_attention::linear_attention(n, of)?;
    n.outputs(&results)
}

pub(super) fn causal_conv(n: &mut NodeContext) -> Result<(), Reason> {
    let (data, weight) = (n.plain(0)?, n.input(1)?);
    let (bias, past) = (n.optional(2)?, n.optional(3)?);
    let silu = match n.word("activation").as_deref() {
        None | Some("none") => false,
        Some("silu" | "swish") => true,
        Some(other) => return Err(format!("unknown activation `{other}`; use silu, swish or none").into()),
    };
    let results = causal_convolution(n, data, weight, bias, past, silu)?;
    n.outputs(&results)
}
