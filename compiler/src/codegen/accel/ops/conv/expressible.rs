//! Which convolutions run as scheduled tensor expressions, and where these have their operands.

use super::depthwise::plan::is_shared;
use super::epilogue::Epilogue;
use super::op::Conv;
use super::rest::array_subtracts;
use crate::codegen::accel::layer::Layer;
use tilewright_hw::config::{HwConfig, Mem};

/// Whether the layer runs as a scheduled tensor expression.
pub fn is_expressible(conv: &Conv, layer: &Layer, config: &HwConfig) -> bool {
    let subtracted = conv.rest.is_empty() || array_subtracts(conv, config).is_some();
    // The rest of an entry with data is filled with zeros.
    let input = layer.input_view();
    let filled = input.has_windows() && !input.c.is_multiple_of(config.block() as usize);
    let padded = config.dma_pad || conv.pad_value == 0 || !filled;
    // These take fewer cycles with the second operands in the other half of out.
    let pair = conv.epilogue.iter().any(|step| matches!(step, Epilogue::Pair { .. }));
    let kept_pair = pair && layer.on_chip.output.is_some();
    // A depthwise layer that both units can share takes fewer cycles in tiles by hand if the array gets all taps.
    let views = [input, conv.results(layer)];
    let shared = conv.groups > 1 && is_shared(conv, views, layer.on_chip, config);
    padded && !kept_pair && subtracted && !shared && conv.pooling().is_none()
}

/// Returns the memories that can hold the second operands of element-wise operators on a product's results.
///
/// A bank has one read port. With the operands in a bank of inp that holds no data of the product, the vector unit reads
/// one bank of out, and the results before it are stored from the other one at the same time. With the operands in out,
/// the product can use all of inp.
pub fn operand_memories(conv: &Conv, layer: &Layer, config: &HwConfig) -> &'static [Mem] {
    let separate = config.vector_reaches_inp() && config.inp_banks > 1;
    let operands = conv.epilogue.iter().any(|step| matches!(step, Epilogue::Pair { .. }));
    if operands && separate && is_expressible(conv, layer, config) { &[Mem::Inp, Mem::Out] } else { &[Mem::Out] }
}
