//! Products of gemm.

use tilewright_hw::config::HwConfig;

use super::entry::Entry;
use super::instruction::{Candidate, Instruction};
use super::text::intrinsic;
use crate::te::{BinOp, DType, Expr};
use crate::tir::{Block, Function, Intrinsic, Scope, TirError};

/// Returns the candidate of gemm for a form of its entries, with the zero point that the block's value subtracts from
/// weights.
///
/// # Errors
/// The configuration is built without zero points of weights.
pub fn gemm(config: &HwConfig, entry: Entry, f: &Function, block: &Block) -> Result<Candidate, String> {
    let [zero_of_data, zero_point] = subtracted(f, block);
    if zero_of_data != 0 {
        return Err(format!(
            "gemm subtracts no zero point from data; multiply the data as they are, and subtract {zero_of_data} times the \
             sum of a channel's weights from its bias"
        ));
    }
    if zero_point != 0 && !config.wgt_zp {
        return Err(format!("the configuration is built without wgt_zp, so gemm cannot subtract {zero_point}"));
    }
    let intrinsic = gemm_intrinsic(config, entry, zero_point).map_err(|e| e.to_string())?;
    Ok(Candidate { intrinsic, instruction: Instruction::Gemm { zero_point } })
}

/// Returns what a block subtracts from the data and from the weights of its product. Weights are in wgt, on either side.
fn subtracted(f: &Function, block: &Block) -> [i8; 2] {
    let is_weight = |factor: &Expr| {
        let mut found = false;
        factor.visit(&mut |e| {
            if let Expr::Load { buffer, .. } = e {
                found |= f.buffer(buffer).is_some_and(|b| b.scope == Scope::Wgt);
            }
        });
        found
    };
    let zero = |factor: &Expr| match factor {
        Expr::Binary(BinOp::Sub, _, zero) => match zero.as_ref() {
            Expr::Int(zero, _) => i8::try_from(*zero).ok(),
            _ => None,
        },
        _ => None,
    };
    let mut found = [0, 0];
    block.each_expr(&mut |e| {
        e.visit(&mut |e| {
            if let Expr::Binary(BinOp::Mul, a, b) = e
                && e.dtype() == DType::I32
            {
                let (data, weight) = if is_weight(a) { (b, a) } else { (a, b) };
                found = [zero(data).unwrap_or(found[0]), zero(weight).unwrap_or(found[1])];
            }
        });
    });
    found
}

/// Gemm's micro-op: `acc[batch, block_out] += inp[batch, block_in] x (wgt[block_out, block_in] - zero_point)`.
///
/// # Errors
/// None for a legal configuration.
pub fn gemm_intrinsic(config: &HwConfig, entry: Entry, zero_point: i8) -> Result<Intrinsic, TirError> {
    let (bi, bo) = (config.block_in, config.block_out);
    let (acc, inp) = (entry.at("o"), entry.at("i"));
    let weight = match zero_point {
        0 => "i32(wgt[o, i])".to_string(),
        zero => format!("(i32(wgt[o, i]) - {zero}i32)"),
    };
    let body = format!(
        "for o in {bo} {{ for i in {bi} {{ block mac reduce(i) {{ acc{acc} = acc{acc} + i32(inp{inp}) * {weight} }} }} }}"
    );
    let text = format!(
        "intrinsic gemm {{ param inp: i8{} in inp param wgt: i8[{bo}, {bi}] in wgt param acc: i32{} in acc {} }}",
        entry.dims(bi),
        entry.dims(bo),
        entry.around(&body)
    );
    intrinsic(&text)
}
