//! Products of the vector unit: taps of depthwise convolutions.

use tilewright_hw::isa::{Descriptor, VecOp, VecSrc};
use tilewright_hw::num::Rounding;

use super::entry::{Entry, layouts};
use super::instruction::{Candidate, Instruction, VectorCall};
use super::stored::StoredValue;
use super::text::intrinsic;
use crate::te::{BinOp, DType, Expr};
use crate::tir::{Intrinsic, Scope, TirError};
use tilewright_hw::config::HwConfig;

impl StoredValue<'_> {
    /// Returns the candidates of a product that is added to acc.
    ///
    /// # Errors
    /// The block computes something else.
    pub(super) fn mac(&self) -> Result<Vec<Candidate>, String> {
        const FORM: &str = "mac needs a value of the form SUM + i32(A) * i32(W), or SUM + i32(A) * (i32(W) - ZERO), with \
                            SUM in acc, A int8 in inp, and W a copy in param of an input of taps, i8[..., TAPS, block_out]";
        let Expr::Binary(BinOp::Add, _, product) = self.value else { return Err(FORM.into()) };
        let Expr::Binary(BinOp::Mul, data, tap) = product.as_ref() else { return Err(FORM.into()) };
        let scope = |e: &Expr| match e {
            Expr::Cast(DType::I32, load) => match load.as_ref() {
                Expr::Load { buffer, dtype: DType::I8, .. } => self.f.buffer(buffer).map(|b| b.scope),
                _ => None,
            },
            _ => None,
        };
        let (tap, zero_point) = match tap.as_ref() {
            Expr::Binary(BinOp::Sub, tap, zero) => match zero.as_ref() {
                Expr::Int(zero, _) => (tap.as_ref(), i8::try_from(*zero).map_err(|_| FORM)?),
                _ => return Err(FORM.into()),
            },
            tap => (tap, 0),
        };
        if [scope(data), scope(tap), Some(self.dst.scope)] != [Scope::Inp, Scope::Param, Scope::Acc].map(Some) {
            return Err(FORM.into());
        }
        let call = VectorCall {
            op: VecOp::Mac,
            mode: Rounding::Double,
            dst: self.dst()?,
            a: VecSrc::Inp,
            b: VecSrc::Param,
            descriptor: Some(Descriptor { zero_b: zero_point, ..Descriptor::default() }),
            params: [Some(0), Some(1), Some(2)],
            table: None,
            combines: None,
        };
        let candidate = |entry| {
            let intrinsic = mac_intrinsic(self.config, entry, zero_point).map_err(|e| e.to_string())?;
            Ok(Candidate { intrinsic, instruction: Instruction::Vector(call.clone()) })
        };
        layouts(self.config).map(candidate).collect()
    }
}

/// The vector unit's micro-op for a tap: `acc[batch, block_out] += data[batch, block_out] * (taps[block_out] -
/// zero_point)`.
///
/// # Errors
/// None for a legal configuration.
pub fn mac_intrinsic(config: &HwConfig, entry: Entry, zero_point: i8) -> Result<Intrinsic, TirError> {
    let bo = config.block_out;
    let at = entry.at("o");
    let tap = match zero_point {
        0 => "i32(taps[o])".to_string(),
        zero => format!("(i32(taps[o]) - {zero}i32)"),
    };
    let body = format!("for o in {bo} {{ block lane {{ acc{at} = acc{at} + i32(data{at}) * {tap} }} }}");
    intrinsic(&format!(
        "intrinsic mac {{ param acc: i32{0} in acc param data: i8{0} in inp param taps: i8[{bo}] in param {1} }}",
        entry.dims(bo),
        entry.around(&body)
    ))
}
