//! Where products have the second operands of element-wise operators on their results.

use super::epilogue::Epilogue;
use super::op::Conv;
use crate::codegen::accel::layer::Layer;
use tilewright_hw::config::{HwConfig, Mem};

/// Returns the memories that can hold the second operands of element-wise operators on a product's results.
///
/// A bank has one read port. With the operands in a bank of inp that holds no data of the product, the vector unit reads
/// one bank of out, and the results before it are stored from the other one at the same time. With the operands in out,
/// the product can use all of inp.
pub fn operand_memories(conv: &Conv, layer: &Layer, config: &HwConfig) -> &'static [Mem] {
    let separate = config.vector_reaches_inp() && config.inp_banks > 1;
    // Results that stay in inp are written there while the vector unit reads both operands.
    let kept = layer.on_chip.output.is_some();
    if has_pair(conv) && separate && !kept { &[Mem::Inp, Mem::Out] } else { &[Mem::Out] }
}

/// Whether an operator of two tensors is fused into the product.
fn has_pair(conv: &Conv) -> bool {
    conv.epilogue.iter().any(|step| matches!(step, Epilogue::Pair { .. }))
}
