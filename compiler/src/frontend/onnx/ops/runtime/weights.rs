//! Products with weights of a few bits.

use crate::frontend::onnx::node::NodeContext;
use crate::frontend::packed_bits;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::product::matrices;
use crate::graph::op::Dequantize;
use crate::graph::{DType, TensorData};

/// `MatMulNBits`: data, the weights of each output in blocks, which have a scale and a zero point each, zero points,
/// the block of each row, bias. Weights with one block for each output are those of a quantized product.
pub(in crate::frontend::onnx) fn matmul_n_bits(n: &mut NodeContext) -> Result<(), Reason> {
    let size = |n: &NodeContext, name: &str| -> Result<usize, Reason> {
        let given = n.int(name).and_then(|v| usize::try_from(v).ok()).filter(|v| (1..1 << 31).contains(v));
        given.ok_or_else(|| Reason(format!("its {name} must be positive")))
    };
    let (depth, outputs, block) = (size(n, "K")?, size(n, "N")?, size(n, "block_size")?);
    let bits = n.int("bits").unwrap_or(4);
    let width = usize::try_from(bits).ok().filter(|width| [2, 4, 8].contains(width));
    let width = width.ok_or_else(|| Reason(format!("its bits of {bits} are not supported; use 2, 4 or 8")))?;
    let data = n.plain(0)?;
    let blocks = depth.div_ceil(block);
    let count = outputs.checked_mul(blocks).ok_or("its weights are too large")?;
    let (packed, scales) = (n.constant_input(1)?, n.floats(2)?);
    let TensorData::U8(packed) = packed.data() else {
        return Err(format!("its weights must be u8, found {}", packed.ty()).into());
    };
    // Each block begins a byte.
    let bytes = block.checked_mul(width).map(|bits| bits.div_ceil(8)).ok_or("its block_size is too large")?;
    if count.checked_mul(bytes) != Some(packed.len()) || scales.len() != count {
        let (found, scales) = (packed.len(), scales.len());
        return Err(format!(
            "it needs {count} blocks of {bytes} bytes, each with a scale, found {found} bytes and {scales} scales"
        )
        .into());
    }
    let zeros = zero_points(n, width, outputs, blocks)?;
    let groups = if n.has_input(4) { Some(n.integers(4)?) } else { None };
    if groups.as_ref().is_some_and(|g| g.len() < depth || g.iter().any(|&g| g < 0 || g as usize >= blocks)) {
        return Err(format!("its operand 4 must give one of {blocks} blocks for each of {depth} rows").into());
    }
    let quantized = |output: usize, row: usize| {
        let at = (output * blocks + row / block) * bytes;
        packed_bits::unsigned(&packed[at..at + bytes], width, row % block)
    };
    let shape = [outputs, depth];
    let whole = zeros.iter().all(|z| z.fract() == 0.0 && (0.0..256.0).contains(z));
    let weight = if blocks == 1 && whole {
        // Bytes keep their values less 128.
        let v = n.table("quantized", &shape, |i| (quantized(i / depth, i % depth) ^ 0x80).cast_signed())?;
        let zero_point = zeros.iter().map(|&z| z as i32 - 128).collect();
        n.node("weight", Dequantize { scale: scales, zero_point, axis: 0 }, &[v])?
    } else {
        n.table("weight", &shape, |i| {
            let (output, row) = (i / depth, i % depth);
            let group = groups.as_ref().map_or(row / block, |groups| groups[row] as usize);
            let of = output * blocks + group;
            (f32::from(quantized(output, row)) - zeros[of]) * scales[of]
        })?
    };
    let bias = n.optional(5)?;
    let weight = n.transposed("weight/transpose", weight, &[1, 0])?;
    let mut v = matrices(n, data, weight)?;
    if let Some(bias) = bias {
        v = n.add("", v, bias)?;
    }
    n.output(v)
}

/// The zero point of each block: packed like the weights, floats, or the middle of the range.
fn zero_points(n: &NodeContext, width: usize, outputs: usize, blocks: usize) -> Result<Vec<f32>, Reason> {
    let count = outputs * blocks;
    if !n.has_input(3) {
        return Ok(vec![(1u16 << (width - 1)).into(); count]);
    }
    let given = n.constant_input(3)?;
    let wrong =
        || Reason(format!("its zero points, operand 3, must be one for each of {count} blocks, found {}", given.ty()));
    if given.dtype() != DType::U8 {
        return Some(n.floats(3)?).filter(|zeros| zeros.len() == count).ok_or_else(wrong);
    }
    let TensorData::U8(packed) = given.data() else { return Err(wrong()) };
    // Those of each output begin a byte.
    let bytes = (blocks * width).div_ceil(8);
    if packed.len() != outputs * bytes {
        return Err(wrong());
    }
    let zero = |i: usize| packed_bits::unsigned(&packed[i / blocks * bytes..][..bytes], width, i % blocks).into();
    Ok((0..count).map(zero).collect())
}
