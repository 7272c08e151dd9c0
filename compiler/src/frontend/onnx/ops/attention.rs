//! Attention and RotaryEmbedding.

use crate::frontend::onnx::node::NodeContext;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::attention::{self, Attended, Attention, Rotary};

pub(super) fn attention(n: &mut NodeContext) -> Result<(), Reason> {
    let (q, k, v) = (n.plain(0)?, n.plain(1)?, n.plain(2)?);
    let past = match [n.optional(4)?, n.optional(5)?] {
        [Some(keys), Some(values)] => Some([keys, values]),
        [None, None] => None,
        _ => return Err("its past_key and past_value, operands 4 and 5, must be given together".into()),
    };
    let of = Attention {
        q,
        k,
        v,
        past,
        mask: n.optional(3)?,
        lengths: n.optional(6)?,
        heads: [n.int("q_num_heads"), n.int("kv_num_heads")],
        scale: n.float("scale"),
        is_causal: n.int("is_causal").unwrap_or(0) != 0,
        cap: n.float("softcap").unwrap_or(0.0),
    };
    let Attended { y, present, scores, weights } = attention::attention(n, of)?;
    let inside = match n.int("qk_matmul_output_mode").unwrap_or(0) {
        0 => scores[0],
        1 => scores[1],
        2 => scores[2],
        3 => weights,
        other => return Err(format!("unknown qk_matmul_output_mode {other}; use 0 to 3").into()),
    };
    n.outputs(&[y, present[0], present[1], inside])
}

pub(super) fn rotary(n: &mut NodeContext) -> Result<(), Reason> {
    let of = Rotary {
        data: n.plain(0)?,
        tables: [n.plain(1)?, n.plain(2)?],
        places: n.optional(3)?,
        heads: n.int("num_heads"),
        turned: usize::try_from(n.int("rotary_embedding_dim").unwrap_or(0)).unwrap_or(0),
        is_interleaved: n.int("interleaved").unwrap_or(0) != 0,
    };
    let v = attention::rotary(n, of)?;
    n.output(v)
}
