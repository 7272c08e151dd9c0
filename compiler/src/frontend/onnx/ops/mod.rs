//! The registry: operators that can be imported, one function each.

mod conv;
mod elementwise;
mod gemm;
mod pool;
mod quantize;
mod shape;

use super::node::{NodeContext, Reason};
use crate::graph::TensorType;
use crate::graph::op::Layout;

type Import = fn(&mut NodeContext) -> Result<(), Reason>;

const NCHW: Layout = Layout::Nchw;

const REGISTRY: &[(&str, Import)] = &[
    ("Add", elementwise::add),
    ("AveragePool", pool::average_pool),
    ("Clip", elementwise::clip),
    ("Constant", shape::constant),
    ("Conv", conv::conv),
    ("DequantizeLinear", quantize::dequantize_linear),
    ("Flatten", shape::flatten),
    ("Gemm", gemm::gemm),
    ("GlobalAveragePool", pool::global_average_pool),
    ("Identity", shape::identity),
    ("MatMul", gemm::matmul),
    ("MaxPool", pool::max_pool),
    ("Pad", shape::pad),
    ("QuantizeLinear", quantize::quantize_linear),
    ("Relu", elementwise::relu),
    ("Reshape", shape::reshape),
    ("Softmax", elementwise::softmax),
    ("Transpose", shape::transpose),
];

/// The function that imports an operator.
pub(super) fn find(op: &str) -> Option<Import> {
    REGISTRY.iter().find(|(n, _)| *n == op).map(|(_, f)| *f)
}

/// Names of the operators that can be imported.
pub(super) fn names() -> Vec<&'static str> {
    REGISTRY.iter().map(|(n, _)| *n).collect()
}

/// A sliding window as the attributes of convolution and pooling give it.
struct Window {
    strides: [usize; 2],
    dilations: [usize; 2],
    /// Top, left, bottom, right.
    pads: [usize; 4],
    /// True where rounding up added padding behind.
    ceil: bool,
}

fn window(n: &NodeContext, data: &TensorType, kernel: [usize; 2]) -> Result<Window, Reason> {
    if data.rank() != 4 {
        return Err(format!("its data must have 4 dimensions, found {data}").into());
    }
    let strides = n.sizes::<2>("strides", 1)?;
    let dilations = n.sizes::<2>("dilations", 1)?;
    let mut pads = n.sizes::<4>("pads", 0)?;
    if strides.contains(&0) || dilations.contains(&0) || kernel.contains(&0) {
        return Err("its kernel, strides and dilations must be positive".into());
    }
    let auto = n.word("auto_pad").unwrap_or_default();
    let round_up = n.int("ceil_mode").unwrap_or(0) != 0;
    let mut ceil = false;
    for i in 0..2 {
        let size = data.dims[2 + i].known();
        let reach = (kernel[i] - 1).checked_mul(dilations[i]).and_then(|r| r.checked_add(1));
        let reach = reach.ok_or("its kernel is too large")?;
        match auto.as_str() {
            "" | "NOTSET" => {}
            "VALID" => (pads[i], pads[i + 2]) = (0, 0),
            "SAME_UPPER" | "SAME_LOWER" => {
                let size = size.ok_or("height and width must be known")?;
                let total = (size.div_ceil(strides[i]).max(1) - 1).saturating_mul(strides[i]).saturating_add(reach);
                let total = total.saturating_sub(size);
                let (small, large) = (total / 2, total - total / 2);
                (pads[i], pads[i + 2]) = if auto == "SAME_UPPER" { (small, large) } else { (large, small) };
            }
            other => return Err(format!("its auto_pad `{other}` is not known").into()),
        }
        if round_up {
            let size = size.ok_or("height and width must be known")?;
            let padded = size.saturating_add(pads[i]).saturating_add(pads[i + 2]);
            let over = padded.checked_sub(reach).ok_or("its kernel is larger than the padded image")? % strides[i];
            // One more window, where it begins inside the image or the padding in front.
            let start = (padded - reach - over).saturating_add(strides[i]);
            if over > 0 && start < size.saturating_add(pads[i]) {
                pads[i + 2] = pads[i + 2].saturating_add(strides[i] - over);
                ceil = true;
            }
        }
    }
    Ok(Window { strides, dilations, pads, ceil })
}
