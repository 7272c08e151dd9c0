//! Products of gemm.

use tilewright_hw::config::HwConfig;

use super::entry::Entry;
use super::instruction::{Candidate, Instruction};
use crate::codegen::accel::mapped;
use crate::tir::{Intrinsic, TirError};

/// Returns the candidate of gemm for a form of its entries.
pub fn gemm(config: &HwConfig, entry: Entry) -> Option<Candidate> {
    Some(Candidate { intrinsic: gemm_intrinsic(config, entry).ok()?, instruction: Instruction::Gemm })
}

/// Gemm's micro-op: `acc[batch, block_out] += inp[batch, block_in] x wgt[block_out, block_in]`.
///
/// # Errors
/// None for a legal configuration.
pub fn gemm_intrinsic(config: &HwConfig, entry: Entry) -> Result<Intrinsic, TirError> {
    let (bi, bo) = (config.block_in, config.block_out);
    let (acc, inp) = (entry.at("o"), entry.at("i"));
    let body = format!(
        "for o in {bo} {{ for i in {bi} {{ block mac reduce(i) {{ acc{acc} = acc{acc} + i32(inp{inp}) * i32(wgt[o, i]) }} }} }}"
    );
    let text = format!(
        "intrinsic gemm {{ param inp: i8{} in inp param wgt: i8[{bo}, {bi}] in wgt param acc: i32{} in acc {} }}",
        entry.dims(bi),
        entry.dims(bo),
        entry.around(&body)
    );
    mapped::intrinsic(&text)
}
