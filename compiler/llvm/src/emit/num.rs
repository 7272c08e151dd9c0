//! The arithmetic of `tilewright_hw::num` as instructions. Tests compare the two on many values.

use inkwell::IntPredicate;
use tilewright_compiler::te::{BinOp, DType};

use super::Emitter;
use super::value::{Emitted, IntOp, Value};

impl<'c> Emitter<'_, 'c> {
    fn c32(&self, v: i32) -> Value<'c> {
        self.context.i32_type().const_int(v as u64, true).into()
    }

    fn c64(&self, v: i64) -> Value<'c> {
        self.i64(v).into()
    }

    fn wide(&self, v: Value<'c>) -> Emitted<'c> {
        self.resize(v, self.context.i64_type(), false)
    }

    fn narrow(&self, v: Value<'c>) -> Emitted<'c> {
        self.resize(v, self.context.i32_type(), false)
    }

    pub(super) fn clamp(&self, v: Value<'c>, lo: i32, hi: i32) -> Emitted<'c> {
        let v = self.int_binary(BinOp::Max, v, self.c32(lo), DType::I32)?;
        self.int_binary(BinOp::Min, v, self.c32(hi), DType::I32)
    }

    pub(super) fn doubling_high_mul(&self, a: Value<'c>, b: Value<'c>) -> Emitted<'c> {
        let product = self.int(IntOp::Mul, self.wide(a)?, self.wide(b)?)?;
        let rounded = self.int(IntOp::Add, product, self.c64(1 << 30))?;
        let high = self.narrow(self.int(IntOp::Ashr, rounded, self.c64(31))?)?;
        let least = self.c32(i32::MIN);
        let both =
            self.int(IntOp::And, self.compare(IntPredicate::EQ, a, least)?, self.compare(IntPredicate::EQ, b, least)?)?;
        self.choose(both, self.c32(i32::MAX), high)
    }

    /// Shifts with rounding. `exponent` must be in `0..=31`.
    pub(super) fn rounding_shift(&self, x: Value<'c>, exponent: Value<'c>) -> Emitted<'c> {
        let e = self.wide(exponent)?;
        // Half of 2^0 is 0. Nothing is subtracted from a negative number then, either.
        let half = self.int(IntOp::Lshr, self.int(IntOp::Shl, self.c64(1), e)?, self.c64(1))?;
        let negative = self.compare(IntPredicate::SLT, x, self.c32(0))?;
        let some = self.compare(IntPredicate::NE, exponent, self.c32(0))?;
        let less = self.resize(self.int(IntOp::And, negative, some)?, self.context.i64_type(), true)?;
        let sum = self.int(IntOp::Sub, self.int(IntOp::Add, self.wide(x)?, half)?, less)?;
        self.narrow(self.int(IntOp::Ashr, sum, e)?)
    }

    pub(super) fn scale_double(&self, x: Value<'c>, multiplier: Value<'c>, shift: Value<'c>) -> Emitted<'c> {
        let left = self.clamp(shift, 0, 31)?;
        let shift = self.clamp(shift, -31, 31)?;
        let right = self.clamp(self.int(IntOp::Sub, self.c32(0), shift)?, 0, 31)?;
        let x = self.int(IntOp::Shl, x, left)?;
        self.rounding_shift(self.doubling_high_mul(x, multiplier)?, right)
    }

    pub(super) fn scale_single(&self, x: Value<'c>, multiplier: Value<'c>, shift: Value<'c>) -> Emitted<'c> {
        let right = self.wide(self.clamp(shift, 0, 31)?)?;
        let product = self.int(IntOp::Mul, self.wide(x)?, self.wide(multiplier)?)?;
        let half = self.int(IntOp::Shl, self.c64(1 << 30), right)?;
        let sum = self.int(IntOp::Add, product, half)?;
        let rounded = self.int(IntOp::Ashr, sum, self.int(IntOp::Add, right, self.c64(31))?)?;
        self.narrow(self.int_binary(BinOp::Min, rounded, self.c64(i32::MAX as i64), DType::I64)?)
    }

    pub(super) fn offset_clamp(
        &self,
        x: Value<'c>,
        zero_point: Value<'c>,
        lo: Value<'c>,
        hi: Value<'c>,
    ) -> Emitted<'c> {
        // If the bounds minus the zero point are known and fit, everything stays in 32 bits.
        let known = |v: Value<'c>| v.is_int_value().then(|| v.into_int_value().get_sign_extended_constant()).flatten();
        if let (Some(zero), Some(lo), Some(hi)) = (known(zero_point), known(lo), known(hi))
            && let (Ok(lo), Ok(hi)) = (i32::try_from(lo - zero), i32::try_from(hi - zero))
        {
            let v = self.int_binary(BinOp::Min, x, self.c32(hi), DType::I32)?;
            let v = self.int_binary(BinOp::Max, v, self.c32(lo), DType::I32)?;
            return self.int(IntOp::Add, v, zero_point);
        }
        let v = self.int(IntOp::Add, self.wide(x)?, self.wide(zero_point)?)?;
        let v = self.int_binary(BinOp::Min, v, self.wide(hi)?, DType::I64)?;
        // The lower bound is applied last, as in `num`.
        self.narrow(self.int_binary(BinOp::Max, v, self.wide(lo)?, DType::I64)?)
    }
}
