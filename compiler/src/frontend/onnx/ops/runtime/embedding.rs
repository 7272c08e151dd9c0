//! The sum of embeddings at the beginning of a BERT.

use crate::frontend::onnx::node::NodeContext;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::movement::{check_indices, part};
use crate::frontend::semantic::norm::{self, Affine};
use crate::graph::op::{Gather, ReduceKind};
use crate::graph::{DType, ValueId};

/// Rows of a table.
fn rows(n: &mut NodeContext, what: &str, table: ValueId, indices: ValueId) -> Result<ValueId, Reason> {
    if n.ty(table).rank() != 2 {
        return Err(format!("its tables must have 2 dimensions, found {}", n.ty(table)).into());
    }
    check_indices(n, indices, table, 0)?;
    n.node(what, Gather { axis: 0 }, &[table, indices])
}

/// `EmbedLayerNormalization`: words, segments, then the tables of words, positions and segments, factor and term of the
/// normalization, mask, positions.
pub(in crate::frontend::onnx) fn embed(n: &mut NodeContext) -> Result<(), Reason> {
    let (words, segments) = (n.plain(0)?, n.optional(1)?);
    let &[batch, length] = n.shape(words)?.as_slice() else {
        return Err(format!("its words must have 2 dimensions, found {}", n.ty(words)).into());
    };
    let (table, positions) = (n.plain(2)?, n.plain(3)?);
    let mut sum = rows(n, "words", table, words)?;
    let at = match n.optional(8)? {
        Some(places) => rows(n, "positions", positions, places)?,
        None => {
            let most = n.shape(positions)?.first().copied().unwrap_or(0);
            if n.ty(positions).rank() != 2 || most < length {
                return Err(format!("it has {length} words, but positions for only {most}").into());
            }
            part(n, "positions", positions, 0, 0, length)?
        }
    };
    sum = n.add("sum", sum, at)?;
    if let Some(segments) = segments {
        let table = n.optional(4)?.ok_or("it has segments, but no table of them, operand 4")?;
        let part = rows(n, "segments", table, segments)?;
        sum = n.add("sum", sum, part)?;
    }
    let by = Affine { scale: n.plain(5)?, bias: Some(n.plain(6)?) };
    let epsilon = n.float("epsilon").unwrap_or(1e-12);
    let [v, ..] = norm::layer(n, sum, 2, by, epsilon)?;
    // How many words of each row count.
    let count = match n.optional(7)? {
        Some(mask) => {
            let mask = n.cast("mask", mask, DType::I32)?;
            n.reduce("mask_index", ReduceKind::Sum, &[1], false, mask)?
        }
        None => n.table("mask_index", &[batch], |_| 0i32)?,
    };
    n.outputs(&[v, count, sum])
}
