//! Pad, in all modes.

use crate::frontend::onnx::node::NodeContext;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::pad::{self, Border};
use crate::graph::DType;

pub(super) fn pad(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    let rank = n.ty(data).rank();
    let (mode, late) = (n.word("mode").unwrap_or_else(|| "constant".into()), n.opset() >= 11);
    let pads = if late { n.integers(1)? } else { n.ints("pads").ok_or("it has no pads")?.to_vec() };
    let axes: Vec<usize> = if late && n.has_input(3) {
        n.integers(3)?.iter().map(|&a| n.axis(a, rank)).collect::<Result<_, _>>()?
    } else {
        (0..rank).collect()
    };
    if pads.len() != 2 * axes.len() {
        return Err(format!("its pads must have {} values, found {}", 2 * axes.len(), pads.len()).into());
    }
    let mut ends = vec![(0i64, 0i64); rank];
    for (i, &a) in axes.iter().enumerate() {
        ends[a] = (pads[i], pads[i + axes.len()]);
    }
    pad::check(&ends)?;
    if mode != "constant" {
        // Only constant mode uses the value.
        if late {
            n.has_input(2);
        } else {
            n.without_effect("value");
        }
    }
    let v = match mode.as_str() {
        "constant" => {
            let value = match late {
                false => n.float("value").unwrap_or(0.0),
                true if n.has_input(2) && matches!(n.ty(data).dtype, DType::I32 | DType::I64) => {
                    let value = n.whole(2)?;
                    // The graph's operator holds a float.
                    if value as f32 as i64 != value {
                        return Err(
                            format!("a padding value of {value} is not supported; use one of up to 24 bits").into()
                        );
                    }
                    value as f32
                }
                true if n.has_input(2) => n.number(2)? as f32,
                true => 0.0,
            };
            let value = if n.unsigned(data) { value - 128.0 } else { value };
            pad::constant(n, "", data, &ends, value)?
        }
        "edge" => pad::bordered(n, data, &ends, Border::Edge)?,
        "wrap" => pad::bordered(n, data, &ends, Border::Wrap)?,
        "reflect" => pad::bordered(n, data, &ends, Border::Reflect)?,
        other => return Err(format!("unknown mode `{other}`; use constant, edge, reflect or wrap").into()),
    };
    n.output_like(v, data)
}
